//! The experiment from the first sample to the last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hostfs::Sampler;
use pingpong::{Limit, RingResult, Rings, Stopper, TransportKind};

use crate::analysis::analyse;
use crate::instruments::Instruments;
use crate::plan::Slot;
use crate::results::{Ending, RingRun, Run, SCHEMA};
use crate::sample::sum_of_all;
use crate::{Error, Host, LeftOut, Machine, Plan, Results, RingPlan, Sample, Until, Variant};

/// How long a sleep may go on after the experiment was told to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Where an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Samples are taken before the first run.
    Lead,
    /// A run is about to begin.
    Run {
        /// Its block, from 0.
        block: u32,
        /// Which of all runs it is, from 0.
        number: u32,
        /// The variant's name.
        variant: &'a str,
    },
    /// Samples are taken after the last run.
    Tail,
}

/// An experiment that is ready to run.
#[derive(Debug)]
pub struct Experiment {
    plan: Plan,
    host: Host,
    left_out: Vec<LeftOut>,
    command: Vec<String>,
}

impl Experiment {
    /// Checks the plan against the machine. Nothing is changed yet.
    ///
    /// `left_out` and `command` (what repeats the experiment) are passed on to the results.
    ///
    /// # Errors
    ///
    /// A plan that can't run: no variant or no block, two variants of one name, an unknown
    /// transport, CPUs that can't be used.
    pub fn new(
        host: Host,
        plan: Plan,
        left_out: Vec<LeftOut>,
        command: Vec<String>,
    ) -> Result<Self, Error> {
        if plan.variants.is_empty() {
            return Err(Error::EmptyPlan("there is no variant"));
        }
        if plan.blocks == 0 {
            return Err(Error::EmptyPlan("there is no block"));
        }
        Variant::check_names(&plan.variants)?;
        rings(&plan.ring, &Stopper::new())?;
        Ok(Self {
            plan,
            host,
            left_out,
            command,
        })
    }

    /// Runs it to its end, until `stop` is set, or until a run fails; the ending is in the
    /// results. Whatever happens, the machine is put back to what it was found as, and the
    /// finished blocks are analysed.
    ///
    /// # Errors
    ///
    /// [`Error::Sampler`] if no sampling thread can be started.
    pub fn run(
        self,
        stop: &Arc<AtomicBool>,
        mut observe: impl FnMut(Progress<'_>),
    ) -> Result<Results, Error> {
        let machine = Machine::read(self.host.fs());
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        let (instruments, missing) = Instruments::open(self.host.fs(), &self.plan.ring.cpus());
        let energy_unavailable = instruments.energy_unavailable().map(str::to_owned);
        let mut left_out = self.left_out.clone();
        left_out.extend(missing);

        let mut timeline = instruments.into_timeline();
        let sampler = Sampler::start(self.plan.sample, move || timeline.next_sample())
            .map_err(|error| Error::Sampler(error.to_string()))?;
        let mut session = Session {
            plan: &self.plan,
            host: &self.host,
            sampler: &sampler,
            stop,
            runs: Vec::new(),
        };
        let ended = session.all_blocks(&mut observe);
        let Session { mut runs, .. } = session;
        let mut samples = sampler.stop();
        // The first reading has nothing before it: the sample after it is the first.
        if !samples.is_empty() {
            samples.remove(0);
        }
        let ending = match ended {
            Ok(()) => Ending::Complete,
            Err(Stopped::Told) => Ending::Interrupted,
            Err(Stopped::Failed(error)) => Ending::Failed {
                error: error.to_string(),
            },
        };
        let runs_in_a_block = self.plan.variants.len() + 1;
        runs.truncate(runs.len() / runs_in_a_block * runs_in_a_block);
        for run in &mut runs {
            run.measure(&samples);
        }
        let analysis = analyse(&self.plan, &runs, &samples, energy_unavailable.as_deref());
        let troubles = self.host.record().troubles();
        Ok(Results {
            schema: SCHEMA.into(),
            started_unix_s: started.map_or(0, |since| since.as_secs()),
            command: self.command,
            machine,
            left_out,
            warnings: troubles.iter().map(ToString::to_string).collect(),
            ending,
            blocks_done: (runs.len() / runs_in_a_block) as u32,
            variants: analysis.variants,
            comparisons: analysis.comparisons,
            noise_check: analysis.noise_check,
            plan: self.plan,
            runs,
            samples,
        })
    }
}

/// Loops that make a run of the rings last about so long here, from a short run.
///
/// # Errors
///
/// As [`pingpong::Rings::run`].
pub fn loops_for(ring: &RingPlan, length: Duration, stop: &Arc<AtomicBool>) -> Result<u64, Error> {
    const PILOT: Duration = Duration::from_millis(300);
    let pilot = RingPlan {
        until: Until::Seconds(PILOT.as_secs_f64()),
        ..ring.clone()
    };
    let results = rings(&pilot, &Stopper::from(Arc::clone(stop)))?.run()?;
    // The slowest ring decides how long a run lasts.
    let loops = results.iter().map(|ring| ring.loops).min().unwrap_or(0);
    let loops = loops as f64 * length.as_secs_f64() / PILOT.as_secs_f64();
    // Two digits are enough, and can be typed.
    let unit = 10f64.powf((loops.max(1.0).log10().floor() - 1.0).max(0.0));
    Ok(((loops / unit).round() * unit).max(1.0) as u64)
}

fn rings(plan: &RingPlan, stopper: &Stopper) -> Result<Rings, Error> {
    let transport: TransportKind = plan.transport.parse()?;
    let limit = match plan.until {
        Until::Loops(loops) => Limit::Loops(loops),
        Until::Seconds(seconds) => {
            // What is no length of time is refused as one of none.
            Limit::Time(Duration::try_from_secs_f64(seconds).unwrap_or_default())
        }
    };
    let mut builder = Rings::builder()
        .transport(transport)
        .work(plan.work)
        .limit(limit)
        .stopper(stopper.clone());
    for cpus in &plan.rings {
        builder = builder.ring(cpus.clone());
    }
    Ok(builder.build()?)
}

/// Why the blocks did not all run.
enum Stopped {
    Told,
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::Failed(error)
    }
}

