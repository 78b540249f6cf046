//! A thread that reads often enough.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostfs::Stamp;

use crate::outcome::outcome;
use crate::reading::Plan;
use crate::series::{Gap, Sample, Series, Total};
use crate::{DomainReading, Error, Joules, Meter, Outcome, Reading, Wrap};

/// More are not of interest, and a series of days is not to grow by them.
const GAPS: usize = 1024;
/// A reading that is later than this is a gap, however short the period.
const LATE: Duration = Duration::from_millis(20);

/// Samples of a [`Meter`], taken by a thread of its own.
///
/// The counters are read at least twice as often as they may be left unread at the
/// meter's power bound ([`Meter::longest_gap`]), however long the period is: the sum over
/// days lacks no wrap. At 1 Hz the thread takes some ten microseconds a second.
///
/// ```no_run
/// use hostfs::HostFs;
/// use rapl::{Meter, Sampler};
/// use std::time::Duration;
///
/// let meter = Meter::open(&HostFs::live())?;
/// let sampler = Sampler::start(meter, Duration::from_secs(1))?;
/// std::thread::sleep(Duration::from_secs(10));
/// for sample in sampler.stop().samples {
///     println!("{:?}", sample.total_watts());
/// }
/// # Ok::<(), rapl::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    thread: hostfs::Sampler<()>,
    state: Arc<Mutex<State>>,
    tick: Duration,
}

impl Sampler {
    /// Starts a series that grows by a sample a period.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`] when none can be started.
    pub fn start(meter: Meter, period: Duration) -> Result<Self, Error> {
        Self::run(meter, period, None)
    }

    /// Starts a series that keeps the newest samples only. Its memory is taken now: while
    /// it runs it allocates nothing.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_bounded(meter: Meter, period: Duration, samples: usize) -> Result<Self, Error> {
        Self::run(meter, period, Some(samples.max(1)))
    }

    fn run(mut meter: Meter, period: Duration, keep: Option<usize>) -> Result<Self, Error> {
        let period = period.max(Duration::from_millis(1));
        let ticks = ticks(period, meter.longest_gap());
        let tick = period / ticks;
        let mut reading = meter.read();
        let state = State::new(Arc::clone(meter.plan()), &reading, tick, ticks, keep);
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        // Its first call is at once: the series begins there.
        let mut first = true;
        let thread = hostfs::Sampler::start(tick, move || {
            meter.read_into(&mut reading);
            let mut state = lock(&shared);
            if std::mem::take(&mut first) {
                state.begin(&reading);
            } else {
                state.add(&reading);
            }
        });
        Ok(Self {
            thread: thread.map_err(|error| Error::Thread(error.to_string()))?,
            state,
            tick,
        })
    }

    /// The time from one reading to the next: the period, or a whole part of it.
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// Ends a sample now, so that the series has a border here. False if the thread has
    /// ended, which only a fault of this crate can do.
    pub fn mark(&self) -> bool {
        let taken = self.thread.mark().is_some();
        lock(&self.state).close();
        taken
    }

    /// What has been gathered so far.
    pub fn series(&self) -> Series {
        lock(&self.state).series()
    }

    /// Takes a last sample, ends the thread and returns the series.
    pub fn stop(self) -> Series {
        self.thread.stop();
        let mut state = lock(&self.state);
        state.close();
        state.series()
    }

    /// Runs a piece of work, then stops. A panic of the work is returned beside the series,
    /// which it does not lose.
    pub fn during<R>(self, work: impl FnOnce() -> R) -> (std::thread::Result<R>, Series) {
        let answer = catch_unwind(AssertUnwindSafe(work));
        (answer, self.stop())
    }
}

