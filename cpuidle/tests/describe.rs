//! Driver, governor and states, and why there are none.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::Tree;
use cpuidle::{Absent, CpuIdle, Error};

fn states(idle: &CpuIdle) -> Vec<(u32, Vec<&str>)> {
    idle.cpus()
        .iter()
        .map(|cpu| {
            (
                cpu.cpu,
                cpu.states.iter().map(|s| s.name.as_str()).collect(),
            )
        })
        .collect()
}

fn why(tree: &Tree) -> Absent {
    match CpuIdle::open(&tree.fs()) {
        Err(Error::Absent { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_description_has_what_the_kernel_says() {
    let tree = Tree::with_states("0-1", 2);
    tree.write_state(1, 2, "disable", "1\n");
    tree.write_state(1, 2, "default_status", "disabled\n");
    let idle = tree.idle();
    assert_eq!(idle.driver(), Some("intel_idle"));
    assert_eq!(idle.governor(), Some("menu"));
    assert_eq!(
        idle.available_governors().unwrap(),
        ["ladder", "menu", "teo"]
    );
    assert_eq!(
        (idle.online().to_string(), idle.cpu_set().len()),
        ("0-1".into(), 2)
    );
    assert_eq!(
        states(&idle),
        [(0, vec!["POLL", "C1", "C6"]), (1, vec!["POLL", "C1", "C6"])]
    );
    let state = &idle.cpus()[1].states[2];
    assert_eq!(
        (state.index, state.desc.as_deref()),
        (2, Some("MWAIT 0x20"))
    );
    assert_eq!(
        (state.latency_us, state.residency_us),
        (Some(133), Some(600))
    );
    assert_eq!(
        (state.enabled_by_default, state.disabled),
        (Some(false), true)
    );
    assert!(!idle.cpus()[0].states[2].disabled);
}

/// Entries that are not states parsed as states (mmtests PR#25), in numeric order.
#[test]
fn only_state_and_a_number_is_a_state() {
    let tree = Tree::new("0");
    for index in [0, 2, 10] {
        tree.state(0, index, &format!("S{index}"));
    }
    let dir = tree.root().join("sys/devices/system/cpu/cpu0/cpuidle");
    for other in [
        "driver", "governor", "state", "stateful", "state3a", "state01",
    ] {
        fs::create_dir(dir.join(other)).unwrap();
    }
    assert_eq!(states(&tree.idle()), [(0, vec!["S0", "S2", "S10"])]);
}

/// CPUs with different numbers of states (cpupower).
#[test]
fn cpus_can_differ() {
    let tree = Tree::with_states("0-2", 1);
    tree.state(1, 0, "POLL");
    // CPU 2 is online without idle states.
    let idle = tree.idle();
    assert_eq!(
        states(&idle),
        [(0, vec!["POLL", "C1", "C6"]), (1, vec!["POLL"])]
    );
    assert_eq!(idle.cpu_set().to_string(), "0-1");
    assert_eq!(idle.online().to_string(), "0-2");
}

/// Offline CPUs walked as if present.
#[test]
fn offline_cpus_are_not_looked_at() {
    let tree = Tree::with_states("0,2", 3);
    assert_eq!(tree.idle().cpu_set().to_string(), "0,2");
}

/// What older kernels lack is `None`, not 0.
#[test]
fn an_old_kernel() {
    let tree = Tree::with_states("0", 1);
    for file in ["residency", "default_status", "desc", "latency"] {
        fs::remove_file(tree.state_dir(0, 1).join(file)).unwrap();
    }
    // Before 5.8 without cpuidle_sysfs_switch.
    tree.remove_global("current_governor");
    tree.remove_global("available_governors");
    let idle = tree.idle();
    let state = &idle.cpus()[0].states[1];
    assert_eq!((state.residency_us, state.latency_us), (None, None));
    assert_eq!((state.enabled_by_default, &state.desc), (None, &None));
    assert_eq!(idle.governor(), Some("menu"), "from current_governor_ro");
    assert_eq!(idle.available_governors(), None);
}

#[test]
fn names_are_taken_as_they_are() {
    let tree = Tree::new("0");
    for (index, name) in ["<null>", "<null>", "haltpoll idle", "C1"]
        .iter()
        .enumerate()
    {
        tree.state(0, index as u32, name);
    }
    assert_eq!(
        states(&tree.idle()),
        [(0, vec!["<null>", "<null>", "haltpoll idle", "C1"])]
    );
}

#[test]
fn a_malformed_file_is_named_with_its_text() {
    let tree = Tree::with_states("0", 1);
    let fails = |file: &str, text: &str, message: &str| {
        let before = tree.read_state(0, 1, file);
        tree.write_state(0, 1, file, text);
        let error = CpuIdle::open(&tree.fs()).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}");
        assert!(
            error.contains(&format!("state1/{file}: malformed")),
            "{error}"
        );
        tree.write_state(0, 1, file, &before);
    };
    fails(
        "latency",
        "long\n",
        "expected an unsigned number, found \"long\"",
    );
    fails("disable", "", "expected an unsigned number, found \"\"");
    fails(
        "default_status",
        "maybe\n",
        "expected enabled or disabled, found \"maybe\"",
    );
    fs::remove_file(tree.state_dir(0, 1).join("name")).unwrap();
    let error = CpuIdle::open(&tree.fs()).unwrap_err().to_string();
    assert!(
        error.ends_with("cpu0/cpuidle/state1/name: not there"),
        "{error}"
    );
    tree.write("sys/devices/system/cpu/online", "all of them\n");
    let error = CpuIdle::open(&tree.fs()).unwrap_err().to_string();
    assert!(error.contains("cpu/online: malformed"), "{error}");
}

/// No cpuidle directory (netdata PR#1535): which case it is.
#[test]
fn why_there_are_no_idle_states() {
    let tree = Tree::new("0-1");
    let cpuinfo = |flags: &str| tree.write("proc/cpuinfo", &format!("flags\t\t: fpu {flags}\n"));
    tree.global("current_driver", "none\n");
    cpuinfo("mwait");
    let error = CpuIdle::open(&tree.fs()).unwrap_err().to_string();
    assert!(
        error.contains("cpu: no idle states: the idle driver is \"none\""),
        "{error}"
    );
    tree.write(
        "proc/cmdline",
        "quiet idle=nomwait cpuidle.off=0 acpi=idle=poll\n",
    );
    assert_eq!(
        why(&tree),
        Absent::NoDriver {
            driver: "none".into()
        }
    );
    cpuinfo("hypervisor");
    assert_eq!(why(&tree), Absent::VirtualMachine);
    assert!(
        Absent::VirtualMachine
            .to_string()
            .contains("cpuidle_haltpoll.force=1")
    );
    tree.write("proc/cmdline", "quiet idle=poll\n");
    let poll = why(&tree);
    assert_eq!(
        poll,
        Absent::IdleParameter {
            value: "poll".into()
        }
    );
    assert!(
        poll.to_string()
            .starts_with("idle=poll on the kernel's command line")
    );
    tree.write("proc/cmdline", "idle=poll cpuidle.off=1\n");
    assert_eq!(why(&tree), Absent::SwitchedOff);
    assert!(Absent::SwitchedOff.to_string().contains("cpuidle.off=1"));
    tree.write("proc/cmdline", "quiet\n");
    cpuinfo("mwait");
    fs::remove_dir_all(tree.root().join("sys/devices/system/cpu/cpuidle")).unwrap();
    assert_eq!(why(&tree), Absent::NotBuilt);
    assert!(Absent::NotBuilt.to_string().contains("CONFIG_CPU_IDLE"));
    fs::remove_dir_all(tree.root().join("proc")).unwrap();
    assert_eq!(why(&tree), Absent::NotBuilt, "without any help");
}

#[test]
fn states_without_the_common_directory_are_states() {
    let tree = Tree::with_states("0", 1);
    fs::remove_dir_all(tree.root().join("sys/devices/system/cpu/cpuidle")).unwrap();
    let idle = tree.idle();
    assert_eq!((idle.driver(), idle.governor()), (None, None));
    assert_eq!(idle.cpus()[0].states.len(), 3);
}
