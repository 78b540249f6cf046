//! Reading the table again and again.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::{Finding, Interrupts};
use crate::{Error, HostFs, Result};

/// How often a table is read when a CPU comes or goes in the middle of it.
const READINGS: u32 = 3;

/// How much room is offered to a read, at least. The kernel fills about a page of it.
const ROOM: usize = 64 * 1024;

/// `/proc/interrupts` kept open, with its buffer.
///
/// ```
/// use hostfs::HostFs;
/// use hostfs::interrupts::{Interrupts, InterruptsReader};
///
/// let mut reader = InterruptsReader::open(&HostFs::live())?;
/// let before = reader.read()?;
/// let mut after = Interrupts::default();
/// reader.read_into(&mut after)?;
/// for (cpu, count) in after.since(&before).per_cpu_total() {
///     println!("CPU {cpu}: {count} interrupts");
/// }
/// # Ok::<(), hostfs::Error>(())
/// ```
#[derive(Debug)]
pub struct InterruptsReader {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl InterruptsReader {
    /// Opens `proc/interrupts`.
    ///
    /// # Errors
    ///
    /// As [`HostFs::open`].
    pub fn open(fs: &HostFs) -> Result<Self> {
        const PATH: &str = "proc/interrupts";
        Ok(Self {
            path: fs.full_path(PATH),
            file: fs.open(PATH)?,
            buffer: Vec::new(),
        })
    }

    /// Reads the table as it is now.
    ///
    /// # Errors
    ///
    /// What the kernel answers to the read; [`Error::Malformed`] as [`Interrupts::parse`].
    pub fn read(&mut self) -> Result<Interrupts> {
        let mut table = Interrupts::default();
        self.read_into(&mut table)?;
        Ok(table)
    }

    /// As [`read`](Self::read), into a table whose memory is used again: nothing is
    /// allocated while the table doesn't grow. After an error the table is empty.
    ///
    /// A CPU that comes or goes during the reading shifts the columns of some rows; then
    /// the table is read again, at most twice. What is still wrong is in its findings.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_into(&mut self, table: &mut Interrupts) -> Result<()> {
        for _ in 0..READINGS {
            let length = match self.fill() {
                Ok(length) => length,
                Err(error) => {
                    *table = Interrupts::default();
                    return Err(error);
                }
            };
            table.parse_from(&self.path, &self.buffer[..length])?;
            if !table.findings().iter().any(Finding::may_pass) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the file from its start to its end; returns how long it is.
    fn fill(&mut self) -> Result<usize> {
        let mut length = 0;
        loop {
            if self.buffer.len() - length < ROOM {
                self.buffer.resize((length + ROOM) * 2, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(length),
                Ok(more) => length += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::from_io(&self.path, "read", &error)),
            }
        }
    }
}
