//! What every CPU's idle states did on Linux, and control over them that puts itself back.
//!
//! ```
//! use cpuidle::CpuIdle;
//! use hostfs::HostFs;
//!
//! let idle = match CpuIdle::open(&HostFs::live()) {
//!     Ok(idle) => idle,
//!     // Says which case it is and what would help.
//!     Err(why) => {
//!         println!("{why}");
//!         return Ok(());
//!     }
//! };
//! let mut reader = idle.snapshotter()?;
//! let before = reader.snapshot();
//! std::thread::sleep(std::time::Duration::from_millis(100));
//! let delta = reader.snapshot().since(&before);
//! for state in delta.sum() {
//!     match &state.counts {
//!         Some(counts) => println!("{}: {} entries, {} µs", state.name, counts.entries, counts.time_us),
//!         None => println!("{}: no CPU has a figure", state.name),
//!     }
//! }
//! # Ok::<(), cpuidle::Error>(())
//! ```
//!
//! | kernel file below `/sys/devices/system/cpu` | item of this crate |
//! |---|---|
//! | `cpuidle/current_driver` | [`CpuIdle::driver`] |
//! | `cpuidle/current_governor`, `current_governor_ro` | [`CpuIdle::governor`], [`CpuIdle::set_governor`] |
//! | `cpuidle/available_governors` | [`CpuIdle::available_governors`] |
//! | `cpuN/cpuidle/stateM/name`, `desc` | [`State::name`], [`State::desc`] |
//! | `.../latency`, `residency` | [`State::latency_us`], [`State::residency_us`] |
//! | `.../default_status` | [`State::enabled_by_default`] |
//! | `.../disable` | [`State::disabled`], [`CpuIdle::disable_state`] |
//! | `.../usage` | [`Counters::usage`], [`Counts::entries`] |
//! | `.../time` | [`Counters::time_us`], [`Counts::time_us`] |
//! | `.../above` | [`Counters::above`], [`Counts::too_deep`] |
//! | `.../below` | [`Counters::below`], [`Counts::too_shallow`] |
//! | `.../rejected` | [`Counters::rejected`], [`Counts::rejected`] |
//! | `online` | which CPUs are read: [`CpuIdle::online`] |
//!
//! The meaning of the files is in `drivers/cpuidle/sysfs.c` and `cpuidle.c`.
//!
//! # What a number means
//!
//! A state's time is what the governor asked for, not what the hardware did, and it is
//! counted when the CPU *leaves* the state. In an interval a state may therefore have no
//! time although the CPU was in it throughout, or more time than the interval is long:
//! shares over 100 % are real and are not clamped. Counters that a kernel lacks are `None`.
//!
//! # Privilege
//!
//! Reading needs none. Disabling a state needs `CAP_SYS_ADMIN`, and selecting a governor
//! needs root.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("cpuidle reads Linux's /sys/devices/system/cpu: it works on Linux only");

mod absent;
mod control;
mod delta;
mod error;
mod idle;
mod snapshot;
mod snapshotter;
mod sum;

pub use absent::Absent;
pub use control::StateSelection;
pub use delta::{Counts, CpuDelta, Delta, Outcome, StateDelta};
pub use error::{Error, Fault};
pub use idle::{Cpu, CpuIdle, State};
pub use snapshot::{Counters, CpuSnapshot, Snapshot, StateSnapshot};
pub use snapshotter::Snapshotter;
pub use sum::StateSum;
