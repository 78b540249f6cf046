//! Why there is no energy to read.

use std::path::PathBuf;

use crate::{Backend, Skipped, Watts};

/// Why no energy counter of this machine can be read, and what would help.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no powercap at all.
    #[error("{}: not there: {}", path.display(), no_powercap(*virtual_machine))]
    NoPowercap {
        /// Where it was looked for.
        path: PathBuf,
        /// The CPU says that a hypervisor is below this kernel.
        virtual_machine: bool,
    },
    /// Powercap is there, but no RAPL zone in it.
    #[error("{}: no RAPL zones: {}", path.display(), no_zones(*virtual_machine))]
    NoZones {
        /// Where they were looked for.
        path: PathBuf,
        /// The CPU says that a hypervisor is below this kernel.
        virtual_machine: bool,
    },
    /// There are links to zones, but they lead nowhere.
    #[error("{}: its links lead nowhere: /sys/devices/virtual/powercap is masked, as container engines do because of CVE-2020-8694: run on the host, or have the engine unmask it (podman: --security-opt unmask=/sys/devices/virtual/powercap)", path.display())]
    Masked {
        /// The directory with the links.
        path: PathBuf,
    },
    /// There are zones, but the kernel lets this user read none of them.
    #[error("{}: not permitted: energy counters are for root alone since CVE-2020-8694: run as root or with CAP_DAC_READ_SEARCH", path.display())]
    NotPermitted {
        /// The first zone's counter.
        path: PathBuf,
        /// Every zone that was found.
        skipped: Vec<Skipped>,
    },
    /// There are zones, none of which can be read, for several reasons.
    #[error("no energy zone can be read: {}", list(skipped))]
    NothingReadable {
        /// Every zone that was found.
        skipped: Vec<Skipped>,
    },
    /// There is no such backend at all.
    #[error("{}: not there: {}", path.display(), no_backend(*backend, *virtual_machine))]
    NoBackend {
        /// The backend.
        backend: Backend,
        /// Where it was looked for.
        path: PathBuf,
        /// The CPU says that a hypervisor is below this kernel.
        virtual_machine: bool,
    },
    /// perf events count on the running machine, and this root is another one.
    #[error("{}: perf events can be opened on the running machine only", path.display())]
    OtherMachine {
        /// The PMU, below the root.
        path: PathBuf,
    },
    /// None of the counters that can be read are what was asked for.
    #[error("no energy counter {name:?}: there are {}", there.join(", "))]
    NoSuchDomain {
        /// An id or a kind that was asked for.
        name: String,
        /// The ids of what there is.
        there: Vec<String>,
    },
    /// No thread could be started.
    #[error("no sampling thread: {0}")]
    Thread(String),
    /// The tolerance is none.
    #[error("tolerance {0} %: must be 0 or more")]
    Tolerance(f64),
    /// The option is not a power that a processor may draw.
    #[error("power bound {0}: must be a finite power above 0 W")]
    PowerBound(Watts),
    /// The machine could not be read.
    #[error(transparent)]
    Host(#[from] hostfs::Error),
}

fn no_backend(backend: Backend, virtual_machine: bool) -> &'static str {
    match backend {
        _ if virtual_machine => NO_COUNTERS_IN_A_GUEST,
        Backend::Perf => {
            "the driver is not there (modprobe rapl, CONFIG_PERF_EVENTS_INTEL_RAPL, for AMD \
             too), or it does not know this processor"
        }
        Backend::Msr => {
            "the processor has no energy registers that this crate knows, or they are not \
             offered (modprobe msr, CONFIG_X86_MSR)"
        }
        Backend::Powercap => no_powercap(false),
    }
}

const NO_COUNTERS_IN_A_GUEST: &str = "this is a virtual machine, and its hypervisor offers no \
     energy counters: measure on the host";

fn no_powercap(virtual_machine: bool) -> &'static str {
    if virtual_machine {
        NO_COUNTERS_IN_A_GUEST
    } else {
        "the kernel is built without CONFIG_POWERCAP, or /sys is hidden by a container: use \
         a kernel with CONFIG_INTEL_RAPL, on the host"
    }
}

fn no_zones(virtual_machine: bool) -> &'static str {
    if virtual_machine {
        NO_COUNTERS_IN_A_GUEST
    } else {
        "the driver is not loaded (modprobe intel_rapl_msr, for AMD too), the kernel does \
         not know this processor's counters, or a container hides them"
    }
}

fn list(skipped: &[Skipped]) -> String {
    let each: Vec<String> = skipped.iter().map(Skipped::to_string).collect();
    each.join("; ")
}

