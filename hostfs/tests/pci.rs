//! PCI devices in trees that are laid out as sysfs lays them out.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;

use hostfs::pci::{self, ConfigSpace, MsiKind, PciAddress, PciDevice};
use hostfs::{Error, HostFs};
use tempfile::TempDir;

/// A sysfs that tests fill in.
struct Sysfs(TempDir);

impl Sysfs {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/bus/pci/devices")).unwrap();
        Self(dir)
    }

    fn fs(&self) -> HostFs {
        HostFs::at(self.0.path()).unwrap()
    }

    fn file(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A device at `sys/devices/<place>/<address>`, linked to from the bus as sysfs does.
    fn device(&self, place: &str, address: &str, files: &[(&str, &str)]) -> String {
        let home = format!("sys/devices/{place}/{address}");
        fs::create_dir_all(self.0.path().join(&home)).unwrap();
        let target = format!("../../../devices/{place}/{address}");
        self.link(&format!("sys/bus/pci/devices/{address}"), &target);
        for (name, text) in files {
            self.file(&format!("{home}/{name}"), text);
        }
        home
    }

    fn only(&self) -> PciDevice {
        let mut devices = pci::devices(&self.fs()).unwrap();
        assert_eq!(devices.len(), 1, "{devices:?}");
        devices.remove(0)
    }
}

fn address(text: &str) -> PciAddress {
    text.parse().unwrap()
}

#[test]
fn a_device_is_described_by_its_files() {
    let sysfs = Sysfs::new();
    let home = sysfs.device(
        "pci0000:00",
        "0000:00:1f.6",
        &[
            ("vendor", "0x8086\n"),
            ("device", "0x15fb\n"),
            ("class", "0x020000\n"),
            ("irq", "16\n"),
            ("msi_irqs/130", "msi\n"),
            ("msi_bus", "1\n"),
            ("power_state", "D0\n"),
            ("numa_node", "1\n"),
            ("local_cpulist", "0-3,8-11\n"),
            ("net/eno1/address", "00:00:5e:00:53:01\n"),
        ],
    );
    sysfs.link(&format!("{home}/driver"), "../../../bus/pci/drivers/e1000e");
    let to_net = "../../devices/pci0000:00/0000:00:1f.6/net/eno1";
    sysfs.link("sys/class/net/eno1", to_net);
    sysfs.link("sys/class/net/lo", "../../devices/virtual/net/lo");

    let device = sysfs.only();
    assert_eq!(device.address, address("0000:00:1f.6"));
    assert_eq!((device.vendor, device.device), (Some(0x8086), Some(0x15fb)));
    assert_eq!(device.class, Some(0x02_0000));
    assert_eq!(device.driver.as_deref(), Some("e1000e"));
    assert_eq!(device.irq, Some(16));
    let irqs: Vec<_> = device
        .msi_irqs
        .iter()
        .flatten()
        .map(|i| (i.irq, i.kind))
        .collect();
    assert_eq!(irqs, [(130, Some(MsiKind::Msi))]);
    assert_eq!(device.msi_bus, Some(true));
    assert_eq!(device.power_state.as_deref(), Some("D0"));
    assert_eq!(device.numa_node, Some(1));
    assert_eq!(device.local_cpus, Some("0-3,8-11".parse().unwrap()));
    assert_eq!(device.net, ["eno1"]);
    assert_eq!(device.block, [""; 0]);
    assert_eq!(device.virtio, None);
    assert_eq!(device.unreadable, [""; 0]);
}

#[test]
fn what_is_absent_is_none_and_no_fault() {
    let sysfs = Sysfs::new();
    sysfs.device("pci0000:00", "0000:00:00.0", &[("numa_node", "-1\n")]);
    let device = sysfs.only();
    assert_eq!(
        (device.vendor, device.device, device.class),
        (None, None, None)
    );
    assert_eq!((device.driver.as_deref(), device.irq), (None, None));
    assert_eq!((device.msi_irqs.as_ref(), device.msi_bus), (None, None));
    assert_eq!(device.numa_node, None, "-1 is no node");
    assert_eq!(
        (device.power_state.as_deref(), device.local_cpus.as_ref()),
        (None, None)
    );
    assert_eq!(device.unreadable, [""; 0]);
}

