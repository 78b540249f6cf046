//! Why a machine has no idle states.

use hostfs::{CommandLine, CpuInfo, HostFs};

/// Why no online CPU has idle states.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Absent {
    /// The kernel was started with `cpuidle.off=1`.
    #[error("switched off by cpuidle.off=1 on the kernel's command line")]
    SwitchedOff,
    /// The kernel was started with `idle=poll` or `idle=halt`, which idle drivers heed.
    #[error("idle={value} on the kernel's command line keeps idle drivers away")]
    IdleParameter {
        /// `poll` or `halt`.
        value: String,
    },
    /// A virtual machine whose hypervisor offers neither MWAIT nor ACPI idle states.
    #[error(
        "a virtual machine without MWAIT, in which no idle driver is registered: give the \
         guest MWAIT (QEMU: -overcommit cpu-pm=on), or start it with \
         cpuidle_haltpoll.force=1"
    )]
    VirtualMachine,
    /// The kernel has cpuidle, but no driver has states on the online CPUs.
    #[error(
        "the idle driver is {driver:?}: load one for this processor (intel_idle, or the ACPI \
         processor driver with C-states enabled in the firmware)"
    )]
    NoDriver {
        /// `current_driver`, e.g. `none`.
        driver: String,
    },
    /// The kernel has no cpuidle.
    #[error("the kernel is built without CONFIG_CPU_IDLE")]
    NotBuilt,
}

impl Absent {
    /// Finds out which case it is, given `current_driver` where there is such a file.
    pub(crate) fn find(fs: &HostFs, driver: Option<&str>) -> Self {
        let line = CommandLine::read(fs).unwrap_or_default();
        let mut idle = None;
        for parameter in line.parameters() {
            match parameter {
                ("cpuidle.off", Some(value)) if value != "0" => return Absent::SwitchedOff,
                ("idle", Some(value @ ("poll" | "halt"))) => idle = Some(value.to_owned()),
                _ => {}
            }
        }
        match (idle, driver) {
            (Some(value), _) => Absent::IdleParameter { value },
            _ if CpuInfo::read(fs).virtual_machine == Some(true) => Absent::VirtualMachine,
            (None, Some(driver)) => Absent::NoDriver {
                driver: driver.to_owned(),
            },
            (None, None) => Absent::NotBuilt,
        }
    }
}
