//! What became of one counter between two readings.

use std::fmt;
use std::time::Duration;

use crate::{Domain, DomainReading, Fault, Joules, Watts};

/// How much later than consumed energy may show in a counter: hardware updates about every
/// millisecond, QEMU's emulation once a second. Twice that, for both ends.
const STALENESS: Duration = Duration::from_secs(2);

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
    let (before_uj, after_uj) = match (&before.energy_uj, &after.energy_uj) {
        (Ok(before), Ok(after)) => (*before, *after),
        (_, Err(fault)) | (Err(fault), _) => return fault.into(),
    };
    let elapsed = match after.stamp.since(&before.stamp) {
        Some(elapsed) if !elapsed.time.is_zero() => elapsed,
        _ => return Outcome::NotLater,
    };
    // A counter beyond its range has another range than it says.
    let modulus = domain
        .max_energy_range_uj
        .filter(|range| before_uj.max(after_uj) <= *range)
        .and_then(|_| domain.modulus.nanojoules());
    let (before, after) = (u128::from(before_uj) * 1000, u128::from(after_uj) * 1000);
    let longest = elapsed.wall().saturating_add(elapsed.uncertainty);
    let (delta, wrap) = match (after.checked_sub(before), modulus) {
        (Some(delta), Some(_)) => (delta, Wrap::No),
        (Some(delta), None) => (delta, Wrap::Unknown),
        (None, None) => return Outcome::NotCorrectable,
        (None, Some(modulus)) => {
            // Not negative: no counter within its range reaches its modulus.
            let delta = (after + modulus).saturating_sub(before);
            if delta > most(bound, longest.saturating_add(STALENESS)) {
                return Outcome::Reset;
            }
            match domain.modulus.unit_nj() {
                Some(_) => (delta, Wrap::Corrected),
                None => (delta, Wrap::CorrectedByRange),
            }
        }
    };
    let joules = Joules::from_nanojoules(delta);
    match modulus {
        Some(modulus) if delta + modulus <= most(bound, longest) => Outcome::Ambiguous {
            at_least: joules,
            modulus: Joules::from_nanojoules(modulus),
        },
        _ => Outcome::Measured {
            joules,
            watts: joules / elapsed.wall(),
            wrap,
        },
    }
}

