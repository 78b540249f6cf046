//! Energy: the difference of two readings.

use hostfs::Elapsed;

use crate::{Domain, Joules, Outcome, Skipped, Watts};

/// The energy of one domain between two readings.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DomainEnergy {
    /// What was counted.
    pub domain: Domain,
    /// What came of it.
    pub outcome: Outcome,
    /// The time between the two readings of this counter; zero where there was none.
    pub elapsed: Elapsed,
    /// The counter's file went away meanwhile and was opened anew (the same zone, by its
    /// name).
    pub reopened: bool,
}

/// The energy of all domains between two readings.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Energy {
    /// The time between the two readings as a whole.
    pub elapsed: Elapsed,
    /// Each domain, in the meter's order.
    pub domains: Vec<DomainEnergy>,
    /// The zones that could not be read from the beginning.
    pub skipped: Vec<Skipped>,
}

impl Energy {
    /// The energy of the domain of this id.
    pub fn get(&self, id: &str) -> Option<&DomainEnergy> {
        self.domains.iter().find(|domain| domain.domain.id == id)
    }

    /// The sum over the domains that are [`in_total`](Domain::in_total): packages and dram,
    /// each once.
    ///
    /// # Errors
    ///
    /// [`Incomplete`], which names each of them that has no value, and has the sum of the
    /// others.
    pub fn total(&self) -> Result<Joules, Incomplete> {
        let (known, missing) = self.counted();
        let known: Joules = known
            .iter()
            .filter_map(|domain| domain.outcome.joules())
            .sum();
        if missing.is_empty() && self.counts_any() {
            Ok(known)
        } else {
            Err(Incomplete { known, missing })
        }
    }

    /// The mean power of what [`total`](Self::total) adds up.
    ///
    /// # Errors
    ///
    /// As [`total`](Self::total).
    pub fn total_watts(&self) -> Result<Watts, Incomplete> {
        self.total()?;
        let (known, _) = self.counted();
        Ok(known
            .iter()
            .filter_map(|domain| domain.outcome.watts())
            .sum())
    }

    /// How far [`total`](Self::total) may be off: the sum over what it adds up.
    ///
    /// # Errors
    ///
    /// As [`total`](Self::total).
    pub fn total_uncertainty(&self) -> Result<Joules, Incomplete> {
        self.total()?;
        let (known, _) = self.counted();
        Ok(known
            .iter()
            .filter_map(|domain| domain.outcome.uncertainty())
            .sum())
    }

    /// The domains that [`total`](Self::total) adds up, those without a value too.
    pub fn in_total(&self) -> impl Iterator<Item = &DomainEnergy> {
        self.domains.iter().filter(|domain| domain.domain.in_total)
    }

    fn counts_any(&self) -> bool {
        self.domains.iter().any(|domain| domain.domain.in_total)
    }

    fn counted(&self) -> (Vec<&DomainEnergy>, Vec<Missing>) {
        let (known, unknown): (Vec<_>, Vec<_>) = self
            .domains
            .iter()
            .filter(|domain| domain.domain.in_total)
            .partition(|domain| domain.outcome.joules().is_some());
        let unknown = unknown.into_iter().map(|domain| Missing {
            id: domain.domain.id.clone(),
            why: domain.outcome.clone(),
        });
        let skipped = self
            .skipped
            .iter()
            .filter(|zone| zone.in_total)
            .map(|zone| Missing {
                id: zone.id.clone(),
                why: Outcome::from(&zone.why),
            });
        (known, unknown.chain(skipped).collect())
    }
}

/// A total that lacks some of its domains.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[error("{}", describe(missing))]
#[non_exhaustive]
pub struct Incomplete {
    /// The sum of the domains that have a value.
    pub known: Joules,
    /// The domains that have none; empty where there is no package or dram at all.
    pub missing: Vec<Missing>,
}

/// A domain that the total lacks.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Missing {
    /// The domain's id.
    pub id: String,
    /// Why it has no value.
    pub why: Outcome,
}

fn describe(missing: &[Missing]) -> String {
    if missing.is_empty() {
        return "no total: there is no package or dram zone".into();
    }
    let each: Vec<String> = missing
        .iter()
        .map(|domain| format!("{}: {}", domain.id, domain.why))
        .collect();
    format!("no total without {}", each.join("; "))
}
