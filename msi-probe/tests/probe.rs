//! Whole probes, of trees laid out as sysfs lays them out.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::Space;
use hostfs::HostFs;
use msi_probe::{Active, Config, Device, Evidence, Finding, PciMsi, Report, probe};
use tempfile::TempDir;

/// A machine that tests fill in.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/bus/pci/devices")).unwrap();
        Self(dir)
    }

    fn with(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    fn with_dir(self, path: &str) -> Self {
        fs::create_dir_all(self.0.path().join(path)).unwrap();
        self
    }

    fn with_link(self, path: &str, target: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    /// A file of the device that most tests are about.
    fn file(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        self.with(&format!("{DEVICE}/{name}"), contents)
    }

    fn driver(self, name: &str) -> Self {
        let target = format!("../../../../bus/pci/drivers/{name}");
        self.with_link(&format!("{DEVICE}/driver"), &target)
    }

    fn interrupts(self, rows: &str) -> Self {
        self.with("proc/interrupts", format!("      CPU0   CPU1\n{rows}"))
    }

    fn probe(&self) -> Report {
        probe(&HostFs::at(self.0.path()).unwrap()).unwrap()
    }

    fn device(&self) -> Device {
        let mut report = self.probe();
        assert_eq!(report.devices.len(), 1, "{report:?}");
        report.devices.remove(0)
    }
}

const DEVICE: &str = "sys/bus/pci/devices/0000:00:05.0";

/// An endpoint with MSI-X of 5 vectors.
fn msix(on: bool) -> Space {
    Space::new(0, 0x98).msix(0x98, 0, if on { 0x8004 } else { 0x0004 }, 0x8000, 0x48000)
}

fn because(device: &Device) -> (Active, &[Evidence], &[u32]) {
    (device.active, &device.evidence, &device.irqs)
}

#[test]
fn with_privilege_the_enable_bits_tell() {
    let machine = Machine::new()
        .file("config", msix(true).0)
        .file("msi_irqs/33", "msix\n")
        .file("msi_irqs/34", "msix\n")
        .driver("virtio-pci");
    let device = machine.device();
    assert_eq!(device.config, Config::Full);
    assert_eq!(device.msix.unwrap().vectors, 5);
    assert_eq!(device.msi, None);
    assert_eq!(
        because(&device),
        (
            Active::Msix,
            &[Evidence::ConfigSpace, Evidence::MsiIrqs][..],
            &[33, 34][..]
        )
    );
    assert_eq!(device.findings, []);
    let msi = Machine::new()
        .file("config", Space::new(0, 0x50).msi(0x50, 0, 0x0081).0)
        .device();
    let expected = (Active::Msi, &[Evidence::ConfigSpace][..], &[][..]);
    assert_eq!(because(&msi), expected);
}

#[test]
fn without_privilege_the_kernels_lists_tell_and_64_bytes_are_not_no_msi() {
    let machine = Machine::new()
        .file("config", &msix(true).0[..64])
        .file("msi_irqs/33", "msix\n")
        .driver("virtio-pci")
        .interrupts(" 33:  0  7  IR-PCI-MSIX-0000:00:05.0  0-edge  virtio4-config\n");
    let device = machine.device();
    assert_eq!(
        (device.config, device.msi, device.msix),
        (Config::Truncated, None, None)
    );
    let evidence = [Evidence::MsiIrqs, Evidence::ChipName];
    assert_eq!(because(&device), (Active::Msix, &evidence[..], &[33][..]));
    assert_eq!(device.findings, [Finding::Truncated { at: 0x98 }]);
}

#[test]
fn chip_names_tell_where_msi_irqs_is_empty() {
    for (chip, active) in [
        ("PCI-MSI-0000:00:05.0", Active::Msi),
        ("ITS-PCI-MSIX-0000:00:05.0", Active::Msix),
        ("PCI-MSIX-0000:00:05.1", Active::Unknown),
        ("PCI-MSI", Active::Unknown),
        ("xen-pirq", Active::Unknown),
    ] {
        let machine = Machine::new()
            .file("config", &msix(true).0[..64])
            .with_dir(&format!("{DEVICE}/msi_irqs"))
            .driver("ena")
            .interrupts(&format!(" 33:  0  7  {chip}  1-edge  ena\n"));
        let device = machine.device();
        assert_eq!(device.active, active, "{chip}");
        assert!(device.findings.contains(&Finding::EmptyMsiIrqs));
        if active == Active::Unknown {
            assert_eq!(device.evidence, [Evidence::MsiIrqs]);
        } else {
            assert_eq!(
                (&device.evidence[..], &device.irqs[..]),
                (&[Evidence::ChipName][..], &[33][..])
            );
        }
    }
}

#[test]
fn an_empty_msi_irqs_does_not_hide_what_the_enable_bits_say() {
    let machine = Machine::new()
        .file("config", msix(true).0)
        .with_dir(&format!("{DEVICE}/msi_irqs"))
        .driver("ena");
    let device = machine.device();
    assert_eq!(device.active, Active::Msix);
    assert_eq!(device.findings, [Finding::EmptyMsiIrqs]);
}

#[test]
fn interrupts_listed_for_a_device_that_cannot_send_them_are_stale() {
    let machine = Machine::new()
        .file("config", msix(false).0)
        .file("msi_irqs/33", "msix\n")
        .file("irq", "11\n")
        .driver("e1000e")
        .with("sys/kernel/irq/11/actions", "eth0\n");
    let device = machine.device();
    let evidence = [Evidence::ConfigSpace, Evidence::Handler];
    assert_eq!(because(&device), (Active::Intx, &evidence[..], &[11][..]));
    assert_eq!(device.findings, [Finding::StaleMsiIrqs { irqs: vec![33] }]);
}

#[test]
fn an_interrupt_that_now_bears_another_devices_name_is_stale() {
    let machine = Machine::new()
        .file("config", &msix(true).0[..64])
        .file("msi_irqs/32", "msix\n")
        .file("msi_irqs/33", "msix\n")
        .driver("e1000e")
        .interrupts(" 32:  0  7  PCI-MSIX-0000:00:06.0  0-edge  x\n");
    let device = machine.device();
    assert_eq!(
        because(&device),
        (Active::Msix, &[Evidence::MsiIrqs][..], &[33][..])
    );
    let stale = Finding::StaleMsiIrqs { irqs: vec![32] };
    assert_eq!(device.findings, [Finding::Truncated { at: 0x98 }, stale]);
}

#[test]
fn a_line_in_use_is_intx_by_whatever_tells_of_its_handler() {
    let machine = || {
        let machine = Machine::new()
            .file("config", msix(false).0)
            .driver("e1000e");
        machine.file("irq", "11\n")
    };
    let row = " 11:  5  7  IO-APIC  11-fasteoi  eth0\n";
    let with_row = machine().interrupts(row).device();
    let evidence = [Evidence::ConfigSpace, Evidence::Handler];
    assert_eq!(because(&with_row), (Active::Intx, &evidence[..], &[11][..]));
    // A kernel that hides rows of zeros.
    let hidden = machine()
        .interrupts("")
        .with("sys/kernel/irq/11/actions", "eth0\n")
        .device();
    assert_eq!(because(&hidden), (Active::Intx, &evidence[..], &[11][..]));
    let nobody = machine()
        .interrupts("")
        .with("sys/kernel/irq/11/actions", "\n")
        .device();
    assert_eq!(because(&nobody), (Active::None, &evidence[..], &[][..]));
    let unknown = machine().device();
    let evidence = [Evidence::ConfigSpace, Evidence::IntxDisable];
    assert_eq!(because(&unknown), (Active::Intx, &evidence[..], &[11][..]));
}

#[test]
fn a_line_that_is_forbidden_is_not_intx() {
    let forbidden = msix(false).put(0x05, &[0x04]);
    let machine = |visible: usize| {
        let config = &forbidden.0[..visible];
        Machine::new()
            .file("config", config)
            .driver("x")
            .file("irq", "11\n")
    };
    let evidence = [Evidence::ConfigSpace, Evidence::IntxDisable];
    assert_eq!(
        because(&machine(256).device()),
        (Active::None, &evidence[..], &[][..])
    );
    let evidence = [Evidence::MsiIrqs, Evidence::IntxDisable];
    assert_eq!(
        because(&machine(64).device()),
        (Active::Unknown, &evidence[..], &[][..])
    );
}

#[test]
fn irq_255_and_no_driver_are_no_interrupt() {
    let machine = || Machine::new().file("config", msix(false).0);
    let device = machine().file("irq", "255\n").driver("x").device();
    let evidence = [Evidence::ConfigSpace, Evidence::NoIrq];
    assert_eq!(because(&device), (Active::None, &evidence[..], &[][..]));
    let device = machine().file("irq", "11\n").device();
    let evidence = [Evidence::ConfigSpace, Evidence::NoDriver];
    assert_eq!(because(&device), (Active::None, &evidence[..], &[][..]));
}

#[test]
fn without_a_driver_an_empty_msi_irqs_is_no_riddle() {
    let machine = Machine::new().file("config", &msix(true).0[..64]);
    let device = machine.with_dir(&format!("{DEVICE}/msi_irqs")).device();
    let evidence = [Evidence::MsiIrqs, Evidence::NoDriver];
    assert_eq!(because(&device), (Active::None, &evidence[..], &[][..]));
}

#[test]
fn a_config_that_cannot_be_read_leaves_the_rest() {
    let root = |machine: &Machine| machine.0.path().display().to_string();
    let machine = Machine::new()
        .with_dir(&format!("{DEVICE}/config"))
        .file("irq", "11\n");
    let machine = machine
        .driver("x")
        .with("sys/bus/pci/devices/0000:00:06.0/config", msix(true).0);
    let report = machine.probe();
    let [broken, whole] = &report.devices[..] else {
        panic!("{report:?}");
    };
    assert_eq!(
        (broken.config, broken.active),
        (Config::Unread, Active::Unknown)
    );
    let error = format!(
        "{}/{DEVICE}/config: read failed: Is a directory (os error 21)",
        root(&machine)
    );
    assert_eq!(
        broken.findings,
        [Finding::ConfigUnreadable {
            error: error.clone()
        }]
    );
    assert_eq!(broken.findings[0].to_string(), error);
    assert_eq!((whole.config, whole.active), (Config::Full, Active::Msix));

    let absent = Machine::new().with_dir(DEVICE);
    let device = absent.device();
    let error = format!("{}/{DEVICE}/config: not there", root(&absent));
    assert_eq!((device.config, device.msix), (Config::Unread, None));
    assert_eq!(device.findings, [Finding::ConfigUnreadable { error }]);
}

#[test]
fn broken_files_and_broken_lists_are_findings() {
    let space = Space::new(0, 0x50).msi(0x50, 0x50, 1);
    let machine = Machine::new()
        .file("config", space.0)
        .file("vendor", "8086\n");
    let device = machine.device();
    assert_eq!((device.config, device.active), (Config::Full, Active::Msi));
    let root = machine.0.path().display();
    let expected = "malformed: expected a hexadecimal number such as 0x1af4, found \"8086\"";
    let error = format!("{root}/{DEVICE}/vendor: {expected}");
    assert_eq!(
        device.findings,
        [
            Finding::FileUnreadable { error },
            Finding::Loop { at: 0x50 }
        ]
    );
}

#[test]
fn a_device_that_does_not_answer_is_unread() {
    let device = Machine::new()
        .file("config", [0xff; 256])
        .driver("x")
        .device();
    assert_eq!((device.config, device.msix), (Config::Unread, None));
    assert_eq!(device.findings, [Finding::NoAnswer]);
}

#[test]
fn a_sleeping_device_is_not_read() {
    let machine = Machine::new()
        .file("config", msix(true).0)
        .file("power_state", "D3cold\n")
        .file("msi_irqs/33", "msi\n");
    let device = machine.device();
    assert_eq!((device.config, device.msix), (Config::Unread, None));
    assert_eq!(
        because(&device),
        (Active::Msi, &[Evidence::MsiIrqs][..], &[33][..])
    );
    let power_state = "D3cold".to_owned();
    assert_eq!(device.findings, [Finding::Asleep { power_state }]);
}

#[test]
fn domains_over_16_bits_are_domains() {
    let machine = Machine::new()
        .with(
            "sys/bus/pci/devices/10000:01:00.0/config",
            &msix(true).0[..64],
        )
        .with_dir("sys/bus/pci/devices/10000:01:00.0/msi_irqs")
        .interrupts(" 99:  0  7  PCI-MSIX-10000:01:00.0  3-edge  nvme0q3\n");
    let device = machine.device();
    assert_eq!(device.address.domain(), 0x10000);
    assert_eq!(
        because(&device),
        (Active::Msix, &[Evidence::ChipName][..], &[99][..])
    );
}

#[test]
fn a_virtio_device_has_the_interrupts_of_its_pci_parent() {
    let machine = Machine::new()
        .file("config", msix(true).0)
        .file("msi_irqs/37", "msix\n")
        .driver("virtio-pci")
        .with_link(
            &format!("{DEVICE}/virtio2/driver"),
            "../../bus/virtio/drivers/virtio_net",
        );
    let report = machine.probe();
    let carries = |device: &&Device| device.virtio.as_ref().is_some_and(|v| v.name == "virtio2");
    let parent = report.devices.iter().find(carries).unwrap();
    assert_eq!((parent.active, &parent.irqs[..]), (Active::Msix, &[37][..]));
    let driver = parent.virtio.as_ref().unwrap().driver.as_deref();
    assert_eq!(driver, Some("virtio_net"));
}

#[test]
fn a_machine_without_pci_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let fs = HostFs::at(dir.path()).unwrap();
    let error = probe(&fs).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{}/sys/bus/pci/devices: not there", dir.path().display())
    );

    fs::create_dir_all(dir.path().join("sys/bus/virtio")).unwrap();
    let report = probe(&fs).unwrap();
    assert_eq!(report.devices, []);
    assert_eq!(report.findings, [Finding::NoPciDevices]);
    assert_eq!(report.kernel.pci_msi, PciMsi::Unknown);
    assert_eq!(
        (report.kernel.release, report.kernel.disabled_by),
        (None, None)
    );
}

