//! Why there is nothing to read: each case with its remedy.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use common::Tree;
use rapl::{Error, Fault, Meter};

const GUEST: &str = "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n";
const HOST: &str = "vendor_id\t: GenuineIntel\nflags\t\t: fpu\n";

fn why(tree: &Tree) -> Error {
    Meter::open(&tree.fs()).unwrap_err()
}

#[test]
fn no_powercap_in_a_virtual_machine_or_in_the_kernel() {
    let guest = why(&Tree::bare(GUEST));
    assert!(
        matches!(
            &guest,
            Error::NoPowercap {
                virtual_machine: true,
                ..
            }
        ),
        "{guest}"
    );
    assert!(
        guest
            .to_string()
            .contains("sys/class/powercap: not there: this is a virtual machine")
    );
    let host = why(&Tree::bare(HOST));
    assert!(host.to_string().contains("CONFIG_POWERCAP"), "{host}");
}

#[test]
fn powercap_without_zones() {
    let tree = Tree::new();
    fs::create_dir(tree.root().join("sys/class/powercap/dtpm")).unwrap();
    let host = why(&tree);
    assert!(
        matches!(
            &host,
            Error::NoZones {
                virtual_machine: false,
                ..
            }
        ),
        "{host}"
    );
    assert!(host.to_string().contains("modprobe intel_rapl_msr"));
    fs::write(tree.root().join("proc/cpuinfo"), GUEST).unwrap();
    assert!(why(&tree).to_string().contains("virtual machine"));
}

/// Masked or dangling powercap in containers (scaphandre#373, podman PR#20510).
#[test]
fn powercap_masked_by_a_container() {
    let tree = Tree::new();
    let class = tree.root().join("sys/class/powercap");
    let devices = "../../devices/virtual/powercap";
    symlink(format!("{devices}/intel-rapl"), class.join("intel-rapl")).unwrap();
    let control_type_alone = why(&tree);
    assert!(matches!(control_type_alone, Error::Masked { .. }));
    symlink(
        format!("{devices}/intel-rapl/intel-rapl:0"),
        class.join("intel-rapl:0"),
    )
    .unwrap();
    let masked = why(&tree);
    assert!(matches!(masked, Error::Masked { .. }), "{masked}");
    assert!(masked.to_string().contains("lead nowhere"), "{masked}");
}

/// A root-only file crashes the tool (powercap#7).
#[test]
fn counters_for_root_alone() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:1", "package-1", 1),
    ]);
    let refuse = |zone| {
        let counter = tree.file(zone, "energy_uj");
        fs::set_permissions(&counter, Permissions::from_mode(0o000)).unwrap();
        File::open(counter).is_err()
    };
    if !refuse("intel-rapl:0") {
        println!("permitted to read everything: only the readable case can be tested");
        assert_eq!(tree.meter().domains().len(), 2);
        return;
    }
    let meter = tree.meter();
    assert_eq!(meter.domains()[0].id, "intel-rapl/package-1");
    assert_eq!(meter.skipped()[0].why, Fault::NotPermitted);
    refuse("intel-rapl:1");
    let refused = why(&tree);
    let message = refused.to_string();
    assert!(
        message.contains("intel-rapl:0/energy_uj: not permitted"),
        "{message}"
    );
    assert!(message.contains("run as root or with CAP_DAC_READ_SEARCH"));
    let Error::NotPermitted { skipped, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(skipped.len(), 2);
}

#[test]
fn several_reasons_are_listed() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:1", "package-1", 1),
    ]);
    tree.write("intel-rapl:0", "-5\n");
    fs::remove_file(tree.file("intel-rapl:1", "energy_uj")).unwrap();
    fs::create_dir(tree.file("intel-rapl:1", "energy_uj")).unwrap();
    let message = why(&tree).to_string();
    assert!(
        message.starts_with(
            "no energy zone can be read: intel-rapl/package-0: expected a number of \
             microjoules, found \"-5\\n\"; intel-rapl/package-1: "
        ),
        "{message}"
    );
    assert!(
        message.ends_with("Is a directory (os error 21)"),
        "{message}"
    );
}

#[test]
fn a_power_bound_that_is_none() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 1)]);
    let options = rapl::Options::default().power_bound(rapl::Watts(0.0));
    assert_eq!(
        Meter::open_with(&tree.fs(), options)
            .unwrap_err()
            .to_string(),
        "power bound 0.000 W: must be a finite power above 0 W"
    );
}
