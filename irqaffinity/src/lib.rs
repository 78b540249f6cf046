//! Interrupts on Linux: how many there are, which CPU serves them, moving them and putting
//! them back, and irqbalance as a child that leaves nothing behind.
//!
//! ```
//! use irqaffinity::{HostFs, Interrupts, Irq, default_affinity};
//!
//! let fs = HostFs::live();
//! let table = Interrupts::read(&fs)?;
//! for irq in Irq::read_all(&fs)? {
//!     let Some(row) = table.irq(irq.irq) else {
//!         continue;
//!     };
//!     println!("{:4} may go to CPUs {}: {} so far: {}", irq.irq, irq.affinity, row.total(), row.text);
//! }
//! println!("new interrupts may go to CPUs {}", default_affinity(&fs)?);
//! # Ok::<(), irqaffinity::Error>(())
//! ```
//!
//! Moving one for a while (as root):
//!
//! ```no_run
//! use irqaffinity::{HostFs, Restore, set_affinity};
//!
//! let record = Restore::new(&HostFs::live());
//! let guard = set_affinity(&record, 24, &"1".parse()?)?;
//! println!("{}", guard.outcome());
//! // ... measure ...
//! println!("{}", guard.restore());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | kernel file | here |
//! |---|---|
//! | `/proc/interrupts` | [`Interrupts`], [`InterruptsReader`], [`interrupts`] |
//! | `/proc/irq/N/smp_affinity_list` | [`Irq::affinity`], [`Irq::settable`], [`set_affinity`], [`Saved`] |
//! | `/proc/irq/N/effective_affinity_list` | [`Irq::effective`], [`Outcome::effective`] |
//! | `/proc/irq/N/affinity_hint` | [`Irq::hint`] |
//! | `/proc/irq/N/node` | [`Irq::node`] |
//! | `/proc/irq/default_smp_affinity` | [`default_affinity`] |
//! | the `irqbalance` program | [`irqbalance`] |
//!
//! The files' meaning is in `kernel/irq/proc.c` and
//! `Documentation/core-api/irq/irq-affinity.rst` of the kernel. Reading needs no
//! privilege; writing needs root, and in a container a writable `/proc/irq`.
#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("irqaffinity reads Linux's /proc/interrupts and /proc/irq: it is for Linux only");

mod error;
mod irq;
pub mod irqbalance;
mod report;
mod saved;
mod set;
mod way_back;

pub use error::{Error, Result};
pub use hostfs::interrupts::{self, Interrupts, InterruptsReader};
pub use hostfs::{CpuSet, HostFs, Restore};
pub use irq::{Irq, default_affinity};
pub use report::{IrqReport, IrqRestored, Report};
pub use saved::Saved;
pub use set::{AffinityGuard, Outcome, set_affinity};