#[test]
fn irq_0_and_irq_255_are_no_interrupt() {
    for (text, irq) in [
        ("0\n", None),
        ("255\n", None),
        ("254\n", Some(254)),
        ("1\n", Some(1)),
    ] {
        let sysfs = Sysfs::new();
        sysfs.device("pci0000:00", "0000:00:05.0", &[("irq", text)]);
        assert_eq!(sysfs.only().irq, irq, "{text:?}");
    }
}

#[test]
fn an_empty_msi_irqs_is_not_an_absent_one() {
    let sysfs = Sysfs::new();
    let home = sysfs.device("pci0000:00", "0000:00:05.0", &[("vendor", "0x1d0f\n")]);
    fs::create_dir(sysfs.0.path().join(home).join("msi_irqs")).unwrap();
    assert_eq!(sysfs.only().msi_irqs, Some(vec![]));
}

#[test]
fn msi_irqs_come_in_the_order_of_numbers_with_their_kinds() {
    let sysfs = Sysfs::new();
    sysfs.device(
        "pci0000:00",
        "0000:00:05.0",
        &[
            ("msi_irqs/100", "msix\n"),
            ("msi_irqs/99", "msix\n"),
            ("msi_irqs/101", "new\n"),
        ],
    );
    let device = sysfs.only();
    let irqs: Vec<_> = device
        .msi_irqs
        .iter()
        .flatten()
        .map(|i| (i.irq, i.kind))
        .collect();
    assert_eq!(
        irqs,
        [
            (99, Some(MsiKind::Msix)),
            (100, Some(MsiKind::Msix)),
            (101, None)
        ],
        "a number whose kind is not understood is still an interrupt"
    );
    assert_eq!(device.unreadable.len(), 1);
    assert!(
        device.unreadable[0].ends_with(
            "sys/bus/pci/devices/0000:00:05.0/msi_irqs/101: malformed: expected msi or msix, \
             found \"new\""
        ),
        "{:?}",
        device.unreadable
    );
}

#[test]
fn a_broken_file_loses_neither_the_device_nor_the_others() {
    let sysfs = Sysfs::new();
    let home = sysfs.device(
        "pci0000:00",
        "0000:00:02.0",
        &[
            ("vendor", "8086\n"),
            ("device", "0x1_0000\n"),
            ("class", "0x018000\n"),
            ("irq", "eleven\n"),
            ("local_cpulist", "0-\n"),
        ],
    );
    fs::create_dir(sysfs.0.path().join(home).join("numa_node")).unwrap();
    sysfs.device("pci0000:00", "0000:00:03.0", &[("irq", "11\n")]);

    let devices = pci::devices(&sysfs.fs()).unwrap();
    let [broken, whole] = &devices[..] else {
        panic!("{devices:?}");
    };
    assert_eq!(
        (broken.vendor, broken.device, broken.irq),
        (None, None, None)
    );
    assert_eq!((broken.numa_node, broken.local_cpus.as_ref()), (None, None));
    assert_eq!(broken.class, Some(0x01_8000));
    let root = sysfs.0.path().display();
    let file = |name: &str| format!("{root}/sys/bus/pci/devices/0000:00:02.0/{name}");
    let hexadecimal = "malformed: expected a hexadecimal number such as 0x1af4, found";
    assert_eq!(
        broken.unreadable,
        [
            format!("{}: {hexadecimal} \"8086\"", file("vendor")),
            format!("{}: {hexadecimal} \"0x1_0000\"", file("device")),
            format!(
                "{}: malformed: expected an unsigned number, found \"eleven\"",
                file("irq")
            ),
            format!(
                "{}: read failed: Is a directory (os error 21)",
                file("numa_node")
            ),
            format!(
                "{}: malformed: expected a list of CPUs, found \"0-\"",
                file("local_cpulist")
            ),
        ]
    );
    assert_eq!((whole.irq, whole.unreadable.len()), (Some(11), 0));
}

