//! What `msi-probe` says of the guest's devices, with MSI and with `pci=nomsi`. That it is what
//! `lspci -vv` says is a test of that crate, which runs here too.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use hostfs::HostFs;
use msi_probe::{Active, Config, PciMsi, Report, probe};

fn report() -> Report {
    probe(&HostFs::live()).unwrap()
}

/// What each driver's device uses.
fn active(report: &Report) -> BTreeMap<&str, Active> {
    let devices = report.devices.iter();
    devices
        .filter_map(|device| {
            let virtio = device
                .virtio
                .as_ref()
                .and_then(|child| child.driver.as_deref());
            Some((virtio.or(device.driver.as_deref())?, device.active))
        })
        .collect()
}

fn forbidden() -> bool {
    let line = HostFs::live().read_text("proc/cmdline").unwrap();
    line.split(' ').any(|word| word == "pci=nomsi")
}

#[test]
fn the_kernel_is_known_by_its_configuration() {
    let kernel = report().kernel;
    assert_eq!(kernel.pci_msi, PciMsi::Yes);
    let source = kernel.source.unwrap();
    assert!(source.contains("boot/config-"), "{source}");
    assert_eq!(
        kernel.disabled_by.as_deref(),
        forbidden().then_some("pci=nomsi")
    );
}

#[test]
fn every_driver_uses_what_the_kernel_lets_it_use() {
    let report = report();
    let active = active(&report);
    let wanted = match forbidden() {
        false => [
            Active::Msix,
            Active::Msix,
            Active::Msix,
            Active::Msix,
            Active::Msi,
        ],
        true => [const { Active::Intx }; 5],
    };
    let drivers = ["virtio_blk", "virtio_net", "e1000e", "nvme", "ahci"];
    for (driver, wanted) in drivers.iter().zip(wanted) {
        assert_eq!(active[driver], wanted, "{driver}: {report:?}");
    }
}

/// Capabilities are shown whether they are used or not.
#[test]
fn capabilities_are_there_in_either_case() {
    let report = report();
    for driver in ["e1000e", "nvme"] {
        let device = report
            .devices
            .iter()
            .find(|d| d.driver.as_deref() == Some(driver))
            .unwrap();
        assert_eq!(device.config, Config::Full);
        let msix = device.msix.as_ref().unwrap();
        assert_eq!(msix.enabled, !forbidden(), "{driver}");
        // QEMU's e1000e has 5 vectors; its NVMe 65, or in later releases 64 and one.
        let vectors = if driver == "e1000e" { 5..=5 } else { 65..=65 };
        assert!(
            vectors.contains(&msix.vectors),
            "{driver}: {}",
            msix.vectors
        );
        let irqs = if forbidden() { 1 } else { 2 };
        assert!(device.irqs.len() >= irqs, "{driver}: {:?}", device.irqs);
    }
}
