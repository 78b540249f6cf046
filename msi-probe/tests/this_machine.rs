//! A probe of the machine that runs the tests, against its files read in the plainest way.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use hostfs::HostFs;
use msi_probe::{Config, Finding, PciMsi, probe};

#[test]
fn this_machine_shows_what_this_user_may_see() {
    let report = probe(&HostFs::live()).unwrap();
    for device in &report.devices {
        if matches!(device.findings[..], [Finding::Asleep { .. }]) {
            continue;
        }
        let dir = Path::new("/sys/bus/pci/devices").join(device.address.to_string());
        let mut irqs: Vec<(u32, String)> = fs::read_dir(dir.join("msi_irqs"))
            .into_iter()
            .flatten()
            .map(|irq| irq.unwrap())
            .map(|irq| {
                let kind = fs::read_to_string(irq.path()).unwrap();
                let number = irq.file_name().to_str().unwrap().parse().unwrap();
                (number, kind.trim().to_owned())
            })
            .collect();
        irqs.sort_unstable();
        let Some((_, kind)) = irqs.first() else {
            continue;
        };
        // The kernel's own word for it, which needs no privilege.
        assert_eq!(device.active.to_string(), *kind, "{}", device.address);
        let numbers: Vec<u32> = irqs.iter().map(|(irq, _)| *irq).collect();
        assert_eq!(device.irqs, numbers, "{}", device.address);
        assert_eq!(report.kernel.pci_msi, PciMsi::Yes);
        // Without privilege the file ends before the first capability.
        let config = File::open(dir.join("config")).unwrap();
        let privileged = config.read_at(&mut [0], 0x40).unwrap() == 1;
        let expected = if privileged {
            Config::Full
        } else {
            Config::Truncated
        };
        assert_eq!(device.config, expected, "{}", device.address);
        let seen = (device.msi.is_some(), device.msix.is_some());
        match kind.as_str() {
            _ if !privileged => assert_eq!(seen, (false, false)),
            "msi" => assert!(device.msi.unwrap().enabled),
            _ => assert!(device.msix.unwrap().enabled),
        }
    }
}
