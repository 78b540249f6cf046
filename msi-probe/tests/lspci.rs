//! The same answers as `lspci -vv` (package pciutils): for each device of this machine, and
//! for dumps in the form of `lspci -xxx`.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use common::Space;
use hostfs::HostFs;
use hostfs::pci::{ConfigSpace, PciAddress};
use msi_probe::config_space::{self, Capabilities};
use msi_probe::{BarOffset, Finding, Msi, Msix};

/// What `lspci -vv` says of a device's MSI and MSI-X, in its own words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    /// `[cap] Enable Count=enabled/vectors Maskable 64bit`.
    msi: Option<(u8, bool, u16, u16, bool, bool)>,
    /// `[cap] Enable Count Masked`.
    msix: Option<(u8, bool, u16, bool)>,
    /// BAR and offset of the table and of the PBA.
    memory: Option<[(u8, u32); 2]>,
}

impl Said {
    fn by_us(msi: Option<Msi>, msix: Option<Msix>) -> Self {
        let place = |place: BarOffset| (place.bar, place.offset);
        Self {
            msi: msi.map(|m| {
                (
                    m.cap_offset,
                    m.enabled,
                    m.vectors_enabled,
                    m.vectors,
                    m.maskable,
                    m.bits64,
                )
            }),
            msix: msix.map(|m| (m.cap_offset, m.enabled, m.vectors, m.masked)),
            memory: msix.map(|m| [place(m.table), place(m.pba)]),
        }
    }
}

/// Runs `lspci -D -vv` with more arguments; `None` where it is not installed, which is a
/// failure in CI.
fn lspci(arguments: &[&str]) -> Option<BTreeMap<PciAddress, Said>> {
    let mut command = Command::new("lspci");
    command
        .args(["-D", "-vv"])
        .args(arguments)
        .env("LC_ALL", "C");
    let output = match command.stderr(Stdio::piped()).output() {
        Ok(output) => output,
        Err(error) => {
            let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!in_ci, "lspci can't be run ({error}): install pciutils");
            println!("not compared: lspci can't be run ({error}); it is in the package pciutils");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    Some(said.split("\n\n").filter_map(device).collect())
}

/// One paragraph of its output.
fn device(paragraph: &str) -> Option<(PciAddress, Said)> {
    let address = paragraph.trim_start().split(' ').next()?.parse().ok()?;
    let mut said = Said::default();
    let mut in_first_msix = false;
    let mut places = Vec::new();
    for line in paragraph.lines().map(str::trim) {
        if let Some(capability) = line.strip_prefix("Capabilities: [") {
            let (cap, rest) = capability.split_once("] ")?;
            // Longer ones are of the extended space.
            let cap = u8::from_str_radix(cap, 16).ok();
            in_first_msix = false;
            if let Some(fields) = rest.strip_prefix("MSI: ").filter(|_| said.msi.is_none()) {
                let (enabled, vectors) = value(fields, "Count=").split_once('/')?;
                said.msi = Some((
                    cap?,
                    flag(fields, "Enable"),
                    enabled.parse().ok()?,
                    vectors.parse().ok()?,
                    flag(fields, "Maskable"),
                    flag(fields, "64bit"),
                ));
            }
            if let Some(fields) = rest.strip_prefix("MSI-X: ").filter(|_| said.msix.is_none()) {
                let count = value(fields, "Count=").parse().ok()?;
                let flags = (flag(fields, "Enable"), flag(fields, "Masked"));
                said.msix = Some((cap?, flags.0, count, flags.1));
                in_first_msix = true;
            }
        }
        let is_place = line.starts_with("Vector table: ") || line.starts_with("PBA: ");
        if in_first_msix && is_place {
            let bar = value(line, "BAR=").parse().ok()?;
            places.push((bar, u32::from_str_radix(value(line, "offset="), 16).ok()?));
        }
    }
    said.memory = places.try_into().ok();
    Some((address, said))
}

/// The word behind `name`.
fn value<'a>(fields: &'a str, name: &str) -> &'a str {
    let mut words = fields.split(' ');
    words.find_map(|word| word.strip_prefix(name)).unwrap()
}

/// `Enable+` or `Enable-`.
fn flag(fields: &str, name: &str) -> bool {
    match value(fields, name) {
        "+" => true,
        "-" => false,
        other => panic!("{name}{other}"),
    }
}

/// What lspci says of spaces that it reads from a file with a dump of them all.
fn of_dumps(spaces: &[&[u8]]) -> Option<Vec<Said>> {
    let mut dump = tempfile::NamedTempFile::new().unwrap();
    let address = |at: usize| PciAddress::new(0, (at / 32) as u8, (at % 32) as u8, 0).unwrap();
    for (at, space) in spaces.iter().enumerate() {
        writeln!(dump, "{} Device", address(at)).unwrap();
        for (row, bytes) in space.chunks(16).enumerate() {
            write!(dump, "{:02x}:", row * 16).unwrap();
            bytes
                .iter()
                .for_each(|byte| write!(dump, " {byte:02x}").unwrap());
            writeln!(dump).unwrap();
        }
        writeln!(dump).unwrap();
    }
    dump.flush().unwrap();
    let mut said = lspci(&["-F", dump.path().to_str().unwrap()])?;
    assert_eq!(said.len(), spaces.len(), "it read every dump");
    Some(
        (0..spaces.len())
            .map(|at| said.remove(&address(at)).unwrap())
            .collect(),
    )
}

fn by_us(found: &Capabilities) -> Said {
    Said::by_us(found.msi, found.msix)
}

