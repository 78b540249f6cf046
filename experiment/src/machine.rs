//! What an experiment runs on, as far as it must be known to believe the figures.

use hostfs::{CpuSet, HostFs, Process, Topology};
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
        let cpuinfo = fs.read_text("proc/cpuinfo").unwrap_or_default();
        let first = topology.as_ref().and_then(|t| t.online.min()).unwrap_or(0);
        let cpufreq =
            |name: &str| text(&format!("sys/devices/system/cpu/cpu{first}/cpufreq/{name}"));
        let cpuidle = |name: &str| text(&format!("sys/devices/system/cpu/cpuidle/{name}"));
        Self {
            cpu_model: cpu_model(&cpuinfo),
            online: topology.as_ref().map(|t| t.online.clone()),
            isolated: topology.as_ref().map(|t| t.isolated.clone()),
            packages: topology.as_ref().map(Topology::packages),
            cores: topology.as_ref().map(Topology::cores),
            nodes: topology.as_ref().map(Topology::nodes),
            kernel: fs.kernel_release().ok(),
            command_line: text("proc/cmdline"),
            virtual_machine: virtual_machine(&cpuinfo),
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
        let say = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".into());
        let count = |value: Option<usize>| value.map_or("?".to_owned(), |n| n.to_string());
        let none = |text: String| if text.is_empty() { "none".into() } else { text };
        vec![
            ("CPU", say(&self.cpu_model)),
            (
                "CPUs online",
                format!(
                    "{} ({} packages, {} cores, {} NUMA nodes)",
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

/// `model name` on x86, `cpu` on POWER, `Model` or `Hardware` on Arm boards.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "cpu model", "Model", "Hardware", "cpu"]
        .iter()
        .find_map(|key| field(cpuinfo, key))
}

fn virtual_machine(cpuinfo: &str) -> Option<bool> {
    let flags = field(cpuinfo, "flags")?;
    Some(
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor"),
    )
}

fn field(cpuinfo: &str, key: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        (name.trim() == key && !value.is_empty()).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_tells_its_model_and_whether_it_is_virtual() {
        let virtual_cpu = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\n\
                           flags\t\t: fpu hypervisor msr\n";
        assert_eq!(
            cpu_model(virtual_cpu).as_deref(),
            Some("Some CPU @ 2.00GHz")
        );
        assert_eq!(virtual_machine(virtual_cpu), Some(true));
        assert_eq!(virtual_machine("flags\t: fpu hypervisors\n"), Some(false));
        assert_eq!(
            virtual_machine("Features\t: fp asimd\n"),
            None,
            "Arm has no such flag"
        );
        assert_eq!(
            cpu_model("Hardware\t: BCM2835\n").as_deref(),
            Some("BCM2835")
        );
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn an_empty_root_says_nothing_and_does_not_fail() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::read(&HostFs::at(dir.path()).unwrap());
        assert_eq!(machine.kernel, None);
        let facts = machine.facts();
        assert!(facts.contains(&("kernel", "not known".into())));
        assert!(facts.contains(&("irqbalance running", "none".into())));
    }

    #[test]
    fn this_machine_names_its_kernel() {
        let machine = Machine::read(&HostFs::live());
        assert_eq!(machine.kernel, HostFs::live().kernel_release().ok());
        assert!(machine.online.is_some_and(|online| !online.is_empty()));
    }
}
