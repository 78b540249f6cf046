//! The affinities of all IRQs, recorded before something else moves them.

use std::collections::BTreeSet;
use std::fmt;

use hostfs::interrupts::Interrupts;
use hostfs::{CpuSet, HostFs, Restore};

use crate::way_back::{Held, affinity_file, put_back, via};
use crate::{Error, Irq, IrqReport, IrqRestored, Report, Result, default_affinity};

/// How often a list of IRQs is made anew because one of them vanished meanwhile.
const LISTINGS: u32 = 5;

/// The affinities of all IRQs as they were found: restoring or dropping it undoes what
/// irqbalance, or anything else, does to them from then on.
///
/// An IRQ that vanished since is reported; one that came up since, or whose number another
/// device has now, is given the default affinity, unless it has what its driver hinted.
#[must_use = "dropping it puts every affinity back"]
pub struct Saved {
    record: Restore,
    /// Those that may be set.
    held: Vec<Held>,
    /// All that there were.
    known: BTreeSet<u32>,
    /// Who used them.
    table: Option<Interrupts>,
}

impl Saved {
    /// Records the affinity of every IRQ that has one and may be set.
    ///
    /// Reading needs no privilege, putting back what has changed needs root.
    ///
    /// # Errors
    ///
    /// As [`Irq::read_all`] and [`Restore::expect_all`].
    pub fn take(record: &Restore) -> Result<Self> {
        let fs = record.fs();
        // Who uses an IRQ is a help, not a need.
        let table = Interrupts::read(fs).ok();
        let mut listings = 0;
        loop {
            listings += 1;
            let irqs = Irq::read_all(fs)?;
            let settable = || irqs.iter().filter(|irq| irq.settable != Some(false));
            let files = settable().map(|irq| {
                let via = via(&irq.affinity, irq.effective.as_ref());
                (affinity_file(irq.irq), via)
            });
            let changes = match record.expect_all(files) {
                Ok(changes) => changes,
                Err(error) if error.is_not_found() && listings < LISTINGS => continue,
                Err(error) => return Err(error.into()),
            };
            let held: Result<Vec<Held>> = settable()
                .zip(changes)
                .map(|(irq, change)| Held::expected(irq.irq, irq.effective.clone(), change))
                .collect();
            return Ok(Self {
                record: record.clone(),
                held: held?,
                known: irqs.iter().map(|irq| irq.irq).collect(),
                table,
            });
        }
    }

    /// The recorded IRQs with the affinity that each was found with, ascending.
    pub fn affinities(&self) -> impl ExactSizeIterator<Item = (u32, &CpuSet)> {
        self.held.iter().map(|held| (held.irq, &held.affinity))
    }

    /// The IRQs whose affinity is another one than was recorded, ascending. Those that
    /// have vanished are not among them.
    pub fn moved(&self) -> Vec<u32> {
        let fs = self.record.fs();
        let moved = |held: &&Held| {
            fs.read::<CpuSet>(affinity_file(held.irq))
                .is_ok_and(|now| now != held.affinity)
        };
        self.held
            .iter()
            .filter(moved)
            .map(|held| held.irq)
            .collect()
    }

    /// Puts every affinity back and says which were not simply as found.
    ///
    /// Takes up to a quarter of a second where IRQs have to be led back to their CPU.
    pub fn restore(mut self) -> Report {
        self.put_back()
    }

    fn put_back(&mut self) -> Report {
        let fs = self.record.fs();
        let others = self.taken_over(fs);
        let mut irqs: Vec<IrqReport> = put_back(&self.record, std::mem::take(&mut self.held))
            .into_iter()
            .map(|(irq, outcome)| IrqReport { irq, outcome })
            .filter(|row| row.outcome != IrqRestored::AsFound && !others.contains(&row.irq))
            .collect();
        irqs.extend(self.settle_new(fs, &others));
        irqs.sort_by_key(|row| row.irq);
        self.known.clear();
        Report { irqs }
    }

    /// The IRQs whose number serves something else now.
    fn taken_over(&self, fs: &HostFs) -> BTreeSet<u32> {
        let (Some(then), Ok(now)) = (&self.table, Interrupts::read(fs)) else {
            return BTreeSet::new();
        };
        let pairs = now.irqs().filter_map(|now| Some((now, then.irq(now.irq)?)));
        pairs
            .filter(|(now, then)| !now.has_user_of(then))
            .map(|(now, _)| now.irq)
            .collect()
    }

    /// Gives the default affinity to IRQs that were not there, or not for this device.
    fn settle_new(&self, fs: &HostFs, others: &BTreeSet<u32>) -> Vec<IrqReport> {
        let (Ok(irqs), Ok(default)) = (Irq::read_all(fs), default_affinity(fs)) else {
            return Vec::new();
        };
        let is_new = |irq: &&Irq| !self.known.contains(&irq.irq) || others.contains(&irq.irq);
        irqs.iter()
            .filter(is_new)
            .filter(|irq| irq.settable != Some(false) && irq.affinity != default)
            .filter(|irq| irq.hint.as_ref() != Some(&irq.affinity))
            .filter_map(|irq| {
                let write = fs.write(affinity_file(irq.irq), &default.to_string());
                let outcome = match write.map_err(|e| Error::of_setting(fs, irq.irq, &default, e)) {
                    Ok(()) => IrqRestored::SetToDefault {
                        was: irq.affinity.clone(),
                    },
                    // Nobody can have moved it, either.
                    Err(Error::NotSettable { .. } | Error::Vanished { .. }) => return None,
                    Err(error) => IrqRestored::Failed {
                        why: error.to_string(),
                    },
                };
                Some(IrqReport {
                    irq: irq.irq,
                    outcome,
                })
            })
            .collect()
    }
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saved")
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        // Once restored, nothing is known any more.
        if !self.known.is_empty() {
            self.put_back();
        }
    }
}
