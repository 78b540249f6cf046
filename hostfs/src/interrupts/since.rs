//! The arithmetic between two readings of the table.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use super::{Finding, GlobalRow, Interrupts, IrqRow, NamedRow};
use crate::CpuSet;

/// The largest count that an interval is believed to bring to one CPU where the counter
/// went back: more is a reset, not a wrap.
///
/// A million interrupts a second on one CPU, more than CPUs bear, take over four minutes
/// to get there.
const LARGEST_BELIEVED: u32 = 1 << 28;

/// What was counted between two tables of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct InterruptsDelta {
    /// The CPUs that were online in both: the counts are theirs, in this order.
    pub cpus: Vec<u32>,
    /// CPUs that have come online: what they counted is not in here.
    pub cpus_added: CpuSet,
    /// CPUs that have gone offline: what they counted is not in here.
    pub cpus_removed: CpuSet,
    /// The numbered rows of either table, ascending.
    pub irqs: Vec<IrqDelta>,
    /// The named rows of either table.
    pub others: Vec<NamedDelta>,
    /// The rows with one count of either table.
    pub globals: Vec<GlobalDelta>,
}

/// What an IRQ brought.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct IrqDelta {
    /// The IRQ's number.
    pub irq: u32,
    /// The later row's text, or the last that there was; see
    /// [`IrqDescription::of`](super::IrqDescription::of).
    pub text: String,
    /// How often.
    pub change: CountChange,
}

/// What a named row counted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NamedDelta {
    /// The row's name.
    pub name: String,
    /// How often.
    pub change: CountChange,
}

/// What a row with one count for the whole machine counted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GlobalDelta {
    /// The row's name.
    pub name: String,
    /// How often; `None` if the row is in one table only or began anew.
    pub count: Option<u64>,
}

/// What became of the counts of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CountChange {
    /// So many by CPU, in the order of [`InterruptsDelta::cpus`]; wraps are accounted for.
    Counted {
        /// Interrupts by CPU.
        per_cpu: Vec<u32>,
    },
    /// The row was not there earlier: its counts are all that came since it is there.
    ///
    /// It may have been there and zero on kernels that hide such rows. A line outside
    /// PCI-MSI that was given up and is asked for again shows its old counts, too.
    New {
        /// Interrupts by CPU.
        per_cpu: Vec<u32>,
    },
    /// The counts began anew, or are those of something else: there is no difference.
    Reset(ResetReason),
    /// The row is no longer there.
    Vanished,
    /// One of the tables has the row among its [findings](Interrupts::findings).
    Unread,
}

/// How it is known that counts began anew.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ResetReason {
    /// The IRQ has another chip, hardware IRQ or trigger now, or an action has gone: the
    /// driver was loaded anew, or the number belongs to another device.
    OtherUser {
        /// The text of the earlier row.
        earlier: String,
    },
    /// A count went back by so much that a wrap of 32 bits can't be the reason.
    WentBack {
        /// The CPU.
        cpu: u32,
        /// Its count in the earlier table.
        earlier: u32,
        /// Its count in the later table.
        later: u32,
    },
}

impl fmt::Display for ResetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResetReason::OtherUser { earlier } => {
                write!(f, "another user of the IRQ: it was {earlier:?}")
            }
            ResetReason::WentBack {
                cpu,
                earlier,
                later,
            } => write!(
                f,
                "the count of CPU {cpu} went back from {earlier} to {later}, too far for a wrap"
            ),
        }
    }
}

impl CountChange {
    /// The counts by CPU where there are any, in the order of [`InterruptsDelta::cpus`].
    pub fn per_cpu(&self) -> Option<&[u32]> {
        match self {
            CountChange::Counted { per_cpu } | CountChange::New { per_cpu } => Some(per_cpu),
            _ => None,
        }
    }

    /// The sum over the CPUs where there are counts.
    pub fn total(&self) -> Option<u64> {
        Some(self.per_cpu()?.iter().map(|n| u64::from(*n)).sum())
    }
}

impl InterruptsDelta {
    /// The change of one IRQ.
    pub fn irq(&self, irq: u32) -> Option<&IrqDelta> {
        let at = self.irqs.binary_search_by_key(&irq, |row| row.irq).ok()?;
        Some(&self.irqs[at])
    }

    /// The change of the named row of that name (`LOC`).
    pub fn other(&self, name: &str) -> Option<&NamedDelta> {
        self.others.iter().find(|row| row.name == name)
    }

    /// The interrupts of all numbered rows by CPU: `(cpu, count)`, ascending.
    ///
    /// Without the IRQs of [`uncounted`](Self::uncounted). Named rows are left out, as in
    /// [`Interrupts::per_cpu_total`].
    pub fn per_cpu_total(&self) -> Vec<(u32, u64)> {
        let mut totals: Vec<(u32, u64)> = self.cpus.iter().map(|cpu| (*cpu, 0)).collect();
        for per_cpu in self.irqs.iter().filter_map(|row| row.change.per_cpu()) {
            for (total, count) in totals.iter_mut().zip(per_cpu) {
                total.1 += u64::from(*count);
            }
        }
        totals
    }

    /// The IRQs whose interrupts are missing from the totals: those that began anew,
    /// vanished or could not be read.
    pub fn uncounted(&self) -> impl Iterator<Item = &IrqDelta> {
        self.irqs
            .iter()
            .filter(|row| row.change.per_cpu().is_none())
    }
}

