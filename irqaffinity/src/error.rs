//! What can go wrong when interrupts are read or moved.

use std::path::PathBuf;

use hostfs::{CpuSet, HostFs, OsError, Process};
use nix::errno::Errno;

use crate::irq::file;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an interrupt could not be read or moved, or irqbalance not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel takes no affinity for this IRQ from users, whichever it is (`EPERM`, or
    /// `EIO` before Linux 6.12): asking again is useless.
    #[error(
        "IRQ {irq}: the kernel lets nobody set its affinity ({os}): it is managed by its \
         driver, bound to its CPU, or its controller can't; leave it out"
    )]
    NotSettable {
        /// The IRQ.
        irq: u32,
        /// The kernel's answer.
        os: OsError,
    },
    /// No CPU of the set is online (`EINVAL`).
    #[error(
        "IRQ {irq}: none of the CPUs \"{cpus}\" is online: name one of /sys/devices/system/cpu/online"
    )]
    NoOnlineCpu {
        /// The IRQ.
        irq: u32,
        /// The CPUs that were asked for.
        cpus: CpuSet,
    },
    /// The CPUs have no interrupt vector left (`ENOSPC`).
    #[error(
        "IRQ {irq}: the CPUs {cpus} have no interrupt vector left: allow it more CPUs, or move others away first"
    )]
    NoVectors {
        /// The IRQ.
        irq: u32,
        /// The CPUs that were asked for.
        cpus: CpuSet,
    },
    /// A CPU is past what this kernel can have (`ERANGE`, `EOVERFLOW`).
    #[error(
        "IRQ {irq}: of the CPUs {cpus}, some are past what this kernel can have ({os}): see /sys/devices/system/cpu/possible"
    )]
    OutOfRange {
        /// The IRQ.
        irq: u32,
        /// The CPUs that were asked for.
        cpus: CpuSet,
        /// The kernel's answer.
        os: OsError,
    },
    /// There is no such IRQ, or no more: its device or driver has gone.
    #[error("IRQ {irq} is not there, or not any more: list them again")]
    Vanished {
        /// The IRQ.
        irq: u32,
    },
    /// irqbalance is not installed.
    #[error(
        "{program}: not found in {searched}: install it (Debian's and Fedora's package is called irqbalance)"
    )]
    ProgramNotFound {
        /// The program's name or path.
        program: String,
        /// Where it was looked for.
        searched: String,
    },
    /// The program is there but could not be started.
    #[error("{}: could not be started: {os}", program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The kernel's answer.
        os: OsError,
    },
    /// Only root may move interrupts.
    #[error("running irqbalance needs root: only root may move interrupts")]
    NotRoot,
    /// Another irqbalance runs: two would work against each other.
    #[error("{} (process {}) is running: pause or stop it first", daemon.name, daemon.pid)]
    DaemonRunning {
        /// The other one.
        daemon: Process,
    },
    /// Our irqbalance ended by itself.
    #[error("irqbalance ended by itself ({status}); its last words: {}", if output.is_empty() { "none" } else { output })]
    Died {
        /// Its exit status.
        status: String,
        /// The last lines that it wrote, of either stream.
        output: String,
    },
    /// Our irqbalance could not be watched or ended.
    #[error("irqbalance (process {pid}): {operation} failed: {os}")]
    Child {
        /// Its number.
        pid: u32,
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        os: OsError,
    },
    /// A file of the machine could not be read or written.
    #[error(transparent)]
    Host(#[from] hostfs::Error),
}

