//! What can go wrong when the machine is read or changed.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that touches the machine.
pub type Result<T> = std::result::Result<T, Error>;

/// The kernel's answer to a failed call: an `errno` value.
///
/// Kept as a number so that errors stay `Clone` and `PartialEq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OsError(i32);

impl OsError {
    /// Takes an `errno` value such as `2` (`ENOENT`).
    pub fn from_raw(errno: i32) -> Self {
        Self(errno)
    }

    /// The `errno` value.
    pub fn raw(self) -> i32 {
        self.0
    }

    pub(crate) fn is(self, errno: nix::errno::Errno) -> bool {
        self.0 == errno as i32
    }
}

impl From<&io::Error> for OsError {
    /// Errors without an `errno` (such as invalid UTF-8) become `EIO`.
    fn from(error: &io::Error) -> Self {
        Self(
            error
                .raw_os_error()
                .unwrap_or(nix::errno::Errno::EIO as i32),
        )
    }
}

impl From<nix::errno::Errno> for OsError {
    fn from(errno: nix::errno::Errno) -> Self {
        Self(errno as i32)
    }
}

impl std::fmt::Display for OsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

/// Why something of the machine could not be read or changed.
///
/// Each names the file, what the kernel answered, what that means and, where there is
/// one, the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file: this kernel, machine or captured tree does not have it.
    #[error("{}: not there", path.display())]
    NotFound {
        /// The file, below its root.
        path: PathBuf,
    },
    /// The kernel refused for lack of privilege.
    #[error("{}: {operation} not permitted ({os}): run as root or with the capability that the file asks for", path.display())]
    NotPermitted {
        /// The file, below its root.
        path: PathBuf,
        /// What was tried, e.g. `read`.
        operation: &'static str,
        /// The kernel's answer.
        os: OsError,
    },
    /// The file system is mounted read-only, as in most containers.
    #[error("{}: read-only file system: in a container? Run on the host, or mount /proc and /sys writable", path.display())]
    ReadOnly {
        /// The file, below its root.
        path: PathBuf,
    },
    /// This kernel, file system or container filter lacks what is needed.
    #[error("{what}: not supported: {why}")]
    NotSupported {
        /// What was asked for.
        what: String,
        /// What is lacking.
        why: String,
    },
    /// The file holds something else than its kind of file may hold.
    #[error("{}: malformed: expected {expected}, found {text:?}", path.display())]
    Malformed {
        /// The file, below its root.
        path: PathBuf,
        /// What the file should have held.
        expected: &'static str,
        /// The start of what it held.
        text: String,
    },
    /// The kernel gave fewer bytes than what was asked for consists of.
    #[error("{}: read {got} bytes of {expected}", path.display())]
    ShortRead {
        /// The file, below its root.
        path: PathBuf,
        /// How many bytes make a whole.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// The CPU is offline, or there is none of that number.
    #[error("{}: CPU {cpu} is not online", path.display())]
    Offline {
        /// The file or directory that was asked about it, below its root.
        path: PathBuf,
        /// The CPU.
        cpu: u32,
    },
    /// The kernel's answer was none of the above.
    #[error("{}: {operation} failed: {os}", path.display())]
    Os {
        /// The file, below its root.
        path: PathBuf,
        /// What was tried, e.g. `read`.
        operation: &'static str,
        /// The kernel's answer.
        os: OsError,
    },
    /// The root is a captured tree or a mounted host: what acts on the running kernel
    /// cannot work there.
    #[error("{what} acts on the running kernel, and {} is not this machine", root.display())]
    NotThisMachine {
        /// What was asked for.
        what: &'static str,
        /// The root that is not this machine.
        root: PathBuf,
    },
    /// Another process is changing the machine's settings.
    #[error("{}: locked by process {holder}, which may have settings changed: wait for it to end, or end it", path.display())]
    Locked {
        /// The lock's file.
        path: PathBuf,
        /// The process that holds it, as it wrote itself down.
        holder: String,
    },
    /// A record of changes, its lock or its folder belongs to another user, or is no plain
    /// file: what it says is not believed.
    #[error("{}: not a plain file or folder of this user: a record of changes is read only by who wrote it", path.display())]
    NotOurs {
        /// The file or folder.
        path: PathBuf,
    },
    /// A process that was killed left settings changed.
    #[error("{}: a run that was killed left settings changed: put them back with `restore --dir {}`", path.display(), folder(path))]
    Leftover {
        /// The record of what it had changed.
        path: PathBuf,
    },
}

