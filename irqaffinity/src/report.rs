//! What became of IRQs that were put back.

use std::fmt;

use hostfs::CpuSet;

/// What became of an IRQ when its affinity was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum IrqRestored {
    /// It was as it had been found.
    AsFound,
    /// Its affinity was put back, and it is served by the CPU that it had been found on.
    PutBack,
    /// Its affinity was put back, but it is served by another CPU than it was found on:
    /// no interrupt came in the time that the kernel was given to move it.
    ServedElsewhere {
        /// The CPUs that it is delivered to.
        effective: CpuSet,
    },
    /// Somebody else has set another affinity meanwhile, so it was left alone.
    LeftAlone {
        /// The affinity that it has.
        holds: String,
    },
    /// The old affinity was written, and the kernel made something else of it.
    Differs {
        /// The affinity that it has.
        holds: String,
    },
    /// It is not there any more.
    Vanished,
    /// It came up meanwhile, or its number is another device's now: it was given the
    /// default affinity.
    SetToDefault {
        /// The affinity that it had before.
        was: CpuSet,
    },
    /// It could not be put back.
    Failed {
        /// What went wrong, and what to do.
        why: String,
    },
}

impl fmt::Display for IrqRestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IrqRestored::AsFound => f.write_str("as it was found"),
            IrqRestored::PutBack => f.write_str("put back"),
            IrqRestored::ServedElsewhere { effective } => write!(
                f,
                "affinity put back, but still served by CPU {effective}: no interrupt came \
                 to move it with"
            ),
            IrqRestored::LeftAlone { holds } => {
                write!(
                    f,
                    "left alone: somebody else has set it to CPUs {holds} meanwhile"
                )
            }
            IrqRestored::Differs { holds } => {
                write!(f, "written, but the kernel made CPUs {holds} of it")
            }
            IrqRestored::Vanished => f.write_str("not there any more"),
            IrqRestored::SetToDefault { was } => {
                write!(f, "new: set from CPUs {was} to the default affinity")
            }
            IrqRestored::Failed { why } => write!(f, "not put back: {why}"),
        }
    }
}

/// What became of one IRQ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct IrqReport {
    /// The IRQ.
    pub irq: u32,
    /// What became of it.
    pub outcome: IrqRestored,
}

/// What became of all IRQs when a [`Saved`](crate::Saved) was restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// The IRQs that were not simply as found, ascending.
    pub irqs: Vec<IrqReport>,
}

impl Report {
    /// True if every IRQ that is still there is as it was found, or has the default
    /// affinity if it came up meanwhile.
    pub fn is_clean(&self) -> bool {
        self.irqs.iter().all(|row| {
            matches!(
                row.outcome,
                IrqRestored::PutBack | IrqRestored::Vanished | IrqRestored::SetToDefault { .. }
            )
        })
    }

    /// What became of an IRQ.
    pub fn outcome(&self, irq: u32) -> &IrqRestored {
        let row = self.irqs.iter().find(|row| row.irq == irq);
        row.map_or(&IrqRestored::AsFound, |row| &row.outcome)
    }
}

/// A line for each IRQ that was not simply as found.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.irqs.is_empty() {
            return f.write_str("every IRQ was as found");
        }
        for (at, row) in self.irqs.iter().enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}IRQ {}: {}", row.irq, row.outcome)?;
        }
        Ok(())
    }
}
