//! What became of one counter between two readings.

use std::fmt;
use std::time::Duration;

use crate::{Domain, DomainReading, Fault, Joules, Modulus, Watts};

/// How much later than consumed energy may show in a counter: hardware updates about every
/// millisecond, QEMU's emulation once a second. Twice that, for both ends.
const STALENESS: Duration = Duration::from_secs(2);
/// The registers are updated about so often (Intel SDM volume 3B, "RAPL Interfaces").
const UPDATE_PERIOD: Duration = Duration::from_millis(1);
/// Up to this power the kernel looks by itself often enough to miss nothing.
const KERNEL_LOOKS_FOR: Watts = Watts(200.0);
/// The finest step that processors are known to count in, for one that is not known.
const FINEST_STEP: Joules = Joules(1.0 / 65_536.0);
const COUNTS: u128 = 1 << 32;

/// What became of one domain's counter between two readings.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Outcome {
    /// The energy is known.
    #[non_exhaustive]
    Measured {
        /// What was consumed.
        joules: Joules,
        /// The mean power over the time that passed, suspended or not.
        watts: Watts,
        /// How far `joules` may be off: a step of the counter, and what is drawn in the
        /// time by which the two readings are uncertain and in the about 1 ms between two
        /// updates of a register.
        uncertainty: Joules,
        /// Whether the counter wrapped, and how well that could be corrected.
        wrap: Wrap,
    },
    /// The interval is so long that the counter may have wrapped more often than it shows,
    /// at a power within the bound: read more often, or lower the bound.
    #[non_exhaustive]
    Ambiguous {
        /// What was consumed at least.
        at_least: Joules,
        /// What each further wrap would add.
        modulus: Joules,
    },
    /// The counter fell, and by so much that a wrap would mean more than the power bound:
    /// it was set to zero meanwhile.
    Reset,
    /// The counter fell, and its range is unknown or wrong, so no wrap can be corrected.
    NotCorrectable,
    /// The zone is not there any more.
    Gone,
    /// The perf event stood still, since its CPU went offline, and was opened anew on
    /// another one: what was consumed meanwhile is not known. Later intervals have a value.
    Reopened,
    /// The perf event stands still, since its CPU is offline, and no other CPU counts the
    /// same.
    Frozen,
    /// The counter could not be read at one of the two moments.
    Unreadable(Fault),
    /// The earlier reading does not have this domain.
    NoEarlier,
    /// The earlier reading is not earlier.
    NotLater,
}

/// How a counter came from its earlier value to its later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Wrap {
    /// It rose, without a wrap.
    No,
    /// It wrapped once, corrected with its true modulus.
    Corrected,
    /// It wrapped once, corrected with its range, since no unit of a count gives that: the
    /// energy may be short by one count.
    CorrectedByRange,
    /// It rose, but its range is unknown or wrong: a wrap would have gone unnoticed.
    Unknown,
}

impl Outcome {
    /// The energy, where it is known.
    pub fn joules(&self) -> Option<Joules> {
        match self {
            Outcome::Measured { joules, .. } => Some(*joules),
            _ => None,
        }
    }

    /// How far the energy may be off, where it is known.
    pub fn uncertainty(&self) -> Option<Joules> {
        match self {
            Outcome::Measured { uncertainty, .. } => Some(*uncertainty),
            _ => None,
        }
    }

    /// The mean power, where it is known.
    pub fn watts(&self) -> Option<Watts> {
        match self {
            Outcome::Measured { watts, .. } => Some(*watts),
            _ => None,
        }
    }
}

impl From<&Fault> for Outcome {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Gone => Outcome::Gone,
            Fault::Frozen { .. } => Outcome::Frozen,
            other => Outcome::Unreadable(other.clone()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Measured { joules, watts, .. } => write!(f, "{joules} ({watts})"),
            Outcome::Ambiguous { at_least, .. } => write!(
                f,
                "at least {at_least}: the interval is so long that the counter may have \
                 wrapped more often: read more often"
            ),
            Outcome::Reset => f.write_str("the counter was reset meanwhile"),
            Outcome::NotCorrectable => {
                f.write_str("the counter fell, and without a valid range no wrap can be corrected")
            }
            Outcome::Gone => f.write_str("the zone is not there (any more)"),
            Outcome::Reopened => f.write_str(
                "the event's CPU went offline: it was opened anew on another one, and what was \
                 consumed meanwhile is not known",
            ),
            Outcome::Frozen => {
                f.write_str("the event's CPU is offline, and its count stands still")
            }
            Outcome::Unreadable(fault) => fault.fmt(f),
            Outcome::NoEarlier => f.write_str("not in the earlier reading"),
            Outcome::NotLater => f.write_str("the earlier reading is not earlier"),
        }
    }
}

