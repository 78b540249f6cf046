//! What the counters count.

use std::fmt;
use std::path::PathBuf;

use crate::{Fault, Modulus};

/// The part of the machine whose energy is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Kind {
    /// A processor package (socket): all of what is in it.
    Package,
    /// One die of a package that has several.
    Die,
    /// The cores of a package. On AMD the kernel's zone counts one core only.
    Core,
    /// The package's graphics, on processors that have one.
    Uncore,
    /// The memory beside a package, not included in it.
    Dram,
    /// The whole platform, around all of the others.
    Psys,
}

/// The kernel's word: `package`, `die`, `core`, `uncore`, `dram` or `psys`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Package => "package",
            Kind::Die => "die",
            Kind::Core => "core",
            Kind::Uncore => "uncore",
            Kind::Dram => "dram",
            Kind::Psys => "psys",
        })
    }
}

/// One energy zone that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Domain {
    /// Unique on this machine, and the same after a reboot: the control type and the names
    /// from the outermost zone on, e.g. `intel-rapl/package-0/dram`. Zones that bear the
    /// same name below the same parent have their number in it too: `intel-rapl/psys:2`.
    pub id: String,
    /// What is counted.
    pub kind: Kind,
    /// The package (socket) by the kernel's numbering, from the zone's name or that of the
    /// zone around it; the zone's own number is not the socket's.
    pub package: Option<u32>,
    /// The die, where the package has several.
    pub die: Option<u32>,
    /// The id of the zone around this one. That zone may itself be unreadable.
    pub parent: Option<String>,
    /// Part of [`Energy::total`](crate::Energy::total): packages (or their dies) and dram,
    /// each once. Never psys, which is around all others, nor an MMIO zone of a package
    /// whose MSR zone can be read. On AMD all dies of a package show the package's
    /// counter, so the first stands for all.
    pub in_total: bool,
    /// The zone's directory, below the root.
    pub path: PathBuf,
    /// `max_energy_range_uj`: the largest value of the counter in microjoules.
    pub max_energy_range_uj: Option<u64>,
    /// What a wrap of the counter is worth, and its resolution.
    pub modulus: Modulus,
}

/// An energy zone that was found and can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Skipped {
    /// As [`Domain::id`]; with the zone's number in the place of a name that is unknown.
    pub id: String,
    /// What it would count, where its name could be read.
    pub kind: Option<Kind>,
    /// It would be part of the total, which is therefore incomplete.
    pub in_total: bool,
    /// The zone's directory, below the root.
    pub path: PathBuf,
    /// Why it can't be read.
    pub why: Fault,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.why)
    }
}