#[test]
fn a_table_that_is_no_table_is_a_finding() {
    let machine = Machine::new()
        .file("config", msix(true).0)
        .with("proc/interrupts", "x\n");
    let report = machine.probe();
    assert_eq!(report.devices[0].active, Active::Msix);
    let [Finding::FileUnreadable { error }] = &report.findings[..] else {
        panic!("{:?}", report.findings);
    };
    assert!(error.contains("/proc/interrupts: malformed"), "{error}");
}

#[test]
fn the_build_is_known_from_the_first_file_that_tells() {
    let release = "6.12.48+deb13-amd64";
    let machine = |place: &str, config: &str| {
        let machine = Machine::new().with("proc/sys/kernel/osrelease", format!("{release}\n"));
        machine.with(&place.replace("REL", release), config)
    };
    let yes = "CONFIG_PCI=y\nCONFIG_PCI_MSI=y\n";
    let no = "CONFIG_PCI=y\n# CONFIG_PCI_MSI is not set\n";
    for place in [
        "boot/config-REL",
        "lib/modules/REL/config",
        "lib/modules/REL/build/.config",
    ] {
        let kernel = machine(place, yes).probe().kernel;
        assert_eq!(kernel.pci_msi, PciMsi::Yes);
        assert_eq!(kernel.source, Some(place.replace("REL", release)));
        assert_eq!(kernel.release.as_deref(), Some(release));
        assert_eq!(machine(place, no).probe().kernel.pci_msi, PciMsi::No);
    }
    let of_another = machine("boot/config-6.12.0", yes).probe().kernel;
    assert_eq!(
        (of_another.pci_msi, of_another.source),
        (PciMsi::Unknown, None)
    );
    let cut = machine("boot/config-REL", "CONFIG_PCI=y\n");
    let cut = cut
        .with(&format!("lib/modules/{release}/config"), no)
        .probe()
        .kernel;
    assert_eq!(cut.pci_msi, PciMsi::No);
    assert_eq!(cut.source, Some(format!("lib/modules/{release}/config")));
}

