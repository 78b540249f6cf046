//! What happened between two readings, as it is saved and drawn.

use serde::{Deserialize, Serialize};

/// One stretch of the experiment's time line. Stretches follow each other without a gap and
/// end at the borders of runs, so that none lies in two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sample {
    /// Seconds from the start of the time line.
    pub start_s: f64,
    /// Seconds from the start of the time line.
    pub end_s: f64,
    /// Energy of the whole machine (each package and its memory once), in joules; `None`
    /// without counters or when one of them could not be read.
    pub energy_j: Option<f64>,
    /// That energy over the time between its own readings, in watts.
    pub watts: Option<f64>,
    /// Each idle state, summed over the CPUs of the rings.
    pub idle: Vec<IdleSample>,
    /// Interrupts of numbered IRQs by CPU.
    pub interrupts: Vec<CpuCount>,
}

/// What one idle state did, summed over CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IdleSample {
    /// The state's name.
    pub name: String,
    /// Entries (`usage`).
    pub usage: Option<u64>,
    /// Time in it, in µs, counted when it is left.
    pub time_us: Option<u64>,
    /// Left before its target residency was over (`above`).
    pub too_deep: Option<u64>,
    /// A deeper state would have fitted (`below`).
    pub too_shallow: Option<u64>,
}

/// A count on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CpuCount {
    /// The CPU.
    pub cpu: u32,
    /// How often.
    pub count: u64,
}

impl Sample {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// The sum of values, `None` as soon as one is missing; `None` of none.
pub(crate) fn sum_of_all(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut any = false;
    let mut sum = 0.0;
    for value in values {
        sum += value?;
        any = true;
    }
    any.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_a_missing_part_is_missing() {
        assert_eq!(sum_of_all([Some(1.0), Some(2.5)].into_iter()), Some(3.5));
        assert_eq!(sum_of_all([Some(1.0), None].into_iter()), None);
        assert_eq!(sum_of_all(std::iter::empty()), None);
    }
}
