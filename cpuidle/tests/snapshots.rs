//! Snapshots and what happened between two of them.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::time::Duration;

use common::Tree;
use cpuidle::{Counts, Delta, Fault, Outcome, Snapshot};

fn counts(delta: &Delta, cpu: usize, state: usize) -> Counts {
    let outcome = &delta.cpus[cpu].states[state].outcome;
    *outcome.counts().unwrap_or_else(|| panic!("{outcome}"))
}

fn outcomes(delta: &Delta, cpu: usize) -> Vec<&Outcome> {
    delta.cpus[cpu]
        .states
        .iter()
        .map(|state| &state.outcome)
        .collect()
}

#[test]
fn every_counter_under_its_name() {
    let tree = Tree::with_states("0-1", 2);
    tree.set(1, 2, [100, 20_000, 10, 5, 1]);
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    tree.set(1, 2, [130, 29_000, 12, 6, 5]);
    let after = reader.snapshot();
    let (index, name, state) = after.states(1).last().unwrap();
    assert_eq!((index, name), (2, "C6"));
    let counters = state.counters.clone().unwrap();
    assert_eq!((counters.usage, counters.time_us), (130, 29_000));
    assert_eq!((counters.above, counters.below), (Some(12), Some(6)));
    assert_eq!(counters.rejected, Some(5));
    let delta = after.since(&before);
    let c6 = counts(&delta, 1, 2);
    assert_eq!((c6.entries, c6.time_us), (30, 9_000));
    assert_eq!(
        (c6.too_deep, c6.too_shallow, c6.rejected),
        (Some(2), Some(1), Some(4))
    );
    assert_eq!(counts(&delta, 0, 2).entries, 0);
    assert_eq!((delta.cpus[1].cpu, delta.cpus[1].states[2].index), (1, 2));
    assert_eq!(delta.cpus[1].states[2].name, "C6");
    assert!(!delta.cpus[1].states[2].reopened);
    assert!(delta.elapsed.time > Duration::ZERO);
    assert!(delta.cpus[0].elapsed.time > Duration::ZERO);
    assert!(after.cpus()[0].stamp.monotonic() < after.cpus()[1].stamp.monotonic());
    assert!(after.states(7).next().is_none());
}

/// Counters that a kernel lacks are `None`, never 0.
#[test]
fn an_old_kernels_counters() {
    let tree = Tree::with_states("0-1", 2);
    for file in ["above", "below", "rejected"] {
        fs::remove_file(tree.state_dir(0, 1).join(file)).unwrap();
    }
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    tree.write_state(0, 1, "usage", "7\n");
    tree.set(1, 1, [5, 50, 4, 3, 2]);
    let delta = reader.snapshot().since(&before);
    let c1 = counts(&delta, 0, 1);
    assert_eq!(c1.entries, 7);
    assert_eq!(
        (c1.too_deep, c1.too_shallow, c1.rejected),
        (None, None, None)
    );
    // Nor does a sum pretend to know what one of its CPUs lacks.
    let sum = delta.sum()[1].counts.unwrap();
    assert_eq!((sum.entries, sum.time_us), (12, 50));
    assert_eq!(
        (sum.too_deep, sum.too_shallow, sum.rejected),
        (None, None, None)
    );
}

/// Errors read as 0 (cpupower): a failing file costs its state the figure, no other.
#[test]
fn a_counter_that_is_no_number() {
    let tree = Tree::with_states("0", 1);
    tree.set(0, 1, [7, 7, 7, 7, 7]);
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    for (file, text) in [
        ("usage", ""),
        ("time", "-1\n"),
        ("above", "x\n"),
        ("below", "99999999999999999999\n"),
        ("rejected", "\n"),
    ] {
        tree.write_state(0, 1, file, text);
        let after = reader.snapshot();
        let delta = after.since(&before);
        let fault = Fault::Malformed { text: text.into() };
        assert_eq!(*outcomes(&delta, 0)[1], Outcome::Unreadable(fault));
        assert_eq!(counts(&delta, 0, 2).entries, 0);
        assert_eq!(delta.sum()[1].counts, None);
        assert_eq!(delta.sum()[1].missing.to_string(), "0");
        tree.write_state(0, 1, file, "8\n");
        let later = reader.snapshot();
        assert!(
            later.since(&after).cpus[0].states[1]
                .outcome
                .counts()
                .is_none()
        );
        assert!(
            later.since(&before).cpus[0].states[1]
                .outcome
                .counts()
                .is_some()
        );
    }
}