/// The most energy in nanojoules at that power in that time: a watt is a nanojoule a
/// nanosecond.
fn most(bound: Watts, time: Duration) -> u128 {
    (bound.0 * time.as_nanos() as f64) as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Modulus};
    use hostfs::Stamp;
    use proptest::prelude::*;

    const RANGE_61: u64 = 262_143_328_850;

    fn domain(range_uj: Option<u64>) -> Domain {
        Domain {
            id: "intel-rapl/package-0".into(),
            kind: Kind::Package,
            package: Some(0),
            die: None,
            parent: None,
            in_total: true,
            path: "sys/class/powercap/intel-rapl:0".into(),
            max_energy_range_uj: range_uj,
            modulus: Modulus::of_range(range_uj),
        }
    }

    fn at(seconds: f64, asleep: f64, energy_uj: Result<u64, Fault>) -> DomainReading {
        let clock = Duration::from_secs_f64(seconds);
        DomainReading {
            energy_uj,
            stamp: Stamp::between(clock, clock, clock + Duration::from_secs_f64(asleep)),
            reopened: 0,
        }
    }

    /// A counter of 2^-14 J at 1 kW, after so many seconds awake and asleep.
    fn after(seconds: f64, asleep: f64, from_uj: u64, to_uj: u64) -> Outcome {
        let earlier = at(100.0, 0.0, Ok(from_uj));
        let later = at(100.0 + seconds, asleep, Ok(to_uj));
        outcome(&domain(Some(RANGE_61)), Watts(1000.0), &earlier, &later)
    }

    #[test]
    fn watts_are_over_the_time_that_passed_suspended_or_not() {
        let measured = |joules, watts| Outcome::Measured {
            joules: Joules(joules),
            watts: Watts(watts),
            wrap: Wrap::No,
        };
        assert_eq!(after(2.0, 0.0, 5, 30_000_005), measured(30.0, 15.0));
        assert_eq!(after(2.0, 1.0, 5, 30_000_005), measured(30.0, 10.0));
        assert_eq!(after(0.0, 0.0, 5, 30_000_005), Outcome::NotLater);
    }

    /// Several wraps in one interval (likwid#646, zeus#91). A wrap is worth 262.143 kJ,
    /// which takes 262.143 s at 1 kW.
    #[test]
    fn ambiguous_as_soon_as_one_more_wrap_is_possible() {
        assert!(after(262.0, 0.0, 0, 0).joules().is_some());
        assert!(matches!(after(263.0, 0.0, 0, 0), Outcome::Ambiguous { .. }));
        // What is consumed anyway leaves less for a hidden wrap.
        assert!(after(263.0, 0.0, 0, 10_000_000_000).joules().is_some());
        // The counter may go on while the machine is suspended.
        assert!(matches!(
            after(100.0, 163.0, 0, 0),
            Outcome::Ambiguous { .. }
        ));
        let wrapped = after(400.0, 0.0, RANGE_61 - 9_000_000, 1_000_000);
        let Outcome::Ambiguous { at_least, modulus } = wrapped else {
            panic!("{wrapped}");
        };
        assert!((at_least.0 - 10.000_061_36).abs() < 1e-9);
        assert_eq!(modulus, Joules(262_143.328_911_36));
    }

    /// 2 s count in any case for what a counter shows late.
    #[test]
    fn a_reset_is_told_from_a_wrap_by_the_power_it_would_take() {
        let fell_as_if_by = |joules: u64| RANGE_61 - joules * 1_000_000;
        assert!(after(1.0, 0.0, fell_as_if_by(2_999), 0).joules().is_some());
        assert_eq!(after(1.0, 0.0, fell_as_if_by(3_001), 0), Outcome::Reset);
        assert!(after(2.0, 0.0, fell_as_if_by(3_001), 0).joules().is_some());
    }

    #[test]
    fn vanished_and_unreadable_zones() {
        let gone = at(101.0, 0.0, Err(Fault::Gone));
        let refused = at(101.0, 0.0, Err(Fault::NotPermitted));
        let good = at(100.0, 0.0, Ok(1));
        let of = |a, b| outcome(&domain(None), Watts(1000.0), a, b);
        assert_eq!(of(&good, &gone), Outcome::Gone);
        assert_eq!(
            of(&good, &refused),
            Outcome::Unreadable(Fault::NotPermitted)
        );
        assert_eq!(of(&gone, &good), Outcome::Gone);
        assert_eq!(
            of(&refused, &gone),
            Outcome::Gone,
            "the later one is the news"
        );
    }

    proptest! {
        /// Unsigned underflow to 1.8e19 (kepler PR#53): no two readings give a negative or
        /// wrapped figure, nor more than the counter can hold.
        #[test]
        fn never_negative_and_never_more_than_a_wrap(
            from: u64, to: u64, near in 0u64..300_000_000_000, range: Option<u64>,
            seconds in 0.0..1e6f64, exact: bool,
        ) {
            let range = if exact { Some(RANGE_61) } else { range };
            let (from, to) = if exact { (from % near.max(1), to % near.max(1)) } else { (from, to) };
            let earlier = at(100.0, 0.0, Ok(from));
            let later = at(100.0 + seconds, 0.0, Ok(to));
            let got = outcome(&domain(range), Watts(1000.0), &earlier, &later);
            if let Outcome::Measured { joules, watts, wrap } = got {
                prop_assert!(joules.0 >= 0.0 && watts.0 >= 0.0);
                let most = match wrap {
                    Wrap::No | Wrap::Unknown => to as f64 / 1e6,
                    _ => Modulus::of_range(range).nanojoules().unwrap() as f64 / 1e9,
                };
                prop_assert!(joules.0 <= most * (1.0 + 1e-12), "{joules} of {most}");
            }
            if let Outcome::Ambiguous { at_least, modulus } = got {
                prop_assert!(at_least.0 >= 0.0 && modulus.0 > 0.0);
            }
        }

        /// What was consumed comes back, whatever the counter stood at, if it is less than
        /// a wrap and within the power bound.
        #[test]
        fn what_was_consumed_comes_back(start in 0u64..=RANGE_61, spent in 0u64..60_000_000_000) {
            let modulus = 262_143_328_911; // 2^32 * 61035 / 1000, without .36 µJ
            let got = after(60.0, 0.0, start, (start + spent) % modulus);
            let joules = got.joules().unwrap().0;
            prop_assert!((joules - spent as f64 / 1e6).abs() < 1e-6, "{got} for {spent}");
        }
    }
}
