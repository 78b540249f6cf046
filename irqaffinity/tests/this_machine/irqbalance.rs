//! irqbalance, for real.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use hostfs::{HostFs, Process, Restore};
use irqaffinity::irqbalance::Irqbalance;
use irqaffinity::{Error, Irq, IrqRestored};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use super::{Machine, busy, is_root};

/// The machine, or `None` where irqbalance can't be run, with the reason checked.
fn machine() -> Option<Machine> {
    let fs = HostFs::live();
    match Irqbalance::check_available(&fs) {
        Ok(()) => Machine::that_can_move(),
        Err(error) => {
            eprintln!("{error}");
            let expected = if is_root() {
                matches!(
                    error,
                    Error::ProgramNotFound { .. } | Error::Host(hostfs::Error::ReadOnly { .. })
                )
            } else {
                error == Error::NotRoot
            };
            assert!(expected, "{error}");
            let started = Irqbalance::builder().start(&Restore::new(&fs));
            assert_eq!(started.unwrap_err(), error);
            None
        }
    }
}

fn is_there(process: &Process) -> bool {
    // A zombie would be there, too.
    Process::of(&HostFs::live(), process.pid).is_ok_and(|now| now == *process)
}

/// A program in irqbalance's place.
fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("irqbalance");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (dir, path)
}

#[test]
fn it_moves_interrupts_and_leaves_none_moved() {
    let Some(machine) = machine() else { return };
    let run_dir = fs::exists("/run/irqbalance").unwrap();
    let before = Irq::read_all(&machine.fs).unwrap();
    let builder = Irqbalance::builder().powerthresh(2).interval(1);
    let mut child = builder.start(&machine.record).unwrap();
    let process = child.process().clone();
    assert_eq!(process.name, "irqbalance");
    assert!(Irqbalance::find(&machine.fs).unwrap().contains(&process));
    let command = fs::read_to_string(format!("/proc/{}/cmdline", process.pid)).unwrap();
    assert!(
        command.ends_with("--foreground\0--powerthresh=2\0--interval=1\0"),
        "{command:?}"
    );
    let report = busy(|| {
        let acted = child.wait_until_acted(Duration::from_secs(6)).unwrap();
        // Which it is depends on the machine's devices.
        eprintln!("irqbalance moved: {:?}", child.saved().unwrap().moved());
        assert_eq!(acted, !child.saved().unwrap().moved().is_empty());
        child.check().unwrap();
        child.stop().unwrap()
    });
    eprintln!("{report}");
    assert!(!is_there(&process), "it has ended and is reaped");
    let socket = format!("/run/irqbalance/irqbalance{}.sock", process.pid);
    assert!(!fs::exists(socket).unwrap());
    assert_eq!(fs::exists("/run/irqbalance").unwrap(), run_dir);
    let after = Irq::read_all(&machine.fs).unwrap();
    assert_eq!(before.len(), after.len());
    for (was, is) in before.iter().zip(&after) {
        assert_eq!((was.irq, &was.affinity), (is.irq, &is.affinity));
        let elsewhere = matches!(report.outcome(was.irq), IrqRestored::ServedElsewhere { .. });
        assert!(
            elsewhere || was.effective == is.effective,
            "IRQ {}: {report}",
            was.irq
        );
    }
    assert!(
        machine.record.troubles().is_empty(),
        "{:?}",
        machine.record.troubles()
    );
}

#[test]
fn dropping_it_ends_it_on_a_panic_too() {
    let Some(machine) = machine() else { return };
    let before = Irq::read_all(&machine.fs).unwrap();
    let process = std::thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let mut child = Irqbalance::builder()
                .interval(1)
                .start(&machine.record)
                .unwrap();
            child.wait_until_acted(Duration::from_secs(3)).unwrap();
            let process = child.process().clone();
            std::panic::resume_unwind(Box::new(process));
        });
        *panics.join().unwrap_err().downcast::<Process>().unwrap()
    });
    assert!(!is_there(&process));
    for (was, is) in before.iter().zip(Irq::read_all(&machine.fs).unwrap()) {
        assert_eq!(was.affinity, is.affinity, "IRQ {}", was.irq);
    }
}

