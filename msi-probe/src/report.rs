//! What a probe found, for the kernel and for each device.

use std::fmt;

use hostfs::pci::{PciAddress, VirtioChild};

use crate::{Finding, Msi, Msix};

/// The answer of [`probe`](crate::probe()).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// Whether the kernel can use MSI.
    pub kernel: Kernel,
    /// Every PCI device, in the order of addresses.
    pub devices: Vec<Device>,
    /// What concerns the whole machine.
    pub findings: Vec<Finding>,
}

/// Whether the kernel can use MSI.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Kernel {
    /// Its release; `None` where `proc/sys/kernel/osrelease` can't be read.
    pub release: Option<String>,
    /// Whether it was built with `CONFIG_PCI_MSI`.
    pub pci_msi: PciMsi,
    /// What `pci_msi` is known from: the configuration's path below the root, or the device
    /// that uses MSI, e.g. `MSI in use by 0000:00:05.0`.
    pub source: Option<String>,
    /// The option of its command line that forbids MSI: `pci=nomsi`. There are other
    /// reasons for MSI to be off, which this does not look for.
    pub disabled_by: Option<String>,
}

/// Whether the kernel was built with `CONFIG_PCI_MSI`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum PciMsi {
    /// With it.
    Yes,
    /// Without it.
    No,
    /// No plain configuration file tells, and no device uses MSI. `/proc/config.gz` is
    /// compressed and not looked into.
    Unknown,
}

/// One PCI device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Device {
    /// Where it sits.
    pub address: PciAddress,
    /// The driver that is bound to it.
    pub driver: Option<String>,
    /// The virtio device that it carries, whose interrupts are this device's.
    pub virtio: Option<VirtioChild>,
    /// How much of its configuration space was seen.
    pub config: Config,
    /// Its MSI capability. `None` means that there is none only if `config` is
    /// [`Config::Full`]; otherwise it was not visible.
    pub msi: Option<Msi>,
    /// Its MSI-X capability; `None` as for `msi`.
    pub msix: Option<Msix>,
    /// How it signals interrupts now.
    pub active: Active,
    /// What `active` rests on, the weightiest first.
    pub evidence: Vec<Evidence>,
    /// The Linux numbers of the interrupts that it uses, ascending.
    pub irqs: Vec<u32>,
    /// What was not as it should be.
    pub findings: Vec<Finding>,
}

/// How much of a configuration space was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Config {
    /// The whole list of capabilities, or that there is none: what was not found is not
    /// there. That needs no privilege for a device without such a list.
    Full,
    /// The list goes on where it is not visible.
    Truncated,
    /// Nothing.
    Unread,
}

/// How a device signals interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Active {
    /// By MSI-X.
    Msix,
    /// By MSI.
    Msi,
    /// By the interrupt line that PCI has always had.
    Intx,
    /// Not at all.
    None,
    /// What can be seen does not tell.
    Unknown,
}

/// What the answer to "how does it signal interrupts" rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Evidence {
    /// The enable bits of MSI and MSI-X in the configuration space.
    ConfigSpace,
    /// The device's `msi_irqs`, or that it has none.
    MsiIrqs,
    /// A chip in `/proc/interrupts` that bears the device's address.
    ChipName,
    /// The bit in the command register that forbids INTx.
    IntxDisable,
    /// Whether a driver has asked for the interrupt of its line.
    Handler,
    /// No driver is bound, so nobody has asked for interrupts.
    NoDriver,
    /// It has no interrupt line, or none that is connected (`irq` 0 or 255).
    NoIrq,
}

impl fmt::Display for PciMsi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PciMsi::Yes => "yes",
            PciMsi::No => "no",
            PciMsi::Unknown => "unknown",
        })
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Config::Full => "full",
            Config::Truncated => "truncated",
            Config::Unread => "unread",
        })
    }
}

impl fmt::Display for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Active::Msix => "msix",
            Active::Msi => "msi",
            Active::Intx => "intx",
            Active::None => "none",
            Active::Unknown => "unknown",
        })
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Evidence::ConfigSpace => "configuration space",
            Evidence::MsiIrqs => "msi_irqs",
            Evidence::ChipName => "chip name in /proc/interrupts",
            Evidence::IntxDisable => "INTx-disable bit",
            Evidence::Handler => "handler of the interrupt line",
            Evidence::NoDriver => "no driver",
            Evidence::NoIrq => "no interrupt line",
        })
    }
}
