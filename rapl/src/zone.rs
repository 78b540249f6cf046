//! Parsers for the names of zones.

use std::fmt;

use crate::Kind;

/// The control type of the MSR and TPMI counters, AMD's too.
const MSR: &str = "intel-rapl";
/// The same packages once more, through the processor's memory-mapped registers.
const MMIO: &str = "intel-rapl-mmio";

/// The name of a zone's directory, `intel-rapl:a:1`: the control type and a hexadecimal
/// number for each level (`powercap_register_zone` in `drivers/powercap/powercap_sys.c`).
///
/// Zones sort after their parents, the MSR ones before the MMIO ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ZoneId {
    control_type: &'static str,
    numbers: Vec<u32>,
}

impl ZoneId {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split(':');
        let control_type = control_type(parts.next()?)?;
        let numbers: Vec<u32> = parts.map(hexadecimal).collect::<Option<_>>()?;
        (!numbers.is_empty()).then_some(Self {
            control_type,
            numbers,
        })
    }

    pub(crate) fn control_type(&self) -> &'static str {
        self.control_type
    }

    pub(crate) fn is_mmio(&self) -> bool {
        self.control_type == MMIO
    }

    /// The zone that this one is part of.
    pub(crate) fn parent(&self) -> Option<Self> {
        let (_, above) = self.numbers.split_last()?;
        (!above.is_empty()).then(|| Self {
            control_type: self.control_type,
            numbers: above.to_vec(),
        })
    }

    /// The last number as it stands in the directory's name.
    pub(crate) fn number(&self) -> String {
        self.numbers
            .last()
            .map_or(String::new(), |number| format!("{number:x}"))
    }
}

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.control_type)?;
        self.numbers
            .iter()
            .try_for_each(|number| write!(f, ":{number:x}"))
    }
}

/// The control type of that name, if it is one of RAPL's.
pub(crate) fn control_type(name: &str) -> Option<&'static str> {
    [MSR, MMIO].into_iter().find(|known| *known == name)
}

/// What a zone's `name` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) kind: Kind,
    pub(crate) package: Option<u32>,
    pub(crate) die: Option<u32>,
}

/// `package-P`, `package-P-die-D`, `core`, `uncore`, `dram`, `psys`, `psys-P`
/// (`rapl_package_add_cpuslocked` and `rapl_domain_names` in `intel_rapl_common.c`).
pub(crate) fn parse_name(name: &str) -> Option<Role> {
    let (kind, package, die) = match name {
        "core" => (Kind::Core, None, None),
        "uncore" => (Kind::Uncore, None, None),
        "dram" => (Kind::Dram, None, None),
        "psys" => (Kind::Psys, None, None),
        _ => {
            if let Some(package) = name.strip_prefix("psys-") {
                (Kind::Psys, Some(decimal(package)?), None)
            } else {
                let rest = name.strip_prefix("package-")?;
                match rest.split_once("-die-") {
                    None => (Kind::Package, Some(decimal(rest)?), None),
                    Some((package, die)) => {
                        (Kind::Die, Some(decimal(package)?), Some(decimal(die)?))
                    }
                }
            }
        }
    };
    Some(Role { kind, package, die })
}

fn decimal(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn hexadecimal(text: &str) -> Option<u32> {
    let number = u32::from_str_radix(text, 16).ok()?;
    (format!("{number:x}") == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hex and multi-digit ids (node_exporter#1808, zeus PR#115).
    #[test]
    fn zone_numbers_are_hexadecimal() {
        let zone = ZoneId::parse("intel-rapl:a:1f").unwrap();
        assert_eq!(zone.numbers, [10, 31]);
        assert_eq!(zone.to_string(), "intel-rapl:a:1f");
        assert_eq!(zone.number(), "1f");
        assert_eq!(zone.parent(), ZoneId::parse("intel-rapl:a"));
        assert_eq!(zone.parent().unwrap().parent(), None);
        assert!(ZoneId::parse("intel-rapl:9") < ZoneId::parse("intel-rapl:10"));
        assert!(ZoneId::parse("intel-rapl:ff") < ZoneId::parse("intel-rapl-mmio:0"));
    }

    #[test]
    fn what_is_no_energy_zone() {
        for name in [
            "",
            ":",
            "intel-rapl",
            "intel-rapl:",
            "intel-rapl:0:",
            "intel-rapl::0",
            "intel-rapl:g",
            "intel-rapl:A",
            "intel-rapl:01",
            "intel-rapl:+1",
            "intel-rapl:123456789",
            "dtpm:0",
            "intel-rapl-mmio",
            "power",
        ] {
            assert_eq!(ZoneId::parse(name), None, "{name:?}");
        }
        assert!(ZoneId::parse("intel-rapl-mmio:0").unwrap().is_mmio());
    }

    #[test]
    fn names_tell_kind_package_and_die() {
        let role = |name| parse_name(name).map(|r| (r.kind, r.package, r.die));
        assert_eq!(role("package-0"), Some((Kind::Package, Some(0), None)));
        assert_eq!(role("package-12"), Some((Kind::Package, Some(12), None)));
        assert_eq!(role("package-1-die-3"), Some((Kind::Die, Some(1), Some(3))));
        assert_eq!(role("core"), Some((Kind::Core, None, None)));
        assert_eq!(role("uncore"), Some((Kind::Uncore, None, None)));
        assert_eq!(role("dram"), Some((Kind::Dram, None, None)));
        assert_eq!(role("psys"), Some((Kind::Psys, None, None)));
        assert_eq!(role("psys-1"), Some((Kind::Psys, Some(1), None)));
        for name in [
            "",
            "package",
            "package-",
            "package-x",
            "package-1-die-",
            "package-01",
            "package--1",
            "Core",
            "gpu",
            "psys-",
            "package-1-tile-0",
        ] {
            assert_eq!(role(name), None, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_answered(name in "[a-z:0-9-]{0,30}") {
            let _ = parse_name(&name);
            if let Some(zone) = ZoneId::parse(&name) {
                prop_assert_eq!(zone.to_string(), name);
            }
        }
    }
}