/// A reset is no huge or negative number, and it is one for all states of the CPU: the ones
/// that have already overtaken their earlier value count from zero too.
#[test]
fn a_driver_that_was_registered_again() {
    let tree = Tree::with_states("0-1", 2);
    tree.set(0, 1, [1000, 1000, 1, 1, 1]);
    tree.set(0, 2, [3, 3, 0, 0, 0]);
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    tree.set(0, 1, [5, 5, 0, 0, 0]);
    tree.set(0, 2, [10, 10, 0, 0, 0]);
    tree.set(1, 2, [9, 90, 0, 0, 0]);
    let delta = reader.snapshot().since(&before);
    assert_eq!(outcomes(&delta, 0), [&Outcome::Reset; 3]);
    assert_eq!(
        delta.cpus[0].states[1].outcome.to_string(),
        "the CPU's counters were reset meanwhile"
    );
    let c6 = &delta.sum()[2];
    assert_eq!(
        (c6.cpus.to_string(), c6.missing.to_string()),
        ("1".into(), "0".into())
    );
    assert_eq!(c6.counts.unwrap().entries, 9);
}

#[test]
fn each_counter_alone_tells_a_reset() {
    for at in 0..5 {
        let tree = Tree::with_states("0", 1);
        tree.set(0, 0, [50; 5]);
        let mut reader = tree.idle().snapshotter().unwrap();
        let before = reader.snapshot();
        let mut counters = [60; 5];
        counters[at] = 49;
        tree.set(0, 0, counters);
        let delta = reader.snapshot().since(&before);
        assert_eq!(*outcomes(&delta, 0)[0], Outcome::Reset, "counter {at}");
    }
}

/// Offline CPUs walked as if present: their files stay readable and frozen here.
#[test]
fn a_cpu_that_goes_offline_and_comes_back() {
    let tree = Tree::with_states("0-1", 2);
    let mut reader = tree.idle().snapshotter().unwrap();
    let both = reader.snapshot();
    tree.write("sys/devices/system/cpu/online", "0\n");
    let one = reader.snapshot();
    assert_eq!(one.cpus()[1].states[0].counters, Err(Fault::Offline));
    assert!(one.cpus()[0].states[0].counters.is_ok());
    let delta = one.since(&both);
    assert_eq!(outcomes(&delta, 1), [&Outcome::Gone; 3]);
    assert_eq!(delta.sum()[0].cpus.to_string(), "0");
    assert_eq!(delta.sum()[0].missing.to_string(), "1");
    tree.write("sys/devices/system/cpu/online", "0-1\n");
    tree.set(1, 1, [4, 4, 0, 0, 0]);
    let back = reader.snapshot();
    assert_eq!(outcomes(&back.since(&one), 1), [&Outcome::Gone; 3]);
    assert_eq!(counts(&back.since(&both), 1, 1).entries, 4);
    tree.write("sys/devices/system/cpu/online", "none\n");
    let unknown = reader.snapshot().cpus()[0].states[0].counters.clone();
    assert_eq!(
        unknown,
        Err(Fault::Malformed {
            text: "none\n".into()
        })
    );
}

