//! What a sampler has gathered.

use std::time::Duration;

use hostfs::{Elapsed, Stamp};

use crate::{Domain, Joules, Outcome, Skipped, Watts};

/// Samples along a time line, and the energy of all of it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Series {
    /// What was counted; samples and totals are in this order.
    pub domains: Vec<Domain>,
    /// The counters that could not be read from the beginning.
    pub skipped: Vec<Skipped>,
    /// When the series begins: the first reading.
    pub start: Stamp,
    /// The samples, the newest last.
    pub samples: Vec<Sample>,
    /// How many older samples a bounded series has dropped. Their energy is in the totals.
    pub dropped: u64,
    /// The energy of each domain from the first reading to the last.
    pub totals: Vec<Total>,
    /// Where readings came late or the machine slept, the newest last.
    pub gaps: Vec<Gap>,
    /// How many older gaps were dropped.
    pub gaps_dropped: u64,
}

/// What was consumed since the sample before this one.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Sample {
    /// When it was taken.
    pub end: Stamp,
    /// The time since the one before.
    pub elapsed: Elapsed,
    /// The energy of each domain; `None` where it is not known: see
    /// [`Total::last_missing`] for the latest reason.
    pub joules: Vec<Option<Joules>>,
    /// The energy of packages and dram, each once; `None` where one of them has no value.
    pub total: Option<Joules>,
}

impl Sample {
    /// The mean power of packages and dram, where it is known.
    pub fn total_watts(&self) -> Option<Watts> {
        self.total.map(|total| total / self.elapsed.wall())
    }

    /// The mean power of the domain of that index.
    pub fn watts(&self, domain: usize) -> Option<Watts> {
        let joules = self.joules.get(domain).copied().flatten()?;
        Some(joules / self.elapsed.wall())
    }
}

/// The energy of a domain over a whole series.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Total {
    /// The sum of every interval that has a value.
    pub joules: Joules,
    /// How long these intervals are together, suspended or not.
    pub time: Duration,
    /// How often the counter wrapped.
    pub wraps: u64,
    /// How many intervals have no value; `joules` lacks their energy.
    pub missing: u64,
    /// Why the latest of them has none.
    pub last_missing: Option<Outcome>,
}

/// A reading that was not taken when it was due.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Gap {
    /// The machine was suspended.
    #[non_exhaustive]
    Suspended {
        /// The first reading afterwards.
        at: Stamp,
        /// For how long.
        asleep: Duration,
    },
    /// The thread did not get to run in time.
    #[non_exhaustive]
    Late {
        /// The reading that was late.
        at: Stamp,
        /// By how much.
        by: Duration,
    },
}

impl Series {
    /// The energy of packages and dram over the whole series, each once; `None` where one of
    /// them lacks an interval.
    pub fn total(&self) -> Option<Joules> {
        let counted = || {
            let pairs = self.domains.iter().zip(&self.totals);
            pairs.filter(|(domain, _)| domain.in_total)
        };
        let whole = counted().all(|(_, total)| total.missing == 0 && total.time > Duration::ZERO)
            && counted().next().is_some()
            && !self.skipped.iter().any(|skipped| skipped.in_total);
        whole.then(|| counted().map(|(_, total)| total.joules).sum())
    }
}
