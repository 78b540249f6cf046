//! Does it pay, or is it noise: one rule for every metric.
//!
//! Each block of an experiment runs every variant once, so a block gives one pair of values:
//! the baseline's and the variant's. What is analysed is d = ln(variant/baseline) of each block.
//! Slow drift (heat, a busy neighbour) touches both values of a pair alike and cancels in d, and
//! a ratio means the same for microseconds, joules and megabits.
//!
//! - [`paired`] turns the blocks into an [`Effect`]: the change in percent, its interval, and the
//!   [`Verdict`], which comes from the interval and the [`Rule`]'s margin alone.
//! - [`sign_flip_p`] is printed beside it: the same question asked without assuming any shape of
//!   the noise.
//! - [`detectable_percent`] says what so many blocks can show at all.
//! - [`noise_check`] compares the baseline with its hidden duplicate (A/A), and [`settle`] takes
//!   every claim back where that comparison found a difference that cannot be there.
//! - [`pool_log_mean`] makes one value of several rings.
//!
//! ```
//! use experiment::statistics::{Direction, Rule, Verdict, noise_check, paired, settle};
//!
//! // Microseconds per loop in six blocks: the baseline, and a variant that is about 4 % faster.
//! let blocks = [
//!     (Some(2.95), Some(2.83)),
//!     (Some(2.97), Some(2.86)),
//!     (Some(2.92), Some(2.80)),
//!     (Some(3.02), Some(2.89)),
//!     (Some(2.96), None), // a voided run: its block is left out and counted
//!     (Some(2.94), Some(2.84)),
//! ];
//! let rule = Rule::new(1.0, 1).expect("a margin of 1 %");
//! let mut effect = paired(&blocks, Direction::LowerIsBetter, &rule);
//! assert_eq!(effect.verdict, Verdict::Better);
//! assert_eq!((effect.blocks_used, effect.blocks_missing), (5, 1));
//!
//! // The duplicate of the baseline differs from it by noise only.
//! let duplicate = [(Some(2.95), Some(2.96)), (Some(2.97), Some(2.95)), (Some(2.92), Some(2.93))];
//! let noise = noise_check(&duplicate, &rule);
//! settle([&mut effect], &noise);
//! assert!(noise.passed);
//! assert_eq!(effect.verdict.to_string(), "better");
//! ```

mod noise;
mod paired;
mod power;
#[cfg(test)]
mod properties;
mod sign_flip;
#[cfg(test)]
mod tests;
mod verdict;

pub use noise::{NoiseCheck, noise_check, settle};
pub use paired::{Effect, paired, pool_log_mean};
pub use power::detectable_percent;
pub use sign_flip::sign_flip_p;
pub use verdict::{Direction, Rule, Verdict, Warning};
