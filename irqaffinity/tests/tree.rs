//! IRQs in trees: what is read, set and put back, with a thread in the kernel's place.
#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hostfs::{CpuSet, HostFs, Restore};
use irqaffinity::irqbalance::Irqbalance;
use irqaffinity::{Error, Irq, IrqRestored, Saved, default_affinity, set_affinity};

struct Tree {
    dir: tempfile::TempDir,
    fs: HostFs,
}

impl Tree {
    fn new(default: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/irq")).unwrap();
        let fs = HostFs::at(dir.path()).unwrap();
        let tree = Tree { dir, fs };
        tree.write("proc/irq/default_smp_affinity", default);
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), format!("{text}\n")).unwrap();
    }

    /// An IRQ as a kernel shows it that tells where it is delivered to.
    fn irq(&self, irq: u32, affinity: &str, effective: &str) -> &Self {
        self.write(&format!("proc/irq/{irq}/smp_affinity_list"), affinity);
        self.write(
            &format!("proc/irq/{irq}/effective_affinity_list"),
            effective,
        );
        self
    }

    fn affinity(&self, irq: u32) -> String {
        let path = format!("proc/irq/{irq}/smp_affinity_list");
        self.fs.read_text(path).unwrap()
    }

    fn effective(&self, irq: u32) -> String {
        let path = format!("proc/irq/{irq}/effective_affinity_list");
        self.fs.read_text(path).unwrap()
    }

    /// What an interrupt makes the kernel do: the IRQ moves to the first CPU of its
    /// affinity, unless that allows it to stay.
    fn interrupt(&self, irq: u32) {
        let Ok(affinity) = self.affinity(irq).parse::<CpuSet>() else {
            return;
        };
        let effective: CpuSet = self.effective(irq).parse().unwrap();
        if let Some(first) = affinity.min().filter(|_| !effective.is_subset(&affinity)) {
            let path = format!("proc/irq/{irq}/effective_affinity_list");
            // In place, so that no reader finds the file empty for long.
            self.fs.write(path, &first.to_string()).unwrap();
        }
    }

    /// Runs something while an IRQ is busy.
    fn busy<T>(&self, irq: u32, run: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    self.interrupt(irq);
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
            let result = run();
            done.store(true, Ordering::Relaxed);
            result
        })
    }
}

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn the_state_of_irqs() {
    let tree = Tree::new("ff");
    tree.irq(4, "0-3", "2");
    tree.write("proc/irq/4/affinity_hint", "00000000,00000002");
    tree.write("proc/irq/4/node", "1");
    // An old kernel: no effective affinity; no hint, no node.
    tree.write("proc/irq/10/smp_affinity_list", "0-7");
    tree.write("proc/irq/10/affinity_hint", "00");
    tree.write("proc/irq/10/node", "-1");
    // More CPUs than fit in a fixed set, and an IRQ that nobody uses.
    tree.irq(200, "0-4095", "");
    // Gone between the listing and the reading, and no IRQ at all.
    fs::create_dir(tree.path("proc/irq/9")).unwrap();
    fs::create_dir(tree.path("proc/irq/eth0")).unwrap();

    let irqs = Irq::read_all(&tree.fs).unwrap();
    assert_eq!(
        irqs.iter().map(|irq| irq.irq).collect::<Vec<_>>(),
        [4, 10, 200]
    );
    assert_eq!(irqs[0].affinity, cpus("0-3"));
    assert_eq!(irqs[0].effective, Some(cpus("2")));
    assert_eq!(irqs[0].hint, Some(cpus("1")));
    assert_eq!(irqs[0].node, Some(1));
    assert_eq!(irqs[0].settable, None, "only a write tells");
    assert_eq!(
        (&irqs[1].effective, &irqs[1].hint, irqs[1].node),
        (&None, &None, None)
    );
    assert_eq!(irqs[2].affinity.len(), 4096);
    assert_eq!(irqs[2].effective, Some(CpuSet::new()));
    assert_eq!(Irq::read(&tree.fs, 4).unwrap(), irqs[0]);
    assert_eq!(
        Irq::read(&tree.fs, 9).unwrap_err(),
        Error::Vanished { irq: 9 }
    );
    assert_eq!(default_affinity(&tree.fs).unwrap(), cpus("0-7"));
}

