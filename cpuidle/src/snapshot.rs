//! What every counter showed at one moment.

use std::sync::Arc;

use hostfs::{Stamp, Stamps};

use crate::Fault;

/// Which CPUs and states a reader has, in the order of its snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Layout {
    pub(crate) cpus: Vec<LayoutCpu>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct LayoutCpu {
    pub(crate) cpu: u32,
    /// Index and name.
    pub(crate) states: Vec<(u32, String)>,
}

/// The counters of one state of one CPU, each since an arbitrary moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// How often the state was entered.
    pub usage: u64,
    /// The time spent in it, in microseconds, counted at each exit.
    pub time_us: u64,
    /// Entries that ended before the target residency while a shallower state was enabled:
    /// too deep (since Linux 5.0).
    pub above: Option<u64>,
    /// Entries that lasted so long that the next deeper enabled state would have fitted:
    /// too shallow (since Linux 5.0).
    pub below: Option<u64>,
    /// Entries that failed, which are not in `usage` (since Linux 5.10).
    pub rejected: Option<u64>,
}

/// One state of one CPU in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StateSnapshot {
    /// The counters, or why they could not be read.
    pub counters: Result<Counters, Fault>,
    /// How often one of the state's files had gone away and was opened anew.
    pub reopened: u64,
}

/// One CPU in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CpuSnapshot {
    /// The CPU's number.
    pub cpu: u32,
    /// When this CPU's counters were read.
    pub stamp: Stamp,
    /// Its states by index.
    pub states: Vec<StateSnapshot>,
}

/// The counters of every CPU, read one after another: see [`since`](Self::since).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot {
    pub(crate) layout: Arc<Layout>,
    pub(crate) stamp: Stamp,
    pub(crate) cpus: Vec<CpuSnapshot>,
}

impl Snapshot {
    pub(crate) fn empty(layout: &Arc<Layout>) -> Self {
        let stamp = Stamps::start().whole();
        let cpus = layout.cpus.iter().map(|cpu| CpuSnapshot {
            cpu: cpu.cpu,
            stamp,
            states: vec![
                StateSnapshot {
                    counters: Err(Fault::Gone),
                    reopened: 0,
                };
                cpu.states.len()
            ],
        });
        Self {
            cpus: cpus.collect(),
            layout: Arc::clone(layout),
            stamp,
        }
    }

    /// From the first counter to the last.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// Each CPU in ascending order.
    pub fn cpus(&self) -> &[CpuSnapshot] {
        &self.cpus
    }

    /// Each state of a CPU with its index and name.
    pub fn states(&self, cpu: u32) -> impl Iterator<Item = (u32, &str, &StateSnapshot)> {
        self.find(cpu).into_iter().flat_map(|(layout, cpu)| {
            layout
                .states
                .iter()
                .zip(&cpu.states)
                .map(|((index, name), state)| (*index, name.as_str(), state))
        })
    }

    /// Each CPU with its part of the layout. (One that was deserialised may lack some.)
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&LayoutCpu, &CpuSnapshot)> {
        self.layout.cpus.iter().zip(&self.cpus)
    }

    pub(crate) fn find(&self, cpu: u32) -> Option<(&LayoutCpu, &CpuSnapshot)> {
        self.pairs().find(|(layout, _)| layout.cpu == cpu)
    }
}
