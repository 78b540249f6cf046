//! The energy registers themselves.

use hostfs::{CpuInfo, HostFs, Msr};

use crate::candidate::Candidate;
use crate::models::{Model, Registers, Units};
use crate::place::{Place, Places};
use crate::source::{RegisterSource, Source};
use crate::{Backend, Domain, Error, Fault, Joules, Kind, Modulus};

/// `arch/x86/include/asm/msr-index.h`.
const INTEL_UNITS: u32 = 0x606;
const INTEL: [(u32, Kind); 5] = [
    (0x611, Kind::Package),
    (0x639, Kind::Core),
    (0x641, Kind::Uncore),
    (0x619, Kind::Dram),
    (0x64D, Kind::Psys),
];
const AMD_UNITS: u32 = 0xC001_0299;
const AMD_CORE: u32 = 0xC001_029A;
const AMD_PACKAGE: u32 = 0xC001_029B;

/// Opens every energy register that shows something, once for each package, die or core.
///
/// # Errors
///
/// That this processor has none, or that none of its CPUs' registers are offered.
pub(crate) fn find(fs: &HostFs, cpu: &CpuInfo) -> Result<Vec<Candidate>, Error> {
    let unavailable = || Error::NoBackend {
        backend: Backend::Msr,
        path: fs.full_path("dev/cpu/0/msr"),
        virtual_machine: cpu.virtual_machine == Some(true),
    };
    let model = Model::of(cpu).ok_or_else(unavailable)?;
    let places = match Places::read(fs, cpu) {
        Err(error) if error.is_not_found() => return Err(unavailable()),
        places => places?,
    };
    let mut candidates = Vec::new();
    for (cpu, place) in places.packages(None) {
        let of_package = match model.registers {
            Registers::Intel => open(fs, &model, cpu, place, INTEL_UNITS, &INTEL),
            Registers::Amd => {
                let package = [(AMD_PACKAGE, Kind::Package)];
                open(fs, &model, cpu, place, AMD_UNITS, &package)
            }
        };
        candidates.extend(of_package);
    }
    if model.registers == Registers::Amd {
        for (cpu, place) in places.cores(None) {
            let core = [(AMD_CORE, Kind::Core)];
            candidates.extend(open(fs, &model, cpu, place, AMD_UNITS, &core));
        }
    }
    if candidates.is_empty() {
        return Err(unavailable());
    }
    Ok(candidates)
}

fn open(
    fs: &HostFs,
    model: &Model,
    cpu: u32,
    place: Place,
    units: u32,
    registers: &[(u32, Kind)],
) -> Vec<Candidate> {
    // Those of a CPU whose registers are there but can't be read: each says why.
    let unit = match Msr::open(fs, cpu).and_then(|msr| msr.read(units)) {
        Err(hostfs::Error::NotFound { .. } | hostfs::Error::NotSupported { .. }) => {
            return Vec::new();
        }
        Ok(register) => Ok(model.units(register)),
        Err(error) => Err(fault(error)),
    };
    registers
        .iter()
        .filter_map(|(register, kind)| {
            let source = match &unit {
                Ok(_) => source(fs, cpu, place, *register),
                // Whether there are others than the package, only the registers tell.
                Err(fault) => (*kind == Kind::Package).then(|| Err(fault.clone())),
            };
            let unit = unit.as_ref().map_or(Joules(0.0), |units| of(units, *kind));
            Some(Candidate {
                domain: Domain {
                    unit,
                    path: format!("dev/cpu/{cpu}/msr").into(),
                    unit_assumed: !model.known,
                    resolution: Some(unit),
                    modulus: Modulus::Register,
                    ..Domain::at(Backend::Msr, "msr", *kind, place)
                },
                twin: false,
                source: source?,
            })
        })
        .collect()
}

/// `None` for a register that is not there or shows nothing, as powercap leaves it out
/// (`rapl_check_domain`).
fn source(fs: &HostFs, cpu: u32, place: Place, register: u32) -> Option<Result<Source, Fault>> {
    let msr = match Msr::open(fs, cpu) {
        Ok(msr) => msr,
        Err(error) => return Some(Err(fault(error))),
    };
    match msr.read(register) {
        Err(hostfs::Error::NotSupported { .. }) => None,
        Err(error) => Some(Err(fault(error))),
        Ok(value) if value & 0xFFFF_FFFF == 0 => None,
        Ok(_) => {
            let source = RegisterSource::new(msr, register, place);
            Some(Ok(Source::Register(source)))
        }
    }
}

fn of(units: &Units, kind: Kind) -> Joules {
    match kind {
        Kind::Dram => units.dram,
        Kind::Psys => units.psys,
        _ => units.package,
    }
}

fn fault(error: hostfs::Error) -> Fault {
    match error {
        hostfs::Error::NotPermitted { .. } => Fault::RegistersNotPermitted,
        other => other.into(),
    }
}