/// Why one zone could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Fault {
    /// The file is not there: masked by a container, unloaded, or it never had a counter.
    #[error("not there")]
    Gone,
    /// The kernel refused.
    #[error("not permitted: run as root or with CAP_DAC_READ_SEARCH")]
    NotPermitted,
    /// The kernel let this user open no event of a whole CPU.
    #[error("not permitted: run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to 0 or less{}", is(*paranoid))]
    EventsNotPermitted {
        /// `perf_event_paranoid`, where it could be read.
        paranoid: Option<i32>,
    },
    /// The kernel let this user read no registers.
    #[error("not permitted: run as root, with CAP_SYS_RAWIO")]
    RegistersNotPermitted,
    /// The CPU by which it was read is offline, and no other of its package or core runs.
    #[error("CPU {cpu} is offline, and no other one counts the same")]
    Offline {
        /// The CPU.
        cpu: u32,
    },
    /// The event's CPU is offline: the event goes on to answer, but its count stands still.
    #[error("the event's CPU {cpu} is offline, and its count stands still")]
    Frozen {
        /// The CPU.
        cpu: u32,
    },
    /// The event was enabled, and the kernel never counted it.
    #[error("the event was never counted")]
    NeverCounted,
    /// The event had to share a counter: what it counted is not all.
    #[error("the event was counted for a part of the time only")]
    CountedPartly,
    /// The kernel gave fewer bytes than a counter has.
    #[error("read {got} bytes of {expected}")]
    Short {
        /// How many bytes a counter has.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// The file holds no number.
    #[error("expected a number of microjoules, found {text:?}")]
    Malformed {
        /// The start of what it holds.
        text: String,
    },
    /// The zone's name is none that this crate knows.
    #[error("unknown kind of zone {name:?}")]
    UnknownKind {
        /// The name.
        name: String,
    },
    /// The zone went away and another one came up in its place.
    #[error("another zone, {now:?}, took its place")]
    Replaced {
        /// The name that is found there now.
        now: String,
    },
    /// The kernel answered otherwise, such as `EINVAL` where the counter can't be read.
    #[error("{message}")]
    Failed {
        /// The file and the kernel's answer.
        message: String,
    },
}

fn is(paranoid: Option<i32>) -> String {
    paranoid.map_or(String::new(), |paranoid| format!(" (it is {paranoid})"))
}

impl From<hostfs::Error> for Fault {
    fn from(error: hostfs::Error) -> Self {
        /// `include/uapi/asm-generic/errno-base.h`: the zone's device is gone.
        const ENODEV: i32 = 19;
        match error {
            hostfs::Error::NotFound { .. } => Fault::Gone,
            hostfs::Error::NotPermitted { .. } => Fault::NotPermitted,
            hostfs::Error::Malformed { text, .. } => Fault::Malformed { text },
            hostfs::Error::ShortRead { expected, got, .. } => Fault::Short { expected, got },
            hostfs::Error::Offline { cpu, .. } => Fault::Offline { cpu },
            other if other.os().is_some_and(|os| os.raw() == ENODEV) => Fault::Gone,
            other => Fault::Failed {
                message: other.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hostfs::OsError;

    fn os(errno: i32) -> hostfs::Error {
        hostfs::Error::Os {
            path: "/sys/x".into(),
            operation: "read",
            os: OsError::from_raw(errno),
        }
    }

    #[test]
    fn the_kernels_answers_are_told_apart() {
        let path = PathBuf::from("/sys/x");
        assert_eq!(Fault::from(hostfs::Error::NotFound { path }), Fault::Gone);
        assert_eq!(Fault::from(os(19)), Fault::Gone, "ENODEV");
        assert_eq!(
            Fault::from(os(22)).to_string(),
            "/sys/x: read failed: Invalid argument (os error 22)"
        );
        let refused = hostfs::Error::NotPermitted {
            path: "/sys/x".into(),
            operation: "open",
            os: OsError::from_raw(13),
        };
        assert_eq!(Fault::from(refused), Fault::NotPermitted);
        let text = hostfs::Error::malformed("/sys/x", "a number", "1e9");
        assert_eq!(
            Fault::from(text).to_string(),
            "expected a number of microjoules, found \"1e9\""
        );
    }

    #[test]
    fn each_backend_has_its_own_remedy() {
        let message = |backend, virtual_machine| {
            let path = PathBuf::from("/x");
            Error::NoBackend {
                backend,
                path,
                virtual_machine,
            }
            .to_string()
        };
        assert!(message(Backend::Perf, false).contains("CONFIG_PERF_EVENTS_INTEL_RAPL"));
        assert!(message(Backend::Msr, false).contains("modprobe msr"));
        assert!(message(Backend::Powercap, false).contains("CONFIG_POWERCAP"));
        assert!(message(Backend::Msr, true).contains("measure on the host"));
        assert_eq!(
            Fault::EventsNotPermitted { paranoid: Some(2) }.to_string(),
            "not permitted: run as root or with CAP_PERFMON, or set \
             kernel.perf_event_paranoid to 0 or less (it is 2)"
        );
        let short = hostfs::Error::ShortRead {
            path: "/dev/cpu/0/msr".into(),
            expected: 8,
            got: 4,
        };
        assert_eq!(Fault::from(short).to_string(), "read 4 bytes of 8");
        let offline = hostfs::Error::Offline {
            path: "/dev/cpu/3/msr".into(),
            cpu: 3,
        };
        assert!(
            Fault::from(offline)
                .to_string()
                .starts_with("CPU 3 is offline")
        );
    }

    #[test]
    fn each_case_says_what_would_help() {
        let path = PathBuf::from("/sys/class/powercap");
        let message = |error: Error| error.to_string();
        let absent = |virtual_machine| Error::NoPowercap {
            path: path.clone(),
            virtual_machine,
        };
        assert!(message(absent(true)).contains("measure on the host"));
        assert!(message(absent(false)).contains("CONFIG_POWERCAP"));
        let empty = |virtual_machine| Error::NoZones {
            path: path.clone(),
            virtual_machine,
        };
        assert!(message(empty(true)).contains("measure on the host"));
        assert!(message(empty(false)).contains("modprobe intel_rapl_msr"));
        assert!(message(Error::Masked { path: path.clone() }).contains("unmask"));
        assert!(message(Error::PowerBound(Watts(-1.0))).starts_with("power bound -1.000 W"));
    }
}
