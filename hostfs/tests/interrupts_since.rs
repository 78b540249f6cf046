//! What is between two tables: wraps, resets, IRQs and CPUs that come and go.
#![allow(clippy::unwrap_used)]

use hostfs::interrupts::{CountChange, Interrupts, InterruptsDelta, ResetReason};

fn table(cpus: &[u32], rows: &[&str]) -> Interrupts {
    let header: String = cpus.iter().map(|cpu| format!(" CPU{cpu}")).collect();
    Interrupts::parse(format!("{header}\n{}\n", rows.join("\n"))).unwrap()
}

/// Two readings of CPUs 0 and 1.
fn between(earlier: &[&str], later: &[&str]) -> InterruptsDelta {
    table(&[0, 1], later).since(&table(&[0, 1], earlier))
}

fn counted(per_cpu: &[u32]) -> CountChange {
    CountChange::Counted {
        per_cpu: per_cpu.to_vec(),
    }
}

#[test]
fn counts_by_irq_and_cpu() {
    let delta = between(
        &["5: 10 20  A  1-edge  a", "LOC: 100 200  Timer", "ERR: 3"],
        &["5: 11 27  A  1-edge  a", "LOC: 101 202  Timer", "ERR: 7"],
    );
    assert_eq!(delta.cpus, [0, 1]);
    assert!(delta.cpus_added.is_empty() && delta.cpus_removed.is_empty());
    let irq = delta.irq(5).unwrap();
    assert_eq!((irq.irq, irq.text.as_str()), (5, "A  1-edge  a"));
    assert_eq!(irq.change.per_cpu().unwrap(), [1, 7]);
    assert!(matches!(irq.change, CountChange::Counted { .. }));
    assert_eq!(irq.change.total(), Some(8));
    assert_eq!(
        delta.other("LOC").unwrap().change.per_cpu().unwrap(),
        [1, 2]
    );
    assert_eq!(
        (delta.globals[0].name.as_str(), delta.globals[0].count),
        ("ERR", Some(4))
    );
    assert_eq!(
        delta.per_cpu_total(),
        [(0, 1), (1, 7)],
        "numbered rows only"
    );
    assert_eq!(delta.uncounted().count(), 0);
}

#[test]
fn a_wrap_is_told_from_a_driver_reload() {
    // 2^32 - 5 to 10 is 15 further on; both CPUs may wrap.
    let delta = between(
        &["5: 4294967291 4294967295  A  1-edge  a"],
        &["5: 10 0  A  1-edge  a"],
    );
    assert_eq!(delta.irqs[0].change, counted(&[15, 1]));
    // From a million back to ten is no wrap, though CPU 1 went on.
    let delta = between(
        &["5: 4294967291 1000000  A  1-edge  a"],
        &["5: 10 10  A  1-edge  a"],
    );
    let CountChange::Reset(reason) = &delta.irqs[0].change else {
        panic!("{delta:?}");
    };
    assert_eq!(
        reason.to_string(),
        "the count of CPU 1 went back from 1000000 to 10, too far for a wrap"
    );
    assert_eq!(delta.irqs[0].change.total(), None);
    assert_eq!(delta.per_cpu_total(), [(0, 0), (1, 0)]);
    assert_eq!(
        delta.uncounted().map(|row| row.irq).collect::<Vec<_>>(),
        [5]
    );
    // The largest step that is believed across zero is 2^28.
    let at = |earlier: u32| {
        between(
            &[&format!("5: {earlier} 0  A  1-edge  a")],
            &["5: 0 0  A  1-edge  a"],
        )
        .irqs[0]
            .change
            .total()
    };
    assert_eq!(at(0xf000_0000), Some(0x1000_0000));
    assert_eq!(at(0xefff_ffff), None);
    // Forward, any step is what it is.
    let delta = between(
        &["5: 0 0  A  1-edge  a"],
        &["5: 4000000000 0  A  1-edge  a"],
    );
    assert_eq!(delta.irqs[0].change.total(), Some(4_000_000_000));
}

