//! What the suites share. They run inside a guest of the testbed, one test after another and
//! with nobody else on the machine.
#![allow(clippy::unwrap_used)] // Here too, what goes wrong is a failed test.

use std::fs;
use std::io::ErrorKind;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use hostfs::{CpuSet, HostFs};

pub mod perf;

/// One of the testbed's kernel modules, until dropped.
pub struct Module {
    name: &'static str,
    loaded: bool,
}

impl Module {
    /// Loads it, with parameters like `unit_nj=10`.
    pub fn load(name: &'static str, parameters: &[&str]) -> Self {
        run("modprobe", &[&[name], parameters].concat());
        Self { name, loaded: true }
    }

    /// Changes a parameter while it runs.
    pub fn set(&self, parameter: &str, value: u64) {
        let path = format!("/sys/module/{}/parameters/{parameter}", self.name);
        fs::write(&path, value.to_string()).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Takes it out of the kernel; false if that does not let it go.
    pub fn unload(&mut self) -> bool {
        let status = Command::new("rmmod").arg(self.name).status();
        self.loaded = !status.is_ok_and(|status| status.success());
        !self.loaded
    }

    /// Unloads it and loads it again.
    pub fn reload(&mut self, parameters: &[&str]) {
        assert!(self.unload(), "rmmod {}", self.name);
        *self = Self::load(self.name, parameters);
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // A second panic while a failed test unwinds would hide the first.
        if self.loaded && !self.unload() && !std::thread::panicking() {
            panic!("rmmod {}: it is in use", self.name);
        }
    }
}

/// Runs a command that must succeed; returns what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Tells a thread beside a test to end, also when the test has failed.
pub struct EndOnDrop<'a>(pub &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The CPUs that are online.
pub fn online() -> CpuSet {
    HostFs::live()
        .read("sys/devices/system/cpu/online")
        .unwrap()
}

/// Takes a CPU offline, or brings it back.
pub fn set_online(cpu: u32, online: bool) {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    let value = if online { "1" } else { "0" };
    // The kernel refuses for a moment while a task holds it up.
    for _ in 0..100 {
        match fs::write(&path, value) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            other => return other.unwrap_or_else(|error| panic!("{path}: {error}")),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{path}: busy for a second");
}

/// Pins the calling thread.
pub fn pin(cpu: u32) {
    let id = core_affinity::CoreId { id: cpu as usize };
    assert!(core_affinity::set_for_current(id), "pinning to CPU {cpu}");
}

/// Runs a moment on each of these CPUs, so that a sleeping one counts its time up to now.
pub fn wake(cpus: &CpuSet) {
    let cpus: Vec<u32> = cpus.iter().collect();
    let waker = std::thread::spawn(move || cpus.into_iter().for_each(pin));
    waker.join().unwrap();
}

/// Whether a value is that one, give or take so many percent of it.
pub fn near(value: f64, wanted: f64, percent: f64) -> bool {
    (value - wanted).abs() <= wanted * percent / 100.0
}
