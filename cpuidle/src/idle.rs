//! The idle states that there are.

use std::path::PathBuf;

use hostfs::{CpuSet, HostFs};

use crate::{Absent, Error, Snapshotter};

const CPUS: &str = "sys/devices/system/cpu";

/// A file of the directory that all CPUs share.
pub(crate) fn global(file: &str) -> PathBuf {
    PathBuf::from(CPUS).join("cpuidle").join(file)
}

/// The list of the CPUs that are online.
pub(crate) fn online_path() -> PathBuf {
    PathBuf::from(CPUS).join("online")
}

/// The directory of one state of one CPU.
pub(crate) fn state_dir(cpu: u32, index: u32) -> PathBuf {
    PathBuf::from(CPUS).join(format!("cpu{cpu}/cpuidle/state{index}"))
}

/// The idle driver, its governor, and the idle states of every CPU that is online, as they
/// were found when this was opened.
#[derive(Debug, Clone)]
pub struct CpuIdle {
    pub(crate) fs: HostFs,
    driver: Option<String>,
    governor: Option<String>,
    available_governors: Option<Vec<String>>,
    online: CpuSet,
    cpus: Vec<Cpu>,
}

/// The idle states of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cpu {
    /// The CPU's number.
    pub cpu: u32,
    /// By index, which is mostly but not always from the shallowest to the deepest. CPUs
    /// can differ in their states.
    pub states: Vec<State>,
}

/// One idle state of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct State {
    /// The number in `state<number>`.
    pub index: u32,
    /// The driver's name for it, e.g. `C6` or `haltpoll idle`.
    pub name: String,
    /// The driver's description.
    pub desc: Option<String>,
    /// Exit latency in microseconds.
    pub latency_us: Option<u64>,
    /// Target residency in microseconds: a shorter stay does not pay (since Linux 3.15).
    pub residency_us: Option<u64>,
    /// `default_status`: false for a state that the driver leaves off (since Linux 5.6).
    pub enabled_by_default: Option<bool>,
    /// `disable`: switched off by the user, or off by default and not switched on since.
    /// What the driver itself ruled out does not show here.
    pub disabled: bool,
}

impl CpuIdle {
    /// Reads the description. Needs no privilege.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`] with the reason if no online CPU has idle states; [`Error::Host`]
    /// if the list of online CPUs can't be read or a state's file can't or is malformed.
    pub fn open(fs: &HostFs) -> Result<Self, Error> {
        let text = |file: &str| match fs.read_text(global(file)) {
            Err(error) if error.is_not_found() => Ok(None),
            other => other.map(Some),
        };
        let driver = text("current_driver")?;
        let governor = match text("current_governor")? {
            None => text("current_governor_ro")?,
            there => there,
        };
        let available_governors = text("available_governors")?
            .map(|names| names.split_whitespace().map(str::to_owned).collect());
        let online: CpuSet = fs.read(online_path())?;
        let mut cpus = Vec::new();
        for cpu in &online {
            let states = states(fs, cpu)?;
            if !states.is_empty() {
                cpus.push(Cpu { cpu, states });
            }
        }
        if cpus.is_empty() {
            return Err(Error::Absent {
                path: fs.full_path(CPUS),
                reason: Absent::find(fs, driver.as_deref()),
            });
        }
        Ok(Self {
            fs: fs.clone(),
            driver,
            governor,
            available_governors,
            online,
            cpus,
        })
    }

    /// The idle driver, e.g. `intel_idle`.
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// The governor, which picks a state each time that a CPU goes idle, e.g. `menu`.
    pub fn governor(&self) -> Option<&str> {
        self.governor.as_deref()
    }

    /// The governors that the kernel has; `None` where it does not say (before Linux 5.8,
    /// unless started with `cpuidle_sysfs_switch`).
    pub fn available_governors(&self) -> Option<&[String]> {
        self.available_governors.as_deref()
    }

    /// The CPUs that are online, with idle states or without. The files of offline CPUs,
    /// which may stay readable and frozen, are not looked at.
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The states of each online CPU that has any, by CPU.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The numbers of the CPUs that have idle states.
    pub fn cpu_set(&self) -> CpuSet {
        self.cpus.iter().map(|cpu| cpu.cpu).collect()
    }

    /// Opens the counters of every state of these CPUs. Needs no privilege.
    ///
    /// # Errors
    ///
    /// [`Error::Host`] if a state's `usage` or `time` can't be opened.
    pub fn snapshotter(&self) -> Result<Snapshotter, Error> {
        Snapshotter::open(&self.fs, &self.cpus)
    }
}

fn states(fs: &HostFs, cpu: u32) -> Result<Vec<State>, Error> {
    let dir = PathBuf::from(CPUS).join(format!("cpu{cpu}/cpuidle"));
    // There are entries `driver` and `governor` too on some kernels.
    let indices = match fs.list_numbered(dir, "state") {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        other => other?,
    };
    let mut states = Vec::new();
    for index in indices {
        match state(fs, cpu, index) {
            // It vanished between the two looks.
            Err(error) if error.is_not_found() && !fs.exists(state_dir(cpu, index)) => {}
            other => states.push(other?),
        }
    }
    Ok(states)
}

fn state(fs: &HostFs, cpu: u32, index: u32) -> hostfs::Result<State> {
    let file = |file: &str| state_dir(cpu, index).join(file);
    let default_status = match fs.read_optional::<String>(file("default_status"))? {
        None => None,
        Some(status) => match status.as_str() {
            "enabled" => Some(true),
            "disabled" => Some(false),
            other => {
                let path = fs.full_path(file("default_status"));
                return Err(hostfs::Error::malformed(path, "enabled or disabled", other));
            }
        },
    };
    Ok(State {
        index,
        name: fs.read_text(file("name"))?,
        desc: fs.read_optional(file("desc"))?,
        latency_us: fs.read_optional(file("latency"))?,
        residency_us: fs.read_optional(file("residency"))?,
        enabled_by_default: default_status,
        disabled: fs.read_optional::<u64>(file("disable"))?.unwrap_or(0) != 0,
    })
}
