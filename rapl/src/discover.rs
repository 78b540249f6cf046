//! Finds the energy zones and decides what each of them stands for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hostfs::{Attribute, CpuInfo, HostFs};

use crate::zone::{Role, ZoneId, control_type, parse_name};
use crate::{Domain, Error, Fault, Kind, Modulus, Skipped};

const CLASS: &str = "sys/class/powercap";

/// What was found, all of it ready to be read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) zones: Vec<OpenZone>,
    pub(crate) skipped: Vec<Skipped>,
}

/// A zone that can be read, and its counter.
#[derive(Debug)]
pub(crate) struct OpenZone {
    pub(crate) domain: Domain,
    pub(crate) energy: Attribute,
    /// The zone's name file and those of the zones around it, with what they hold.
    pub(crate) names: Vec<(PathBuf, String)>,
}

/// A zone before it is known whether it can be read.
struct Zone {
    id: ZoneId,
    path: PathBuf,
    name: String,
    role: Result<Role, Fault>,
}

/// Opens every zone that can be read.
///
/// # Errors
///
/// Which case it is when there is none.
pub(crate) fn discover(fs: &HostFs) -> Result<Found, Error> {
    let cpu = CpuInfo::read(fs);
    let (paths, dangling) = find(fs, &cpu)?;
    let class = fs.full_path(CLASS);
    if paths.is_empty() {
        return Err(if dangling {
            Error::Masked { path: class }
        } else {
            Error::NoZones {
                path: class,
                virtual_machine: cpu.virtual_machine == Some(true),
            }
        });
    }
    let found = open(fs, &describe(fs, paths), &cpu);
    if found.zones.is_empty() {
        return Err(nothing_readable(fs, found.skipped));
    }
    Ok(found)
}

fn nothing_readable(fs: &HostFs, skipped: Vec<Skipped>) -> Error {
    let all = |fault: Fault| skipped.iter().all(|zone| zone.why == fault);
    let dangling = || skipped.iter().all(|zone| !fs.exists(&zone.path));
    match skipped.first() {
        Some(_) if dangling() => Error::Masked {
            path: fs.full_path(CLASS),
        },
        Some(first) if all(Fault::NotPermitted) => Error::NotPermitted {
            path: fs.full_path(first.path.join("energy_uj")),
            skipped,
        },
        _ => Error::NothingReadable { skipped },
    }
}

/// Every zone once, by its id, and whether a control type's link leads nowhere. The kernel
/// links all zones flat below the class; a captured tree may have them nested only.
fn find(fs: &HostFs, cpu: &CpuInfo) -> Result<(BTreeMap<ZoneId, PathBuf>, bool), Error> {
    let entries = match fs.list(CLASS) {
        Err(error) if error.is_not_found() => {
            return Err(Error::NoPowercap {
                path: fs.full_path(CLASS),
                virtual_machine: cpu.virtual_machine == Some(true),
            });
        }
        entries => entries?,
    };
    let mut zones = BTreeMap::new();
    let mut to_list = Vec::new();
    let mut dangling = false;
    for entry in entries {
        let path = PathBuf::from(CLASS).join(&entry);
        if let Some(zone) = ZoneId::parse(&entry) {
            zones.insert(zone, path.clone());
            to_list.push(path);
        } else if control_type(&entry).is_some() {
            dangling |= !fs.exists(&path);
            to_list.push(path);
        }
    }
    while let Some(path) = to_list.pop() {
        // What can't be listed has no zones inside that could be read.
        for entry in fs.list(&path).unwrap_or_default() {
            let Some(zone) = ZoneId::parse(&entry) else {
                continue;
            };
            // Each zone is entered once, so that no link can lead in circles.
            zones.entry(zone).or_insert_with(|| {
                let inside = path.join(&entry);
                to_list.push(inside.clone());
                inside
            });
        }
    }
    Ok((zones, dangling))
}

fn describe(fs: &HostFs, paths: BTreeMap<ZoneId, PathBuf>) -> Vec<Zone> {
    paths
        .into_iter()
        .map(|(id, path)| {
            let (name, role) = match fs.read_text(path.join("name")) {
                Ok(name) => {
                    let unknown = Fault::UnknownKind { name: name.clone() };
                    let role = parse_name(&name).ok_or(unknown);
                    (name, role)
                }
                Err(error) => (String::new(), Err(error.into())),
            };
            Zone {
                id,
                path,
                name,
                role,
            }
        })
        .collect()
}

