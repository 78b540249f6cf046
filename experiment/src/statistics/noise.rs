//! The baseline against itself: what this machine reports where there is nothing.

use serde::{Deserialize, Serialize};

use super::{Direction, Effect, Rule, Verdict, Warning, paired};

/// The comparison of the baseline with its hidden duplicate (A/A).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoiseCheck {
    /// The change in percent that noise alone made.
    pub effect_percent: Option<f64>,
    /// Its 95 % interval, in percent, not adjusted for the number of variants.
    pub ci95_percent: Option<(f64, f64)>,
    /// The smallest true effect that this comparison would have found in 80 % of cases, in percent.
    pub detectable_percent: Option<f64>,
    /// Blocks with a usable value of both.
    pub blocks_used: usize,
    /// Blocks that were left out.
    pub blocks_missing: usize,
    /// There is an interval, and it is not wholly beyond the margin on either side.
    pub passed: bool,
    /// What to know before believing these figures.
    pub warnings: Vec<Warning>,
}

/// Compares the baseline with its hidden duplicate, by the pairs `(baseline, duplicate)` of each
/// block. The analysis is that of [`paired`] with the margin of `rule`; which way is good does
/// not matter, since any difference fails the check.
///
/// The interval is at plain 95 %, whatever the number of variants: there is one such check in an
/// experiment, so it has nothing to be adjusted for, and a wider interval would make it easier to
/// pass just where more is claimed. The price is that with a margin of 0 a faultless machine
/// fails it once in twenty experiments; with a margin, far more rarely.
///
/// A check without an interval (fewer than two usable blocks) is not passed: a machine whose
/// noise is unknown vouches for nothing.
///
/// Source: A/A tests as in R. Kohavi, D. Tang and Y. Xu, *Trustworthy Online Controlled
/// Experiments* (2020), chapter 19; the interval as in [`paired`].
pub fn noise_check(blocks: &[(Option<f64>, Option<f64>)], rule: &Rule) -> NoiseCheck {
    let alone = rule.for_one_comparison();
    let effect = paired(blocks, Direction::LowerIsBetter, &alone);
    NoiseCheck {
        passed: effect.ci95_percent.is_some()
            && !matches!(effect.verdict, Verdict::Better | Verdict::Worse),
        effect_percent: effect.effect_percent,
        ci95_percent: effect.ci95_percent,
        detectable_percent: effect.detectable_percent,
        blocks_used: effect.blocks_used,
        blocks_missing: effect.blocks_missing,
        warnings: effect.warnings,
    }
}

/// Makes every verdict of an experiment `inconclusive`, with a warning that says why, unless its
/// noise check passed. Effects and intervals stay as they are. Doing it twice changes nothing.
///
/// Source: the design of this workspace, "Verdicts": where the baseline differs from itself, the
/// experiment's other differences are no evidence either.
pub fn settle<'a>(effects: impl IntoIterator<Item = &'a mut Effect>, noise: &NoiseCheck) {
    if noise.passed {
        return;
    }
    let warning = match noise.ci95_percent {
        Some(_) => Warning::NoiseCheckFailed,
        None => Warning::NoiseCheckMissing,
    };
    for effect in effects {
        effect.verdict = Verdict::Inconclusive;
        if !effect.warnings.contains(&warning) {
            effect.warnings.push(warning);
        }
    }
}
