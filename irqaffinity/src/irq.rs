//! The state of an IRQ as `/proc/irq` shows it.

use std::os::unix::fs::PermissionsExt;

use hostfs::{CpuSet, HostFs};
use nix::errno::Errno;

use crate::{Error, Result};

/// Where an IRQ may be served and where it is.
///
/// Meaning: `kernel/irq/proc.c`. World-readable, but for `affinity_hint` and
/// `smp_affinity` on hardened systems.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Irq {
    /// Its number.
    pub irq: u32,
    /// The CPUs that it may be served by (`smp_affinity_list`). Offline ones may be among
    /// them.
    pub affinity: CpuSet,
    /// The CPUs that it is delivered to (`effective_affinity_list`), which most controllers
    /// make one; empty while nobody uses the IRQ, `None` before Linux 4.13 and on
    /// architectures that don't tell.
    pub effective: Option<CpuSet>,
    /// The CPUs that its driver would like (`affinity_hint`).
    pub hint: Option<CpuSet>,
    /// The NUMA node of its device.
    pub node: Option<u32>,
    /// Whether the kernel takes a new affinity: `Some(false)` if its file says that nobody
    /// may write it (since Linux 6.12), otherwise `None`: only a write tells.
    pub settable: Option<bool>,
}

impl Irq {
    /// Reads the state of one IRQ.
    ///
    /// # Errors
    ///
    /// [`Error::Vanished`] if there is no such IRQ, or it has no affinity (a kernel without
    /// `CONFIG_SMP`); otherwise as [`HostFs::read`].
    pub fn read(fs: &HostFs, irq: u32) -> Result<Self> {
        Self::read_files(fs, irq).map_err(|error| {
            if is_gone(&error) {
                Error::Vanished { irq }
            } else {
                Error::Host(error)
            }
        })
    }

    /// Reads the state of each IRQ that has an affinity, ascending. One that vanishes
    /// meanwhile is left out.
    ///
    /// # Errors
    ///
    /// As [`HostFs::list`] and [`HostFs::read`].
    pub fn read_all(fs: &HostFs) -> Result<Vec<Self>> {
        let mut irqs = Vec::new();
        for irq in fs.list_numbered("proc/irq", "")? {
            match Self::read(fs, irq) {
                Ok(state) => irqs.push(state),
                Err(Error::Vanished { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(irqs)
    }

    fn read_files(fs: &HostFs, irq: u32) -> hostfs::Result<Self> {
        let affinity: CpuSet = fs.read(file(irq, "smp_affinity_list"))?;
        let node: Option<i64> = fs.read_optional(file(irq, "node"))?;
        Ok(Self {
            irq,
            affinity,
            effective: read_effective(fs, irq)?,
            hint: read_mask(fs, &file(irq, "affinity_hint"))?.filter(|hint| !hint.is_empty()),
            // -1 is the kernel's word for none.
            node: node.and_then(|node| u32::try_from(node).ok()),
            settable: is_read_only(fs, irq)?.then_some(false),
        })
    }
}

/// The CPUs that IRQs asked for from now on may be served by
/// (`/proc/irq/default_smp_affinity`).
///
/// # Errors
///
/// As [`HostFs::read`].
pub fn default_affinity(fs: &HostFs) -> Result<CpuSet> {
    let path = "proc/irq/default_smp_affinity";
    match read_mask(fs, path)? {
        Some(mask) => Ok(mask),
        None => Err(Error::Host(hostfs::Error::NotFound {
            path: fs.full_path(path),
        })),
    }
}

/// The path of an IRQ's file.
pub(crate) fn file(irq: u32, name: &str) -> String {
    format!("proc/irq/{irq}/{name}")
}

pub(crate) fn read_effective(fs: &HostFs, irq: u32) -> hostfs::Result<Option<CpuSet>> {
    fs.read_optional(file(irq, "effective_affinity_list"))
}

/// A file of an IRQ that is no more answers `EIO` where it was opened before.
fn is_gone(error: &hostfs::Error) -> bool {
    let gone = |os: hostfs::OsError| os.raw() == Errno::EIO as i32;
    error.is_not_found() || error.os().is_some_and(gone)
}

/// A file in mask form; `None` where there is none.
fn read_mask(fs: &HostFs, path: &str) -> hostfs::Result<Option<CpuSet>> {
    let text = match fs.read_text(path) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    match CpuSet::parse_mask(&text) {
        Ok(mask) => Ok(Some(mask)),
        Err(_) => Err(hostfs::Error::malformed(
            fs.full_path(path),
            "a mask of CPUs",
            &text,
        )),
    }
}

/// True if the affinity's file lets nobody write, root included.
fn is_read_only(fs: &HostFs, irq: u32) -> hostfs::Result<bool> {
    let opened = fs.open(file(irq, "smp_affinity_list"))?;
    Ok(opened
        .metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o222 == 0))
}
