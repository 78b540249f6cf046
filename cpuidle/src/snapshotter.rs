//! The open counters.

use std::path::PathBuf;
use std::sync::Arc;

use hostfs::{Attribute, CpuSet, HostFs, Stamps};

use crate::idle::{online_path, state_dir};
use crate::snapshot::{Layout, LayoutCpu};
use crate::{Counters, Cpu, Error, Fault, Snapshot, State};

/// The kernel prints no longer attribute than a page.
const PAGE: usize = 4096;

/// The counters of every state, kept open.
///
/// A snapshot takes one `pread` for each counter and one look at the clock for each CPU
/// and, with [`snapshot_into`](Self::snapshot_into), no allocation. It has the CPUs that
/// were online when it was opened: of those that leave, the states have
/// [`Fault::Offline`]; for those that come, open another one. Past the limit of open
/// files, files are opened for each read.
#[derive(Debug)]
pub struct Snapshotter {
    fs: HostFs,
    layout: Arc<Layout>,
    cpus: Vec<CpuFiles>,
    online: Online,
}

#[derive(Debug)]
struct CpuFiles {
    cpu: u32,
    states: Vec<StateFiles>,
}

#[derive(Debug)]
struct StateFiles {
    name_path: PathBuf,
    name: String,
    usage: Attribute,
    time: Attribute,
    above: Option<Attribute>,
    below: Option<Attribute>,
    rejected: Option<Attribute>,
    /// How often files had been opened anew when the state was last found to be the same.
    known: u64,
}

impl Snapshotter {
    pub(crate) fn open(fs: &HostFs, cpus: &[Cpu]) -> Result<Self, Error> {
        let layout = Layout {
            cpus: cpus
                .iter()
                .map(|cpu| LayoutCpu {
                    cpu: cpu.cpu,
                    states: cpu
                        .states
                        .iter()
                        .map(|state| (state.index, state.name.clone()))
                        .collect(),
                })
                .collect(),
        };
        let cpus = cpus
            .iter()
            .map(|cpu| {
                let states = cpu
                    .states
                    .iter()
                    .map(|state| StateFiles::open(fs, cpu.cpu, state))
                    .collect::<hostfs::Result<_>>()?;
                Ok(CpuFiles {
                    cpu: cpu.cpu,
                    states,
                })
            })
            .collect::<hostfs::Result<_>>()?;
        Ok(Self {
            fs: fs.clone(),
            layout: Arc::new(layout),
            cpus,
            online: Online::open(fs)?,
        })
    }

    /// Reads every counter. One that fails has its reason in the snapshot.
    pub fn snapshot(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::empty(&self.layout);
        self.snapshot_into(&mut snapshot);
        snapshot
    }

    /// As [`snapshot`](Self::snapshot), into an earlier snapshot of this reader, whose
    /// memory is used again: allocates nothing unless a counter fails or CPUs came or went.
    pub fn snapshot_into(&mut self, snapshot: &mut Snapshot) {
        if !Arc::ptr_eq(&snapshot.layout, &self.layout) {
            *snapshot = Snapshot::empty(&self.layout);
        }
        let online = self.online.read();
        let mut stamps = Stamps::start();
        for (files, cpu) in self.cpus.iter_mut().zip(&mut snapshot.cpus) {
            let absent = match online {
                Ok(online) if online.contains(files.cpu) => None,
                Ok(_) => Some(Fault::Offline),
                Err(ref fault) => Some(fault.clone()),
            };
            for (files, state) in files.states.iter_mut().zip(&mut cpu.states) {
                state.counters = match &absent {
                    None => files.read(&self.fs),
                    Some(fault) => Err(fault.clone()),
                };
                state.reopened = files.reopened();
            }
            cpu.stamp = stamps.next_stamp();
        }
        snapshot.stamp = stamps.whole();
    }
}

