//! The PCI devices of the machine that runs the tests.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use hostfs::pci::{self, MsiIrq};
use hostfs::{CpuSet, HostFs};

/// Against the files themselves, read here in the plainest way.
#[test]
fn this_machine_is_described_as_its_files_say() {
    let bus = Path::new("/sys/bus/pci/devices");
    let found = pci::devices(&HostFs::live()).unwrap();
    let listed = fs::read_dir(bus).map_or(0, |entries| entries.count());
    assert_eq!(found.len(), listed);
    let possible: CpuSet = HostFs::live()
        .read("sys/devices/system/cpu/possible")
        .unwrap();
    for device in found {
        let dir = bus.join(device.address.to_string());
        let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
        assert_eq!(format!("{:#06x}\n", device.vendor.unwrap()), text("vendor"));
        assert_eq!(format!("{:#06x}\n", device.device.unwrap()), text("device"));
        assert_eq!(format!("{:#08x}\n", device.class.unwrap()), text("class"));
        let driver = fs::read_link(dir.join("driver")).ok();
        let driver = driver.as_deref().and_then(|to| to.file_name()?.to_str());
        assert_eq!(device.driver.as_deref(), driver);
        let irqs = fs::read_dir(dir.join("msi_irqs")).ok().map(|entries| {
            let mut irqs: Vec<u32> = entries
                .map(|entry| {
                    entry
                        .unwrap()
                        .file_name()
                        .to_str()
                        .unwrap()
                        .parse()
                        .unwrap()
                })
                .collect();
            irqs.sort_unstable();
            irqs
        });
        let numbers = |irqs: Vec<MsiIrq>| irqs.iter().map(|irq| irq.irq).collect::<Vec<_>>();
        assert_eq!(device.msi_irqs.map(numbers), irqs);
        assert!(device.local_cpus.unwrap().is_subset(&possible));
        assert_eq!(device.unreadable, [""; 0]);
        for name in device.net {
            let mut up = fs::canonicalize(format!("/sys/class/net/{name}")).unwrap();
            while up.file_name().unwrap().to_str() != Some(&device.address.to_string()) {
                assert!(up.pop(), "{name} is not below {}", device.address);
            }
        }
        if device.driver.as_deref() == Some("virtio-pci") {
            let name = device.virtio.unwrap().name;
            assert!(Path::new("/sys/bus/virtio/devices").join(name).exists());
        }
    }
}
