//! What an experiment runs on, as far as it must be known to believe the figures.

use hostfs::{CommandLine, CpuInfo, CpuSet, HostFs, Process, Topology};
use serde::{Deserialize, Serialize};

/// The machine. What it does not say is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// The CPU's model (`proc/cpuinfo`).
    pub cpu_model: Option<String>,
    /// The CPUs that run.
    pub online: Option<CpuSet>,
    /// The CPUs kept from the scheduler's balancing.
    pub isolated: Option<CpuSet>,
    /// Packages with a CPU that runs.
    pub packages: Option<usize>,
    /// Cores with a CPU that runs.
    pub cores: Option<usize>,
    /// NUMA nodes with a CPU that runs.
    pub nodes: Option<usize>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The kernel's command line.
    pub command_line: Option<String>,
    /// True in a virtual machine that says so (CPU flag `hypervisor`, x86 only).
    pub virtual_machine: Option<bool>,
    /// The cpuidle driver.
    pub idle_driver: Option<String>,
    /// The cpuidle governor.
    pub idle_governor: Option<String>,
    /// The cpufreq driver of the first CPU that runs.
    pub cpufreq_driver: Option<String>,
    /// The cpufreq governor of the first CPU that runs.
    pub cpufreq_governor: Option<String>,
    /// The clock source.
    pub clock_source: Option<String>,
    /// Running irqbalance daemons, by process number.
    pub irqbalance: Vec<u32>,
}

impl Machine {
    /// Reads what the root says of its machine. What can't be read is left out.
    pub fn read(fs: &HostFs) -> Self {
        let text = |path: &str| fs.read_text(path).ok().filter(|text| !text.is_empty());
        let topology = Topology::read(fs).ok();
        let cpu = CpuInfo::read(fs);
        let first = topology.as_ref().and_then(|t| t.online.min()).unwrap_or(0);
        let cpufreq =
            |name: &str| text(&format!("sys/devices/system/cpu/cpu{first}/cpufreq/{name}"));
        let cpuidle = |name: &str| text(&format!("sys/devices/system/cpu/cpuidle/{name}"));
        Self {
            cpu_model: cpu.model,
            online: topology.as_ref().map(|t| t.online.clone()),
            isolated: topology.as_ref().map(|t| t.isolated.clone()),
            packages: topology.as_ref().map(Topology::packages),
            cores: topology.as_ref().map(Topology::cores),
            nodes: topology.as_ref().map(Topology::nodes),
            kernel: fs.kernel_release().ok(),
            command_line: CommandLine::read(fs).ok().map(|line| line.to_string()),
            virtual_machine: cpu.virtual_machine,
            idle_driver: cpuidle("current_driver"),
            // The second is the name on kernels where it can't be changed.
            idle_governor: cpuidle("current_governor").or(cpuidle("current_governor_ro")),
            cpufreq_driver: cpufreq("scaling_driver"),
            cpufreq_governor: cpufreq("scaling_governor"),
            clock_source: text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            irqbalance: Process::find_by_name(fs, "irqbalance")
                .unwrap_or_default()
                .iter()
                .map(|process| process.pid)
                .collect(),
        }
    }

    /// The description as pairs of a heading and what is known, in a fixed order.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let say =
            |value: &Option<String>| value.clone().unwrap_or_else(|| "none or not known".into());
        let count = |value: Option<usize>| value.map_or("?".to_owned(), |n| n.to_string());
        let none = |text: String| if text.is_empty() { "none".into() } else { text };
        vec![
            ("CPU", say(&self.cpu_model)),
            (
                "CPUs online",
                format!(
                    "{} (packages: {}, cores: {}, NUMA nodes: {})",
                    say(&self.online.as_ref().map(CpuSet::to_string)),
                    count(self.packages),
                    count(self.cores),
                    count(self.nodes)
                ),
            ),
            (
                "isolated CPUs",
                none(say(&self.isolated.as_ref().map(CpuSet::to_string))),
            ),
            (
                "virtual machine",
                say(&self
                    .virtual_machine
                    .map(|is| if is { "yes" } else { "no" }.into())),
            ),
            ("kernel", say(&self.kernel)),
            ("kernel command line", say(&self.command_line)),
            ("idle driver", say(&self.idle_driver)),
            ("idle governor", say(&self.idle_governor)),
            ("cpufreq driver", say(&self.cpufreq_driver)),
            ("cpufreq governor", say(&self.cpufreq_governor)),
            ("clock source", say(&self.clock_source)),
            (
                "irqbalance running",
                none(
                    self.irqbalance
                        .iter()
                        .map(|pid| format!("process {pid}"))
                        .collect::<Vec<_>>()
                        .join(", "),
                ),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_root_says_nothing_and_does_not_fail() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::read(&HostFs::at(dir.path()).unwrap());
        assert_eq!(machine.kernel, None);
        let facts = machine.facts();
        assert!(facts.contains(&("kernel", "none or not known".into())));
        assert!(facts.contains(&("irqbalance running", "none".into())));
    }

    #[test]
    fn this_machine_names_its_kernel() {
        let machine = Machine::read(&HostFs::live());
        assert_eq!(machine.kernel, HostFs::live().kernel_release().ok());
        assert!(machine.online.is_some_and(|online| !online.is_empty()));
    }
}
