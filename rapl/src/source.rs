//! One open counter, whatever its backend.

use std::path::PathBuf;
use std::time::Duration;

use hostfs::pmu::{Count, Event, Pmu};
use hostfs::{Attribute, CpuInfo, HostFs, Msr};

use crate::Fault;
use crate::place::{Place, Places};

/// The low half of an energy register counts; the rest is reserved.
const REGISTER_MASK: u64 = 0xFFFF_FFFF;
/// By how much the kernel's clock for events may fall behind the monotonic one.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(1);
/// How long an event is compared with the same moment.
const REFERENCE_AGE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) enum Source {
    Zone(ZoneSource),
    Event(EventSource),
    Register(RegisterSource),
}

impl Source {
    /// The counter's value in its own counts. `before` is the monotonic clock just now.
    pub(crate) fn read(
        &mut self,
        fs: &HostFs,
        before: Duration,
        clock: impl Fn() -> Duration,
    ) -> Result<u64, Fault> {
        match self {
            Source::Zone(zone) => zone.read(fs),
            Source::Event(event) => event.read(fs, before, clock),
            Source::Register(register) => register.read(fs),
        }
    }

    /// How often it was opened anew.
    pub(crate) fn reopened(&self) -> u64 {
        match self {
            Source::Zone(zone) => zone.energy.reopened(),
            Source::Event(event) => event.reopened,
            Source::Register(register) => register.reopened,
        }
    }
}

/// `energy_uj` of a zone.
#[derive(Debug)]
pub(crate) struct ZoneSource {
    energy: Attribute,
    /// The zone's name file and those of the zones around it, with what they hold.
    names: Vec<(PathBuf, String)>,
    /// How often the file had been opened anew when it was last found to be the same zone.
    known: u64,
}

impl ZoneSource {
    pub(crate) fn new(energy: Attribute, names: Vec<(PathBuf, String)>) -> Self {
        Self {
            known: energy.reopened(),
            energy,
            names,
        }
    }

    fn read(&mut self, fs: &HostFs) -> Result<u64, Fault> {
        let energy_uj = self.energy.read_u64()?;
        if self.energy.reopened() != self.known {
            self.same_zone(fs)?;
            self.known = self.energy.reopened();
        }
        Ok(energy_uj)
    }

    /// A number can come back for another zone after the driver was loaded again.
    fn same_zone(&self, fs: &HostFs) -> Result<(), Fault> {
        for (path, name) in &self.names {
            let now = fs.read_text(path)?;
            if now != *name {
                return Err(Fault::Replaced { now });
            }
        }
        Ok(())
    }
}

/// An energy register, by any CPU of the place whose energy it counts.
#[derive(Debug)]
pub(crate) struct RegisterSource {
    msr: Msr,
    register: u32,
    place: Place,
    reopened: u64,
}

impl RegisterSource {
    pub(crate) fn new(msr: Msr, register: u32, place: Place) -> Self {
        Self {
            msr,
            register,
            place,
            reopened: 0,
        }
    }

    fn read(&mut self, fs: &HostFs) -> Result<u64, Fault> {
        let value = match self.msr.read(self.register) {
            // The register is the whole package's: another CPU shows the same.
            Err(hostfs::Error::Offline { cpu, .. }) => {
                let places = Places::read(fs, &CpuInfo::read(fs))?;
                let other = places.cpu_of(self.place).ok_or(Fault::Offline { cpu })?;
                self.msr = Msr::open(fs, other)?;
                self.reopened += 1;
                self.msr.read(self.register)
            }
            value => value,
        };
        Ok(value? & REGISTER_MASK)
    }
}

/// An event of a perf PMU, opened on one CPU of the place whose energy it counts.
#[derive(Debug)]
pub(crate) struct EventSource {
    pmu: String,
    name: String,
    place: Place,
    event: Event,
    watch: Watch,
    reopened: u64,
}

impl EventSource {
    pub(crate) fn open(
        fs: &HostFs,
        pmu: &Pmu,
        name: &str,
        cpu: u32,
        place: Place,
    ) -> Result<Self, Fault> {
        Ok(Self {
            event: open(fs, pmu, name, cpu)?,
            pmu: pmu.name.clone(),
            name: name.to_owned(),
            place,
            watch: Watch::default(),
            reopened: 0,
        })
    }

    fn read(
        &mut self,
        fs: &HostFs,
        before: Duration,
        clock: impl Fn() -> Duration,
    ) -> Result<u64, Fault> {
        let count = self.event.read();
        if let Ok(count) = &count
            && self.watch.advances(count, before, &clock)
        {
            return counted(count);
        }
        // The event stands still, for its CPU is offline, or it can't be read any more: its
        // count begins anew on another CPU.
        self.reopen(fs)?;
        counted(&self.event.read()?)
    }

