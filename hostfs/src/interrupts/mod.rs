//! The `/proc/interrupts` table of any architecture and age.
//!
//! Meaning of its rows: `show_interrupts` in `kernel/irq/proc.c`, and
//! `arch_show_interrupts` of each architecture. World-readable; a system call or two a page.
//!
//! ```
//! use hostfs::interrupts::Interrupts;
//!
//! let table = Interrupts::parse(
//!     "           CPU0       CPU2       \n \
//!       24:          7          5 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config\n",
//! )?;
//! let row = table.irq(24).expect("there is such a row");
//! assert_eq!(row.per_cpu().collect::<Vec<_>>(), [(0, 7), (2, 5)]);
//! assert_eq!(row.description().actions, ["virtio0-config"]);
//! # Ok::<(), hostfs::Error>(())
//! ```
//!
//! | in the table | here |
//! |---|---|
//! | header: the CPUs online | [`Interrupts::cpus`] |
//! | `24:` and other numbers | [`Interrupts::irqs`], [`IrqRow`] |
//! | `NMI:`, `LOC:`, `IPI0:` and other names with a count per CPU | [`Interrupts::others`], [`NamedRow`] |
//! | `ERR:`, `MIS:`: one count for the whole machine | [`Interrupts::globals`], [`GlobalRow`] |
//! | `FIQ:`: no count | [`Interrupts::without_counts`], [`BareRow`] |
//! | what is none of these | [`Interrupts::findings`], [`Finding`] |

mod description;
mod finding;
mod parse;
mod reader;
#[cfg(feature = "serde")]
mod repr;
mod since;

pub use description::IrqDescription;
pub use finding::Finding;
pub use reader::InterruptsReader;
pub use since::{CountChange, GlobalDelta, InterruptsDelta, IrqDelta, NamedDelta, ResetReason};

use crate::{CpuSet, HostFs, Result};

/// One reading of `/proc/interrupts`.
///
/// The kernel prints it row by row, so it is never the state of one instant. Counts are
/// 32 bits wide and wrap; [`since`](Self::since) takes that into account. Kernels of 2026
/// leave out rows that are zero, so a row's absence may mean zero.
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "repr::Table", try_from = "repr::Table")
)]
pub struct Interrupts {
    cpus: Vec<u32>,
    /// The counts of all rows, one after the other, `cpus.len()` for each row.
    counts: Vec<u32>,
    /// Names and text of all rows, one after the other.
    text: String,
    irqs: Vec<StoredIrq>,
    others: Vec<StoredNamed>,
    globals: Vec<StoredGlobal>,
    bare: Vec<StoredBare>,
    findings: Vec<Finding>,
}

/// A part of `Interrupts::text`: its start and end.
type Span = (usize, usize);

#[derive(Debug, Clone)]
struct StoredIrq {
    irq: u32,
    /// Where its counts start in `Interrupts::counts`.
    counts: usize,
    text: Span,
}

#[derive(Debug, Clone)]
struct StoredNamed {
    name: Span,
    counts: usize,
    text: Span,
}

#[derive(Debug, Clone)]
struct StoredGlobal {
    name: Span,
    count: u64,
}

#[derive(Debug, Clone)]
struct StoredBare {
    name: Span,
    text: Span,
}

/// A numbered row: the interrupts that one IRQ brought to each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IrqRow<'a> {
    /// The number, as in `/proc/irq/<irq>`.
    pub irq: u32,
    /// The CPUs that the counts belong to, in the same order.
    pub cpus: &'a [u32],
    /// Interrupts since the IRQ was set up, modulo 2^32.
    pub counts: &'a [u32],
    /// What follows the counts, as it stands there.
    pub text: &'a str,
}

/// A named row with a count per CPU (`LOC`, `RES`, `IPI0`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedRow<'a> {
    /// The architecture's name for it.
    pub name: &'a str,
    /// The CPUs that the counts belong to, in the same order.
    pub cpus: &'a [u32],
    /// Events since boot, modulo 2^32.
    pub counts: &'a [u32],
    /// The architecture's words for it; empty on very old kernels.
    pub description: &'a str,
}

/// A row with one count for the whole machine (`ERR`, `MIS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobalRow<'a> {
    /// The architecture's name for it.
    pub name: &'a str,
    /// Events since boot: modulo 2^32 on x86, a machine word on Arm.
    pub count: u64,
}

/// A row that counts nothing (`FIQ` on 32-bit Arm).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BareRow<'a> {
    /// The architecture's name for it.
    pub name: &'a str,
    /// What follows the name.
    pub description: &'a str,
}

