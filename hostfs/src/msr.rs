//! Model-specific registers of one CPU (`arch/x86/kernel/msr.c`).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::{Error, HostFs, OsError, Result};

const REGISTER_BYTES: usize = 8;

/// The registers of one CPU, kept open: each is read with one `pread` of 8 bytes at the
/// register's number and no allocation.
///
/// Opening needs `CAP_SYS_RAWIO` (and the file's mode), and the kernel's module `msr`. Below
/// a captured root the file is a regular one, sparse, with each register's bytes at its
/// number.
///
/// ```
/// use hostfs::{HostFs, Msr};
///
/// // IA32_TIME_STAMP_COUNTER
/// match Msr::open(&HostFs::live(), 0).and_then(|msr| msr.read(0x10)) {
///     Ok(tsc) => println!("{tsc}"),
///     Err(why) => println!("{why}"),
/// }
/// ```
#[derive(Debug)]
pub struct Msr {
    cpu: u32,
    path: PathBuf,
    full_path: PathBuf,
    file: File,
}

impl Msr {
    /// Opens `dev/cpu/<cpu>/msr`.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] without the module `msr`, [`Error::NotPermitted`] without
    /// `CAP_SYS_RAWIO`, [`Error::Offline`].
    pub fn open(fs: &HostFs, cpu: u32) -> Result<Self> {
        let path = PathBuf::from(format!("dev/cpu/{cpu}/msr"));
        let full_path = fs.full_path(&path);
        let file = fs.open(&path).map_err(|error| match error.os() {
            Some(os) if os.is(Errno::ENXIO) => offline(&full_path, cpu),
            // A processor without registers of this kind.
            Some(os) if os.is(Errno::EIO) => no_registers(&full_path),
            _ => error,
        })?;
        Ok(Self {
            cpu,
            path,
            full_path,
            file,
        })
    }

    /// Whose registers they are.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// The file's path below its root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a register.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] for a register that this processor does not have (`EIO`),
    /// [`Error::Offline`] for a CPU that went away (`ENXIO`), [`Error::ShortRead`].
    pub fn read(&self, register: u32) -> Result<u64> {
        let mut bytes = [0; REGISTER_BYTES];
        match self.file.read_at(&mut bytes, u64::from(register)) {
            Ok(REGISTER_BYTES) => Ok(u64::from_le_bytes(bytes)),
            Ok(got) => Err(Error::ShortRead {
                path: self.full_path.clone(),
                expected: REGISTER_BYTES,
                got,
            }),
            Err(error) => Err(self.failure(register, OsError::from(&error))),
        }
    }

    fn failure(&self, register: u32, os: OsError) -> Error {
        if os.is(Errno::EIO) {
            return Error::NotSupported {
                what: format!("{}: register {register:#x}", self.full_path.display()),
                why: "this processor does not have it, or its hypervisor hides it".into(),
            };
        }
        if os.is(Errno::ENXIO) || os.is(Errno::ENODEV) {
            return offline(&self.full_path, self.cpu);
        }
        Error::from_os(&self.full_path, "read", os)
    }
}

fn offline(path: &Path, cpu: u32) -> Error {
    Error::Offline {
        path: path.to_path_buf(),
        cpu,
    }
}

fn no_registers(path: &Path) -> Error {
    Error::NotSupported {
        what: path.display().to_string(),
        why: "this processor has no model-specific registers".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(bytes: &[(u64, &[u8])]) -> (tempfile::TempDir, HostFs) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("dev/cpu/3")).unwrap();
        let file = File::create(dir.path().join("dev/cpu/3/msr")).unwrap();
        for (at, bytes) in bytes {
            file.write_all_at(bytes, *at).unwrap();
        }
        let fs = HostFs::at(dir.path()).unwrap();
        (dir, fs)
    }

    #[test]
    fn a_register_is_eight_bytes_at_its_number() {
        let (_dir, fs) = tree(&[
            (0x606, &[3, 0x0e, 0x0a, 0, 0, 0, 0, 0]),
            (0xC001_029B, &[0xff, 0, 0, 0, 1, 0, 0, 0x80]),
        ]);
        let msr = Msr::open(&fs, 3).unwrap();
        assert_eq!(msr.cpu(), 3);
        assert_eq!(msr.read(0x606).unwrap(), 0x000a_0e03);
        assert_eq!(msr.read(0xC001_029B).unwrap(), 0x8000_0001_0000_00ff);
    }

    #[test]
    fn a_short_read_is_no_register() {
        let (dir, fs) = tree(&[(0x606, &[1, 2, 3, 4])]);
        let msr = Msr::open(&fs, 3).unwrap();
        let path = dir.path().join("dev/cpu/3/msr");
        assert_eq!(
            msr.read(0x606).unwrap_err().to_string(),
            format!("{}: read 4 bytes of 8", path.display())
        );
        assert!(matches!(
            msr.read(0x611),
            Err(Error::ShortRead { got: 0, .. })
        ));
        assert!(Msr::open(&fs, 4).unwrap_err().is_not_found());
    }

    #[test]
    fn the_kernels_answers_are_told_apart() {
        let (dir, fs) = tree(&[]);
        let msr = Msr::open(&fs, 3).unwrap();
        let path = dir.path().join("dev/cpu/3/msr");
        let path = path.display();
        let message = |errno: Errno| msr.failure(0x619, errno.into()).to_string();
        assert_eq!(
            message(Errno::EIO),
            format!(
                "{path}: register 0x619: not supported: this processor does not have it, or \
                 its hypervisor hides it"
            )
        );
        assert_eq!(
            message(Errno::ENXIO),
            format!("{path}: CPU 3 is not online")
        );
        assert!(message(Errno::EPERM).contains("not permitted"));
    }
}
