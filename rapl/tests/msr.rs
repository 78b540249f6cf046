//! Energy out of registers: which there are, in which unit they count, and what goes wrong.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::{self, OpenOptions};
use std::path::Path;

use common::Tree;
use rapl::{Backend, Error, Fault, Joules, Kind, Meter, Options, Outcome};

const UNITS: u32 = 0x606;
const PACKAGE: u32 = 0x611;
const DRAM: u32 = 0x619;
const CORE: u32 = 0x639;
const UNCORE: u32 = 0x641;
const PSYS: u32 = 0x64D;
/// Energy unit 14, as most of Intel's processors say.
const UNITS_14: u32 = 0x000A_0E03;

fn intel(model: u32) -> Tree {
    let tree = Tree::new();
    fs::remove_dir(tree.root().join("sys/class/powercap")).unwrap();
    tree.processor("GenuineIntel", 6, model);
    tree
}

fn package_of(tree: &Tree, cpu: u32, units: u32) {
    tree.register(cpu, UNITS, units);
    for register in [PACKAGE, DRAM, CORE] {
        tree.register(cpu, register, 1000);
    }
    tree.register(cpu, PSYS, 0);
}

fn joules(energy: &rapl::Energy, id: &str) -> f64 {
    energy.get(id).unwrap().outcome.joules().unwrap().0
}

#[test]
fn a_server_with_two_packages() {
    // Ice Lake-X, whose dram counts in 15.3 µJ.
    let tree = intel(0x6A);
    for cpu in 0..4 {
        tree.cpu(cpu, cpu / 2, 0, cpu % 2);
    }
    for cpu in [0, 2] {
        package_of(&tree, cpu, UNITS_14);
    }
    let mut meter = tree.meter();
    let ids: Vec<&str> = meter.domains().iter().map(|d| d.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "msr/package-0",
            "msr/package-0/core",
            "msr/package-0/dram",
            "msr/package-1",
            "msr/package-1/core",
            "msr/package-1/dram",
        ],
        "neither uncore nor psys shows anything"
    );
    let core = &meter.domains()[1];
    assert_eq!(core.parent.as_deref(), Some("msr/package-0"));
    assert_eq!(
        (core.backend, core.unit),
        (Backend::Msr, Joules(1.0 / 16_384.0))
    );
    assert_eq!(meter.domains()[3].path, Path::new("dev/cpu/2/msr"));
    assert!(!core.unit_assumed && meter.skipped().is_empty());

    let before = meter.read();
    tree.register(0, PACKAGE, 1000 + 16_384 * 3);
    tree.register(0, CORE, 1000 + 16_384);
    tree.register(0, DRAM, 1000 + 1_000_000);
    tree.register(2, PACKAGE, 1000 + 16_384 * 2);
    let energy = meter.read().since(&before);
    assert_eq!(joules(&energy, "msr/package-0"), 3.0);
    assert_eq!(joules(&energy, "msr/package-0/core"), 1.0);
    assert!((joules(&energy, "msr/package-0/dram") - 15.3).abs() < 1e-9);
    // Packages and dram, each once.
    assert!((energy.total().unwrap().0 - 20.3).abs() < 1e-9);
}

#[test]
fn a_wrap_and_the_reserved_half() {
    let tree = intel(0x9E);
    tree.cpu(0, 0, 0, 0);
    tree.register(0, UNITS, UNITS_14);
    tree.register(0, PACKAGE, u32::MAX);
    // Reserved bits, that are no part of the count.
    tree.register(0, PACKAGE + 4, 0xABCD);
    let mut meter = tree.meter();
    let before = meter.read();
    assert_eq!(
        before.get("msr/package-0").unwrap().count,
        Ok(u32::MAX.into())
    );
    tree.register(0, PACKAGE, 16_383);
    let energy = meter.read().since(&before);
    assert_eq!(joules(&energy, "msr/package-0"), 1.0);
}

#[test]
fn psys_is_around_and_graphics_within() {
    let tree = intel(0x8E);
    tree.cpu(0, 0, 0, 0);
    tree.register(0, UNITS, UNITS_14);
    for register in [PACKAGE, UNCORE, PSYS] {
        tree.register(0, register, 5);
    }
    let meter = tree.meter();
    let shape: Vec<_> = meter
        .domains()
        .iter()
        .map(|d| (d.kind, d.parent.as_deref(), d.in_total))
        .collect();
    assert_eq!(
        shape,
        [
            (Kind::Package, Some("msr/psys"), true),
            (Kind::Uncore, Some("msr/package-0"), false),
            (Kind::Psys, None, false),
        ]
    );
}

