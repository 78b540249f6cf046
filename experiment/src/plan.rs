//! What an experiment will do, fixed before it starts.

use std::time::Duration;

use pingpong::TransportKind;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::Variant;

/// The whole experiment, decided beforehand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plan {
    /// What is compared; the first is the baseline.
    pub variants: Vec<Variant>,
    /// How often each variant runs.
    pub blocks: u32,
    /// The order of the runs within each block follows from it.
    pub seed: u64,
    /// The smallest change that matters, in percent.
    pub margin_percent: f64,
    /// The workload of each run.
    pub ring: RingPlan,
    /// How long the machine is left alone after a variant's factors were applied.
    pub settle: Duration,
    /// From one regular sample to the next.
    pub sample: Duration,
    /// Sampled before the first run.
    pub lead: Duration,
    /// Sampled after the last run.
    pub tail: Duration,
}

/// The rings of every run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RingPlan {
    /// The CPUs of each ring's stops.
    pub rings: Vec<Vec<u32>>,
    /// How the token is passed, by name.
    pub transport: String,
    /// Units of work at each stop.
    pub work: u64,
    /// Until when each run goes.
    pub until: Until,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Until {
    /// After so many loops of each ring.
    Loops(u64),
    /// After this time.
    Seconds(f64),
}

impl Plan {
    /// A plan with short defaults: 6 blocks, a margin of 1 %, samples every half second.
    pub fn new(variants: Vec<Variant>, ring: RingPlan, seed: u64) -> Self {
        Self {
            variants,
            blocks: 6,
            seed,
            margin_percent: 1.0,
            ring,
            settle: Duration::from_millis(200),
            sample: Duration::from_millis(500),
            lead: Duration::from_secs(1),
            tail: Duration::from_secs(1),
        }
    }

    /// The runs of one block, in their order: each variant once, and the baseline's hidden
    /// duplicate. Which of the two runs of the baseline is the duplicate is part of the
    /// shuffle, so that no place in the block belongs to it.
    pub fn block(&self, block: u32) -> Vec<Slot> {
        let mut slots: Vec<Slot> = (0..self.variants.len())
            .map(Slot::Variant)
            .chain([Slot::Duplicate])
            .collect();
        // One stream for each block, so that block 5 is the same whatever came before.
        let mut random = Pcg64::seed_from_u64(self.seed ^ (u64::from(block) << 32));
        slots.shuffle(&mut random);
        slots
    }

    /// How many runs the experiment has.
    pub fn runs(&self) -> u32 {
        self.blocks.saturating_mul(self.variants.len() as u32 + 1)
    }
}

/// One run's place in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The variant of that number.
    Variant(usize),
    /// The baseline once more: what differs between the two is this machine's noise.
    Duplicate,
}

impl Slot {
    /// The number of the variant that runs.
    pub fn variant(self) -> usize {
        match self {
            Slot::Variant(at) => at,
            Slot::Duplicate => 0,
        }
    }
}

impl RingPlan {
    /// Rings as described by their parts.
    pub fn new(rings: Vec<Vec<u32>>, transport: TransportKind, work: u64, until: Until) -> Self {
        Self {
            rings,
            transport: transport.to_string(),
            work,
            until,
        }
    }

    /// Rings of `stops` stops each over the CPUs given, dealt out in turn: stops of one
    /// ring get CPUs of their own as long as there are enough.
    pub fn spread(cpus: &[u32], rings: u32, stops: u32) -> Vec<Vec<u32>> {
        let mut next = cpus.iter().copied().cycle();
        (0..rings)
            .map(|_| next.by_ref().take(stops as usize).collect())
            .collect()
    }

    /// Every CPU that a stop is pinned to.
    pub fn cpus(&self) -> hostfs::CpuSet {
        self.rings.iter().flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(variants: usize, seed: u64) -> Plan {
        let variants = (0..variants)
            .map(|n| Variant::as_found(&n.to_string()))
            .collect();
        let ring = RingPlan {
            rings: vec![vec![0, 1]],
            transport: "pipe".into(),
            work: 0,
            until: Until::Loops(1),
        };
        Plan::new(variants, ring, seed)
    }

    #[test]
    fn each_block_runs_every_variant_once_and_the_duplicate() {
        let plan = plan(3, 7);
        for block in 0..50 {
            let slots = plan.block(block);
            assert_eq!(slots.len(), 4);
            for slot in [
                Slot::Variant(0),
                Slot::Variant(1),
                Slot::Variant(2),
                Slot::Duplicate,
            ] {
                assert_eq!(slots.iter().filter(|s| **s == slot).count(), 1);
            }
        }
    }

    #[test]
    fn the_order_follows_from_the_seed_and_differs_between_blocks() {
        let orders = |seed| -> Vec<_> { (0..20).map(|block| plan(3, seed).block(block)).collect() };
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
        assert!(orders(1).windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn no_place_in_the_block_belongs_to_a_variant() {
        // 6,000 blocks of 3 runs: each place holds each run 2,000 times, with a standard
        // deviation of sqrt(6000 · 1/3 · 2/3) = 36.5; five of these are 183.
        let plan = plan(2, 42);
        let mut counts = [[0i32; 3]; 3];
        for block in 0..6000 {
            for (place, slot) in plan.block(block).into_iter().enumerate() {
                let run = match slot {
                    Slot::Variant(at) => at,
                    Slot::Duplicate => 2,
                };
                counts[place][run] += 1;
            }
        }
        for count in counts.iter().flatten() {
            assert!((count - 2000).abs() < 183, "{counts:?}");
        }
    }

    #[test]
    fn stops_get_cpus_of_their_own_while_there_are_enough() {
        assert_eq!(
            RingPlan::spread(&[0, 1, 4, 5], 2, 2),
            [vec![0, 1], vec![4, 5]]
        );
        assert_eq!(
            RingPlan::spread(&[0, 1], 2, 3),
            [vec![0, 1, 0], vec![1, 0, 1]]
        );
    }
}
