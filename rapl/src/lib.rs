//! RAPL energy counters on Linux, without a wrong joule.
//!
//! ```
//! use hostfs::HostFs;
//! use rapl::Meter;
//!
//! let mut meter = match Meter::open(&HostFs::live()) {
//!     Ok(meter) => meter,
//!     // Says which case it is and what would help.
//!     Err(why) => return println!("{why}"),
//! };
//! let before = meter.read();
//! std::thread::sleep(std::time::Duration::from_millis(100));
//! let energy = meter.read().since(&before);
//! for domain in &energy.domains {
//!     println!("{}: {}", domain.domain.id, domain.outcome);
//! }
//! match energy.total() {
//!     Ok(joules) => println!("packages and dram: {joules}"),
//!     Err(incomplete) => println!("{incomplete}"),
//! }
//! ```
//!
//! | kernel file | item of this crate |
//! |---|---|
//! | `sys/class/powercap/`: `intel-rapl:*`, `intel-rapl-mmio:*`, nested ones too | [`Domain`]; [`Skipped`] where it can't be read |
//! | `<zone>/name` | [`Domain::kind`], [`Domain::package`], [`Domain::die`], part of [`Domain::id`] |
//! | `<zone>/energy_uj` | [`DomainReading::count`] |
//! | `<zone>/max_energy_range_uj` | [`Domain::max_energy_range_uj`], [`Modulus`] |
//! | `<zone>/enabled`, `<zone>/constraint_N_*` | [`Domain::limits`] |
//! | `sys/bus/event_source/devices/power`, `power_core` | a [`Domain`] for each event and package, die or core |
//! | `dev/cpu/N/msr`: 606, 611, 619, 639, 641, 64D; C0010299 to C001029B | a [`Domain`] for each register and package, die or core; [`Model`] |
//!
//! The counters are those of Intel's and AMD's processors, by three doors:
//! `drivers/powercap/intel_rapl_common.c` (MSR, MMIO, TPMI), `arch/x86/events/rapl.c` and
//! `arch/x86/kernel/msr.c`. Of each domain the best [`Backend`] that can be read is taken;
//! [`Options::backend`] forces one, and [`CrossCheck`] compares two.
//!
//! Where nothing can be read, [`diagnose`] lists what was found and what would help.
//!
//! # What a number means
//!
//! Energy is taken from two readings of a counter. They are subtracted as whole steps with
//! the modulus of that very counter, and become a float at the end only. What can't be
//! known is said and not guessed: see [`Outcome`]. [`Energy::total`] adds packages and dram,
//! each once, and only if all of them have a value.
//!
//! # Privilege and security
//!
//! Fine-grained energy leaks secrets: who may read it often can tell what other programs
//! compute, up to their keys (CVE-2020-8694, "PLATYPUS"). That is why `energy_uj` is for
//! root alone since Linux 5.10 (`CAP_DAC_READ_SEARCH` is enough), why perf asks for
//! `CAP_PERFMON` or a `perf_event_paranoid` of 0 or less, and registers for
//! `CAP_SYS_RAWIO`. This crate loosens no permission and never tells a user to. A program
//! that reads with privilege and hands figures on to readers without it must not undo that:
//! [`Coarse`] changes its figures once a second at most.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("rapl reads Linux's /sys/class/powercap: it works on Linux only");

mod backend;
mod candidate;
mod coarse;
mod cross_check;
mod diagnosis;
mod discover;
mod domain;
mod energy;
mod error;
mod limits;
mod meter;
mod models;
mod modulus;
mod msr;
mod options;
mod outcome;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod parsers;
mod perf;
mod place;
mod powercap;
mod reading;
mod sampler;
mod series;
mod source;
mod units;
mod zone;

pub use backend::Backend;
pub use coarse::Coarse;
pub use cross_check::{Compared, CrossCheck};
pub use diagnosis::{BackendDiagnosis, BackendState, Diagnosis, diagnose};
pub use domain::{Domain, Kind, Skipped};
pub use energy::{DomainEnergy, Energy, Incomplete, Missing};
pub use error::{Error, Fault};
pub use limits::{Constraint, Limits};
pub use meter::Meter;
pub use models::{Model, Registers, UnitForm};
pub use modulus::Modulus;
pub use options::Options;
pub use outcome::{Outcome, Wrap};
pub use reading::{DomainReading, Reading};
pub use sampler::Sampler;
pub use series::{Gap, Sample, Series, Total};
pub use units::{Joules, Watts};
