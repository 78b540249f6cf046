//! `/proc/interrupts` of several architectures and ages, and what is wrong with tables.
#![allow(clippy::unwrap_used)]

use hostfs::interrupts::{Finding, Interrupts, IrqDescription};
use hostfs::{CpuSet, Error};

const X86: &str = include_str!("interrupts/x86.txt");
const X86_OLD: &str = include_str!("interrupts/x86-old.txt");
const ARM: &str = include_str!("interrupts/arm.txt");
const GAPS: &str = include_str!("interrupts/gaps.txt");

type Described<'a> = (&'a str, Option<u64>, Option<&'a str>, &'a [&'a str]);

fn check(table: &Interrupts, irq: u32, (chip, hwirq, trigger, actions): Described<'_>) {
    let row = table.irq(irq).unwrap();
    let description = row.description();
    assert_eq!(description.chip, chip, "IRQ {irq}: {:?}", row.text);
    assert_eq!(description.hwirq, hwirq, "IRQ {irq}: {:?}", row.text);
    assert_eq!(description.trigger, trigger, "IRQ {irq}: {:?}", row.text);
    assert_eq!(description.actions, actions, "IRQ {irq}: {:?}", row.text);
}

fn names(table: &Interrupts) -> Vec<&str> {
    table.others().map(|row| row.name).collect()
}

fn globals(table: &Interrupts) -> Vec<(&str, u64)> {
    table.globals().map(|row| (row.name, row.count)).collect()
}

#[test]
fn x86_of_today() {
    let table = Interrupts::parse(X86).unwrap();
    assert_eq!(table.findings(), []);
    assert_eq!(table.cpus(), [0, 1]);
    let irqs: Vec<u32> = table.irqs().map(|row| row.irq).collect();
    assert_eq!(irqs, [0, 9, 26, 31, 36, 38, 40, 128, 129, 130]);
    check(&table, 0, ("IO-APIC", Some(2), Some("edge"), &["timer"]));
    check(
        &table,
        9,
        (
            "IO-APIC",
            Some(9),
            Some("fasteoi"),
            &["acpi", "i2c_designware.0"],
        ),
    );
    check(
        &table,
        36,
        (
            "PCI-MSIX-0000:00:02.0",
            Some(1),
            Some("edge"),
            &["virtio1-req.0"],
        ),
    );
    check(
        &table,
        40,
        (
            "IR-PCI-MSI-0000:00:1f.3",
            Some(0),
            Some("edge"),
            &["snd_hda_intel:card0"],
        ),
    );
    check(
        &table,
        128,
        ("VMD-MSI", Some(128), Some("edge"), &["nvme0q0"]),
    );
    check(
        &table,
        129,
        (
            "Hyper-V PCIe MSI",
            Some(134217728),
            Some("edge"),
            &["mlx5_async0"],
        ),
    );
    check(&table, 130, ("xen-dyn", None, Some("event"), &["xenbus"]));
    assert_eq!(table.irq(38).unwrap().counts, [7, u32::MAX]);
    assert_eq!(table.irq(38).unwrap().total(), 4_294_967_302);
    assert_eq!(names(&table), ["NMI", "LOC", "TLB", "PIN"]);
    let loc = table.other("LOC").unwrap();
    assert_eq!(loc.description, "Local timer interrupts");
    assert_eq!(loc.per_cpu().collect::<Vec<_>>(), [(0, 21456), (1, 23128)]);
    assert_eq!(loc.total(), 44584);
    assert_eq!(globals(&table), [("ERR", 0), ("MIS", 4)]);
    // The numbered rows alone, added up by hand.
    assert_eq!(table.per_cpu_total(), [(0, 50), (1, 4_294_999_559)]);
}

#[test]
fn x86_of_old() {
    let table = Interrupts::parse(X86_OLD).unwrap();
    assert_eq!(table.findings(), []);
    check(&table, 0, ("IO-APIC", None, Some("edge"), &["timer"]));
    check(&table, 9, ("IO-APIC", None, Some("fasteoi"), &["acpi"]));
    check(
        &table,
        11,
        ("XT-PIC", None, Some("level"), &["uhci_hcd:usb1", "eth1"]),
    );
    check(
        &table,
        25,
        ("PCI-MSI", Some(81921), Some("edge"), &["virtio4-req.0"]),
    );
    check(&table, 26, ("PCI-MSI", None, Some("edge"), &["eth0-rx-0"]));
    assert_eq!(table.irq(25).unwrap().counts, [90310, 0, 17, 0]);
    assert_eq!(globals(&table), [("ERR", 3), ("MIS", 0)]);
}

#[test]
fn arm() {
    let table = Interrupts::parse(ARM).unwrap();
    assert_eq!(table.findings(), []);
    check(
        &table,
        17,
        ("GICv2", Some(30), Some("Level"), &["arch_timer"]),
    );
    check(
        &table,
        18,
        ("GICv2", Some(29), Some("Level"), &["kvm guest vcpu timer"]),
    );
    check(
        &table,
        27,
        (
            "ARMCTRL-level",
            Some(1),
            Some("Edge"),
            &["3f00b880.mailbox"],
        ),
    );
    // Chips that begin with a digit, and one that holds a space.
    check(
        &table,
        40,
        ("1c20800.pinctrl", Some(6), Some("Edge"), &["power button"]),
    );
    check(
        &table,
        41,
        ("2-0020", Some(4), Some("Level"), &["stmpe_mfd"]),
    );
    check(
        &table,
        42,
        ("SiFive PLIC", Some(10), Some("Edge"), &["virtio0"]),
    );
    check(
        &table,
        43,
        (
            "ITS-MSI",
            Some(524288),
            Some("Edge"),
            &["nvme0q0", "nvme0q1"],
        ),
    );
    // A flow handler's name after the trigger belongs to neither it nor the actions.
    check(
        &table,
        56,
        ("pinctrl-bcm2835", Some(47), Some("Edge"), &["cd"]),
    );
    // No space after the colon.
    assert_eq!(names(&table), ["IPI0", "IPI1", "IPI2"]);
    assert_eq!(
        table.other("IPI1").unwrap().counts,
        [4_294_967_290, 7, 8, 4_000_000_000]
    );
    assert_eq!(globals(&table), [("Err", 0)]);
    let fiq: Vec<_> = table.without_counts().collect();
    assert_eq!(
        (fiq.len(), fiq[0].name, fiq[0].description),
        (1, "FIQ", "usb_fiq")
    );
}

#[test]
fn columns_are_labelled_by_the_header_not_by_their_place() {
    let table = Interrupts::parse(GAPS).unwrap();
    assert_eq!(table.findings(), []);
    let row = table.irq(4).unwrap();
    assert_eq!(
        row.per_cpu().collect::<Vec<_>>(),
        [(0, 1), (2, 2), (3, 3), (11, 11), (1024, 1024)]
    );
    assert_eq!(
        (row.on(11), row.on(1), row.on(1024)),
        (Some(11), None, Some(1024))
    );
    assert_eq!(CpuSet::from(&table).to_string(), "0,2-3,11,1024");
    check(
        &table,
        1023,
        (
            "IR-PCI-MSIX-10000:01:00.0",
            Some(0),
            Some("edge"),
            &["nvme0q1"],
        ),
    );
    assert_eq!(table.other("LOC").unwrap().counts, [10, 20, 30, 40, 50]);
    assert_eq!(
        table.per_cpu_total(),
        [(0, 6), (2, 2), (3, 3), (11, 11), (1024, 1030)]
    );
}

#[test]
fn one_cpu_tells_global_rows_by_their_names() {
    let text = "           CPU0\n 1:  5  XT-PIC  i8042\nNMI: 0\nLOC: 9  Local timer interrupts\nERR: 3\nMIS: 0\n";
    let table = Interrupts::parse(text).unwrap();
    assert_eq!(names(&table), ["NMI", "LOC"]);
    assert_eq!(globals(&table), [("ERR", 3), ("MIS", 0)]);
    check(&table, 1, ("XT-PIC", None, None, &["i8042"]));
}

#[test]
fn texts_of_other_forms() {
    let of = |text| {
        let d = IrqDescription::of(text);
        (
            d.chip.to_owned(),
            d.hwirq,
            d.trigger.map(str::to_owned),
            d.actions.join("|"),
        )
    };
    let form = |chip: &str, hwirq, trigger: Option<&str>, actions: &str| {
        (
            chip.to_owned(),
            hwirq,
            trigger.map(str::to_owned),
            actions.to_owned(),
        )
    };
    // MIPS: a hardware IRQ and no trigger.
    assert_eq!(of("MIPS   7  timer"), form("MIPS", Some(7), None, "timer"));
    // A chip without a name, and no chip.
    assert_eq!(
        of("-   3 Level     a"),
        form("-", Some(3), Some("Level"), "a")
    );
    assert_eq!(
        of("None       Edge      a"),
        form("None", None, Some("Edge"), "a")
    );
    // No domain, a chip that holds a space.
    assert_eq!(
        of("RISC-V INTC          a b"),
        form("RISC-V INTC", None, None, "a b")
    );
    assert_eq!(
        of("8500   4 Edge      a"),
        form("8500", Some(4), Some("Edge"), "a")
    );
    assert_eq!(of(""), form("", None, None, ""));
}

#[test]
fn rows_with_too_few_or_too_many_counts_are_left_out_and_named() {
    let text = "           CPU0       CPU1       CPU2       \n \
         24:          1          2  IO-APIC   5-edge      a\n \
         25:          1          2          3          4  IO-APIC   6-edge      b\n \
         26:          1          2          3          4    2-0020   6 Edge      c\n \
         27:          1          2          3      8500   7 Edge      d\n\
         NMI:          0          0   Non-maskable interrupts\n\
         LOC:          0          0          0          0   Local timer interrupts\n\
         SPU:          0          0          0   Spurious interrupts\n";
    let table = Interrupts::parse(text).unwrap();
    let irqs: Vec<u32> = table.irqs().map(|row| row.irq).collect();
    assert_eq!(irqs, [27]);
    check(&table, 27, ("8500", Some(7), Some("Edge"), &["d"]));
    assert_eq!(table.irq(27).unwrap().counts, [1, 2, 3]);
    assert_eq!(names(&table), ["SPU"]);
    assert_eq!(
        table.other("SPU").unwrap().description,
        "Spurious interrupts"
    );
    let found: Vec<String> = table.findings().iter().map(Finding::to_string).collect();
    let more = |row| {
        format!("row {row} has more counts than the 3 CPUs: one came online during the reading")
    };
    let fewer = |row| {
        format!("row {row} has 2 counts for 3 CPUs: cut, or a CPU went offline during the reading")
    };
    assert_eq!(
        found,
        [
            fewer("24"),
            more("25"),
            more("26"),
            fewer("NMI"),
            more("LOC")
        ]
    );
}

#[test]
fn other_findings() {
    let text = "           CPU0       CPU1       \n \
         24:          1 4294967296  IO-APIC   5-edge      a\n \
         31:          1          2  IO-APIC   6-edge      b\n \
         30:          5          6  IO-APIC   7-edge      c\n \
         31:          3          4  IO-APIC   6-edge      b\n\
         4294967296:          3          4  IO-APIC   6-edge      b\n\
         \n\
         no colon\n\
         : 1 2\n \
         40:          5          6";
    let table = Interrupts::parse(text).unwrap();
    let irqs: Vec<u32> = table.irqs().map(|row| row.irq).collect();
    assert_eq!(irqs, [30, 31], "ascending, the last may be cut");
    assert_eq!(table.irq(31).unwrap().counts, [1, 2]);
    assert_eq!(table.irq(30).unwrap().counts, [5, 6]);
    let found: Vec<String> = table.findings().iter().map(Finding::to_string).collect();
    assert_eq!(
        found,
        [
            "row 24 has a count that 32 bits can't hold",
            "not a row: \"4294967296\"",
            "not a row: \"no colon\"",
            "not a row: \": 1 2\"",
            "row 40 is the last and may be cut",
            "row 31 is there twice",
        ]
    );
    let rows: Vec<_> = table.findings().iter().map(Finding::row).collect();
    assert_eq!(rows, [Some("24"), None, None, None, Some("40"), Some("31")]);
}

#[test]
fn a_text_without_a_last_end_of_line_keeps_a_last_row_that_is_whole() {
    let table = Interrupts::parse(X86.trim_end()).unwrap();
    assert_eq!(table, Interrupts::parse(X86).unwrap());
}

#[test]
fn no_header_is_an_error_that_shows_the_text() {
    for text in [
        "",
        "\n",
        "  24:   1  IO-APIC\n",
        "CPU\n",
        "CPU0 CPUx\n",
        "CPU0 CPU1x\n",
        "CPU1 CPU0\n",
        "CPU0 CPU0\n",
        "CPU4294967295\n",
        "CPU99999999999999999999999\n",
    ] {
        let Err(Error::Malformed {
            path,
            expected,
            text: shown,
        }) = Interrupts::parse(text)
        else {
            panic!("{text:?} is a table");
        };
        assert_eq!(path.to_str(), Some("proc/interrupts"));
        assert_eq!(expected, "a header of CPUs");
        assert_eq!(shown, text.trim_end_matches('\n'));
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_replaced() {
    let table = Interrupts::parse(b"  CPU0\n  5:  1  IO-APIC  5-edge   \xff\xfedrv\n").unwrap();
    let row = table.irq(5).unwrap();
    assert_eq!(row.description().actions, ["\u{fffd}\u{fffd}drv"]);
}

#[test]
fn a_table_cut_anywhere_is_read_as_far_as_it_goes() {
    for text in [X86, X86_OLD, ARM, GAPS] {
        let whole = Interrupts::parse(text).unwrap();
        for cut in 0..text.len() {
            let Ok(part) = Interrupts::parse(&text[..cut]) else {
                continue;
            };
            // The header itself may be cut; then its columns don't tell.
            if part.cpus() != whole.cpus() {
                continue;
            }
            for row in part.irqs() {
                assert_eq!(
                    row.counts,
                    whole.irq(row.irq).unwrap().counts,
                    "cut at {cut}"
                );
            }
            for row in part.others() {
                assert_eq!(
                    row.counts,
                    whole.other(row.name).unwrap().counts,
                    "cut at {cut}"
                );
            }
            for row in part.globals() {
                assert!(whole.globals().any(|other| other == row), "cut at {cut}");
            }
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_table_survives_serde_and_a_wrong_one_is_refused() {
    for text in [X86, X86_OLD, ARM, GAPS] {
        let table = Interrupts::parse(text).unwrap();
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<Interrupts>(&json).unwrap(), table);
    }
    let wrong = r#"{"cpus":[0,1],"irqs":[{"irq":3,"counts":[1],"text":""}],"others":[],
        "globals":[],"without_counts":[],"findings":[]}"#;
    let error = serde_json::from_str::<Interrupts>(wrong).unwrap_err();
    assert!(
        error.to_string().contains("row 3 has 1 counts for 2 CPUs"),
        "{error}"
    );
    let wrong = wrong.replace("[0,1]", "[1,0]");
    let error = serde_json::from_str::<Interrupts>(&wrong).unwrap_err();
    assert!(error.to_string().contains("not ascending"), "{error}");
}
