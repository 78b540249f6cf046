//! The energy zones of powercap, and what each of them stands for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hostfs::{CpuInfo, HostFs};

use crate::candidate::Candidate;
use crate::place::Place;
use crate::source::{Source, ZoneSource};
use crate::zone::{Role, ZoneId, control_type, parse_name};
use crate::{Backend, Domain, Error, Fault, Joules, Modulus, Skipped};

pub(crate) const CLASS: &str = "sys/class/powercap";

/// What was found: zones of a known kind, and others.
#[derive(Debug)]
pub(crate) struct Zones {
    pub(crate) known: Vec<Candidate>,
    pub(crate) unknown: Vec<Skipped>,
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
/// Which case it is when there is none at all.
pub(crate) fn find(fs: &HostFs, cpu: &CpuInfo) -> Result<Zones, Error> {
    let (paths, dangling) = paths(fs, cpu)?;
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
    if paths.values().all(|path| !fs.exists(path)) {
        return Err(Error::Masked { path: class });
    }
    Ok(open(fs, &describe(fs, paths)))
}

/// Every zone once, by its id, and whether a control type's link leads nowhere. The kernel
/// links all zones flat below the class; a captured tree may have them nested only.
fn paths(fs: &HostFs, cpu: &CpuInfo) -> Result<(BTreeMap<ZoneId, PathBuf>, bool), Error> {
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

fn open(fs: &HostFs, zones: &[Zone]) -> Zones {
    let ids = ids(zones);
    let places = places(zones);
    let mut found = Zones {
        known: Vec::new(),
        unknown: Vec::new(),
    };
    for zone in zones {
        let id = ids[&zone.id].clone();
        let role = match &zone.role {
            Ok(role) => role,
            Err(why) => {
                found.unknown.push(Skipped {
                    id,
                    kind: None,
                    in_total: false,
                    backend: Backend::Powercap,
                    path: zone.path.clone(),
                    why: why.clone(),
                });
                continue;
            }
        };
        let range = fs.read::<u64>(zone.path.join("max_energy_range_uj")).ok();
        let modulus = Modulus::of_range(range);
        found.known.push(Candidate {
            domain: Domain {
                id,
                kind: role.kind,
                path: zone.path.clone(),
                max_energy_range_uj: range,
                unit: Joules(1e-6),
                resolution: modulus.unit_nj().map(|nj| Joules(nj as f64 / 1e9)),
                modulus,
                ..Domain::at(Backend::Powercap, "", role.kind, places[&zone.id])
            },
            twin: zone.id.is_mmio(),
            source: source(fs, zones, zone),
        });
    }
    found
}

fn source(fs: &HostFs, zones: &[Zone], zone: &Zone) -> Result<Source, Fault> {
    let mut energy = fs.attribute(zone.path.join("energy_uj"))?;
    energy.read_u64()?;
    Ok(Source::Zone(ZoneSource::new(energy, names(zones, zone))))
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
fn places(zones: &[Zone]) -> BTreeMap<ZoneId, Place> {
    let mut places = BTreeMap::new();
    for zone in zones {
        let place = match &zone.role {
            Ok(Role {
                package: package @ Some(_),
                die,
                ..
            }) => Place {
                package: *package,
                die: *die,
                core: None,
            },
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

fn names(zones: &[Zone], zone: &Zone) -> Vec<(PathBuf, String)> {
    let above = zone.id.parent();
    std::iter::successors(above, ZoneId::parent)
        .filter_map(|id| zones.iter().find(|zone| zone.id == id))
        .chain([zone])
        .filter(|zone| zone.role.is_ok())
        .map(|zone| (zone.path.join("name"), zone.name.clone()))
        .collect()
}
