//! Rings of pinned threads that pass a token: the yardstick for the cost of a wakeup.
//!
//! Each ring has two or more *stops*, each of them a thread pinned to one CPU. A stop waits
//! for the token, does some work and passes it to the next stop: a *hop*. Once round is a
//! *loop*. Any number of rings run side by side, each with its own result.
//!
//! ```
//! use pingpong::{Limit, Rings, TransportKind};
//!
//! # fn main() -> Result<(), pingpong::Error> {
//! // Two stops on one CPU: each hop is a context switch.
//! let cpu = pingpong::allowed_cpus()?.min().unwrap_or(0);
//! let rings = Rings::builder()
//!     .ring([cpu, cpu])
//!     .transport(TransportKind::Pipe)
//!     .limit(Limit::Loops(1000))
//!     .build()?;
//! for ring in rings.run()? {
//!     assert_eq!(ring.loops, 1000);
//!     if let Some(us) = ring.us_per_loop() {
//!         println!("{us:.3} usecs/loop.");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | kernel file | item of this crate |
//! |---|---|
//! | `fs/pipe.c` | [`TransportKind::Pipe`] |
//! | `kernel/futex/waitwake.c` | [`TransportKind::Futex`] |
//! | – (memory only) | [`TransportKind::Spin`] |
//! | `kernel/sched/syscalls.c`: `sched_setaffinity`, `sched_getaffinity` | [`RingsBuilder::ring`], [`allowed_cpus`], [`usable_cpus`], [`Error::Pin`], [`Error::PinIgnored`] |
//! | `kernel/sched/core.c`: `select_fallback_rq` | [`Error::LostCpu`] |
//! | `/sys/devices/system/cpu/possible` | [`Error::NoSuchCpu`] |
//! | `/sys/devices/system/cpu/online` | [`Error::CpuOffline`] |
//! | `kernel/cgroup/cpuset.c` | [`Error::CpuOutsideCpuset`] |
//! | `kernel/time/timekeeping.c`: CLOCK_MONOTONIC | [`RingResult::elapsed`] |
//!
//! # What is measured
//!
//! The first stop of a ring takes a stamp before its first and after its last loop, both on
//! its own CPU. Between them a stop makes no call but its transport's: over pipes exactly one
//! `read` and one `write`. The end of a run needs none either: whether by loops, by time or by
//! a [`Stopper`], the first stop sees it in memory and then sends round a token that says
//! stop. [`RingsBuilder::work`] of more than 65,536 units is cut short at the end; a loop in
//! which that may have happened isn't counted.
//!
//! No privilege is needed. Nothing of the process is changed: not the caller's affinity, no
//! signal handler, no limit.

#[cfg(not(target_os = "linux"))]
compile_error!("pingpong measures Linux's wakeups, with futexes and affinity masks: Linux only");

mod board;
mod cpus;
mod error;
mod limit;
mod result;
mod rings;
mod run;
mod stop;
mod sys;
mod transport;
mod work;

pub use cpus::{allowed_cpus, usable_cpus};
pub use error::Error;
pub use limit::{Limit, Stopper};
pub use result::{RingResult, StopResult};
pub use rings::{Rings, RingsBuilder};
pub use transport::TransportKind;
pub use work::work_unit_ns;