#[test]
fn each_device_of_this_machine_is_read_as_lspci_reads_it() {
    let Some(said) = lspci(&[]) else { return };
    let report = msi_probe::probe(&HostFs::live()).unwrap();
    assert_eq!(report.devices.len(), said.len());
    for device in &report.devices {
        if matches!(device.findings[..], [Finding::Asleep { .. }]) {
            continue;
        }
        let ours = Said::by_us(device.msi, device.msix);
        assert_eq!(said[&device.address], ours, "{}", device.address);
    }
}

#[test]
fn each_device_of_this_machine_is_read_in_few_double_words() {
    let fs = HostFs::live();
    let devices = hostfs::pci::devices(&fs).unwrap();
    for device in devices.iter().filter(|device| !device.is_asleep()) {
        let config = ConfigSpace::open(&fs, device.address).unwrap();
        let mut reads = 0;
        let found = config_space::parse(|offset| {
            reads += 1;
            config.read_at(offset.into()).unwrap()
        });
        // Three of the header, one of each capability, two of MSI-X; without privilege the
        // last one is the one that is not visible.
        let most = 3 + found.list.len() + 2;
        assert!(reads <= most, "{}: {reads} of {most}", device.address);
        assert!(found.list.len() < 48);
    }
}

#[test]
fn dumps_are_read_as_lspci_reads_them() {
    let spaces = [
        // MSI 1/8, 64-bit, maskable, on; then off with 4/4 and nothing else.
        Space::new(0, 0x50).msi(0x50, 0, 0x0187),
        Space::new(0, 0x50).msi(0x50, 0, 0x0024),
        // MSI-X on and masked, with table and PBA in different BARs.
        Space::new(0, 0x70).msix(0x70, 0, 0xc00f, 0x2004, 0x3003),
        // 1 and 2048 vectors.
        Space::new(0, 0x70).msix(0x70, 0, 0x8000, 0, 0x800),
        Space::new(0, 0x70).msix(0x70, 0, 0x07ff, 0x1, 0x0001_0001),
        // Both, behind power management, in falling order.
        Space::new(0, 0xb0)
            .cap(0xb0, 0x01, 0x90)
            .msix(0x90, 0x60, 0x0002, 4, 0x1004)
            .msi(0x60, 0, 0x0081),
        // Bridge and CardBus bridge.
        Space::new(1, 0x80).msi(0x80, 0, 0x0103),
        Space::new(2, 0xa0)
            .cap(0xa0, 0x01, 0xc0)
            .msi(0xc0, 0, 0x0001),
        // A loop, a pointer into the header, an id of 0xff, a pointer of 0xff.
        Space::new(0, 0x50)
            .msi(0x50, 0x60, 0x0001)
            .cap(0x60, 0x09, 0x50),
        Space::new(0, 0x50).msi(0x50, 0x10, 0x0001),
        Space::new(0, 0x50)
            .cap(0x50, 0xff, 0x60)
            .msi(0x60, 0, 0x0001),
        Space::new(0, 0x50).msi(0x50, 0xff, 0x0083),
        // Pointers whose reserved bits are set.
        Space::new(0, 0x53)
            .msi(0x50, 0x62, 0x0001)
            .msix(0x60, 0x01, 0x8003, 0, 0x100),
        // No list.
        Space::new(0, 0x50).msi(0x50, 0, 1).put(0x06, &[0]),
    ];
    let mut bytes: Vec<&[u8]> = spaces.iter().map(|space| &space.0[..]).collect();
    // What is shown without privilege: of an endpoint, and of a CardBus bridge.
    bytes.push(&spaces[0].0[..64]);
    let cardbus = Space::new(2, 0x44).msi(0x44, 0x90, 0x0001);
    bytes.push(&cardbus.0[..128]);
    let Some(said) = of_dumps(&bytes) else { return };
    for (at, (bytes, said)) in bytes.iter().zip(said).enumerate() {
        assert_eq!(by_us(&config_space::parse_bytes(bytes)), said, "dump {at}");
    }
}

/// A sequence of numbers that looks random and is the same each time (xorshift).
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

#[test]
fn a_thousand_lists_are_read_as_lspci_reads_them() {
    let mut numbers = Numbers(0x2545_f491);
    let spaces: Vec<Space> = (0..1000).map(|_| any_list(&mut numbers)).collect();
    let bytes: Vec<&[u8]> = spaces.iter().map(|space| &space.0[..]).collect();
    let Some(said) = of_dumps(&bytes) else { return };
    let with_both = said
        .iter()
        .filter(|said| said.msi.is_some() && said.msix.is_some());
    assert!(with_both.count() > 100, "the lists are worth comparing");
    for (at, (bytes, said)) in bytes.iter().zip(said).enumerate() {
        let found = config_space::parse_bytes(bytes);
        assert_eq!(by_us(&found), said, "list {at}: {found:?}");
    }
}

/// One to nine capabilities in any of the nine places that are 20 bytes apart, so that they
/// don't overlap; with any contents.
fn any_list(numbers: &mut Numbers) -> Space {
    let mut places: Vec<u8> = (0x40..=0xe0).step_by(20).collect();
    for at in (1..places.len()).rev() {
        places.swap(at, numbers.next() as usize % (at + 1));
    }
    places.truncate(1 + numbers.next() as usize % places.len());
    let header_type = (numbers.next() % 3) as u8;
    let mut space = Space::new(header_type, places[0]);
    for (at, place) in places.iter().enumerate() {
        let next = places.get(at + 1).copied().unwrap_or(0);
        let control = numbers.next() as u16;
        space = match numbers.next() % 4 {
            0 => space.msi(*place, next, control),
            1 => space.msix(*place, next, control, numbers.next(), numbers.next()),
            2 => space.cap(*place, 0x00, next),
            _ => space.cap(*place, 0x09, next),
        };
    }
    space
}
