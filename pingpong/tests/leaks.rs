//! Nothing is left behind. A binary with one test, since it counts the whole process's
//! threads and descriptors.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use common::{cpus, pair, pairs};
use pingpong::{Limit, Rings, Stopper};

fn count(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn threads_and_descriptors() -> (usize, usize) {
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// A thread that was joined can be listed for a moment still.
fn assert_back_to(before: (usize, usize), after: &str) {
    let patience = Instant::now() + Duration::from_secs(30);
    while threads_and_descriptors() != before {
        let now = threads_and_descriptors();
        assert!(
            Instant::now() < patience,
            "after {after}: {now:?}, was {before:?}"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_thread_and_no_descriptor_stays_behind() {
    // What the process opens once for all, panics and the mask of all CPUs among them.
    pingpong::usable_cpus().unwrap();
    let before = threads_and_descriptors();

    for place in pairs() {
        let rings = pair(place).limit(Limit::Loops(10)).build().unwrap();
        rings.run().unwrap();
        assert_back_to(before, "a good run");

        let stopper = Stopper::new();
        let rings = pair(place)
            .limit(Limit::UntilStopped)
            .stopper(stopper.clone());
        rings
            .build()
            .unwrap()
            .run_with(|_, _| stopper.stop())
            .unwrap();
        assert_back_to(before, "a stopped run");

        for bad in [0, 1] {
            let rings = pair(place).build().unwrap();
            let outcome = rings.run_with(|_, stop| assert_ne!(stop, bad));
            assert!(outcome.is_err());
            assert_back_to(before, "a panic");
        }
    }

    let refused = Rings::builder().ring([cpus()[0], u32::MAX]).build();
    assert!(refused.is_err());
    assert_back_to(before, "a refusal");
}
