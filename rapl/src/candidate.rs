//! A counter that was found, before it is decided which ones are used.

use crate::source::Source;
use crate::{Domain, Fault, Kind};

/// A counter and, if it can be read, its open source.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) domain: Domain,
    /// An MMIO zone: the same as an MSR zone once more.
    pub(crate) twin: bool,
    pub(crate) source: Result<Source, Fault>,
}

/// What is counted, whichever backend counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    part: Part,
    pub(crate) package: Option<u32>,
    pub(crate) die: Option<u32>,
    core: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Package,
    Core,
    Uncore,
    Dram,
    Psys,
}

impl Key {
    /// `only_package` is the machine's package where it has one alone: a psys zone names
    /// none. Dies count unless each shows its package's counter.
    pub(crate) fn of(domain: &Domain, only_package: Option<u32>, dies_mirror: bool) -> Self {
        let part = match domain.kind {
            Kind::Package | Kind::Die => Part::Package,
            Kind::Core => Part::Core,
            Kind::Uncore => Part::Uncore,
            Kind::Dram => Part::Dram,
            Kind::Psys => Part::Psys,
        };
        Self {
            part,
            package: domain.package.or(only_package),
            die: domain.die.filter(|_| !dies_mirror),
            core: domain.core,
        }
    }
}
