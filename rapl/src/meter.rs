//! The open counters.

use std::sync::Arc;

use hostfs::{HostFs, Stamps};

use crate::discover::{OpenZone, discover};
use crate::reading::Plan;
use crate::{Domain, DomainReading, Error, Fault, Reading, Skipped, Watts};

/// How to open a [`Meter`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Options {
    power_bound: Watts,
}

impl Default for Options {
    /// A power bound of 1 kW.
    fn default() -> Self {
        Self {
            power_bound: Watts(1000.0),
        }
    }
}

impl Options {
    /// No package, die or dram draws more than this. By it, an interval in which a counter
    /// may have wrapped more than once is told from one in which it can't have, and a
    /// counter that was reset from one that wrapped.
    ///
    /// The default of 1 kW is about twice what the largest server packages may draw, for
    /// whom a counter in units of 2⁻¹⁴ J is good for 262 s between two readings, one of
    /// 2⁻¹⁶ J for 65 s. For a psys zone the bound is twice this for each package.
    #[must_use]
    pub fn power_bound(mut self, bound: Watts) -> Self {
        self.power_bound = bound;
        self
    }
}

/// Every energy counter of the machine that can be read, kept open.
///
/// Reading takes one `pread` and one look at the clock for each of them and, with
/// [`read_into`](Self::read_into), no allocation.
#[derive(Debug)]
pub struct Meter {
    fs: HostFs,
    plan: Arc<Plan>,
    zones: Vec<OpenZone>,
    /// For each zone, how often its file had been opened anew when it was last found to be
    /// the same zone.
    known: Vec<u64>,
}

impl Meter {
    /// Opens the zones below `sys/class/powercap` with the default [`Options`].
    ///
    /// Needs root or `CAP_DAC_READ_SEARCH` since Linux 5.10.
    ///
    /// # Errors
    ///
    /// Only where there is no zone at all that can be read; the [`Error`] says which case
    /// it is. Zones that can't be read beside others that can are
    /// [`skipped`](Self::skipped).
    pub fn open(fs: &HostFs) -> Result<Self, Error> {
        Self::open_with(fs, Options::default())
    }

    /// As [`open`](Self::open), with other options.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Error::PowerBound`].
    pub fn open_with(fs: &HostFs, options: Options) -> Result<Self, Error> {
        let bound = options.power_bound;
        if !(bound.0.is_finite() && bound.0 > 0.0) {
            return Err(Error::PowerBound(bound));
        }
        let found = discover(fs)?;
        let domains = found.zones.iter().map(|zone| zone.domain.clone()).collect();
        Ok(Self {
            fs: fs.clone(),
            known: vec![0; found.zones.len()],
            zones: found.zones,
            plan: Arc::new(Plan::new(domains, found.skipped, bound)),
        })
    }

    /// What is counted, in the order of every [`Reading`]: by control type and zone.
    pub fn domains(&self) -> &[Domain] {
        &self.plan.domains
    }

    /// The zones that were found and can't be read, with the reason for each.
    pub fn skipped(&self) -> &[Skipped] {
        &self.plan.skipped
    }

    /// Reads every counter. One that fails has its reason in the reading.
    pub fn read(&mut self) -> Reading {
        let mut reading = Reading::empty(&self.plan);
        self.read_into(&mut reading);
        reading
    }

    /// As [`read`](Self::read), into an earlier reading of this meter, whose memory is used
    /// again: allocates nothing unless a counter fails.
    pub fn read_into(&mut self, reading: &mut Reading) {
        let mut stamps = Stamps::start();
        reading.restart(&self.plan);
        for (zone, known) in self.zones.iter_mut().zip(&mut self.known) {
            let energy_uj = read_zone(&self.fs, zone, known);
            reading.values.push(DomainReading {
                energy_uj,
                stamp: stamps.next_stamp(),
                reopened: zone.energy.reopened(),
            });
        }
        reading.stamp = stamps.whole();
    }
}

fn read_zone(fs: &HostFs, zone: &mut OpenZone, known: &mut u64) -> Result<u64, Fault> {
    let energy_uj = zone.energy.read_u64()?;
    if zone.energy.reopened() != *known {
        same_zone(fs, zone)?;
        *known = zone.energy.reopened();
    }
    Ok(energy_uj)
}

/// A number can come back for another zone after the driver was loaded again.
fn same_zone(fs: &HostFs, zone: &OpenZone) -> Result<(), Fault> {
    for (path, name) in &zone.names {
        let now = fs.read_text(path)?;
        if now != *name {
            return Err(Fault::Replaced { now });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_zone_is_known_by_its_name_and_those_around_it() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("sys/class/powercap/intel-rapl:0");
        let core = package.join("intel-rapl:0:0");
        fs::create_dir_all(&core).unwrap();
        for (zone, name) in [(&package, "package-0\n"), (&core, "core\n")] {
            fs::write(zone.join("name"), name).unwrap();
            fs::write(zone.join("energy_uj"), "1\n").unwrap();
        }
        let host = HostFs::at(dir.path()).unwrap();
        let meter = Meter::open(&host).unwrap();
        let zone = &meter.zones[1];
        assert_eq!(zone.domain.id, "intel-rapl/package-0/core");
        assert_eq!(same_zone(&host, zone), Ok(()));
        fs::write(package.join("name"), "package-1\n").unwrap();
        assert_eq!(
            same_zone(&host, zone).unwrap_err().to_string(),
            "another zone, \"package-1\", took its place"
        );
        fs::remove_file(core.join("name")).unwrap();
        fs::write(package.join("name"), "package-0\n").unwrap();
        assert_eq!(same_zone(&host, zone), Err(Fault::Gone));
    }

    #[test]
    fn a_bound_is_a_power() {
        for bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let options = Options::default().power_bound(Watts(bound));
            let error = Meter::open_with(&HostFs::live(), options).unwrap_err();
            assert!(matches!(error, Error::PowerBound(_)), "{bound}: {error}");
        }
    }
}
