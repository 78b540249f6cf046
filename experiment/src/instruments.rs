//! The instruments that this machine has, read together along one time line.

use std::time::Instant;

use cpuidle::{CpuIdle, Snapshot, Snapshotter, StateSum};
use hostfs::interrupts::{Interrupts, InterruptsReader};
use hostfs::{CpuSet, HostFs};
use rapl::{Meter, Reading};

use crate::LeftOut;
use crate::sample::{CpuCount, IdleSample, Sample};

/// What can be read here.
#[derive(Debug)]
pub(crate) struct Instruments {
    /// The CPUs over which idle states are summed.
    cpus: CpuSet,
    energy: Result<Meter, String>,
    idle: Option<Snapshotter>,
    interrupts: Option<InterruptsReader>,
}

impl Instruments {
    /// Opens what there is; what there is not is named with its reason.
    pub(crate) fn open(fs: &HostFs, cpus: &CpuSet) -> (Self, Vec<LeftOut>) {
        let mut left_out = Vec::new();
        let energy = Meter::open(fs).map_err(|error| error.to_string());
        match &energy {
            Ok(meter) => left_out.extend(
                meter
                    .skipped()
                    .iter()
                    .map(|skipped| LeftOut::new("an energy zone", skipped)),
            ),
            Err(why) => left_out.push(LeftOut::new("energy", why)),
        }
        let idle = CpuIdle::open(fs).and_then(|idle| idle.snapshotter());
        let idle = idle
            .map_err(|error| left_out.push(LeftOut::new("idle states", error)))
            .ok();
        let interrupts = InterruptsReader::open(fs)
            .map_err(|error| left_out.push(LeftOut::new("interrupts", error)))
            .ok();
        let instruments = Self {
            cpus: cpus.clone(),
            energy,
            idle,
            interrupts,
        };
        (instruments, left_out)
    }

    /// Why there is no energy, where there is none.
    pub(crate) fn energy_unavailable(&self) -> Option<&str> {
        self.energy.as_ref().err().map(String::as_str)
    }

    /// Reads everything for the first time.
    pub(crate) fn into_timeline(mut self) -> Timeline {
        let start = Instant::now();
        let last = self.read();
        Timeline {
            instruments: self,
            start,
            last_s: 0.0,
            last,
        }
    }

    fn read(&mut self) -> Readings {
        Readings {
            energy: self.energy.as_mut().ok().map(Meter::read),
            idle: self.idle.as_mut().map(Snapshotter::snapshot),
            interrupts: self
                .interrupts
                .as_mut()
                .and_then(|reader| reader.read().ok()),
        }
    }
}

/// Everything, read at one moment or nearly so.
#[derive(Debug)]
struct Readings {
    energy: Option<Reading>,
    idle: Option<Snapshot>,
    interrupts: Option<Interrupts>,
}

/// The instruments and what they read last: each sample is what happened since.
#[derive(Debug)]
pub(crate) struct Timeline {
    instruments: Instruments,
    start: Instant,
    last_s: f64,
    last: Readings,
}

impl Timeline {
    /// What happened since the sample before this one.
    pub(crate) fn next_sample(&mut self) -> Sample {
        let before = Instant::now();
        let now = self.instruments.read();
        let middle = before + before.elapsed() / 2;
        let end_s = (middle - self.start).as_secs_f64();
        let sample = now.since(&self.last, &self.instruments.cpus, self.last_s, end_s);
        (self.last, self.last_s) = (now, end_s);
        sample
    }
}

impl Readings {
    fn since(&self, earlier: &Readings, cpus: &CpuSet, start_s: f64, end_s: f64) -> Sample {
        let energy = match (&self.energy, &earlier.energy) {
            (Some(now), Some(then)) => Some(now.since(then)),
            _ => None,
        };
        let total = energy.as_ref().and_then(|energy| energy.total().ok());
        let watts = energy.as_ref().and_then(|energy| energy.total_watts().ok());
        Sample {
            start_s,
            end_s,
            energy_j: total.map(|joules| joules.0),
            watts: watts.map(|watts| watts.0).filter(|watts| watts.is_finite()),
            idle: match (&self.idle, &earlier.idle) {
                (Some(now), Some(then)) => idle(now, then, cpus),
                _ => Vec::new(),
            },
            interrupts: match (&self.interrupts, &earlier.interrupts) {
                (Some(now), Some(then)) => now
                    .since(then)
                    .per_cpu_total()
                    .into_iter()
                    .map(|(cpu, count)| CpuCount { cpu, count })
                    .collect(),
                _ => Vec::new(),
            },
        }
    }
}

fn idle(now: &Snapshot, then: &Snapshot, cpus: &CpuSet) -> Vec<IdleSample> {
    now.since(then)
        .sum_over(cpus)
        .into_iter()
        .map(idle_sample)
        .collect()
}

fn idle_sample(state: StateSum) -> IdleSample {
    // A sum over fewer CPUs would be another figure.
    let counts = state.counts.filter(|_| state.missing.is_empty());
    IdleSample {
        usage: counts.map(|counts| counts.entries),
        time_us: counts.map(|counts| counts.time_us),
        too_deep: counts.and_then(|counts| counts.too_deep),
        too_shallow: counts.and_then(|counts| counts.too_shallow),
        name: state.name,
    }
}
