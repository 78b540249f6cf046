//! Joules out of counters that advance, wrap, fail and are reset.
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{MODULUS_61_UJ, RANGE_61, Tree, number};
use rapl::{Fault, Joules, Meter, Options, Outcome, Watts, Wrap};

fn package(energy: u64) -> Tree {
    Tree::with(&[("intel-rapl:0", "package-0", energy)])
}

fn measured(outcome: &Outcome) -> (f64, Wrap) {
    match outcome {
        Outcome::Measured { joules, wrap, .. } => (joules.0, *wrap),
        other => panic!("{other}"),
    }
}

/// Wrap ignored or corrected with the wrong modulus (scaphandre#280, EnergiBridge#17).
#[test]
fn one_wrap_is_corrected_with_the_zones_true_modulus() {
    // 50 J before the end of the range, then 7 J after its beginning: 57 J and the one
    // count by which 2^32 counts exceed the range (61 µJ, with the µJ rounded away 61.36).
    let tree = package(RANGE_61 - 50_000_000);
    let energy = tree.measure(&mut tree.meter(), |tree| {
        tree.set("intel-rapl:0", 7_000_000)
    });
    let (joules, wrap) = measured(&energy.domains[0].outcome);
    assert!((joules - 57.000_061_36).abs() < 1e-9, "{joules}");
    assert_eq!(wrap, Wrap::Corrected);
    assert_eq!(energy.total().unwrap(), Joules(joules));
    let watts = energy.total_watts().unwrap();
    let seconds = energy.domains[0].elapsed.time.as_secs_f64();
    assert!((watts.0 * seconds - joules).abs() < 1e-6);
}

#[test]
fn a_piece_of_work_is_measured_with_its_uncertainty() {
    let tree = package(0);
    tree.zone("intel-rapl:0:0", "core", 0, Some(RANGE_61));
    let mut meter = tree.meter();
    let (answer, energy) = meter.measure(|| {
        std::thread::sleep(Duration::from_millis(20));
        tree.set("intel-rapl:0", 1_000_000);
        42
    });
    assert_eq!((answer, energy.total().unwrap()), (42, Joules(1.0)));
    let added: Vec<&str> = energy.in_total().map(|d| d.domain.id.as_str()).collect();
    assert_eq!(added, ["intel-rapl/package-0"]);
    let domain = &energy.domains[0];
    let watts = domain.outcome.watts().unwrap().0;
    // A step, and a millisecond and the stamps' own uncertainty at that power.
    let uncertain = 61_035e-9 + watts * (0.001 + domain.elapsed.uncertainty.as_secs_f64());
    let total = energy.total_uncertainty().unwrap();
    assert!((total.0 - uncertain).abs() < 1e-12, "{total:?}");
}

/// Range shared between zones (PAPI): each wraps at its own.
#[test]
fn each_zone_wraps_at_its_own_range() {
    let tree = Tree::new();
    let dram_range = 65_712_999_613;
    tree.zone(
        "intel-rapl:0",
        "package-0",
        RANGE_61 - 1_000_000,
        Some(RANGE_61),
    );
    tree.zone(
        "intel-rapl:0:0",
        "dram",
        dram_range - 1_000_000,
        Some(dram_range),
    );
    tree.zone(
        "intel-rapl:1",
        "package-1",
        9_999_000_000,
        Some(10_000_000_000),
    );
    let energy = tree.measure(&mut tree.meter(), |tree| {
        for zone in ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"] {
            tree.set(zone, 2_000_000);
        }
    });
    let got: Vec<(f64, Wrap)> = energy
        .domains
        .iter()
        .map(|domain| measured(&domain.outcome))
        .collect();
    assert!((got[0].0 - 3.000_061_36).abs() < 1e-9, "{got:?}");
    // 2^32 * 15300 nJ = 65712999628.8 µJ, 15.8 µJ past the range.
    assert!((got[1].0 - 3.000_015_8).abs() < 1e-9, "{got:?}");
    assert_eq!(got[1].1, Wrap::Corrected);
    assert_eq!(got[2], (3.0, Wrap::CorrectedByRange));
}

