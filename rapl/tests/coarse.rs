//! Readers without privilege learn no more than one figure a second.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::Tree;
use rapl::{Coarse, Joules};

#[test]
fn nothing_changes_within_a_second() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 0)]);
    let mut coarse = Coarse::new(tree.meter(), Duration::from_millis(1));
    assert_eq!(coarse.period(), Duration::from_secs(1));
    let start = Instant::now();
    let mut changes = 0;
    let mut last = None;
    for joules in 1.. {
        tree.set("intel-rapl:0", joules * 1_000_000);
        let now = coarse.energy();
        if last.as_ref() != Some(&now) {
            changes += 1;
        }
        last = Some(now);
        if start.elapsed() > Duration::from_millis(1500) {
            break;
        }
    }
    // The first answer, and one change after a second; a stalled machine may see another.
    let seconds = start.elapsed().as_secs();
    assert!(changes >= 2 && changes <= 1 + seconds, "{changes}");
    assert!(last.unwrap().total().unwrap() > Joules(0.0));
}

#[test]
fn what_was_told_is_not_told_again() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 0)]);
    let mut coarse = Coarse::new(tree.meter(), Duration::ZERO);
    tree.set("intel-rapl:0", 2_000_000);
    std::thread::sleep(Duration::from_millis(1001));
    assert_eq!(coarse.restart().total().unwrap(), Joules(2.0));
    // The same reading, which has no energy, or another one after a stall, which has 0 J.
    let again = coarse.energy().total().unwrap_or_default();
    assert_eq!(again, Joules(0.0));
}
