//! The table of processors, each row with what its unit register makes of it.
#![allow(clippy::unwrap_used)]

mod common;

use common::Tree;
use hostfs::CpuInfo;
use rapl::{Joules, Kind, Model, Registers};

/// Energy unit 14, 16 and (Silvermont) 5.
const U14: u32 = 0x000A_0E03;
const U16: u32 = 0x000A_1003;
const U5: u32 = 0x0000_0505;

const J14: f64 = 61.035_156_25e-6;
const J16: f64 = 15.258_789_062_5e-6;
const DRAM: f64 = 15.3e-6;

/// Model, unit register, and the unit of package, dram and psys in joules.
const INTEL: [(u32, u32, f64, f64, f64); 57] = [
    (0x2A, U16, J16, J16, J16),
    (0x2D, U16, J16, J16, J16),
    (0x3A, U16, J16, J16, J16),
    (0x3E, U16, J16, J16, J16),
    (0x3C, U14, J14, J14, J14),
    (0x45, U14, J14, J14, J14),
    (0x46, U14, J14, J14, J14),
    (0x3D, U14, J14, J14, J14),
    (0x47, U14, J14, J14, J14),
    (0x56, U14, J14, J14, J14),
    (0x4E, U14, J14, J14, J14),
    (0x5E, U14, J14, J14, J14),
    (0x8E, U14, J14, J14, J14),
    (0x9E, U14, J14, J14, J14),
    (0x66, U14, J14, J14, J14),
    (0x7E, U14, J14, J14, J14),
    (0x7D, U14, J14, J14, J14),
    (0x9D, U14, J14, J14, J14),
    (0xA6, U14, J14, J14, J14),
    (0xA5, U14, J14, J14, J14),
    (0x8C, U14, J14, J14, J14),
    (0x8D, U14, J14, J14, J14),
    (0xA7, U14, J14, J14, J14),
    (0x97, U14, J14, J14, J14),
    (0x9A, U14, J14, J14, J14),
    (0xBE, U14, J14, J14, J14),
    (0xB7, U14, J14, J14, J14),
    (0xBA, U14, J14, J14, J14),
    (0xBF, U14, J14, J14, J14),
    (0xD7, U14, J14, J14, J14),
    (0xAC, U14, J14, J14, J14),
    (0xAA, U14, J14, J14, J14),
    (0xBD, U14, J14, J14, J14),
    (0xCC, U14, J14, J14, J14),
    (0xC5, U14, J14, J14, J14),
    (0xC6, U14, J14, J14, J14),
    (0xB5, U14, J14, J14, J14),
    (0x8A, U14, J14, J14, J14),
    (0x5C, U14, J14, J14, J14),
    (0x7A, U14, J14, J14, J14),
    (0x5F, U14, J14, J14, J14),
    (0x96, U14, J14, J14, J14),
    (0x86, U14, J14, J14, J14),
    (0x9C, U14, J14, J14, J14),
    // Dram in 15.3 µJ.
    (0x3F, U14, J14, DRAM, J14),
    (0x4F, U14, J14, DRAM, J14),
    (0x55, U14, J14, DRAM, J14),
    (0x6A, U14, J14, DRAM, J14),
    (0x6C, U14, J14, DRAM, J14),
    (0x57, U14, J14, DRAM, J14),
    (0x85, U14, J14, DRAM, J14),
    // Psys in 1 J, dram by the unit register.
    (0x8F, U14, J14, J14, 1.0),
    (0xCF, U14, J14, J14, 1.0),
    // 2^5 µJ.
    (0x37, U5, 32e-6, 32e-6, 32e-6),
    (0x4A, U5, 32e-6, 32e-6, 32e-6),
    (0x5A, U5, 32e-6, 32e-6, 32e-6),
    (0x4C, U5, 32e-6, 32e-6, 32e-6),
];

fn close(a: Joules, b: f64) -> bool {
    (a.0 - b).abs() <= b * 1e-12
}

/// DRAM unit by model (HPCPerfStats#9, likwid PR#643).
#[test]
fn every_row_of_intel() {
    for (model, register, package, dram, psys) in INTEL {
        let tree = Tree::new();
        tree.processor("GenuineIntel", 6, model);
        tree.cpu(0, 0, 0, 0);
        tree.register(0, 0x606, register);
        for register in [0x611, 0x619, 0x64D] {
            tree.register(0, register, 1);
        }
        let cpu = CpuInfo::read(&tree.fs());
        let row = Model::of(&cpu).unwrap();
        assert!(row.known && !row.source.is_empty(), "{model:#x}");
        assert_eq!(row.registers, Registers::Intel);
        let meter = tree.meter();
        for (kind, unit) in [
            (Kind::Package, package),
            (Kind::Dram, dram),
            (Kind::Psys, psys),
        ] {
            let domain = meter.domains().iter().find(|d| d.kind == kind).unwrap();
            assert!(
                close(domain.unit, unit),
                "{model:#x} {kind}: {}",
                domain.unit.0
            );
            assert!(!domain.unit_assumed);
        }
    }
}

#[test]
fn every_row_of_amd() {
    for (vendor, family) in [
        ("AuthenticAMD", 0x17),
        ("AuthenticAMD", 0x19),
        ("AuthenticAMD", 0x1A),
        ("HygonGenuine", 0x18),
    ] {
        let tree = Tree::new();
        tree.processor(vendor, family, 1);
        tree.cpu(0, 0, 0, 0);
        tree.register(0, 0xC001_0299, U16);
        tree.register(0, 0xC001_029D, 0);
        let cpu = CpuInfo::read(&tree.fs());
        let row = Model::of(&cpu).unwrap();
        assert!(row.known, "{vendor} {family:#x}");
        assert_eq!(row.registers, Registers::Amd);
        // What is in the file after the 10 is 0A: package and core show it.
        for domain in tree.meter().domains() {
            assert!(
                close(domain.unit, J16),
                "{vendor} {family:#x}: {}",
                domain.unit.0
            );
        }
    }
}

#[test]
fn what_is_in_no_row() {
    let tree = Tree::new();
    let model = |vendor, family, model| {
        tree.processor(vendor, family, model);
        Model::of(&CpuInfo::read(&tree.fs()))
    };
    // Another family's model of the same number, and server parts with TPMI.
    for (family, number) in [(15, 0x3F), (6, 0xAD), (19, 1)] {
        let unknown = model("GenuineIntel", family, number).unwrap();
        assert!(!unknown.known, "{family} {number:#x}");
        assert_eq!((unknown.dram_unit, unknown.psys_unit), (None, None));
        assert!(unknown.name.contains("its unit register is believed"));
    }
    assert!(!model("AuthenticAMD", 0x15, 2).unwrap().known);
    assert_eq!(model("CentaurHauls", 7, 1), None);
}
