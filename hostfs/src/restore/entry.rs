//! One change and how it is undone.

use std::fmt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Error, HostFs, Process, Result};

/// A change that is to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Entry {
    /// A file that was written, by us or by a program of ours.
    #[non_exhaustive]
    File {
        /// The file, below its root.
        path: PathBuf,
        /// What it held.
        found: String,
        /// What was written; `None` where a program of ours writes what it likes.
        wrote: Option<String>,
        /// Written on the way back, just before `found`.
        way_back: Option<String>,
    },
    /// A process that was stopped with `SIGSTOP`.
    #[non_exhaustive]
    Paused {
        /// The process.
        process: Process,
    },
}

/// What became of a change when it was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Restored {
    /// It was as it had been found already.
    AsFound,
    /// What was found was put back.
    PutBack,
    /// The file holds neither what was found nor what was written: somebody else changed
    /// it, so it was left alone.
    LeftAlone {
        /// What it holds.
        holds: String,
    },
    /// What was found was written, and the kernel made something else of it.
    Differs {
        /// What it holds.
        holds: String,
    },
    /// The file or process is not there any more.
    Gone,
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Restored::AsFound => f.write_str("was as found already"),
            Restored::PutBack => f.write_str("put back"),
            Restored::LeftAlone { holds } => {
                write!(f, "left alone: somebody else set it to {holds:?} meanwhile")
            }
            Restored::Differs { holds } => {
                write!(f, "written, but the kernel made {holds:?} of it")
            }
            Restored::Gone => f.write_str("is not there any more"),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::File { path, found, .. } => write!(f, "{} (was {found:?})", path.display()),
            Entry::Paused { process } => write!(f, "{} (process {})", process.name, process.pid),
        }
    }
}

impl Entry {
    pub(super) fn file(path: &Path, found: &str, wrote: Option<&str>) -> Self {
        Entry::File {
            path: path.to_path_buf(),
            found: found.to_owned(),
            wrote: wrote.map(str::to_owned),
            way_back: None,
        }
    }

    pub(super) fn set_wrote(&mut self, now: &str) {
        if let Entry::File { wrote, .. } = self {
            *wrote = Some(now.to_owned());
        }
    }

    pub(super) fn set_way_back(&mut self, via: Option<String>) {
        if let Entry::File { way_back, .. } = self {
            *way_back = via;
        }
    }

    /// True if this later entry is for the same file as an earlier one.
    pub(super) fn inherits_from(&self, earlier: &Entry) -> bool {
        match (self, earlier) {
            (Entry::File { path: a, .. }, Entry::File { path: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Takes over what an earlier entry of the same file had found.
    pub(super) fn inherit(&mut self, earlier: &Entry) {
        if let (
            Entry::File {
                found, way_back, ..
            },
            Entry::File {
                found: earlier_found,
                way_back: earlier_way_back,
                ..
            },
        ) = (self, earlier)
        {
            found.clone_from(earlier_found);
            way_back.clone_from(earlier_way_back);
        }
    }

    /// Undoes the change. Doing so twice is harmless.
    ///
    /// # Errors
    ///
    /// What the kernel answered to the read or the write.
    pub(super) fn put_back(&self, fs: &HostFs) -> Result<Restored> {
        match self {
            Entry::File {
                path,
                found,
                wrote,
                way_back,
            } => put_back_file(fs, path, found, wrote.as_deref(), way_back.as_deref()),
            Entry::Paused { process } => resume(fs, process),
        }
    }

    /// Writes the value that is to come before what was found, where there is one and the
    /// file holds what we wrote; true if time should pass before [`put_back`](Self::put_back).
    #[cfg(feature = "journal")]
    pub(super) fn set_out(&self, fs: &HostFs) -> bool {
        let Entry::File {
            path,
            found,
            wrote,
            way_back: Some(via),
        } = self
        else {
            return false;
        };
        let holds = fs.read_text(path).ok();
        let is_ours = holds.is_some_and(|holds| {
            holds != *via && (holds == *found || wrote.as_ref().is_none_or(|wrote| holds == *wrote))
        });
        is_ours && fs.write(path, via).is_ok()
    }

    /// The change's file, below its root.
    #[cfg(feature = "journal")]
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Entry::File { path, .. } => Some(path),
            Entry::Paused { .. } => None,
        }
    }
}

fn put_back_file(
    fs: &HostFs,
    path: &Path,
    found: &str,
    wrote: Option<&str>,
    way_back: Option<&str>,
) -> Result<Restored> {
    let holds = match fs.read_text(path) {
        Ok(holds) => holds,
        Err(error) if is_gone(&error) => return Ok(Restored::Gone),
        Err(error) => return Err(error),
    };
    let as_found = holds == found;
    // A way back that was begun is ours too.
    let is_ours = wrote.is_none_or(|wrote| holds == wrote || way_back == Some(&holds));
    if !as_found && !is_ours {
        return Ok(Restored::LeftAlone { holds });
    }
    if as_found && way_back.is_none() {
        return Ok(Restored::AsFound);
    }
    if let Some(via) = way_back {
        // Only a way: what was found is written in any case, and can be without it.
        let _ = fs.write(path, via);
    }
    match fs.write_and_read_back(path, found) {
        Ok(_) if as_found => Ok(Restored::AsFound),
        Ok(now) if now == found => Ok(Restored::PutBack),
        Ok(holds) => Ok(Restored::Differs { holds }),
        // Nothing had to change, and nothing may be: kernels before 6.12 answer EIO to a write
        // to an interrupt that can't be set, as if it were gone.
        Err(_) if as_found && fs.read_text(path).is_ok_and(|now| now == found) => {
            Ok(Restored::AsFound)
        }
        Err(error) if is_gone(&error) => Ok(Restored::Gone),
        Err(error) => Err(error),
    }
}

/// An interrupt's held directory answers `EIO` when the interrupt is gone, a device's
/// `ENODEV`.
fn is_gone(error: &Error) -> bool {
    error.is_not_found()
        || error
            .os()
            .is_some_and(|os| os.is(Errno::ENODEV) || os.is(Errno::EIO))
}

fn resume(fs: &HostFs, process: &Process) -> Result<Restored> {
    if !process.is_alive(fs) {
        return Ok(Restored::Gone);
    }
    if !process.is_stopped(fs) {
        return Ok(Restored::AsFound);
    }
    match kill(Pid::from_raw(process.pid as i32), Signal::SIGCONT) {
        Ok(()) => Ok(Restored::PutBack),
        Err(Errno::ESRCH) => Ok(Restored::Gone),
        Err(errno) => Err(Error::from_os(
            &fs.full_path(format!("proc/{}", process.pid)),
            "resume",
            errno.into(),
        )),
    }
}
