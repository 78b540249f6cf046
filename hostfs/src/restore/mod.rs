//! What was found before a change, so that it can be put back.

mod entry;
#[cfg(feature = "journal")]
mod journal;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Error, HostFs, Process, Result};
pub use entry::{Entry, Restored};
#[cfg(feature = "journal")]
pub use journal::Replayed;

/// The one record behind every temporary change: what each file held and what was written.
///
/// Each change is a guard ([`Change`]) that puts back what it found when it is dropped, on
/// an error and on a panic too. With the feature `journal` the record is also kept in a
/// file ([`Restore::journaled`]), so that another process can put everything back after a
/// `SIGKILL` ([`Restore::replay`]). Clones share one record.
///
/// ```
/// use hostfs::{HostFs, Restore, Restored};
/// # let dir = tempfile::tempdir().unwrap();
/// # std::fs::create_dir(dir.path().join("sys")).unwrap();
/// # std::fs::write(dir.path().join("sys/governor"), "menu\n").unwrap();
/// # let fs = HostFs::at(dir.path())?;
///
/// let record = Restore::new(&fs);
/// let change = record.set("sys/governor", "teo")?;
/// assert_eq!((change.found(), change.now()), ("menu", "teo"));
/// assert_eq!(change.restore()?, Restored::PutBack);
/// assert_eq!(fs.read_text("sys/governor")?, "menu");
/// # Ok::<(), hostfs::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Restore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    fs: HostFs,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they were made.
    entries: Vec<(u64, Entry)>,
    next_id: u64,
    /// What could not be put back.
    failed: Vec<Entry>,
    troubles: Vec<Trouble>,
    #[cfg(feature = "journal")]
    journal: Option<journal::Journal>,
}

/// A change that did not simply go back to what was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trouble {
    /// What had been changed.
    pub entry: Entry,
    /// What became of it.
    pub outcome: Result<Restored>,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.outcome {
            Ok(outcome) => write!(f, "{}: {outcome}", self.entry),
            Err(error) => write!(f, "{}: not put back: {error}", self.entry),
        }
    }
}

impl Restore {
    /// A record in memory only.
    pub fn new(fs: &HostFs) -> Self {
        Self::with_state(fs, State::default())
    }

    fn with_state(fs: &HostFs, state: State) -> Self {
        Self {
            shared: Arc::new(Shared {
                fs: fs.clone(),
                state: Mutex::new(state),
            }),
        }
    }

    /// The root that the changes are made below.
    pub fn fs(&self) -> &HostFs {
        &self.shared.fs
    }

    /// Writes a value and remembers what was found there.
    ///
    /// A value that the kernel prints otherwise than it was written (such as CPUs out of
    /// order) should be given as the kernel prints it, since a file that holds neither what
    /// was found nor what was written is later left alone.
    ///
    /// # Errors
    ///
    /// As [`HostFs::read_text`] and [`HostFs::write`]; or what hinders the record's file
    /// from being written. Nothing is changed then.
    pub fn set(&self, path: impl AsRef<Path>, value: &str) -> Result<Change> {
        let path = path.as_ref();
        let found = self.fs().read_text(path)?;
        let entry = Entry::file(path, &found, Some(value));
        let mut state = self.shared.state();
        let id = state.add(entry)?;
        if let Err(error) = self.fs().write(path, value) {
            state.remove(id);
            return Err(error);
        }
        let now = match self.fs().read_text(path) {
            Ok(now) => now,
            Err(error) => {
                drop(state);
                let _ = self.put_back(id);
                return Err(error);
            }
        };
        if now != value {
            state.note_written(id, &now);
        }
        Ok(self.change(id, path, found, now))
    }

    /// Remembers a file that a program of ours is about to write: whatever it then holds is
    /// replaced by what was found.
    ///
    /// # Errors
    ///
    /// As [`HostFs::read_text`]; or what hinders the record's file from being written.
    pub fn expect(&self, path: impl AsRef<Path>) -> Result<Change> {
        let path = path.as_ref();
        let found = self.fs().read_text(path)?;
        let id = self.shared.state().add(Entry::file(path, &found, None))?;
        Ok(self.change(id, path, found.clone(), found))
    }

