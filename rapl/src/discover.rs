//! Which counters are used: of each domain the best that can be read, and of those the ones
//! that the total is made of.

use std::collections::{BTreeMap, BTreeSet};

use hostfs::{CpuInfo, HostFs};

use crate::candidate::{Candidate, Key};
use crate::place::dies_mirror_package;
use crate::source::Source;
use crate::{Backend, Domain, Error, Fault, Kind, Modulus, Options, Skipped, msr, perf, powercap};

/// What was found, all of it ready to be read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) domains: Vec<Domain>,
    pub(crate) sources: Vec<Source>,
    pub(crate) skipped: Vec<Skipped>,
}

/// What the backends offer.
#[derive(Debug, Default)]
struct Offers {
    candidates: Vec<Candidate>,
    /// Zones of a kind that nobody knows.
    unknown: Vec<Skipped>,
    errors: BTreeMap<Backend, Error>,
}

/// Opens the best counter of each domain.
///
/// # Errors
///
/// Which case it is when there is none.
pub(crate) fn discover(fs: &HostFs, options: &Options) -> Result<Found, Error> {
    let cpu = CpuInfo::read(fs);
    let mirror = dies_mirror_package(&cpu);
    let mut offers = offers(fs, &cpu, options.backend);
    let only_package = only_package(&offers.candidates);
    let key = |domain: &Domain| Key::of(domain, only_package, mirror);
    learn_steps(&mut offers.candidates, key);
    choose(&mut offers.candidates, key);
    mark_total(&mut offers.candidates, key);
    set_parents(&mut offers.candidates);
    options.select(&mut offers.candidates, &mut offers.unknown)?;

    let mut found = Found {
        domains: Vec::new(),
        sources: Vec::new(),
        skipped: Vec::new(),
    };
    for candidate in offers.candidates {
        let domain = candidate.domain;
        match candidate.source {
            Ok(source) => {
                found.domains.push(domain);
                found.sources.push(source);
            }
            Err(why) => found.skipped.push(Skipped {
                id: domain.id,
                kind: Some(domain.kind),
                in_total: domain.in_total,
                backend: domain.backend,
                path: domain.path,
                why,
            }),
        }
    }
    found.skipped.extend(offers.unknown);
    if found.domains.is_empty() {
        return Err(nothing(fs, offers.errors, found.skipped));
    }
    Ok(found)
}

fn offers(fs: &HostFs, cpu: &CpuInfo, only: Option<Backend>) -> Offers {
    let mut offers = Offers::default();
    for backend in Backend::ALL {
        if only.is_some_and(|only| only != backend) {
            continue;
        }
        let found = match backend {
            Backend::Perf => perf::find(fs, cpu),
            Backend::Powercap => powercap::find(fs, cpu).map(|zones| {
                offers.unknown = zones.unknown;
                zones.known
            }),
            Backend::Msr => msr::find(fs, cpu),
        };
        match found {
            Ok(found) => offers.candidates.extend(found),
            Err(error) => {
                offers.errors.insert(backend, error);
            }
        }
    }
    offers
}

/// Why there is nothing to read. Powercap is the door that there should be.
fn nothing(fs: &HostFs, mut errors: BTreeMap<Backend, Error>, skipped: Vec<Skipped>) -> Error {
    let Some(first) = skipped.first() else {
        for backend in [Backend::Powercap, Backend::Perf, Backend::Msr] {
            if let Some(error) = errors.remove(&backend) {
                return error;
            }
        }
        return Error::NothingReadable { skipped };
    };
    let all = |fault: &Fault| skipped.iter().all(|zone| zone.why == *fault);
    if all(&Fault::NotPermitted) {
        return Error::NotPermitted {
            path: fs.full_path(first.path.join("energy_uj")),
            skipped,
        };
    }
    Error::NothingReadable { skipped }
}

fn only_package(candidates: &[Candidate]) -> Option<u32> {
    let packages: BTreeSet<u32> = candidates
        .iter()
        .filter_map(|candidate| candidate.domain.package)
        .collect();
    packages.first().copied().filter(|_| packages.len() == 1)
}

