//! Why there is energy to read, or not, by each backend.

use std::fmt;

use hostfs::{CpuInfo, HostFs};

use crate::candidate::Candidate;
use crate::models::Model;
use crate::{Backend, Error, Fault, msr, perf, powercap};

/// Each backend, with what was found and what would make it work.
///
/// Its `Display` is a line for each.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Diagnosis {
    /// The processor, as far as it matters here.
    pub processor: String,
    /// The backends, the best first.
    pub backends: Vec<BackendDiagnosis>,
}

/// One backend.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BackendDiagnosis {
    /// Which one.
    pub backend: Backend,
    /// How far it works.
    pub state: BackendState,
    /// What was found.
    pub found: String,
    /// What would make it work, where that is known and something is amiss.
    pub remedy: Option<String>,
}

/// How far a backend works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum BackendState {
    /// All of its counters can be read.
    Works,
    /// Some of its counters can be read.
    Partly,
    /// It is there, and this user may not read it.
    NotPermitted,
    /// It is there, and its counters can't be read for other reasons.
    Unreadable,
    /// It is not there.
    Absent,
}

/// Looks at each backend. Opens counters and closes them again; changes nothing.
///
/// ```
/// println!("{}", rapl::diagnose(&hostfs::HostFs::live()));
/// ```
pub fn diagnose(fs: &HostFs) -> Diagnosis {
    let cpu = CpuInfo::read(fs);
    let machine = Machine {
        fs,
        modules: Modules::read(fs),
        cpu: &cpu,
    };
    Diagnosis {
        processor: machine.processor(),
        backends: Backend::ALL
            .into_iter()
            .map(|backend| machine.diagnose(backend))
            .collect(),
    }
}

impl Diagnosis {
    /// True if some counter can be read.
    pub fn any_works(&self) -> bool {
        let works = |state| matches!(state, BackendState::Works | BackendState::Partly);
        self.backends.iter().any(|backend| works(backend.state))
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.processor)?;
        self.backends
            .iter()
            .try_for_each(|backend| write!(f, "\n{backend}"))
    }
}

impl fmt::Display for BackendDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.backend, self.found)?;
        match &self.remedy {
            Some(remedy) => write!(f, ": {remedy}"),
            None => Ok(()),
        }
    }
}

const MEASURE_ON_THE_HOST: &str =
    "this is a virtual machine, and its hypervisor offers no energy counters: measure on the host";

struct Machine<'m> {
    fs: &'m HostFs,
    modules: Modules,
    cpu: &'m CpuInfo,
}

