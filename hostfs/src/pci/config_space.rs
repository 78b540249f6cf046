//! The configuration space of one device, a double word at a time.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::{DEVICES, PciAddress};
use crate::{Error, HostFs, Result};

/// A device's `config` file, kept open.
///
/// Without `CAP_SYS_ADMIN` the kernel shows the first 64 bytes (128 of a CardBus bridge),
/// although the file's size still says 256 or 4096 (`pci_read_config` in
/// `drivers/pci/pci-sysfs.c`). Reading can wake a sleeping device or the bridge above it,
/// and each double word of a virtual device can cost a trip to the hypervisor, so read only
/// what matters and see [`PciDevice::is_asleep`](super::PciDevice::is_asleep) first.
#[derive(Debug)]
pub struct ConfigSpace {
    file: File,
    path: PathBuf,
}

impl ConfigSpace {
    /// Opens the file; nothing is read yet.
    ///
    /// # Errors
    ///
    /// As [`HostFs::open`].
    pub fn open(fs: &HostFs, address: PciAddress) -> Result<Self> {
        let path = format!("{DEVICES}/{address}/config");
        Ok(Self {
            file: fs.open(&path)?,
            path: fs.full_path(path),
        })
    }

    /// The double word at a byte offset, in the processor's own order; `None` where the file
    /// ends before it: there it is not visible.
    ///
    /// # Errors
    ///
    /// What the kernel answered to the read.
    pub fn read_at(&self, offset: u16) -> Result<Option<u32>> {
        let mut bytes = [0; 4];
        match self.file.read_exact_at(&mut bytes, u64::from(offset)) {
            Ok(()) => Ok(Some(u32::from_le_bytes(bytes))),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(Error::from_io(&self.path, "read", &error)),
        }
    }
}