#[test]
fn one_that_dies_is_named_with_its_last_words() {
    let Some(machine) = machine() else { return };
    let (_dir, path) = script("echo one; echo two >&2; exit 3");
    let mut child = Irqbalance::builder()
        .program(&path)
        .start(&machine.record)
        .unwrap();
    let error = child.wait_until_acted(Duration::from_secs(10)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "irqbalance ended by itself (exit status: 3); its last words: one\ntwo"
    );
    assert_eq!(child.check().unwrap_err(), error);
    let process = child.process().clone();
    assert_eq!(
        child.stop().unwrap_err(),
        error,
        "what ran was not what it should be"
    );
    assert!(!is_there(&process));

    // Killed by somebody, having moved an interrupt.
    let irq = machine.movable().into_iter().next();
    let irq = irq.expect("irqbalance would have nothing to move");
    let (_dir, path) = script(&format!(
        "echo {} > /proc/irq/{}/smp_affinity_list; kill -9 $$",
        irq.effective.as_ref().unwrap(),
        irq.irq
    ));
    let mut child = Irqbalance::builder()
        .program(&path)
        .start(&machine.record)
        .unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while child.check().is_ok() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_ne!(machine.irq(irq.irq).affinity, irq.affinity);
    let error = child.stop().unwrap_err();
    assert!(
        matches!(&error, Error::Died { status, .. } if status.contains("signal: 9")),
        "{error}"
    );
    assert_eq!(
        machine.irq(irq.irq).affinity,
        irq.affinity,
        "put back all the same"
    );
}

#[test]
fn one_that_won_t_end_is_killed() {
    let Some(machine) = machine() else { return };
    let (dir, path) = script("trap '' TERM\nsleep 1000 &\necho > ready; wait");
    let ready = dir.path().join("ready");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("> ready", &format!("> {}", ready.display())),
    )
    .unwrap();
    let child = Irqbalance::builder()
        .program(&path)
        .start(&machine.record)
        .unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while !ready.exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = child.process().clone();
    let group = process.pid;
    child.stop().unwrap();
    assert!(!is_there(&process));
    // What it had started went with it; init may take a moment to reap it.
    let end = Instant::now() + Duration::from_secs(5);
    let alive = || {
        let processes = Process::find_by_name(&machine.fs, "sleep").unwrap();
        processes
            .iter()
            .any(|sleep| group_of(sleep.pid) == Some(group))
    };
    while alive() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!alive());
}

/// A process' group: field 5 of its `stat`.
fn group_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[test]
fn it_has_its_own_group_no_blocked_signals_and_ends_with_its_thread() {
    let Some(machine) = machine() else { return };
    let start = || {
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTERM);
        blocked.thread_block().unwrap();
        Irqbalance::builder().start(&machine.record).unwrap()
    };
    let look = |child: Irqbalance| {
        let pid = child.process().pid;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigBlk:"))
            .unwrap();
        assert_eq!(mask.trim(), "0000000000000000");
        assert_eq!(group_of(pid), Some(pid));
        child
    };
    let mut child = std::thread::scope(|scope| scope.spawn(|| look(start())).join().unwrap());
    let end = Instant::now() + Duration::from_secs(10);
    while child.check().is_ok() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(
        matches!(child.stop(), Err(Error::Died { .. })),
        "it ended with its thread"
    );
}

#[test]
fn a_daemon_is_found_paused_and_resumed_and_never_doubled() {
    let Some(machine) = machine() else { return };
    // In the place of the system's own, and put to sleep before it moves anything.
    let mut daemon = Command::new("irqbalance")
        .args(["--foreground", "--interval=3600"])
        .spawn()
        .unwrap();
    let process = Process::of(&machine.fs, daemon.id()).unwrap();
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let error = Irqbalance::builder().start(&machine.record).unwrap_err();
        assert_eq!(
            error,
            Error::DaemonRunning {
                daemon: process.clone()
            }
        );
        assert_eq!(
            error.to_string(),
            format!(
                "irqbalance (process {}) is running: pause or stop it first",
                process.pid
            )
        );
        assert!(Irqbalance::find(&machine.fs).unwrap().contains(&process));
        let paused = Irqbalance::pause(&machine.record).unwrap();
        assert!(process.is_stopped(&machine.fs));
        let child = Irqbalance::builder().start(&machine.record).unwrap();
        child.stop().unwrap();
        assert!(
            process.is_stopped(&machine.fs) && is_there(&process),
            "only the child ended"
        );
        drop(paused);
        assert!(process.is_alive(&machine.fs) && !process.is_stopped(&machine.fs));
    }));
    kill(Pid::from_raw(daemon.id() as i32), Signal::SIGKILL).unwrap();
    daemon.wait().unwrap();
    checked.unwrap();
}

#[test]
fn a_program_that_is_not_there_or_not_one() {
    let record = Restore::new(&HostFs::live());
    let start = |path: &str| {
        Irqbalance::builder()
            .program(path)
            .start(&record)
            .unwrap_err()
    };
    let error = start("/no/such/irqbalance");
    if !is_root() {
        return assert_eq!(error, Error::NotRoot);
    }
    if matches!(error, Error::Host(hostfs::Error::ReadOnly { .. })) {
        return eprintln!("{error}");
    }
    assert!(
        error
            .to_string()
            .starts_with("/no/such/irqbalance: not found"),
        "{error}"
    );
    let (_dir, path) = script("");
    fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    let _machine = Machine::alone();
    let error = start(path.to_str().unwrap());
    let expected = format!("{}: could not be started: No such file", path.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
}
