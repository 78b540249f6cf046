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
//! | kernel file below `/sys/class/powercap` | item of this crate |
//! |---|---|
//! | `intel-rapl:*`, `intel-rapl-mmio:*`, nested ones too | [`Domain`]; [`Skipped`] where it can't be read |
//! | `<zone>/name` | [`Domain::kind`], [`Domain::package`], [`Domain::die`], part of [`Domain::id`] |
//! | `<zone>/energy_uj` | [`DomainReading::energy_uj`] |
//! | `<zone>/max_energy_range_uj` | [`Domain::max_energy_range_uj`], [`Modulus`] |
//!
//! The counters are those of `drivers/powercap/intel_rapl_common.c`, which serves Intel's
//! (MSR, MMIO, TPMI) and AMD's processors.
//!
//! # What a number means
//!
//! Energy is taken from two readings of a counter that wraps. It is worked out in whole
//! nanojoules with the modulus of that very zone, and becomes a float at the end only. What
//! can't be known is said and not guessed: see [`Outcome`]. [`Energy::total`] adds packages
//! and dram, each once, and only if all of them have a value.
//!
//! # Privilege
//!
//! `energy_uj` is readable by root alone since Linux 5.10, because fine-grained energy
//! leaks secrets (CVE-2020-8694). `CAP_DAC_READ_SEARCH` is enough; this crate loosens no
//! permission.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("rapl reads Linux's /sys/class/powercap: it works on Linux only");

mod discover;
mod domain;
mod energy;
mod error;
mod meter;
mod modulus;
mod outcome;
mod reading;
mod units;
mod zone;

pub use domain::{Domain, Kind, Skipped};
pub use energy::{DomainEnergy, Energy, Incomplete, Missing};
pub use error::{Error, Fault};
pub use meter::{Meter, Options};
pub use modulus::Modulus;
pub use outcome::{Outcome, Wrap};
pub use reading::{DomainReading, Reading};
pub use units::{Joules, Watts};
