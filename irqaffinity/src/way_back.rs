//! Putting IRQs back: their affinity, and the CPU that serves them.
//!
//! Writing the old affinity is not enough. A controller that delivers to one CPU leaves an
//! IRQ where it is as long as the affinity allows that, so an IRQ that was moved from CPU 0
//! to CPU 1 would stay there when it gets `0-1` back. So the CPU is written first. And
//! where the kernel moves an IRQ at its next interrupt only (MSI without interrupt
//! remapping), that interrupt must come before the old affinity is written.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hostfs::{Change, CpuSet, HostFs, Restore, Restored};

use crate::irq::{file, read_effective};
use crate::{Error, IrqRestored, Result};

/// How long IRQs are given to come back to their CPU, all together. An IRQ that is busy
/// needs less; one that isn't will hardly be missed where it was.
const PATIENCE: Duration = Duration::from_millis(250);

/// How often is looked whether they have.
const LOOK: Duration = Duration::from_millis(2);

/// An IRQ that is to be put back.
pub(crate) struct Held {
    pub irq: u32,
    /// The affinity that was found.
    pub affinity: CpuSet,
    /// The CPUs that it was found to be delivered to.
    pub effective: Option<CpuSet>,
    change: Change,
    /// True if a program of ours may have set it, to whatever.
    expected: bool,
}

impl Held {
    /// An IRQ that is about to be changed by a program of ours.
    pub fn expected(irq: u32, effective: Option<CpuSet>, change: Change) -> Result<Self> {
        Self::new(irq, effective, change, true)
    }

    /// An IRQ that has been set by us.
    pub fn set(irq: u32, effective: Option<CpuSet>, change: Change) -> Result<Self> {
        let held = Self::new(irq, effective, change, false)?;
        let Some(via) = held.via() else {
            return Ok(held);
        };
        let change = held.change.with_way_back(&via)?;
        Ok(Self { change, ..held })
    }

    fn new(irq: u32, effective: Option<CpuSet>, change: Change, expected: bool) -> Result<Self> {
        Ok(Self {
            irq,
            affinity: parse(&change, change.found())?,
            effective,
            change,
            expected,
        })
    }

    /// What the change made of it.
    pub fn now(&self) -> Result<CpuSet> {
        parse(&self.change, self.change.now())
    }

    /// The CPU to write before the old affinity.
    fn via(&self) -> Option<String> {
        via(&self.affinity, self.effective.as_ref())
    }

    /// Starts the way back where there is one to go, and says whether to wait for its end.
    fn set_out(self, record: &Restore) -> (Self, bool) {
        let fs = record.fs();
        let Ok(holds) = fs.read_text(self.change.path()) else {
            return (self, false);
        };
        if !self.expected && holds != self.change.now() {
            // Somebody else's: it will be left alone.
            return (self, false);
        }
        let Some(via) = self.via().filter(|_| !self.is_safe_at(fs, &holds)) else {
            return (self, false);
        };
        match record.set(self.change.path(), &via) {
            Ok(way) => {
                // The later change of the file takes over what the first had found.
                let _ = self.change.restore();
                (
                    Self {
                        change: way,
                        ..self
                    },
                    true,
                )
            }
            // Its CPU may be offline; the old affinity is put back all the same.
            Err(_) => (self, false),
        }
    }

    /// True if it is on its CPU, and the affinity that it holds won't move it away.
    fn is_safe_at(&self, fs: &HostFs, holds: &str) -> bool {
        let allows = |holds: CpuSet| {
            let effective = self.effective.as_ref();
            effective.is_none_or(|cpus| cpus.is_subset(&holds))
        };
        self.is_back(fs) && holds.parse().is_ok_and(allows)
    }

    /// True if it is delivered where it was found, as far as that can be told.
    fn is_back(&self, fs: &HostFs) -> bool {
        match (&self.effective, read_effective(fs, self.irq)) {
            (Some(found), Ok(Some(now))) => *found == now,
            _ => true,
        }
    }

    fn arrive(self, fs: &HostFs) -> IrqRestored {
        let outcome = match self.change.restore() {
            Ok(Restored::AsFound) => IrqRestored::AsFound,
            Ok(Restored::PutBack) => IrqRestored::PutBack,
            Ok(Restored::LeftAlone { holds }) => return IrqRestored::LeftAlone { holds },
            Ok(Restored::Differs { holds }) => return IrqRestored::Differs { holds },
            Ok(Restored::Gone) => return IrqRestored::Vanished,
            Ok(other) => {
                return IrqRestored::Failed {
                    why: other.to_string(),
                };
            }
            Err(error) => {
                let error = Error::of_setting(fs, self.irq, &self.affinity, error);
                return IrqRestored::Failed {
                    why: error.to_string(),
                };
            }
        };
        let now = read_effective(fs, self.irq).ok().flatten();
        match (self.effective, now) {
            (Some(found), Some(effective))
                if found != effective && !found.is_empty() && found.is_subset(&self.affinity) =>
            {
                IrqRestored::ServedElsewhere { effective }
            }
            _ => outcome,
        }
    }
}

/// Without the record, which all of them share.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("irq", &self.irq)
            .field("affinity", &self.affinity)
            .field("effective", &self.effective)
            .finish_non_exhaustive()
    }
}

/// The CPUs to write before an affinity so that an IRQ ends where it was: none if it was
/// not among several, or about to move somewhere else.
pub(crate) fn via(affinity: &CpuSet, effective: Option<&CpuSet>) -> Option<String> {
    effective
        .filter(|cpus| !cpus.is_empty() && cpus.is_subset(affinity) && *cpus != affinity)
        .map(CpuSet::to_string)
}

/// Puts IRQs back, and waits once for all of them.
pub(crate) fn put_back(record: &Restore, held: Vec<Held>) -> Vec<(u32, IrqRestored)> {
    let fs = record.fs();
    let held: Vec<(Held, bool)> = held.into_iter().map(|held| held.set_out(record)).collect();
    let end = Instant::now() + PATIENCE;
    while held.iter().any(|(held, wait)| *wait && !held.is_back(fs)) && Instant::now() < end {
        sleep(LOOK);
    }
    held.into_iter()
        .map(|(held, _)| (held.irq, held.arrive(fs)))
        .collect()
}

fn parse(change: &Change, text: &str) -> Result<CpuSet> {
    text.parse()
        .map_err(|_| hostfs::Error::malformed(change.path(), "a list of CPUs", text).into())
}

/// The path of an IRQ's affinity in list form.
pub(crate) fn affinity_file(irq: u32) -> String {
    file(irq, "smp_affinity_list")
}
