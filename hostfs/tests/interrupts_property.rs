//! A random table in the kernel's own format comes back as it was printed.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use hostfs::interrupts::Interrupts;
use proptest::prelude::*;

/// What a numbered row says.
#[derive(Debug, Clone)]
struct Irq {
    chip: &'static str,
    hwirq: Option<u64>,
    /// Printed as x86 does (`4-edge`), as Arm does (`4 Edge`), or not at all.
    x86: Option<bool>,
    actions: Vec<&'static str>,
}

#[derive(Debug, Clone)]
struct Table {
    cpus: Vec<u32>,
    /// `nr_irqs`, which the width of the first column follows.
    width: usize,
    irqs: Vec<(u32, Irq)>,
    named: Vec<&'static str>,
    ipis: u32,
    fiq: bool,
    err: Option<u64>,
    seed: u64,
}

impl Table {
    /// The count of a row on a CPU: any, often zero, sometimes the largest.
    fn count(&self, row: u64, cpu: u32) -> u32 {
        let mut mixed = self.seed ^ (row << 32) ^ u64::from(cpu);
        for _ in 0..2 {
            mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        match mixed % 4 {
            0 => 0,
            1 => u32::MAX,
            _ => (mixed >> 32) as u32 >> (mixed % 31),
        }
    }

    fn counts(&self, row: u64) -> Vec<u32> {
        self.cpus.iter().map(|cpu| self.count(row, *cpu)).collect()
    }

    /// As `show_interrupts` and the architectures' `arch_show_interrupts` print it.
    fn print(&self) -> String {
        let width = self.width;
        let mut text = " ".repeat(width + 8);
        for cpu in &self.cpus {
            write!(text, "CPU{cpu:<8}").unwrap();
        }
        text.push('\n');
        for (number, irq) in &self.irqs {
            write!(text, "{number:>width$}:").unwrap();
            for count in self.counts(u64::from(*number)) {
                write!(text, " {count:>10}").unwrap();
            }
            write!(text, " {:>8}", irq.chip).unwrap();
            match irq.hwirq {
                Some(hwirq) => write!(text, " {hwirq:>width$}").unwrap(),
                None => write!(text, " {:>width$}", "").unwrap(),
            }
            match irq.x86 {
                Some(true) => write!(text, "-{:<8}", "edge").unwrap(),
                Some(false) => write!(text, " {:<8}", "Level").unwrap(),
                None => {}
            }
            writeln!(text, "  {}", irq.actions.join(", ")).unwrap();
        }
        if self.fiq {
            writeln!(text, "{:>width$}:              usb_fiq", "FIQ").unwrap();
        }
        for (at, name) in self.named.iter().enumerate() {
            write!(text, "{name:>width$}:").unwrap();
            for count in self.counts(1 << 40 | at as u64) {
                write!(text, " {count:>10}").unwrap();
            }
            writeln!(text, "  What {name} means: 2 things").unwrap();
        }
        for ipi in 0..self.ipis {
            let space = if width >= 4 { " " } else { "" };
            write!(text, "{:>1$}{ipi}:{space}", "IPI", width - 1).unwrap();
            for count in self.counts(1 << 41 | u64::from(ipi)) {
                write!(text, "{count:>10} ").unwrap();
            }
            writeln!(text, "      Function call interrupts").unwrap();
        }
        if let Some(err) = self.err {
            writeln!(text, "{:>width$}: {err:>10}", "ERR").unwrap();
        }
        text
    }
}

const CHIPS: [&str; 10] = [
    "IO-APIC",
    "PCI-MSIX-0000:00:01.0",
    "GICv3",
    "2-0020",
    "1c20800.pinctrl",
    "SiFive PLIC",
    "Hyper-V PCIe MSI",
    "-",
    "None",
    "8500",
];
const ACTIONS: [&str; 6] = [
    "eth0-rx-0",
    "acpi",
    "kvm guest vcpu timer",
    "3f00b880.mailbox",
    "a:b",
    "5",
];
const NAMED: [&str; 6] = ["NMI", "LOC", "I/O", "CAL", "TLB", "MCP"];

fn cpus() -> impl Strategy<Value = Vec<u32>> {
    // Few, some, many or all of 4,096, with gaps as the odds have it.
    (
        prop::sample::select(vec![1, 2, 8, 64, 600, 4096]),
        1..=100u64,
        any::<u64>(),
    )
        .prop_map(|(size, odds, seed): (u32, u64, u64)| {
            let mut at = seed;
            let mut keep = || {
                at = at
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (at >> 33) % 100 < odds
            };
            let cpus: Vec<u32> = (0..size).filter(|_| keep()).collect();
            if cpus.is_empty() {
                vec![size - 1]
            } else {
                cpus
            }
        })
}

fn irq() -> impl Strategy<Value = Irq> {
    (
        prop::sample::select(CHIPS.to_vec()),
        prop::option::of(0..1u64 << 40),
        prop::option::of(any::<bool>()),
        prop::collection::vec(prop::sample::select(ACTIONS.to_vec()), 1..4),
    )
        // What the text alone can't tell: without a hardware IRQ, a chip that is a number
        // from a count, and an action that is one from a hardware IRQ.
        .prop_filter("ambiguous", |(chip, hwirq, x86, actions)| {
            hwirq.is_some() || *chip != "8500" && (x86.is_some() || !actions.contains(&"5"))
        })
        .prop_map(|(chip, hwirq, x86, actions)| Irq {
            chip,
            hwirq,
            x86,
            actions,
        })
}

fn table() -> impl Strategy<Value = Table> {
    (
        cpus(),
        3..=7usize,
        prop::collection::btree_map(0..100_000u32, irq(), 0..6),
        prop::sample::subsequence(NAMED.to_vec(), 0..=NAMED.len()),
        0..4u32,
        any::<bool>(),
        prop::option::of(any::<u64>()),
        any::<u64>(),
    )
        .prop_map(|(cpus, width, irqs, named, ipis, fiq, err, seed)| Table {
            cpus,
            width,
            irqs: irqs.into_iter().collect(),
            named,
            ipis,
            fiq,
            err,
            seed,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_table_comes_back(table in table()) {
        let parsed = Interrupts::parse(table.print()).unwrap();
        prop_assert_eq!(parsed.findings(), []);
        prop_assert_eq!(parsed.cpus(), &table.cpus);
        prop_assert_eq!(parsed.irqs().len(), table.irqs.len());
        for (row, (number, irq)) in parsed.irqs().zip(&table.irqs) {
            prop_assert_eq!(row.irq, *number);
            prop_assert_eq!(row.counts, table.counts(u64::from(*number)));
            let description = row.description();
            prop_assert_eq!(description.chip, irq.chip);
            prop_assert_eq!(description.hwirq, irq.hwirq);
            let trigger = irq.x86.map(|x86| if x86 { "edge" } else { "Level" });
            prop_assert_eq!(description.trigger, trigger);
            prop_assert_eq!(description.actions, &irq.actions[..]);
        }
        let names: Vec<String> = parsed.others().map(|row| row.name.to_owned()).collect();
        let ipis = (0..table.ipis).map(|n| format!("IPI{n}"));
        let expected: Vec<String> =
            table.named.iter().map(|name| name.to_string()).chain(ipis).collect();
        prop_assert_eq!(names, expected);
        for (at, row) in parsed.others().enumerate() {
            let key = match at.checked_sub(table.named.len()) {
                None => 1 << 40 | at as u64,
                Some(ipi) => 1 << 41 | ipi as u64,
            };
            prop_assert_eq!(row.counts, table.counts(key));
        }
        let globals: Vec<u64> = parsed.globals().map(|row| row.count).collect();
        prop_assert_eq!(globals, table.err.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(parsed.without_counts().count(), usize::from(table.fiq));
        let totals = parsed.since(&parsed).per_cpu_total();
        prop_assert!(totals.iter().all(|(_, count)| *count == 0));
        prop_assert_eq!(totals.len(), table.cpus.len());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(
            prop::sample::select(b"CPU0123456789 \n\t:-,aLevEdg\xff".to_vec()), 0..400),
        header in any::<bool>(),
    ) {
        let mut text = if header { b"  CPU0  CPU3\n".to_vec() } else { Vec::new() };
        text.extend_from_slice(&bytes);
        if let Ok(table) = Interrupts::parse(&text) {
            for row in table.irqs() {
                prop_assert_eq!(row.counts.len(), table.cpus().len());
                let _ = row.description();
            }
            let _ = table.since(&table);
        } else {
            prop_assert!(!header);
        }
    }
}
