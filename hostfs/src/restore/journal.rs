//! The record in a file, for the case that the process is killed.
//!
//! One folder holds the records and a lock. Who changes the machine holds the lock, so
//! that two can't undo each other; `replay` takes it too, so a record that it finds is
//! never one of a living process.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use super::{Entry, Restore, Restored, State};
use crate::{Error, HostFs, Result};

const SCHEMA: &str = "restore-record/1";

/// What values that are written on the way back are given to take effect, all together: an
/// interrupt may move to its CPU only when it next fires.
const WAY_BACK: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    head: Head,
    /// Held as long as changes may be made.
    _lock: File,
}

/// What a record says of itself.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Head {
    schema: String,
    command: String,
    root: PathBuf,
    /// Settings end with the boot that they were made in.
    boot_id: Option<String>,
}

#[derive(serde::Serialize)]
struct RecordOut<'a> {
    #[serde(flatten)]
    head: &'a Head,
    entries: Vec<&'a Entry>,
}

#[derive(serde::Deserialize)]
struct Record {
    #[serde(flatten)]
    head: Head,
    entries: Vec<Entry>,
}

/// What [`Restore::replay`] did with one record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Replayed {
    /// The record's file.
    pub path: PathBuf,
    /// The command that had been killed.
    pub command: String,
    /// What had been changed, the latest first, and what became of it.
    pub outcomes: Vec<(Entry, Result<Restored>)>,
    /// Why the record itself could not be read; nothing was put back from it then.
    pub unreadable: Option<Error>,
}

impl Replayed {
    fn unreadable(path: PathBuf, error: Error) -> Self {
        Self {
            path,
            command: "unknown".into(),
            outcomes: Vec::new(),
            unreadable: Some(error),
        }
    }
}

impl Restore {
    /// A record that is also kept in `<dir>/<command>-<pid>.json` while anything is
    /// changed, under a lock in that folder that only one process holds. The folder is
    /// made if need be (`/run/wakecost` is the usual one for root).
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if another process is changing settings; [`Error::Leftover`] if
    /// one that was killed left some changed; [`Error::NotOurs`] for a folder of another
    /// user; [`Error::Malformed`] for a record that can't be read; what hinders the folder from being made or
    /// written to.
    pub fn journaled(fs: &HostFs, dir: impl AsRef<Path>, command: &str) -> Result<Self> {
        let dir = dir.as_ref();
        let lock = lock(dir)?;
        let boot_id = boot_id(fs);
        for Found { path, record } in records(dir)? {
            let record = record?;
            if !record.is_of_boot(boot_id.as_deref()) {
                remove(&path)?;
            } else if !record.entries.is_empty() {
                return Err(Error::Leftover { path });
            }
        }
        let journal = Journal {
            path: dir.join(format!("{command}-{}.json", std::process::id())),
            head: Head {
                schema: SCHEMA.into(),
                command: command.into(),
                root: fs.root().to_path_buf(),
                boot_id,
            },
            _lock: lock,
        };
        // Found out now, not at the first change: a full disk, a read-only folder.
        journal.write(&[])?;
        remove(&journal.path)?;
        Ok(Self::with_state(
            fs,
            State {
                journal: Some(journal),
                ..State::default()
            },
        ))
    }

    /// Puts back what killed processes left changed according to the records in a folder,
    /// and deletes those of which nothing is left to do. Empty if there are none, or no
    /// such folder. Records of an earlier boot are deleted: their settings ended with it.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while a process is changing settings; [`Error::NotOurs`] for a
    /// folder of another user; what hinders the folder from being read.
    pub fn replay(dir: impl AsRef<Path>) -> Result<Vec<Replayed>> {
        let dir = dir.as_ref();
        if !dir.is_dir() {
            return Ok(Vec::new());
        }
        let _lock = lock(dir)?;
        let mut replayed = Vec::new();
        for Found { path, record } in records(dir)? {
            let record = match record {
                Ok(record) => record,
                // The others are put back all the same.
                Err(error) => {
                    replayed.push(Replayed::unreadable(path, error));
                    continue;
                }
            };
            let fs = HostFs::at(&record.head.root)?;
            let mut outcomes = Vec::new();
            if record.is_of_boot(boot_id(&fs).as_deref()) {
                let set_out = record.entries.iter().filter(|entry| entry.set_out(&fs));
                if set_out.count() > 0 {
                    std::thread::sleep(WAY_BACK);
                }
                for entry in record.entries.iter().rev() {
                    outcomes.push((entry.clone(), entry.put_back(&fs)));
                }
            }
            if outcomes.iter().all(|(_, outcome)| outcome.is_ok()) {
                remove(&path)?;
            }
            replayed.push(Replayed {
                path,
                command: record.head.command,
                outcomes,
                unreadable: None,
            });
        }
        Ok(replayed)
    }
}

