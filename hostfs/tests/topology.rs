//! The topology of three kinds of machine, each described by a text of `path: content`.
#![allow(clippy::unwrap_used)]

use std::fs;

use hostfs::{CpuSet, Error, HostFs, Topology};
use tempfile::TempDir;

/// Lays out a tree from a description: a line for each file, `path: content`.
fn machine(description: &str) -> (TempDir, HostFs) {
    let dir = tempfile::tempdir().unwrap();
    for line in description.lines().filter(|line| !line.starts_with('#')) {
        let Some((path, content)) = line.split_once(':') else {
            continue;
        };
        let path = dir.path().join("sys/devices/system").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{}\n", content.trim_start())).unwrap();
    }
    let fs = HostFs::at(dir.path()).unwrap();
    (dir, fs)
}

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn a_laptop_with_smt() {
    let (_dir, fs) = machine(include_str!("machines/laptop.txt"));
    let topology = Topology::read(&fs).unwrap();
    assert_eq!(topology.online, set("0-3"));
    // The firmware announces more than the board has.
    assert_eq!(topology.possible, set("0-7"));
    assert_eq!(topology.nohz_full, set(""), "(null) without the option");
    assert_eq!((topology.packages(), topology.cores()), (1, 2));
    // Siblings are two apart here, not neighbours.
    let cpu = topology.cpu(2).unwrap();
    assert_eq!(
        (cpu.package, cpu.core, cpu.die),
        (Some(0), Some(0), Some(0))
    );
    assert_eq!(cpu.siblings, set("0,2"));
    let cache = cpu.last_level_cache.as_ref().unwrap();
    assert_eq!((cache.level, &cache.shared), (3, &set("0-3")));
    assert_eq!(cpu.node, None, "a kernel without CONFIG_NUMA");
    assert_eq!(topology.cpu(4), None);
}

#[test]
fn a_server_of_two_sockets_and_four_nodes_with_an_offline_cpu() {
    let (_dir, fs) = machine(include_str!("machines/server.txt"));
    let topology = Topology::read(&fs).unwrap();
    assert_eq!(topology.online, set("0-4,6-7,16"));
    assert_eq!(topology.present, set("0-7,16"));
    assert_eq!(topology.isolated, set("6-7"));
    assert_eq!(topology.nohz_full, set("7"));
    assert_eq!((topology.packages(), topology.nodes()), (2, 4));
    assert_eq!(topology.online_cpus().count(), 8);
    let offline = topology.cpu(5).unwrap();
    assert!(!offline.online);
    assert_eq!(
        (offline.package, offline.core, offline.node),
        (None, None, None),
        "what its files still say was true once"
    );
    assert_eq!(topology.cpu(4).unwrap().siblings, set("4"));
    // Core 0 of package 1 is not core 0 of package 0.
    let (a, b) = (topology.cpu(0).unwrap(), topology.cpu(4).unwrap());
    assert_eq!((a.core, a.package), (Some(0), Some(0)));
    assert_eq!((b.core, b.package), (Some(0), Some(1)));
    assert_eq!((a.node, b.node), (Some(0), Some(2)));
    assert_eq!(
        topology.cpu(16).unwrap().node,
        Some(3),
        "a gap in the numbers"
    );
    assert_eq!(topology.cores(), 8);
}

#[test]
fn a_virtual_machine_that_says_little() {
    let (_dir, fs) = machine(include_str!("machines/vm.txt"));
    let topology = Topology::read(&fs).unwrap();
    assert_eq!(topology.present, set("0-1"), "as online where not said");
    let cpu = topology.cpu(1).unwrap();
    assert_eq!(cpu.package, None, "-1 is not a package");
    assert_eq!(cpu.siblings, set("1"), "a CPU is always of its own core");
    assert_eq!(cpu.last_level_cache, None);
    assert_eq!((topology.packages(), topology.cores()), (0, 2));
}

#[test]
fn faults_name_the_file() {
    let (dir, fs) = machine("cpu/online: 0-1\ncpu/present: 0-x\n");
    assert_eq!(
        Topology::read(&fs).unwrap_err().to_string(),
        format!(
            "{}/sys/devices/system/cpu/present: malformed: expected a list of CPUs, found \"0-x\"",
            dir.path().display()
        )
    );
    let (_dir, fs) = machine("");
    assert!(matches!(Topology::read(&fs), Err(Error::NotFound { .. })));
}

#[test]
fn this_machine_agrees_with_what_the_process_may_use() {
    let topology = Topology::read(&HostFs::live()).unwrap();
    assert!(topology.online.is_subset(&topology.possible));
    let usable = std::thread::available_parallelism().unwrap().get();
    assert!(topology.online.len() >= usable);
    for cpu in topology.online_cpus() {
        assert!(cpu.siblings.contains(cpu.cpu));
    }
}
