//! Which package, die and core each CPU belongs to.

use std::collections::{BTreeMap, BTreeSet};

use hostfs::{CpuInfo, CpuSet, HostFs, Topology};

/// Part of a machine: all of it, a package, a die, a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Place {
    pub(crate) package: Option<u32>,
    /// Where the package has several that have counters of their own.
    pub(crate) die: Option<u32>,
    pub(crate) core: Option<u32>,
}

impl Place {
    /// The name of the package or die as powercap would call it.
    pub(crate) fn name(&self) -> String {
        match (self.package, self.die) {
            (None, _) => "package".into(),
            (Some(package), None) => format!("package-{package}"),
            (Some(package), Some(die)) => format!("package-{package}-die-{die}"),
        }
    }
}

/// The places of all online CPUs.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    cpus: BTreeMap<u32, Place>,
}

impl Places {
    pub(crate) fn read(fs: &HostFs, cpu: &CpuInfo) -> hostfs::Result<Self> {
        Ok(Self::of(&Topology::read(fs)?, dies_mirror_package(cpu)))
    }

    fn of(topology: &Topology, dies_mirror_package: bool) -> Self {
        let mut dies: BTreeMap<Option<u32>, BTreeSet<Option<u32>>> = BTreeMap::new();
        for cpu in topology.online_cpus() {
            dies.entry(cpu.package).or_default().insert(cpu.die);
        }
        let cpus = topology
            .online_cpus()
            .map(|cpu| {
                let several = dies[&cpu.package].len() > 1 && !dies_mirror_package;
                let place = Place {
                    package: cpu.package,
                    die: cpu.die.filter(|_| several),
                    core: cpu.core,
                };
                (cpu.cpu, place)
            })
            .collect();
        Self { cpus }
    }

    /// The first online CPU of each package or die among these (or all).
    pub(crate) fn packages(&self, among: Option<&CpuSet>) -> Vec<(u32, Place)> {
        self.first_of(among, |place| Place {
            core: None,
            ..place
        })
    }

    /// The first online CPU of each core among these (or all).
    pub(crate) fn cores(&self, among: Option<&CpuSet>) -> Vec<(u32, Place)> {
        self.first_of(among, |place| place)
    }

    /// Another CPU of the same place.
    pub(crate) fn cpu_of(&self, place: Place) -> Option<u32> {
        self.cpus.iter().find_map(|(cpu, at)| {
            let same = at.package == place.package
                && at.die == place.die
                && (place.core.is_none() || at.core == place.core);
            same.then_some(*cpu)
        })
    }

    fn first_of(&self, among: Option<&CpuSet>, part: impl Fn(Place) -> Place) -> Vec<(u32, Place)> {
        let mut seen = BTreeSet::new();
        self.cpus
            .iter()
            .filter(|(cpu, _)| among.is_none_or(|among| among.contains(**cpu)))
            .map(|(cpu, place)| (*cpu, part(*place)))
            .filter(|(_, place)| seen.insert(*place))
            .collect()
    }
}

/// All dies of a package show one counter, that of the package, on AMD and Hygon
/// (`rapl_pkg_pmu_is_pkg_scope` in `arch/x86/events/rapl.c`).
pub(crate) fn dies_mirror_package(cpu: &CpuInfo) -> bool {
    matches!(cpu.vendor.as_deref(), Some("AuthenticAMD" | "HygonGenuine"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// CPUs given as (package, die, core).
    fn places(cpus: &[(u32, u32, u32)], mirror: bool) -> Places {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("sys/devices/system/cpu");
        for (cpu, (package, die, core)) in cpus.iter().enumerate() {
            let topology = root.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            for (file, id) in [
                ("physical_package_id", package),
                ("die_id", die),
                ("core_id", core),
            ] {
                fs::write(topology.join(file), format!("{id}\n")).unwrap();
            }
        }
        fs::write(root.join("online"), format!("0-{}\n", cpus.len() - 1)).unwrap();
        let fs = HostFs::at(dir.path()).unwrap();
        Places::of(&Topology::read(&fs).unwrap(), mirror)
    }

    fn at(package: u32, die: Option<u32>, core: Option<u32>) -> Place {
        Place {
            package: Some(package),
            die,
            core,
        }
    }

    /// Kernels since about 7.0 list every CPU of a package in the mask.
    #[test]
    fn each_package_and_each_core_once() {
        let places = places(&[(0, 0, 0), (0, 0, 0), (0, 0, 1), (1, 0, 0)], false);
        assert_eq!(
            places.packages(None),
            [(0, at(0, None, None)), (3, at(1, None, None))]
        );
        let cores: Vec<u32> = places.cores(None).iter().map(|(cpu, _)| *cpu).collect();
        assert_eq!(cores, [0, 2, 3]);
        let some = CpuSet::from_iter([1, 2]);
        assert_eq!(places.packages(Some(&some)), [(1, at(0, None, None))]);
        assert_eq!(places.cpu_of(at(0, None, Some(1))), Some(2));
        assert_eq!(places.cpu_of(at(1, None, None)), Some(3));
        assert_eq!(places.cpu_of(at(2, None, None)), None);
    }

    #[test]
    fn dies_count_where_they_have_counters_of_their_own() {
        let cpus = [(0, 0, 0), (0, 1, 0)];
        let two = places(&cpus, false).packages(None);
        assert_eq!(two, [(0, at(0, Some(0), None)), (1, at(0, Some(1), None))]);
        assert_eq!(two[1].1.name(), "package-0-die-1");
        let one = places(&cpus, true).packages(None);
        assert_eq!(one, [(0, at(0, None, None))]);
        assert_eq!(one[0].1.name(), "package-0");
    }
}
