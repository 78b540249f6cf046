//! Which CPUs a thread may use, pinning to one of them, and why that was refused.

use std::io;
use std::path::Path;
use std::thread;

use hostfs::CpuSet;

use crate::Error;
use crate::sys::{self, MAX_CPUS, Mask};

/// Where the kernel lists its CPUs (`drivers/base/cpu.c`).
const CPU_DIR: &str = "/sys/devices/system/cpu";

/// `core_affinity` aborts the process for ids from here on.
const CORE_AFFINITY_LIMIT: u32 = 1024;

/// The CPUs that the calling thread's own affinity mask allows, offline ones left out
/// (`sched_getaffinity`, `kernel/sched/syscalls.c`).
///
/// A mask inherited from `taskset` or from a parent narrows this, though it doesn't bind a
/// ring: see [`usable_cpus`].
///
/// # Errors
///
/// [`Error::Affinity`] when the call is refused, e.g. by a container's filter.
pub fn allowed_cpus() -> Result<CpuSet, Error> {
    sys::affinity(0).map_err(|source| Error::Affinity { source })
}

/// The CPUs that a ring of this process can use: online and in its cpuset, whatever mask the
/// calling thread inherited.
///
/// It is what the kernel leaves of a mask of all CPUs, put on a thread made for the purpose;
/// the caller's own mask stays as it is.
///
/// # Errors
///
/// [`Error::Affinity`] when the call is refused, e.g. by a container's filter, or when no
/// thread can be started.
pub fn usable_cpus() -> Result<CpuSet, Error> {
    let ask = || {
        Mask::all().set()?;
        sys::affinity(0)
    };
    thread::scope(|scope| {
        let asked = thread::Builder::new().spawn_scoped(scope, ask)?;
        asked
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the asking thread panicked")))
    })
    .map_err(|source| Error::Affinity { source })
}

/// Pins the calling thread to one CPU and makes sure of it.
pub(crate) fn pin(cpu: u32) -> Result<(), Error> {
    let by_crate = cpu < CORE_AFFINITY_LIMIT
        && core_affinity::set_for_current(core_affinity::CoreId { id: cpu as usize });
    if !by_crate {
        set(cpu).map_err(|source| refused(cpu, source))?;
    }
    let found = allowed_cpus()?;
    if is_only(&found, cpu) {
        Ok(())
    } else {
        Err(Error::PinIgnored { cpu, found })
    }
}

/// Whether the set is this one CPU.
pub(crate) fn is_only(set: &CpuSet, cpu: u32) -> bool {
    set.len() == 1 && set.contains(cpu)
}

/// Whether the kernel lists the CPU as offline; `false` also when it lists nothing.
pub(crate) fn is_offline(cpu: u32) -> bool {
    list(Path::new(CPU_DIR), "online").is_some_and(|online| !online.contains(cpu))
}

/// Why the kernel doesn't let this process use the CPU.
pub(crate) fn refused(cpu: u32, source: io::Error) -> Error {
    match usable_cpus() {
        Ok(usable) => why(Path::new(CPU_DIR), cpu, usable, source),
        Err(error) => error,
    }
}

/// As `sched_setaffinity`, but never with a mask of absurd size.
fn set(cpu: u32) -> io::Result<()> {
    if cpu < MAX_CPUS {
        Mask::of(cpu).set()
    } else {
        Err(io::Error::from_raw_os_error(libc::EINVAL))
    }
}

/// EINVAL has three causes, which the lists of CPUs tell apart.
fn why(cpu_dir: &Path, cpu: u32, usable: CpuSet, source: io::Error) -> Error {
    let lists = (list(cpu_dir, "possible"), list(cpu_dir, "online"));
    match lists {
        _ if source.raw_os_error() != Some(libc::EINVAL) => Error::Pin {
            cpu,
            usable,
            source,
        },
        (Some(possible), _) if !possible.contains(cpu) => Error::NoSuchCpu { cpu, possible },
        (_, Some(online)) if !online.contains(cpu) => Error::CpuOffline { cpu, online },
        (Some(_), Some(_)) => Error::CpuOutsideCpuset { cpu, usable },
        _ => Error::Pin {
            cpu,
            usable,
            source,
        },
    }
}

/// One of the kernel's lists of CPUs, where it can be read.
fn list(cpu_dir: &Path, name: &str) -> Option<CpuSet> {
    let text = std::fs::read_to_string(cpu_dir.join(name)).ok()?;
    text.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with CPUs 0 to 5, of which 4 is offline and the cpuset has 0 and 1.
    fn explained(cpu: u32, errno: i32) -> Error {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("possible"), "0-5\n").unwrap();
        std::fs::write(dir.path().join("online"), "0-3,5\n").unwrap();
        let usable = [0, 1].into_iter().collect();
        why(dir.path(), cpu, usable, io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_refused_cpu_is_not_there_or_offline_or_outside_the_cpuset() {
        let message = |cpu| explained(cpu, libc::EINVAL).to_string();
        assert_eq!(
            message(6),
            "there is no CPU 6 on this machine: it can have 0-5"
        );
        assert_eq!(
            message(4),
            "CPU 4 is offline: choose one of 0-3,5, or switch it on \
             (write 1 to /sys/devices/system/cpu/cpu4/online)"
        );
        assert_eq!(
            message(3),
            "CPU 3 is online but outside this process's cpuset: choose one of 0-1, or widen \
             the cpuset (cpuset.cpus of its control group, or the container's CPU list)"
        );
    }

    #[test]
    fn any_other_answer_is_passed_on() {
        let error = explained(3, libc::EPERM);
        assert!(matches!(&error, Error::Pin { cpu: 3, source, .. }
            if source.raw_os_error() == Some(libc::EPERM)));
    }

    #[test]
    fn without_the_lists_nothing_is_guessed() {
        let dir = tempfile::tempdir().unwrap();
        let source = io::Error::from_raw_os_error(libc::EINVAL);
        let error = why(dir.path(), 3, CpuSet::new(), source);
        assert!(matches!(error, Error::Pin { cpu: 3, .. }));
    }

    #[test]
    fn ids_past_every_mask_are_refused_quietly() {
        for cpu in [1023, 1024, 8191, MAX_CPUS, u32::MAX] {
            let error = thread::scope(|scope| scope.spawn(|| pin(cpu)).join())
                .unwrap()
                .unwrap_err();
            assert!(
                matches!(&error, Error::NoSuchCpu { cpu: named, .. } if *named == cpu),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_allowed_is_usable() {
        let (allowed, usable) = (allowed_cpus().unwrap(), usable_cpus().unwrap());
        assert!(!allowed.is_empty());
        assert!(allowed.is_subset(&usable), "{allowed} {usable}");
    }

    #[test]
    fn a_narrower_mask_narrows_what_is_allowed_and_not_what_is_usable() {
        let usable = usable_cpus().unwrap();
        let cpu = usable.min().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                pin(cpu).unwrap();
                assert!(is_only(&allowed_cpus().unwrap(), cpu));
                assert_eq!(usable_cpus().unwrap(), usable);
                assert!(
                    is_only(&allowed_cpus().unwrap(), cpu),
                    "the caller's own mask moved"
                );
            });
        });
    }
}
