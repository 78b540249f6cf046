//! How the machine's CPUs belong together.
//!
//! `/sys/devices/system/cpu` and `node` (`drivers/base/{cpu,topology,cacheinfo,node}.c`).

use nix::errno::Errno;

use crate::{CpuSet, Error, HostFs, Result};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

/// The CPUs of a machine, by number, and what they share.
///
/// ```
/// use hostfs::{HostFs, Topology};
///
/// let topology = Topology::read(&HostFs::live())?;
/// for cpu in topology.online_cpus() {
///     println!("CPU {}: package {:?}, core {:?}", cpu.cpu, cpu.package, cpu.core);
/// }
/// # Ok::<(), hostfs::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Topology {
    /// CPUs that run.
    pub online: CpuSet,
    /// CPUs that may ever be plugged in. Counters "by possible CPU" have as many columns.
    pub possible: CpuSet,
    /// CPUs that are plugged in, online or not.
    pub present: CpuSet,
    /// CPUs kept from the scheduler's balancing (`isolcpus=`, isolated cpuset partitions).
    pub isolated: CpuSet,
    /// CPUs without a tick while one task runs (`nohz_full=`).
    pub nohz_full: CpuSet,
    /// Each present CPU, by number; offline ones too.
    pub cpus: Vec<CpuTopology>,
}

/// One CPU. What an offline CPU belongs to is not known: the kernel takes its files away.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CpuTopology {
    /// Its number.
    pub cpu: u32,
    /// True if it runs.
    pub online: bool,
    /// The package (socket), `None` where the machine does not say (-1).
    pub package: Option<u32>,
    /// The die within the package; `None` before Linux 5.2 and where not said.
    pub die: Option<u32>,
    /// The core's number; unique within its package (and die) only.
    pub core: Option<u32>,
    /// The CPUs of its core, itself among them.
    pub siblings: CpuSet,
    /// The last-level cache, `None` where the kernel lists none.
    pub last_level_cache: Option<Cache>,
    /// The NUMA node, `None` without `CONFIG_NUMA`.
    pub node: Option<u32>,
}

/// A cache and the CPUs that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cache {
    /// 1, 2, 3, ...
    pub level: u32,
    /// The online CPUs that share it.
    pub shared: CpuSet,
}

impl Topology {
    /// Reads the topology.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] where there is no `online` file; [`Error::Malformed`] for a
    /// file that holds something else than it may.
    pub fn read(fs: &HostFs) -> Result<Self> {
        let online: CpuSet = fs.read(format!("{CPUS}/online"))?;
        let set = |name: &str| optional_set(fs, &format!("{CPUS}/{name}"));
        // A captured tree may have only what the readers read.
        let present = set("present")?.unwrap_or_else(|| online.clone());
        let possible = set("possible")?.unwrap_or_else(|| present.clone());
        let nodes = read_nodes(fs)?;
        let mut cpus = (&present | &online)
            .iter()
            .map(|cpu| read_cpu(fs, cpu, &online, &nodes))
            .collect::<Result<Vec<_>>>()?;
        // What was read of a CPU that went away meanwhile is part of the truth at best.
        let still: CpuSet = fs.read(format!("{CPUS}/online"))?;
        let online = &online & &still;
        for cpu in cpus.iter_mut().filter(|cpu| cpu.online) {
            if !online.contains(cpu.cpu) {
                *cpu = CpuTopology::offline(cpu.cpu);
            }
        }
        Ok(Self {
            isolated: set("isolated")?.unwrap_or_default(),
            nohz_full: set("nohz_full")?.unwrap_or_default(),
            online,
            possible,
            present,
            cpus,
        })
    }

    /// One CPU, if it is present.
    pub fn cpu(&self, cpu: u32) -> Option<&CpuTopology> {
        let at = self.cpus.binary_search_by_key(&cpu, |c| c.cpu).ok()?;
        Some(&self.cpus[at])
    }

    /// The CPUs that run, by number.
    pub fn online_cpus(&self) -> impl Iterator<Item = &CpuTopology> {
        self.cpus.iter().filter(|cpu| cpu.online)
    }

    /// The number of packages with an online CPU.
    pub fn packages(&self) -> usize {
        distinct(self.online_cpus().map(|cpu| cpu.package))
    }

    /// The number of cores with an online CPU.
    pub fn cores(&self) -> usize {
        distinct(self.online_cpus().map(|cpu| cpu.siblings.min()))
    }

    /// The number of NUMA nodes with an online CPU.
    pub fn nodes(&self) -> usize {
        distinct(self.online_cpus().map(|cpu| cpu.node))
    }
}

