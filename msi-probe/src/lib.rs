//! Does this machine use message-signalled interrupts?
//!
//! ```
//! use hostfs::HostFs;
//!
//! let report = msi_probe::probe(&HostFs::live())?;
//! println!("kernel built with MSI: {}", report.kernel.pci_msi);
//! if let Some(option) = &report.kernel.disabled_by {
//!     println!("MSI is forbidden by {option}");
//! }
//! for device in &report.devices {
//!     let driver = device.driver.as_deref().unwrap_or("no driver");
//!     println!("{} {driver}: {}", device.address, device.active);
//!     if let Some(msix) = &device.msix {
//!         println!("    MSI-X: {} of {} vectors", device.irqs.len(), msix.vectors);
//!     }
//!     for finding in &device.findings {
//!         println!("    {finding}");
//!     }
//! }
//! for finding in &report.findings {
//!     println!("{finding}"); // Such as that there is no PCI here at all.
//! }
//! # Ok::<(), msi_probe::Error>(())
//! ```
//!
//! | kernel file | item |
//! |---|---|
//! | `/sys/bus/pci/devices/*/config` | [`config_space`], [`Device::msi`], [`Device::msix`] |
//! | `/sys/bus/pci/devices/*/msi_irqs`, chips in `/proc/interrupts` | [`Device::active`], [`Device::irqs`] |
//! | `/sys/bus/pci/devices/*/irq`, `/sys/kernel/irq/*/actions` | [`Active::Intx`], [`Active::None`] |
//! | `/sys/bus/pci/devices/*/virtio*` | [`Device::virtio`] |
//! | `/proc/cmdline` | [`Kernel::disabled_by`] |
//! | `/boot/config-*`, `/lib/modules/*/config`, `/lib/modules/*/build/.config` | [`Kernel::pci_msi`] |
//!
//! Everything is read below the root of a [`hostfs::HostFs`]. No privilege is needed to learn
//! what is active on a kernel of today; the capabilities themselves are shown to
//! `CAP_SYS_ADMIN` only, and without it `None` means "not visible", which [`Device::config`]
//! tells from "not there".
//!
//! The feature `serde` makes a [`Report`] one that can be saved and read back.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("msi-probe reads Linux's /proc and /sys");

mod active;
pub mod config_space;
mod error;
mod finding;
mod kernel;
mod probe;
mod report;

pub use config_space::{BarOffset, Msi, Msix};
pub use error::{Error, Result};
pub use finding::Finding;
pub use probe::probe;
pub use report::{Active, Config, Device, Evidence, Kernel, PciMsi, Report};
