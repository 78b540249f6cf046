//! What happened between two snapshots.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hostfs::Elapsed;

use crate::snapshot::LayoutCpu;
use crate::{Counters, CpuSnapshot, Fault, Snapshot, StateSnapshot};

/// What a state's counters counted in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counts {
    /// How often the state was entered.
    pub entries: u64,
    /// The time of the stays that ended in the interval, in microseconds.
    pub time_us: u64,
    /// Entries that ended before the target residency (`above`).
    pub too_deep: Option<u64>,
    /// Entries that lasted so long that a deeper state would have fitted (`below`).
    pub too_shallow: Option<u64>,
    /// Entries that failed, which are not among `entries`.
    pub rejected: Option<u64>,
}

impl Counts {
    /// The time as a percentage of so much time of a CPU (or of the CPUs added up); `None`
    /// of no time.
    ///
    /// It can be 0 for a state that the CPU was in throughout, and over 100, since a whole
    /// stay is counted when it ends, also the part of it that was before the interval.
    pub fn share_percent(&self, of: Duration) -> Option<f64> {
        (!of.is_zero()).then(|| self.time_us as f64 / (of.as_secs_f64() * 1e6) * 100.0)
    }

    /// `None` where a counter went backwards.
    fn between(before: &Counters, after: &Counters) -> Option<Self> {
        let newer = |before: Option<u64>, after: Option<u64>| match (before, after) {
            (Some(before), Some(after)) => after.checked_sub(before).map(Some),
            _ => Some(None),
        };
        Some(Self {
            entries: after.usage.checked_sub(before.usage)?,
            time_us: after.time_us.checked_sub(before.time_us)?,
            too_deep: newer(before.above, after.above)?,
            too_shallow: newer(before.below, after.below)?,
            rejected: newer(before.rejected, after.rejected)?,
        })
    }
}

/// What became of one state's counters between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Outcome {
    /// What was counted.
    Counted(Counts),
    /// A counter of this CPU went backwards: the driver was registered again, which zeroes
    /// all counters of the CPU, so none of its states has a figure.
    Reset,
    /// The CPU is offline at one of the two moments, or the state is not there any more.
    Gone,
    /// The counters could not be read at one of the two moments.
    Unreadable(Fault),
    /// The earlier snapshot does not have this state of this CPU.
    NoEarlier,
    /// The earlier snapshot is not earlier.
    NotLater,
}

impl Outcome {
    /// What was counted, where that is known.
    pub fn counts(&self) -> Option<&Counts> {
        match self {
            Outcome::Counted(counts) => Some(counts),
            _ => None,
        }
    }

    fn of_fault(fault: &Fault) -> Self {
        match fault {
            Fault::Offline | Fault::Gone => Outcome::Gone,
            other => Outcome::Unreadable(other.clone()),
        }
    }

    fn between(before: &StateSnapshot, after: &StateSnapshot) -> Self {
        match (&before.counters, &after.counters) {
            (Ok(before), Ok(after)) => match Counts::between(before, after) {
                Some(counts) => Outcome::Counted(counts),
                None => Outcome::Reset,
            },
            (_, Err(fault)) | (Err(fault), _) => Outcome::of_fault(fault),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Counted(counts) => {
                write!(f, "{} entries, {} µs", counts.entries, counts.time_us)
            }
            Outcome::Reset => f.write_str("the CPU's counters were reset meanwhile"),
            Outcome::Gone => f.write_str("the CPU is offline or the state is gone"),
            Outcome::Unreadable(fault) => fault.fmt(f),
            Outcome::NoEarlier => f.write_str("not in the earlier snapshot"),
            Outcome::NotLater => f.write_str("the earlier snapshot is not earlier"),
        }
    }
}

/// One state of one CPU between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StateDelta {
    /// The number in `state<number>`.
    pub index: u32,
    /// The state's name.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
    /// The state's files went away meanwhile and were opened anew, as when the governor is
    /// switched. The counters carry on.
    pub reopened: bool,
}

