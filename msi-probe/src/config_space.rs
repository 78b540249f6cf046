//! MSI and MSI-X in a PCI configuration space: a parser that does no I/O and never panics.
//!
//! The layout is that of `include/uapi/linux/pci_regs.h`; the list of capabilities is
//! followed as the kernel follows it (`__pci_find_next_cap_ttl` in `drivers/pci/pci.c`), so
//! that what the kernel doesn't find isn't found here.
//!
//! ```
//! use msi_probe::config_space;
//!
//! // 64 bytes, which is what the kernel shows without privilege.
//! let mut bytes = [0; 64];
//! bytes[0x06] = 0x10; // Status: there is a list of capabilities,
//! bytes[0x34] = 0x98; // which begins where we can't see it.
//! let found = config_space::parse_bytes(&bytes);
//! assert_eq!(found.msix, None);
//! assert!(!found.complete, "so `None` means: not visible");
//! ```

use bitflags::bitflags;

use crate::Finding;

/// `PCI_COMMAND` in the low half and `PCI_STATUS` in the high half.
const COMMAND_AND_STATUS: u8 = 0x04;
/// `PCI_COMMAND_INTX_DISABLE`.
const INTX_DISABLE: u32 = 1 << 10;
/// `PCI_STATUS_CAP_LIST`.
const CAP_LIST: u32 = 1 << (16 + 4);
/// The double word whose third byte is `PCI_HEADER_TYPE`.
const HEADER_TYPE: u8 = 0x0c;
/// `PCI_CAPABILITY_LIST`, of endpoints and bridges.
const CAPABILITY_LIST: u8 = 0x34;
/// `PCI_CB_CAPABILITY_LIST`, of CardBus bridges.
const CARDBUS_CAPABILITY_LIST: u8 = 0x14;
/// `PCI_STD_HEADER_SIZEOF`: no capability lies below it.
const HEADER_BYTES: u8 = 0x40;
/// `PCI_CAP_ID_MSI`.
const MSI: u8 = 0x05;
/// `PCI_CAP_ID_MSIX`.
const MSIX: u8 = 0x11;

bitflags! {
    /// MSI's message control word, `PCI_MSI_FLAGS`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct MsiControl: u16 {
        /// MSI is on (`PCI_MSI_FLAGS_ENABLE`).
        const ENABLE = 0x0001;
        /// The field that tells how many vectors there are: 2 to its power
        /// (`PCI_MSI_FLAGS_QMASK`).
        const QMASK = 0x000e;
        /// The field that tells how many of them are in use: 2 to its power
        /// (`PCI_MSI_FLAGS_QSIZE`).
        const QSIZE = 0x0070;
        /// Messages can go to 64-bit addresses (`PCI_MSI_FLAGS_64BIT`).
        const BITS64 = 0x0080;
        /// Each vector can be masked (`PCI_MSI_FLAGS_MASKBIT`).
        const MASKBIT = 0x0100;
        // The rest is reserved, and kept as it is found.
        const _ = !0;
    }
}

impl MsiControl {
    /// Vectors that the device offers: 1 to 32 (64 and 128 are reserved values).
    pub fn vectors(self) -> u16 {
        1 << ((self & Self::QMASK).bits() >> 1)
    }

    /// Vectors that are in use while MSI is on.
    pub fn vectors_enabled(self) -> u16 {
        1 << ((self & Self::QSIZE).bits() >> 4)
    }
}

bitflags! {
    /// MSI-X's message control word, `PCI_MSIX_FLAGS`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct MsixControl: u16 {
        /// The field that holds the number of vectors less one (`PCI_MSIX_FLAGS_QSIZE`).
        const QSIZE = 0x07ff;
        /// All vectors of the function are masked (`PCI_MSIX_FLAGS_MASKALL`).
        const MASKALL = 0x4000;
        /// MSI-X is on (`PCI_MSIX_FLAGS_ENABLE`).
        const ENABLE = 0x8000;
        // The rest is reserved, and kept as it is found.
        const _ = !0;
    }
}

impl MsixControl {
    /// Vectors that the device offers: 1 to 2048.
    pub fn vectors(self) -> u16 {
        (self & Self::QSIZE).bits() + 1
    }
}

/// What the MSI capability says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Msi {
    /// Where the capability is in the configuration space, in bytes.
    pub cap_offset: u8,
    /// MSI is on.
    pub enabled: bool,
    /// Vectors that the device offers.
    pub vectors: u16,
    /// Vectors that are in use while MSI is on: never 0.
    pub vectors_enabled: u16,
    /// Messages can go to 64-bit addresses.
    pub bits64: bool,
    /// Each vector can be masked.
    pub maskable: bool,
}

impl Msi {
    /// Takes the control word of the capability at `cap_offset` apart.
    pub fn new(cap_offset: u8, control: MsiControl) -> Self {
        Self {
            cap_offset,
            enabled: control.contains(MsiControl::ENABLE),
            vectors: control.vectors(),
            vectors_enabled: control.vectors_enabled(),
            bits64: control.contains(MsiControl::BITS64),
            maskable: control.contains(MsiControl::MASKBIT),
        }
    }
}

/// What the MSI-X capability says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Msix {
    /// Where the capability is in the configuration space, in bytes.
    pub cap_offset: u8,
    /// MSI-X is on.
    pub enabled: bool,
    /// All vectors are masked at once.
    pub masked: bool,
    /// Vectors that the device offers.
    pub vectors: u16,
    /// Where the table of vectors is.
    pub table: BarOffset,
    /// Where the bits of pending vectors are.
    pub pba: BarOffset,
}