    /// Remembers many files at once, as [`expect`](Self::expect) does, with one write of
    /// the record. Each is given with the value to write on the way back, if any
    /// ([`Change::with_way_back`]).
    ///
    /// # Errors
    ///
    /// As [`expect`](Self::expect); nothing is remembered then.
    pub fn expect_all<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = (P, Option<String>)>,
    ) -> Result<Vec<Change>> {
        let mut found = Vec::new();
        for (path, via) in files {
            let text = self.fs().read_text(&path)?;
            let mut entry = Entry::file(path.as_ref(), &text, None);
            entry.set_way_back(via);
            found.push((path, text, entry));
        }
        let entries = found.iter().map(|(_, _, entry)| entry.clone()).collect();
        let first = self.shared.state().add_all(entries)?;
        Ok((first..)
            .zip(found)
            .map(|(id, (path, text, _))| self.change(id, path.as_ref(), text.clone(), text))
            .collect())
    }

    /// Stops a process (`SIGSTOP`) until the guard is dropped (`SIGCONT`). One that is
    /// stopped already is left as it is, then too.
    ///
    /// # Errors
    ///
    /// [`Error::NotThisMachine`], [`Error::NotFound`] if it has ended,
    /// [`Error::NotPermitted`] for a process of another user without `CAP_KILL`.
    pub fn pause(&self, process: &Process) -> Result<Change> {
        self.fs().require_this_machine("pausing a process")?;
        let entry = Entry::Paused {
            process: process.clone(),
        };
        let path = format!("proc/{}", process.pid);
        if !process.is_alive(self.fs()) {
            return Err(Error::NotFound {
                path: self.fs().full_path(path),
            });
        }
        let mut state = self.shared.state();
        let id = if process.is_stopped(self.fs()) {
            state.unused_id()
        } else {
            let id = state.add(entry)?;
            if let Err(errno) = kill(Pid::from_raw(process.pid as i32), Signal::SIGSTOP) {
                state.remove(id);
                return Err(Error::from_os(
                    &self.fs().full_path(path),
                    "pause",
                    errno.into(),
                ));
            }
            id
        };
        drop(state);
        Ok(self.change(id, Path::new(&path), "running".into(), "stopped".into()))
    }

    /// Puts everything back that is still changed, the latest change first. The guards
    /// then find nothing left to do.
    pub fn restore_all(&self) {
        loop {
            let Some(id) = self.shared.state().entries.last().map(|(id, _)| *id) else {
                return;
            };
            let _ = self.put_back(id);
        }
    }

    /// What was not simply put back, since the record began.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.shared.state().troubles.clone()
    }

    fn change(&self, id: u64, path: &Path, found: String, now: String) -> Change {
        Change {
            record: self.clone(),
            id,
            path: path.to_path_buf(),
            found,
            now,
        }
    }

    /// Puts one change back and takes it out of the record. One that fails is kept for a
    /// later replay of the record's file.
    fn put_back(&self, id: u64) -> Result<Restored> {
        let mut state = self.shared.state();
        let Some(at) = state.entries.iter().position(|(other, _)| *other == id) else {
            return Ok(Restored::AsFound);
        };
        let entry = state.entries[at].1.clone();
        if let Some(later) = state.entries[at + 1..]
            .iter_mut()
            .find_map(|(_, later)| later.inherits_from(&entry).then_some(later))
        {
            // Somebody changed the same file after us: they put back what we found.
            later.inherit(&entry);
            state.remove(id);
            return Ok(Restored::AsFound);
        }
        let outcome = entry.put_back(&self.shared.fs);
        if outcome.is_err() {
            state.failed.push(entry.clone());
        }
        state.remove(id);
        if !matches!(outcome, Ok(Restored::AsFound | Restored::PutBack)) {
            state.troubles.push(Trouble {
                entry,
                outcome: outcome.clone(),
            });
        }
        outcome
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not keep the machine from being put back.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unused_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn add(&mut self, entry: Entry) -> Result<u64> {
        self.add_all(vec![entry])
    }

    /// Adds entries under consecutive numbers, of which the first is returned.
    fn add_all(&mut self, entries: Vec<Entry>) -> Result<u64> {
        let (first, before) = (self.next_id + 1, self.entries.len());
        for entry in entries {
            let id = self.unused_id();
            self.entries.push((id, entry));
        }
        if let Err(error) = self.save() {
            self.entries.truncate(before);
            return Err(error);
        }
        Ok(first)
    }

    fn remove(&mut self, id: u64) {
        self.entries.retain(|(other, _)| *other != id);
        // An entry too many in the file is harmless: its file holds what was found.
        let _ = self.save();
    }

    fn note_written(&mut self, id: u64, now: &str) {
        if let Some((_, entry)) = self.entries.iter_mut().find(|(other, _)| *other == id) {
            entry.set_wrote(now);
            let _ = self.save();
        }
    }

    #[cfg(feature = "journal")]
    fn save(&mut self) -> Result<()> {
        match &self.journal {
            Some(journal) => {
                let changed = self.entries.iter().map(|(_, entry)| entry);
                journal.save(self.failed.iter().chain(changed))
            }
            None => Ok(()),
        }
    }

    #[cfg(not(feature = "journal"))]
    fn save(&mut self) -> Result<()> {
        Ok(())
    }
}

/// One temporary change: dropping it puts back what was found.
#[derive(Debug)]
#[must_use = "dropping a change puts back what was found"]
pub struct Change {
    record: Restore,
    id: u64,
    path: std::path::PathBuf,
    found: String,
    now: String,
}

impl Change {
    /// The changed file, below its root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file held before.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What the kernel made of the value that was written.
    pub fn now(&self) -> &str {
        &self.now
    }

    /// On the way back, writes this value first and then what was found: for files whose
    /// effect depends on the order (an interrupt stays on its CPU where the new affinity
    /// allows that).
    ///
    /// # Errors
    ///
    /// What hinders the record's file from being written; the change stands.
    pub fn with_way_back(self, via: &str) -> Result<Self> {
        let mut state = self.record.shared.state();
        if let Some((_, entry)) = state.entries.iter_mut().find(|(id, _)| *id == self.id) {
            entry.set_way_back(Some(via.to_owned()));
            state.save()?;
        }
        drop(state);
        Ok(self)
    }

    /// Puts back what was found and says how that went.
    ///
    /// # Errors
    ///
    /// What the kernel answered. The entry stays in the record's file then.
    pub fn restore(mut self) -> Result<Restored> {
        let outcome = self.record.put_back(self.id);
        // Nothing is left for the drop to do: numbers begin at 1.
        self.id = 0;
        outcome
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let _ = self.record.put_back(self.id);
    }
}
