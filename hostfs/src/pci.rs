//! PCI devices as sysfs describes them: what each is, what drives it, which interrupts the
//! kernel gave it, and what hangs below it.
//!
//! ```
//! use hostfs::{HostFs, pci};
//!
//! for device in pci::devices(&HostFs::live())? {
//!     let driver = device.driver.as_deref().unwrap_or("no driver");
//!     println!("{} {driver} {:?}", device.address, device.msi_irqs);
//! }
//! # Ok::<(), hostfs::Error>(())
//! ```
//!
//! | kernel file | item |
//! |---|---|
//! | `/sys/bus/pci/devices/` | [`devices`] |
//! | `…/DDDD:BB:DD.F` | [`PciAddress`] |
//! | `…/{vendor,device,class,irq,msi_bus,power_state,numa_node,local_cpulist}`, `…/driver` | fields of [`PciDevice`] |
//! | `…/msi_irqs/N` | [`MsiIrq`] |
//! | `…/virtioN/driver` | [`VirtioChild`] |
//! | `…/config` | [`ConfigSpace`] |
//! | `/sys/class/net`, `/sys/block` | [`PciDevice::net`], [`PciDevice::block`] |
//!
//! The files are those of `drivers/pci/pci-sysfs.c` and, for `msi_irqs`, of
//! `kernel/irq/msi.c` (`drivers/pci/msi.c` before Linux 5.17).

mod address;
mod config_space;

pub use address::{ParsePciAddressError, PciAddress};
pub use config_space::ConfigSpace;

use address::hexadecimal;

use crate::{CpuSet, Error, HostFs, Result};

/// The PCI devices by address, each a link to its directory.
const DEVICES: &str = "sys/bus/pci/devices";

/// One PCI function.
///
/// A field is `None` where the file is absent, as on older kernels, or could not be read:
/// then [`unreadable`](Self::unreadable) says why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PciDevice {
    /// Where it sits.
    pub address: PciAddress,
    /// The vendor's number, e.g. `0x1af4`.
    pub vendor: Option<u16>,
    /// The vendor's number for the device.
    pub device: Option<u16>,
    /// Base class, subclass and programming interface in 24 bits, e.g. `0x020000` for an
    /// Ethernet controller.
    pub class: Option<u32>,
    /// The driver that is bound to it.
    pub driver: Option<String>,
    /// The Linux number of its INTx interrupt, which the file shows while MSI is in use too;
    /// on some kernels it is the first MSI vector then. `None` also for 0 and 255, which
    /// mean that there is none.
    pub irq: Option<u32>,
    /// Its message-signalled interrupts, ascending. `None` where the kernel shows no such
    /// directory: none were allocated. An empty directory proves nothing: under Xen it can
    /// be empty while MSI is in use.
    pub msi_irqs: Option<Vec<MsiIrq>>,
    /// False where MSI is forbidden to the device or, for a bridge, to all below it. It does
    /// not show `pci=nomsi`.
    pub msi_bus: Option<bool>,
    /// What the kernel last knew: `D0`, `D1`, `D2`, `D3hot`, `D3cold`, `unknown`, `error`.
    pub power_state: Option<String>,
    /// The NUMA node that it is next to; `None` also for -1, which means none.
    pub numa_node: Option<u32>,
    /// The CPUs next to it.
    pub local_cpus: Option<CpuSet>,
    /// The virtio device that it carries. Its interrupts are this device's.
    pub virtio: Option<VirtioChild>,
    /// The network interfaces below it that this process's network namespace shows.
    pub net: Vec<String>,
    /// The block devices below it, through any bus between (NVMe, SCSI, ATA, USB).
    pub block: Vec<String>,
    /// For each file that is there and could not be read or understood, a message that names
    /// it and the kernel's answer.
    pub unreadable: Vec<String>,
}

impl PciDevice {
    /// True in `D3hot` and `D3cold`: to read its [`ConfigSpace`] then can wake it, or the
    /// bridge above it (`pci_config_pm_runtime_get` in `drivers/pci/pci.c`).
    pub fn is_asleep(&self) -> bool {
        matches!(self.power_state.as_deref(), Some("D3hot" | "D3cold"))
    }
}

/// One message-signalled interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MsiIrq {
    /// Its Linux number, as in `/proc/interrupts`.
    pub irq: u32,
    /// Its kind; `None` where the file could not be read.
    pub kind: Option<MsiKind>,
}

/// The two kinds of message-signalled interrupts, by the kernel's names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum MsiKind {
    /// `msi`: up to 32 vectors, described in the configuration space.
    Msi,
    /// `msix`: up to 2048 vectors, in a table in the device's memory.
    Msix,
}

/// A virtio device below its PCI device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct VirtioChild {
    /// Its name on the virtio bus, e.g. `virtio3`.
    pub name: String,
    /// Its driver, e.g. `virtio_net`; the PCI device's own is `virtio-pci`.
    pub driver: Option<String>,
}

