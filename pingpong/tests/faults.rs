//! What can't be run, and what ends a run that should have gone on.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{Outcome, cpus, no_hang, pair, pairs};
use nix::sched::{CpuSet as NixCpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use pingpong::{Error, Limit, Rings, Stopper, TransportKind};

#[test]
fn what_runs_nowhere_is_refused() {
    let cpu = cpus()[0];
    let ring = || Rings::builder().ring([cpu, cpu]);
    let message = |builder: pingpong::RingsBuilder| builder.build().unwrap_err().to_string();
    assert_eq!(
        message(Rings::builder()),
        "no ring was given: call ring() at least once"
    );
    assert_eq!(
        message(ring().ring([])),
        "ring 1 has 0 stop(s): a token needs at least 2 to be passed"
    );
    assert_eq!(
        message(Rings::builder().ring([cpu]).ring([cpu, cpu])),
        "ring 0 has 1 stop(s): a token needs at least 2 to be passed"
    );
    assert_eq!(
        message(ring().limit(Limit::Loops(0))),
        "the limit is 0 loops: nothing would be measured; ask for at least 1 loop or 1 ns"
    );
    assert_eq!(
        message(ring().limit(Limit::Time(Duration::ZERO))),
        "the limit is no time: nothing would be measured; ask for at least 1 loop or 1 ns"
    );
    assert_eq!(
        message(ring().limit(Limit::UntilStopped)),
        "the rings are to run until stopped, but nobody can stop them: give a stopper()"
    );
}

#[test]
fn unlimited_counts_are_no_trouble() {
    let cpu = cpus()[0];
    let rings = Rings::builder().ring(vec![cpu; 1000]).ring(vec![cpu; 1000]);
    let rings = rings.work(u64::MAX).limit(Limit::Loops(u64::MAX)).build();
    assert!(rings.is_ok());
}

#[test]
fn a_cpu_that_is_not_there_is_named_with_those_that_are() {
    let possible = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    let cpu = cpus()[0];
    for absent in [9999, u32::MAX] {
        let error = Rings::builder().ring([cpu, absent]).build().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "there is no CPU {absent} on this machine: it can have {}",
                possible.trim_end()
            )
        );
    }
}

#[test]
fn spinning_needs_a_cpu_for_each_stop_of_all_rings() {
    let cpu = cpus()[0];
    let usable = pingpong::usable_cpus().unwrap();
    let spin = Rings::builder().transport(TransportKind::Spin);
    let error = spin.clone().ring([cpu, cpu]).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "2 stops would spin on CPU {cpu}, each keeping the others from running: a \
             spinning stop needs a CPU of its own, over all rings (usable here: {usable}); or \
             choose a transport that blocks"
        )
    );
    for (_, cpus) in pairs()
        .into_iter()
        .filter(|(kind, _)| *kind == TransportKind::Spin)
    {
        assert!(spin.clone().ring(cpus).build().is_ok());
        let error = spin.clone().ring(cpus).ring(cpus).build().unwrap_err();
        assert!(matches!(error, Error::SpinShared { stops: 2, .. }));
    }
}

/// A healthy ring beside one whose `stop` panics in its third visit; over spins, which have
/// no CPUs for two rings on a small machine, that one alone.
fn panicking(kind: TransportKind, cpus: [u32; 2], stop: usize) -> (usize, Outcome) {
    let mut builder = pair((kind, cpus))
        .limit(Limit::UntilStopped)
        .stopper(Stopper::new());
    let mut bad = 0;
    if kind != TransportKind::Spin {
        builder = builder.ring([cpus[0], cpus[1], cpus[0]]);
        bad = 1;
    }
    let rings = builder.build().unwrap();
    let outcome = no_hang(move || {
        let visits = AtomicU64::new(0);
        rings.run_with(|ring, at| {
            if (ring, at) == (bad, stop) && visits.fetch_add(1, Ordering::Relaxed) == 2 {
                panic!("stop {at} was told to");
            }
        })
    });
    (bad, outcome)
}

#[test]
fn a_stop_that_panics_ends_every_ring_and_is_named() {
    for (kind, cpus) in pairs() {
        for stop in [0, 1] {
            let (bad, outcome) = panicking(kind, cpus, stop);
            assert_eq!(
                outcome.unwrap_err().to_string(),
                format!(
                    "ring {bad}, stop {stop} (CPU {}) panicked: stop {stop} was told to",
                    cpus[stop]
                )
            );
        }
    }
}

/// A mask of all CPUs that this process can use.
fn wide() -> NixCpuSet {
    let mut set = NixCpuSet::new();
    for cpu in cpus() {
        set.set(cpu as usize).unwrap();
    }
    set
}

fn assert_lost(outcome: Outcome, cpu: u32) {
    let error = outcome.unwrap_err();
    let usable = pingpong::usable_cpus().unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "ring 0, stop 1 lost CPU {cpu}, which is still online (was its affinity or cpuset \
             changed, e.g. by taskset?): its mask became {usable}"
        )
    );
}

#[test]
fn a_stop_whose_mask_is_widened_from_outside_ends_the_run() {
    for place in pairs() {
        if cpus().len() < 2 {
            eprintln!("not seen: one CPU has no wider mask");
            return;
        }
        let rings = pair(place)
            .limit(Limit::UntilStopped)
            .stopper(Stopper::new());
        let rings = rings.build().unwrap();
        let outcome = no_hang(move || {
            let (sender, receiver) = mpsc::channel();
            let sender = Mutex::new(Some(sender));
            thread::scope(|scope| {
                scope.spawn(move || {
                    let tid: Pid = receiver.recv().unwrap();
                    sched_setaffinity(tid, &wide()).unwrap();
                });
                rings.run_with(|_, stop| {
                    if stop == 1
                        && let Some(sender) = sender.lock().unwrap().take()
                    {
                        sender.send(gettid()).unwrap();
                    }
                })
            })
        });
        assert_lost(outcome, place.1[1]);
    }
}

#[test]
fn a_run_too_short_for_a_look_finds_it_at_its_end() {
    if cpus().len() < 2 {
        eprintln!("not seen: one CPU has no wider mask");
        return;
    }
    for place in pairs() {
        let rings = pair(place).limit(Limit::Loops(1)).build().unwrap();
        let outcome = no_hang(move || {
            rings.run_with(|_, stop| {
                if stop == 1 {
                    sched_setaffinity(Pid::from_raw(0), &wide()).unwrap();
                }
            })
        });
        assert_lost(outcome, place.1[1]);
    }
}

#[test]
fn a_stop_is_safe_from_sigpipe_and_from_no_other_signal() {
    let rings = pair((TransportKind::Pipe, [cpus()[0]; 2])).limit(Limit::Loops(1));
    let rings = rings.build().unwrap();
    let blocked = || {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    let before = blocked();
    let seen = Mutex::new(Vec::new());
    rings
        .run_with(|_, _| seen.lock().unwrap().push(blocked()))
        .unwrap();
    // SIGPIPE is signal 13; bit 0 stands for signal 1.
    assert_eq!(seen.into_inner().unwrap(), [before | 1 << 12; 2]);
    assert_eq!(blocked(), before);
}
