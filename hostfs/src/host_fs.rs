//! The root below which the machine is read: `/`, a captured tree, or a mounted host.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2, readlinkat};
use nix::sys::stat::Mode;
use nix::sys::statfs::{FsType, PROC_SUPER_MAGIC, SYSFS_MAGIC, fstatfs};

use crate::numeric_order::numeric_order;
use crate::{Attribute, Error, Result};

/// How often a lookup is tried again when a rename anywhere on the system disturbed it.
const LOOKUP_TRIES: u32 = 100;

/// A root that holds `proc/`, `sys/`, `dev/`, `run/`, `boot/` and `lib/modules/`.
///
/// Paths are given relative to it (`sys/devices/system/cpu/online`); a leading `/` is
/// taken off. Below a root that isn't `/`, links are resolved inside the root, so that
/// nothing in a captured tree can lead out of it. Cloning is cheap.
///
/// ```
/// use hostfs::HostFs;
///
/// let fs = HostFs::live();
/// let release: String = fs.read("proc/sys/kernel/osrelease")?;
/// println!("Linux {release}");
/// # Ok::<(), hostfs::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HostFs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// The root's directory; `None` for `/`, where plain `open` is right and cheaper.
    dir: Option<OwnedFd>,
}

impl HostFs {
    /// The running machine: `/`.
    pub fn live() -> Self {
        Self {
            inner: Arc::new(Inner {
                path: PathBuf::from("/"),
                dir: None,
            }),
        }
    }

    /// A captured tree, or a host's root that is mounted in a container.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] and the like if `dir` is no readable directory;
    /// [`Error::NotSupported`] if the kernel (before 5.6) or a container's filter lacks
    /// `openat2`, without which links could lead out of the root.
    pub fn at(dir: impl AsRef<Path>) -> Result<Self> {
        let path = std::path::absolute(dir.as_ref())
            .map_err(|error| Error::from_io(dir.as_ref(), "open", &error))?;
        if path == Path::new("/") {
            return Ok(Self::live());
        }
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = open(&path, flags, Mode::empty())
            .map_err(|errno| Error::from_os(&path, "open", errno.into()))?;
        let fs = Self {
            inner: Arc::new(Inner {
                path,
                dir: Some(dir),
            }),
        };
        fs.open_fd(Path::new("."), OFlag::O_PATH, "open")?;
        Ok(fs)
    }

    /// The root's own path.
    pub fn root(&self) -> &Path {
        &self.inner.path
    }