/// A range of 0 (powercap#3), or none.
#[test]
fn without_a_range_a_wrap_is_not_made_up() {
    for range in [Some(0), None] {
        let tree = Tree::new();
        tree.zone("intel-rapl:0", "package-0", 5_000_000, range);
        let mut meter = tree.meter();
        let rose = tree.measure(&mut meter, |tree| tree.set("intel-rapl:0", 6_000_000));
        assert_eq!(measured(&rose.domains[0].outcome), (1.0, Wrap::Unknown));
        let fell = tree.measure(&mut meter, |tree| tree.set("intel-rapl:0", 1));
        assert_eq!(fell.domains[0].outcome, Outcome::NotCorrectable);
        let message = fell.total().unwrap_err().to_string();
        assert!(message.contains("without a valid range"), "{message}");
    }
}

/// Unsigned underflow to 1.8e19 (kepler PR#53): a counter past its own range.
#[test]
fn a_counter_beyond_its_range_is_not_corrected_with_it() {
    let tree = Tree::new();
    tree.zone("intel-rapl:0", "package-0", u64::MAX, Some(100_000_000));
    let energy = tree.measure(&mut tree.meter(), |tree| tree.set("intel-rapl:0", 5));
    assert_eq!(energy.domains[0].outcome, Outcome::NotCorrectable);
}

#[test]
fn a_counter_set_to_zero_is_a_reset() {
    let tree = package(100_000_000_000);
    // As a wrap this would be 162 kJ in no time.
    let energy = tree.measure(&mut tree.meter(), |tree| {
        tree.set("intel-rapl:0", 5_000_000)
    });
    assert_eq!(energy.domains[0].outcome, Outcome::Reset);
    let incomplete = energy.total().unwrap_err();
    assert_eq!(incomplete.missing[0].id, "intel-rapl/package-0");
    assert_eq!(
        incomplete.to_string(),
        "no total without intel-rapl/package-0: the counter was reset meanwhile"
    );
}

/// A failed read taken as 0, which then looks like a wrap (CodeCarbon).
#[test]
fn one_counter_fails_and_the_others_go_on() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1_000_000),
        ("intel-rapl:1", "package-1", 1_000_000),
    ]);
    let mut meter = tree.meter();
    let good = meter.read();
    for text in ["", "\n", "-1\n", "12x\n", "184467440737095516160\n"] {
        tree.write("intel-rapl:1", text);
        tree.set("intel-rapl:0", 3_000_000);
        let bad = meter.read();
        let energy = bad.since(&good);
        assert_eq!(measured(&energy.domains[0].outcome).0, 2.0);
        let Outcome::Unreadable(Fault::Malformed { text: found }) = &energy.domains[1].outcome
        else {
            panic!("{text:?}: {}", energy.domains[1].outcome);
        };
        assert_eq!(found, text);
        assert_eq!(energy.total().unwrap_err().known, Joules(2.0));
        // Nor is there a value across a reading that failed at its beginning.
        tree.write("intel-rapl:1", &number(4_000_000));
        let later = meter.read();
        assert!(later.since(&bad).domains[1].outcome.joules().is_none());
        assert_eq!(later.since(&good).total().unwrap(), Joules(5.0));
    }
}

/// Several wraps in one interval (likwid#646, zeus#91).
#[test]
fn an_interval_that_may_hide_wraps_is_ambiguous() {
    let tree = Tree::new();
    // At most 1 kW: a range of 1 J may wrap every millisecond.
    tree.zone("intel-rapl:0", "package-0", 0, Some(1_000_000));
    tree.zone("intel-rapl:1", "package-1", 0, Some(RANGE_61));
    let energy = tree.measure(&mut tree.meter(), |tree| {
        std::thread::sleep(Duration::from_millis(20));
        tree.set("intel-rapl:0", 250_000);
        tree.set("intel-rapl:1", 250_000);
    });
    assert_eq!(
        energy.domains[0].outcome.to_string(),
        "at least 0.250 J: the interval is so long that the counter may have wrapped more \
         often: read more often"
    );
    let Outcome::Ambiguous { modulus, .. } = energy.domains[0].outcome else {
        panic!("{}", energy.domains[0].outcome);
    };
    assert_eq!(modulus, Joules(1.0));
    assert_eq!(measured(&energy.domains[1].outcome).0, 0.25);
    assert_eq!(energy.total().unwrap_err().known, Joules(0.25));
    // With a bound that the caller knows to hold, the same interval is unambiguous.
    let options = Options::default().power_bound(Watts(0.01));
    let mut meter = Meter::open_with(&tree.fs(), options).unwrap();
    let energy = tree.measure(&mut meter, |tree| tree.set("intel-rapl:0", 260_000));
    assert_eq!(measured(&energy.domains[0].outcome), (0.01, Wrap::No));
}

