//! What a comparison can say, and the rule that decides it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The error rate that one experiment is allowed: intervals are at 95 %.
const ALPHA: f64 = 0.05;

/// Which way of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Time, energy, watts: less is better.
    LowerIsBetter,
    /// Throughput: more is better.
    HigherIsBetter,
}

/// What the interval of an effect shows. See [`Rule::judge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is beyond the margin on the good side.
    Better,
    /// The whole interval is beyond the margin on the bad side.
    Worse,
    /// The whole interval is inside the margin: shown to be too small to matter.
    WithinMargin,
    /// Anything else. It does not mean "the same": the experiment could not tell.
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::WithinMargin => "within-margin",
            Verdict::Inconclusive => "inconclusive",
        })
    }
}

/// What a reader must know before believing a figure; the text says what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// No block has a usable value of both the baseline and the variant.
    NoBlocks,
    /// One usable block: there is an effect, but nothing to judge its noise by.
    OneBlock,
    /// Every block gave the same ratio, so the interval is a single point.
    ZeroVariance,
    /// A figure is too large for a floating-point percentage and was left out.
    OutOfRange,
    /// The baseline and its hidden duplicate came out different.
    NoiseCheckFailed,
    /// The hidden duplicate has too few usable blocks to vouch for the machine.
    NoiseCheckMissing,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Warning::NoBlocks => {
                "no block has a positive value of both the baseline and the variant: \
                 nothing can be said; see why the runs failed or the metric is missing"
            }
            Warning::OneBlock => {
                "only one usable block: one pair shows no noise to judge the effect by; \
                 run at least 2 blocks, better 8"
            }
            Warning::ZeroVariance => {
                "every block gave exactly the same ratio, so the interval is a single point: \
                 right for a count that never varies; otherwise the measurement is too coarse to \
                 show its noise: make the runs longer"
            }
            Warning::OutOfRange => {
                "the values differ so wildly that a percentage cannot be given; \
                 look at the values of the single runs"
            }
            Warning::NoiseCheckFailed => {
                "the baseline came out different from its own duplicate, so this machine finds \
                 effects where there are none: no verdict; quieten the machine or run more blocks"
            }
            Warning::NoiseCheckMissing => {
                "the duplicate of the baseline has too few usable blocks to tell this machine's \
                 noise: no verdict; run at least 2 blocks, better 8"
            }
        })
    }
}

/// The rule that every verdict of an experiment follows, fixed before it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    margin_percent: f64,
    comparisons: usize,
}

impl Rule {
    /// A rule with the smallest change that matters, in percent, and the number of variants that
    /// are compared with the baseline (the hidden duplicate is not one; 0 counts as 1).
    ///
    /// With a margin of 0 any change matters, and `within-margin` is never the verdict.
    /// `None` when the margin is negative or not a number.
    pub fn new(margin_percent: f64, comparisons: usize) -> Option<Rule> {
        (margin_percent.is_finite() && margin_percent >= 0.0).then(|| Rule {
            // `+ 0.0` turns a negative zero into zero.
            margin_percent: margin_percent + 0.0,
            comparisons: comparisons.max(1),
        })
    }

    /// The smallest change that matters, in percent.
    pub fn margin_percent(&self) -> f64 {
        self.margin_percent
    }

    /// The number of variants among which the 5 % error rate is divided.
    pub fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// The same margin with one comparison only.
    pub(super) fn for_one_comparison(&self) -> Rule {
        Rule {
            comparisons: 1,
            ..*self
        }
    }

    /// The error rate of each single interval: 5 % divided by the number of comparisons, which
    /// keeps the chance of even one false claim in the whole experiment at 5 % or below.
    ///
    /// Source: the Bonferroni inequality; O. J. Dunn, "Multiple comparisons among means", Journal
    /// of the American Statistical Association 56 (1961).
    pub fn error_rate(&self) -> f64 {
        ALPHA / self.comparisons as f64
    }

    /// The verdict on an interval in percent: wholly beyond the margin on the good side `better`,
    /// on the bad side `worse`, wholly inside ±margin `within-margin`, otherwise (and without an
    /// interval) `inconclusive`. An interval that touches the margin is neither beyond nor inside.
    ///
    /// The margin is compared with the interval *as printed*: ±1 % is −1 % and +1 % of the
    /// baseline, so anyone can check a verdict against its interval. Percentages are not quite
    /// symmetric (+1 % is undone by −0.99 %), so for an interval that ends between those two,
    /// exchanging the baseline and the variant can change the verdict; with a margin of 0 it
    /// only mirrors it.
    ///
    /// Source: reading the verdict from where an interval lies is W. J. Westlake, "Symmetrical
    /// confidence intervals for bioequivalence trials", Biometrics 32 (1976); that "not shown to
    /// differ" must not be reported as "the same" is D. G. Altman and J. M. Bland, "Absence of
    /// evidence is not evidence of absence", BMJ 311 (1995).
    pub fn judge(&self, ci95_percent: Option<(f64, f64)>, direction: Direction) -> Verdict {
        let Some((low, high)) = ci95_percent else {
            return Verdict::Inconclusive;
        };
        let margin = self.margin_percent;
        let (below, above) = (high < -margin, low > margin);
        let (good, bad) = match direction {
            Direction::LowerIsBetter => (below, above),
            Direction::HigherIsBetter => (above, below),
        };
        if good {
            Verdict::Better
        } else if bad {
            Verdict::Worse
        } else if -margin < low && high < margin {
            Verdict::WithinMargin
        } else {
            Verdict::Inconclusive
        }
    }
}
