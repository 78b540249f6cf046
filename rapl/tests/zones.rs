//! Which zones are found, what each stands for, and which the total is made of.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::{RANGE_61, Tree};
use hostfs::HostFs;
use rapl::{Backend, Domain, Fault, Joules, Kind, Meter};

fn ids(domains: &[Domain]) -> Vec<&str> {
    domains.iter().map(|domain| domain.id.as_str()).collect()
}

fn counted(domains: &[Domain]) -> Vec<&str> {
    domains
        .iter()
        .filter(|domain| domain.in_total)
        .map(|domain| domain.id.as_str())
        .collect()
}

/// Zones with equal names merged (node_exporter#2147, siomon#70): both packages have a core
/// and a dram zone. Zone number taken for the socket (pyJoules#14): `intel-rapl:0` is
/// package 1 here.
#[test]
fn a_two_socket_server() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-1", 10),
        ("intel-rapl:0:0", "core", 11),
        ("intel-rapl:0:1", "dram", 12),
        ("intel-rapl:1", "package-0", 20),
        ("intel-rapl:1:0", "core", 21),
        ("intel-rapl:1:1", "dram", 22),
    ]);
    let mut meter = tree.meter();
    assert_eq!(
        ids(meter.domains()),
        [
            "intel-rapl/package-1",
            "intel-rapl/package-1/core",
            "intel-rapl/package-1/dram",
            "intel-rapl/package-0",
            "intel-rapl/package-0/core",
            "intel-rapl/package-0/dram",
        ]
    );
    let reading = meter.read();
    let dram = reading.get("intel-rapl/package-0/dram").unwrap();
    assert_eq!(dram.count, Ok(22));
    let domain = &meter.domains()[5];
    assert_eq!(
        (domain.kind, domain.package, domain.die),
        (Kind::Dram, Some(0), None)
    );
    assert_eq!(domain.parent, None, "dram is beside its package");
    let core = &meter.domains()[4];
    assert_eq!(core.parent.as_deref(), Some("intel-rapl/package-0"));
    assert_eq!(
        (domain.backend, domain.unit),
        (Backend::Powercap, Joules(1e-6))
    );
    assert_eq!(domain.resolution, Some(Joules(61_035e-9)));
    assert_eq!(
        domain.path.to_str(),
        Some("sys/class/powercap/intel-rapl:1:1")
    );
    assert_eq!(domain.max_energy_range_uj, Some(RANGE_61));
    assert_eq!(domain.modulus.unit_nj(), Some(61_035));
    assert!(meter.skipped().is_empty());
}

/// A package and its children added up (powerstat#4, codecarbon PR#950).
#[test]
fn the_total_is_packages_and_dram_once() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl:0:0", "core", 0),
        ("intel-rapl:0:1", "uncore", 0),
        ("intel-rapl:0:2", "dram", 0),
        ("intel-rapl:1", "psys", 0),
    ]);
    let mut meter = tree.meter();
    assert_eq!(
        counted(meter.domains()),
        ["intel-rapl/package-0", "intel-rapl/package-0/dram"]
    );
    let parents: Vec<Option<&str>> = meter
        .domains()
        .iter()
        .map(|d| d.parent.as_deref())
        .collect();
    let (package, psys) = (Some("intel-rapl/package-0"), Some("intel-rapl/psys"));
    assert_eq!(parents, [psys, package, package, psys, None]);
    let energy = tree.measure(&mut meter, |tree| {
        tree.set("intel-rapl:0", 5_000_000);
        tree.set("intel-rapl:0:0", 3_000_000);
        tree.set("intel-rapl:0:1", 1_000_000);
        tree.set("intel-rapl:0:2", 2_000_000);
        tree.set("intel-rapl:1", 9_000_000);
    });
    assert_eq!(energy.total().unwrap().0, 7.0);
}