impl CpuTopology {
    /// One of which nothing more is known.
    fn offline(cpu: u32) -> Self {
        Self {
            cpu,
            online: false,
            package: None,
            die: None,
            core: None,
            siblings: CpuSet::new(),
            last_level_cache: None,
            node: None,
        }
    }
}

fn distinct<T: Ord>(values: impl Iterator<Item = Option<T>>) -> usize {
    values
        .flatten()
        .collect::<std::collections::BTreeSet<T>>()
        .len()
}

fn read_cpu(
    fs: &HostFs,
    cpu: u32,
    online: &CpuSet,
    nodes: &[(u32, CpuSet)],
) -> Result<CpuTopology> {
    let mut this = CpuTopology::offline(cpu);
    if !online.contains(cpu) {
        // Its files may stay readable and say what was true once.
        return Ok(this);
    }
    this.online = true;
    this.node = nodes
        .iter()
        .find_map(|(node, cpus)| cpus.contains(cpu).then_some(*node));
    let dir = format!("{CPUS}/cpu{cpu}/topology");
    let id = |name: &str| -> Result<Option<u32>> {
        let id: Option<i64> = optional(fs.read(format!("{dir}/{name}")))?;
        Ok(id.and_then(|id| u32::try_from(id).ok()))
    };
    this.package = id("physical_package_id")?;
    this.die = id("die_id")?;
    this.core = id("core_id")?;
    // `thread_siblings_list` is the old name (before 5.4) of the same set.
    let siblings = match optional_set(fs, &format!("{dir}/core_cpus_list"))? {
        Some(set) => Some(set),
        None => optional_set(fs, &format!("{dir}/thread_siblings_list"))?,
    };
    this.siblings = siblings.unwrap_or_default();
    this.siblings.insert(cpu);
    this.last_level_cache = read_last_level_cache(fs, cpu)?;
    Ok(this)
}

fn read_last_level_cache(fs: &HostFs, cpu: u32) -> Result<Option<Cache>> {
    let dir = format!("{CPUS}/cpu{cpu}/cache");
    let indices = absent_as_empty(fs.list_numbered(&dir, "index"))?;
    let mut last = None;
    for index in indices {
        let level: Option<u32> = optional(fs.read(format!("{dir}/index{index}/level")))?;
        let shared = optional_set(fs, &format!("{dir}/index{index}/shared_cpu_list"))?;
        let kind: Option<String> = optional(fs.read(format!("{dir}/index{index}/type")))?;
        if let (Some(level), Some(shared)) = (level, shared)
            && kind.as_deref() != Some("Instruction")
            && last.as_ref().is_none_or(|last: &Cache| level > last.level)
        {
            last = Some(Cache { level, shared });
        }
    }
    Ok(last)
}

fn read_nodes(fs: &HostFs) -> Result<Vec<(u32, CpuSet)>> {
    let mut nodes = Vec::new();
    for node in absent_as_empty(fs.list_numbered(NODES, "node"))? {
        // A node without CPUs (memory only) has an empty list.
        if let Some(cpus) = optional_set(fs, &format!("{NODES}/node{node}/cpulist"))? {
            nodes.push((node, cpus));
        }
    }
    Ok(nodes)
}

/// A set that may be absent, empty, or (`nohz_full` without the boot option) `(null)`.
fn optional_set(fs: &HostFs, path: &str) -> Result<Option<CpuSet>> {
    match fs.read_text(path) {
        Ok(text) if text.trim() == "(null)" => Ok(Some(CpuSet::new())),
        Ok(text) => text
            .parse()
            .map(Some)
            .map_err(|_| Error::malformed(fs.full_path(path), "a list of CPUs", &text)),
        Err(error) => optional(Err(error)),
    }
}

/// `None` for a file that is not there, or whose CPU has just gone offline (`ENODEV`).
fn optional<T>(value: Result<T>) -> Result<Option<T>> {
    match value {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) if error.os().is_some_and(|os| os.is(Errno::ENODEV)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn absent_as_empty<T>(list: Result<Vec<T>>) -> Result<Vec<T>> {
    optional(list).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_goes_offline_meanwhile_is_no_error() {
        let answer = |errno: Errno| -> Result<u32> {
            let path = std::path::Path::new("sys/x");
            Err(Error::from_os(path, "read", errno.into()))
        };
        assert_eq!(optional(answer(Errno::ENOENT)), Ok(None));
        assert_eq!(optional(answer(Errno::ENODEV)), Ok(None));
        assert!(optional(answer(Errno::EIO)).is_err());
        assert_eq!(optional(Ok(3)), Ok(Some(3)));
    }
}