impl Error {
    /// What the kernel's answer to a new affinity means.
    pub(crate) fn of_setting(fs: &HostFs, irq: u32, cpus: &CpuSet, error: hostfs::Error) -> Self {
        let path = fs.full_path(file(irq, "smp_affinity_list"));
        let os = match &error {
            hostfs::Error::NotFound { path: at } if *at == path => return Error::Vanished { irq },
            hostfs::Error::NotPermitted { path: at, os, .. }
            | hostfs::Error::Os { path: at, os, .. }
                if *at == path =>
            {
                *os
            }
            // The record's own file, or an answer that says it all.
            _ => return Error::Host(error),
        };
        let cpus = cpus.clone();
        match Errno::from_raw(os.raw()) {
            // Old kernels say so of an IRQ that can't be set, all of one that has gone.
            Errno::EIO if !fs.exists(file(irq, "smp_affinity_list")) => Error::Vanished { irq },
            Errno::EPERM | Errno::EIO => Error::NotSettable { irq, os },
            Errno::EINVAL => Error::NoOnlineCpu { irq, cpus },
            Errno::ENOSPC => Error::NoVectors { irq, cpus },
            Errno::ERANGE | Errno::EOVERFLOW => Error::OutOfRange { irq, cpus, os },
            _ => Error::Host(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an errno that arrives from a write to IRQ 7's file becomes.
    fn answer(errno: Errno, there: bool) -> Error {
        let dir = tempfile::tempdir().unwrap();
        if there {
            std::fs::create_dir_all(dir.path().join("proc/irq/7")).unwrap();
            std::fs::write(dir.path().join("proc/irq/7/smp_affinity_list"), "0\n").unwrap();
        }
        let fs = HostFs::at(dir.path()).unwrap();
        let path = fs.full_path("proc/irq/7/smp_affinity_list");
        let os = OsError::from_raw(errno as i32);
        let error = match errno {
            Errno::EPERM | Errno::EACCES => hostfs::Error::NotPermitted {
                path,
                operation: "write",
                os,
            },
            Errno::EROFS => hostfs::Error::ReadOnly { path },
            Errno::ENOENT => hostfs::Error::NotFound { path },
            _ => hostfs::Error::Os {
                path,
                operation: "write",
                os,
            },
        };
        Error::of_setting(&fs, 7, &"1,3".parse().unwrap(), error)
    }

    #[test]
    fn each_answer_of_the_kernel_has_its_meaning() {
        assert!(matches!(
            answer(Errno::EPERM, true),
            Error::NotSettable { irq: 7, .. }
        ));
        assert!(matches!(
            answer(Errno::EIO, true),
            Error::NotSettable { irq: 7, .. }
        ));
        assert_eq!(answer(Errno::EIO, false), Error::Vanished { irq: 7 });
        assert_eq!(answer(Errno::ENOENT, false), Error::Vanished { irq: 7 });
        assert!(matches!(
            answer(Errno::EINVAL, true),
            Error::NoOnlineCpu { .. }
        ));
        assert!(matches!(
            answer(Errno::ENOSPC, true),
            Error::NoVectors { .. }
        ));
        assert!(matches!(
            answer(Errno::ERANGE, true),
            Error::OutOfRange { .. }
        ));
        assert!(matches!(
            answer(Errno::EOVERFLOW, true),
            Error::OutOfRange { .. }
        ));
        assert!(matches!(
            answer(Errno::EROFS, true),
            Error::Host(hostfs::Error::ReadOnly { .. })
        ));
        assert!(matches!(
            answer(Errno::EACCES, true),
            Error::Host(hostfs::Error::NotPermitted { .. })
        ));
        assert!(matches!(
            answer(Errno::ENOMEM, true),
            Error::Host(hostfs::Error::Os { .. })
        ));
    }

    #[test]
    fn an_answer_about_another_file_keeps_its_words() {
        let fs = HostFs::live();
        let error = hostfs::Error::Os {
            path: "/run/record.json".into(),
            operation: "write",
            os: OsError::from_raw(Errno::ENOSPC as i32),
        };
        let cpus = CpuSet::first(1);
        assert_eq!(
            Error::of_setting(&fs, 7, &cpus, error.clone()),
            Error::Host(error)
        );
    }

    #[test]
    fn messages_name_the_irq_the_answer_and_the_remedy() {
        let says = |errno| answer(errno, true).to_string();
        assert_eq!(
            says(Errno::EPERM),
            "IRQ 7: the kernel lets nobody set its affinity (Operation not permitted (os \
             error 1)): it is managed by its driver, bound to its CPU, or its controller \
             can't; leave it out"
        );
        assert_eq!(
            says(Errno::EINVAL),
            "IRQ 7: none of the CPUs \"1,3\" is online: name one of \
             /sys/devices/system/cpu/online"
        );
        assert_eq!(
            says(Errno::ENOSPC),
            "IRQ 7: the CPUs 1,3 have no interrupt vector left: allow it more CPUs, or move \
             others away first"
        );
        assert_eq!(
            says(Errno::ERANGE),
            "IRQ 7: of the CPUs 1,3, some are past what this kernel can have (Numerical \
             result out of range (os error 34)): see /sys/devices/system/cpu/possible"
        );
        assert_eq!(
            says(Errno::ENOENT),
            "IRQ 7 is not there, or not any more: list them again"
        );
        assert!(says(Errno::EROFS).contains("in a container?"));
        assert!(says(Errno::EACCES).contains("run as root"));
        let died = |output: &str| Error::Died {
            status: "exit status: 1".into(),
            output: output.into(),
        };
        assert_eq!(
            died("no such option").to_string(),
            "irqbalance ended by itself (exit status: 1); its last words: no such option"
        );
        assert!(died("").to_string().ends_with("its last words: none"));
    }
}
