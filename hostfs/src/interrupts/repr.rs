//! The table as `serde` shows it.

use serde::{Deserialize, Serialize};

use super::{Finding, Interrupts, StoredBare, StoredGlobal, StoredIrq, StoredNamed};

#[derive(Serialize, Deserialize)]
pub(super) struct Table {
    cpus: Vec<u32>,
    irqs: Vec<Irq>,
    others: Vec<Named>,
    globals: Vec<Global>,
    without_counts: Vec<Bare>,
    findings: Vec<Finding>,
}

#[derive(Serialize, Deserialize)]
struct Irq {
    irq: u32,
    counts: Vec<u32>,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct Named {
    name: String,
    counts: Vec<u32>,
    description: String,
}

#[derive(Serialize, Deserialize)]
struct Global {
    name: String,
    count: u64,
}

#[derive(Serialize, Deserialize)]
struct Bare {
    name: String,
    description: String,
}

impl From<Interrupts> for Table {
    fn from(table: Interrupts) -> Self {
        let irqs = table.irqs().map(|row| Irq {
            irq: row.irq,
            counts: row.counts.to_vec(),
            text: row.text.into(),
        });
        let others = table.others().map(|row| Named {
            name: row.name.into(),
            counts: row.counts.to_vec(),
            description: row.description.into(),
        });
        let globals = table.globals().map(|row| Global {
            name: row.name.into(),
            count: row.count,
        });
        let bare = table.without_counts().map(|row| Bare {
            name: row.name.into(),
            description: row.description.into(),
        });
        Table {
            irqs: irqs.collect(),
            others: others.collect(),
            globals: globals.collect(),
            without_counts: bare.collect(),
            cpus: table.cpus,
            findings: table.findings,
        }
    }
}

impl TryFrom<Table> for Interrupts {
    type Error = String;

    /// Checks what the parser would have made sure of.
    fn try_from(from: Table) -> Result<Self, String> {
        if !from.cpus.is_sorted_by(|a, b| a < b) {
            return Err("the CPUs are not ascending".into());
        }
        let mut table = Interrupts {
            cpus: from.cpus,
            findings: from.findings,
            ..Interrupts::default()
        };
        for row in from.irqs {
            let text = table.keep(row.text.as_bytes());
            let counts = table.add_counts(&row.irq.to_string(), &row.counts)?;
            let irq = row.irq;
            table.irqs.push(StoredIrq { irq, counts, text });
        }
        for row in from.others {
            let name = table.keep(row.name.as_bytes());
            let text = table.keep(row.description.as_bytes());
            let counts = table.add_counts(&row.name, &row.counts)?;
            table.others.push(StoredNamed { name, counts, text });
        }
        for row in from.globals {
            let name = table.keep(row.name.as_bytes());
            let count = row.count;
            table.globals.push(StoredGlobal { name, count });
        }
        for row in from.without_counts {
            let name = table.keep(row.name.as_bytes());
            let text = table.keep(row.description.as_bytes());
            table.bare.push(StoredBare { name, text });
        }
        table.sort();
        Ok(table)
    }
}

impl Interrupts {
    fn add_counts(&mut self, row: &str, counts: &[u32]) -> Result<usize, String> {
        if counts.len() != self.cpus.len() {
            return Err(format!(
                "row {row} has {} counts for {} CPUs",
                counts.len(),
                self.cpus.len()
            ));
        }
        let at = self.counts.len();
        self.counts.extend_from_slice(counts);
        Ok(at)
    }
}
