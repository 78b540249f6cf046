//! The energy events of the perf PMUs.

use hostfs::pmu::{Pmu, PmuEvent};
use hostfs::{CpuInfo, HostFs};

use crate::candidate::Candidate;
use crate::place::{Place, Places};
use crate::source::{EventSource, Source};
use crate::{Backend, Domain, Error, Fault, Joules, Kind, Modulus};

/// The PMU of packages, and that of AMD's cores (`rapl_pmu_init` in
/// `arch/x86/events/rapl.c`).
pub(crate) const PMUS: [&str; 2] = ["power", "power_core"];

/// Opens every energy event, once for each package, die or core.
///
/// # Errors
///
/// That there is no such PMU, or that this root is not the running machine.
pub(crate) fn find(fs: &HostFs, cpu: &CpuInfo) -> Result<Vec<Candidate>, Error> {
    let mut pmus = Vec::new();
    for name in PMUS {
        match Pmu::read(fs, name) {
            Ok(pmu) => pmus.push(pmu),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let Some(first) = pmus.first() else {
        return Err(Error::NoBackend {
            backend: Backend::Perf,
            path: fs.full_path("sys/bus/event_source/devices/power"),
            virtual_machine: cpu.virtual_machine == Some(true),
        });
    };
    if !fs.is_this_machine() {
        return Err(Error::OtherMachine {
            path: fs.full_path(first.path()),
        });
    }
    let places = Places::read(fs, cpu)?;
    let mut candidates = Vec::new();
    for pmu in &pmus {
        for event in &pmu.events {
            let Some(kind) = kind(&event.name) else {
                continue;
            };
            let of_a_core = event.name == "energy-core";
            let cpus = if of_a_core {
                places.cores(Some(&pmu.cpus))
            } else {
                places.packages(Some(&pmu.cpus))
            };
            for (cpu, place) in cpus {
                candidates.push(candidate(fs, pmu, event, kind, cpu, place));
            }
        }
    }
    Ok(candidates)
}

fn candidate(
    fs: &HostFs,
    pmu: &Pmu,
    event: &PmuEvent,
    kind: Kind,
    cpu: u32,
    place: Place,
) -> Candidate {
    let unit = unit(event);
    let source = match &unit {
        Ok(_) => EventSource::open(fs, pmu, &event.name, cpu, place).map(Source::Event),
        Err(fault) => Err(fault.clone()),
    };
    Candidate {
        domain: Domain {
            unit: unit.unwrap_or(Joules(0.0)),
            path: pmu.path(),
            // The step is found out where powercap shows the same counter.
            modulus: Modulus::Accumulated { step: None },
            ..Domain::at(Backend::Perf, &pmu.name, kind, place)
        },
        twin: false,
        source,
    }
}

/// `energy-psys` and the like (`rapl_events_*` in `arch/x86/events/rapl.c`).
fn kind(event: &str) -> Option<Kind> {
    Some(match event {
        "energy-pkg" => Kind::Package,
        "energy-cores" | "energy-core" => Kind::Core,
        "energy-gpu" => Kind::Uncore,
        "energy-ram" => Kind::Dram,
        "energy-psys" => Kind::Psys,
        _ => return None,
    })
}

fn unit(event: &PmuEvent) -> Result<Joules, Fault> {
    if event.unit.as_deref() != Some("Joules") {
        return Err(Fault::Malformed {
            text: event.unit.clone().unwrap_or_default(),
        });
    }
    let scale = event.scale.ok_or(Fault::Malformed {
        text: String::new(),
    })?;
    Ok(Joules(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(scale: Option<f64>, unit: Option<&str>) -> PmuEvent {
        let json = serde_json::json!({
            "name": "energy-pkg", "config": null, "scale": scale, "unit": unit
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn only_joules_are_energy() {
        let scale = 2f64.powi(-32);
        assert_eq!(unit(&event(Some(scale), Some("Joules"))), Ok(Joules(scale)));
        for bad in [
            event(Some(scale), Some("Watts")),
            event(Some(scale), None),
            event(None, Some("Joules")),
        ] {
            assert!(matches!(unit(&bad), Err(Fault::Malformed { .. })));
        }
    }

    #[test]
    fn events_tell_their_kind() {
        let kinds = [
            "energy-pkg",
            "energy-cores",
            "energy-core",
            "energy-gpu",
            "energy-ram",
            "energy-psys",
        ];
        assert_eq!(
            kinds.map(|name| kind(name).unwrap().to_string()),
            ["package", "core", "core", "uncore", "dram", "psys"]
        );
        assert_eq!(kind("energy-pkg.scale"), None);
    }
}