/// One CPU between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CpuDelta {
    /// The CPU's number.
    pub cpu: u32,
    /// The time between the two readings of this CPU; zero where there was none.
    pub elapsed: Elapsed,
    /// Its states by index.
    pub states: Vec<StateDelta>,
}

/// What every CPU's idle states did between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Delta {
    /// The time between the two snapshots as a whole.
    pub elapsed: Elapsed,
    /// Each CPU in ascending order.
    pub cpus: Vec<CpuDelta>,
}

impl Snapshot {
    /// What happened from an earlier snapshot to this one, of the same reader or of another
    /// one on the same machine.
    pub fn since(&self, earlier: &Snapshot) -> Delta {
        let same = Arc::ptr_eq(&self.layout, &earlier.layout);
        let mut cpus: Vec<CpuDelta> = self
            .layout
            .cpus
            .iter()
            .zip(&self.cpus)
            .enumerate()
            .map(|(at, (layout, after))| {
                let at = match same {
                    true => Some(at),
                    false => earlier.position(after.cpu),
                };
                let before = at.map(|at| (&earlier.layout.cpus[at], &earlier.cpus[at]));
                cpu_delta(layout, after, before)
            })
            .collect();
        if !same {
            let left = earlier
                .layout
                .cpus
                .iter()
                .filter(|cpu| self.position(cpu.cpu).is_none());
            cpus.extend(left.map(|cpu| CpuDelta {
                cpu: cpu.cpu,
                elapsed: Elapsed::default(),
                states: gone(cpu, |_| true).collect(),
            }));
            cpus.sort_by_key(|cpu| cpu.cpu);
        }
        Delta {
            elapsed: self.stamp.since(&earlier.stamp).unwrap_or_default(),
            cpus,
        }
    }

    fn position(&self, cpu: u32) -> Option<usize> {
        self.cpus.iter().position(|there| there.cpu == cpu)
    }
}

fn cpu_delta(
    layout: &LayoutCpu,
    after: &CpuSnapshot,
    before: Option<(&LayoutCpu, &CpuSnapshot)>,
) -> CpuDelta {
    let elapsed = match before {
        Some((_, before)) => after.stamp.since(&before.stamp),
        None => None,
    }
    .filter(|elapsed| !elapsed.time.is_zero());
    let mut states: Vec<StateDelta> = layout
        .states
        .iter()
        .zip(&after.states)
        .map(|(state, after)| {
            let earlier = before.and_then(|(layout, before)| {
                let at = layout.states.iter().position(|there| there == state)?;
                before.states.get(at)
            });
            StateDelta {
                index: state.0,
                name: state.1.clone(),
                outcome: match earlier {
                    None => Outcome::NoEarlier,
                    Some(_) if elapsed.is_none() => Outcome::NotLater,
                    Some(before) => Outcome::between(before, after),
                },
                reopened: earlier.is_some_and(|before| before.reopened != after.reopened),
            }
        })
        .collect();
    if let Some((before, _)) = before {
        states.extend(gone(before, |state| !layout.states.contains(state)));
        states.sort_by_key(|state| state.index);
    }
    // A CPU's counters are zeroed together: those that are past their earlier value again
    // count from the reset too.
    if states.iter().any(|state| state.outcome == Outcome::Reset) {
        for state in &mut states {
            if state.outcome.counts().is_some() {
                state.outcome = Outcome::Reset;
            }
        }
    }
    CpuDelta {
        cpu: after.cpu,
        elapsed: elapsed.unwrap_or_default(),
        states,
    }
}

/// The states that are not there any more.
fn gone(
    cpu: &LayoutCpu,
    which: impl Fn(&(u32, String)) -> bool,
) -> impl Iterator<Item = StateDelta> {
    cpu.states
        .iter()
        .filter(move |state| which(state))
        .map(|(index, name)| StateDelta {
            index: *index,
            name: name.clone(),
            outcome: Outcome::Gone,
            reopened: false,
        })
}
