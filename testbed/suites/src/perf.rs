//! A reader of the perf PMU `power`, as small as can be: what is measured by it and by
//! powercap at once must agree.

use std::fs::File;
use std::io::{Error, Read};
use std::mem::size_of;
use std::os::fd::FromRawFd;

use hostfs::{CpuSet, HostFs};

const PMU: &str = "sys/bus/event_source/devices/power";

/// `struct perf_event_attr` as far as its first version goes (PERF_ATTR_SIZE_VER0).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

/// PERF_FORMAT_TOTAL_TIME_ENABLED
const TIME_ENABLED: u64 = 1;

/// One event of the PMU on one CPU.
pub struct Event {
    file: File,
    joules: f64,
}

/// The CPUs that the PMU's events are opened on, one of each package.
pub fn cpumask() -> CpuSet {
    HostFs::live().read(format!("{PMU}/cpumask")).unwrap()
}

impl Event {
    /// Opens an event such as `energy-pkg`, as its files in the PMU's folder describe it.
    pub fn open(name: &str, cpu: u32) -> Result<Self, Error> {
        let fs = HostFs::live();
        let text = |file: &str| fs.read_text(format!("{PMU}/{file}")).unwrap();
        assert_eq!(text("format/event"), "config:0-7");
        assert_eq!(text(&format!("events/{name}.unit")), "Joules");
        let event = text(&format!("events/{name}"));
        let config = event.strip_prefix("event=0x").unwrap();
        let attributes = Attributes {
            kind: text("type").parse().unwrap(),
            size: size_of::<Attributes>() as u32,
            config: u64::from_str_radix(config, 16).unwrap(),
            read_format: TIME_ENABLED,
            ..Attributes::default()
        };
        let (any_pid, no_group, no_flags) = (-1, -1, 0);
        // SAFETY: the structure is laid out as the kernel's first version, and says so.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &attributes,
                any_pid,
                cpu,
                no_group,
                no_flags,
            )
        };
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
            file: unsafe { File::from_raw_fd(fd as i32) },
            joules: text(&format!("events/{name}.scale")).parse().unwrap(),
        })
    }

    /// Joules since it was opened, and for how many seconds it has counted.
    pub fn read(&mut self) -> (f64, f64) {
        let mut bytes = [0; 16];
        self.file.read_exact(&mut bytes).unwrap();
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        (word(0) as f64 * self.joules, word(8) as f64 * 1e-9)
    }
}
