//! An open event of a whole CPU.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::path::PathBuf;

use nix::errno::Errno;
use perf_event::Builder;

use super::{Config, Pmu};
use crate::{Error, HostFs, OsError, Result};

const COUNT_BYTES: usize = 24;

/// A counter of a PMU on one CPU, for all that runs there. It counts from its opening on.
///
/// An open event keeps the PMU's module loaded (`EAGAIN` for who unloads it).
#[derive(Debug)]
pub struct Event {
    cpu: u32,
    full_path: PathBuf,
    file: File,
}

/// What an event has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Count {
    /// In the event's own counts; a PMU may count down, so it may be below 0.
    pub count: i64,
    /// For how many nanoseconds the event has been enabled. It stands still when the
    /// event's CPU is offline, while reads go on to answer.
    pub enabled_ns: u64,
    /// For how many of them it was counted; less where events had to share a counter.
    pub running_ns: u64,
}

impl Event {
    /// Opens an event for all processes on that CPU, counting.
    ///
    /// # Errors
    ///
    /// [`Error::NotThisMachine`] below another root; [`Error::NotPermitted`] without
    /// `CAP_PERFMON` while `perf_event_paranoid` is above 0; [`Error::Offline`];
    /// [`Error::NotFound`] for a PMU that is gone; [`Error::Os`], such as `EINVAL` for an
    /// event that the PMU does not have.
    pub fn open(fs: &HostFs, pmu: &Pmu, config: Config, cpu: u32) -> Result<Self> {
        fs.require_this_machine("a perf event")?;
        let full_path = fs.full_path(pmu.path());
        let mut builder = Builder::new().any_pid().one_cpu(cpu as usize);
        // What is excluded by default, a PMU that can't exclude refuses with EINVAL.
        builder.include_kernel().include_hv().enabled(true);
        let attributes = builder.attrs_mut();
        attributes.type_ = pmu.kind;
        attributes.config = config.config;
        attributes.__bindgen_anon_3.config1 = config.config1;
        attributes.__bindgen_anon_4.config2 = config.config2;
        let counter = builder.build().map_err(|error| {
            let os = OsError::from(&error);
            if os.is(Errno::ENODEV) || os.is(Errno::ENXIO) {
                let path = full_path.clone();
                Error::Offline { path, cpu }
            } else {
                Error::from_os(&full_path, "open an event", os)
            }
        })?;
        // SAFETY: the counter gives its descriptor away, so nobody else owns it.
        let file = unsafe { File::from_raw_fd(counter.into_raw_fd()) };
        Ok(Self {
            cpu,
            full_path,
            file,
        })
    }

    /// The CPU that it was opened on.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Reads the count, without allocating.
    ///
    /// # Errors
    ///
    /// [`Error::ShortRead`] for an event that the kernel gave up, [`Error::Os`].
    pub fn read(&mut self) -> Result<Count> {
        // `perf_event::Counter::read` asserts what the kernel answers.
        let mut bytes = [0; COUNT_BYTES];
        match self.file.read(&mut bytes) {
            Ok(COUNT_BYTES) => Ok(count(&bytes)),
            Ok(got) => Err(Error::ShortRead {
                path: self.full_path.clone(),
                expected: COUNT_BYTES,
                got,
            }),
            Err(error) => Err(Error::from_io(&self.full_path, "read an event", &error)),
        }
    }
}

/// `struct read_format` with both times (`perf_event_open(2)`).
fn count(bytes: &[u8; COUNT_BYTES]) -> Count {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_ne_bytes(word)
    };
    Count {
        count: word(0) as i64,
        enabled_ns: word(8),
        running_ns: word(16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_three_words() {
        let mut bytes = [0; COUNT_BYTES];
        bytes[..8].copy_from_slice(&(-5i64).to_ne_bytes());
        bytes[8..16].copy_from_slice(&7u64.to_ne_bytes());
        bytes[16..].copy_from_slice(&6u64.to_ne_bytes());
        let count = count(&bytes);
        assert_eq!(
            (count.count, count.enabled_ns, count.running_ns),
            (-5, 7, 6)
        );
    }

    /// A PMU that every x86 machine has; elsewhere there is nothing to open.
    #[test]
    fn the_time_stamp_counter_of_this_machine_advances() {
        let fs = HostFs::live();
        let Ok(pmu) = Pmu::read(&fs, "msr") else {
            println!("no such PMU here");
            return;
        };
        let tsc = pmu.event("tsc").unwrap().config.unwrap();
        let cpu = pmu.cpus.min().unwrap();
        match Event::open(&fs, &pmu, tsc, cpu) {
            Ok(mut event) => {
                let first = event.read().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(5));
                let second = event.read().unwrap();
                assert!(second.count > first.count);
                assert!(second.enabled_ns >= first.enabled_ns + 5_000_000);
                assert!(matches!(
                    Event::open(&fs, &pmu, tsc, 8000),
                    Err(Error::Offline { .. } | Error::Os { .. })
                ));
            }
            Err(Error::NotPermitted { .. }) => println!("not permitted here"),
            Err(other) => panic!("{other}"),
        }
    }
}