    fn reopen(&mut self, fs: &HostFs) -> Result<(), Fault> {
        // The type's number may be another one by now.
        let pmu = Pmu::read(fs, &self.pmu)?;
        let places = Places::read(fs, &CpuInfo::read(fs))?;
        let cpu = self.event.cpu();
        let listed = match self.place.core {
            Some(_) => places.cores(Some(&pmu.cpus)),
            None => places.packages(Some(&pmu.cpus)),
        };
        let (cpu, _) = listed
            .into_iter()
            .find(|(_, place)| *place == self.place)
            .ok_or(Fault::Frozen { cpu })?;
        self.event = open(fs, &pmu, &self.name, cpu)?;
        self.watch = Watch::default();
        self.reopened += 1;
        Ok(())
    }
}

fn open(fs: &HostFs, pmu: &Pmu, name: &str, cpu: u32) -> Result<Event, Fault> {
    let config = pmu
        .event(name)
        .and_then(|event| event.config)
        .ok_or(Fault::Gone)?;
    Event::open(fs, pmu, config, cpu).map_err(|error| match error {
        hostfs::Error::NotPermitted { .. } => Fault::EventsNotPermitted {
            paranoid: hostfs::pmu::paranoid(fs).ok(),
        },
        hostfs::Error::Offline { cpu, .. } => Fault::Offline { cpu },
        other => other.into(),
    })
}

fn counted(count: &Count) -> Result<u64, Fault> {
    if count.running_ns == 0 && count.enabled_ns > 0 {
        return Err(Fault::NeverCounted);
    }
    if count.running_ns < count.enabled_ns {
        return Err(Fault::CountedPartly);
    }
    // Two's complement: only differences count.
    Ok(count.count as u64)
}

/// Compares an event's own clock with the monotonic one: an event whose CPU is offline
/// goes on answering, with a clock that stands still.
#[derive(Debug, Default)]
struct Watch {
    reference: Option<Moment>,
}

#[derive(Debug, Clone, Copy)]
struct Moment {
    enabled_ns: u64,
    /// The monotonic clock just after the event was read.
    after: Duration,
}

impl Watch {
    fn advances(&mut self, count: &Count, before: Duration, clock: impl Fn() -> Duration) -> bool {
        let now = Moment {
            enabled_ns: count.enabled_ns,
            after: clock(),
        };
        let Some(reference) = self.reference else {
            self.reference = Some(now);
            return true;
        };
        let Some(enabled_ns) = now.enabled_ns.checked_sub(reference.enabled_ns) else {
            return false;
        };
        // At least so much time has passed, whenever the two reads were interrupted.
        let passed = before.saturating_sub(reference.after);
        let tolerance = CLOCK_TOLERANCE + passed / 1000;
        if Duration::from_nanos(enabled_ns) + tolerance < passed {
            return false;
        }
        if passed > REFERENCE_AGE {
            self.reference = Some(now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_zone_is_known_by_its_name_and_those_around_it() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("package", "package-0\n"),
            ("core", "core\n"),
            ("energy", "1\n"),
        ] {
            fs::write(dir.path().join(file), text).unwrap();
        }
        let host = HostFs::at(dir.path()).unwrap();
        let names = vec![
            ("package".into(), "package-0".into()),
            ("core".into(), "core".into()),
        ];
        let zone = ZoneSource::new(host.attribute("energy").unwrap(), names);
        assert_eq!(zone.same_zone(&host), Ok(()));
        fs::write(dir.path().join("package"), "package-1\n").unwrap();
        assert_eq!(
            zone.same_zone(&host).unwrap_err().to_string(),
            "another zone, \"package-1\", took its place"
        );
        fs::remove_file(dir.path().join("core")).unwrap();
        fs::write(dir.path().join("package"), "package-0\n").unwrap();
        assert_eq!(zone.same_zone(&host), Err(Fault::Gone));
    }

    fn count(enabled_ms: u64, running_ms: u64) -> Count {
        let text = format!(
            r#"{{"count":5,"enabled_ns":{},"running_ns":{}}}"#,
            enabled_ms * 1_000_000,
            running_ms * 1_000_000
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_event_that_stands_still_is_noticed() {
        let ms = Duration::from_millis;
        let mut watch = Watch::default();
        let mut at = |enabled, before, after| {
            watch.advances(&count(enabled, enabled), ms(before), || ms(after))
        };
        assert!(at(10, 1000, 1000));
        assert!(at(110, 1100, 1100));
        assert!(at(110, 1101, 1101), "a millisecond may be the clocks' own");
        assert!(!at(110, 1103, 1103), "it stands still");
        assert!(!at(110, 9000, 9000));
        // An interruption between the two looks at the clock is no standstill.
        assert!(at(5010, 5000, 6900));
        assert!(at(5110, 6001, 7000), "measured from the last reference");
        assert!(!at(5000, 7000, 7000), "a clock that goes back");
    }

    #[test]
    fn what_was_not_counted_all_the_time_is_not_taken() {
        assert_eq!(counted(&count(10, 10)), Ok(5));
        assert_eq!(counted(&count(0, 0)), Ok(5));
        assert_eq!(counted(&count(10, 0)), Err(Fault::NeverCounted));
        assert_eq!(counted(&count(10, 9)), Err(Fault::CountedPartly));
    }
}