impl Msix {
    /// Takes the control word of the capability at `cap_offset` apart, and the registers
    /// `PCI_MSIX_TABLE` and `PCI_MSIX_PBA` behind it.
    pub fn new(cap_offset: u8, control: MsixControl, table: u32, pba: u32) -> Self {
        Self {
            cap_offset,
            enabled: control.contains(MsixControl::ENABLE),
            masked: control.contains(MsixControl::MASKALL),
            vectors: control.vectors(),
            table: BarOffset::new(table),
            pba: BarOffset::new(pba),
        }
    }
}

/// A place in the device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BarOffset {
    /// Which base address register: 0 to 5 (6 and 7 are reserved values).
    pub bar: u8,
    /// Bytes from there on, a multiple of 8.
    pub offset: u32,
}

impl BarOffset {
    fn new(register: u32) -> Self {
        Self {
            bar: (register & 7) as u8,
            offset: register & !7,
        }
    }
}

/// One entry of the list of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// Where it is in the configuration space, in bytes: 0x40 to 0xfc.
    pub offset: u8,
    /// What it is: a `PCI_CAP_ID_…` of `pci_regs.h`.
    pub id: u8,
}

/// What was seen of a configuration space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Capabilities {
    /// False where the space ended, or the device didn't answer, before the list of
    /// capabilities did: what is `None` below is then not visible, and may be there.
    pub complete: bool,
    /// The device may not raise INTx (command register, bit 10); `None` where not visible.
    pub intx_disabled: Option<bool>,
    /// The list, in its own order: at most 48 entries.
    pub list: Vec<Capability>,
    /// The first MSI capability of the list, which is the one that the kernel uses.
    pub msi: Option<Msi>,
    /// The first MSI-X capability of the list, which is the one that the kernel uses.
    pub msix: Option<Msix>,
    /// What is wrong with the list.
    pub findings: Vec<Finding>,
}

/// Reads a configuration space through `dword`, which gives the double word at a byte
/// offset (a multiple of 4), or `None` where it is not visible.
///
/// It is asked for no more than what the answer depends on: command and status; if there is
/// a list of capabilities, the header's type and the list's start, the first double word of
/// each entry, and two more of MSI-X.
pub fn parse(mut dword: impl FnMut(u8) -> Option<u32>) -> Capabilities {
    let mut found = Capabilities::default();
    let end = walk(&mut found, |offset| {
        dword(offset).ok_or(Finding::Truncated { at: offset })
    });
    found.complete = !matches!(end, Err(Finding::Truncated { .. } | Finding::NoAnswer));
    found.findings.extend(end.err());
    found
}

/// As [`parse`], of the first bytes of a configuration space: 64, 128, 256, 4096, or any
/// other number.
pub fn parse_bytes(bytes: &[u8]) -> Capabilities {
    parse(|offset| {
        let dword = bytes.get(usize::from(offset)..)?.first_chunk()?;
        Some(u32::from_le_bytes(*dword))
    })
}

/// Follows the list; the error is what ended it too early.
fn walk(
    found: &mut Capabilities,
    mut dword: impl FnMut(u8) -> Result<u32, Finding>,
) -> Result<(), Finding> {
    let command_and_status = dword(COMMAND_AND_STATUS)?;
    if command_and_status == u32::MAX {
        return Err(Finding::NoAnswer);
    }
    found.intx_disabled = Some(command_and_status & INTX_DISABLE != 0);
    if command_and_status & CAP_LIST == 0 {
        return Ok(());
    }
    // The top bit says that the device has several functions.
    let header_type = (dword(HEADER_TYPE)? >> 16) as u8 & 0x7f;
    let start = match header_type {
        0 | 1 => CAPABILITY_LIST,
        2 => CARDBUS_CAPABILITY_LIST,
        _ => return Err(Finding::UnknownHeader { header_type }),
    };
    let mut next = follow(start, dword(start)? as u8)?;
    // Entries lie on multiples of 4 from 0x40 to 0xfc and none is visited twice, so this
    // ends after 48 at most.
    while let Some(offset) = next {
        if found.list.iter().any(|seen| seen.offset == offset) {
            return Err(Finding::Loop { at: offset });
        }
        let entry = dword(offset)?;
        let (id, pointer, control) = (entry as u8, (entry >> 8) as u8, (entry >> 16) as u16);
        if id == 0xff {
            return Err(Finding::BrokenCapability { at: offset });
        }
        found.list.push(Capability { offset, id });
        if id == MSI && found.msi.is_none() {
            found.msi = Some(Msi::new(offset, MsiControl::from_bits_retain(control)));
        }
        if id == MSIX && found.msix.is_none() {
            match (offset.checked_add(4), offset.checked_add(8)) {
                (Some(table), Some(pba)) => {
                    let control = MsixControl::from_bits_retain(control);
                    found.msix = Some(Msix::new(offset, control, dword(table)?, dword(pba)?));
                }
                _ => found.findings.push(Finding::Overrun { at: offset }),
            }
        }
        next = follow(offset, pointer)?;
    }
    Ok(())
}

/// Where the pointer at `from` leads; `None` at the list's end.
fn follow(from: u8, pointer: u8) -> Result<Option<u8>, Finding> {
    // The low two bits are reserved: they are to be masked.
    match pointer & !3 {
        0 => Ok(None),
        _ if pointer == 0xff => Err(Finding::BadPointer { from, to: pointer }),
        to if to < HEADER_BYTES => Err(Finding::BadPointer { from, to }),
        to => Ok(Some(to)),
    }
}