/// perf does not say in which steps a register counts; a zone of the same counter does, and
/// everybody may read that. perf takes the nearest power of two for dram's 15.3 µJ
/// (`rapl_check_hw_unit` in `arch/x86/events/rapl.c`).
fn learn_steps(candidates: &mut [Candidate], key: impl Fn(&Domain) -> Key) {
    let known: BTreeMap<Key, f64> = candidates
        .iter()
        .filter(|candidate| candidate.domain.backend != Backend::Perf)
        .filter_map(|candidate| {
            let resolution = candidate.domain.resolution?.0;
            (resolution > 0.0).then(|| (key(&candidate.domain), resolution))
        })
        .collect();
    for candidate in candidates {
        let domain = &mut candidate.domain;
        if domain.backend == Backend::Perf
            && let Some(resolution) = known.get(&key(domain))
        {
            let step = crate::Joules(2f64.powf(resolution.log2().round()));
            domain.resolution = Some(step);
            domain.modulus = Modulus::Accumulated { step: Some(step) };
        }
    }
}

/// Keeps of each domain the best backend that can be read. Where none can, powercap tells
/// why.
fn choose(candidates: &mut Vec<Candidate>, key: impl Fn(&Domain) -> Key) {
    let mut best: BTreeMap<Key, (bool, bool, Backend)> = BTreeMap::new();
    for candidate in &*candidates {
        let (unreadable, backend) = (candidate.source.is_err(), candidate.domain.backend);
        let rank = (
            unreadable,
            unreadable && backend != Backend::Powercap,
            backend,
        );
        best.entry(key(&candidate.domain))
            .and_modify(|best| *best = (*best).min(rank))
            .or_insert(rank);
    }
    candidates.retain(|candidate| best[&key(&candidate.domain)].2 == candidate.domain.backend);
}

/// Which counters the total is made of: each package (or each of its dies) and each dram
/// once, by one that can be read if there is one, by an MSR zone rather than an MMIO one.
fn mark_total(candidates: &mut [Candidate], key: impl Fn(&Domain) -> Key) {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|&at| (candidates[at].source.is_err(), candidates[at].twin, at));
    let mut taken: BTreeSet<(bool, u32, Option<u32>)> = BTreeSet::new();
    for at in order {
        let candidate = &mut candidates[at];
        let is_dram = match candidate.domain.kind {
            Kind::Package | Kind::Die => false,
            Kind::Dram => true,
            Kind::Core | Kind::Uncore | Kind::Psys => continue,
        };
        let key = key(&candidate.domain);
        let Some(package) = key.package else {
            // Of nobody knows which package: a twin of it could not be told.
            candidate.domain.in_total = !candidate.twin;
            continue;
        };
        let (whole, die) = ((is_dram, package, None), key.die);
        let overlaps = match die {
            Some(_) => taken.contains(&whole) || taken.contains(&(is_dram, package, die)),
            None => taken
                .range(whole..=(is_dram, package, Some(u32::MAX)))
                .next()
                .is_some(),
        };
        if !overlaps {
            taken.insert((is_dram, package, die));
            candidate.domain.in_total = true;
        }
    }
}

/// The inclusion tree: core and uncore within their package or die, psys around packages
/// and dram.
fn set_parents(candidates: &mut [Candidate]) {
    let parents: Vec<Option<String>> = candidates
        .iter()
        .map(|candidate| parent(candidates, candidate))
        .collect();
    for (candidate, parent) in candidates.iter_mut().zip(parents) {
        candidate.domain.parent = parent;
    }
}

fn parent(candidates: &[Candidate], child: &Candidate) -> Option<String> {
    let domain = &child.domain;
    let around = |other: &&Candidate| match domain.kind {
        Kind::Core | Kind::Uncore => {
            matches!(other.domain.kind, Kind::Package | Kind::Die)
                && domain.package.is_some()
                && other.domain.package == domain.package
                && (other.domain.die.is_none() || other.domain.die == domain.die)
                && other.twin == child.twin
        }
        Kind::Package | Kind::Die | Kind::Dram => {
            other.domain.kind == Kind::Psys
                && (other.domain.package.is_none() || other.domain.package == domain.package)
        }
        Kind::Psys => false,
    };
    let mut around = candidates.iter().filter(around);
    let first = around.next()?;
    // Of several psys it is not known which one is around what.
    (first.domain.kind != Kind::Psys || around.next().is_none()).then(|| first.domain.id.clone())
}
