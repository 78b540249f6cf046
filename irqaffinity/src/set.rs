//! Setting an affinity, for a while.

use std::fmt;

use hostfs::{CpuSet, Restore};

use crate::irq::read_effective;
use crate::way_back::{Held, affinity_file, put_back};
use crate::{Error, IrqRestored, Result};

/// What the kernel made of a new affinity.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Outcome {
    /// The IRQ.
    pub irq: u32,
    /// The CPUs that were asked for.
    pub requested: CpuSet,
    /// The affinity as the kernel stored it.
    pub affinity: CpuSet,
    /// The CPUs that the IRQ is delivered to, which may be fewer; `None` where the kernel
    /// doesn't tell.
    pub effective: Option<CpuSet>,
    /// True if it is still delivered to a CPU outside the new affinity, until its next
    /// interrupt; `None` where the kernel doesn't tell.
    pub pending: Option<bool>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IRQ {}: CPUs {}", self.irq, self.affinity)?;
        match (&self.effective, self.pending) {
            (Some(effective), Some(true)) => {
                write!(f, ", from its next interrupt on (now CPU {effective})")
            }
            (Some(effective), _) => write!(f, ", served by CPU {effective}"),
            (None, _) => Ok(()),
        }
    }
}

/// An affinity that was set for a while: dropping it puts back what was found.
///
/// Putting back may take up to a quarter of a second: an IRQ that was moved from CPU 0 to
/// CPU 1 is led back to CPU 0 before it gets its old affinity `0-1`, and on many machines
/// it moves at its next interrupt only.
#[must_use = "dropping it puts the affinity back"]
pub struct AffinityGuard {
    record: Restore,
    outcome: Outcome,
    /// `None` once it is put back.
    held: Option<Held>,
}

impl AffinityGuard {
    /// What the kernel made of the affinity.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Puts back what was found, and says how that went.
    pub fn restore(mut self) -> IrqRestored {
        self.put_back().unwrap_or(IrqRestored::AsFound)
    }

    fn put_back(&mut self) -> Option<IrqRestored> {
        let held = self.held.take()?;
        let (_, outcome) = put_back(&self.record, vec![held]).pop()?;
        Some(outcome)
    }
}

impl fmt::Debug for AffinityGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AffinityGuard")
            .field("outcome", &self.outcome)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// Lets an IRQ be served by these CPUs only, until the guard is dropped.
///
/// One write, never repeated: an IRQ that can't be set won't be set by trying again.
/// CPUs that are offline may be among them beside one that is online. Needs root. A single
/// use makes its record with [`Restore::new`].
///
/// # Errors
///
/// [`Error::NotSettable`], [`Error::NoOnlineCpu`], [`Error::NoVectors`],
/// [`Error::OutOfRange`], [`Error::Vanished`]; [`Error::Host`] with
/// [`NotPermitted`](hostfs::Error::NotPermitted) for lack of privilege or
/// [`ReadOnly`](hostfs::Error::ReadOnly) in a container. Nothing is changed then.
pub fn set_affinity(record: &Restore, irq: u32, cpus: &CpuSet) -> Result<AffinityGuard> {
    if cpus.is_empty() {
        // An empty text would not even reach the kernel.
        return Err(Error::NoOnlineCpu {
            irq,
            cpus: cpus.clone(),
        });
    }
    let fs = record.fs();
    let failed = |error| Error::of_setting(fs, irq, cpus, error);
    let found = read_effective(fs, irq).map_err(failed)?;
    let change = record
        .set(affinity_file(irq), &cpus.to_string())
        .map_err(failed)?;
    let held = Held::set(irq, found, change)?;
    let affinity = held.now()?;
    let effective = read_effective(fs, irq).map_err(failed)?;
    Ok(AffinityGuard {
        record: record.clone(),
        outcome: Outcome {
            irq,
            requested: cpus.clone(),
            pending: effective.as_ref().map(|at| !at.is_subset(&affinity)),
            affinity,
            effective,
        },
        held: Some(held),
    })
}
