//! What is known of each processor's energy registers.
//!
//! Sources: `rapl_ids` in `drivers/powercap/intel_rapl_common.c` (Linux 6.16) for units and
//! quirks, `arch/x86/include/asm/intel-family.h` for names, and the datasheets that they cite.

use hostfs::CpuInfo;

use crate::Joules;

/// Which registers a processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Registers {
    /// Units in 606, package 611, dram 619, core 639, uncore 641, psys 64D.
    Intel,
    /// Units in C0010299, one core C001029A, package C001029B.
    Amd,
}

/// How the unit register's bits 12:8, the number n, tell the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum UnitForm {
    /// 2⁻ⁿ J.
    Fraction,
    /// 2ⁿ µJ.
    Microjoules,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Model {
    /// The processor, by the kernel's name.
    pub name: &'static str,
    /// Which registers it has.
    pub registers: Registers,
    /// How its unit register is read.
    pub unit_form: UnitForm,
    /// What one count of dram is worth, whatever the unit register says.
    pub dram_unit: Option<Joules>,
    /// What one count of psys is worth, whatever the unit register says.
    pub psys_unit: Option<Joules>,
    /// The table has this processor. Otherwise only its vendor is known, and the unit
    /// register is believed.
    pub known: bool,
    /// Where this is from.
    pub source: &'static str,
}

/// The unit register of Intel (`MSR_RAPL_POWER_UNIT`) and AMD, for each kind of domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Units {
    pub(crate) package: Joules,
    pub(crate) dram: Joules,
    pub(crate) psys: Joules,
}

const POWERCAP: &str = "rapl_ids, drivers/powercap/intel_rapl_common.c";
const HASWELL_SERVER: &str = "rapl_defaults_hsw_server, drivers/powercap/intel_rapl_common.c; \
     Intel Xeon E5-1600/2600 v3 Datasheet, volume 2 (330784)";
const SAPPHIRE: &str = "rapl_defaults_spr_server, drivers/powercap/intel_rapl_common.c";
const ATOM: &str = "rapl_check_unit_atom, drivers/powercap/intel_rapl_common.c; \
     Intel SDM volume 4, MSR 606H of Silvermont";
const AMD: &str = "rapl_defaults_amd, drivers/powercap/intel_rapl_common.c; \
     rapl_model model_amd_hygon, arch/x86/events/rapl.c";

/// Family 6, whose units are in the unit register and nowhere else.
const PLAIN: [(u32, &str); 44] = [
    (0x2A, "Sandy Bridge"),
    (0x2D, "Sandy Bridge-X"),
    (0x3A, "Ivy Bridge"),
    (0x3E, "Ivy Bridge-X"),
    (0x3C, "Haswell"),
    (0x45, "Haswell-L"),
    (0x46, "Haswell-G"),
    (0x3D, "Broadwell"),
    (0x47, "Broadwell-G"),
    (0x56, "Broadwell-D"),
    (0x4E, "Skylake-L"),
    (0x5E, "Skylake"),
    (0x8E, "Kaby Lake-L"),
    (0x9E, "Kaby Lake"),
    (0x66, "Cannon Lake-L"),
    (0x7E, "Ice Lake-L"),
    (0x7D, "Ice Lake"),
    (0x9D, "Ice Lake NNPI"),
    (0xA6, "Comet Lake-L"),
    (0xA5, "Comet Lake"),
    (0x8C, "Tiger Lake-L"),
    (0x8D, "Tiger Lake"),
    (0xA7, "Rocket Lake"),
    (0x97, "Alder Lake"),
    (0x9A, "Alder Lake-L"),
    (0xBE, "Gracemont"),
    (0xB7, "Raptor Lake"),
    (0xBA, "Raptor Lake-P"),
    (0xBF, "Raptor Lake-S"),
    (0xD7, "Bartlett Lake"),
    (0xAC, "Meteor Lake"),
    (0xAA, "Meteor Lake-L"),
    (0xBD, "Lunar Lake-M"),
    (0xCC, "Panther Lake-L"),
    (0xC5, "Arrow Lake-H"),
    (0xC6, "Arrow Lake"),
    (0xB5, "Arrow Lake-U"),
    (0x8A, "Lakefield"),
    (0x5C, "Goldmont"),
    (0x7A, "Goldmont Plus"),
    (0x5F, "Goldmont-D"),
    (0x96, "Tremont"),
    (0x86, "Tremont-D"),
    (0x9C, "Tremont-L"),
];