#[test]
fn readings_in_the_wrong_order_or_of_another_meter() {
    let tree = package(1_000_000);
    let (mut one, mut other) = (tree.meter(), tree.meter());
    let first = one.read();
    tree.set("intel-rapl:0", 2_000_000);
    let second = other.read();
    assert_eq!(second.since(&first).total().unwrap(), Joules(1.0));
    assert_eq!(first.since(&second).domains[0].outcome, Outcome::NotLater);
    assert_eq!(first.since(&first).domains[0].outcome, Outcome::NotLater);
    let elsewhere = Tree::with(&[("intel-rapl:0", "package-3", 1)])
        .meter()
        .read();
    assert_eq!(
        second.since(&elsewhere).domains[0].outcome,
        Outcome::NoEarlier
    );
}

#[test]
fn a_machine_without_packages_has_no_total() {
    let tree = Tree::with(&[("intel-rapl:0", "psys", 0)]);
    let energy = tree.measure(&mut tree.meter(), |tree| {
        tree.set("intel-rapl:0", 1_000_000)
    });
    assert_eq!(measured(&energy.domains[0].outcome).0, 1.0);
    assert_eq!(
        energy.total().unwrap_err().to_string(),
        "no total: there is no package or dram zone"
    );
}

/// A counter that a thread advances at known watts, over a wrap: joules are watts times the
/// time between the stamps.
#[test]
fn known_watts_over_a_wrap() {
    const WATTS: u64 = 80;
    let start = RANGE_61 - 4_000_000;
    let tree = package(start);
    let mut meter = tree.meter();
    let first = meter.read();
    let counter = tree.counter("intel-rapl:0");
    // Held while the counter is written and while it is read, so that the time at which a
    // value was valid is known.
    let last_set = Arc::new(Mutex::new(Instant::now()));
    let stop = Arc::new(AtomicBool::new(false));
    let origin = Instant::now();
    let advance = {
        let (last_set, stop) = (Arc::clone(&last_set), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut last_set = last_set.lock().unwrap();
                let now = Instant::now();
                let spent_uj = (now - origin).as_micros() as u64 * WATTS;
                let energy = (start + spent_uj) % MODULUS_61_UJ;
                counter.write_all_at(number(energy).as_bytes(), 0).unwrap();
                *last_set = now;
                drop(last_set);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let mut read = || {
        let last_set = last_set.lock().unwrap();
        (meter.read(), *last_set)
    };
    let mut series = vec![first.clone()];
    let known = loop {
        std::thread::sleep(Duration::from_millis(15));
        let (reading, last_set) = read();
        series.push(reading);
        let known = last_set.saturating_duration_since(origin).as_secs_f64() * WATTS as f64;
        // The wrap comes after 4 J.
        if known > 10.0 {
            break known;
        }
    };
    stop.store(true, Ordering::Relaxed);
    advance.join().unwrap();

    let energy = series[series.len() - 1].since(&first);
    let (joules, wrap) = measured(&energy.domains[0].outcome);
    assert_eq!(wrap, Wrap::Corrected);
    // The thread rounds to µs, that is to 80 µJ.
    assert!((joules - known).abs() < 90e-6, "{joules} for {known}");
    let sum: f64 = series
        .windows(2)
        .map(|pair| pair[1].since(&pair[0]).total().unwrap().0)
        .sum();
    assert!((sum - joules).abs() < 1e-6, "{sum} for {joules}");
}