#[test]
fn an_affinity_that_nobody_may_write_is_not_settable() {
    let tree = Tree::new("3");
    tree.irq(4, "0-1", "0");
    let path = tree.path("proc/irq/4/smp_affinity_list");
    fs::set_permissions(path, Permissions::from_mode(0o444)).unwrap();
    assert_eq!(Irq::read(&tree.fs, 4).unwrap().settable, Some(false));
}

#[test]
fn malformed_files_are_named() {
    let tree = Tree::new("xyz");
    let error = default_affinity(&tree.fs).unwrap_err().to_string();
    assert!(
        error.ends_with("default_smp_affinity: malformed: expected a mask of CPUs, found \"xyz\""),
        "{error}"
    );
    tree.irq(4, "0-", "0");
    let error = Irq::read(&tree.fs, 4).unwrap_err().to_string();
    assert!(error.contains("smp_affinity_list: malformed"), "{error}");
    let empty = HostFs::at(tree.path("proc/irq/4")).unwrap();
    assert!(matches!(default_affinity(&empty), Err(Error::Host(e)) if e.is_not_found()));
    assert!(matches!(Irq::read_all(&empty), Err(Error::Host(e)) if e.is_not_found()));
}

#[test]
fn setting_writes_the_list_form_and_says_what_the_kernel_made_of_it() {
    let tree = Tree::new("ff,ffffffff");
    tree.irq(4, "0-39", "7");
    let record = Restore::new(&tree.fs);
    let guard = set_affinity(&record, 4, &cpus("0,33-34")).unwrap();
    // In list form no comma can be forgotten.
    assert_eq!(tree.affinity(4), "0,33-34");
    let outcome = guard.outcome();
    assert_eq!((outcome.irq, &outcome.requested), (4, &cpus("0,33-34")));
    assert_eq!(outcome.affinity, cpus("0,33-34"));
    assert_eq!(outcome.effective, Some(cpus("7")));
    assert_eq!(outcome.pending, Some(true), "CPU 7 is not among them");
    assert_eq!(
        outcome.to_string(),
        "IRQ 4: CPUs 0,33-34, from its next interrupt on (now CPU 7)"
    );
    assert_eq!(guard.restore(), IrqRestored::PutBack);
    assert_eq!(tree.affinity(4), "0-39");

    let guard = set_affinity(&record, 4, &cpus("7-8")).unwrap();
    assert_eq!(guard.outcome().pending, Some(false));
    assert_eq!(
        guard.outcome().to_string(),
        "IRQ 4: CPUs 7-8, served by CPU 7"
    );
    drop(guard);
    assert_eq!(tree.affinity(4), "0-39");

    fs::remove_file(tree.path("proc/irq/4/effective_affinity_list")).unwrap();
    let guard = set_affinity(&record, 4, &cpus("1")).unwrap();
    assert_eq!(
        (&guard.outcome().effective, guard.outcome().pending),
        (&None, None)
    );
    assert_eq!(guard.outcome().to_string(), "IRQ 4: CPUs 1");
}

#[test]
fn an_irq_that_moved_is_led_back_to_its_cpu() {
    let tree = Tree::new("3");
    tree.irq(4, "0-1", "0");
    let record = Restore::new(&tree.fs);
    let guard = set_affinity(&record, 4, &cpus("1")).unwrap();
    tree.interrupt(4);
    assert_eq!(tree.effective(4), "1");
    let outcome = tree.busy(4, || guard.restore());
    assert_eq!(outcome, IrqRestored::PutBack);
    assert_eq!(
        (tree.affinity(4), tree.effective(4)),
        ("0-1".into(), "0".into())
    );
    // A quiet one stays, and that is said.
    let guard = set_affinity(&record, 4, &cpus("1")).unwrap();
    tree.interrupt(4);
    let outcome = guard.restore();
    assert_eq!(
        outcome,
        IrqRestored::ServedElsewhere {
            effective: cpus("1")
        }
    );
    assert!(outcome.to_string().contains("still served by CPU 1"));
    assert_eq!(tree.affinity(4), "0-1");
    assert!(record.troubles().is_empty());
}