#[test]
fn msi_in_use_outweighs_the_files() {
    let machine = || Machine::new().file("config", msix(true).0);
    let in_use = Some("MSI in use by 0000:00:05.0".to_owned());
    let agreeing = machine()
        .with("proc/sys/kernel/osrelease", "6.1.0\n")
        .with("boot/config-6.1.0", "CONFIG_PCI_MSI=y\n");
    let source = agreeing.probe().kernel.source;
    assert_eq!(source.as_deref(), Some("boot/config-6.1.0"));
    let kernel = machine().probe().kernel;
    assert_eq!(
        (kernel.pci_msi, kernel.source),
        (PciMsi::Yes, in_use.clone())
    );
    let kernel = machine()
        .with("proc/sys/kernel/osrelease", "6.1.0\n")
        .with("boot/config-6.1.0", "# CONFIG_PCI_MSI is not set\n")
        .probe()
        .kernel;
    assert_eq!((kernel.pci_msi, kernel.source), (PciMsi::Yes, in_use));
}

#[test]
fn the_command_line_forbids() {
    let machine = Machine::new().with("proc/cmdline", "quiet pci=noaer,nomsi\n");
    assert_eq!(
        machine.probe().kernel.disabled_by.as_deref(),
        Some("pci=nomsi")
    );
    let machine = Machine::new().with("proc/cmdline", "quiet pcie_pme=nomsi\n");
    assert_eq!(machine.probe().kernel.disabled_by, None);
}
