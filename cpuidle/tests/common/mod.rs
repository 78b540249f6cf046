//! A small `/sys/devices/system/cpu` tree.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use cpuidle::CpuIdle;
use hostfs::HostFs;
use tempfile::TempDir;

const CPUS: &str = "sys/devices/system/cpu";
pub const COUNTERS: [&str; 5] = ["usage", "time", "above", "below", "rejected"];

pub struct Tree {
    dir: TempDir,
}

impl Tree {
    /// A machine with these CPUs online, `intel_idle` and `menu`, and no states yet.
    pub fn new(online: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tree = Self { dir };
        tree.write("sys/devices/system/cpu/online", &format!("{online}\n"));
        tree.global("current_driver", "intel_idle\n");
        tree.global("current_governor", "menu\n");
        tree.global("current_governor_ro", "menu\n");
        tree.global("available_governors", "ladder menu teo \n");
        tree
    }

    /// States called POLL, C1 and C6 on each of the CPUs, every counter at 0.
    pub fn with_states(online: &str, cpus: u32) -> Self {
        let tree = Self::new(online);
        for cpu in 0..cpus {
            for (index, name) in ["POLL", "C1", "C6"].into_iter().enumerate() {
                tree.state(cpu, index as u32, name);
            }
        }
        tree
    }

    pub fn state(&self, cpu: u32, index: u32, name: &str) {
        for (file, text) in [
            ("name", name),
            ("desc", "MWAIT 0x20"),
            ("latency", "133"),
            ("residency", "600"),
            ("power", "4294967295"),
            ("default_status", "enabled"),
            ("disable", "0"),
        ] {
            self.write_state(cpu, index, file, &format!("{text}\n"));
        }
        self.set(cpu, index, [0; 5]);
    }

    /// Sets `usage`, `time`, `above`, `below` and `rejected`.
    pub fn set(&self, cpu: u32, index: u32, counters: [u64; 5]) {
        for (file, counter) in COUNTERS.into_iter().zip(counters) {
            self.write_state(cpu, index, file, &format!("{counter}\n"));
        }
    }

    pub fn write_state(&self, cpu: u32, index: u32, file: &str, text: &str) {
        fs::create_dir_all(self.state_dir(cpu, index)).unwrap();
        fs::write(self.state_dir(cpu, index).join(file), text).unwrap();
    }

    pub fn state_dir(&self, cpu: u32, index: u32) -> PathBuf {
        let state = format!("{CPUS}/cpu{cpu}/cpuidle/state{index}");
        self.root().join(state)
    }

    pub fn read_state(&self, cpu: u32, index: u32, file: &str) -> String {
        fs::read_to_string(self.state_dir(cpu, index).join(file)).unwrap()
    }

    pub fn global(&self, file: &str, text: &str) {
        self.write(&format!("{CPUS}/cpuidle/{file}"), text);
    }

    pub fn remove_global(&self, file: &str) {
        fs::remove_file(self.root().join(CPUS).join("cpuidle").join(file)).unwrap();
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn fs(&self) -> HostFs {
        HostFs::at(self.root()).unwrap()
    }

    pub fn idle(&self) -> CpuIdle {
        CpuIdle::open(&self.fs()).unwrap()
    }
}
