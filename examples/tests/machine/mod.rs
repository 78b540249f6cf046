//! A captured machine with energy zones, and the commands that are run on it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// `floor((2^32 - 1) * 61035 / 1000)`: the unit of 2^-14 J.
pub const RANGE_61: u64 = 262_143_328_850;

/// A command as cargo lays it out beside its tests.
pub fn command(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().unwrap().parent().unwrap();
    let mut command = Command::new(target.join("examples").join(name));
    command.stdin(Stdio::null());
    command
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub fn assert_status(output: &Output, status: i32) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
}

/// Runs a command whose output nobody reads.
pub fn with_closed_stdout(command: &mut Command) -> Output {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    child.wait_with_output().unwrap()
}

pub struct Machine {
    dir: TempDir,
}

impl Machine {
    /// With zones given as (`intel-rapl:0:1`, `core`, energy in µJ).
    pub fn with(zones: &[(&str, &str, u64)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["proc", "sys/class/powercap"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let cpuinfo =
            "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\nflags\t\t: fpu\n";
        fs::write(dir.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        let machine = Self { dir };
        for (zone, name, energy) in zones {
            fs::create_dir_all(machine.zone(zone)).unwrap();
            fs::write(machine.zone(zone).join("name"), format!("{name}\n")).unwrap();
            let range = machine.zone(zone).join("max_energy_range_uj");
            fs::write(range, format!("{RANGE_61}\n")).unwrap();
            fs::write(machine.counter(zone), format!("{energy}\n")).unwrap();
        }
        machine
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn counter(&self, zone: &str) -> PathBuf {
        self.zone(zone).join("energy_uj")
    }

    fn zone(&self, zone: &str) -> PathBuf {
        self.root().join("sys/class/powercap").join(zone)
    }

    /// The command, reading this machine.
    pub fn command(&self, name: &str) -> Command {
        let mut command = command(name);
        command.arg("--root").arg(self.root());
        command
    }

    /// A line for `sh` that sets counters.
    pub fn setting(&self, zones: &[(&str, u64)]) -> String {
        let set = |(zone, energy): &(&str, u64)| {
            format!("echo {energy} > '{}'", self.counter(zone).display())
        };
        let lines: Vec<String> = zones.iter().map(set).collect();
        lines.join(" && ")
    }
}