fn open(fs: &HostFs, zones: &[Zone], cpu: &CpuInfo) -> Found {
    let ids = ids(zones);
    let places = places(zones);
    let counters: Vec<Result<Attribute, Fault>> = zones
        .iter()
        .map(|zone| {
            zone.role.clone()?;
            let mut energy = fs.attribute(zone.path.join("energy_uj"))?;
            energy.read_u64()?;
            Ok(energy)
        })
        .collect();
    let in_total = in_total(zones, &places, &counters, cpu);
    let mut found = Found {
        zones: Vec::new(),
        skipped: Vec::new(),
    };
    for ((zone, counter), in_total) in zones.iter().zip(counters).zip(in_total) {
        let id = ids[&zone.id].clone();
        match (&zone.role, counter) {
            (Ok(role), Ok(energy)) => {
                let (package, die) = places[&zone.id];
                let range = fs.read::<u64>(zone.path.join("max_energy_range_uj")).ok();
                let domain = Domain {
                    id,
                    kind: role.kind,
                    package,
                    die,
                    parent: zone
                        .id
                        .parent()
                        .and_then(|parent| ids.get(&parent).cloned()),
                    in_total,
                    path: zone.path.clone(),
                    max_energy_range_uj: range,
                    modulus: Modulus::of_range(range),
                };
                found.zones.push(OpenZone {
                    domain,
                    energy,
                    names: names(zones, zone),
                });
            }
            (role, Err(why)) => found.skipped.push(Skipped {
                id,
                kind: role.as_ref().ok().map(|role| role.kind),
                in_total,
                path: zone.path.clone(),
                why,
            }),
            // A zone without a role has no counter either.
            (Err(_), Ok(_)) => {}
        }
    }
    found
}

/// The stable ids. Zones sort after their parents.
fn ids(zones: &[Zone]) -> BTreeMap<ZoneId, String> {
    let mut siblings: BTreeMap<(Option<ZoneId>, &str, &str), usize> = BTreeMap::new();
    let key = |zone: &'_ Zone| (zone.id.parent(), zone.id.control_type());
    for zone in zones {
        let (parent, control_type) = key(zone);
        *siblings
            .entry((parent, control_type, &zone.name))
            .or_default() += 1;
    }
    let mut ids: BTreeMap<ZoneId, String> = BTreeMap::new();
    for zone in zones {
        let (parent, control_type) = key(zone);
        let around = match &parent {
            None => control_type.to_owned(),
            Some(parent) => match ids.get(parent) {
                Some(id) => id.clone(),
                None => format!("{control_type}/{parent}"),
            },
        };
        let name = &zone.name;
        let id = if zone.role.is_err() {
            format!("{around}/{}", zone.id)
        } else if siblings[&(parent, control_type, name.as_str())] > 1 {
            format!("{around}/{name}:{}", zone.id.number())
        } else {
            format!("{around}/{name}")
        };
        ids.insert(zone.id.clone(), id);
    }
    ids
}

/// The package and die of each zone, from its own name or that of the zone around it.
fn places(zones: &[Zone]) -> BTreeMap<ZoneId, (Option<u32>, Option<u32>)> {
    let mut places = BTreeMap::new();
    for zone in zones {
        let place = match &zone.role {
            Ok(Role {
                package: package @ Some(_),
                die,
                ..
            }) => (*package, *die),
            _ => zone
                .id
                .parent()
                .and_then(|parent| places.get(&parent).copied())
                .unwrap_or_default(),
        };
        places.insert(zone.id.clone(), place);
    }
    places
}

/// Which zones the total is made of: each package (or each of its dies) and each dram once,
/// by a zone that can be read if there is one, by the MSR zone rather than the MMIO one.
fn in_total(
    zones: &[Zone],
    places: &BTreeMap<ZoneId, (Option<u32>, Option<u32>)>,
    counters: &[Result<Attribute, Fault>],
    cpu: &CpuInfo,
) -> Vec<bool> {
    let mut order: Vec<usize> = (0..zones.len()).collect();
    order.sort_by_key(|&at| (counters[at].is_err(), zones[at].id.is_mmio(), at));
    let mut taken: BTreeSet<(bool, u32, Option<u32>)> = BTreeSet::new();
    let mut in_total = vec![false; zones.len()];
    for at in order {
        let Ok(role) = &zones[at].role else {
            continue;
        };
        let is_dram = match role.kind {
            Kind::Package | Kind::Die => false,
            Kind::Dram => true,
            Kind::Core | Kind::Uncore | Kind::Psys => continue,
        };
        let (Some(package), die) = places[&zones[at].id] else {
            // Dram of nobody knows which package: a twin of it could not be told.
            in_total[at] = !zones[at].id.is_mmio();
            continue;
        };
        let die = die.filter(|_| !dies_mirror_package(cpu));
        let whole = (is_dram, package, None);
        let overlaps = match die {
            Some(_) => taken.contains(&whole) || taken.contains(&(is_dram, package, die)),
            None => taken
                .range(whole..=(is_dram, package, Some(u32::MAX)))
                .next()
                .is_some(),
        };
        if !overlaps {
            taken.insert((is_dram, package, die));
            in_total[at] = true;
        }
    }
    in_total
}

fn names(zones: &[Zone], zone: &Zone) -> Vec<(PathBuf, String)> {
    let above = zone.id.parent();
    std::iter::successors(above, ZoneId::parent)
        .filter_map(|id| zones.iter().find(|zone| zone.id == id))
        .chain([zone])
        .filter(|zone| zone.role.is_ok())
        .map(|zone| (zone.path.join("name"), zone.name.clone()))
        .collect()
}

/// All dies of a package show one counter, that of the package, on AMD and Hygon
/// (`rapl_pmu_is_pkg_scope` in `arch/x86/events/rapl.c`).
fn dies_mirror_package(cpu: &CpuInfo) -> bool {
    matches!(cpu.vendor.as_deref(), Some("AuthenticAMD" | "HygonGenuine"))
}