#[test]
fn dies_have_counters_of_their_own() {
    let tree = intel(0x55);
    for cpu in 0..2 {
        tree.cpu(cpu, 0, cpu, 0);
        tree.register(cpu, UNITS, UNITS_14);
        tree.register(cpu, PACKAGE, 7);
    }
    let meter = tree.meter();
    let ids: Vec<_> = meter
        .domains()
        .iter()
        .map(|d| (d.id.as_str(), d.kind))
        .collect();
    assert_eq!(
        ids,
        [
            ("msr/package-0-die-0", Kind::Die),
            ("msr/package-0-die-1", Kind::Die)
        ]
    );
}

/// AMD cores read from one thread only (likwid PR#402): each core has its own register.
///
/// In a file the registers C0010299 to C001029B overlap, since they are a byte apart: bytes
/// 00 10 .. are unit 16, and what follows the 10 belongs to core and package as well.
#[test]
fn amd_counts_each_core_and_the_package() {
    let tree = intel(0);
    tree.processor("AuthenticAMD", 0x19, 0x61);
    tree.cpu(0, 0, 0, 0);
    tree.cpu(1, 0, 0, 0);
    tree.cpu(2, 0, 1, 1);
    let set = |cpu, high: u8| {
        // Units 0x..1000, core 0x<high>000010, package 0x00<high>0000.
        tree.register(cpu, 0xC001_0299, 0x0000_1000);
        tree.register(cpu, 0xC001_029D, high.into());
    };
    set(0, 1);
    set(2, 1);
    let mut meter = tree.meter();
    let ids: Vec<&str> = meter.domains().iter().map(|d| d.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "msr/package-0",
            "msr/package-0/core-0",
            "msr/package-0/core-1"
        ],
        "dies mirror the package, threads their core"
    );
    assert_eq!(meter.domains()[0].unit, Joules(1.0 / 65_536.0));
    assert_eq!(meter.domains()[2].core, Some(1));
    let before = meter.read();
    set(0, 3);
    let energy = meter.read().since(&before);
    // 2 << 16 counts of 2^-16 J; a core's value is 2 << 24 counts, 512 J, in no time.
    assert_eq!(joules(&energy, "msr/package-0"), 2.0);
    assert_eq!(joules(&energy, "msr/package-0/core-0"), 512.0);
    assert_eq!(joules(&energy, "msr/package-0/core-1"), 0.0);
    assert_eq!(energy.total().unwrap(), Joules(2.0), "cores are within");
}

#[test]
fn a_processor_that_is_in_no_table_is_believed_and_that_is_said() {
    let tree = intel(0xFE);
    tree.cpu(0, 0, 0, 0);
    tree.register(0, UNITS, 0x000A_1003);
    tree.register(0, PACKAGE, 5);
    let domain = &tree.meter().domains()[0].clone();
    assert!(domain.unit_assumed);
    assert_eq!(domain.unit, Joules(1.0 / 65_536.0));
}

#[test]
fn a_register_file_that_ends_early() {
    let tree = intel(0x9E);
    tree.cpu(0, 0, 0, 0);
    tree.register(0, UNITS, UNITS_14);
    tree.register(0, PACKAGE, 5);
    tree.register(0, CORE, 5);
    let mut meter = tree.meter();
    let before = meter.read();
    let file = tree.root().join("dev/cpu/0/msr");
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.set_len(u64::from(CORE) + 4).unwrap();
    let energy = meter.read().since(&before);
    assert_eq!(
        energy.get("msr/package-0/core").unwrap().outcome,
        Outcome::Unreadable(Fault::Short {
            expected: 8,
            got: 4
        })
    );
    assert_eq!(joules(&energy, "msr/package-0"), 0.0, "the other goes on");
    // From the beginning.
    file.set_len(u64::from(UNITS) + 4).unwrap();
    let why = Meter::open(&tree.fs()).unwrap_err();
    assert!(
        why.to_string().contains("msr/package-0: read 4 bytes of 8"),
        "{why}"
    );
}

