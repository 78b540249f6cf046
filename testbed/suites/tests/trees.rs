//! What kernels newer than the guest's show, from trees that were captured on them. These need
//! no guest: `cargo test` runs them.
#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hostfs::interrupts::Interrupts;
use hostfs::{CpuSet, HostFs};
use irqaffinity::Irq;
use msi_probe::{Active, Config};

const LINUX_6_18: &str = include_str!("../../trees/linux-6.18.txt");

/// Lays a captured tree out, with the modes that git does not keep.
fn lay_out(captured: &str, root: &Path) -> HostFs {
    for file in captured.split("\n== ").skip(1) {
        let (head, content) = file.split_once('\n').unwrap();
        let (is_hex, head) = match head.strip_prefix("hex ") {
            Some(head) => (true, head),
            None => (false, head),
        };
        let (mode, path) = head.split_once(' ').unwrap();
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = if is_hex {
            from_hex(content.trim())
        } else {
            // The line end that splitting took off.
            format!("{}\n", content.trim_end()).into()
        };
        fs::write(&path, bytes).unwrap();
        let mode = u32::from_str_radix(mode, 8).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    HostFs::at(root).unwrap()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn a_mode_tells_since_6_12_what_cannot_be_set() {
    let dir = tempfile::tempdir().unwrap();
    let fs = lay_out(LINUX_6_18, dir.path());
    // The kernel spreads virtio-blk's queue itself; nobody else may move it.
    let managed = Irq::read(&fs, 36).unwrap();
    assert_eq!(managed.settable, Some(false));
    assert_eq!(managed.affinity, set("0-1"));
    let free = Irq::read(&fs, 38).unwrap();
    assert_eq!(free.settable, None, "0644 promises nothing");
    assert_eq!(free.hint, Some(set("0-1")));
    assert_eq!(free.node, None, "-1");
}

#[test]
fn a_chip_names_its_device() {
    let dir = tempfile::tempdir().unwrap();
    let table = Interrupts::read(&lay_out(LINUX_6_18, dir.path())).unwrap();
    assert_eq!(table.findings(), []);
    let row = table.irq(36).unwrap();
    assert_eq!(row.description().chip, "PCI-MSIX-0000:00:02.0");
    assert_eq!(row.description().actions, ["virtio1-req.0"]);
    assert_eq!(table.irq(24).unwrap().description().chip, "IO-APIC");
    let globals: Vec<&str> = table.globals().map(|row| row.name).collect();
    assert_eq!(globals, ["ERR", "MIS"]);
}

#[test]
fn msi_x_is_seen_without_privilege() {
    let dir = tempfile::tempdir().unwrap();
    let report = msi_probe::probe(&lay_out(LINUX_6_18, dir.path())).unwrap();
    let block = &report.devices[0];
    assert_eq!(block.address.to_string(), "0000:00:02.0");
    assert_eq!(
        block.config,
        Config::Truncated,
        "64 bytes are not the whole"
    );
    assert_eq!(block.msix, None, "not visible, which is not: none");
    assert_eq!(block.active, Active::Msix);
    assert_eq!(block.irqs, [35, 36]);
}
