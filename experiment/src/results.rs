//! What an experiment found, as it is saved: the schema `ab/1`.

use serde::{Deserialize, Serialize};

use crate::statistics::{Effect, NoiseCheck};
use crate::{LeftOut, Machine, Plan, Sample};

/// The name and version of the saved form.
pub const SCHEMA: &str = "ab/1";

/// A whole experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// Seconds after 1970 at which it began.
    pub started_unix_s: u64,
    /// The command that repeats it.
    pub command: Vec<String>,
    /// What it ran on.
    pub machine: Machine,
    /// What was to be done.
    pub plan: Plan,
    /// Variants and instruments that this machine does not allow, and why.
    pub left_out: Vec<LeftOut>,
    /// What to know before believing the figures.
    pub warnings: Vec<String>,
    /// How it ended.
    pub ending: Ending,
    /// Blocks in which every variant ran; only these are analysed.
    pub blocks_done: u32,
    /// Each variant on its own.
    pub variants: Vec<VariantSummary>,
    /// Each variant against the baseline, by metric. The primary ones come first.
    pub comparisons: Vec<Comparison>,
    /// The baseline against its hidden duplicate.
    pub noise_check: NoiseCheck,
    /// Every run of the finished blocks, in the order in which they ran.
    pub runs: Vec<Run>,
    /// The time line, from the start of the lead to the end of the tail.
    pub samples: Vec<Sample>,
}

/// How an experiment ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// All blocks ran.
    Complete,
    /// It was told to stop, by a signal.
    Interrupted,
    /// A run failed.
    Failed {
        /// Why.
        error: String,
    },
}

/// One run of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// The block, from 0.
    pub block: u32,
    /// Its place in the block, from 0.
    pub place: u32,
    /// The variant's name.
    pub variant: String,
    /// True for the baseline's hidden duplicate.
    pub duplicate: bool,
    /// Where it begins on the time line, in seconds.
    pub start_s: f64,
    /// Where it ends on the time line, in seconds.
    pub end_s: f64,
    /// Each ring's result.
    pub rings: Vec<RingRun>,
    /// Energy of the run, in joules.
    pub energy_j: Option<f64>,
    /// The run's samples: from this one on ...
    pub first_sample: usize,
    /// ... up to, and without, this one.
    pub end_sample: usize,
}

/// One ring's part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RingRun {
    /// Mean microseconds for once round.
    pub us_per_loop: Option<f64>,
    /// Times round.
    pub loops: u64,
    /// How long these took.
    pub elapsed_s: f64,
}

/// One variant over all finished blocks, its hidden duplicate left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VariantSummary {
    /// Its name.
    pub name: String,
    /// Mean energy of a run, in joules.
    pub energy_j: Option<f64>,
    /// Why there is none.
    pub energy_unavailable: Option<String>,
    /// Mean power during its runs, in watts.
    pub watts: Option<f64>,
    /// Each ring.
    pub rings: Vec<RingSummary>,
    /// Each idle state during its runs.
    pub idle: Vec<IdleSummary>,
    /// Interrupts a second by CPU during its runs.
    pub interrupts: Vec<CpuRate>,
}

/// One ring of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RingSummary {
    /// The CPUs of its stops.
    pub cpus: Vec<u32>,
    /// Mean over the runs.
    pub us_per_loop: Option<f64>,
}

/// One idle state of one variant, summed over the CPUs of the rings, a second of running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IdleSummary {
    /// The state's name.
    pub name: String,
    /// Entries a second.
    pub usage_per_s: Option<f64>,
    /// Share of the rings' CPUs' time, in percent. It is counted when the state is left, so
    /// it may pass 100.
    pub time_percent: Option<f64>,
    /// Too deep a second.
    pub too_deep_per_s: Option<f64>,
    /// Too shallow a second.
    pub too_shallow_per_s: Option<f64>,
}

/// A rate on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CpuRate {
    /// The CPU.
    pub cpu: u32,
    /// Times a second.
    pub per_s: f64,
}

/// One metric of a variant against the baseline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The variant's name.
    pub variant: String,
    /// The baseline's name.
    pub baseline: String,
    /// What is compared.
    pub metric: Metric,
    /// The ring, from 0; `None` for all together.
    pub ring: Option<usize>,
    /// True for the one metric that the experiment is about; the others are exploratory.
    pub primary: bool,
    /// The effect, its interval and the verdict.
    #[serde(flatten)]
    pub effect: Effect,
}

/// What is compared. Less is better of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Metric {
    /// Microseconds for once round the ring.
    UsPerLoop,
    /// Joules of a whole run.
    EnergyJ,
    /// Mean watts of a run.
    Watts,
}

impl Metric {
    /// How people read a verdict on it: "faster", "more energy".
    pub fn words(self, verdict: crate::statistics::Verdict) -> &'static str {
        use crate::statistics::Verdict::{Better, Inconclusive, WithinMargin, Worse};
        match (self, verdict) {
            (Metric::UsPerLoop, Better) => "faster",
            (Metric::UsPerLoop, Worse) => "slower",
            (Metric::EnergyJ, Better) => "less energy",
            (Metric::EnergyJ, Worse) => "more energy",
            (Metric::Watts, Better) => "less power",
            (Metric::Watts, Worse) => "more power",
            (_, WithinMargin) => "within the margin",
            (_, Inconclusive) => "inconclusive",
        }
    }
}