impl Journal {
    /// Replaces the file, or deletes it when nothing is changed any more.
    pub(super) fn save<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> Result<()> {
        let entries: Vec<&Entry> = entries.collect();
        if entries.is_empty() {
            return remove(&self.path);
        }
        self.write(&entries)
    }

    fn write(&self, entries: &[&Entry]) -> Result<()> {
        let record = RecordOut {
            head: &self.head,
            entries: entries.to_vec(),
        };
        let text = serde_json::to_string_pretty(&record)
            .map_err(|error| Error::malformed(&self.path, "a record", &error.to_string()))?;
        // A process killed in the middle of a write must leave the old record whole.
        let new = self.path.with_extension("new");
        let replace = || -> std::io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&new, &self.path)
        };
        replace().map_err(|error| {
            let _ = fs::remove_file(&new);
            Error::from_io(&self.path, "write", &error)
        })
    }
}

impl Record {
    /// Unknown boots count as this one: putting back is harmless, forgetting is not.
    fn is_of_boot(&self, boot_id: Option<&str>) -> bool {
        match (self.head.boot_id.as_deref(), boot_id) {
            (Some(then), Some(now)) => then == now,
            _ => true,
        }
    }
}

fn boot_id(fs: &HostFs) -> Option<String> {
    fs.read_text("proc/sys/kernel/random/boot_id").ok()
}

/// A record must not make a privileged replay write elsewhere.
fn is_ours(entry: &Entry) -> bool {
    let Some(path) = entry.path() else {
        return true;
    };
    let mut parts = path.components();
    let first = parts.next();
    [
        Some(Component::Normal("proc".as_ref())),
        Some(Component::Normal("sys".as_ref())),
    ]
    .contains(&first)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// A name of ours: the folder may hold other files.
const LOCK: &str = ".wakecost.lock";

fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let made = DirBuilder::new().recursive(true).mode(0o755).create(dir);
    made.map_err(|error| Error::from_io(&path, "open", &error))?;
    check_owner(dir)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = open_own(&path, &mut options)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = (&file).take(20).read_to_string(&mut holder);
            return Err(Error::Locked { path, holder });
        }
        Err(TryLockError::Error(error)) => {
            return Err(Error::from_io(&path, "lock", &error));
        }
    }
    let mut name_holder = || -> std::io::Result<()> {
        file.set_len(0)?;
        file.write_all(std::process::id().to_string().as_bytes())
    };
    name_holder().map_err(|error| Error::from_io(&path, "write", &error))?;
    Ok(file)
}

/// Opens a regular file of this user: no link, which could lead to another file, and no
/// FIFO, which could block for ever.
fn open_own(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let fail = |error: &std::io::Error| Error::from_io(path, "open", error);
    let file = options
        .custom_flags(flags.bits())
        .open(path)
        .map_err(|error| fail(&error))?;
    let metadata = file.metadata().map_err(|error| fail(&error))?;
    if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
        return Err(Error::NotOurs { path: path.into() });
    }
    Ok(file)
}

/// What a folder of another user holds must not decide what this one writes.
fn check_owner(dir: &Path) -> Result<()> {
    let metadata = fs::metadata(dir).map_err(|error| Error::from_io(dir, "open", &error))?;
    if metadata.uid() == geteuid().as_raw() {
        Ok(())
    } else {
        Err(Error::NotOurs { path: dir.into() })
    }
}

/// A file in the folder that is called as a record is.
struct Found {
    path: PathBuf,
    record: Result<Record>,
}

/// The records in the folder; other files are not ours to judge.
fn records(dir: &Path) -> Result<Vec<Found>> {
    let list = fs::read_dir(dir).map_err(|error| Error::from_io(dir, "list", &error))?;
    let mut paths: Vec<PathBuf> = list
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_called_as_a_record(path))
        .collect();
    paths.sort();
    Ok(paths
        .into_iter()
        .map(|path| Found {
            record: read_record(&path),
            path,
        })
        .collect())
}

/// `<command>-<pid>.json`.
fn is_called_as_a_record(path: &Path) -> bool {
    let pid = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_suffix(".json")?.rsplit_once('-'));
    pid.is_some_and(|(_, pid)| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

fn read_record(path: &Path) -> Result<Record> {
    let mut file = open_own(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| Error::from_io(path, "read", &error))?;
    match serde_json::from_slice::<Record>(&bytes) {
        Ok(record) if record.head.schema == SCHEMA && record.entries.iter().all(is_ours) => {
            Ok(record)
        }
        _ => {
            let text = String::from_utf8_lossy(&bytes);
            let expected = "a record of changes below proc and sys";
            Err(Error::malformed(path, expected, &text))
        }
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::from_io(path, "delete", &error))
        }
        _ => Ok(()),
    }
}