    /// The path that a message shows for a path below the root.
    pub fn full_path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.inner.path.join(relative(path.as_ref()))
    }

    /// True if the root's `proc` and `sys` are the running kernel's: only there can
    /// anything act on the kernel (perf events, pinning, signals).
    ///
    /// Asked of the file systems themselves (`statfs`), so it holds for `/` as for the
    /// host's root mounted in a container.
    pub fn is_this_machine(&self) -> bool {
        let is = |path: &str, magic: FsType| {
            self.open_fd(Path::new(path), OFlag::O_PATH, "open")
                .ok()
                .and_then(|fd| fstatfs(fd).ok())
                .is_some_and(|found| found.filesystem_type() == magic)
        };
        is("proc", PROC_SUPER_MAGIC) && is("sys", SYSFS_MAGIC)
    }

    /// Fails where [`is_this_machine`](Self::is_this_machine) is false.
    ///
    /// # Errors
    ///
    /// [`Error::NotThisMachine`], naming `what`.
    pub fn require_this_machine(&self, what: &'static str) -> Result<()> {
        if self.is_this_machine() {
            return Ok(());
        }
        Err(Error::NotThisMachine {
            what,
            root: self.root().to_path_buf(),
        })
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotPermitted`] or [`Error::Os`] with the kernel's answer.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<File> {
        // Without O_NONBLOCK a FIFO in a captured tree would block for ever.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        Ok(self.open_fd(path.as_ref(), flags, "open")?.into())
    }

    /// Opens a file again and again: see [`Attribute`].
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn attribute(&self, path: impl AsRef<Path>) -> Result<Attribute> {
        Attribute::open(self, path)
    }

    /// True if there is something at the path.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.open_fd(path.as_ref(), OFlag::O_PATH, "open").is_ok()
    }

    /// The whole file.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and what the kernel answers to the read (attributes answer
    /// late, e.g. `ENODATA` or `EINVAL`).
    pub fn read_bytes(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(&path)?
            .read_to_end(&mut bytes)
            .map_err(|error| Error::from_io(&self.full_path(&path), "read", &error))?;
        Ok(bytes)
    }

    /// The whole file as text, without white space at its end.
    ///
    /// # Errors
    ///
    /// As [`read_bytes`](Self::read_bytes); [`Error::Malformed`] if it is not UTF-8.
    pub fn read_text(&self, path: impl AsRef<Path>) -> Result<String> {
        let bytes = self.read_bytes(&path)?;
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let text = String::from_utf8_lossy(error.as_bytes());
            Error::malformed(self.full_path(&path), "UTF-8 text", &text)
        })?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// The file's one value: a number, a [`CpuSet`](crate::CpuSet), anything `FromStr`.
    ///
    /// # Errors
    ///
    /// As [`read_text`](Self::read_text); [`Error::Malformed`] with the text if it is not
    /// such a value.
    pub fn read<T: FromStr>(&self, path: impl AsRef<Path>) -> Result<T> {
        let text = self.read_text(&path)?;
        text.trim_start()
            .parse()
            .map_err(|_| Error::malformed(self.full_path(&path), type_name::<T>(), &text))
    }

    /// As [`read`](Self::read), with `None` for a file that is not there.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), other than [`Error::NotFound`].
    pub fn read_optional<T: FromStr>(&self, path: impl AsRef<Path>) -> Result<Option<T>> {
        match self.read(path) {
            Err(Error::NotFound { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// The kernel's release, from `proc/sys/kernel/osrelease` below this root.
    ///
    /// # Errors
    ///
    /// As [`read_text`](Self::read_text).
    pub fn kernel_release(&self) -> Result<String> {
        self.read_text("proc/sys/kernel/osrelease")
    }

    /// Where a symbolic link points, as it is written there.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); `EINVAL` or [`Error::NotFound`] if it is no link.
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
        let link = self.open_fd(path.as_ref(), flags, "read link")?;
        readlinkat(link, "")
            .map(PathBuf::from)
            .map_err(|errno| Error::from_os(&self.full_path(path), "read link", errno.into()))
    }

    /// The last part of what a link points to, as sysfs uses it (`driver`, `subsystem`);
    /// `None` where there is no such link.
    ///
    /// # Errors
    ///
    /// As [`read_link`](Self::read_link), other than [`Error::NotFound`].
    pub fn link_name(&self, path: impl AsRef<Path>) -> Result<Option<String>> {
        match self.read_link(path) {
            Err(Error::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
            Ok(target) => Ok(target
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())),
        }
    }

    /// The names in a directory, numbers in them in numeric order (`cpu2` before `cpu10`).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<String>> {
        let fail = |errno: Errno| Error::from_os(&self.full_path(&path), "list", errno.into());
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let mut dir = Dir::from_fd(self.open_fd(path.as_ref(), flags, "list")?).map_err(fail)?;
        let mut names = Vec::new();
        for entry in dir.iter() {
            let name = entry
                .map_err(fail)?
                .file_name()
                .to_string_lossy()
                .into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_by(|a, b| numeric_order(a, b));
        Ok(names)
    }

    /// The numbers `N` of the entries called exactly `<prefix>N` (`cpu3`, not `cpufreq`;
    /// an empty prefix takes entries that are numbers), ascending.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    pub fn list_numbered(&self, path: impl AsRef<Path>, prefix: &str) -> Result<Vec<u32>> {
        let mut numbers: Vec<u32> = self
            .list(path)?
            .iter()
            .filter_map(|name| {
                let digits = name.strip_prefix(prefix)?;
                let number: u32 = digits.parse().ok()?;
                (number.to_string() == digits).then_some(number)
            })
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes a value with one `write(2)`, so that the kernel's answer arrives with it.
    /// The file must exist.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotPermitted`], [`Error::ReadOnly`], or [`Error::Os`]
    /// with the kernel's answer to this value.
    pub fn write(&self, path: impl AsRef<Path>, value: &str) -> Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_TRUNC | OFlag::O_NOCTTY;
        let mut file = File::from(self.open_fd(path.as_ref(), flags, "write")?);
        loop {
            match file.write(value.as_bytes()) {
                Ok(written) if written == value.len() => return Ok(()),
                Ok(_) => {
                    return Err(Error::from_os(
                        &self.full_path(path),
                        "write in one piece",
                        Errno::EIO.into(),
                    ));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::from_io(&self.full_path(path), "write", &error));
                }
            }
        }
    }

    /// Writes a value, then reads what the kernel made of it (without white space at the
    /// end), which may differ: limits are clamped, sets are intersected.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write) and [`read_text`](Self::read_text).
    pub fn write_and_read_back(&self, path: impl AsRef<Path>, value: &str) -> Result<String> {
        self.write(&path, value)?;
        self.read_text(path)
    }

    /// Whether a file may be written to, without writing.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write), as far as opening the file tells.
    pub fn check_writable(&self, path: impl AsRef<Path>) -> Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        self.open_fd(path.as_ref(), flags, "write").map(drop)
    }

    fn open_fd(&self, path: &Path, flags: OFlag, operation: &'static str) -> Result<OwnedFd> {
        let flags = flags | OFlag::O_CLOEXEC;
        let path = relative(path);
        let answer = match &self.inner.dir {
            None => retry(Errno::EINTR, || {
                open(&self.inner.path.join(path), flags, Mode::empty())
            }),
            Some(dir) => {
                let how = OpenHow::new()
                    .flags(flags)
                    .resolve(ResolveFlag::RESOLVE_IN_ROOT);
                retry(Errno::EAGAIN, || openat2(dir.as_fd(), path, how))
            }
        };
        answer.map_err(|errno| match (&self.inner.dir, errno) {
            (Some(_), Errno::ENOSYS) => Error::NotSupported {
                what: format!("{} as a root", self.inner.path.display()),
                why: "openat2 is missing: Linux 5.6 is needed, and a container's filter \
                      must let it through"
                    .into(),
            },
            _ => Error::from_os(&self.full_path(path), operation, errno.into()),
        })
    }
}

