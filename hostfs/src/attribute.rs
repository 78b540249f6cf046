//! One sysfs or procfs file that is read again and again.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::{Error, HostFs, OsError, Result};

/// Longer than any number that the kernel prints.
const NUMBER_BYTES: usize = 64;

/// A kept-open file, read with one `pread` and no allocation.
///
/// A file whose device went away (`ENODEV` in sysfs, `EIO` in `/proc/irq`) is opened anew
/// once; [`reopened`](Self::reopened) counts that, since what is found at the path then may
/// belong to another device. Where the process has no descriptors left, the file is not
/// kept but opened for each read.
///
/// ```
/// use hostfs::HostFs;
///
/// let mut online = HostFs::live().attribute("sys/devices/system/cpu/online")?;
/// let mut buffer = [0; 256];
/// println!("{}", String::from_utf8_lossy(online.read(&mut buffer)?));
/// # Ok::<(), hostfs::Error>(())
/// ```
#[derive(Debug)]
pub struct Attribute {
    fs: HostFs,
    path: PathBuf,
    /// `None` past the limit of open files.
    file: Option<File>,
    reopened: u64,
}

impl Attribute {
    /// Opens the file and keeps it open.
    ///
    /// # Errors
    ///
    /// As [`HostFs::open`], other than having no descriptors left (`EMFILE`, `ENFILE`).
    pub fn open(fs: &HostFs, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let file = match fs.open(&path) {
            Ok(file) => Some(file),
            Err(error) if out_of_descriptors(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            fs: fs.clone(),
            path,
            file,
            reopened: 0,
        })
    }

    /// The file's path below its root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How often the file had died and was opened anew.
    pub fn reopened(&self) -> u64 {
        self.reopened
    }

    /// Reads the file from its start into the buffer and returns the part that was filled.
    /// A file longer than the buffer is cut.
    ///
    /// # Errors
    ///
    /// What the kernel answered, after one attempt to open the file anew if it was dead.
    pub fn read<'b>(&mut self, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
        let length = match &self.file {
            None => self.fs.open(&self.path)?.read_at(buffer, 0),
            Some(file) => match file.read_at(buffer, 0) {
                Err(error) if is_dead(OsError::from(&error)) => {
                    let file = self.fs.open(&self.path)?;
                    self.reopened += 1;
                    let again = file.read_at(buffer, 0);
                    self.file = Some(file);
                    again
                }
                answer => answer,
            },
        };
        match length {
            Ok(length) => Ok(&buffer[..length]),
            Err(error) => Err(Error::from_io(
                &self.fs.full_path(&self.path),
                "read",
                &error,
            )),
        }
    }

    /// Reads the file as one unsigned decimal number.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); [`Error::Malformed`] for an empty file, a sign, anything
    /// but digits before the end of the line, or a number past 64 bits.
    pub fn read_u64(&mut self) -> Result<u64> {
        let mut buffer = [0; NUMBER_BYTES];
        let bytes = self.read(&mut buffer)?;
        let number = parse_u64(bytes);
        match number {
            Some(number) => Ok(number),
            None => {
                let text = String::from_utf8_lossy(bytes);
                let path = self.fs.full_path(&self.path);
                Err(Error::malformed(path, "an unsigned number", &text))
            }
        }
    }
}

/// One unsigned decimal number, with white space allowed after it only.
fn parse_u64(bytes: &[u8]) -> Option<u64> {
    if bytes.len() == NUMBER_BYTES {
        return None;
    }
    let digits = bytes.trim_ascii_end();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// What a held file answers when its device is gone.
fn is_dead(os: OsError) -> bool {
    [Errno::ENODEV, Errno::EIO].iter().any(|dead| os.is(*dead))
}

fn out_of_descriptors(error: &Error) -> bool {
    error
        .os()
        .is_some_and(|os| os.is(Errno::EMFILE) || os.is(Errno::ENFILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn attribute(text: &str) -> (tempfile::TempDir, Attribute) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), text).unwrap();
        let fs = HostFs::at(dir.path()).unwrap();
        let attribute = fs.attribute("a").unwrap();
        (dir, attribute)
    }

    #[test]
    fn a_held_file_shows_what_was_written_since() {
        let (dir, mut a) = attribute("1\n");
        assert_eq!(a.read_u64().unwrap(), 1);
        fs::write(dir.path().join("a"), "18446744073709551615\n").unwrap();
        assert_eq!(a.read_u64().unwrap(), u64::MAX);
        assert_eq!(a.reopened(), 0);
    }

    #[test]
    fn what_is_no_number_is_said_with_its_text() {
        for text in [
            "",
            "\n",
            "-1\n",
            "+1",
            "1 2\n",
            " 1\n",
            "0x1",
            "18446744073709551616",
            "1\0",
        ] {
            let (_dir, mut a) = attribute(text);
            let error = a.read_u64().unwrap_err();
            assert!(
                matches!(error, Error::Malformed { .. }),
                "{text:?}: {error}"
            );
        }
        let (_dir, mut long) = attribute(&"0".repeat(200));
        assert!(long.read_u64().is_err(), "cut numbers are not numbers");
    }

    #[test]
    fn only_a_device_that_went_away_is_looked_for_again() {
        assert!(is_dead(Errno::ENODEV.into()));
        assert!(is_dead(Errno::EIO.into()));
        assert!(!is_dead(Errno::EINVAL.into()), "a counter's own failure");
        assert!(!is_dead(Errno::ENODATA.into()));
    }

    proptest! {
        #[test]
        fn numbers_come_back(number: u64) {
            prop_assert_eq!(parse_u64(format!("{number}\n").as_bytes()), Some(number));
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(number) = parse_u64(&bytes) {
                let text = String::from_utf8(bytes).unwrap();
                prop_assert_eq!(text.trim_ascii_end().trim_start_matches('0').len(), if number == 0 { 0 } else { number.to_string().len() });
            }
        }
    }
}
