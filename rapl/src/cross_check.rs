//! Two backends side by side.

use std::fmt;

use hostfs::HostFs;

use crate::{Backend, Domain, DomainEnergy, Energy, Error, Joules, Meter, Options};

/// Two meters over the same domains by two backends.
///
/// ```no_run
/// use hostfs::HostFs;
/// use rapl::{Backend, CrossCheck, Options};
///
/// let fs = HostFs::live();
/// let mut check = CrossCheck::open(&fs, &Options::default(), Backend::Perf, Backend::Powercap, 0.5)?;
/// let second = std::time::Duration::from_secs(1);
/// let (_, compared) = check.measure(|| std::thread::sleep(second));
/// for domain in compared {
///     println!("{domain}");
/// }
/// # Ok::<(), rapl::Error>(())
/// ```
#[derive(Debug)]
pub struct CrossCheck {
    meters: [Meter; 2],
    tolerance_percent: f64,
}

/// One domain by two backends.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Compared {
    /// By the first backend.
    pub first: DomainEnergy,
    /// By the second backend.
    pub second: DomainEnergy,
    /// By how much the second is more than the first, in percent of the larger one.
    /// `None` where one of them has no value, or both are 0.
    pub difference_percent: Option<f64>,
    /// Whether that is within the tolerance and what both are uncertain by. `None` where
    /// one of them has no value.
    pub agrees: Option<bool>,
}

impl CrossCheck {
    /// Opens both backends. A domain that only one of them has is left out.
    ///
    /// perf counts the dram of some servers in 15.26 µJ where powercap has 15.3 µJ: a
    /// tolerance below 0.3 % reports that.
    ///
    /// # Errors
    ///
    /// As [`Meter::open_with`] for each of them; [`Error::Tolerance`].
    pub fn open(
        fs: &HostFs,
        options: &Options,
        first: Backend,
        second: Backend,
        tolerance_percent: f64,
    ) -> Result<Self, Error> {
        if !(tolerance_percent.is_finite() && tolerance_percent >= 0.0) {
            return Err(Error::Tolerance(tolerance_percent));
        }
        let open = |backend| Meter::open_with(fs, options.clone().backend(backend));
        Ok(Self {
            meters: [open(first)?, open(second)?],
            tolerance_percent,
        })
    }

    /// The energy of a piece of work by both backends, domain by domain.
    pub fn measure<R>(&mut self, work: impl FnOnce() -> R) -> (R, Vec<Compared>) {
        let [first, second] = &mut self.meters;
        let before = (first.read(), second.read());
        let answer = work();
        let first = first.read().since(&before.0);
        let second = second.read().since(&before.1);
        (answer, self.compare(&first, second))
    }

    fn compare(&self, first: &Energy, second: Energy) -> Vec<Compared> {
        second
            .domains
            .into_iter()
            .filter_map(|second| {
                let same = |first: &&DomainEnergy| same(&first.domain, &second.domain);
                let first = first.domains.iter().find(same)?.clone();
                Some(self.pair(first, second))
            })
            .collect()
    }

    fn pair(&self, first: DomainEnergy, second: DomainEnergy) -> Compared {
        let mut compared = Compared {
            difference_percent: None,
            agrees: None,
            first,
            second,
        };
        let (first, second) = (&compared.first.outcome, &compared.second.outcome);
        let (Some(a), Some(b)) = (first.joules(), second.joules()) else {
            return compared;
        };
        let uncertain = [first, second].map(|o| o.uncertainty().unwrap_or_default());
        let larger = a.0.max(b.0);
        let allowed = Joules(larger * self.tolerance_percent / 100.0) + uncertain[0] + uncertain[1];
        compared.difference_percent = (larger > 0.0).then(|| 100.0 * (b.0 - a.0) / larger);
        compared.agrees = Some((b.0 - a.0).abs() <= allowed.0);
        compared
    }
}

/// The same part of the machine, and no MMIO zone, which is a twin itself. A psys zone may
/// not say whose it is.
fn same(a: &Domain, b: &Domain) -> bool {
    let twin = |domain: &Domain| domain.id.starts_with("intel-rapl-mmio/");
    let package = a.package == b.package
        || (a.kind == crate::Kind::Psys && (a.package.is_none() || b.package.is_none()));
    a.kind == b.kind && package && (a.die, a.core) == (b.die, b.core) && !twin(a) && !twin(b)
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = (&self.first, &self.second);
        write!(
            f,
            "{}: {}, {}: {}: ",
            first.domain.id, first.outcome, second.domain.id, second.outcome
        )?;
        match (self.agrees, self.difference_percent) {
            (None, _) => f.write_str("not comparable"),
            (Some(agrees), difference) => write!(
                f,
                "{:+.2} %, {}",
                difference.unwrap_or(0.0),
                if agrees {
                    "they agree"
                } else {
                    "they disagree"
                }
            ),
        }
    }
}
