//! What the counters count.

use std::fmt;
use std::path::PathBuf;

use crate::place::Place;
use crate::{Backend, Fault, Joules, Modulus};

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
    /// The cores of a package, or one of them: see [`Domain::core`]. AMD's zone of powercap
    /// counts the package's first core only.
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

/// One energy counter that can be read.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Domain {
    /// Unique on this machine, and the same after a reboot: the control type (or the PMU, or
    /// `msr`) and the names from the outermost on, e.g. `intel-rapl/package-0/dram`,
    /// `power/package-0`, `power_core/package-0/core-3`. Zones that bear the same name below
    /// the same parent have their number in it too: `intel-rapl/psys:2`.
    pub id: String,
    /// What is counted.
    pub kind: Kind,
    /// The package (socket) by the kernel's numbering. With powercap it is from the zone's
    /// name or that of the zone around it; the zone's own number is not the socket's.
    pub package: Option<u32>,
    /// The die, where the package has several that have counters of their own.
    pub die: Option<u32>,
    /// The core, where each has a counter of its own (AMD).
    pub core: Option<u32>,
    /// The id of what this is part of: a package for core and uncore, psys for packages and
    /// dram, where there is one. It may itself be unreadable.
    pub parent: Option<String>,
    /// Part of [`Energy::total`](crate::Energy::total): packages (or their dies) and dram,
    /// each once. Never psys, which is around all others, nor an MMIO zone of a package
    /// whose MSR zone can be read. On AMD all dies of a package show the package's
    /// counter, so the first stands for all.
    pub in_total: bool,
    /// By which door it is read.
    pub backend: Backend,
    /// The zone's or the PMU's directory, or the register file, below the root.
    pub path: PathBuf,
    /// `max_energy_range_uj`: the largest value of the counter in microjoules, with
    /// powercap.
    pub max_energy_range_uj: Option<u64>,
    /// What one count of [`DomainReading::count`](crate::DomainReading::count) is worth: a
    /// microjoule with powercap, 2⁻³² J with perf, the register's own unit with MSRs.
    pub unit: Joules,
    /// The processor is in no table that this crate has, so that the unit register was
    /// believed; with MSRs only, since the other backends ask the kernel.
    pub unit_assumed: bool,
    /// The step in which the register counts, where that is known.
    pub resolution: Option<Joules>,
    /// What a wrap of the counter is worth.
    pub modulus: Modulus,
}

impl Domain {
    /// A domain with what its place tells, and nothing known of its counter.
    pub(crate) fn at(backend: Backend, control_type: &str, kind: Kind, place: Place) -> Self {
        let package = place.name();
        let id = match (kind, place.core) {
            (Kind::Package | Kind::Die, _) => format!("{control_type}/{package}"),
            (Kind::Core, Some(core)) => format!("{control_type}/{package}/core-{core}"),
            // As powercap names them (`rapl_init_domains` in `intel_rapl_common.c`).
            (Kind::Psys, _) => match place.package {
                None | Some(0) => format!("{control_type}/psys"),
                Some(package) => format!("{control_type}/psys-{package}"),
            },
            _ => format!("{control_type}/{package}/{kind}"),
        };
        Self {
            id,
            kind: match kind {
                Kind::Package if place.die.is_some() => Kind::Die,
                kind => kind,
            },
            package: place.package,
            die: place.die,
            core: place.core,
            parent: None,
            in_total: false,
            backend,
            path: PathBuf::new(),
            max_energy_range_uj: None,
            unit: Joules(0.0),
            unit_assumed: false,
            resolution: None,
            modulus: Modulus::Unknown,
        }
    }
}

/// An energy counter that was found and can't be read.
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
    /// By which door it would be read.
    pub backend: Backend,
    /// As [`Domain::path`].
    pub path: PathBuf,
    /// Why it can't be read.
    pub why: Fault,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.why)
    }
}