impl Interrupts {
    /// Reads a table from its text. Bytes that aren't UTF-8 are replaced by U+FFFD.
    ///
    /// Rows that can't be understood are left out and named in [`findings`](Self::findings).
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`](crate::Error::Malformed) if the first line isn't a header of
    /// CPUs (`CPU0 CPU1 ...`), ascending.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self> {
        let mut table = Self::default();
        table.parse_from("proc/interrupts".as_ref(), text.as_ref())?;
        Ok(table)
    }

    /// Reads `proc/interrupts` once; to read it again and again, see [`InterruptsReader`].
    ///
    /// # Errors
    ///
    /// As [`HostFs::read_bytes`] and [`parse`](Self::parse).
    pub fn read(fs: &HostFs) -> Result<Self> {
        InterruptsReader::open(fs)?.read()
    }

    /// The CPUs of the columns: those that were online, ascending.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The numbered rows, ascending.
    pub fn irqs(&self) -> impl ExactSizeIterator<Item = IrqRow<'_>> {
        self.irqs.iter().map(|row| self.irq_row(row))
    }

    /// The numbered row of one IRQ.
    pub fn irq(&self, irq: u32) -> Option<IrqRow<'_>> {
        let at = self.irqs.binary_search_by_key(&irq, |row| row.irq).ok()?;
        Some(self.irq_row(&self.irqs[at]))
    }

    /// The named rows with a count per CPU, in the table's order.
    pub fn others(&self) -> impl ExactSizeIterator<Item = NamedRow<'_>> {
        self.others.iter().map(|row| NamedRow {
            name: self.text(row.name),
            cpus: &self.cpus,
            counts: self.counts(row.counts),
            description: self.text(row.text),
        })
    }

    /// The named row with a count per CPU of that name (`LOC`).
    pub fn other(&self, name: &str) -> Option<NamedRow<'_>> {
        self.others().find(|row| row.name == name)
    }

    /// The rows with one count for the whole machine, in the table's order.
    ///
    /// A table of one CPU doesn't tell them from named rows by their form: there, rows
    /// without a description called `ERR`, `MIS` or `BAD` (in any case) are taken for these.
    pub fn globals(&self) -> impl ExactSizeIterator<Item = GlobalRow<'_>> {
        self.globals.iter().map(|row| GlobalRow {
            name: self.text(row.name),
            count: row.count,
        })
    }

    /// The rows that count nothing, in the table's order.
    pub fn without_counts(&self) -> impl ExactSizeIterator<Item = BareRow<'_>> {
        self.bare.iter().map(|row| BareRow {
            name: self.text(row.name),
            description: self.text(row.text),
        })
    }

    /// What could not be understood, in the table's order.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The interrupts of all numbered rows by CPU: `(cpu, count)`, ascending.
    ///
    /// Counts that have wrapped are in it as they are. Named rows are left out: some of
    /// them count the same event twice (`TLB` in `CAL`) or no interrupts at all (`MCP`).
    /// The CPU's timer is therefore in the total on Arm and not on x86 (`LOC`).
    pub fn per_cpu_total(&self) -> Vec<(u32, u64)> {
        let mut totals: Vec<(u32, u64)> = self.cpus.iter().map(|cpu| (*cpu, 0)).collect();
        for row in self.irqs() {
            for (total, count) in totals.iter_mut().zip(row.counts) {
                total.1 += u64::from(*count);
            }
        }
        totals
    }

    /// What was counted between an earlier table of this machine and this one.
    pub fn since(&self, earlier: &Interrupts) -> InterruptsDelta {
        since::since(self, earlier)
    }

    fn irq_row(&self, row: &StoredIrq) -> IrqRow<'_> {
        IrqRow {
            irq: row.irq,
            cpus: &self.cpus,
            counts: self.counts(row.counts),
            text: self.text(row.text),
        }
    }

    fn counts(&self, at: usize) -> &[u32] {
        &self.counts[at..at + self.cpus.len()]
    }

    fn text(&self, (start, end): Span) -> &str {
        &self.text[start..end]
    }
}

/// Equal if they show the same rows.
impl PartialEq for Interrupts {
    fn eq(&self, other: &Self) -> bool {
        self.cpus == other.cpus
            && self.findings == other.findings
            && self.irqs().eq(other.irqs())
            && self.others().eq(other.others())
            && self.globals().eq(other.globals())
            && self.without_counts().eq(other.without_counts())
    }
}

impl Eq for Interrupts {}

impl<'a> IrqRow<'a> {
    /// `(cpu, count)` of each CPU.
    pub fn per_cpu(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + use<'a> {
        self.cpus.iter().copied().zip(self.counts.iter().copied())
    }

    /// The count of one CPU; `None` if it wasn't online.
    pub fn on(&self, cpu: u32) -> Option<u32> {
        self.per_cpu().find(|(at, _)| *at == cpu).map(|(_, n)| n)
    }

    /// The sum over the CPUs.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// True if the IRQ still serves what it served in an earlier row of that number, so
    /// that the two may be compared: it has the same chip, hardware IRQ and trigger, and
    /// each of the earlier actions. Further actions that share it now do no harm.
    pub fn has_user_of(&self, earlier: &IrqRow<'_>) -> bool {
        if self.text == earlier.text {
            return true;
        }
        let (now, then) = (self.description(), earlier.description());
        let mut actions = then.actions.iter();
        (now.chip, now.hwirq, now.trigger) == (then.chip, then.hwirq, then.trigger)
            && actions.all(|action| now.actions.contains(action))
    }

    /// The text taken apart as far as the text alone allows.
    pub fn description(&self) -> IrqDescription<'a> {
        IrqDescription::of(self.text)
    }
}

impl<'a> NamedRow<'a> {
    /// `(cpu, count)` of each CPU.
    pub fn per_cpu(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + use<'a> {
        self.cpus.iter().copied().zip(self.counts.iter().copied())
    }

    /// The sum over the CPUs.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }
}

/// The columns as a set.
impl From<&Interrupts> for CpuSet {
    fn from(table: &Interrupts) -> CpuSet {
        table.cpus.iter().copied().collect()
    }
}