impl StateFiles {
    fn open(fs: &HostFs, cpu: u32, state: &State) -> hostfs::Result<Self> {
        let dir = state_dir(cpu, state.index);
        let file = |name: &str| fs.attribute(dir.join(name));
        let newer = |name: &str| match file(name) {
            Err(error) if error.is_not_found() => Ok(None),
            other => other.map(Some),
        };
        Ok(Self {
            name_path: dir.join("name"),
            name: state.name.clone(),
            usage: file("usage")?,
            time: file("time")?,
            above: newer("above")?,
            below: newer("below")?,
            rejected: newer("rejected")?,
            known: 0,
        })
    }

    fn read(&mut self, fs: &HostFs) -> Result<Counters, Fault> {
        let counters = Counters {
            usage: self.usage.read_u64()?,
            time_us: self.time.read_u64()?,
            above: read_newer(&mut self.above)?,
            below: read_newer(&mut self.below)?,
            rejected: read_newer(&mut self.rejected)?,
        };
        let reopened = self.reopened();
        if reopened != self.known {
            // A driver that was registered meanwhile can have another state here.
            let now = fs.read_text(&self.name_path)?;
            if now != self.name {
                return Err(Fault::Replaced { now });
            }
            self.known = reopened;
        }
        Ok(counters)
    }

    fn reopened(&self) -> u64 {
        let newer = [&self.above, &self.below, &self.rejected];
        newer
            .into_iter()
            .flatten()
            .chain([&self.usage, &self.time])
            .map(Attribute::reopened)
            .sum()
    }
}

/// A counter that older kernels lack. Past the limit of open files that is seen only when
/// it is read.
fn read_newer(counter: &mut Option<Attribute>) -> hostfs::Result<Option<u64>> {
    match counter.as_mut().map(Attribute::read_u64) {
        Some(Err(error)) if error.is_not_found() => Ok(None),
        Some(value) => value.map(Some),
        None => Ok(None),
    }
}

/// The CPUs that are online; parsed only when the text has changed.
#[derive(Debug)]
struct Online {
    file: Attribute,
    path: PathBuf,
    buffer: Vec<u8>,
    text: Vec<u8>,
    cpus: CpuSet,
}

impl Online {
    fn open(fs: &HostFs) -> hostfs::Result<Self> {
        Ok(Self {
            file: fs.attribute(online_path())?,
            path: fs.full_path(online_path()),
            buffer: vec![0; PAGE],
            text: Vec::new(),
            cpus: CpuSet::new(),
        })
    }

    fn read(&mut self) -> Result<&CpuSet, Fault> {
        let text = self.file.read(&mut self.buffer)?;
        if text != self.text {
            let list = String::from_utf8_lossy(text);
            self.cpus = list
                .parse()
                .map_err(|_| hostfs::Error::malformed(&self.path, "a list of CPUs", &list))?;
            self.text = text.to_vec();
        }
        Ok(&self.cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file that was opened anew may be another state's: that is looked at then.
    #[test]
    fn a_state_is_known_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let cpus = dir.path().join("sys/devices/system/cpu");
        let state = cpus.join("cpu0/cpuidle/state0");
        fs::create_dir_all(&state).unwrap();
        fs::write(cpus.join("online"), "0\n").unwrap();
        fs::write(state.join("name"), "C1\n").unwrap();
        for file in ["usage", "time"] {
            fs::write(state.join(file), "5\n").unwrap();
        }
        let host = HostFs::at(dir.path()).unwrap();
        let mut reader = crate::CpuIdle::open(&host).unwrap().snapshotter().unwrap();
        let files = &mut reader.cpus[0].states[0];
        files.known = 1;
        assert_eq!(files.read(&host).unwrap().usage, 5);
        assert_eq!(files.known, 0, "looked at once");
        files.known = 1;
        fs::write(state.join("name"), "C1E\n").unwrap();
        for _ in 0..2 {
            assert_eq!(
                files.read(&host).unwrap_err().to_string(),
                "another state, \"C1E\", took its place"
            );
        }
        fs::remove_file(state.join("name")).unwrap();
        assert_eq!(files.read(&host), Err(Fault::Gone));
    }
}