/// What came of one counter, whose domain draws at most `bound`.
pub(crate) fn outcome(
    domain: &Domain,
    bound: Watts,
    before: &DomainReading,
    after: &DomainReading,
) -> Outcome {
    let (from, to) = match (&before.count, &after.count) {
        (Ok(before), Ok(after)) => (*before, *after),
        (_, Err(fault)) | (Err(fault), _) => return fault.into(),
    };
    let elapsed = match after.stamp.since(&before.stamp) {
        Some(elapsed) if !elapsed.time.is_zero() => elapsed,
        _ => return Outcome::NotLater,
    };
    let accumulated = matches!(domain.modulus, Modulus::Accumulated { .. });
    if accumulated && before.reopened != after.reopened {
        return Outcome::Reopened;
    }
    let modulus = modulus(domain, from.max(to));
    let (from, to) = (ticks(domain, from), ticks(domain, to));
    let longest = elapsed.wall().saturating_add(elapsed.uncertainty);
    let (delta, wrap) = match (to.checked_sub(from), modulus) {
        (Some(delta), _) if accumulated => (delta, Wrap::No),
        (Some(delta), Some(_)) => (delta, Wrap::No),
        (Some(delta), None) => (delta, Wrap::Unknown),
        (None, None) => return Outcome::NotCorrectable,
        (None, Some(modulus)) => {
            // Not negative: no counter within its range reaches its modulus.
            let delta = (to + modulus).saturating_sub(from);
            if joules(domain, delta) > most(bound, longest.saturating_add(STALENESS)) {
                return Outcome::Reset;
            }
            match domain.modulus {
                Modulus::Range { .. } => (delta, Wrap::CorrectedByRange),
                _ => (delta, Wrap::Corrected),
            }
        }
    };
    let measured = joules(domain, delta);
    // The kernel itself looks often enough at a counter that draws so little.
    let seen = accumulated && bound <= KERNEL_LOOKS_FOR;
    let hidden = match domain.modulus {
        _ if seen => None,
        Modulus::Accumulated { step } => Some(step.unwrap_or(FINEST_STEP) * COUNTS as f64),
        _ => modulus.map(|modulus| joules(domain, modulus)),
    };
    match hidden {
        Some(modulus) if measured + modulus <= most(bound, longest) => Outcome::Ambiguous {
            at_least: measured,
            modulus,
        },
        _ => {
            let watts = measured / elapsed.wall();
            let step = domain.resolution.unwrap_or(domain.unit);
            Outcome::Measured {
                joules: measured,
                watts,
                uncertainty: step + watts * elapsed.uncertainty.saturating_add(UPDATE_PERIOD),
                wrap,
            }
        }
    }
}

/// For how long that counter may be left unread at that power.
pub(crate) fn longest_gap(domain: &Domain, bound: Watts) -> Option<Duration> {
    let most = match domain.modulus {
        // A step back is what the kernel makes of half a wrap.
        Modulus::Accumulated { step } => step.unwrap_or(FINEST_STEP) * (COUNTS / 2) as f64,
        Modulus::Register => domain.unit * COUNTS as f64,
        modulus => Joules::from_nanojoules(modulus.nanojoules()?),
    };
    Duration::try_from_secs_f64(most.0 / bound.0).ok()
}

/// The counter's value in whole steps without a sign: nanojoules for a zone, since a wrap of
/// its microjoules is no whole number of them.
fn ticks(domain: &Domain, count: u64) -> u128 {
    match domain.modulus {
        Modulus::Register => u128::from(count),
        // Two's complement, moved up by half of all values.
        Modulus::Accumulated { .. } => u128::from(count ^ 1 << 63),
        _ => u128::from(count) * 1000,
    }
}

/// A wrap of the counter in the same steps, where it is known.
fn modulus(domain: &Domain, most: u64) -> Option<u128> {
    match domain.modulus {
        Modulus::Register => Some(COUNTS),
        Modulus::Accumulated { step } => {
            let steps = step? / domain.unit;
            Some((steps * COUNTS as f64).round() as u128)
        }
        _ => {
            // A counter beyond its range has another range than it says.
            domain.max_energy_range_uj.filter(|range| most <= *range)?;
            domain.modulus.nanojoules()
        }
    }
}

fn joules(domain: &Domain, ticks: u128) -> Joules {
    match domain.modulus {
        Modulus::Register | Modulus::Accumulated { .. } => domain.unit * ticks as f64,
        _ => Joules::from_nanojoules(ticks),
    }
}

/// The most energy at that power in that time.
fn most(bound: Watts, time: Duration) -> Joules {
    bound * time
}

#[cfg(test)]
mod tests;