/// Family 6, whose dram counts in 15.3 µJ.
const FIXED_DRAM: [(u32, &str); 7] = [
    (0x3F, "Haswell-X"),
    (0x4F, "Broadwell-X"),
    (0x55, "Skylake-X"),
    (0x6A, "Ice Lake-X"),
    (0x6C, "Ice Lake-D"),
    (0x57, "Knights Landing"),
    (0x85, "Knights Mill"),
];

/// Family 6, whose psys counts in whole joules.
const FIXED_PSYS: [(u32, &str); 2] = [(0x8F, "Sapphire Rapids-X"), (0xCF, "Emerald Rapids-X")];

/// Family 6, whose unit is 2ⁿ µJ.
const INVERTED: [(u32, &str); 4] = [
    (0x37, "Silvermont"),
    (0x4A, "Silvermont MID"),
    (0x5A, "Silvermont MID2"),
    (0x4C, "Airmont"),
];

const AMD_FAMILIES: [(&str, u32, &str); 4] = [
    ("AuthenticAMD", 0x17, "Zen, Zen+, Zen 2"),
    ("AuthenticAMD", 0x19, "Zen 3, Zen 4"),
    ("AuthenticAMD", 0x1A, "Zen 5"),
    ("HygonGenuine", 0x18, "Dhyana"),
];

impl Model {
    /// What the table has of this processor; for one that it does not have, what holds for
    /// its vendor. `None` for vendors without such registers.
    pub fn of(cpu: &CpuInfo) -> Option<Self> {
        match cpu.vendor.as_deref()? {
            "GenuineIntel" => Some(intel(cpu)),
            vendor @ ("AuthenticAMD" | "HygonGenuine") => {
                let row = AMD_FAMILIES
                    .iter()
                    .find(|(of, family, _)| *of == vendor && Some(*family) == cpu.family);
                Some(Model {
                    registers: Registers::Amd,
                    source: AMD,
                    ..plain(row.map(|row| row.2))
                })
            }
            _ => None,
        }
    }

    /// The units by the unit register's value.
    pub(crate) fn units(&self, register: u64) -> Units {
        let n = (register >> 8 & 0x1F) as i32;
        let package = match self.unit_form {
            UnitForm::Fraction => Joules(2f64.powi(-n)),
            UnitForm::Microjoules => Joules(2f64.powi(n) / 1e6),
        };
        Units {
            package,
            dram: self.dram_unit.unwrap_or(package),
            psys: self.psys_unit.unwrap_or(package),
        }
    }
}

fn intel(cpu: &CpuInfo) -> Model {
    let of = |rows: &[(u32, &'static str)]| {
        let model = cpu.model_number.filter(|_| cpu.family == Some(6))?;
        let row = rows.iter().find(|(number, _)| *number == model)?;
        Some(row.1)
    };
    if let Some(name) = of(&FIXED_DRAM) {
        Model {
            dram_unit: Some(Joules(15.3e-6)),
            source: HASWELL_SERVER,
            ..plain(Some(name))
        }
    } else if let Some(name) = of(&FIXED_PSYS) {
        Model {
            psys_unit: Some(Joules(1.0)),
            source: SAPPHIRE,
            ..plain(Some(name))
        }
    } else if let Some(name) = of(&INVERTED) {
        Model {
            unit_form: UnitForm::Microjoules,
            source: ATOM,
            ..plain(Some(name))
        }
    } else {
        plain(of(&PLAIN))
    }
}

fn plain(name: Option<&'static str>) -> Model {
    Model {
        name: name.unwrap_or("not in the table: its unit register is believed"),
        registers: Registers::Intel,
        unit_form: UnitForm::Fraction,
        dram_unit: None,
        psys_unit: None,
        known: name.is_some(),
        source: POWERCAP,
    }
}
