//! What would help, by machine.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use common::Tree;
use hostfs::HostFs;
use rapl::{Backend, BackendState, Meter, diagnose};

/// The backend's line.
fn line(tree: &Tree, backend: Backend) -> String {
    let diagnosis = diagnose(&tree.fs());
    let of = diagnosis.backends.iter().find(|b| b.backend == backend);
    of.unwrap().to_string()
}

fn bare(vendor: &str, family: u32, model: u32) -> Tree {
    let tree = Tree::bare("");
    tree.processor(vendor, family, model);
    tree
}

fn modules(tree: &Tree, loadable: &str, built_in: &str) {
    let dir = tree.root().join("lib/modules/6.12.0");
    fs::create_dir_all(&dir).unwrap();
    fs::create_dir_all(tree.root().join("proc/sys/kernel")).unwrap();
    fs::write(tree.root().join("proc/sys/kernel/osrelease"), "6.12.0\n").unwrap();
    fs::write(dir.join("modules.dep"), loadable).unwrap();
    fs::write(dir.join("modules.builtin"), built_in).unwrap();
}

#[test]
fn modules_tell_what_can_be_loaded() {
    let tree = bare("GenuineIntel", 6, 0x9E);
    assert_eq!(
        line(&tree, Backend::Msr).rsplit_once(": ").unwrap().1,
        "load the module (modprobe msr), or use a kernel with CONFIG_X86_MSR"
    );
    modules(
        &tree,
        "kernel/drivers/powercap/intel_rapl_msr.ko.xz: kernel/drivers/powercap/intel_rapl_common.ko.xz\n\
         kernel/arch/x86/kernel/msr.ko:\n",
        "kernel/arch/x86/events/rapl.ko\n",
    );
    assert!(line(&tree, Backend::Powercap).ends_with("modprobe intel_rapl_msr"));
    assert!(line(&tree, Backend::Msr).ends_with("load the module: modprobe msr"));
    assert!(line(&tree, Backend::Perf).contains("built in"));
    modules(&tree, "kernel/x/other.ko:\n", "");
    assert!(line(&tree, Backend::Perf).contains("without CONFIG_PERF_EVENTS_INTEL_RAPL"));
    fs::create_dir(tree.root().join("run")).unwrap();
    fs::write(tree.root().join("run/.containerenv"), "").unwrap();
    assert!(line(&tree, Backend::Powercap).contains("in a container: run on the host"));
}

#[test]
fn guests_and_processors_without_counters() {
    let guest =
        Tree::bare("vendor_id\t: GenuineIntel\nmodel name\t: Some CPU\nflags\t\t: hypervisor\n");
    let diagnosis = diagnose(&guest.fs());
    assert!(!diagnosis.any_works());
    assert!(
        diagnosis
            .processor
            .starts_with("Some CPU, in a virtual machine")
    );
    for backend in &diagnosis.backends {
        assert_eq!(backend.state, BackendState::Absent);
        assert!(
            backend.to_string().ends_with("measure on the host"),
            "{backend}"
        );
    }
    let other = bare("CentaurHauls", 7, 1);
    assert!(line(&other, Backend::Powercap).ends_with("this processor has no RAPL"));
    let amd = bare("AuthenticAMD", 0x19, 1);
    assert!(line(&amd, Backend::Perf).contains("the flag is not in /proc/cpuinfo"));
}

#[test]
fn what_works_is_counted_and_the_reason_for_the_rest_named() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:1", "package-1", 1),
    ]);
    tree.processor("GenuineIntel", 6, 0x9E);
    assert_eq!(
        line(&tree, Backend::Powercap),
        "powercap: 2 counters can be read"
    );
    assert!(diagnose(&tree.fs()).any_works());
    assert!(diagnose(&tree.fs()).processor.ends_with("(Kaby Lake)"));
    tree.write("intel-rapl:1", "x\n");
    assert_eq!(
        line(&tree, Backend::Powercap),
        "powercap: 1 of 2 counters can be read: expected a number of microjoules, found \"x\\n\""
    );
    let counter = tree.file("intel-rapl:0", "energy_uj");
    fs::remove_file(&counter).unwrap();
    assert_eq!(
        line(&tree, Backend::Powercap),
        "powercap: 2 counters are there, and none can be read: not there"
    );
}

#[test]
fn without_privilege_the_right_one_is_named() {
    let tree = Tree::with(&[("intel-rapl:0", "package-0", 1)]);
    tree.processor("GenuineIntel", 6, 0x9E);
    let counter = tree.file("intel-rapl:0", "energy_uj");
    fs::set_permissions(&counter, Permissions::from_mode(0o000)).unwrap();
    tree.cpu(0, 0, 0, 0);
    tree.register(0, 0x606, 0x000A_0E03);
    tree.register(0, 0x611, 1);
    let registers = tree.root().join("dev/cpu/0/msr");
    fs::set_permissions(&registers, Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&counter).is_ok() {
        println!("permitted to read everything: only the readable case can be tested");
        assert!(diagnose(&tree.fs()).any_works());
        return;
    }
    assert!(line(&tree, Backend::Powercap).ends_with("run as root or with CAP_DAC_READ_SEARCH"));
    assert!(line(&tree, Backend::Msr).ends_with("run as root, with CAP_SYS_RAWIO"));
    // Registers that nobody knows to be there are not missed.
    let rapl::Error::NotPermitted { skipped, .. } = Meter::open(&tree.fs()).unwrap_err() else {
        panic!("another error");
    };
    assert_eq!(skipped.len(), 1);
    let states: Vec<BackendState> = diagnose(&tree.fs())
        .backends
        .iter()
        .map(|b| b.state)
        .collect();
    assert_eq!(
        states,
        [
            BackendState::Absent,
            BackendState::NotPermitted,
            BackendState::NotPermitted
        ]
    );
}

#[test]
fn masked_zones_and_captured_events() {
    let tree = Tree::new();
    tree.processor("GenuineIntel", 6, 0x9E);
    let class = tree.root().join("sys/class/powercap");
    symlink(
        "../../devices/virtual/powercap/x",
        class.join("intel-rapl:0"),
    )
    .unwrap();
    assert!(line(&tree, Backend::Powercap).contains("unmask"));
    let pmu = tree.root().join("sys/bus/event_source/devices/power");
    fs::create_dir_all(&pmu).unwrap();
    fs::write(pmu.join("type"), "21\n").unwrap();
    fs::write(pmu.join("cpumask"), "0\n").unwrap();
    assert!(line(&tree, Backend::Perf).contains("on the running machine only"));
}

/// The one case or the other holds on every machine.
#[test]
fn this_machine_is_diagnosed() {
    let fs = HostFs::live();
    let diagnosis = diagnose(&fs);
    assert_eq!(diagnosis.backends.len(), 3);
    assert_eq!(diagnosis.any_works(), Meter::open(&fs).is_ok());
    for backend in &diagnosis.backends {
        assert!(backend.state == BackendState::Works || backend.to_string().len() > 20);
        println!("{backend}");
    }
}
