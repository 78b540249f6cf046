//! Dynamic perf PMUs: those that the kernel lists in sysfs.
//!
//! ```
//! use hostfs::{HostFs, pmu::Pmu};
//!
//! let fs = HostFs::live();
//! match Pmu::read(&fs, "power") {
//!     Ok(pmu) => println!("type {}, on CPUs {}: {:?}", pmu.kind, pmu.cpus, pmu.events),
//!     Err(why) => println!("{why}"),
//! }
//! ```
//!
//! Opening an event acts on the running kernel and needs `CAP_PERFMON` or a
//! `perf_event_paranoid` of 0 or less; reading what there is needs nothing.

mod event;
mod parse;

use std::path::PathBuf;

pub use event::{Count, Event};
pub use parse::Config;

use crate::{CpuSet, Error, HostFs, Result};

const DEVICES: &str = "sys/bus/event_source/devices";

/// One PMU, as `sys/bus/event_source/devices/<name>` describes it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pmu {
    /// Its name, such as `power`.
    pub name: String,
    /// The number that stands for it in `perf_event_open(2)`. It is another one after the
    /// PMU was registered again.
    pub kind: u32,
    /// The CPUs that its events are to be opened on: `cpumask`, or all that are online
    /// where there is no such file. Since Linux 7.0 it may list every CPU of a package.
    pub cpus: CpuSet,
    /// Its events, by name.
    pub events: Vec<PmuEvent>,
}

/// An event that a PMU names.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PmuEvent {
    /// Its name, such as `energy-pkg`.
    pub name: String,
    /// What describes it to the kernel; `None` where its file can't be understood.
    pub config: Option<Config>,
    /// What one count is worth, in [`unit`](Self::unit)s.
    pub scale: Option<f64>,
    /// Such as `Joules`.
    pub unit: Option<String>,
}

impl Pmu {
    /// The names of all PMUs. Empty where there are none.
    ///
    /// # Errors
    ///
    /// What the kernel answers when they are listed.
    pub fn list(fs: &HostFs) -> Result<Vec<String>> {
        match fs.list(DEVICES) {
            Err(Error::NotFound { .. }) => Ok(Vec::new()),
            other => other,
        }
    }

    /// Reads what there is of the PMU of that name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is none; [`Error::Malformed`].
    pub fn read(fs: &HostFs, name: &str) -> Result<Self> {
        let dir = Self::path_of(name);
        let kind = fs.read(dir.join("type"))?;
        let cpus = match fs.read_optional(dir.join("cpumask"))? {
            Some(cpus) => cpus,
            None => fs
                .read_optional("sys/devices/system/cpu/online")?
                .unwrap_or_default(),
        };
        let names = match fs.list(dir.join("events")) {
            Err(Error::NotFound { .. }) => Vec::new(),
            other => other?,
        };
        let format = |term: &str| {
            // A term is a file's name and nothing else.
            let file = (!term.is_empty() && !term.contains(['/', '.'])).then_some(term)?;
            parse::parse_format(&fs.read_text(dir.join("format").join(file)).ok()?)
        };
        let events = names
            .iter()
            .filter(|name| !name.contains('.'))
            .map(|name| {
                let text = |suffix: &str| {
                    let file = dir.join("events").join(format!("{name}{suffix}"));
                    fs.read_text(file).ok()
                };
                PmuEvent {
                    name: name.clone(),
                    config: text("").and_then(|text| parse::parse_event(&text, format)),
                    scale: text(".scale").and_then(|text| parse::parse_scale(&text)),
                    unit: text(".unit"),
                }
            })
            .collect();
        Ok(Self {
            name: name.to_owned(),
            kind,
            cpus,
            events,
        })
    }

    /// The event of that name.
    pub fn event(&self, name: &str) -> Option<&PmuEvent> {
        self.events.iter().find(|event| event.name == name)
    }

    /// Its directory, below the root.
    pub fn path(&self) -> PathBuf {
        Self::path_of(&self.name)
    }

    fn path_of(name: &str) -> PathBuf {
        PathBuf::from(DEVICES).join(name)
    }
}

/// `perf_event_paranoid`: above 0, whoever lacks `CAP_PERFMON` may open no event of a whole
/// CPU; it may be below 0.
///
/// # Errors
///
/// [`Error::NotFound`] where the kernel has no perf events; [`Error::Malformed`].
pub fn paranoid(fs: &HostFs) -> Result<i32> {
    fs.read("proc/sys/kernel/perf_event_paranoid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    #[test]
    fn a_pmu_with_its_events() {
        let power = "sys/bus/event_source/devices/power";
        let file = |name: &str| format!("{power}/{name}");
        let (_dir, fs) = tree(&[
            (&file("type"), "21\n"),
            (&file("cpumask"), "0,8\n"),
            (&file("format/event"), "config:0-7\n"),
            (&file("events/energy-pkg"), "event=0x02\n"),
            (
                &file("events/energy-pkg.scale"),
                "2.3283064365386962890625e-10\n",
            ),
            (&file("events/energy-pkg.unit"), "Joules\n"),
            (&file("events/odd"), "other=1\n"),
            ("proc/sys/kernel/perf_event_paranoid", "-1\n"),
        ]);
        let pmu = Pmu::read(&fs, "power").unwrap();
        assert_eq!((pmu.kind, pmu.cpus.to_string()), (21, "0,8".into()));
        assert_eq!(pmu.events.len(), 2, "scale and unit are no events");
        let event = pmu.event("energy-pkg").unwrap();
        assert_eq!(event.config.unwrap().config, 2);
        assert_eq!(event.scale, Some(2f64.powi(-32)));
        assert_eq!(event.unit.as_deref(), Some("Joules"));
        assert_eq!(pmu.event("odd").unwrap().config, None);
        assert_eq!(Pmu::list(&fs).unwrap(), ["power"]);
        assert_eq!(paranoid(&fs), Ok(-1));
        let elsewhere = Event::open(&fs, &pmu, event.config.unwrap(), 0);
        assert!(matches!(elsewhere, Err(Error::NotThisMachine { .. })));
    }

    #[test]
    fn without_a_mask_any_online_cpu_will_do() {
        let (_dir, fs) = tree(&[
            ("sys/bus/event_source/devices/msr/type", "9\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
        ]);
        let pmu = Pmu::read(&fs, "msr").unwrap();
        assert_eq!((pmu.cpus.to_string(), pmu.events.len()), ("0-3".into(), 0));
        assert!(Pmu::read(&fs, "power").unwrap_err().is_not_found());
        let (_dir, bare) = tree(&[]);
        assert_eq!(Pmu::list(&bare), Ok(Vec::new()));
    }
}
