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
        let cpus = if Arc::ptr_eq(&self.layout, &earlier.layout) {
            self.pairs()
                .zip(earlier.pairs())
                .map(|((layout, after), before)| cpu_delta(layout, after, Some(before)))
                .collect()
        } else {
            self.cpus_since(earlier)
        };
        Delta {
            elapsed: self.stamp.since(&earlier.stamp).unwrap_or_default(),
            cpus,
        }
    }

    /// As [`since`](Self::since), of another reader, which can have other CPUs.
    fn cpus_since(&self, earlier: &Snapshot) -> Vec<CpuDelta> {
        let here = self
            .pairs()
            .map(|(layout, after)| cpu_delta(layout, after, earlier.find(layout.cpu)));
        let left = earlier
            .pairs()
            .filter(|(layout, _)| self.find(layout.cpu).is_none())
            .map(|(layout, _)| CpuDelta {
                cpu: layout.cpu,
                elapsed: Elapsed::default(),
                states: gone(layout, |_| true).collect(),
            });
        let mut cpus: Vec<CpuDelta> = here.chain(left).collect();
        cpus.sort_by_key(|cpu| cpu.cpu);
        cpus
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Layout;
    use hostfs::Stamp;
    use proptest::prelude::*;

    /// Counters of each state of each CPU, at a second.
    type Values = Vec<Vec<[Option<u64>; 5]>>;

    fn snapshot(layout: &Arc<Layout>, second: u64, values: &Values) -> Snapshot {
        let clock = Duration::from_secs(second);
        let mut snapshot = Snapshot::empty(layout);
        snapshot.stamp = Stamp::between(clock, clock, clock);
        for (cpu, values) in snapshot.cpus.iter_mut().zip(values) {
            cpu.stamp = snapshot.stamp;
            for (state, values) in cpu.states.iter_mut().zip(values) {
                let [usage, time_us, above, below, rejected] = *values;
                state.counters = match (usage, time_us) {
                    (Some(usage), Some(time_us)) => Ok(Counters {
                        usage,
                        time_us,
                        above,
                        below,
                        rejected,
                    }),
                    _ => Err(Fault::Gone),
                };
            }
        }
        snapshot
    }

    fn layout() -> Arc<Layout> {
        let states = ["POLL", "C1", "C6"];
        let states = (0..).zip(states.map(str::to_owned)).collect::<Vec<_>>();
        let cpus = (0..2).map(|cpu| LayoutCpu {
            cpu,
            states: states.clone(),
        });
        Arc::new(Layout {
            cpus: cpus.collect(),
        })
    }

    fn values() -> impl Strategy<Value = Values> {
        // Small ones, so that rises and falls are both common; and any.
        let counter = prop_oneof![
            8 => (0u64..4).prop_map(Some),
            2 => any::<u64>().prop_map(Some),
            1 => Just(None),
        ];
        let state = [(); 5].map(|()| counter.clone());
        proptest::collection::vec(proptest::collection::vec(state, 3), 2)
    }

    /// Worked out apart from the crate's own arithmetic, in numbers that can't wrap.
    fn difference(before: Option<u64>, after: Option<u64>) -> Option<i128> {
        Some(i128::from(after?) - i128::from(before?))
    }

    proptest! {
        /// No two snapshots give a negative or wrapped figure.
        #[test]
        fn a_figure_is_the_true_difference_or_there_is_none(before in values(), after in values()) {
            let layout = layout();
            let delta = snapshot(&layout, 2, &after).since(&snapshot(&layout, 1, &before));
            for (cpu, got) in delta.cpus.iter().enumerate() {
                let fell = (0..3).any(|state| {
                    let (before, after) = (before[cpu][state], after[cpu][state]);
                    let known = |v: [Option<u64>; 5]| v[0].is_some() && v[1].is_some();
                    known(before) && known(after)
                        && before.into_iter().zip(after).any(|(b, a)| {
                            difference(b, a).is_some_and(|d| d < 0)
                        })
                });
                for (state, got) in got.states.iter().enumerate() {
                    let Outcome::Counted(counts) = &got.outcome else {
                        prop_assert!(matches!(got.outcome, Outcome::Reset | Outcome::Gone));
                        prop_assert!(got.outcome != Outcome::Reset || fell);
                        continue;
                    };
                    prop_assert!(!fell);
                    let figures = [
                        Some(counts.entries), Some(counts.time_us),
                        counts.too_deep, counts.too_shallow, counts.rejected,
                    ];
                    for (at, figure) in figures.into_iter().enumerate() {
                        let true_one = difference(before[cpu][state][at], after[cpu][state][at]);
                        prop_assert_eq!(figure.map(i128::from), true_one);
                    }
                }
            }
        }

        /// Sums are those of the CPUs that they name.
        #[test]
        fn a_sum_is_that_of_its_cpus(before in values(), after in values()) {
            let layout = layout();
            let delta = snapshot(&layout, 2, &after).since(&snapshot(&layout, 1, &before));
            for (state, sum) in delta.sum().iter().enumerate() {
                prop_assert_eq!(sum.cpus.len() + sum.missing.len(), 2);
                prop_assert_eq!(sum.cpu_time, Duration::from_secs(sum.cpus.len() as u64));
                let counted = sum.cpus.iter().map(|cpu| {
                    delta.cpus[cpu as usize].states[state].outcome.counts().unwrap()
                });
                let entries: u128 = counted.clone().map(|c| u128::from(c.entries)).sum();
                let time_us: u128 = counted.map(|c| u128::from(c.time_us)).sum();
                match &sum.counts {
                    None => prop_assert!(sum.cpus.is_empty()),
                    Some(counts) => prop_assert_eq!(
                        (u128::from(counts.entries), u128::from(counts.time_us)),
                        (entries, time_us)
                    ),
                }
            }
        }
    }
}