fn folder(path: &Path) -> std::path::Display<'_> {
    path.parent().unwrap_or(path).display()
}

impl Error {
    /// Sorts the kernel's answer into the case that the caller can act on.
    pub(crate) fn from_os(path: &Path, operation: &'static str, os: OsError) -> Self {
        use nix::errno::Errno;
        let path = path.to_path_buf();
        if os.is(Errno::ENOENT) || os.is(Errno::ENOTDIR) {
            Error::NotFound { path }
        } else if os.is(Errno::EACCES) || os.is(Errno::EPERM) {
            Error::NotPermitted {
                path,
                operation,
                os,
            }
        } else if os.is(Errno::EROFS) {
            Error::ReadOnly { path }
        } else {
            Error::Os {
                path,
                operation,
                os,
            }
        }
    }

    pub(crate) fn from_io(path: &Path, operation: &'static str, error: &io::Error) -> Self {
        Self::from_os(path, operation, OsError::from(error))
    }

    /// A [`Error::Malformed`] that carries at most the first 80 characters of the text.
    pub fn malformed(path: impl AsRef<Path>, expected: &'static str, text: &str) -> Self {
        Error::Malformed {
            path: path.as_ref().to_path_buf(),
            expected,
            text: text.chars().take(80).collect(),
        }
    }

    /// True where the file is simply absent.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound { .. })
    }

    /// The kernel's answer, where there was one.
    pub fn os(&self) -> Option<OsError> {
        match self {
            Error::NotPermitted { os, .. } | Error::Os { os, .. } => Some(*os),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn sorted(errno: Errno) -> Error {
        Error::from_os(Path::new("sys/x"), "write", errno.into())
    }

    #[test]
    fn answers_are_sorted_by_what_the_user_can_do() {
        assert!(sorted(Errno::ENOENT).is_not_found());
        assert!(matches!(sorted(Errno::EPERM), Error::NotPermitted { .. }));
        assert!(matches!(sorted(Errno::EACCES), Error::NotPermitted { .. }));
        assert!(matches!(sorted(Errno::EROFS), Error::ReadOnly { .. }));
        assert_eq!(
            sorted(Errno::EINVAL).os(),
            Some(OsError::from_raw(22)),
            "EINVAL is 22 in asm-generic/errno-base.h"
        );
    }

    #[test]
    fn messages_name_file_answer_and_remedy() {
        assert_eq!(
            sorted(Errno::EACCES).to_string(),
            "sys/x: write not permitted (Permission denied (os error 13)): run as root or \
             with the capability that the file asks for"
        );
        assert_eq!(sorted(Errno::ENOENT).to_string(), "sys/x: not there");
        assert!(sorted(Errno::EROFS).to_string().contains("container"));
        let leftover = Error::Leftover {
            path: "/run/wakecost/ab-1.json".into(),
        };
        assert_eq!(
            leftover.to_string(),
            "/run/wakecost/ab-1.json: a run that was killed left settings changed: put them \
             back with `restore --dir /run/wakecost`"
        );
        assert_eq!(
            sorted(Errno::EINVAL).to_string(),
            "sys/x: write failed: Invalid argument (os error 22)"
        );
    }

    #[test]
    fn malformed_text_is_cut() {
        let Error::Malformed { text, .. } =
            Error::malformed("sys/x", "a number", &"9".repeat(1000))
        else {
            panic!("not malformed");
        };
        assert_eq!(text.len(), 80);
    }
}
