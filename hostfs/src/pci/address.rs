//! Where a PCI function sits: domain, bus, device, function.

use std::fmt;
use std::str::FromStr;

/// The address of a PCI function as the kernel writes it: `0000:00:05.0`.
///
/// The kernel's format is `%04x:%02x:%02x.%d` (`pci_setup_device` in `drivers/pci/probe.c`).
/// Domains behind Intel's VMD and on Hyper-V can need more than four digits: `10000:00:02.0`.
/// Addresses are ordered by domain, bus, device and function.
///
/// ```
/// use hostfs::pci::PciAddress;
///
/// let address: PciAddress = "10000:00:02.1".parse()?;
/// assert_eq!((address.domain(), address.device(), address.function()), (0x10000, 2, 1));
/// assert_eq!(address.to_string(), "10000:00:02.1");
/// # Ok::<(), hostfs::pci::ParsePciAddressError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct PciAddress {
    // The order of the fields is the order of addresses.
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl PciAddress {
    /// `None` for a device over 31 or a function over 7.
    pub fn new(domain: u32, bus: u8, device: u8, function: u8) -> Option<Self> {
        (device < 32 && function < 8).then_some(Self {
            domain,
            bus,
            device,
            function,
        })
    }

    /// The domain (segment): 0 on most machines.
    pub fn domain(self) -> u32 {
        self.domain
    }

    /// The bus in its domain.
    pub fn bus(self) -> u8 {
        self.bus
    }

    /// The device (slot) on its bus: 0 to 31.
    pub fn device(self) -> u8 {
        self.device
    }

    /// The function of its device: 0 to 7.
    pub fn function(self) -> u8 {
        self.function
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        f.pad(&format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
    }
}

impl FromStr for PciAddress {
    type Err = ParsePciAddressError;

    /// Takes exactly what the kernel prints (and capital digits): a domain of four digits,
    /// or of up to eight without zeros in front; two digits each of bus and device; one of
    /// function.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParsePciAddressError {
            text: text.chars().take(80).collect(),
        })
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let domain_is_printed_so = match domain.len() {
        4 => true,
        5..=8 => !domain.starts_with('0'),
        _ => false,
    };
    if !domain_is_printed_so || (bus.len(), device.len(), function.len()) != (2, 2, 1) {
        return None;
    }
    PciAddress::new(
        hexadecimal(domain)?,
        hexadecimal(bus)?.try_into().ok()?,
        hexadecimal(device)?.try_into().ok()?,
        hexadecimal(function)?.try_into().ok()?,
    )
}

/// Digits only: `from_str_radix` alone would take a sign.
pub(super) fn hexadecimal(digits: &str) -> Option<u32> {
    let only_digits = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok();
    number.filter(|_| only_digits)
}

/// A text that is not the address of a PCI function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a PCI address: {text:?}: expected DOMAIN:BUS:DEVICE.FUNCTION such as 0000:00:05.0")]
pub struct ParsePciAddressError {
    text: String,
}

impl TryFrom<String> for PciAddress {
    type Error = ParsePciAddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_the_kernel_prints_is_read() {
        let parts = |text: &str| {
            let a: PciAddress = text.parse().unwrap();
            (a.domain(), a.bus(), a.device(), a.function())
        };
        assert_eq!(parts("0000:00:05.0"), (0, 0, 5, 0));
        assert_eq!(parts("00a1:ff:1f.7"), (0xa1, 0xff, 31, 7));
        assert_eq!(parts("10000:00:02.0"), (0x10000, 0, 2, 0), "VMD");
        assert_eq!(parts("FFFFFFFF:0A:00.1"), (0xffff_ffff, 10, 0, 1));
    }

    #[test]
    fn what_it_does_not_print_is_refused_with_its_text() {
        for text in [
            "",
            "00:05.0",
            "0:0:0:0",
            "000:00:05.0",
            "00000:00:05.0",
            "100000000:00:05.0",
            "0000:0:05.0",
            "0000:00:5.0",
            "0000:00:05",
            "0000:00:05.8",
            "0000:00:20.0",
            "0000:00:05.00",
            "+000:00:05.0",
            "0000:+1:05.0",
            "0000:00:05.0 ",
            "pci0000:00",
        ] {
            let error = text.parse::<PciAddress>().unwrap_err().to_string();
            let expected = "expected DOMAIN:BUS:DEVICE.FUNCTION such as 0000:00:05.0";
            assert_eq!(error, format!("not a PCI address: {text:?}: {expected}"));
        }
    }

    #[test]
    fn addresses_are_ordered_by_number_not_as_text() {
        let mut addresses: Vec<PciAddress> = [
            "10000:00:00.0",
            "0000:10:00.0",
            "ffff:00:00.0",
            "0000:02:1f.7",
            "0000:02:1f.3",
        ]
        .map(|text| text.parse().unwrap())
        .into();
        addresses.sort();
        let printed: Vec<String> = addresses.iter().map(|a| a.to_string()).collect();
        assert_eq!(
            printed,
            [
                "0000:02:1f.3",
                "0000:02:1f.7",
                "0000:10:00.0",
                "ffff:00:00.0",
                "10000:00:00.0"
            ]
        );
    }

    #[test]
    fn the_address_is_padded_where_a_table_asks_for_it() {
        let address = PciAddress::new(0, 0, 5, 0).unwrap();
        assert_eq!(format!("{address:<14}|"), "0000:00:05.0  |");
        assert_eq!(PciAddress::new(0, 0, 32, 0), None);
        assert_eq!(PciAddress::new(0, 0, 0, 8), None);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn it_is_saved_as_its_text() {
        let address = PciAddress::new(0x10000, 0, 2, 0).unwrap();
        let saved = serde_json::to_string(&address).unwrap();
        assert_eq!(saved, "\"10000:00:02.0\"");
        assert_eq!(serde_json::from_str::<PciAddress>(&saved).unwrap(), address);
        assert!(serde_json::from_str::<PciAddress>("\"00:02.0\"").is_err());
    }

    proptest! {
        #[test]
        fn every_address_comes_back(domain: u32, bus: u8, device in 0u8..32, function in 0u8..8) {
            let address = PciAddress::new(domain, bus, device, function).unwrap();
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_is_answered(text in "[0-9a-f:.+ ]{0,16}") {
            if let Ok(address) = text.parse::<PciAddress>() {
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }
}