/// CPUs with different numbers of states, and a number that changes between snapshots.
#[test]
fn states_and_cpus_that_come_and_go_between_two_readers() {
    let tree = Tree::with_states("0-1", 2);
    let before = tree.idle().snapshotter().unwrap().snapshot();
    // Another driver: CPU 0 has C1E in the place of C6 and one state more.
    tree.write_state(0, 2, "name", "C1E\n");
    tree.state(0, 3, "C6");
    tree.write("sys/devices/system/cpu/online", "0,2\n");
    tree.state(2, 0, "POLL");
    let after = tree.idle().snapshotter().unwrap().snapshot();
    let delta = after.since(&before);
    let seen = |cpu: usize| -> Vec<(u32, &str, &Outcome)> {
        delta.cpus[cpu]
            .states
            .iter()
            .map(|s| (s.index, s.name.as_str(), &s.outcome))
            .collect()
    };
    let mut zero = Counts::default();
    zero.too_deep = Some(0);
    zero.too_shallow = Some(0);
    zero.rejected = Some(0);
    let zero = Outcome::Counted(zero);
    assert_eq!(
        seen(0),
        [
            (0, "POLL", &zero),
            (1, "C1", &zero),
            (2, "C1E", &Outcome::NoEarlier),
            (2, "C6", &Outcome::Gone),
            (3, "C6", &Outcome::NoEarlier),
        ]
    );
    assert_eq!(
        delta.cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(outcomes(&delta, 1), [&Outcome::Gone; 3]);
    assert_eq!(seen(2), [(0, "POLL", &Outcome::NoEarlier)]);
}

#[test]
fn snapshots_in_the_wrong_order() {
    let tree = Tree::with_states("0", 1);
    let mut reader = tree.idle().snapshotter().unwrap();
    let first = reader.snapshot();
    tree.set(0, 0, [9; 5]);
    let second = reader.snapshot();
    for delta in [first.since(&second), first.since(&first)] {
        assert_eq!(outcomes(&delta, 0), [&Outcome::NotLater; 3]);
        assert_eq!(delta.sum()[0].counts, None);
    }
}

/// Wall-clock time is not used for rates; a share is of the CPU's own interval, and may
/// exceed 100 %, since a whole stay is counted when it ends.
#[test]
fn a_share_is_not_clamped() {
    let tree = Tree::with_states("0-1", 2);
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    tree.set(0, 2, [1, 3_600_000_000, 0, 0, 0]);
    let delta = reader.snapshot().since(&before);
    let time = delta.cpus[0].elapsed.time;
    let expected = 3600.0 / time.as_secs_f64() * 100.0;
    let share = counts(&delta, 0, 2).share_percent(time).unwrap();
    assert!(
        (share / expected - 1.0).abs() < 1e-9 && share > 100.0,
        "{share}"
    );
    assert_eq!(counts(&delta, 1, 2).share_percent(time), Some(0.0));
    assert_eq!(counts(&delta, 0, 2).share_percent(Duration::ZERO), None);
    // 3600 s on two CPUs.
    let sum = &delta.sum()[2];
    assert_eq!(sum.cpu_time, time + delta.cpus[1].elapsed.time);
    let expected = 3600.0 / sum.cpu_time.as_secs_f64() * 100.0;
    assert!((sum.share_percent().unwrap() / expected - 1.0).abs() < 1e-9);
    let mut counts = Counts::default();
    counts.time_us = 1_500_000;
    assert_eq!(counts.share_percent(Duration::from_secs(1)), Some(150.0));
}

/// CPUs with different numbers of states (cpupower): summed up by name, in state order.
#[test]
fn sums_over_cpus_that_differ() {
    let tree = Tree::with_states("0-2", 2);
    for (index, name) in ["POLL", "C1", "C1E", "C6"].into_iter().enumerate() {
        tree.state(2, index as u32, name);
    }
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    tree.set(0, 2, [1, 10, 1, 0, 0]);
    tree.set(1, 2, [2, 20, 1, 1, 0]);
    tree.set(2, 2, [4, 40, 0, 0, 0]);
    tree.set(2, 3, [8, 80, 0, 2, 1]);
    let delta = reader.snapshot().since(&before);
    let of = |sums: Vec<cpuidle::StateSum>| -> Vec<(String, u64, String)> {
        sums.into_iter()
            .map(|sum| (sum.name, sum.counts.unwrap().entries, sum.cpus.to_string()))
            .collect()
    };
    let row = |name: &str, entries, cpus: &str| (name.to_owned(), entries, cpus.to_owned());
    assert_eq!(
        of(delta.sum()),
        [
            row("POLL", 0, "0-2"),
            row("C1", 0, "0-2"),
            row("C1E", 4, "2"),
            row("C6", 11, "0-2"),
        ]
    );
    let c6 = delta.sum()[3].counts.unwrap();
    assert_eq!(
        (c6.time_us, c6.too_deep, c6.too_shallow, c6.rejected),
        (110, Some(2), Some(3), Some(1))
    );
    assert_eq!(
        of(delta.sum_over(&"0-1,9".parse().unwrap())),
        [
            row("POLL", 0, "0-1"),
            row("C1", 0, "0-1"),
            row("C6", 3, "0-1")
        ]
    );
    assert!(delta.sum_over(&"9".parse().unwrap()).is_empty());
}

#[test]
fn states_of_one_name_on_one_cpu_stay_apart() {
    let tree = Tree::new("0-1");
    for cpu in 0..2 {
        for index in 0..2 {
            tree.state(cpu, index, "<null>");
        }
    }
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    for cpu in 0..2 {
        tree.set(cpu, 0, [1; 5]);
        tree.set(cpu, 1, [10; 5]);
    }
    let delta = reader.snapshot().since(&before);
    let entries: Vec<u64> = delta
        .sum()
        .iter()
        .map(|s| s.counts.unwrap().entries)
        .collect();
    assert_eq!(entries, [2, 20]);
}

#[test]
fn a_sum_past_64_bits_is_none() {
    let tree = Tree::with_states("0-1", 2);
    let mut reader = tree.idle().snapshotter().unwrap();
    let before = reader.snapshot();
    tree.set(0, 0, [u64::MAX; 5]);
    tree.set(1, 0, [1; 5]);
    let sum = &reader.snapshot().since(&before).sum()[0];
    assert_eq!(
        (sum.cpus.to_string(), sum.missing.to_string()),
        ("0".into(), "1".into())
    );
    assert_eq!(sum.counts.unwrap().entries, u64::MAX);
}

#[test]
fn a_snapshot_of_another_reader_is_made_anew() {
    let tree = Tree::with_states("0-1", 2);
    let mut reader = tree.idle().snapshotter().unwrap();
    let other = Tree::with_states("0", 1);
    let mut snapshot: Snapshot = other.idle().snapshotter().unwrap().snapshot();
    reader.snapshot_into(&mut snapshot);
    assert_eq!(snapshot.cpus().len(), 2);
}

#[test]
fn a_state_without_its_counters_cannot_be_opened() {
    let tree = Tree::with_states("0", 1);
    fs::remove_file(tree.state_dir(0, 2).join("time")).unwrap();
    let error = tree.idle().snapshotter().unwrap_err().to_string();
    assert!(
        error.ends_with("cpu0/cpuidle/state2/time: not there"),
        "{error}"
    );
}
