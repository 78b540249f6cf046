//! Changes that put themselves back.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use hostfs::{Change, CpuSet, Restore};

use crate::idle::{global, state_dir};
use crate::{CpuIdle, Error};

/// Which idle state is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum StateSelection {
    /// By its number on each CPU.
    Index(u32),
    /// By its name, on each CPU that has a state of that name.
    Name(String),
}

/// A number, `state<number>` or a name.
impl FromStr for StateSelection {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let digits = text.strip_prefix("state").unwrap_or(text);
        Ok(match digits.parse() {
            Ok(index) if digits.bytes().all(|b| b.is_ascii_digit()) => Self::Index(index),
            _ => Self::Name(text.to_owned()),
        })
    }
}

impl fmt::Display for StateSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateSelection::Index(index) => write!(f, "{index}"),
            StateSelection::Name(name) => write!(f, "{name:?}"),
        }
    }
}

impl CpuIdle {
    /// Disables a state on these CPUs until the guards are dropped. A guard for each CPU
    /// where something had to be changed: where the state was off already, by default or
    /// by the user, it is left so, then too. Each change is read back. The record must be
    /// of the same root. Needs `CAP_SYS_ADMIN`.
    ///
    /// A CPU without such a state is passed over if another one has it, since CPUs can
    /// differ in their states. Governors may still use the state 0 when all are disabled.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownState`] listing the states, if none of the CPUs has it;
    /// [`Error::UnknownCpus`] for a CPU without idle states; [`Error::NotPermitted`];
    /// [`Error::NotTaken`]; [`Error::Host`]. Nothing is changed then.
    pub fn disable_state(
        &self,
        record: &Restore,
        state: &StateSelection,
        cpus: &CpuSet,
    ) -> Result<Vec<Change>, Error> {
        let there = self.cpu_set();
        if !cpus.is_subset(&there) {
            return Err(Error::UnknownCpus {
                asked: cpus - &there,
                there,
            });
        }
        let mut found = false;
        let mut changes = Vec::new();
        for cpu in self.cpus().iter().filter(|cpu| cpus.contains(cpu.cpu)) {
            let selected = cpu.states.iter().filter(|there| match state {
                StateSelection::Index(index) => there.index == *index,
                StateSelection::Name(name) => there.name == *name,
            });
            for there in selected {
                found = true;
                let path = state_dir(cpu.cpu, there.index).join("disable");
                if record.fs().read::<u64>(&path)? == 0 {
                    changes.push(set(record, &path, "1")?);
                }
            }
        }
        if !found {
            return Err(Error::UnknownState {
                asked: state.clone(),
                there: self.state_names(cpus),
            });
        }
        Ok(changes)
    }

    /// Selects a governor until the guard is dropped; `None` if it is selected already.
    /// The change is read back. The record must be of the same root. Needs root.
    ///
    /// The kernel makes the states' directories anew; a [`Snapshotter`](crate::Snapshotter)
    /// goes on, and the counters carry on.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGovernor`] listing the governors; [`Error::GovernorFixed`] on old
    /// kernels; [`Error::NotPermitted`]; [`Error::NotTaken`]; [`Error::Host`]. Nothing is
    /// changed then.
    pub fn set_governor(&self, record: &Restore, name: &str) -> Result<Option<Change>, Error> {
        let path = global("current_governor");
        let current = match record.fs().read_text(&path) {
            Err(error) if error.is_not_found() => {
                return Err(Error::GovernorFixed {
                    path: record.fs().full_path(path),
                });
            }
            current => current?,
        };
        if let Some(there) = self.available_governors()
            && !there.iter().any(|there| there == name)
        {
            return Err(Error::UnknownGovernor {
                asked: name.to_owned(),
                there: there.to_vec(),
            });
        }
        if current == name {
            return Ok(None);
        }
        set(record, &path, name).map(Some)
    }

    /// The different states of these CPUs as `index name`.
    fn state_names(&self, cpus: &CpuSet) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for cpu in self.cpus().iter().filter(|cpu| cpus.contains(cpu.cpu)) {
            for state in &cpu.states {
                let name = format!("{} {:?}", state.index, state.name);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }
}

/// Writes and verifies. Dropping the guard on an error puts back what was found.
fn set(record: &Restore, path: &Path, value: &str) -> Result<Change, Error> {
    let change = record.set(path, value).map_err(|error| match error {
        hostfs::Error::NotPermitted { path, .. } => Error::NotPermitted { path },
        other => Error::Host(other),
    })?;
    if change.now() != value {
        return Err(Error::NotTaken {
            path: record.fs().full_path(path),
            wrote: value.to_owned(),
            holds: change.now().to_owned(),
        });
    }
    Ok(change)
}
