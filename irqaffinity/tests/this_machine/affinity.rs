//! Affinities that we set ourselves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use hostfs::{CpuSet, HostFs, Restore};
use irqaffinity::irqbalance::Irqbalance;
use irqaffinity::{Error, Irq, IrqRestored, Saved, default_affinity, set_affinity};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::{Machine, busy, is_refusal, is_root};

/// One CPU of the affinity that the IRQ is not on.
fn another_cpu(irq: &Irq) -> CpuSet {
    let others = &irq.affinity - irq.effective.as_ref().unwrap();
    others.min().into_iter().collect()
}

/// Without privilege, or with one CPU, nothing can be moved: checks what is answered.
fn refused() {
    let fs = HostFs::live();
    let irqs = Irq::read_all(&fs).unwrap();
    let Some(irq) = irqs.first() else {
        return eprintln!("no IRQ that has an affinity");
    };
    let record = Restore::new(&fs);
    let beyond: CpuSet = [100_000].into_iter().collect();
    let error = set_affinity(&record, irq.irq, &beyond).unwrap_err();
    if is_root() {
        let refused = matches!(error, Error::OutOfRange { .. } | Error::NotSettable { .. });
        assert!(refused, "{error}");
    } else {
        assert!(is_refusal(&error), "{error}");
    }
    assert_eq!(Irq::read(&fs, irq.irq).unwrap().affinity, irq.affinity);
}

#[test]
fn the_state_is_what_the_files_say() {
    let machine = Machine::alone();
    let text = |path: String| fs::read_to_string(path).unwrap().trim().to_owned();
    for irq in Irq::read_all(&machine.fs).unwrap() {
        let dir = format!("/proc/irq/{}", irq.irq);
        let list = format!("{dir}/smp_affinity_list");
        assert_eq!(irq.affinity.to_string(), text(list.clone()));
        if let Some(effective) = irq.effective {
            assert_eq!(
                effective.to_string(),
                text(format!("{dir}/effective_affinity_list"))
            );
        }
        let writable = fs::metadata(list).unwrap().permissions().mode() & 0o200 != 0;
        assert_eq!(irq.settable, (!writable).then_some(false));
    }
    let mask = text("/proc/irq/default_smp_affinity".into());
    let default = default_affinity(&machine.fs).unwrap();
    assert_eq!(default, CpuSet::parse_mask(&mask).unwrap());
}

#[test]
fn a_busy_irq_goes_to_another_cpu_and_comes_back() {
    let Some(machine) = Machine::that_can_move() else {
        return refused();
    };
    let Some(irq) = machine.busy_irq() else {
        return refused();
    };
    let there = another_cpu(&irq);
    let guard = set_affinity(&machine.record, irq.irq, &there).unwrap();
    assert_eq!(guard.outcome().affinity, there);
    assert_eq!(machine.irq(irq.irq).affinity, there);
    busy(|| {
        let end = Instant::now() + Duration::from_secs(10);
        while machine.irq(irq.irq).effective.as_ref() != Some(&there) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(machine.irq(irq.irq).effective, Some(there));
        assert_eq!(guard.restore(), IrqRestored::PutBack);
    });
    assert_eq!(
        machine.irq(irq.irq),
        irq,
        "its affinity and its CPU are as found"
    );
}

#[test]
fn a_quiet_irq_that_was_never_moved_is_as_found() {
    let Some(machine) = Machine::that_can_move() else {
        return refused();
    };
    let Some(irq) = machine.movable().into_iter().next() else {
        eprintln!("no IRQ that can be moved");
        return refused();
    };
    let guard = set_affinity(&machine.record, irq.irq, &another_cpu(&irq)).unwrap();
    let outcome = guard.outcome().clone();
    assert_eq!(
        outcome.pending,
        outcome.effective.map(|at| !at.is_subset(&outcome.affinity))
    );
    guard.restore();
    assert_eq!(machine.irq(irq.irq).affinity, irq.affinity);
}

#[test]
fn a_panic_puts_the_irq_back() {
    let Some(machine) = Machine::that_can_move() else {
        return refused();
    };
    let Some(irq) = machine.movable().pop() else {
        eprintln!("no IRQ that can be moved");
        return refused();
    };
    let there = another_cpu(&irq);
    let ended = std::thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let _guard = set_affinity(&machine.record, irq.irq, &there).unwrap();
            assert_eq!(machine.irq(irq.irq).affinity, there);
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        panics.join()
    });
    assert!(ended.is_err());
    assert_eq!(machine.irq(irq.irq).affinity, irq.affinity);
}

#[test]
fn an_irq_that_nobody_may_set_refuses() {
    let machine = Machine::alone();
    let irqs = Irq::read_all(&machine.fs).unwrap();
    let Some(irq) = irqs.iter().find(|irq| irq.settable == Some(false)) else {
        eprintln!("no IRQ is read-only here");
        return refused();
    };
    let error = set_affinity(&machine.record, irq.irq, &irq.affinity).unwrap_err();
    if is_root() {
        assert!(matches!(error, Error::NotSettable { .. }), "{error}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("IRQ {}: the kernel lets nobody", irq.irq))
        );
    } else {
        assert!(is_refusal(&error), "{error}");
    }
    assert_eq!(machine.irq(irq.irq), *irq);
    assert!(machine.record.troubles().is_empty());
}

