//! Power limits, to be read only.

use std::path::Path;
use std::time::Duration;

use hostfs::{Error, HostFs};

use crate::{Backend, Domain, Fault, Watts};

/// What powercap says of a zone's limits. Nothing here sets one.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Limits {
    /// `enabled`: whether the zone's limits are in force. `None` where it does not say.
    pub enabled: Option<bool>,
    /// Its constraints, by number.
    pub constraints: Vec<Constraint>,
}

/// One constraint of a zone: `constraint_N_*`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Constraint {
    /// Its number N.
    pub number: u32,
    /// `long_term`, `short_term` or `peak_power`.
    pub name: Option<String>,
    /// The mean power that it allows; `None` where the kernel does not answer (`ENODATA`).
    pub power_limit: Result<Option<Watts>, Fault>,
    /// Over which time; `None` for a peak.
    pub time_window: Result<Option<Duration>, Fault>,
    /// The most that the limit may be set to.
    pub max_power: Result<Option<Watts>, Fault>,
}

/// `include/uapi/asm-generic/errno.h`: what a constraint that can't be read answers.
const ENODATA: i32 = 61;

impl Domain {
    /// Reads the limits of this domain's zone. Needs no privilege. `None` for a domain of
    /// another backend than powercap, which has none.
    ///
    /// # Errors
    ///
    /// As [`HostFs::list`], where the zone can't be listed. What single files answer is in
    /// the constraints.
    pub fn limits(&self, fs: &HostFs) -> hostfs::Result<Option<Limits>> {
        if self.backend != Backend::Powercap {
            return Ok(None);
        }
        let mut numbers: Vec<u32> = fs
            .list(&self.path)?
            .iter()
            .filter_map(|name| number(name))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let enabled = match fs.read_text(self.path.join("enabled")).as_deref() {
            Ok("0") => Some(false),
            Ok("1") => Some(true),
            _ => None,
        };
        Ok(Some(Limits {
            enabled,
            constraints: numbers
                .into_iter()
                .map(|number| constraint(fs, &self.path, number))
                .collect(),
        }))
    }
}

/// The N of `constraint_N_power_limit_uw` and the like.
pub(crate) fn number(file: &str) -> Option<u32> {
    let (digits, _) = file.strip_prefix("constraint_")?.split_once('_')?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

fn constraint(fs: &HostFs, zone: &Path, number: u32) -> Constraint {
    let file = |name: &str| zone.join(format!("constraint_{number}_{name}"));
    let micro = |name: &str| match fs.read::<u64>(file(name)) {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) if error.os().is_some_and(|os| os.raw() == ENODATA) => Ok(None),
        Err(error) => Err(Fault::from(error)),
    };
    let watts = |uw: Option<u64>| uw.map(|uw| Watts(uw as f64 / 1e6));
    Constraint {
        number,
        name: fs.read_text(file("name")).ok(),
        power_limit: micro("power_limit_uw").map(watts),
        time_window: micro("time_window_us").map(|us| us.map(Duration::from_micros)),
        max_power: micro("max_power_uw").map(watts),
    }
}