#[test]
fn powercap_is_better_and_either_can_be_forced_or_both_compared() {
    let tree = intel(0x9E);
    tree.cpu(0, 0, 0, 0);
    tree.register(0, UNITS, UNITS_14);
    tree.register(0, PACKAGE, 5);
    tree.register(0, CORE, 5);
    fs::create_dir(tree.root().join("sys/class/powercap")).unwrap();
    tree.zone("intel-rapl:0", "package-0", 305, Some(common::RANGE_61));
    let ids = |options| -> Vec<String> {
        let meter = Meter::open_with(&tree.fs(), options).unwrap();
        meter.domains().iter().map(|d| d.id.clone()).collect()
    };
    // The zones have no core, the registers do.
    assert_eq!(
        ids(Options::default()),
        ["intel-rapl/package-0", "msr/package-0/core"]
    );
    let core = &tree.meter().domains()[1].clone();
    assert_eq!(core.parent.as_deref(), Some("intel-rapl/package-0"));
    assert_eq!(
        ids(Options::default().backend(Backend::Msr)),
        ["msr/package-0", "msr/package-0/core"]
    );
    assert_eq!(
        ids(Options::default().backend(Backend::Powercap)),
        ["intel-rapl/package-0"]
    );
    // Where the zone can't be read, its register can.
    tree.write("intel-rapl:0", "");
    assert_eq!(
        ids(Options::default()),
        ["msr/package-0", "msr/package-0/core"]
    );
    tree.write("intel-rapl:0", &common::number(305));

    let mut check = rapl::CrossCheck::open(
        &tree.fs(),
        &Options::default(),
        Backend::Powercap,
        Backend::Msr,
        0.5,
    )
    .unwrap();
    let mut compare = |zone_uj: u64, register: u32| {
        let (_, compared) = check.measure(|| {
            // Long enough that a millisecond's watts are no excuse.
            std::thread::sleep(std::time::Duration::from_secs(1));
            tree.set("intel-rapl:0", zone_uj);
            tree.register(0, PACKAGE, register);
        });
        assert_eq!(compared.len(), 1, "core is in one of them only");
        compared[0].clone()
    };
    let same = compare(305 + 10_000_000, 5 + 163_840);
    assert_eq!(same.agrees, Some(true), "{same}");
    let other = compare(305 + 20_000_000, 5 + 163_840 + 150_000);
    assert_eq!(other.agrees, Some(false), "{other}");
    // 9.155 J instead of 10 J.
    assert!(
        (other.difference_percent.unwrap() + 8.447).abs() < 0.001,
        "{other}"
    );
    assert!(
        other.to_string().ends_with("-8.45 %, they disagree"),
        "{other}"
    );
    let wrong = rapl::CrossCheck::open(
        &tree.fs(),
        &Options::default(),
        Backend::Msr,
        Backend::Msr,
        -1.0,
    );
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "tolerance -1 %: must be 0 or more"
    );
}

#[test]
fn some_domains_alone() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl:0:0", "core", 0),
        ("intel-rapl:0:1", "dram", 0),
    ]);
    let open = |names: &[&str]| {
        let options = Options::default().domains(names.iter().copied());
        Meter::open_with(&tree.fs(), options)
    };
    let meter = open(&["core", "intel-rapl/package-0/dram"]).unwrap();
    let ids: Vec<&str> = meter.domains().iter().map(|d| d.id.as_str()).collect();
    assert_eq!(
        ids,
        ["intel-rapl/package-0/core", "intel-rapl/package-0/dram"]
    );
    assert_eq!(
        open(&["gpu"]).unwrap_err().to_string(),
        "no energy counter \"gpu\": there are intel-rapl/package-0, \
         intel-rapl/package-0/core, intel-rapl/package-0/dram"
    );
}

#[test]
fn a_backend_that_is_not_there_says_what_would_help() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 0)]);
    let why = |backend| {
        let options = Options::default().backend(backend);
        Meter::open_with(&tree.fs(), options).unwrap_err()
    };
    let perf = why(Backend::Perf).to_string();
    assert!(
        perf.contains("event_source/devices/power: not there: "),
        "{perf}"
    );
    let msr = why(Backend::Msr).to_string();
    assert!(msr.contains("modprobe msr"), "{msr}");
    // A captured PMU can't be opened.
    let pmu = tree.root().join("sys/bus/event_source/devices/power");
    fs::create_dir_all(&pmu).unwrap();
    fs::write(pmu.join("type"), "21\n").unwrap();
    fs::write(pmu.join("cpumask"), "0\n").unwrap();
    assert!(matches!(why(Backend::Perf), Error::OtherMachine { .. }));
    assert_eq!(tree.meter().domains()[0].backend, Backend::Powercap);
}
