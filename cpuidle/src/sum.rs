//! Sums over CPUs.

use std::time::Duration;

use hostfs::CpuSet;

use crate::{Counts, CpuDelta, Delta, Outcome};

/// What the states of one name did on several CPUs together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StateSum {
    /// The states' name. Where one CPU has several of that name, the first ones are summed
    /// up, then the second ones, and so on.
    pub name: String,
    /// The sum over [`cpus`](Self::cpus); `None` if there are none. A counter that one of
    /// them lacks is `None`.
    pub counts: Option<Counts>,
    /// The CPUs whose figures are in the sum.
    pub cpus: CpuSet,
    /// The CPUs that have this state but no figure for it.
    pub missing: CpuSet,
    /// The time that passed on the CPUs in the sum, added up.
    pub cpu_time: Duration,
}

impl StateSum {
    /// The time in this state as a percentage of the time that passed on these CPUs, not
    /// clamped: see [`Counts::share_percent`].
    pub fn share_percent(&self) -> Option<f64> {
        self.counts.as_ref()?.share_percent(self.cpu_time)
    }

    fn add(&mut self, cpu: &CpuDelta, outcome: &Outcome) {
        let sum = match (self.counts, outcome.counts()) {
            (_, None) => None,
            (None, Some(counts)) => Some(*counts),
            // A sum past 64 bits is none.
            (Some(sum), Some(counts)) => add(&sum, counts),
        };
        if sum.is_some() {
            self.counts = sum;
            self.cpus.insert(cpu.cpu);
            self.cpu_time = self.cpu_time.saturating_add(cpu.elapsed.time);
        } else {
            self.missing.insert(cpu.cpu);
        }
    }
}

fn add(a: &Counts, b: &Counts) -> Option<Counts> {
    let newer = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => a.checked_add(b).map(Some),
        _ => Some(None),
    };
    Some(Counts {
        entries: a.entries.checked_add(b.entries)?,
        time_us: a.time_us.checked_add(b.time_us)?,
        too_deep: newer(a.too_deep, b.too_deep)?,
        too_shallow: newer(a.too_shallow, b.too_shallow)?,
        rejected: newer(a.rejected, b.rejected)?,
    })
}

impl Delta {
    /// The sums over all CPUs by the states' names, in the order of their indices.
    pub fn sum(&self) -> Vec<StateSum> {
        sum(self.cpus.iter())
    }

    /// As [`sum`](Self::sum), over these CPUs only.
    pub fn sum_over(&self, cpus: &CpuSet) -> Vec<StateSum> {
        sum(self.cpus.iter().filter(|cpu| cpus.contains(cpu.cpu)))
    }
}

fn sum<'a>(cpus: impl Iterator<Item = &'a CpuDelta>) -> Vec<StateSum> {
    // Name, how many of that name came before it on its CPU, the highest index that it has.
    let mut sums: Vec<(StateSum, usize, u32)> = Vec::new();
    for cpu in cpus {
        for (at, state) in cpu.states.iter().enumerate() {
            let earlier = &cpu.states[..at];
            let nth = earlier.iter().filter(|s| s.name == state.name).count();
            let place = sums
                .iter()
                .position(|(sum, n, _)| *n == nth && sum.name == state.name);
            let place = place.unwrap_or_else(|| {
                let sum = StateSum {
                    name: state.name.clone(),
                    counts: None,
                    cpus: CpuSet::new(),
                    missing: CpuSet::new(),
                    cpu_time: Duration::ZERO,
                };
                sums.push((sum, nth, state.index));
                sums.len() - 1
            });
            let (sum, _, index) = &mut sums[place];
            sum.add(cpu, &state.outcome);
            // Where CPUs differ, a state is behind all those that any CPU has before it.
            *index = state.index.max(*index);
        }
    }
    sums.sort_by_key(|(_, _, index)| *index);
    sums.into_iter().map(|(sum, _, _)| sum).collect()
}
