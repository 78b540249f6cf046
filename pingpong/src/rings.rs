//! Rings as the caller describes them.

use crate::cpus::{refused, usable_cpus};
use crate::{Error, Limit, RingResult, Stopper, TransportKind, run};

/// Independent rings, checked and ready to run.
#[derive(Debug, Clone)]
pub struct Rings {
    /// The CPUs of each ring's stops.
    pub(crate) rings: Vec<Vec<u32>>,
    pub(crate) transport: TransportKind,
    pub(crate) work: u64,
    pub(crate) limit: Limit,
    pub(crate) stopper: Stopper,
}

impl Rings {
    /// Describes rings, beginning with none.
    pub fn builder() -> RingsBuilder {
        RingsBuilder::default()
    }

    /// Runs all rings once and waits for their end; the results are in the rings' order.
    ///
    /// Every stop is a thread of its own; the caller's affinity stays as it is, and a mask
    /// inherited from it binds no stop. When all stops are pinned and every ring has gone
    /// round a few times, all begin together. The calling thread sleeps, looking five times a
    /// second whether each stop still has its CPU. On return, with an error too, no thread
    /// and no descriptor is left.
    ///
    /// # Errors
    ///
    /// When one ring fails, all end. A CPU that went away since
    /// [`build`](RingsBuilder::build) is one of the errors named there; resources may lack
    /// ([`Error::Create`], [`Error::Spawn`]); a stop can lose its CPU
    /// ([`Error::LostCpu`], within a second). No privilege is needed.
    pub fn run(&self) -> Result<Vec<RingResult>, Error> {
        self.run_with(|_, _| ())
    }

    /// As [`run`](Rings::run), with `visit(ring, stop)` called at each stop, in its thread,
    /// whenever it has the token, warm-up left out. It belongs to what is measured; for the
    /// tests, which see the order by it and panic in it.
    #[doc(hidden)]
    pub fn run_with(&self, visit: impl Fn(usize, usize) + Sync) -> Result<Vec<RingResult>, Error> {
        run::run(self, &visit)
    }
}

/// Describes [`Rings`].
#[derive(Debug, Clone)]
#[must_use = "nothing is measured before build() and run()"]
pub struct RingsBuilder {
    rings: Vec<Vec<u32>>,
    transport: TransportKind,
    work: u64,
    limit: Limit,
    stopper: Option<Stopper>,
}

impl Default for RingsBuilder {
    fn default() -> Self {
        Self {
            rings: Vec::new(),
            transport: TransportKind::default(),
            work: 0,
            limit: Limit::Loops(100_000),
            stopper: None,
        }
    }
}

impl RingsBuilder {
    /// Adds a ring: a stop for each CPU, in the token's order. A CPU may appear more than
    /// once, in one ring and in several, where the transport blocks. The first stop takes
    /// the time.
    pub fn ring(mut self, cpus: impl Into<Vec<u32>>) -> Self {
        self.rings.push(cpus.into());
        self
    }

    /// What passes the token, in all rings; [`TransportKind::Pipe`] if not set.
    pub fn transport(mut self, transport: TransportKind) -> Self {
        self.transport = transport;
        self
    }

    /// Units of work at each stop for each hop; none if not set.
    /// [`work_unit_ns`](crate::work_unit_ns) tells what one costs.
    pub fn work(mut self, units: u64) -> Self {
        self.work = units;
        self
    }

    /// When each ring ends; after 100,000 loops if not set.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limit = limit;
        self
    }

    /// Lets this handle end the rings before their limit.
    pub fn stopper(mut self, stopper: Stopper) -> Self {
        self.stopper = Some(stopper);
        self
    }

    /// Checks the description against this machine and process.
    ///
    /// # Errors
    ///
    /// [`Error::NoRings`], [`Error::TooFewStops`], [`Error::EmptyLimit`],
    /// [`Error::NeverEnds`] for what can't run anywhere; [`Error::NoSuchCpu`],
    /// [`Error::CpuOffline`], [`Error::CpuOutsideCpuset`] (or [`Error::Pin`], where the
    /// kernel doesn't tell which) for the first CPU that can't be used here, and
    /// [`Error::SpinShared`] for spinning stops that share a CPU.
    pub fn build(self) -> Result<Rings, Error> {
        self.check_shape()?;
        let usable = usable_cpus()?;
        if let Some(&cpu) = self.cpus().find(|&&cpu| !usable.contains(cpu)) {
            let source = std::io::Error::from_raw_os_error(libc::EINVAL);
            return Err(refused(cpu, source));
        }
        if self.transport == TransportKind::Spin
            && let Some((cpu, stops)) = self.first_shared()
        {
            return Err(Error::SpinShared { cpu, stops, usable });
        }
        Ok(Rings {
            rings: self.rings,
            transport: self.transport,
            work: self.work,
            limit: self.limit,
            stopper: self.stopper.unwrap_or_default(),
        })
    }

    /// What needs no look at the machine.
    fn check_shape(&self) -> Result<(), Error> {
        if self.rings.is_empty() {
            return Err(Error::NoRings);
        }
        if let Some(ring) = self.rings.iter().position(|cpus| cpus.len() < 2) {
            let stops = self.rings[ring].len();
            return Err(Error::TooFewStops { ring, stops });
        }
        match self.limit {
            Limit::Loops(0) => Err(Error::EmptyLimit { limit: "0 loops" }),
            Limit::Time(time) if time.is_zero() => Err(Error::EmptyLimit { limit: "no time" }),
            Limit::UntilStopped if self.stopper.is_none() => Err(Error::NeverEnds),
            _ => Ok(()),
        }
    }

    /// The CPUs of all stops of all rings.
    fn cpus(&self) -> impl Iterator<Item = &u32> {
        self.rings.iter().flatten()
    }

    /// The lowest CPU with more than one stop, and how many it has.
    fn first_shared(&self) -> Option<(u32, usize)> {
        let mut cpus: Vec<u32> = self.cpus().copied().collect();
        cpus.sort_unstable();
        let mut groups = cpus.chunk_by(|a, b| a == b);
        let shared = groups.find(|group| group.len() > 1)?;
        Some((shared[0], shared.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_that_share_a_cpu_are_found_over_all_rings() {
        let shared = |rings: &[&[u32]]| {
            let add = |builder: RingsBuilder, cpus: &&[u32]| builder.ring(*cpus);
            rings.iter().fold(Rings::builder(), add).first_shared()
        };
        assert_eq!(shared(&[&[0, 1], &[2, 3]]), None);
        assert_eq!(shared(&[&[0, 5], &[2, 5], &[5, 9]]), Some((5, 3)));
        assert_eq!(shared(&[&[7, 7], &[3, 4, 3]]), Some((3, 2)));
    }
}
