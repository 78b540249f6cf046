//! What can go wrong.

use std::path::PathBuf;

use hostfs::CpuSet;

use crate::{Absent, StateSelection};

/// Why idle states could not be described, read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No online CPU has idle states.
    #[error("{}: no idle states: {reason}", path.display())]
    Absent {
        /// Where they were looked for.
        path: PathBuf,
        /// Which case it is.
        reason: Absent,
    },
    /// None of the CPUs has such a state.
    #[error("no idle state {asked}: there are {}", there.join(", "))]
    UnknownState {
        /// What was asked for.
        asked: StateSelection,
        /// The states of these CPUs, each as its index and name.
        there: Vec<String>,
    },
    /// The kernel has no such governor.
    #[error("no idle governor {asked:?}: there are {}", there.join(", "))]
    UnknownGovernor {
        /// What was asked for.
        asked: String,
        /// The governors that there are.
        there: Vec<String>,
    },
    /// The CPUs are offline, have no idle states, or do not exist.
    #[error("CPUs {asked} have no idle states now: those that have are {there}")]
    UnknownCpus {
        /// The CPUs of those asked for that are not there.
        asked: CpuSet,
        /// The CPUs that have idle states.
        there: CpuSet,
    },
    /// The kernel was built or started so that the governor can't be changed.
    #[error("{}: not there: the idle governor can be changed since Linux 5.8, before only when started with cpuidle_sysfs_switch", path.display())]
    GovernorFixed {
        /// The file that one would write to.
        path: PathBuf,
    },
    /// The change was refused for lack of privilege.
    #[error("{}: not permitted: run as root (CAP_SYS_ADMIN is needed)", path.display())]
    NotPermitted {
        /// The file.
        path: PathBuf,
    },
    /// The kernel took the value, and then shows another one.
    #[error("{}: wrote {wrote:?}, but it holds {holds:?}", path.display())]
    NotTaken {
        /// The file.
        path: PathBuf,
        /// What was written.
        wrote: String,
        /// What it holds.
        holds: String,
    },
    /// The machine could not be read or changed.
    #[error(transparent)]
    Host(#[from] hostfs::Error),
}

/// Why one state's counters could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Fault {
    /// The CPU is offline: its files may be gone, or readable and frozen.
    #[error("the CPU is offline")]
    Offline,
    /// The state is not there any more.
    #[error("not there any more")]
    Gone,
    /// Another state is found in its place: another driver was registered.
    #[error("another state, {now:?}, took its place")]
    Replaced {
        /// The name that is found there now.
        now: String,
    },
    /// A file holds no number.
    #[error("expected a number, found {text:?}")]
    Malformed {
        /// The start of what it holds.
        text: String,
    },
    /// The kernel refused.
    #[error("not permitted")]
    NotPermitted,
    /// The kernel answered otherwise.
    #[error("{message}")]
    Failed {
        /// The file and the kernel's answer.
        message: String,
    },
}

impl From<hostfs::Error> for Fault {
    fn from(error: hostfs::Error) -> Self {
        /// `include/uapi/asm-generic/errno-base.h`: the state's device is gone.
        const ENODEV: i32 = 19;
        match error {
            hostfs::Error::NotFound { .. } => Fault::Gone,
            hostfs::Error::NotPermitted { .. } => Fault::NotPermitted,
            hostfs::Error::Malformed { text, .. } => Fault::Malformed { text },
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

    #[test]
    fn the_kernels_answers_are_told_apart() {
        let os = |errno| hostfs::Error::Os {
            path: "/sys/x".into(),
            operation: "read",
            os: OsError::from_raw(errno),
        };
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
        assert_eq!(
            Fault::from(hostfs::Error::malformed("/sys/x", "a number", "x")).to_string(),
            "expected a number, found \"x\""
        );
    }

    #[test]
    fn a_refusal_and_a_value_that_was_not_taken_are_named() {
        let path = PathBuf::from("/sys/x/disable");
        let refused = Error::NotPermitted { path: path.clone() };
        assert_eq!(
            refused.to_string(),
            "/sys/x/disable: not permitted: run as root (CAP_SYS_ADMIN is needed)"
        );
        let not_taken = Error::NotTaken {
            path,
            wrote: "1".into(),
            holds: "0".into(),
        };
        assert_eq!(
            not_taken.to_string(),
            "/sys/x/disable: wrote \"1\", but it holds \"0\""
        );
    }
}
