//! Idle states: what the kernel's governors count, and changes that put themselves back.
#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cpuidle::{Absent, Counts, CpuIdle, Delta, Error, Outcome, StateSelection};
use hostfs::{CpuSet, HostFs, Restore};
use suites::{Module, online, pin, run, wake};

const SECOND: Duration = Duration::from_secs(1);
const GOVERNOR: &str = "sys/devices/system/cpu/cpuidle/current_governor";

fn load() -> Module {
    Module::load("testbed_idle", &[])
}

fn open() -> CpuIdle {
    CpuIdle::open(&HostFs::live()).unwrap()
}

/// What the states do in this time, each CPU having been woken before and after.
fn watch(time: Duration) -> Delta {
    let idle = open();
    let mut reader = idle.snapshotter().unwrap();
    wake(idle.online());
    let before = reader.snapshot();
    sleep(time);
    wake(idle.online());
    reader.snapshot().since(&before)
}

/// What all CPUs together count of a state.
fn sum(delta: &Delta, name: &str) -> Counts {
    let sums = delta.sum();
    let state = sums.iter().find(|state| state.name == name).unwrap();
    assert!(state.missing.is_empty(), "{name}: {delta:?}");
    state.counts.unwrap()
}

fn governor() -> String {
    HostFs::live().read_text(GOVERNOR).unwrap()
}

/// The CPUs on which a state is switched off.
fn disabled(index: usize) -> CpuSet {
    let idle = open();
    let cpus = idle.cpus().iter().filter(|cpu| cpu.states[index].disabled);
    cpus.map(|cpu| cpu.cpu).collect()
}

#[test]
fn driver_governors_and_states_are_what_was_registered() {
    let _module = load();
    let idle = open();
    assert_eq!(idle.driver(), Some("testbed_idle"));
    assert_eq!(idle.governor(), Some("menu"));
    let governors = idle.available_governors().unwrap();
    assert!(
        ["menu", "ladder"]
            .iter()
            .all(|name| governors.iter().any(|there| there == name))
    );
    assert_eq!(idle.cpu_set(), online());
    let states = [
        ("POLL", Some(0), Some(0)),
        ("C1", Some(2), Some(2)),
        ("C1E", Some(10), Some(20)),
        ("C6", Some(133), Some(600)),
    ];
    for cpu in idle.cpus() {
        let found: Vec<_> = cpu
            .states
            .iter()
            .map(|state| (state.name.as_str(), state.latency_us, state.residency_us))
            .collect();
        assert_eq!(found, states, "CPU {}", cpu.cpu);
        assert!(cpu.states.iter().all(|state| !state.disabled));
        assert!(
            cpu.states
                .iter()
                .all(|state| state.enabled_by_default == Some(true))
        );
    }
}

#[test]
fn without_a_driver_it_is_said_that_this_is_a_virtual_machine() {
    let error = CpuIdle::open(&HostFs::live()).unwrap_err();
    let Error::Absent { reason, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*reason, Absent::VirtualMachine);
}

#[test]
fn the_times_of_a_cpu_without_work_add_up_to_the_interval() {
    let _module = load();
    sleep(SECOND / 2);
    let delta = watch(4 * SECOND);
    for cpu in &delta.cpus {
        let counts = cpu
            .states
            .iter()
            .map(|state| state.outcome.counts().unwrap());
        let idle: u64 = counts.map(|counts| counts.time_us).sum();
        let percent = idle as f64 / cpu.elapsed.time.as_micros() as f64 * 100.0;
        println!("CPU {}: {percent:.2} %", cpu.cpu);
        assert!(
            (95.0..=105.0).contains(&percent),
            "CPU {}: {percent} %: {cpu:?}",
            cpu.cpu
        );
    }
}

/// A thread that sleeps 2 ms at a time is in the deepest state between, and every sleep is an
/// entry at least.
#[test]
fn sleeps_are_counted_in_the_state_that_they_are_long_enough_for() {
    let _module = load();
    let sleeper = std::thread::spawn(|| {
        pin(online().max().unwrap());
        (0..1000).for_each(|_| sleep(Duration::from_millis(2)));
    });
    sleep(SECOND / 2);
    let delta = watch(SECOND);
    sleeper.join().unwrap();
    let cpu = delta.cpus.last().unwrap();
    let counts = |index: usize| *cpu.states[index].outcome.counts().unwrap();
    let entries: u64 = (0..4).map(|index| counts(index).entries).sum();
    // 500 of 2 ms at most; an emulated timer is late.
    assert!((100..2000).contains(&entries), "{cpu:?}");
    let deepest = counts(3);
    assert!(
        deepest.share_percent(cpu.elapsed.time).unwrap() > 50.0,
        "{cpu:?}"
    );
    assert_eq!(deepest.rejected, Some(0));
    // None is deeper, so none was too shallow.
    assert_eq!(deepest.too_shallow, Some(0));
}

#[test]
fn a_state_that_is_off_is_not_entered_and_comes_back_on_drop() {
    let _module = load();
    let idle = open();
    let record = Restore::new(&HostFs::live());
    let deepest: StateSelection = "C6".parse().unwrap();
    let guards = idle
        .disable_state(&record, &deepest, idle.online())
        .unwrap();
    assert_eq!(guards.len(), idle.cpus().len());
    assert_eq!(disabled(3), online());
    // Whoever is in it may finish.
    wake(idle.online());
    let off = watch(SECOND);
    assert_eq!(sum(&off, "C6").entries, 0, "{off:?}");
    let middle = sum(&off, "C1E");
    assert!(middle.entries > 0, "{off:?}");

    drop(guards);
    assert!(disabled(3).is_empty());
    wake(idle.online());
    let on = watch(SECOND);
    assert!(sum(&on, "C6").entries > 0, "{on:?}");
}

