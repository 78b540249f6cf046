//! The one error type.

use std::io;

use hostfs::CpuSet;

use crate::TransportKind;

/// Why a ring could not be built or did not reach its end.
///
/// Rings and stops are numbered from 0, in the order in which they were given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is no transport's.
    #[error("unknown transport {name:?}: choose one of {}", TransportKind::names())]
    UnknownTransport {
        /// The name that was asked for.
        name: String,
    },

    /// Nothing to run.
    #[error("no ring was given: call ring() at least once")]
    NoRings,

    /// A ring of no stop or of one has nobody to pass its token to.
    #[error("ring {ring} has {stops} stop(s): a token needs at least 2 to be passed")]
    TooFewStops {
        /// The ring.
        ring: usize,
        /// How many stops it was given.
        stops: usize,
    },

    /// A limit of 0 loops or of no time.
    #[error("the limit is {limit}: nothing would be measured; ask for at least 1 loop or 1 ns")]
    EmptyLimit {
        /// The limit, as words.
        limit: &'static str,
    },

    /// [`Limit::UntilStopped`](crate::Limit::UntilStopped) with no
    /// [`Stopper`](crate::Stopper) that could stop it.
    #[error("the rings are to run until stopped, but nobody can stop them: give a stopper()")]
    NeverEnds,

    /// Two stops that spin on one CPU would wait a whole time slice for each hop.
    #[error(
        "{stops} stops would spin on CPU {cpu}, each keeping the others from running: a \
         spinning stop needs a CPU of its own, over all rings (usable here: {usable}); or \
         choose a transport that blocks"
    )]
    SpinShared {
        /// The first CPU with more than one stop.
        cpu: u32,
        /// How many stops of all rings are on it.
        stops: usize,
        /// The CPUs that this process can use.
        usable: CpuSet,
    },

    /// The machine can't have such a CPU (`/sys/devices/system/cpu/possible`).
    #[error("there is no CPU {cpu} on this machine: it can have {possible}")]
    NoSuchCpu {
        /// The CPU asked for.
        cpu: u32,
        /// The CPUs that the kernel is prepared for.
        possible: CpuSet,
    },

    /// The CPU is switched off (`/sys/devices/system/cpu/online`).
    #[error(
        "CPU {cpu} is offline: choose one of {online}, or switch it on \
         (write 1 to /sys/devices/system/cpu/cpu{cpu}/online)"
    )]
    CpuOffline {
        /// The CPU asked for.
        cpu: u32,
        /// The CPUs that are online.
        online: CpuSet,
    },

    /// The CPU is online, but the process's control group doesn't have it
    /// (`kernel/cgroup/cpuset.c`).
    #[error(
        "CPU {cpu} is online but outside this process's cpuset: choose one of {usable}, or \
         widen the cpuset (cpuset.cpus of its control group, or the container's CPU list)"
    )]
    CpuOutsideCpuset {
        /// The CPU asked for.
        cpu: u32,
        /// The CPUs that this process can use.
        usable: CpuSet,
    },

    /// `sched_setaffinity` failed and the kernel's lists of CPUs don't tell why.
    #[error(
        "sched_setaffinity to CPU {cpu}: {source}; usable here: {usable} (EINVAL: not there, \
         offline or outside the cpuset; EPERM: a container's or sandbox's filter)"
    )]
    Pin {
        /// The CPU asked for.
        cpu: u32,
        /// The CPUs that this process can use.
        usable: CpuSet,
        /// The kernel's answer.
        source: io::Error,
    },

    /// `sched_setaffinity` answered that all is well, and the mask is another.
    #[error("pinned to CPU {cpu}, but the thread's mask reads {found}: is it being moved?")]
    PinIgnored {
        /// The CPU asked for.
        cpu: u32,
        /// The mask that the thread found on itself.
        found: CpuSet,
    },

    /// The affinity of a thread can't be read or set at all.
    #[error("reading the usable CPUs (sched_getaffinity): {source}; is there a sandbox?")]
    Affinity {
        /// The answer of the kernel or of the standard library.
        source: io::Error,
    },

    /// No descriptors or memory for a ring.
    #[error(
        "making the {transport}s of ring {ring}: {source} (a pipe takes two descriptors a \
         stop: EMFILE means that `ulimit -n` must be raised)"
    )]
    Create {
        /// The ring.
        ring: usize,
        /// Its transport.
        transport: TransportKind,
        /// The kernel's answer.
        source: io::Error,
    },

    /// No thread for a stop.
    #[error(
        "starting the thread of ring {ring}, stop {stop}: {source} (EAGAIN: `ulimit -u` or \
         pids.max of the control group is reached)"
    )]
    Spawn {
        /// The ring.
        ring: usize,
        /// The stop.
        stop: usize,
        /// The kernel's answer.
        source: io::Error,
    },

    /// A hop failed.
    #[error("ring {ring}, stop {stop} (CPU {cpu}): {call}: {source}")]
    Hop {
        /// The ring.
        ring: usize,
        /// The stop.
        stop: usize,
        /// The CPU that the stop was pinned to.
        cpu: u32,
        /// The system call.
        call: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },

    /// The stop before this one, or the one after it, is gone without having said so; that
    /// is, something outside this crate closed a descriptor of the ring.
    #[error(
        "ring {ring}, stop {stop} (CPU {cpu}): the next or the previous stop hung up; does \
         other code of this program close descriptors that aren't its own?"
    )]
    HungUp {
        /// The ring.
        ring: usize,
        /// The stop that noticed.
        stop: usize,
        /// The CPU that the stop was pinned to.
        cpu: u32,
    },

    /// A stop's thread panicked.
    #[error("ring {ring}, stop {stop} (CPU {cpu}) panicked: {message}")]
    Panicked {
        /// The ring.
        ring: usize,
        /// The stop.
        stop: usize,
        /// The CPU that the stop was pinned to.
        cpu: u32,
        /// What the panic said.
        message: String,
    },

    /// During the run a stop was no longer pinned to its CPU. The kernel widens the mask,
    /// without telling, when the CPU goes offline (`select_fallback_rq`,
    /// `kernel/sched/core.c`) or leaves the cpuset; and any process of the same user may
    /// change it.
    #[error(
        "ring {ring}, stop {stop} lost CPU {cpu}, {}: its mask became {}",
        if *.offline { "which went offline" } else {
            "which is still online (was its affinity or cpuset changed, e.g. by taskset?)"
        },
        if .found.is_empty() { "empty".to_owned() } else { .found.to_string() }
    )]
    LostCpu {
        /// The ring.
        ring: usize,
        /// The stop.
        stop: usize,
        /// The CPU that the stop was pinned to.
        cpu: u32,
        /// The active CPUs of its mask when that was noticed; it may be empty.
        found: CpuSet,
        /// Whether the CPU was offline by then.
        offline: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(errno: i32) -> io::Error {
        io::Error::from_raw_os_error(errno)
    }

    fn assert_says(error: Error, parts: &[&str]) {
        let message = error.to_string();
        for part in parts {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    }

    #[test]
    fn each_message_says_where_what_and_what_to_do() {
        let (ring, stop, cpu) = (2, 1, 7);
        let place = "ring 2, stop 1 (CPU 7)";
        let usable: CpuSet = [0, 1, 2].into_iter().collect();
        let source = answer(libc::EPERM);
        assert_says(
            Error::Pin {
                cpu,
                usable,
                source,
            },
            &[
                "sched_setaffinity to CPU 7",
                "os error 1",
                "usable here: 0-2",
                "filter",
            ],
        );
        let found: CpuSet = [0, 7].into_iter().collect();
        assert_says(
            Error::PinIgnored { cpu, found },
            &["pinned to CPU 7", "reads 0,7", "moved?"],
        );
        let source = answer(libc::ENOSYS);
        assert_says(
            Error::Affinity { source },
            &["sched_getaffinity", "os error 38", "sandbox"],
        );
        let (transport, source) = (TransportKind::Pipe, answer(libc::EMFILE));
        assert_says(
            Error::Create {
                ring,
                transport,
                source,
            },
            &["the pipes of ring 2", "os error 24", "`ulimit -n`"],
        );
        let source = answer(libc::EAGAIN);
        assert_says(
            Error::Spawn { ring, stop, source },
            &["ring 2, stop 1", "os error 11", "`ulimit -u`"],
        );
        let (call, source) = ("read", answer(libc::EBADF));
        assert_says(
            Error::Hop {
                ring,
                stop,
                cpu,
                call,
                source,
            },
            &[place, "read", "os error 9"],
        );
        assert_says(
            Error::HungUp { ring, stop, cpu },
            &[place, "hung up", "close descriptors"],
        );
    }

    #[test]
    fn a_lost_cpu_may_be_offline_and_its_mask_empty() {
        let error = Error::LostCpu {
            ring: 2,
            stop: 1,
            cpu: 7,
            found: CpuSet::new(),
            offline: true,
        };
        assert_eq!(
            error.to_string(),
            "ring 2, stop 1 lost CPU 7, which went offline: its mask became empty"
        );
    }
}
