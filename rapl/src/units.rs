//! Joules and watts.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Div, Mul};
use std::time::Duration;

/// An amount of energy in joules.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Joules(pub f64);

/// A power in watts.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Watts(pub f64);

impl Joules {
    /// Counters are subtracted as whole nanojoules; this is the last step.
    pub(crate) fn from_nanojoules(nj: u128) -> Self {
        Self(nj as f64 / 1e9)
    }
}

impl Add for Joules {
    type Output = Joules;
    fn add(self, other: Joules) -> Joules {
        Joules(self.0 + other.0)
    }
}

impl Sum for Joules {
    fn sum<I: Iterator<Item = Joules>>(joules: I) -> Joules {
        joules.fold(Joules(0.0), Add::add)
    }
}

impl Add for Watts {
    type Output = Watts;
    fn add(self, other: Watts) -> Watts {
        Watts(self.0 + other.0)
    }
}

impl Sum for Watts {
    fn sum<I: Iterator<Item = Watts>>(watts: I) -> Watts {
        watts.fold(Watts(0.0), Add::add)
    }
}

impl Mul<f64> for Joules {
    type Output = Joules;
    fn mul(self, factor: f64) -> Joules {
        Joules(self.0 * factor)
    }
}

/// How often the one goes into the other.
impl Div<Joules> for Joules {
    type Output = f64;
    fn div(self, other: Joules) -> f64 {
        self.0 / other.0
    }
}

/// What is consumed at that power in that time.
impl Mul<Duration> for Watts {
    type Output = Joules;
    fn mul(self, time: Duration) -> Joules {
        Joules(self.0 * time.as_secs_f64())
    }
}

/// The mean power over a time. Not finite for no time at all.
impl Div<Duration> for Joules {
    type Output = Watts;
    fn div(self, time: Duration) -> Watts {
        Watts(self.0 / time.as_secs_f64())
    }
}

/// As `12.345 J`; a precision in the format replaces the three digits.
impl fmt::Display for Joules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*} J", f.precision().unwrap_or(3), self.0)
    }
}

/// As `12.345 W`; a precision in the format replaces the three digits.
impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*} W", f.precision().unwrap_or(3), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_quotients_and_print() {
        let sum: Joules = [Joules(1.5), Joules(2.25)].into_iter().sum();
        assert_eq!(sum, Joules(3.75));
        assert_eq!(sum / Duration::from_millis(500), Watts(7.5));
        assert_eq!(Watts(7.5) * Duration::from_millis(500), sum);
        assert_eq!((sum * 2.0) / sum, 2.0);
        assert_eq!(
            (sum.to_string(), format!("{:.0}", Watts(7.4))),
            ("3.750 J".into(), "7 W".into())
        );
        assert_eq!(
            Joules::from_nanojoules(262_147_329_015_000_000),
            Joules(262_147_329.015)
        );
    }
}