#[test]
fn a_state_can_be_off_on_some_cpus_only() {
    let _module = load();
    let idle = open();
    let record = Restore::new(&HostFs::live());
    let some: CpuSet = "1,3".parse().unwrap();
    let guards = idle
        .disable_state(&record, &StateSelection::Index(2), &some)
        .unwrap();
    assert_eq!(disabled(2), some);
    // It was off already: neither changed nor, later, switched on.
    let all = idle
        .disable_state(&record, &StateSelection::Index(2), idle.online())
        .unwrap();
    assert_eq!(all.len(), idle.cpus().len() - 2);
    drop(all);
    assert_eq!(disabled(2), some);
    drop(guards);
    assert!(disabled(2).is_empty());
}

#[test]
fn another_governor_keeps_the_counters_and_goes_on_drop() {
    let _module = load();
    let idle = open();
    let mut reader = idle.snapshotter().unwrap();
    let before = reader.snapshot();
    let record = Restore::new(&HostFs::live());
    let guard = idle.set_governor(&record, "ladder").unwrap().unwrap();
    assert_eq!((guard.found(), guard.now()), ("menu", "ladder"));
    assert_eq!(governor(), "ladder");
    assert!(open().set_governor(&record, "ladder").unwrap().is_none());
    sleep(SECOND);
    wake(idle.online());
    let delta = reader.snapshot().since(&before);
    let counted: u64 = ["POLL", "C1", "C1E", "C6"]
        .map(|name| sum(&delta, name).entries)
        .iter()
        .sum();
    assert!(counted > 0, "{delta:?}");
    // The state's files were made anew, and the reader went on with them.
    assert!(
        delta
            .cpus
            .iter()
            .flat_map(|cpu| &cpu.states)
            .all(|state| state.reopened),
        "{delta:?}"
    );
    drop(guard);
    assert_eq!(governor(), "menu");

    let error = idle.set_governor(&record, "teo").unwrap_err();
    assert!(matches!(error, Error::UnknownGovernor { .. }), "{error}");
    assert_eq!(governor(), "menu");
}

#[test]
fn a_panic_puts_both_back() {
    let _module = load();
    let idle = open();
    let record = Restore::new(&HostFs::live());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _governor = idle.set_governor(&record, "ladder").unwrap();
        let _states = idle
            .disable_state(&record, &StateSelection::Index(1), idle.online())
            .unwrap();
        assert_eq!((governor().as_str(), disabled(1)), ("ladder", online()));
        panic!("on purpose");
    }));
    assert!(outcome.is_err());
    assert_eq!(governor(), "menu");
    assert!(disabled(1).is_empty());
}

#[test]
fn what_a_killed_run_left_is_put_back_by_restore() {
    let _module = load();
    let mut ab = Command::new("/bin/ab")
        .args(["--variant", "a=governor:ladder,idle-off:C6"])
        .args(["--variant", "b=governor:ladder,idle-off:C6,idle-off:C1E"])
        .args([
            "--seconds",
            "20",
            "--lead",
            "0",
            "--rings",
            "1",
            "--out",
            "/tmp/killed",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + 20 * SECOND;
    while governor() != "ladder" || disabled(3) != online() {
        assert!(Instant::now() < end, "ab changed nothing");
        sleep(SECOND / 20);
    }
    ab.kill().unwrap();
    ab.wait().unwrap();
    assert_eq!((governor().as_str(), disabled(3)), ("ladder", online()));
    let records = || {
        fs::read_dir("/run/wakecost").map_or(0, |dir| {
            let names = dir.map(|entry| entry.unwrap().path());
            names
                .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
                .count()
        })
    };
    assert_eq!(records(), 1);

    let said = run("/bin/restore", &[]);
    assert_eq!(governor(), "menu", "{said}");
    assert!((1..4).all(|index| disabled(index).is_empty()), "{said}");
    assert_eq!(records(), 0, "{said}");
    // Once more is harmless.
    run("/bin/restore", &[]);
    assert_eq!(governor(), "menu");
}

/// `/dev/cpu_dma_latency` takes a native 32-bit number of µs and holds while it is open.
#[test]
fn a_latency_request_keeps_deeper_states_away() {
    let _module = load();
    let mut request = OpenOptions::new()
        .write(true)
        .open("/dev/cpu_dma_latency")
        .unwrap();
    // C1 takes 2 µs, C1E 10.
    request.write_all(&5_i32.to_ne_bytes()).unwrap();
    wake(&online());
    let held = watch(SECOND);
    assert_eq!(sum(&held, "C6").entries, 0, "{held:?}");
    assert_eq!(sum(&held, "C1E").entries, 0, "{held:?}");
    assert!(sum(&held, "C1").entries > 0, "{held:?}");
    drop(request);
    wake(&online());
    let free = watch(SECOND);
    assert!(sum(&free, "C6").entries > 0, "{free:?}");
}

#[test]
fn a_driver_that_comes_back_has_new_counters_and_no_figures() {
    let mut module = load();
    let mut reader = open().snapshotter().unwrap();
    sleep(2 * SECOND);
    wake(&online());
    let before = reader.snapshot();
    module.reload(&[]);
    let delta = reader.snapshot().since(&before);
    for cpu in &delta.cpus {
        for state in &cpu.states {
            let outcome = &state.outcome;
            assert!(matches!(outcome, Outcome::Reset | Outcome::Gone), "{cpu:?}");
        }
    }
    drop(module);
}