#[test]
fn another_user_of_the_number_is_a_reset_even_if_the_counts_rose() {
    let earlier = "5: 10 20  PCI-MSI 81921-edge   eth0-rx-0";
    for later in [
        "5: 100 200  PCI-MSI 81921-edge   eth1-rx-0",
        "5: 100 200  PCI-MSI 81922-edge   eth0-rx-0",
        "5: 100 200  IR-PCI-MSI 81921-edge   eth0-rx-0",
        "5: 100 200  PCI-MSI 81921-fasteoi   eth0-rx-0",
        // `eth1` is not `eth10`.
        "5: 100 200  PCI-MSI 81921-edge   eth0-rx-01",
    ] {
        let delta = between(&[earlier], &[later]);
        let CountChange::Reset(ResetReason::OtherUser { earlier: was }) = &delta.irqs[0].change
        else {
            panic!("{later}: {delta:?}");
        };
        assert_eq!(was, "PCI-MSI 81921-edge   eth0-rx-0");
        assert!(delta.irqs[0].text.len() > 20 && delta.irqs[0].text != *was);
    }
    // One more that shares the line leaves the counts alone, and so does the spacing.
    for later in [
        "5: 11 22  PCI-MSI 81921-edge   eth0-rx-0, other",
        "5: 11 22  PCI-MSI   81921-edge      eth0-rx-0",
    ] {
        assert_eq!(
            between(&[earlier], &[later]).irqs[0].change,
            counted(&[1, 2])
        );
    }
    // One of two that leaves is not told from a reload.
    let delta = between(
        &["5: 11 22  IO-APIC 16-fasteoi   a, b"],
        &["5: 12 22  IO-APIC 16-fasteoi   b"],
    );
    assert!(matches!(delta.irqs[0].change, CountChange::Reset(_)));
    assert!(delta.irqs[0].text.ends_with(" b"));
}

#[test]
fn new_and_vanished_irqs() {
    let delta = between(
        &[
            "5: 10 20  A  1-edge  a",
            "9: 1 1  A  2-edge  gone",
            "TRM: 4 4  Thermal",
        ],
        &[
            "4: 3 0  A  3-edge  new",
            "5: 10 21  A  1-edge  a",
            "DFR: 0 2  Deferred",
        ],
    );
    let irqs: Vec<u32> = delta.irqs.iter().map(|row| row.irq).collect();
    assert_eq!(irqs, [4, 5, 9]);
    assert!(matches!(delta.irqs[0].change, CountChange::New { .. }));
    assert_eq!(delta.irqs[0].change.per_cpu().unwrap(), [3, 0]);
    assert_eq!(delta.irqs[2].change, CountChange::Vanished);
    assert_eq!(delta.irqs[2].text, "A  2-edge  gone");
    // A row that was hidden while it was zero is in the totals.
    assert_eq!(delta.per_cpu_total(), [(0, 3), (1, 1)]);
    assert_eq!(delta.other("TRM").unwrap().change, CountChange::Vanished);
    assert!(matches!(
        delta.other("DFR").unwrap().change,
        CountChange::New { .. }
    ));
}

#[test]
fn changed_columns_compare_the_common_cpus_by_name() {
    let earlier = table(
        &[0, 1, 2],
        &["5: 10 20 30  A  1-edge  a", "LOC: 1 2 3  Timer"],
    );
    let later = table(
        &[0, 2, 3],
        &["5: 11 33 99  A  1-edge  a", "LOC: 2 4 9  Timer"],
    );
    let delta = later.since(&earlier);
    assert_eq!(delta.cpus, [0, 2]);
    assert_eq!(delta.cpus_added.to_string(), "3");
    assert_eq!(delta.cpus_removed.to_string(), "1");
    assert_eq!(delta.irqs[0].change.per_cpu().unwrap(), [1, 3]);
    assert_eq!(delta.others[0].change.per_cpu().unwrap(), [1, 1]);
    assert_eq!(delta.per_cpu_total(), [(0, 1), (2, 3)]);
}

#[test]
fn a_row_that_could_not_be_read_has_not_vanished() {
    let row = "5: 10 20  A  1-edge  a";
    let broken = "5: 10  A  1-edge  a";
    assert_eq!(
        between(&[row], &[broken]).irqs[0].change,
        CountChange::Unread
    );
    assert_eq!(
        between(&[broken], &[row]).irqs[0].change,
        CountChange::Unread
    );
    let (row, broken) = ("LOC: 1 2  Timer", "LOC: 1  Timer");
    assert_eq!(
        between(&[row], &[broken]).others[0].change,
        CountChange::Unread
    );
    assert_eq!(
        between(&[broken], &[row]).others[0].change,
        CountChange::Unread
    );
}

#[test]
fn global_counts_wrap_or_begin_anew() {
    let count = |earlier: &str, later: &str| {
        between(&[&format!("ERR: {earlier}")], &[&format!("ERR: {later}")]).globals[0].count
    };
    assert_eq!(count("4294967295", "1"), Some(2));
    assert_eq!(count("1000", "1"), None);
    assert_eq!(
        count("18446744073709551610", "18446744073709551615"),
        Some(5)
    );
    assert_eq!(count("18446744073709551610", "1"), None);
    let delta = between(&["ERR: 1"], &["MIS: 1"]);
    let names: Vec<_> = delta
        .globals
        .iter()
        .map(|row| (row.name.as_str(), row.count))
        .collect();
    assert_eq!(names, [("MIS", None), ("ERR", None)]);
}