/// MSR and MMIO zones added up (powerstat#4, codecarbon PR#950).
#[test]
fn an_mmio_twin_is_not_counted_again() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl:0:0", "dram", 0),
        ("intel-rapl-mmio:0", "package-0", 0),
        ("intel-rapl-mmio:0:0", "dram", 0),
    ]);
    let meter = tree.meter();
    assert_eq!(
        ids(meter.domains()),
        [
            "intel-rapl/package-0",
            "intel-rapl/package-0/dram",
            "intel-rapl-mmio/package-0",
            "intel-rapl-mmio/package-0/dram",
        ]
    );
    assert_eq!(
        counted(meter.domains()),
        ["intel-rapl/package-0", "intel-rapl/package-0/dram"]
    );
}

#[test]
fn an_mmio_zone_stands_for_a_package_without_an_msr_zone() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl-mmio:0", "package-0", 0),
        ("intel-rapl-mmio:1", "package-1", 0),
    ]);
    assert_eq!(
        counted(tree.meter().domains()),
        ["intel-rapl/package-0", "intel-rapl-mmio/package-1"]
    );
    // Nor is the package lost where only its MMIO zone can be read.
    tree.write("intel-rapl:0", "none\n");
    let meter = tree.meter();
    assert_eq!(
        counted(meter.domains()),
        ["intel-rapl-mmio/package-0", "intel-rapl-mmio/package-1"]
    );
    assert!(!meter.skipped()[0].in_total);
}

/// Hex and multi-digit ids (node_exporter#1808, zeus PR#115).
#[test]
fn more_than_ten_zones() {
    let zones: Vec<(String, String)> = (0..18u32)
        .map(|n| (format!("intel-rapl:{n:x}"), format!("package-{n}")))
        .collect();
    let mut zones: Vec<(&str, &str, u64)> = zones
        .iter()
        .map(|(zone, name)| (zone.as_str(), name.as_str(), 0))
        .collect();
    zones.push(("intel-rapl:a:1", "dram", 0));
    let tree = Tree::with(&zones);
    let meter = tree.meter();
    let dram = &meter.domains()[11];
    assert_eq!((dram.kind, dram.package), (Kind::Dram, Some(10)));
    assert_eq!(dram.id, "intel-rapl/package-10/dram");
    assert_eq!(meter.domains().last().unwrap().id, "intel-rapl/package-17");
    assert_eq!(counted(meter.domains()).len(), 19);
}

#[test]
fn dies_count_as_packages() {
    let zones = [
        ("intel-rapl:0", "package-0-die-0", 0),
        ("intel-rapl:0:0", "dram", 0),
        ("intel-rapl:1", "package-0-die-1", 0),
        ("intel-rapl:1:0", "dram", 0),
    ];
    let meter = Tree::with(&zones).meter();
    let die = &meter.domains()[2];
    assert_eq!(
        (die.kind, die.package, die.die),
        (Kind::Die, Some(0), Some(1))
    );
    assert_eq!(counted(meter.domains()), ids(meter.domains()));
    assert_eq!(meter.domains()[3].id, "intel-rapl/package-0-die-1/dram");
}

/// Dies that mirror one counter (codecarbon#1274): on AMD the first stands for its package.
#[test]
fn dies_of_amd_mirror_their_package() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0-die-0", 7),
        ("intel-rapl:1", "package-0-die-1", 7),
        ("intel-rapl:2", "package-1-die-2", 9),
    ]);
    let cpuinfo = "vendor_id\t: AuthenticAMD\ncpu family\t: 23\n";
    fs::write(tree.root().join("proc/cpuinfo"), cpuinfo).unwrap();
    assert_eq!(
        counted(tree.meter().domains()),
        ["intel-rapl/package-0-die-0", "intel-rapl/package-1-die-2"]
    );
}

/// A package without children (scaphandre#131).
#[test]
fn a_package_alone() {
    let meter = Tree::with(&[("intel-rapl:0", "package-0", 1)]).meter();
    assert_eq!(counted(meter.domains()), ["intel-rapl/package-0"]);
}

#[test]
fn siblings_of_one_name_stay_apart() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl:1", "psys", 4),
        ("intel-rapl:a", "psys", 5),
    ]);
    let mut meter = tree.meter();
    assert_eq!(
        ids(meter.domains()),
        [
            "intel-rapl/package-0",
            "intel-rapl/psys:1",
            "intel-rapl/psys:a"
        ]
    );
    assert_eq!(meter.read().get("intel-rapl/psys:a").unwrap().count, Ok(5));
}

