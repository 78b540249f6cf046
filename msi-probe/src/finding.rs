//! What a probe met that was not as it should be.

use std::fmt;

/// Something worth knowing that did not stop the probe.
///
/// Offsets are bytes in the configuration space.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Finding {
    /// The configuration space is not visible from here on, so that MSI and MSI-X may be
    /// there though they were not seen.
    Truncated {
        /// The first byte that was needed and not visible.
        at: u8,
    },
    /// The device reads as all ones: it is unplugged, powered off or in reset.
    NoAnswer,
    /// A header that is none of endpoint, bridge and CardBus bridge: where its list of
    /// capabilities begins is unknown, to the kernel too.
    UnknownHeader {
        /// The header's type without the bit for several functions.
        header_type: u8,
    },
    /// The list of capabilities leads back into itself.
    Loop {
        /// The capability that was met again.
        at: u8,
    },
    /// A capability whose id is 0xff, which is what reads where there is nothing.
    BrokenCapability {
        /// The capability.
        at: u8,
    },
    /// A pointer that leads into the header, or is 0xff.
    BadPointer {
        /// The capability that it is in, or the header's own pointer to the list.
        from: u8,
        /// Where it leads.
        to: u8,
    },
    /// An MSI-X capability that goes on past the end of the configuration space.
    Overrun {
        /// The capability.
        at: u8,
    },
    /// The configuration space of a device in D3 was left unread, since reading can wake it.
    Asleep {
        /// The device's power state, `D3hot` or `D3cold`.
        power_state: String,
    },
    /// The configuration space could not be read.
    ConfigUnreadable {
        /// The file, and the kernel's answer.
        error: String,
    },
    /// Another file could not be read or understood.
    FileUnreadable {
        /// The file, and the kernel's answer.
        error: String,
    },
    /// The directory of message-signalled interrupts is there and empty: a setup that
    /// failed, or Xen, where they can be in use all the same.
    EmptyMsiIrqs,
    /// The kernel lists interrupts for a device that does not use them: MSI is off in its
    /// configuration space, or the interrupts now bear another device's name.
    StaleMsiIrqs {
        /// Their Linux numbers.
        irqs: Vec<u32>,
    },
    /// There is no PCI device at all.
    NoPciDevices,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Truncated { at } => write!(
                f,
                "configuration space not visible from {at:#04x} on, so MSI may be there unseen: \
                 read it as root (CAP_SYS_ADMIN)"
            ),
            Finding::NoAnswer => write!(
                f,
                "reads as all ones: the device is unplugged, powered off or in reset"
            ),
            Finding::UnknownHeader { header_type } => write!(
                f,
                "header type {header_type:#04x} is unknown: no list of capabilities to be found"
            ),
            Finding::Loop { at } => {
                write!(f, "the list of capabilities leads back to {at:#04x}")
            }
            Finding::BrokenCapability { at } => {
                write!(
                    f,
                    "the capability at {at:#04x} has the id 0xff: the list is broken"
                )
            }
            Finding::BadPointer { from, to } => write!(
                f,
                "the pointer at {from:#04x} leads to {to:#04x}, where no capability can be"
            ),
            Finding::Overrun { at } => write!(
                f,
                "the MSI-X capability at {at:#04x} goes past the end of the configuration space"
            ),
            Finding::Asleep { power_state } => write!(
                f,
                "in {power_state}: its configuration space was left unread, since that could \
                 wake it"
            ),
            Finding::ConfigUnreadable { error } | Finding::FileUnreadable { error } => {
                f.write_str(error)
            }
            Finding::EmptyMsiIrqs => write!(
                f,
                "msi_irqs is empty: a setup that failed, or Xen, where MSI can be in use all \
                 the same"
            ),
            Finding::StaleMsiIrqs { irqs } => {
                let irqs: Vec<String> = irqs.iter().map(u32::to_string).collect();
                let irqs = irqs.join(", ");
                write!(f, "msi_irqs lists {irqs}, which the device does not use")
            }
            Finding::NoPciDevices => write!(
                f,
                "no PCI devices: a machine without PCI bus (virtio-mmio), a kernel without PCI, \
                 or `pci=off`"
            ),
        }
    }
}