impl Machine<'_> {
    fn processor(&self) -> String {
        let cpu = self.cpu;
        let name = cpu.model.as_deref().unwrap_or("a processor without a name");
        let guest = match cpu.virtual_machine {
            Some(true) => ", in a virtual machine",
            _ => "",
        };
        let registers = match Model::of(cpu) {
            None => ", which has no energy counters that this crate knows".to_owned(),
            Some(model) if model.known => format!(" ({})", model.name),
            Some(model) => format!(", {}", model.name),
        };
        format!("{name}{guest}{registers}")
    }

    fn diagnose(&self, backend: Backend) -> BackendDiagnosis {
        let found = match backend {
            Backend::Perf => perf::find(self.fs, self.cpu),
            Backend::Powercap => powercap::find(self.fs, self.cpu).map(|zones| zones.known),
            Backend::Msr => msr::find(self.fs, self.cpu),
        };
        match found {
            Ok(candidates) => self.there(backend, &candidates),
            Err(error) => self.absent(backend, &error),
        }
    }

    fn there(&self, backend: Backend, candidates: &[Candidate]) -> BackendDiagnosis {
        let faults: Vec<&Fault> = candidates
            .iter()
            .filter_map(|candidate| candidate.source.as_ref().err())
            .collect();
        let (all, readable) = (candidates.len(), candidates.len() - faults.len());
        let refused = |fault: &&Fault| {
            matches!(
                fault,
                Fault::NotPermitted
                    | Fault::EventsNotPermitted { .. }
                    | Fault::RegistersNotPermitted
            )
        };
        let state = match faults.as_slice() {
            [] if all > 0 => BackendState::Works,
            [] => BackendState::Unreadable,
            _ if readable > 0 => BackendState::Partly,
            faults if faults.iter().all(refused) => BackendState::NotPermitted,
            _ => BackendState::Unreadable,
        };
        let found = match state {
            BackendState::Works => format!("{all} counters can be read"),
            BackendState::Partly => format!("{readable} of {all} counters can be read"),
            _ if all == 0 => "there, without an energy counter".into(),
            _ => format!("{all} counters are there, and none can be read"),
        };
        BackendDiagnosis {
            backend,
            state,
            found,
            remedy: faults.first().map(|fault| fault.to_string()),
        }
    }

    fn absent(&self, backend: Backend, error: &Error) -> BackendDiagnosis {
        let (state, found, remedy) = match error {
            Error::NoBackend { path, .. } | Error::NoPowercap { path, .. } => (
                BackendState::Absent,
                format!("{} is not there", path.display()),
                self.remedy(backend),
            ),
            Error::NoZones { path, .. } => (
                BackendState::Absent,
                format!("{} has no RAPL zones", path.display()),
                self.remedy(backend),
            ),
            // These say what would help themselves.
            error => (BackendState::Unreadable, error.to_string(), None),
        };
        BackendDiagnosis {
            backend,
            state,
            found,
            remedy,
        }
    }

    /// What would bring up a backend that is not there.
    fn remedy(&self, backend: Backend) -> Option<String> {
        let Some(model) = Model::of(self.cpu) else {
            return Some("this processor has no RAPL".into());
        };
        if self.cpu.virtual_machine == Some(true) {
            return Some(MEASURE_ON_THE_HOST.into());
        }
        let amd = model.registers == crate::Registers::Amd;
        if amd && !self.cpu.flags.is_empty() && !self.cpu.flags.iter().any(|flag| flag == "rapl") {
            return Some("this processor has no RAPL (the flag is not in /proc/cpuinfo)".into());
        }
        let (module, option) = match backend {
            Backend::Perf => ("rapl", "CONFIG_PERF_EVENTS_INTEL_RAPL"),
            Backend::Powercap => ("intel_rapl_msr", "CONFIG_INTEL_RAPL"),
            Backend::Msr => ("msr", "CONFIG_X86_MSR"),
        };
        let container = if in_container(self.fs) {
            "; in a container: run on the host, or have its engine show /sys and /dev"
        } else {
            ""
        };
        let what = match self.modules.of(module) {
            Module::Loadable => format!("load the module: modprobe {module}"),
            Module::BuiltIn if backend == Backend::Msr => {
                "the kernel has it built in: /dev is not the host's".into()
            }
            Module::BuiltIn => {
                "the kernel has the driver built in, and it does not know this processor or \
                 its firmware hides the counters: a newer kernel may"
                    .into()
            }
            Module::Absent => format!("the kernel is built without {option}: use one that has it"),
            Module::Unknown => {
                format!("load the module (modprobe {module}), or use a kernel with {option}")
            }
        };
        Some(what + container)
    }
}

/// What the running kernel's folder of modules tells.
#[derive(Debug)]
struct Modules {
    loadable: Option<String>,
    built_in: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Module {
    Loadable,
    BuiltIn,
    Absent,
    Unknown,
}

impl Modules {
    fn read(fs: &HostFs) -> Self {
        let text = |file: &str| {
            let release = fs.kernel_release().ok()?;
            fs.read_text(format!("lib/modules/{release}/{file}")).ok()
        };
        Self {
            loadable: text("modules.dep"),
            built_in: text("modules.builtin"),
        }
    }

    /// Names in these files may have `-` where the module's has `_`.
    fn of(&self, module: &str) -> Module {
        let is = |path: &str| {
            let path = path.split_once(':').map_or(path, |(path, _)| path);
            let file = path.rsplit('/').next().unwrap_or_default();
            let name = file.split_once(".ko").map_or(file, |(name, _)| name);
            name.replace('-', "_") == module
        };
        let lists = |text: &Option<String>| text.as_deref().is_some_and(|t| t.lines().any(is));
        match (&self.loadable, &self.built_in) {
            _ if lists(&self.built_in) => Module::BuiltIn,
            _ if lists(&self.loadable) => Module::Loadable,
            (Some(_), Some(_)) => Module::Absent,
            _ => Module::Unknown,
        }
    }
}

/// The marks that container engines leave.
fn in_container(fs: &HostFs) -> bool {
    let environment = fs.read_text("run/systemd/container").is_ok();
    environment || fs.exists(".dockerenv") || fs.exists("run/.containerenv")
}