struct Session<'a> {
    plan: &'a Plan,
    host: &'a Host,
    sampler: &'a Sampler<Sample>,
    stop: &'a Arc<AtomicBool>,
    runs: Vec<Run>,
}

impl Session<'_> {
    fn all_blocks(&mut self, observe: &mut impl FnMut(Progress<'_>)) -> Result<(), Stopped> {
        observe(Progress::Lead);
        self.sleep(self.plan.lead)?;
        let mut number = 0;
        for block in 0..self.plan.blocks {
            for (place, slot) in (0..).zip(self.plan.block(block)) {
                let variant = &self.plan.variants[slot.variant()];
                observe(Progress::Run {
                    block,
                    number,
                    variant: &variant.name,
                });
                let run = self.run(block, place, slot, variant)?;
                self.runs.push(run);
                number += 1;
            }
        }
        observe(Progress::Tail);
        self.sleep(self.plan.tail)
    }

    /// One run: apply, let settle, measure, see that all still holds, put back.
    fn run(&self, block: u32, place: u32, slot: Slot, variant: &Variant) -> Result<Run, Stopped> {
        self.go_on()?;
        let mut applied = self.host.apply(variant, self.stop)?;
        self.sleep(self.plan.settle)?;
        applied.check()?;
        let rings = rings(&self.plan.ring, &Stopper::from(Arc::clone(self.stop)))?;
        let first_sample = self.mark()?;
        let results = rings.run().map_err(Error::from)?;
        let end_sample = self.mark()?;
        self.go_on()?;
        applied.check()?;
        Ok(Run {
            block,
            place,
            variant: variant.name.clone(),
            duplicate: slot == Slot::Duplicate,
            start_s: 0.0,
            end_s: 0.0,
            rings: results.iter().map(RingRun::from).collect(),
            energy_j: None,
            first_sample,
            end_sample,
        })
    }

    /// The number of samples from the first reading to a reading taken now.
    fn mark(&self) -> Result<usize, Stopped> {
        self.sampler
            .mark()
            .ok_or_else(|| Stopped::Failed(Error::Sampler("it has ended".into())))
    }

    fn sleep(&self, length: Duration) -> Result<(), Stopped> {
        let end = Instant::now() + length;
        loop {
            self.go_on()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(PATIENCE));
        }
    }

    fn go_on(&self) -> Result<(), Stopped> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Stopped::Told),
            false => Ok(()),
        }
    }
}

impl Run {
    /// Takes over what the samples within the run say.
    fn measure(&mut self, samples: &[Sample]) {
        let Some(during) = samples.get(self.first_sample..self.end_sample) else {
            return;
        };
        if let (Some(first), Some(last)) = (during.first(), during.last()) {
            self.start_s = first.start_s;
            self.end_s = last.end_s;
        }
        self.energy_j = sum_of_all(during.iter().map(|sample| sample.energy_j));
    }
}

impl From<&RingResult> for RingRun {
    fn from(ring: &RingResult) -> Self {
        Self {
            us_per_loop: ring.us_per_loop(),
            loops: ring.loops,
            elapsed_s: ring.elapsed.as_secs_f64(),
        }
    }
}
