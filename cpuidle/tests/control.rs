//! Changes on a tree, and that they are put back exactly.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::Tree;
use cpuidle::{Error, StateSelection};
use hostfs::{CpuSet, Restore, Restored};

fn select(text: &str) -> StateSelection {
    text.parse().unwrap()
}

#[test]
fn a_state_is_disabled_by_name_or_number_and_put_back() {
    let tree = Tree::with_states("0-1", 2);
    let idle = tree.idle();
    let record = Restore::new(&tree.fs());
    for state in ["C6", "2", "state2"] {
        let changes = idle
            .disable_state(&record, &select(state), &idle.cpu_set())
            .unwrap();
        assert_eq!(changes.len(), 2);
        assert_eq!((changes[1].found(), changes[1].now()), ("0", "1"));
        assert!(changes[1].path().ends_with("cpu1/cpuidle/state2/disable"));
        assert_eq!(tree.read_state(0, 2, "disable"), "1");
        assert_eq!(tree.read_state(0, 1, "disable"), "0\n", "no other state");
        drop(changes);
        assert_eq!(tree.read_state(0, 2, "disable"), "0");
    }
    let one: CpuSet = "1".parse().unwrap();
    let changes = idle.disable_state(&record, &select("C1"), &one).unwrap();
    assert_eq!(tree.read_state(0, 1, "disable"), "0\n", "no other CPU");
    for change in changes {
        assert_eq!(change.restore().unwrap(), Restored::PutBack);
    }
    assert!(record.troubles().is_empty());
}

/// Enabling every state where some were off by default (cpupower).
#[test]
fn a_state_that_is_off_stays_off_when_all_is_put_back() {
    let tree = Tree::with_states("0-1", 2);
    tree.write_state(0, 2, "disable", "1\n");
    tree.write_state(0, 2, "default_status", "disabled\n");
    let idle = tree.idle();
    let record = Restore::new(&tree.fs());
    let changes = idle
        .disable_state(&record, &select("C6"), &idle.cpu_set())
        .unwrap();
    assert_eq!(changes.len(), 1, "what is off already is left");
    assert!(changes[0].path().ends_with("cpu1/cpuidle/state2/disable"));
    drop(changes);
    record.restore_all();
    assert_eq!(tree.read_state(0, 2, "disable"), "1\n");
    assert_eq!(tree.read_state(1, 2, "disable"), "0");
}

#[test]
fn an_unknown_state_is_answered_with_those_that_there_are() {
    let tree = Tree::with_states("0-1", 2);
    tree.state(1, 3, "C10");
    let idle = tree.idle();
    let record = Restore::new(&tree.fs());
    let disable = |state: &str, cpus: &str| {
        idle.disable_state(&record, &select(state), &cpus.parse().unwrap())
    };
    assert_eq!(
        disable("C7", "0-1").unwrap_err().to_string(),
        "no idle state \"C7\": there are 0 \"POLL\", 1 \"C1\", 2 \"C6\", 3 \"C10\""
    );
    assert_eq!(
        disable("9", "0").unwrap_err().to_string(),
        "no idle state 9: there are 0 \"POLL\", 1 \"C1\", 2 \"C6\""
    );
    // CPUs can differ: the one that has it is changed.
    assert_eq!(disable("C10", "0-1").unwrap().len(), 1);
    assert!(matches!(
        disable("C10", "0"),
        Err(Error::UnknownState { .. })
    ));
    assert_eq!(
        disable("C1", "1-3").unwrap_err().to_string(),
        "CPUs 2-3 have no idle states now: those that have are 0-1"
    );
}

/// Errors never leave state half-changed.
#[test]
fn a_failure_on_one_cpu_undoes_the_others() {
    let tree = Tree::with_states("0-2", 3);
    let idle = tree.idle();
    fs::remove_file(tree.state_dir(2, 1).join("disable")).unwrap();
    let record = Restore::new(&tree.fs());
    let error = idle
        .disable_state(&record, &select("C1"), &idle.cpu_set())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("cpu2/cpuidle/state1/disable: not there"),
        "{error}"
    );
    assert_eq!(tree.read_state(0, 1, "disable"), "0");
    assert_eq!(tree.read_state(1, 1, "disable"), "0");
}

#[test]
fn a_governor_is_selected_and_put_back() {
    let tree = Tree::with_states("0", 1);
    let idle = tree.idle();
    let record = Restore::new(&tree.fs());
    let path = tree
        .root()
        .join("sys/devices/system/cpu/cpuidle/current_governor");
    let governor = || fs::read_to_string(&path).unwrap();
    assert!(
        idle.set_governor(&record, "menu").unwrap().is_none(),
        "is so already"
    );
    let change = idle.set_governor(&record, "teo").unwrap().unwrap();
    assert_eq!((change.found(), change.now()), ("menu", "teo"));
    assert_eq!(governor(), "teo");
    drop(change);
    assert_eq!(governor(), "menu");
    assert_eq!(
        idle.set_governor(&record, "haltpoll")
            .unwrap_err()
            .to_string(),
        "no idle governor \"haltpoll\": there are ladder, menu, teo"
    );
    assert_eq!(governor(), "menu");
}

#[test]
fn an_old_kernels_governor_is_fixed() {
    let tree = Tree::with_states("0", 1);
    tree.remove_global("current_governor");
    tree.remove_global("available_governors");
    let record = Restore::new(&tree.fs());
    let error = tree
        .idle()
        .set_governor(&record, "teo")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cpuidle/current_governor: not there"),
        "{error}"
    );
    assert!(error.contains("cpuidle_sysfs_switch"), "{error}");
}

#[test]
fn texts_that_select_a_state() {
    assert_eq!(select("2"), StateSelection::Index(2));
    assert_eq!(select("state10"), StateSelection::Index(10));
    for name in [
        "C6",
        "haltpoll idle",
        "state",
        "stateful",
        "+1",
        "-1",
        "",
        "99999999999",
    ] {
        assert_eq!(select(name), StateSelection::Name(name.into()));
    }
}