#[test]
fn cpus_and_irqs_that_there_are_not() {
    // Of the IRQs here, one that can be set is asked for a CPU that no kernel has.
    let machine = Machine::alone();
    refused();
    let error = set_affinity(&machine.record, 4_000_000, &CpuSet::first(1)).unwrap_err();
    assert_eq!(error, Error::Vanished { irq: 4_000_000 });
    let possible: CpuSet = machine.fs.read("sys/devices/system/cpu/possible").unwrap();
    let online: CpuSet = machine.fs.read("sys/devices/system/cpu/online").unwrap();
    let offline = &possible - &online;
    match (machine.movable().first(), offline.is_empty(), is_root()) {
        (Some(irq), false, true) => {
            let error = set_affinity(&machine.record, irq.irq, &offline).unwrap_err();
            assert!(matches!(error, Error::NoOnlineCpu { .. }), "{error}");
        }
        _ => eprintln!("no CPU is offline, or nothing can be moved"),
    }
}

#[test]
fn a_read_only_proc_is_named() {
    if !is_root() {
        eprintln!("not root: no file system can be mounted read-only");
        return refused();
    }
    let machine = Machine::alone();
    let Some(irq) = Irq::read_all(&machine.fs).unwrap().into_iter().next() else {
        return eprintln!("no IRQ that has an affinity");
    };
    // As containers have it, for this thread alone.
    let answers = std::thread::scope(|scope| {
        let contained = scope.spawn(|| -> nix::Result<_> {
            let none = None::<&str>;
            unshare(CloneFlags::CLONE_NEWNS)?;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            mount(Some("/proc/irq"), "/proc/irq", none, MsFlags::MS_BIND, none)?;
            let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
            mount(none, "/proc/irq", none, read_only, none)?;
            let set = set_affinity(&machine.record, irq.irq, &irq.affinity).map(drop);
            Ok((set, Irqbalance::check_available(&machine.fs)))
        });
        contained.join().unwrap()
    });
    match answers {
        Err(errno) => eprintln!("no mounts of its own for a thread here: {errno}"),
        Ok((set, available)) => {
            for answer in [set.unwrap_err(), available.unwrap_err()] {
                let read_only = matches!(answer, Error::Host(hostfs::Error::ReadOnly { .. }));
                assert!(read_only, "{answer}");
                assert!(answer.to_string().contains("in a container?"), "{answer}");
            }
        }
    }
}

#[test]
fn saved_affinities_are_put_back() {
    let Some(machine) = Machine::that_can_move() else {
        return saved_without_privilege();
    };
    let before = Irq::read_all(&machine.fs).unwrap();
    let saved = Saved::take(&machine.record).unwrap();
    let moved: Vec<u32> = machine
        .movable()
        .iter()
        .take(3)
        .map(|irq| irq.irq)
        .collect();
    for irq in machine.movable().iter().take(3) {
        let path = format!("proc/irq/{}/smp_affinity_list", irq.irq);
        machine
            .fs
            .write(path, &another_cpu(irq).to_string())
            .unwrap();
    }
    assert_eq!(saved.moved(), moved);
    let report = saved.restore();
    for (was, is) in before.iter().zip(Irq::read_all(&machine.fs).unwrap()) {
        assert_eq!(was.affinity, is.affinity, "IRQ {}", was.irq);
    }
    for irq in moved {
        assert_ne!(report.outcome(irq), &IrqRestored::AsFound);
    }
}

/// Recording works for everybody, and there is nothing to put back.
fn saved_without_privilege() {
    let machine = Machine::alone();
    let saved = Saved::take(&machine.record).unwrap();
    assert!(saved.moved().is_empty());
    let report = saved.restore();
    assert!(report.irqs.is_empty(), "{report}");
}

#[test]
fn resetting_goes_to_the_default_and_back() {
    let Some(machine) = Machine::that_can_move() else {
        return refused();
    };
    let Some(irq) = machine.movable().into_iter().next() else {
        eprintln!("no IRQ that can be moved");
        return refused();
    };
    let default = default_affinity(&machine.fs).unwrap();
    // As a daemon may have left it.
    let here = irq.effective.clone().unwrap();
    let daemon = set_affinity(&machine.record, irq.irq, &here).unwrap();
    let reset = Irqbalance::reset_to_default(&machine.record).unwrap();
    assert!(reset.iter().any(|guard| guard.outcome().irq == irq.irq) || here == default);
    for irq in Irq::read_all(&machine.fs).unwrap() {
        assert!(irq.affinity == default || irq.settable == Some(false));
    }
    drop(reset);
    assert_eq!(machine.irq(irq.irq).affinity, here);
    drop(daemon);
    assert_eq!(machine.irq(irq.irq).affinity, irq.affinity);
}