#[test]
fn what_somebody_else_set_meanwhile_is_left_alone() {
    let tree = Tree::new("f");
    tree.irq(4, "0-3", "0");
    let record = Restore::new(&tree.fs);
    let guard = set_affinity(&record, 4, &cpus("1")).unwrap();
    // irqbalance, say.
    tree.irq(4, "2", "2");
    let outcome = guard.restore();
    assert_eq!(outcome, IrqRestored::LeftAlone { holds: "2".into() });
    assert_eq!(
        outcome.to_string(),
        "left alone: somebody else has set it to CPUs 2 meanwhile"
    );
    assert_eq!(tree.affinity(4), "2");
}

#[test]
fn irqs_that_are_not_there() {
    let tree = Tree::new("3");
    tree.irq(4, "0-1", "0");
    let record = Restore::new(&tree.fs);
    let error = set_affinity(&record, 5, &cpus("1")).unwrap_err();
    assert_eq!(error, Error::Vanished { irq: 5 });
    let guard = set_affinity(&record, 4, &cpus("1")).unwrap();
    fs::remove_dir_all(tree.path("proc/irq/4")).unwrap();
    assert_eq!(guard.restore(), IrqRestored::Vanished);
    let error = set_affinity(&record, 4, &CpuSet::new()).unwrap_err();
    assert!(
        matches!(error, Error::NoOnlineCpu { irq: 4, .. }),
        "before anything is read"
    );
}

