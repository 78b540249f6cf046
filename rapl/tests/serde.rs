//! Results keep their values through JSON.
#![cfg(feature = "serde")]
#![allow(clippy::unwrap_used)]

mod common;

use common::Tree;
use rapl::{Energy, Incomplete, Reading};

#[test]
fn results_come_back() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:0:0", "dram", 100_000_000_000),
        ("intel-rapl:1", "package-1", 1),
    ]);
    tree.write("intel-rapl:1", "\n");
    let mut meter = tree.meter();
    let before = meter.read();
    tree.set("intel-rapl:0", 1_234_568);
    tree.set("intel-rapl:0:0", 0);
    let after = meter.read();
    let energy = after.since(&before);
    let text = serde_json::to_string(&energy).unwrap();
    assert!(text.contains(r#""joules":1.234567,"#), "{text}");
    assert!(text.contains(r#""kind":"package""#) && text.contains(r#""outcome":"reset""#));
    assert_eq!(serde_json::from_str::<Energy>(&text).unwrap(), energy);
    let incomplete = energy.total().unwrap_err();
    let text = serde_json::to_string(&incomplete).unwrap();
    assert_eq!(
        serde_json::from_str::<Incomplete>(&text).unwrap(),
        incomplete
    );
    // Saved readings can still be subtracted.
    let text = serde_json::to_string(&before).unwrap();
    let saved: Reading = serde_json::from_str(&text).unwrap();
    assert_eq!(after.since(&saved), energy);
}
