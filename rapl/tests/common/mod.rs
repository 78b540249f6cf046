//! A small powercap tree: zones below `sys/devices/virtual/powercap`, linked flat from
//! `sys/class/powercap` as the kernel links them.
#![allow(dead_code)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use hostfs::HostFs;
use rapl::{Energy, Meter};
use tempfile::TempDir;

/// `floor((2^32 - 1) * 61035 / 1000)`: the unit of 2^-14 J.
pub const RANGE_61: u64 = 262_143_328_850;
/// `2^32 * 61035 / 1000`, rounded down.
pub const MODULUS_61_UJ: u64 = 262_143_328_911;

const DEVICES: &str = "sys/devices/virtual/powercap";
const CLASS: &str = "sys/class/powercap";

pub struct Tree {
    dir: TempDir,
}

impl Tree {
    /// A machine without powercap.
    pub fn bare(cpuinfo: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/class")).unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::write(dir.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        Self { dir }
    }

    /// A machine with powercap and no zones.
    pub fn new() -> Self {
        let tree = Self::bare("vendor_id\t: GenuineIntel\nflags\t\t: fpu vme\n");
        fs::create_dir_all(tree.root().join(CLASS)).unwrap();
        tree
    }

    /// Zones given as (`intel-rapl:0:1`, `core`, energy in µJ), each with the range of 2^-14 J.
    pub fn with(zones: &[(&str, &str, u64)]) -> Self {
        let tree = Self::new();
        for (zone, name, energy) in zones {
            tree.zone(zone, name, *energy, Some(RANGE_61));
        }
        tree
    }

    pub fn zone(&self, zone: &str, name: &str, energy: u64, range: Option<u64>) {
        let device = self.root().join(path_of(zone));
        fs::create_dir_all(&device).unwrap();
        let control_type = zone.split(':').next().unwrap();
        for linked in [control_type, zone] {
            let link = self.root().join(CLASS).join(linked);
            if !link.exists() {
                let target = Path::new("../../..").join(path_of(linked));
                symlink(target, link).unwrap();
            }
        }
        fs::write(device.join("name"), format!("{name}\n")).unwrap();
        fs::write(device.join("energy_uj"), number(energy)).unwrap();
        if let Some(range) = range {
            fs::write(device.join("max_energy_range_uj"), format!("{range}\n")).unwrap();
        }
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn fs(&self) -> HostFs {
        HostFs::at(self.root()).unwrap()
    }

    pub fn meter(&self) -> Meter {
        Meter::open(&self.fs()).unwrap()
    }

    /// An online CPU of that package, die and core. CPUs are to be added by number.
    pub fn cpu(&self, cpu: u32, package: u32, die: u32, core: u32) {
        let cpus = self.root().join("sys/devices/system/cpu");
        let topology = cpus.join(format!("cpu{cpu}/topology"));
        fs::create_dir_all(&topology).unwrap();
        for (file, id) in [
            ("physical_package_id", package),
            ("die_id", die),
            ("core_id", core),
        ] {
            fs::write(topology.join(file), format!("{id}\n")).unwrap();
        }
        fs::write(cpus.join("online"), format!("0-{cpu}\n")).unwrap();
    }

    /// Sets the low half of a CPU's register; the file ends after the highest one's 8 bytes.
    pub fn register(&self, cpu: u32, register: u32, value: u32) {
        let dir = self.root().join(format!("dev/cpu/{cpu}"));
        fs::create_dir_all(&dir).unwrap();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join("msr"))
            .unwrap();
        let end = u64::from(register) + 8;
        file.set_len(file.metadata().unwrap().len().max(end))
            .unwrap();
        file.write_all_at(&value.to_le_bytes(), register.into())
            .unwrap();
    }

    /// What `/proc/cpuinfo` says of the processor.
    pub fn processor(&self, vendor: &str, family: u32, model: u32) {
        let text = format!(
            "vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nflags\t\t: fpu\n"
        );
        fs::write(self.root().join("proc/cpuinfo"), text).unwrap();
    }

    /// A file of a zone.
    pub fn file(&self, zone: &str, file: &str) -> PathBuf {
        self.root().join(path_of(zone)).join(file)
    }

    /// Sets a counter. The file keeps its length, so that no reader finds it empty.
    pub fn set(&self, zone: &str, energy: u64) {
        self.counter(zone)
            .write_all_at(number(energy).as_bytes(), 0)
            .unwrap();
    }

    /// A counter to be set again and again.
    pub fn counter(&self, zone: &str) -> File {
        OpenOptions::new()
            .write(true)
            .open(self.file(zone, "energy_uj"))
            .unwrap()
    }

    /// Replaces the text of a counter.
    pub fn write(&self, zone: &str, text: &str) {
        fs::write(self.file(zone, "energy_uj"), text).unwrap();
    }

    /// The energy between now and after `change`.
    pub fn measure(&self, meter: &mut Meter, change: impl FnOnce(&Tree)) -> Energy {
        let before = meter.read();
        change(self);
        meter.read().since(&before)
    }
}

/// A number of fixed width; the kernel's readers end at white space.
pub fn number(number: u64) -> String {
    format!("{number:<20}\n")
}

/// Below the root: a zone's device is inside that of the zone around it.
fn path_of(zone: &str) -> PathBuf {
    let mut path = PathBuf::from(DEVICES);
    let ends = zone
        .match_indices(':')
        .map(|(at, _)| at)
        .chain([zone.len()]);
    for end in ends {
        path.push(&zone[..end]);
    }
    path
}