/// How many readings make a sample.
fn ticks(period: Duration, longest_gap: Option<Duration>) -> u32 {
    let Some(gap) = longest_gap else {
        return 1;
    };
    // A thread that starves has as long again.
    let often = (gap / 2).max(Duration::from_millis(1));
    let ticks = period.as_nanos().div_ceil(often.as_nanos().max(1));
    u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The series while it grows.
#[derive(Debug)]
struct State {
    plan: Arc<Plan>,
    tick: Duration,
    ticks: u32,
    keep: Option<usize>,
    start: Stamp,
    /// The last reading's stamp.
    last: Stamp,
    /// Of each domain the last reading that had a value.
    good: Vec<Option<DomainReading>>,
    /// Of each domain, whether that was the last one of all.
    fresh: Vec<bool>,
    /// The sample that is being gathered: since when, from how many readings, and of each
    /// domain how much.
    since: Stamp,
    readings: u32,
    joules: Vec<Option<Joules>>,
    samples: VecDeque<Sample>,
    /// Memory for samples to come.
    spare: Vec<Vec<Option<Joules>>>,
    dropped: u64,
    totals: Vec<Total>,
    gaps: VecDeque<Gap>,
    gaps_dropped: u64,
}

impl State {
    fn new(
        plan: Arc<Plan>,
        reading: &Reading,
        tick: Duration,
        ticks: u32,
        keep: Option<usize>,
    ) -> Self {
        let domains = plan.domains.len();
        let keep_now = keep.unwrap_or(0);
        let mut state = Self {
            tick,
            ticks,
            keep,
            start: *reading.stamp(),
            last: *reading.stamp(),
            good: vec![None; domains],
            fresh: vec![false; domains],
            since: *reading.stamp(),
            readings: 0,
            joules: vec![Some(Joules(0.0)); domains],
            samples: VecDeque::with_capacity(keep_now),
            spare: (0..keep_now).map(|_| Vec::with_capacity(domains)).collect(),
            dropped: 0,
            totals: vec![Total::default(); domains],
            gaps: VecDeque::with_capacity(GAPS),
            gaps_dropped: 0,
            plan,
        };
        state.begin(reading);
        state
    }

    fn begin(&mut self, reading: &Reading) {
        (self.start, self.last, self.since) =
            (*reading.stamp(), *reading.stamp(), *reading.stamp());
        for (good, value) in self.good.iter_mut().zip(&reading.values) {
            *good = value.count.is_ok().then(|| value.clone());
        }
        self.fresh.fill(true);
    }

    fn add(&mut self, reading: &Reading) {
        self.note_gap(reading.stamp());
        for (at, value) in reading.values.iter().enumerate() {
            self.add_domain(at, value);
        }
        self.last = *reading.stamp();
        self.readings += 1;
        if self.readings >= self.ticks {
            self.close();
        }
    }

    fn add_domain(&mut self, at: usize, value: &DomainReading) {
        // What was consumed since an older one belongs to several samples.
        let fresh = std::mem::replace(&mut self.fresh[at], value.count.is_ok());
        let (domain, total) = (&self.plan.domains[at], &mut self.totals[at]);
        let Some(good) = &self.good[at] else {
            // It never had a value, or not since its energy was lost.
            self.joules[at] = None;
            if let Err(fault) = &value.count {
                total.missing += 1;
                total.last_missing = Some(fault.into());
            } else {
                self.good[at] = Some(value.clone());
            }
            return;
        };
        if let Err(fault) = &value.count {
            // The total may still catch up, the sample can't.
            self.joules[at] = None;
            total.last_missing = Some(fault.into());
            if matches!(Outcome::from(fault), Outcome::Frozen) {
                total.missing += 1;
                self.good[at] = None;
            }
            return;
        }
        match outcome(domain, self.plan.bound(domain), good, value) {
            Outcome::Measured { joules, wrap, .. } => {
                total.joules = total.joules + joules;
                total.wraps += u64::from(matches!(wrap, Wrap::Corrected | Wrap::CorrectedByRange));
                if let Some(elapsed) = value.stamp.since(&good.stamp) {
                    total.time += elapsed.wall();
                }
                self.joules[at] = self.joules[at].filter(|_| fresh).map(|sum| sum + joules);
            }
            missing => {
                total.missing += 1;
                total.last_missing = Some(missing);
                self.joules[at] = None;
            }
        }
        self.good[at] = Some(value.clone());
    }

    fn note_gap(&mut self, now: &Stamp) {
        let Some(elapsed) = now.since(&self.last) else {
            return;
        };
        let at = *now;
        if !elapsed.asleep.is_zero() {
            let asleep = elapsed.asleep;
            self.push_gap(Gap::Suspended { at, asleep });
        }
        let by = elapsed.time.saturating_sub(self.tick);
        if by > LATE.max(self.tick / 2) {
            self.push_gap(Gap::Late { at, by });
        }
    }

    fn push_gap(&mut self, gap: Gap) {
        if self.gaps.len() == GAPS {
            self.gaps.pop_front();
            self.gaps_dropped += 1;
        }
        self.gaps.push_back(gap);
    }

    /// Ends the sample that is being gathered.
    fn close(&mut self) {
        let Some(elapsed) = self.last.since(&self.since) else {
            return;
        };
        if self.readings == 0 || elapsed.time.is_zero() {
            return;
        }
        if self.keep == Some(self.samples.len())
            && let Some(oldest) = self.samples.pop_front()
        {
            self.dropped += 1;
            self.spare.push(oldest.joules);
        }
        let mut joules = self.spare.pop().unwrap_or_default();
        joules.clear();
        joules.extend_from_slice(&self.joules);
        self.samples.push_back(Sample {
            end: self.last,
            elapsed,
            total: self.total(),
            joules,
        });
        self.since = self.last;
        self.readings = 0;
        self.joules.fill(Some(Joules(0.0)));
    }

    fn total(&self) -> Option<Joules> {
        let counted = self.plan.domains.iter().zip(&self.joules);
        let mut counted = counted.filter(|(domain, _)| domain.in_total).peekable();
        counted.peek()?;
        if self.plan.skipped.iter().any(|skipped| skipped.in_total) {
            return None;
        }
        counted.try_fold(Joules(0.0), |sum, (_, joules)| Some(sum + (*joules)?))
    }

    fn series(&self) -> Series {
        let mut totals = self.totals.clone();
        for (at, total) in totals.iter_mut().enumerate() {
            // Since its last good reading nothing is known, unless a later one tells.
            total.missing += u64::from(!self.fresh[at] && self.good[at].is_some());
        }
        Series {
            domains: self.plan.domains.clone(),
            skipped: self.plan.skipped.clone(),
            start: self.start,
            samples: self.samples.iter().cloned().collect(),
            dropped: self.dropped,
            totals,
            gaps: self.gaps.iter().copied().collect(),
            gaps_dropped: self.gaps_dropped,
        }
    }
}

#[cfg(test)]
mod tests;
