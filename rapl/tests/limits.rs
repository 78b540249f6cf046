//! Power limits where they answer.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::time::Duration;

use common::Tree;
use rapl::{Fault, Watts};

/// ENODATA limits (s-tui#29): what does not answer is absent, and the rest is there.
#[test]
fn constraints_in_their_order() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 1)]);
    for (file, text) in [
        ("enabled", "1\n"),
        ("constraint_0_name", "long_term\n"),
        ("constraint_0_power_limit_uw", "15000000\n"),
        ("constraint_0_time_window_us", "27983872\n"),
        ("constraint_0_max_power_uw", "15000000\n"),
        ("constraint_1_name", "short_term\n"),
        ("constraint_1_power_limit_uw", "-5\n"),
        ("constraint_10_power_limit_uw", "1\n"),
        ("constraint_2_name", "peak_power\n"),
        ("constraint_2_power_limit_uw", "78000000\n"),
        ("constraint_x_name", "none\n"),
        ("constraint_", "none\n"),
    ] {
        fs::write(tree.file("intel-rapl:0", file), text).unwrap();
    }
    let meter = tree.meter();
    let limits = meter.domains()[0].limits(&tree.fs()).unwrap().unwrap();
    assert_eq!(limits.enabled, Some(true));
    let numbers: Vec<u32> = limits.constraints.iter().map(|c| c.number).collect();
    assert_eq!(numbers, [0, 1, 2, 10]);
    let long = &limits.constraints[0];
    assert_eq!(long.name.as_deref(), Some("long_term"));
    assert_eq!(long.power_limit, Ok(Some(Watts(15.0))));
    assert_eq!(
        long.time_window,
        Ok(Some(Duration::from_micros(27_983_872)))
    );
    assert_eq!(long.max_power, Ok(Some(Watts(15.0))));
    let short = &limits.constraints[1];
    assert!(matches!(&short.power_limit, Err(Fault::Malformed { text }) if text == "-5"));
    let peak = &limits.constraints[2];
    assert_eq!((&peak.time_window, &peak.max_power), (&Ok(None), &Ok(None)));
    assert_eq!(limits.constraints[3].name, None);
}

#[test]
fn a_zone_without_limits_and_a_domain_without_a_zone() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 1)]);
    let zone = tree.meter().domains()[0].clone();
    let limits = zone.limits(&tree.fs()).unwrap().unwrap();
    assert_eq!((limits.enabled, limits.constraints.len()), (None, 0));
    fs::write(tree.file("intel-rapl:0", "enabled"), "0\n").unwrap();
    assert_eq!(
        zone.limits(&tree.fs()).unwrap().unwrap().enabled,
        Some(false)
    );

    let tree = Tree::bare("");
    tree.processor("GenuineIntel", 6, 0x9E);
    tree.cpu(0, 0, 0, 0);
    tree.register(0, 0x606, 0x000A_0E03);
    tree.register(0, 0x611, 1);
    let register = tree.meter().domains()[0].clone();
    assert_eq!(register.limits(&tree.fs()), Ok(None));
}
