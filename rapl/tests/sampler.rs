//! A thread that reads: borders, bounds, panics.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::Tree;
use rapl::{Joules, Meter, Options, Sampler, Watts};

fn tree() -> Tree {
    Tree::with(&[
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl:0:0", "core", 0),
        ("intel-rapl:0:1", "dram", 0),
    ])
}

#[test]
fn marks_are_borders_and_the_sums_are_whole() {
    let tree = tree();
    let sampler = Sampler::start(tree.meter(), Duration::from_secs(3600)).unwrap();
    assert!(sampler.mark());
    tree.set("intel-rapl:0", 5_000_000);
    tree.set("intel-rapl:0:0", 4_000_000);
    tree.set("intel-rapl:0:1", 1_000_000);
    assert!(sampler.mark());
    tree.set("intel-rapl:0", 7_000_000);
    let so_far = sampler.series();
    assert_eq!(so_far.samples.last().unwrap().total, Some(Joules(6.0)));
    let series = sampler.stop();
    let totals: Vec<f64> = series.samples.iter().map(|s| s.total.unwrap().0).collect();
    assert_eq!(totals, [0.0, 6.0, 2.0]);
    assert_eq!(series.samples[1].joules[1], Some(Joules(4.0)));
    assert_eq!(series.total(), Some(Joules(8.0)));
    assert_eq!(series.totals[1].joules, Joules(4.0));
    assert!(series.samples[0].end.since(&series.start).is_some());
}

#[test]
fn samples_come_by_themselves_and_a_bounded_series_keeps_the_newest() {
    let tree = tree();
    let sampler = Sampler::start_bounded(tree.meter(), Duration::from_millis(2), 5).unwrap();
    while sampler.series().dropped < 5 {
        std::thread::yield_now();
    }
    tree.set("intel-rapl:0", 3_000_000);
    let series = sampler.stop();
    assert_eq!(series.samples.len(), 5);
    assert!(series.dropped >= 5);
    assert_eq!(series.total(), Some(Joules(3.0)));
    let mut last = series.start;
    for sample in &series.samples {
        assert!(sample.end.since(&last).is_some(), "in their order");
        last = sample.end;
    }
}

/// At 1 kW a range of 10 J may be left unread for 10 ms.
#[test]
fn a_period_that_is_too_long_is_cut_into_readings() {
    let tree = Tree::new();
    tree.zone("intel-rapl:0", "package-0", 0, Some(10_000_000));
    let meter = tree.meter();
    assert_eq!(meter.longest_gap(), Some(Duration::from_millis(10)));
    let sampler = Sampler::start(meter, Duration::from_secs(1)).unwrap();
    assert_eq!(sampler.tick(), Duration::from_millis(5));
    let options = Options::default().power_bound(Watts(1.0));
    let meter = Meter::open_with(&tree.fs(), options).unwrap();
    let slow = Sampler::start(meter, Duration::from_secs(1)).unwrap();
    assert_eq!(slow.tick(), Duration::from_secs(1));
}

#[test]
fn a_panic_of_the_work_does_not_lose_the_series() {
    let tree = tree();
    let sampler = Sampler::start(tree.meter(), Duration::from_secs(3600)).unwrap();
    sampler.mark();
    let (answer, series) = sampler.during(|| -> u32 {
        tree.set("intel-rapl:0", 2_000_000);
        panic!("the work's own fault")
    });
    assert!(answer.is_err());
    assert_eq!(series.total(), Some(Joules(2.0)));
    let sampler = Sampler::start(tree.meter(), Duration::from_secs(3600)).unwrap();
    let (answer, _) = sampler.during(|| 42);
    assert_eq!(answer.unwrap(), 42);
}
