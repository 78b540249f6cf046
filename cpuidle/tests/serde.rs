//! Results keep their values through JSON.
#![cfg(feature = "serde")]
#![allow(clippy::unwrap_used)]

mod common;

use common::Tree;
use cpuidle::{Cpu, Delta, Outcome, Snapshot, StateSum};

#[test]
fn results_come_back() {
    let tree = Tree::with_states("0-1", 2);
    let idle = tree.idle();
    let text = serde_json::to_string(idle.cpus()).unwrap();
    assert_eq!(
        serde_json::from_str::<Vec<Cpu>>(&text).unwrap(),
        idle.cpus()
    );
    let mut reader = idle.snapshotter().unwrap();
    let before = reader.snapshot();
    tree.set(0, 1, [u64::MAX, 2, 3, 4, 5]);
    tree.write_state(1, 1, "usage", "x\n");
    let after = reader.snapshot();
    let delta = after.since(&before);
    let text = serde_json::to_string(&delta).unwrap();
    assert!(
        text.contains(r#""entries":18446744073709551615,"time_us":2,"too_deep":3"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Delta>(&text).unwrap(), delta);
    let text = serde_json::to_string(&delta.sum()).unwrap();
    assert_eq!(
        serde_json::from_str::<Vec<StateSum>>(&text).unwrap(),
        delta.sum()
    );
    // Saved snapshots can still be subtracted.
    let text = serde_json::to_string(&before).unwrap();
    let saved: Snapshot = serde_json::from_str(&text).unwrap();
    assert_eq!(after.since(&saved), delta);
    // One that was tampered with has fewer figures, and nothing panics.
    let mut tampered: serde_json::Value = serde_json::to_value(&before).unwrap();
    tampered["cpus"].as_array_mut().unwrap().pop();
    tampered["cpus"][0]["states"].as_array_mut().unwrap().pop();
    let tampered: Snapshot = serde_json::from_value(tampered).unwrap();
    let delta = after.since(&tampered);
    assert_eq!(delta.cpus.len(), 2);
    assert_eq!(delta.cpus[1].states[0].outcome, Outcome::NoEarlier);
    assert_eq!(tampered.since(&after).cpus.len(), 2);
    assert_eq!(tampered.states(1).count(), 0);
}