/// Tries again, a bounded number of times, while the answer is `again`.
fn retry<T>(again: Errno, mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    for _ in 1..LOOKUP_TRIES {
        match call() {
            Err(errno) if errno == again => {}
            answer => return answer,
        }
    }
    call()
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// What a message calls the type that a file should have held.
fn type_name<T>() -> &'static str {
    match std::any::type_name::<T>() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "an unsigned number",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a number",
        name if name.ends_with("CpuSet") => "a list of CPUs",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuSet;
    use crate::test_tree::tree;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_live_root_is_this_machine_and_a_tree_is_not() {
        assert!(HostFs::live().is_this_machine());
        assert!(HostFs::at("/").unwrap().is_this_machine());
        let (dir, fs) = tree(&[("proc/x", ""), ("sys/x", "")]);
        assert!(!fs.is_this_machine());
        let message = fs.require_this_machine("pinning").unwrap_err().to_string();
        let root = dir.path().display();
        assert_eq!(
            message,
            format!("pinning acts on the running kernel, and {root} is not this machine")
        );
    }

    #[test]
    fn links_stay_inside_the_root() {
        let (dir, fs) = tree(&[("sys/a", "inside\n"), ("etc/hostname", "tree")]);
        symlink("/sys/a", dir.path().join("absolute")).unwrap();
        symlink("../../../../../../sys/a", dir.path().join("upwards")).unwrap();
        symlink("/proc/self/status", dir.path().join("out")).unwrap();
        assert_eq!(fs.read_text("absolute").unwrap(), "inside");
        assert_eq!(fs.read_text("upwards").unwrap(), "inside");
        assert_eq!(fs.read_text("/etc/../../etc/hostname").unwrap(), "tree");
        assert!(fs.read_text("out").unwrap_err().is_not_found());
        assert_eq!(fs.read_link("absolute").unwrap(), Path::new("/sys/a"));
        assert_eq!(fs.link_name("absolute").unwrap().as_deref(), Some("a"));
        assert_eq!(fs.link_name("sys/none").unwrap(), None);
    }

    #[test]
    fn a_value_is_typed_and_a_fault_names_the_file_and_the_text() {
        let (dir, fs) = tree(&[("n", " 42\n"), ("cpus", "0-3\n"), ("bad", "4x2\n")]);
        assert_eq!(fs.read::<u64>("n").unwrap(), 42);
        assert_eq!(fs.read::<CpuSet>("cpus").unwrap(), CpuSet::first(4));
        assert_eq!(fs.read_optional::<u64>("none").unwrap(), None);
        assert_eq!(
            fs.read::<u64>("bad").unwrap_err().to_string(),
            format!(
                "{}/bad: malformed: expected an unsigned number, found \"4x2\"",
                dir.path().display()
            )
        );
        fs::write(dir.path().join("binary"), [0xff, 0xfe]).unwrap();
        let binary = fs.read_text("binary").unwrap_err();
        assert!(matches!(binary, Error::Malformed { .. }), "{binary}");
        assert_eq!(fs.read_bytes("binary").unwrap(), [0xff, 0xfe]);
    }

    #[test]
    fn names_come_in_numeric_order() {
        let names = ["cpu10", "cpu2", "cpufreq", "cpu0", "cpu02", "cpu1a"];
        let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
        let (_dir, fs) = tree(&files);
        assert_eq!(
            fs.list(".").unwrap(),
            ["cpu0", "cpu1a", "cpu02", "cpu2", "cpu10", "cpufreq"]
        );
        assert_eq!(fs.list_numbered(".", "cpu").unwrap(), [0, 2, 10]);
        assert!(fs.list("none").unwrap_err().is_not_found());
    }

    #[test]
    fn a_write_replaces_and_needs_the_file() {
        let (dir, fs) = tree(&[("a", "a longer text\n")]);
        assert_eq!(fs.write_and_read_back("a", "1").unwrap(), "1");
        assert!(fs.write("b", "1").unwrap_err().is_not_found());
        assert!(!dir.path().join("b").exists());
        assert!(matches!(fs.write(".", "1"), Err(Error::Os { .. })));
        fs.check_writable("a").unwrap();
        assert_eq!(fs.read_text("a").unwrap(), "1", "nothing was written");
        assert!(fs.check_writable("b").unwrap_err().is_not_found());
    }

    #[test]
    fn a_fifo_or_a_directory_does_not_hang_a_read() {
        let (dir, fs) = tree(&[]);
        nix::unistd::mkfifo(&dir.path().join("fifo"), Mode::S_IRWXU).unwrap();
        assert_eq!(fs.read_bytes("fifo").unwrap(), b"");
        assert!(matches!(fs.read_bytes("."), Err(Error::Os { .. })));
    }

    #[test]
    fn a_root_that_is_not_there_is_named() {
        assert_eq!(
            HostFs::at("/nowhere/at/all").unwrap_err().to_string(),
            "/nowhere/at/all: not there"
        );
    }

    #[test]
    fn lookups_are_tried_again_a_bounded_number_of_times() {
        let mut calls = 0;
        let answer: nix::Result<u32> = retry(Errno::EAGAIN, || {
            calls += 1;
            if calls < 5 {
                Err(Errno::EAGAIN)
            } else {
                Ok(calls)
            }
        });
        assert_eq!(answer, Ok(5));
        let mut calls = 0;
        let never: nix::Result<()> = retry(Errno::EAGAIN, || {
            calls += 1;
            Err(Errno::EAGAIN)
        });
        assert_eq!((never, calls), (Err(Errno::EAGAIN), LOOKUP_TRIES));
    }
}
