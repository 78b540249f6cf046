//! How to open a meter.

use crate::candidate::Candidate;
use crate::{Backend, Error, Skipped, Watts};

/// How to open a [`Meter`](crate::Meter).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    pub(crate) power_bound: Watts,
    pub(crate) backend: Option<Backend>,
    domains: Vec<String>,
}

impl Default for Options {
    /// A power bound of 1 kW, every domain, each by the best backend that can be read.
    fn default() -> Self {
        Self {
            power_bound: Watts(1000.0),
            backend: None,
            domains: Vec::new(),
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

    /// Only this backend, rather than for each domain the best one that can be read: perf,
    /// whose sums the kernel keeps in 64 bits, else powercap, else the registers.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Only these domains, each by its [id](crate::Domain::id) or its kind (`package`,
    /// `dram`). Packages include dies.
    #[must_use]
    pub fn domains<I>(mut self, ids_or_kinds: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.domains = ids_or_kinds.into_iter().map(Into::into).collect();
        self
    }

    /// Drops what was not asked for.
    pub(crate) fn select(
        &self,
        candidates: &mut Vec<Candidate>,
        unknown: &mut Vec<Skipped>,
    ) -> Result<(), Error> {
        if self.domains.is_empty() || candidates.is_empty() {
            return Ok(());
        }
        let is = |candidate: &Candidate, name: &str| {
            let kind = candidate.domain.kind.to_string();
            candidate.domain.id == name || kind == name || (kind == "die" && name == "package")
        };
        for name in &self.domains {
            if !candidates.iter().any(|candidate| is(candidate, name)) {
                let id = |candidate: &Candidate| candidate.domain.id.clone();
                return Err(Error::NoSuchDomain {
                    name: name.clone(),
                    there: candidates.iter().map(id).collect(),
                });
            }
        }
        candidates.retain(|candidate| self.domains.iter().any(|name| is(candidate, name)));
        unknown.clear();
        Ok(())
    }
}
