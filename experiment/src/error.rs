//! Why an experiment can't be done or did not end.

use crate::{Factor, ParseVariantError};

/// What stops an experiment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variant is written wrongly.
    #[error(transparent)]
    Variant(#[from] ParseVariantError),
    /// There is no such governor or idle state on this machine.
    #[error("unknown {factor}: there are {}", there.join(", "))]
    Unknown {
        /// The factor that names it.
        factor: Factor,
        /// What there is.
        there: Vec<String>,
    },
    /// The plan has nothing to run.
    #[error("nothing to run: {0}")]
    EmptyPlan(&'static str),
    /// A factor could not be applied.
    #[error("{factor} could not be applied: {reason}")]
    Apply {
        /// The factor.
        factor: Factor,
        /// What hindered it.
        reason: String,
    },
    /// A factor no longer held at the end of a run.
    #[error("{factor} did not hold during the run: {reason}")]
    NotInPlace {
        /// The factor.
        factor: Factor,
        /// What was found.
        reason: String,
    },
    /// The rings can't run, or one of them failed.
    #[error(transparent)]
    Ring(#[from] pingpong::Error),
    /// The machine could not be read or changed.
    #[error(transparent)]
    Host(#[from] hostfs::Error),
    /// The sampling thread could not be started or has ended.
    #[error("the sampling thread: {0}")]
    Sampler(String),
}

impl Error {
    pub(crate) fn unknown(factor: &Factor, there: Vec<String>) -> Self {
        Error::Unknown {
            factor: factor.clone(),
            there,
        }
    }
}

/// A variant or an instrument that this machine does not allow.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// What was left out.
    pub what: String,
    /// Why, and how to get it.
    pub why: String,
}

impl LeftOut {
    pub(crate) fn new(what: impl ToString, why: impl ToString) -> Self {
        Self {
            what: what.to_string(),
            why: why.to_string(),
        }
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "left out: {}: {}", self.what, self.why)
    }
}
