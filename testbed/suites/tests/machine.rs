//! The guest's processors as `hostfs` describes them.
#![allow(clippy::unwrap_used)]

use hostfs::{HostFs, Topology};

/// Two sockets with two threads a core, as QEMU was told.
#[test]
fn cpus_belong_together_as_qemu_was_told() {
    let topology = Topology::read(&HostFs::live()).unwrap();
    let cpus = topology.online.len() as u32;
    let sockets = if cpus == 1 { 1 } else { 2 };
    let in_socket = cpus / sockets;
    assert_eq!(topology.online, (0..cpus).collect());
    assert_eq!(topology.present, topology.online);
    assert_eq!(topology.cpus.len(), cpus as usize);
    assert_eq!(topology.packages(), sockets as usize);
    assert_eq!(topology.cores(), cpus.div_ceil(2) as usize);
    assert_eq!(topology.nodes(), if cpus == 8 { 2 } else { 1 });
    for cpu in topology.online_cpus() {
        let number = cpu.cpu;
        assert_eq!(cpu.package, Some(number / in_socket), "CPU {number}");
        assert_eq!(cpu.die, Some(0), "CPU {number}");
        let core = number / 2 * 2..(number / 2 * 2 + 2).min(cpus);
        assert_eq!(cpu.siblings, core.collect(), "CPU {number}");
        if cpus == 8 {
            assert_eq!(cpu.node, Some(number / 4), "CPU {number}");
        }
    }
}

#[test]
fn the_kernel_is_the_one_that_was_booted() {
    let release = HostFs::live().kernel_release().unwrap();
    assert!(release.starts_with("6."), "{release}");
    assert!(release.ends_with("-amd64"), "{release}");
}