pub(super) fn since(later: &Interrupts, earlier: &Interrupts) -> InterruptsDelta {
    let columns = Columns::common(later, earlier);
    let (now, then) = (CpuSet::from(later), CpuSet::from(earlier));
    InterruptsDelta {
        cpus: columns.cpus().collect(),
        cpus_added: &now - &then,
        cpus_removed: &then - &now,
        irqs: irqs(later, earlier, &columns),
        others: others(later, earlier, &columns),
        globals: globals(later, earlier),
    }
}

/// The columns that both tables have.
struct Columns(Vec<Column>);

struct Column {
    cpu: u32,
    later: usize,
    earlier: usize,
}

impl Columns {
    fn common(later: &Interrupts, earlier: &Interrupts) -> Self {
        let column = |(at, cpu): (usize, &u32)| {
            Some(Column {
                cpu: *cpu,
                later: at,
                earlier: earlier.cpus().binary_search(cpu).ok()?,
            })
        };
        Columns(later.cpus().iter().enumerate().filter_map(column).collect())
    }

    fn cpus(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|column| column.cpu)
    }

    fn as_new(&self, later: &[u32]) -> CountChange {
        CountChange::New {
            per_cpu: self.0.iter().map(|column| later[column.later]).collect(),
        }
    }

    fn difference(&self, later: &[u32], earlier: &[u32]) -> CountChange {
        let mut per_cpu = Vec::with_capacity(self.0.len());
        for column in &self.0 {
            let (later, earlier) = (later[column.later], earlier[column.earlier]);
            let difference = later.wrapping_sub(earlier);
            if later < earlier && difference > LARGEST_BELIEVED {
                return CountChange::Reset(ResetReason::WentBack {
                    cpu: column.cpu,
                    earlier,
                    later,
                });
            }
            per_cpu.push(difference);
        }
        CountChange::Counted { per_cpu }
    }
}

/// The change of one row; `unread` tells whether a missing row is among the findings.
fn change(
    columns: &Columns,
    later: Option<&[u32]>,
    earlier: Option<&[u32]>,
    unread: bool,
) -> CountChange {
    match (later, earlier) {
        (Some(later), Some(earlier)) => columns.difference(later, earlier),
        _ if unread => CountChange::Unread,
        (Some(later), None) => columns.as_new(later),
        (None, _) => CountChange::Vanished,
    }
}

fn irqs(later: &Interrupts, earlier: &Interrupts, columns: &Columns) -> Vec<IrqDelta> {
    let unread = unread(later, earlier);
    let numbers: BTreeSet<u32> = later
        .irqs()
        .chain(earlier.irqs())
        .map(|row| row.irq)
        .collect();
    let delta = |irq: u32| {
        let (now, then) = (later.irq(irq), earlier.irq(irq));
        let text = |row: Option<IrqRow<'_>>| row.map_or("", |row| row.text).to_owned();
        IrqDelta {
            irq,
            text: text(now.or(then)),
            change: if now
                .zip(then)
                .is_some_and(|(now, then)| !now.has_user_of(&then))
            {
                CountChange::Reset(ResetReason::OtherUser {
                    earlier: text(then),
                })
            } else {
                // A row that is missing on one side is the only one to look for.
                let unread = now.xor(then).is_some() && unread.contains(irq.to_string().as_str());
                let counts = now.map(|row| row.counts);
                let before = then.map(|row| row.counts);
                change(columns, counts, before, unread)
            },
        }
    };
    numbers.into_iter().map(delta).collect()
}

fn others(later: &Interrupts, earlier: &Interrupts, columns: &Columns) -> Vec<NamedDelta> {
    let unread = unread(later, earlier);
    let gone = earlier
        .others()
        .filter(|row| later.other(row.name).is_none());
    let delta = |row: NamedRow<'_>| {
        let now = later.other(row.name).map(|row| row.counts);
        let then = earlier.other(row.name).map(|row| row.counts);
        NamedDelta {
            name: row.name.into(),
            change: change(columns, now, then, unread.contains(row.name)),
        }
    };
    later.others().map(delta).chain(gone.map(delta)).collect()
}

fn globals(later: &Interrupts, earlier: &Interrupts) -> Vec<GlobalDelta> {
    let find = |table: &Interrupts, name: &str| {
        table
            .globals()
            .find(|row| row.name == name)
            .map(|row| row.count)
    };
    let gone = earlier
        .globals()
        .filter(|row| find(later, row.name).is_none());
    let delta = |row: GlobalRow<'_>| GlobalDelta {
        name: row.name.into(),
        count: find(later, row.name)
            .zip(find(earlier, row.name))
            .and_then(|(later, earlier)| global_difference(later, earlier)),
    };
    later.globals().map(delta).chain(gone.map(delta)).collect()
}

/// A count that goes back has wrapped at 32 bits, as x86's do, or began anew.
fn global_difference(later: u64, earlier: u64) -> Option<u64> {
    later.checked_sub(earlier).or_else(|| {
        let (later, earlier) = (u32::try_from(later).ok()?, u32::try_from(earlier).ok()?);
        let difference = later.wrapping_sub(earlier);
        (difference <= LARGEST_BELIEVED).then_some(u64::from(difference))
    })
}

/// The rows that one of the tables has, but could not be read.
fn unread<'a>(later: &'a Interrupts, earlier: &'a Interrupts) -> HashSet<&'a str> {
    let findings = later.findings().iter().chain(earlier.findings());
    findings.filter_map(Finding::row).collect()
}
