//! The paired analysis: from the blocks of one comparison to its effect.

use serde::{Deserialize, Serialize};

use super::power::{detectable_log, t_quantile};
use super::{Direction, Rule, Verdict, Warning, sign_flip_p};

/// Logarithms closer than this differ by the rounding of `f64::ln` (1e-13 for the largest
/// values), not by anything that was measured.
const ROUNDING: f64 = 1e-12;

/// The largest logarithm of a ratio that is turned into a percentage: e^700 is 1e304.
const MAX_LOG: f64 = 700.0;

/// What a variant changed in one metric, against the baseline of the same blocks.
///
/// Every number is finite; what cannot be told is `None`, and `warnings` says why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Effect {
    /// The change in percent, 100·(exp(mean d) − 1); positive means that the metric is larger.
    /// `None` without a usable block.
    pub effect_percent: Option<f64>,
    /// The 95 % interval of the change, in percent, adjusted for the number of comparisons.
    /// `None` with fewer than two usable blocks.
    pub ci95_percent: Option<(f64, f64)>,
    /// The two-sided p of [`sign_flip_p`], for information: no verdict depends on it.
    pub p_sign_flip: Option<f64>,
    /// [`detectable_percent`](super::detectable_percent) from the spread of these blocks (so it is
    /// an estimate, as the spread is). `None` with fewer than two usable blocks or no spread.
    pub detectable_percent: Option<f64>,
    /// Blocks with a positive, finite value of both the baseline and the variant.
    pub blocks_used: usize,
    /// Blocks that were left out, since one of the values is missing, not positive or not finite.
    pub blocks_missing: usize,
    /// What the interval shows.
    pub verdict: Verdict,
    /// What to know before believing these figures.
    pub warnings: Vec<Warning>,
}

/// Compares a variant with the baseline by the pairs `(baseline, variant)` of each block.
///
/// d = ln(variant/baseline) of each block; the effect is its mean, and the interval Student's t
/// with one degree of freedom less than there are blocks, mean ± t·s/√n, both turned into percent
/// by 100·(exp(x) − 1). A block that lacks one of its values, or where one is not a positive
/// finite number (a count of 0 has no ratio), is left out and counted.
///
/// Where every block gives the same ratio the interval is that single point. The verdict then
/// follows from it as always, since a count that is 9 instead of 10 in every block did change,
/// but the effect carries [`Warning::ZeroVariance`] and no detectable effect: a spread of 0 says
/// that the metric is coarse or deterministic, not that the machine is without noise.
///
/// Source: Student, "The probable error of a mean", Biometrika 6 (1908), in its paired form, as
/// in G. W. Snedecor and W. G. Cochran, *Statistical Methods*, chapter on paired samples; that
/// ratios are averaged by their logarithms is P. J. Fleming and J. J. Wallace, "How not to lie
/// with statistics", Communications of the ACM 29 (1986).
pub fn paired(blocks: &[(Option<f64>, Option<f64>)], direction: Direction, rule: &Rule) -> Effect {
    let d: Vec<f64> = blocks.iter().filter_map(log_ratio).collect();
    let mut warnings = Vec::new();
    let mut effect_log = None;
    let mut interval_log = None;
    let mut smallest_log = None;
    match d.len() {
        0 => warnings.push(Warning::NoBlocks),
        1 => {
            warnings.push(Warning::OneBlock);
            effect_log = Some(mean(&d));
        }
        n => {
            let (mean, sd) = mean_and_sd(&d);
            effect_log = Some(mean);
            if sd == 0.0 {
                warnings.push(Warning::ZeroVariance);
                interval_log = Some((mean, mean));
            } else if let Some(t) = t_quantile(n, rule) {
                let half = t * sd / (n as f64).sqrt();
                interval_log = Some((mean - half, mean + half));
                smallest_log = detectable_log(sd, n, rule);
            }
        }
    }
    let effect_percent = effect_log.and_then(percent);
    let ci95_percent = interval_log.and_then(|(low, high)| Some((percent(low)?, percent(high)?)));
    let detectable_percent = smallest_log.and_then(percent);
    if (effect_log.is_some() && effect_percent.is_none())
        || (interval_log.is_some() && ci95_percent.is_none())
        || (smallest_log.is_some() && detectable_percent.is_none())
    {
        warnings.push(Warning::OutOfRange);
    }
    Effect {
        effect_percent,
        ci95_percent,
        p_sign_flip: sign_flip_p(&d),
        detectable_percent,
        blocks_used: d.len(),
        blocks_missing: blocks.len() - d.len(),
        verdict: rule.judge(ci95_percent, direction),
        warnings,
    }
}

/// One value for several rings: the exponential of the mean of their logarithms (the geometric
/// mean), so that each ring counts by its ratio and a slow one does not drown the others.
///
/// `None` when there is no value, or one is not a positive finite number: a mean without the
/// ring that failed would be of other rings than the baseline's.
///
/// Source: P. J. Fleming and J. J. Wallace, "How not to lie with statistics: the correct way to
/// summarize benchmark results", Communications of the ACM 29 (1986).
pub fn pool_log_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || !values.iter().copied().all(usable) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    // A mean lies between its values; rounding must not lead it out, to infinity at worst.
    Some(mean(&logs).exp().clamp(low, high))
}

/// 100·(exp(log) − 1), or `None` where that is past what a percentage can be written as. The
/// limit is the same on both sides, so that a pair and its mirror image are treated alike.
pub(super) fn percent(log: f64) -> Option<f64> {
    (log.abs() <= MAX_LOG).then(|| 100.0 * log.exp_m1())
}

/// ln(variant/baseline), taken as a difference: a quotient can overflow, and this way exchanging
/// the two changes the sign and nothing else.
fn log_ratio(block: &(Option<f64>, Option<f64>)) -> Option<f64> {
    let baseline = block.0.filter(|&value| usable(value))?;
    let variant = block.1.filter(|&value| usable(value))?;
    Some(variant.ln() - baseline.ln())
}

fn usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and sample standard deviation, where differences that are only rounding count as none.
fn mean_and_sd(d: &[f64]) -> (f64, f64) {
    let centre = mean(d);
    if d.iter().all(|x| (x - d[0]).abs() <= ROUNDING) {
        let centre = if centre.abs() <= ROUNDING {
            0.0
        } else {
            centre
        };
        return (centre, 0.0);
    }
    let squares: f64 = d.iter().map(|x| (x - centre).powi(2)).sum();
    (centre, (squares / (d.len() - 1) as f64).sqrt())
}
