//! What the counters showed at one moment.

use std::sync::Arc;

use hostfs::{Stamp, Stamps};

use crate::outcome::outcome;
use crate::{Domain, DomainEnergy, Energy, Fault, Kind, Outcome, Skipped, Watts};

/// What the readings of one meter have in common.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Plan {
    pub(crate) domains: Vec<Domain>,
    pub(crate) skipped: Vec<Skipped>,
    power_bound: Watts,
}

impl Plan {
    pub(crate) fn new(domains: Vec<Domain>, skipped: Vec<Skipped>, power_bound: Watts) -> Self {
        Self {
            domains,
            skipped,
            power_bound,
        }
    }

    /// The most that a domain may draw. A platform has more in it than its packages.
    pub(crate) fn bound(&self, domain: &Domain) -> Watts {
        match domain.kind {
            Kind::Psys => {
                let mut packages: Vec<_> = self.domains.iter().filter_map(|d| d.package).collect();
                packages.sort_unstable();
                packages.dedup();
                Watts(self.power_bound.0 * 2.0 * packages.len().max(1) as f64)
            }
            _ => self.power_bound,
        }
    }
}

/// One counter at one moment.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DomainReading {
    /// The counter's value, in [`Domain::unit`]s since an arbitrary moment, or why it could
    /// not be read. With perf it is the two's complement of a number that may be below 0.
    pub count: Result<u64, Fault>,
    /// When this counter was read.
    pub stamp: Stamp,
    /// How often the counter had gone away and was opened anew.
    pub reopened: u64,
}

/// All counters of a [`Meter`](crate::Meter), read one after another.
///
/// A reading by itself means nothing: see [`since`](Self::since).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Reading {
    plan: Arc<Plan>,
    pub(crate) stamp: Stamp,
    pub(crate) values: Vec<DomainReading>,
}

impl Reading {
    pub(crate) fn empty(plan: &Arc<Plan>) -> Self {
        Self {
            plan: Arc::clone(plan),
            stamp: Stamps::start().whole(),
            values: Vec::with_capacity(plan.domains.len()),
        }
    }

    /// Forgets the values and keeps their memory.
    pub(crate) fn restart(&mut self, plan: &Arc<Plan>) {
        if !Arc::ptr_eq(&self.plan, plan) {
            self.plan = Arc::clone(plan);
        }
        self.values.clear();
    }

    /// From the first counter to the last.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// Each domain with what its counter showed, in the meter's order.
    pub fn iter(&self) -> impl Iterator<Item = (&Domain, &DomainReading)> {
        self.plan.domains.iter().zip(&self.values)
    }

    /// What the counter of the domain of this id showed.
    pub fn get(&self, id: &str) -> Option<&DomainReading> {
        self.iter()
            .find_map(|(domain, value)| (domain.id == id).then_some(value))
    }

    /// The energy of each domain from an earlier reading to this one, of the same meter or
    /// of another one on the same machine.
    pub fn since(&self, earlier: &Reading) -> Energy {
        let domains = self
            .iter()
            .enumerate()
            .map(|(at, (domain, after))| {
                let before = if Arc::ptr_eq(&self.plan, &earlier.plan) {
                    earlier.values.get(at)
                } else {
                    earlier.get(&domain.id)
                };
                DomainEnergy {
                    domain: domain.clone(),
                    elapsed: before
                        .and_then(|before| after.stamp.since(&before.stamp))
                        .unwrap_or_default(),
                    reopened: before.is_some_and(|before| before.reopened != after.reopened),
                    outcome: match before {
                        Some(before) => outcome(domain, self.plan.bound(domain), before, after),
                        None => Outcome::NoEarlier,
                    },
                }
            })
            .collect();
        Energy {
            elapsed: self.stamp.since(&earlier.stamp).unwrap_or_default(),
            domains,
            skipped: self.plan.skipped.clone(),
        }
    }
}
