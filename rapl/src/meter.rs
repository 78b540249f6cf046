//! The open counters.

use std::sync::Arc;
use std::time::Duration;

use hostfs::{HostFs, Stamps};

use crate::discover::discover;
use crate::outcome::longest_gap;
use crate::reading::Plan;
use crate::source::Source;
use crate::{Domain, DomainReading, Energy, Error, Options, Reading, Skipped};

/// The best counter of each domain of the machine, kept open.
///
/// Reading takes one `pread` (or `read` of an event) and one look at the clock for each of
/// them and, with [`read_into`](Self::read_into), no allocation.
#[derive(Debug)]
pub struct Meter {
    fs: HostFs,
    plan: Arc<Plan>,
    sources: Vec<Source>,
}

impl Meter {
    /// Opens the counters with the default [`Options`].
    ///
    /// Powercap needs root or `CAP_DAC_READ_SEARCH` since Linux 5.10, perf `CAP_PERFMON` or
    /// a `perf_event_paranoid` of 0 or less, MSRs root and `CAP_SYS_RAWIO`.
    ///
    /// # Errors
    ///
    /// Only where there is no counter at all that can be read; the [`Error`] says which case
    /// it is. Counters that can't be read beside others that can are
    /// [`skipped`](Self::skipped).
    pub fn open(fs: &HostFs) -> Result<Self, Error> {
        Self::open_with(fs, Options::default())
    }

    /// As [`open`](Self::open), with other options.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), [`Error::PowerBound`] and [`Error::NoSuchDomain`].
    pub fn open_with(fs: &HostFs, options: Options) -> Result<Self, Error> {
        let bound = options.power_bound;
        if !(bound.0.is_finite() && bound.0 > 0.0) {
            return Err(Error::PowerBound(bound));
        }
        let found = discover(fs, &options)?;
        Ok(Self {
            fs: fs.clone(),
            sources: found.sources,
            plan: Arc::new(Plan::new(found.domains, found.skipped, bound)),
        })
    }

    /// What is counted, in the order of every [`Reading`]: by backend, control type and zone.
    pub fn domains(&self) -> &[Domain] {
        &self.plan.domains
    }

    /// The counters that were found and can't be read, with the reason for each.
    pub fn skipped(&self) -> &[Skipped] {
        &self.plan.skipped
    }

    /// For how long the counters may be left unread, so that at the power bound none can
    /// wrap, nor half wrap where the kernel takes that for a step back (perf), unseen.
    /// `None` where nothing wraps, or it is not known when.
    pub fn longest_gap(&self) -> Option<Duration> {
        self.plan
            .domains
            .iter()
            .filter_map(|domain| longest_gap(domain, self.plan.bound(domain)))
            .min()
    }

    /// Reads every counter. One that fails has its reason in the reading.
    pub fn read(&mut self) -> Reading {
        let mut reading = Reading::empty(&self.plan);
        self.read_into(&mut reading);
        reading
    }

    /// As [`read`](Self::read), into an earlier reading of this meter, whose memory is used
    /// again: allocates nothing unless a counter fails or is opened anew.
    pub fn read_into(&mut self, reading: &mut Reading) {
        let mut stamps = Stamps::start();
        reading.restart(&self.plan);
        for source in &mut self.sources {
            let reopened = source.reopened();
            let mut count = source.read(&self.fs, stamps.last(), Stamps::now);
            if source.reopened() != reopened {
                // Opening takes long: read once more, so that the stamp is close.
                stamps.next_stamp();
                count = source.read(&self.fs, stamps.last(), Stamps::now);
            }
            reading.values.push(DomainReading {
                count,
                stamp: stamps.next_stamp(),
                reopened: source.reopened(),
            });
        }
        reading.stamp = stamps.whole();
    }

    /// The energy of a piece of work, and what it returns.
    ///
    /// An interval longer than [`longest_gap`](Self::longest_gap) can be ambiguous: see
    /// [`Sampler`](crate::Sampler) for those.
    ///
    /// ```
    /// # use hostfs::HostFs;
    /// # use rapl::Meter;
    /// # let Ok(mut meter) = Meter::open(&HostFs::live()) else { return };
    /// let (sum, energy) = meter.measure(|| (0..1_000_000u64).sum::<u64>());
    /// println!("{sum}: {:?}", energy.total());
    /// ```
    pub fn measure<R>(&mut self, work: impl FnOnce() -> R) -> (R, Energy) {
        let before = self.read();
        let answer = work();
        (answer, self.read().since(&before))
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }
}
