//! The machine as Linux's `/proc` and `/sys` describe it.
//!
//! This is the ground floor of the wakecost libraries: what more than one of them reads,
//! read once and rightly. It describes and judges nothing.
//!
//! ```
//! use hostfs::{HostFs, Topology};
//!
//! // `HostFs::at(dir)` is a captured tree, or a host's root mounted in a container.
//! let fs = HostFs::live();
//! let topology = Topology::read(&fs)?;
//! println!("Linux {}, CPUs {}", fs.kernel_release()?, topology.online);
//! for cpu in topology.online_cpus() {
//!     println!("CPU {} shares its core with CPUs {}", cpu.cpu, cpu.siblings);
//! }
//! # Ok::<(), hostfs::Error>(())
//! ```
//!
//! | kernel file | item of this crate |
//! |---|---|
//! | any file below a root, read or written | [`HostFs`] |
//! | one file, read again and again | [`Attribute`] |
//! | lists and masks of CPUs (`online`, `smp_affinity`) | [`CpuSet`] |
//! | `sys/devices/system/cpu`, `sys/devices/system/node` | [`Topology`] |
//! | `proc/interrupts` | [`interrupts`] |
//! | `sys/bus/pci/devices` | [`pci`] |
//! | `sys/bus/event_source/devices`, `perf_event_open(2)` | [`pmu`] |
//! | `dev/cpu/N/msr` | [`Msr`] |
//! | `proc/<pid>/stat` | [`Process`] |
//! | `proc/cpuinfo`, `proc/cmdline` | [`CpuInfo`], [`CommandLine`] |
//! | what a file held before a change | [`Restore`] |
//! | `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME` beside a reading | [`Stamp`] |
//!
//! Features: `serde` (result types), `journal` ([`Restore`] in a file, for the case that the
//! process is killed).
#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("hostfs describes Linux by its /proc and /sys: it works on Linux only");

mod attribute;
mod command_line;
mod cpu_info;
mod cpu_set;
mod error;
mod host_fs;
pub mod interrupts;
mod msr;
mod numeric_order;
pub mod pci;
pub mod pmu;
mod process;
mod restore;
mod sampler;
mod stamp;
#[cfg(test)]
mod test_tree;
mod topology;
pub use attribute::Attribute;
pub use command_line::CommandLine;
pub use cpu_info::CpuInfo;
pub use cpu_set::{CpuSet, Iter as CpuSetIter, ParseCpuSetError};
pub use error::{Error, OsError, Result};
pub use host_fs::HostFs;
pub use msr::Msr;
pub use process::Process;
#[cfg(feature = "journal")]
pub use restore::Replayed;
pub use restore::{Change, Entry, Restore, Restored, Trouble};
pub use sampler::Sampler;
pub use stamp::{Elapsed, Stamp, Stamps};
pub use topology::{Cache, CpuTopology, Topology};