#[test]
fn a_number_that_is_too_wide_is_malformed_not_cut() {
    let sysfs = Sysfs::new();
    sysfs.device(
        "pci0000:00",
        "0000:00:02.0",
        &[("vendor", "0x18086\n"), ("device", "0x\n")],
    );
    let device = sysfs.only();
    assert_eq!((device.vendor, device.device), (None, None));
    assert_eq!(device.unreadable.len(), 2);
}

#[test]
fn devices_come_in_the_order_of_addresses_past_16_bit_domains() {
    let sysfs = Sysfs::new();
    for address in [
        "10000:00:02.0",
        "0000:0a:00.0",
        "ffff:00:00.0",
        "0000:02:00.1",
    ] {
        sysfs.device("pci", address, &[]);
    }
    sysfs.link("sys/bus/pci/devices/not-a-device", "../../../devices/pci");
    let devices = pci::devices(&sysfs.fs()).unwrap();
    let found: Vec<String> = devices.iter().map(|d| d.address.to_string()).collect();
    assert_eq!(
        found,
        [
            "0000:02:00.1",
            "0000:0a:00.0",
            "ffff:00:00.0",
            "10000:00:02.0"
        ]
    );
    assert_eq!(devices[3].address.domain(), 0x10000);
}

#[test]
fn a_device_that_is_gone_after_the_listing_is_left_out() {
    let sysfs = Sysfs::new();
    sysfs.device("pci0000:00", "0000:00:02.0", &[]);
    // A link to a directory that is no longer there is what the listing of a bus leaves
    // behind when a device is unplugged.
    sysfs.link(
        "sys/bus/pci/devices/0000:00:03.0",
        "../../../devices/pci0000:00/0000:00:03.0",
    );
    assert_eq!(sysfs.only().address, address("0000:00:02.0"));
}

#[test]
fn a_machine_without_pci_has_no_devices_but_a_root_without_sysfs_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let fs = HostFs::at(dir.path()).unwrap();
    let error = pci::devices(&fs).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let root = dir.path().display();
    assert_eq!(
        error.to_string(),
        format!("{root}/sys/bus/pci/devices: not there")
    );

    fs::create_dir_all(dir.path().join("sys/bus/virtio/devices")).unwrap();
    assert_eq!(pci::devices(&fs).unwrap(), []);
}

#[test]
fn a_virtio_device_is_found_below_its_pci_parent() {
    let sysfs = Sysfs::new();
    let home = sysfs.device(
        "pci0000:00",
        "0000:00:03.0",
        &[
            ("msi_irqs/37", "msix\n"),
            ("virtio2/net/eth0/mtu", "1500\n"),
        ],
    );
    sysfs.link(
        &format!("{home}/driver"),
        "../../../bus/pci/drivers/virtio-pci",
    );
    sysfs.link(
        &format!("{home}/virtio2/driver"),
        "../../../../bus/virtio/drivers/virtio_net",
    );
    sysfs.link(
        "sys/class/net/eth0",
        "../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0",
    );
    let device = sysfs.only();
    assert_eq!(device.driver.as_deref(), Some("virtio-pci"));
    let child = device.virtio.unwrap();
    assert_eq!(
        (child.name.as_str(), child.driver.as_deref()),
        ("virtio2", Some("virtio_net"))
    );
    assert_eq!(device.net, ["eth0"]);
    assert_eq!(device.msi_irqs.unwrap().len(), 1);
}

