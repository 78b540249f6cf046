//! Does it pay, or is it noise: an experiment whose verdict survives a sceptic.
//!
//! Variants of the machine (irqbalance on or off, another idle governor, an idle state
//! disabled) run in blocks, in random order, around a ring of pinned threads that pass a
//! token. Guards put everything back after each run; one rule turns the blocks into a
//! verdict ([`statistics`]).
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//!
//! use experiment::{Experiment, Host, Plan, RingPlan, Until, Variant};
//! use hostfs::{HostFs, Restore};
//! use pingpong::TransportKind;
//!
//! // The machine as it is found, against itself: is there an effect where there is none?
//! let variants = vec![Variant::as_found("once"), Variant::as_found("again")];
//! let cpu = pingpong::allowed_cpus()?.min().expect("there is a CPU");
//! let ring = RingPlan::new(vec![vec![cpu, cpu]], TransportKind::Pipe, 0, Until::Loops(1000));
//! let mut plan = Plan::new(variants, ring, 1);
//! plan.blocks = 2;
//! (plan.settle, plan.lead, plan.tail) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
//!
//! let host = Host::new(Restore::new(&HostFs::live()));
//! let stop = Arc::new(AtomicBool::new(false));
//! let results = Experiment::new(host, plan, Vec::new(), Vec::new())?.run(&stop, |_| {})?;
//! for comparison in results.comparisons.iter().filter(|comparison| comparison.primary) {
//!     println!("{}: {}", comparison.variant, comparison.effect.verdict);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | what | item |
//! |---|---|
//! | `proc/interrupts`, idle states, energy zones along the time line | [`Sample`] |
//! | `sys/devices/system/cpu/cpuidle/current_governor`, `stateN/disable`, `irqbalance` | [`Factor`] |
//! | `proc/cpuinfo`, `proc/cmdline`, `proc/sys/kernel/osrelease` and what else describes the machine | [`Machine`] |
//!
//! Privilege: the machine as it is found needs none. Each factor needs what its file asks
//! for; [`Host::check`] says beforehand what is not allowed.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("experiment changes and measures Linux: it works on Linux only");

mod analysis;
mod error;
mod factor;
mod host;
mod instruments;
mod machine;
mod plan;
mod results;
mod runner;
mod sample;
pub mod statistics;
mod variant;

pub use analysis::{Analysis, analyse};
pub use error::{Error, LeftOut};
pub use factor::{FACTORS, Factor, ParseFactorError};
pub use host::{Applied, Host};
pub use machine::Machine;
pub use plan::{Plan, RingPlan, Slot, Until};
pub use results::{
    Comparison, CpuRate, Ending, IdleSummary, Metric, Results, RingRun, RingSummary, Run, SCHEMA,
    VariantSummary,
};
pub use runner::{Experiment, Progress, loops_for};
pub use sample::{CpuCount, IdleSample, Sample};
pub use variant::{ParseVariantError, Variant};