/// Every PCI device, in the order of addresses.
///
/// A machine without PCI bus (a virtual machine whose devices are all virtio-mmio, or a
/// kernel without PCI) has no devices: that is an empty list, and no error, as long as
/// there is a `sys/bus` that could have shown them. A device that vanishes meanwhile is left
/// out; one that has a broken file is kept, and says so in
/// [`unreadable`](PciDevice::unreadable). No configuration space is read.
///
/// # Errors
///
/// [`Error::NotFound`] where there is no sysfs below the root, and what the kernel answered
/// where the bus can't be listed.
pub fn devices(fs: &HostFs) -> Result<Vec<PciDevice>> {
    let names = match fs.list(DEVICES) {
        Err(Error::NotFound { .. }) if fs.exists("sys/bus") => return Ok(Vec::new()),
        answer => answer?,
    };
    let net = below_pci(fs, "sys/class/net");
    let block = below_pci(fs, "sys/block");
    let mut devices: Vec<PciDevice> = names
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter_map(|address| read_device(fs, address, &net, &block))
        .collect();
    devices.sort_by_key(|device| device.address);
    Ok(devices)
}

/// `None` if the device is gone.
fn read_device(
    fs: &HostFs,
    address: PciAddress,
    net: &[(PciAddress, String)],
    block: &[(PciAddress, String)],
) -> Option<PciDevice> {
    let mut dir = DeviceDir {
        fs,
        path: format!("{DEVICES}/{address}"),
        unreadable: Vec::new(),
    };
    let mut device = PciDevice {
        address,
        vendor: dir.hexadecimal("vendor"),
        device: dir.hexadecimal("device"),
        class: dir.hexadecimal("class"),
        driver: dir.link_name("driver"),
        irq: dir.value("irq").filter(|irq| !matches!(irq, 0 | 255)),
        msi_irqs: dir.msi_irqs(),
        msi_bus: dir.value("msi_bus").map(|allowed: u8| allowed != 0),
        power_state: dir.text("power_state"),
        numa_node: dir.value("numa_node").and_then(|n: i32| n.try_into().ok()),
        local_cpus: dir.value("local_cpulist"),
        virtio: dir.virtio(),
        net: names_below(net, address),
        block: names_below(block, address),
        unreadable: Vec::new(),
    };
    device.unreadable = dir.unreadable;
    // Asked last: what vanished while it was read looks like a device of absent files.
    fs.exists(&dir.path).then_some(device)
}

/// One device's directory, read file by file; what is broken is noted and passed over.
struct DeviceDir<'fs> {
    fs: &'fs HostFs,
    path: String,
    unreadable: Vec<String>,
}

impl DeviceDir<'_> {
    fn note<T>(&mut self, answer: Result<T>) -> Option<T> {
        match answer {
            Ok(value) => Some(value),
            Err(Error::NotFound { .. }) => None,
            Err(error) => {
                self.unreadable.push(error.to_string());
                None
            }
        }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let answer = self.fs.read_text(self.path_of(name));
        self.note(answer)
    }

    fn value<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        let answer = self.fs.read(self.path_of(name));
        self.note(answer)
    }

    fn link_name(&mut self, name: &str) -> Option<String> {
        let answer = self.fs.link_name(self.path_of(name));
        self.note(answer).flatten()
    }

    /// A number such as `0x1af4`.
    fn hexadecimal<T: TryFrom<u32>>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        let digits = text.strip_prefix("0x").and_then(hexadecimal);
        let number = digits.and_then(|number| number.try_into().ok());
        let path = self.fs.full_path(self.path_of(name));
        self.note(
            number.ok_or_else(|| {
                Error::malformed(path, "a hexadecimal number such as 0x1af4", &text)
            }),
        )
    }

    fn msi_irqs(&mut self) -> Option<Vec<MsiIrq>> {
        let answer = self.fs.list_numbered(self.path_of("msi_irqs"), "");
        let numbers = self.note(answer)?;
        let irqs = numbers.into_iter().filter_map(|irq| {
            let name = format!("msi_irqs/{irq}");
            let kind = match self.text(&name) {
                Some(text) => self.msi_kind(&name, &text),
                // Given back since the listing.
                None if !self.fs.exists(self.path_of(&name)) => return None,
                None => None,
            };
            Some(MsiIrq { irq, kind })
        });
        Some(irqs.collect())
    }

    fn msi_kind(&mut self, name: &str, text: &str) -> Option<MsiKind> {
        let path = self.fs.full_path(self.path_of(name));
        self.note(match text {
            "msi" => Ok(MsiKind::Msi),
            "msix" => Ok(MsiKind::Msix),
            _ => Err(Error::malformed(path, "msi or msix", text)),
        })
    }

    fn virtio(&mut self) -> Option<VirtioChild> {
        let answer = self.fs.list_numbered(&self.path, "virtio");
        let name = format!("virtio{}", self.note(answer)?.first()?);
        let driver = self.link_name(&format!("{name}/driver"));
        Some(VirtioChild { name, driver })
    }
}

/// The members of a class (as links to their directories) with the PCI device that each is
/// below: the last address on the way to it.
fn below_pci(fs: &HostFs, class: &str) -> Vec<(PciAddress, String)> {
    // A class that can't be listed shows nothing of itself, and the devices are still there.
    let names = fs.list(class).unwrap_or_default();
    let members = names.into_iter().filter_map(|name| {
        let target = fs.read_link(format!("{class}/{name}")).ok()?;
        let parts = target.components().rev();
        let mut addresses = parts.filter_map(|part| part.as_os_str().to_str()?.parse().ok());
        Some((addresses.next()?, name))
    });
    members.collect()
}

fn names_below(members: &[(PciAddress, String)], address: PciAddress) -> Vec<String> {
    let members = members.iter().filter(|(parent, _)| *parent == address);
    members.map(|(_, name)| name.clone()).collect()
}