#[test]
fn block_devices_belong_to_the_nearest_pci_device_above_them() {
    let sysfs = Sysfs::new();
    let root_port = "pci10000:00/10000:00:02.0";
    sysfs.device("pci10000:00", "10000:00:02.0", &[]);
    sysfs.device(root_port, "10000:01:00.0", &[]);
    sysfs.device("pci0000:00", "0000:00:17.0", &[]);
    for (name, target) in [
        (
            "nvme0n1",
            format!("{root_port}/10000:01:00.0/nvme/nvme0/nvme0n1"),
        ),
        (
            "nvme0n10",
            format!("{root_port}/10000:01:00.0/nvme/nvme0/nvme0n10"),
        ),
        (
            "nvme0n2",
            format!("{root_port}/10000:01:00.0/nvme/nvme0/nvme0n2"),
        ),
        (
            "sda",
            "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda".into(),
        ),
        ("loop0", "virtual/block/loop0".into()),
    ] {
        sysfs.link(
            &format!("sys/block/{name}"),
            &format!("../devices/{target}"),
        );
    }
    let devices = pci::devices(&sysfs.fs()).unwrap();
    let found: Vec<(String, Vec<String>)> = devices
        .into_iter()
        .map(|device| (device.address.to_string(), device.block))
        .collect();
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    assert_eq!(
        found,
        [
            ("0000:00:17.0".into(), names(&["sda"])),
            ("10000:00:02.0".into(), names(&[])),
            (
                "10000:01:00.0".into(),
                names(&["nvme0n1", "nvme0n2", "nvme0n10"])
            ),
        ]
    );
}

#[test]
fn sleeping_is_d3_and_nothing_else() {
    for (state, asleep) in [
        ("D0", false),
        ("D1", false),
        ("D2", false),
        ("D3hot", true),
        ("D3cold", true),
        ("unknown", false),
    ] {
        let sysfs = Sysfs::new();
        sysfs.device("pci0000:00", "0000:00:02.0", &[("power_state", state)]);
        assert_eq!(sysfs.only().is_asleep(), asleep, "{state}");
    }
}

#[test]
fn config_is_little_endian_and_ends_where_the_file_ends() {
    let sysfs = Sysfs::new();
    let home = sysfs.device("pci0000:00", "0000:00:02.0", &[]);
    let bytes: Vec<u8> = (0..66).collect();
    sysfs.file(&format!("{home}/config"), &bytes);
    let config = ConfigSpace::open(&sysfs.fs(), address("0000:00:02.0")).unwrap();
    assert_eq!(config.read_at(0).unwrap(), Some(0x0302_0100));
    assert_eq!(config.read_at(0x3c).unwrap(), Some(0x3f3e_3d3c));
    assert_eq!(
        config.read_at(0x40).unwrap(),
        None,
        "two bytes are no double word"
    );
    assert_eq!(config.read_at(0x100).unwrap(), None);
}

#[test]
fn a_config_that_is_absent_or_a_directory_is_an_error_that_names_it() {
    let sysfs = Sysfs::new();
    let home = sysfs.device("pci0000:00", "0000:00:02.0", &[]);
    let absent = ConfigSpace::open(&sysfs.fs(), address("0000:00:02.0")).unwrap_err();
    assert!(absent.is_not_found());
    fs::create_dir(sysfs.0.path().join(home).join("config")).unwrap();
    let config = ConfigSpace::open(&sysfs.fs(), address("0000:00:02.0")).unwrap();
    let root = sysfs.0.path().display();
    assert_eq!(
        config.read_at(0).unwrap_err().to_string(),
        format!(
            "{root}/sys/bus/pci/devices/0000:00:02.0/config: read failed: Is a directory \
             (os error 21)"
        )
    );
}

#[cfg(feature = "serde")]
#[test]
fn a_device_is_saved_and_comes_back() {
    let sysfs = Sysfs::new();
    let files = [("local_cpulist", "0-1\n"), ("msi_irqs/37", "msix\n")];
    sysfs.device("pci0000:00", "0000:00:03.0", &files);
    let device = sysfs.only();
    let saved = serde_json::to_value(&device).unwrap();
    assert_eq!(saved["address"], "0000:00:03.0");
    assert_eq!(saved["msi_irqs"][0]["kind"], "msix");
    assert_eq!(serde_json::from_value::<PciDevice>(saved).unwrap(), device);
}
