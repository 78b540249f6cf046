//! Devices that are unplugged while they are probed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use hostfs::HostFs;
use msi_probe::probe;

/// The bus loses one device after another during the probe. Whenever that hits one, it is
/// left out or was read before: none is reported as there and unreadable.
#[test]
fn a_device_that_vanishes_is_left_out() {
    const DEVICES: usize = 100;
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("sys/devices/all");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("config"), [0; 64]).unwrap();
        fs::write(home.join("vendor"), "0x8086\n").unwrap();
        let bus = dir.path().join("sys/bus/pci/devices");
        fs::create_dir_all(&bus).unwrap();
        let links: Vec<_> = (0..DEVICES)
            .map(|at| bus.join(format!("0000:{at:02x}:00.0")))
            .collect();
        for link in &links {
            symlink("../../../devices/all", link).unwrap();
        }
        let fs = HostFs::at(dir.path()).unwrap();
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                for link in links.iter().rev() {
                    fs::remove_file(link).unwrap();
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
            probe(&fs).unwrap()
        });
        for device in &report.devices {
            assert_eq!(device.findings, [], "{}", device.address);
        }
        assert_eq!(probe(&fs).unwrap().devices, [], "all are gone");
    }
}
