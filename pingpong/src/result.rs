//! What a run found out.

use std::time::Duration;

/// What one ring did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RingResult {
    /// Times that the token came round, warm-up left out.
    pub loops: u64,
    /// From the start of the first of these loops to the end of the last, by the first
    /// stop's CLOCK_MONOTONIC; both stamps on its CPU.
    pub elapsed: Duration,
    /// The ring's stops in their order.
    pub stops: Vec<StopResult>,
    /// Whether the [`Stopper`](crate::Stopper) ended it, before its limit did.
    pub stopped: bool,
}

impl RingResult {
    /// Mean microseconds for once round; `None` if no loop was completed.
    pub fn us_per_loop(&self) -> Option<f64> {
        (self.loops > 0).then(|| self.elapsed.as_secs_f64() * 1e6 / self.loops as f64)
    }
}

/// What one stop did.
///
/// It was pinned to its CPU at each look (about five a second) and at the end: otherwise the
/// run is an [`Error::LostCpu`](crate::Error::LostCpu).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StopResult {
    /// The CPU that it was pinned to.
    pub cpu: u32,
    /// Times that it passed the token on, warm-up left out: the ring's loops, or one more
    /// where the run was ended amid long `work`.
    pub hops: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_needs_a_loop() {
        let mut ring = RingResult {
            loops: 4,
            elapsed: Duration::from_micros(10),
            stops: Vec::new(),
            stopped: false,
        };
        assert_eq!(ring.us_per_loop(), Some(2.5));
        ring.loops = 0;
        assert_eq!(ring.us_per_loop(), None);
    }
}