#[test]
fn zones_are_found_nested_too() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:0:0", "core", 2),
    ]);
    let class = tree.root().join("sys/class/powercap");
    for link in ["intel-rapl:0", "intel-rapl:0:0"] {
        fs::remove_file(class.join(link)).unwrap();
    }
    let meter = tree.meter();
    assert_eq!(
        ids(meter.domains()),
        ["intel-rapl/package-0", "intel-rapl/package-0/core"]
    );
    assert_eq!(
        meter.domains()[1].path.to_str(),
        Some("sys/class/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0")
    );
}

#[test]
fn links_in_circles_and_other_control_types_are_passed_by() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 1)]);
    let zone = tree.file("intel-rapl:0", "");
    symlink("..", zone.join("intel-rapl:0:0")).unwrap();
    symlink(".", zone.join("subsystem")).unwrap();
    let dtpm = tree.root().join("sys/class/powercap/dtpm:0");
    fs::create_dir(&dtpm).unwrap();
    fs::write(dtpm.join("name"), "package-0\n").unwrap();
    fs::write(dtpm.join("energy_uj"), "5\n").unwrap();
    let meter = tree.meter();
    assert_eq!(ids(meter.domains()), ["intel-rapl/package-0"]);
    assert_eq!(
        meter.skipped()[0].why,
        Fault::Gone,
        "the circle has no name"
    );
}

/// A failed read taken as 0 (CodeCarbon): what can't be read is skipped with the reason,
/// and the total says that it lacks it.
#[test]
fn some_zones_can_be_read_and_others_not() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:0:0", "dram", 1),
        ("intel-rapl:1", "package-1", 1),
        ("intel-rapl:2", "gpu", 1),
        ("intel-rapl:2:0", "core", 1),
    ]);
    tree.write("intel-rapl:0:0", "");
    fs::remove_file(tree.file("intel-rapl:1", "energy_uj")).unwrap();
    let mut meter = tree.meter();
    assert_eq!(
        ids(meter.domains()),
        ["intel-rapl/package-0", "intel-rapl/intel-rapl:2/core"]
    );
    let skipped: Vec<(&str, bool, String)> = meter
        .skipped()
        .iter()
        .map(|zone| (zone.id.as_str(), zone.in_total, zone.why.to_string()))
        .collect();
    assert_eq!(
        skipped,
        [
            (
                "intel-rapl/package-0/dram",
                true,
                "expected a number of microjoules, found \"\"".into()
            ),
            ("intel-rapl/package-1", true, "not there".into()),
            (
                "intel-rapl/intel-rapl:2",
                false,
                "unknown kind of zone \"gpu\"".into()
            ),
        ]
    );
    let energy = tree.measure(&mut meter, |tree| tree.set("intel-rapl:0", 2_000_001));
    let incomplete = energy.total().unwrap_err();
    assert_eq!(incomplete.known.0, 2.0);
    assert_eq!(
        incomplete.to_string(),
        "no total without intel-rapl/package-0/dram: expected a number of microjoules, \
         found \"\"; intel-rapl/package-1: the zone is not there (any more)"
    );
}

#[test]
fn a_range_that_is_no_number_is_no_range() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 1)]);
    fs::write(tree.file("intel-rapl:0", "max_energy_range_uj"), "much\n").unwrap();
    assert_eq!(tree.meter().domains()[0].max_energy_range_uj, None);
}

/// Where the machine has counters they are read; elsewhere the reason is given. The one
/// case or the other holds on every machine.
#[test]
fn this_machine() {
    match Meter::open(&HostFs::live()) {
        Ok(mut meter) => {
            let reading = meter.read();
            assert_eq!(reading.iter().count(), meter.domains().len());
            assert!(reading.iter().any(|(_, value)| value.count.is_ok()));
        }
        Err(why) => println!("nothing to read here: {why}"),
    }
}
