//! This machine's own idle states. Where there are none, or where what a test needs is not
//! permitted, it says so.
#![allow(clippy::unwrap_used)]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cpuidle::{CpuIdle, Delta, Error, Outcome, StateSelection};
use hostfs::{CpuSet, HostFs, Restore, Restored};

/// The machine has one governor: tests that change it, or that count on none doing so, take
/// turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn idle() -> Option<CpuIdle> {
    CpuIdle::open(&HostFs::live())
        .inspect_err(|why| println!("nothing to do here: {why}"))
        .ok()
}

/// The record that other programs of this workspace keep theirs beside: under its lock none
/// of them changes the machine meanwhile. `None`, with the reason, where one is doing so.
fn record() -> Option<Restore> {
    let live = HostFs::live();
    match Restore::journaled(&live, "/run/wakecost", "cpuidle-tests") {
        Ok(record) => Some(record),
        Err(why @ (hostfs::Error::Locked { .. } | hostfs::Error::Leftover { .. })) => {
            println!("nothing to do here: {why}");
            None
        }
        // Who may not write there may not change anything either.
        Err(_) => Some(Restore::new(&live)),
    }
}

/// Every state of every CPU has a figure, so the kernel's counters never ran backwards.
fn all_counted(delta: &Delta) -> bool {
    delta
        .cpus
        .iter()
        .flat_map(|cpu| &cpu.states)
        .all(|state| matches!(state.outcome, Outcome::Counted(_)))
}

#[test]
fn counters_move_while_this_machine_idles() {
    let Some(idle) = idle() else { return };
    let _turn = turn();
    let mut reader = idle.snapshotter().unwrap();
    let before = reader.snapshot();
    // On a machine that is kept busy by others an entry may take its time, and while others
    // switch the governor there are no files to read.
    let mut delta = reader.snapshot().since(&before);
    for _ in 0..300 {
        if entries(&delta) > 0 && all_counted(&delta) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        delta = reader.snapshot().since(&before);
    }
    if entries(&delta) == 0 {
        println!("no CPU was idle for 3 s: nothing to see");
        return;
    }
    if idle.online() != CpuIdle::open(&HostFs::live()).unwrap().online() {
        println!("CPUs came or went meanwhile");
        return;
    }
    assert!(all_counted(&delta), "{delta:?}");
    assert!(delta.sum().iter().all(|state| state.missing.is_empty()));
    for state in delta.sum() {
        println!("{}: {:?}", state.name, state.counts);
        // The only state of haltpoll that sleeps is the deepest: nothing fits better.
        if idle.driver() == Some("haltpoll") && state.name == "haltpoll idle" {
            let counts = state.counts.unwrap();
            assert_eq!(counts.too_shallow, Some(0));
            assert!(counts.too_deep.is_some(), "since Linux 5.0");
        }
    }
}

fn entries(delta: &Delta) -> u64 {
    let counts = delta.sum().into_iter().filter_map(|state| state.counts);
    counts.map(|counts| counts.entries).sum()
}

/// Switching the governor makes the state directories anew: held files die, the reader goes
/// on, and the counters carry on.
#[test]
fn a_reader_outlives_a_switched_governor() {
    let _turn = turn();
    let Some(record) = record() else { return };
    let Some(idle) = idle() else { return };
    let found = idle.governor().unwrap_or_default().to_owned();
    let others = idle.available_governors().unwrap_or_default();
    let Some(other) = others
        .iter()
        .find(|name| **name == "menu" && **name != found)
    else {
        println!("nothing to do here: menu is not there or is selected already ({found})");
        return;
    };
    let mut reader = idle.snapshotter().unwrap();
    let before = reader.snapshot();
    let change = match idle.set_governor(&record, other) {
        Err(why @ (Error::NotPermitted { .. } | Error::Host(hostfs::Error::ReadOnly { .. }))) => {
            println!("nothing to do here: {why}");
            return;
        }
        change => change.unwrap().unwrap(),
    };
    let switched = reader.snapshot();
    let delta = switched.since(&before);
    assert!(all_counted(&delta), "{delta:?}");
    assert!(
        delta
            .cpus
            .iter()
            .flat_map(|cpu| &cpu.states)
            .all(|state| state.reopened)
    );
    assert_eq!(
        CpuIdle::open(&HostFs::live()).unwrap().governor(),
        Some("menu")
    );
    assert_eq!(change.restore().unwrap(), Restored::PutBack);
    let back = reader.snapshot();
    let delta = back.since(&switched);
    assert!(all_counted(&delta), "{delta:?}");
    assert!(delta.cpus[0].states[0].reopened);
    assert!(all_counted(&back.since(&before)));
    assert_eq!(
        CpuIdle::open(&HostFs::live()).unwrap().governor(),
        Some(found.as_str())
    );
}

#[test]
fn a_state_of_this_machine_is_disabled_and_put_back() {
    let _turn = turn();
    let Some(record) = record() else { return };
    let Some(idle) = idle() else { return };
    let first = &idle.cpus()[0];
    // The shallowest: no wakeup becomes slower by it.
    let Some(state) = first.states.first().filter(|state| !state.disabled) else {
        println!("nothing to do here: the first state is off");
        return;
    };
    let cpus: CpuSet = [first.cpu].into_iter().collect();
    let selection = StateSelection::Index(state.index);
    let now = || {
        let idle = CpuIdle::open(&HostFs::live()).unwrap();
        idle.cpus()[0].states[0].disabled
    };
    match idle.disable_state(&record, &selection, &cpus) {
        Err(why @ Error::NotPermitted { .. }) => {
            println!("nothing to do here: {why}");
            assert!(why.to_string().contains("run as root"));
        }
        Err(Error::Host(why @ hostfs::Error::ReadOnly { .. })) => {
            println!("nothing to do here: {why}");
        }
        changes => {
            let changes = changes.unwrap();
            assert!(now());
            drop(changes);
        }
    }
    assert!(!now());
}