#[test]
fn a_panic_puts_back() {
    let tree = Tree::new("3");
    tree.irq(4, "0-1", "0");
    let record = Restore::new(&tree.fs);
    let result = std::panic::catch_unwind(|| {
        let _guard = set_affinity(&record, 4, &cpus("1")).unwrap();
        assert_eq!(tree.affinity(4), "1");
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(result.is_err());
    assert_eq!(tree.affinity(4), "0-1");
}

#[test]
fn saved_affinities_undo_what_a_balancer_does() {
    let tree = Tree::new("f");
    for irq in [4, 5, 6, 7, 9, 11] {
        tree.irq(irq, "0-3", "0");
    }
    fs::set_permissions(
        tree.path("proc/irq/9/smp_affinity_list"),
        Permissions::from_mode(0o444),
    )
    .unwrap();
    tree.write(
        "proc/interrupts",
        "   CPU0\n  4: 1  A  4-edge  a\n 11: 1  A  11-edge  eth1",
    );
    let record = Restore::new(&tree.fs);
    let saved = Saved::take(&record).unwrap();
    let irqs: Vec<u32> = saved.affinities().map(|(irq, _)| irq).collect();
    assert_eq!(irqs, [4, 5, 6, 7, 11], "all that can be set");
    assert!(
        saved
            .affinities()
            .all(|(_, affinity)| *affinity == cpus("0-3"))
    );
    assert!(saved.moved().is_empty());

    // Moved; moved, and still on its CPU; gone; as found.
    tree.irq(4, "1", "1").irq(5, "2-3", "0");
    fs::remove_dir_all(tree.path("proc/irq/6")).unwrap();
    // Come up meanwhile: moved, with the default, where its driver would like it, and one
    // under the number of another device.
    tree.irq(20, "3", "3").irq(21, "0-3", "2").irq(22, "2", "2");
    tree.write("proc/irq/22/affinity_hint", "4");
    tree.irq(11, "1", "1");
    tree.write(
        "proc/interrupts",
        "   CPU0\n  4: 2  A  4-edge  a\n 11: 9  A  11-edge  eth10",
    );
    assert_eq!(saved.moved(), [4, 5, 11]);

    let report = tree.busy(4, || saved.restore());
    let rows: Vec<(u32, &IrqRestored)> = report
        .irqs
        .iter()
        .map(|row| (row.irq, &row.outcome))
        .collect();
    let to_default = IrqRestored::SetToDefault { was: cpus("3") };
    assert_eq!(
        rows,
        [
            (4, &IrqRestored::PutBack),
            (5, &IrqRestored::PutBack),
            (6, &IrqRestored::Vanished),
            (20, &to_default),
        ]
    );
    assert!(report.is_clean());
    assert_eq!(report.outcome(7), &IrqRestored::AsFound);
    assert_eq!(
        report.to_string(),
        "IRQ 4: put back\nIRQ 5: put back\nIRQ 6: not there any more\n\
         IRQ 20: new: set from CPUs 3 to the default affinity"
    );
    for irq in [4, 5, 7, 11, 20, 21] {
        assert_eq!(tree.affinity(irq), "0-3", "IRQ {irq}");
    }
    assert_eq!(tree.effective(4), "0");
    assert_eq!(tree.affinity(22), "2", "its driver's choice");
}

#[test]
fn a_number_that_is_another_device_s_now_gets_the_default() {
    let tree = Tree::new("f");
    tree.irq(11, "1", "1");
    tree.write("proc/interrupts", "   CPU0\n 11: 1  A  11-edge  eth1");
    let record = Restore::new(&tree.fs);
    let saved = Saved::take(&record).unwrap();
    tree.write("proc/interrupts", "   CPU0\n 11: 1  A  11-edge  eth10");
    tree.irq(11, "2", "2");
    let report = saved.restore();
    assert!(
        matches!(report.outcome(11), IrqRestored::SetToDefault { .. }),
        "{report}"
    );
    assert_eq!(tree.affinity(11), "0-3");
}

#[test]
fn a_dropped_record_of_affinities_puts_back_too() {
    let tree = Tree::new("3");
    tree.irq(4, "0-1", "0");
    let saved = Saved::take(&Restore::new(&tree.fs)).unwrap();
    tree.irq(4, "0", "0").irq(30, "1", "1");
    drop(saved);
    assert_eq!(
        (tree.affinity(4), tree.affinity(30)),
        ("0-1".into(), "0-1".into())
    );
}

#[test]
fn nothing_changed_is_an_empty_report() {
    let tree = Tree::new("3");
    tree.irq(4, "0-1", "0");
    let report = Saved::take(&Restore::new(&tree.fs)).unwrap().restore();
    assert_eq!(report.irqs, []);
    assert!(report.is_clean());
    assert_eq!(report.to_string(), "every IRQ was as found");
}

#[test]
fn resetting_to_the_default_compares_cpus_not_text() {
    // The same two CPUs, in a mask as wide as a kernel for 64 CPUs prints it.
    let tree = Tree::new("00000000,00000003");
    tree.irq(4, "0-1", "0").irq(5, "1", "1");
    let record = Restore::new(&tree.fs);
    let guards = Irqbalance::reset_to_default(&record).unwrap();
    let irqs: Vec<u32> = guards.iter().map(|guard| guard.outcome().irq).collect();
    assert_eq!(irqs, [5]);
    assert_eq!(tree.affinity(5), "0-1");
    drop(guards);
    assert_eq!(tree.affinity(5), "1");
}

#[test]
fn irqbalance_runs_on_this_machine_only() {
    let tree = Tree::new("3");
    let record = Restore::new(&tree.fs);
    let expected = |error: Error| {
        assert!(
            matches!(error, Error::Host(hostfs::Error::NotThisMachine { .. })),
            "{error}"
        );
    };
    expected(Irqbalance::check_available(&tree.fs).unwrap_err());
    expected(Irqbalance::builder().start(&record).unwrap_err());
    assert_eq!(Irqbalance::find(&tree.fs).unwrap(), []);
    assert!(Irqbalance::pause(&record).unwrap().is_empty());
}

#[cfg(feature = "serde")]
#[test]
fn results_survive_serde() {
    let tree = Tree::new("3");
    tree.irq(4, "0-1", "0");
    let irq = Irq::read(&tree.fs, 4).unwrap();
    let json = serde_json::to_string(&irq).unwrap();
    assert_eq!(
        json,
        r#"{"irq":4,"affinity":"0-1","effective":"0","hint":null,"node":null,"settable":null}"#
    );
    assert_eq!(serde_json::from_str::<Irq>(&json).unwrap(), irq);
    let guard = set_affinity(&Restore::new(&tree.fs), 4, &cpus("1")).unwrap();
    let json = serde_json::to_string(guard.outcome()).unwrap();
    assert_eq!(
        json,
        r#"{"irq":4,"requested":"1","affinity":"1","effective":"0","pending":true}"#
    );
}

#[test]
fn guards_can_go_to_other_threads() {
    fn is<T: Send + Sync>() {}
    is::<irqaffinity::AffinityGuard>();
    is::<Saved>();
    is::<Irqbalance>();
    is::<irqaffinity::InterruptsReader>();
    is::<Error>();
}
