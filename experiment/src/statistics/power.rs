//! What so many blocks can show: Student's t, central and noncentral.

use std::f64::consts::TAU;

use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};

use super::Rule;
use super::paired::percent;

/// How often the detectable effect gets its verdict.
const POWER: f64 = 0.8;

/// The smallest true effect, in percent, that would get its verdict (`better` or `worse`, with
/// the right sign) in 80 % of experiments like this one: `blocks` blocks, `sd` the standard
/// deviation of d = ln(variant/baseline) between blocks, under `rule`.
///
/// It is given as an increase, a positive number. A decrease of as many percent is a larger step
/// in logarithms, so it is found at least as often. `None` with fewer than two blocks, when `sd`
/// is not a positive finite number, or where the result is past what a percentage can express.
///
/// The verdict needs the lower end of the interval to pass the margin: (mean d − ln(1+m))·√n/s
/// must exceed the quantile t. For a true effect δ that quotient has the noncentral t
/// distribution with noncentrality λ = (δ − ln(1+m))·√n/σ, so λ is found for which it exceeds t
/// with probability 0.8; and δ = ln(1+m) + λ·σ/√n. The usual shortcut, λ ≈ t + 0.84, is 17 % too
/// small at two blocks, 5 % at four and 2 % at eight.
///
/// Source: J. Cohen, *Statistical Power Analysis for the Behavioral Sciences*, chapter on t tests;
/// N. L. Johnson, S. Kotz and N. Balakrishnan, *Continuous Univariate Distributions* 2, chapter
/// on noncentral t.
pub fn detectable_percent(sd: f64, blocks: usize, rule: &Rule) -> Option<f64> {
    percent(detectable_log(sd, blocks, rule)?)
}

/// The same as a logarithm.
pub(super) fn detectable_log(sd: f64, blocks: usize, rule: &Rule) -> Option<f64> {
    if !(sd.is_finite() && sd > 0.0) {
        return None;
    }
    let t = t_quantile(blocks, rule)?;
    let noncentrality = noncentrality_for_power(degrees(blocks), t)?;
    let margin = (rule.margin_percent() / 100.0).ln_1p();
    Some(margin + noncentrality * sd / (blocks as f64).sqrt())
}

/// Student's t for the two-sided interval of `rule` with so many blocks; `None` below two.
pub(super) fn t_quantile(blocks: usize, rule: &Rule) -> Option<f64> {
    if blocks < 2 {
        return None;
    }
    let student = StudentsT::new(0.0, 1.0, degrees(blocks)).ok()?;
    // The lower tail, mirrored: small probabilities are exact there, while 1 − p would round.
    Some(-student.inverse_cdf(rule.error_rate() / 2.0))
}

fn degrees(blocks: usize) -> f64 {
    blocks as f64 - 1.0
}

/// The noncentrality at which a noncentral t variable exceeds `t` with probability 0.8.
///
/// Source: the bracketing secant of M. Dowell and P. Jarratt, "A modified regula falsi method",
/// BIT 11 (1971), known as the Illinois method.
fn noncentrality_for_power(df: f64, t: f64) -> Option<f64> {
    let chi_squared = ChiSquared::new(df).ok()?;
    let excess = |noncentrality| exceeds(&chi_squared, t, noncentrality) - POWER;
    // With noncentrality t the probability is between 0.5 and 0.69. With 2t + 2 it is above 0.8:
    // it is enough that √(χ²/df) < 1.65 and z > −1.29, each true in at least 90 % of cases.
    let (mut low, mut high) = (t, 2.0 * t + 2.0);
    let (mut at_low, mut at_high) = (excess(low), excess(high));
    let mut was_high = None;
    for _ in 0..100 {
        let middle = (low * at_high - high * at_low) / (at_high - at_low);
        let at_middle = excess(middle);
        if at_middle.abs() < 1e-11 || high - low < 1e-12 * high {
            return Some(middle);
        }
        let is_high = at_middle > 0.0;
        // An end that stays twice in a row has its value halved, or it would stay for good.
        let halve = if was_high == Some(is_high) { 0.5 } else { 1.0 };
        if is_high {
            (high, at_high) = (middle, at_middle);
            at_low *= halve;
        } else {
            (low, at_low) = (middle, at_middle);
            at_high *= halve;
        }
        was_high = Some(is_high);
    }
    Some((low + high) / 2.0)
}

/// P(T > t) of the noncentral t variable T = (z + noncentrality)/√(χ²/df), for t > 0.
///
/// T exceeds t where √(χ²/df) < (z + noncentrality)/t: the chance of that, from the distribution
/// function of χ², is averaged over the standard normal z by the trapezoidal rule, whose error
/// falls exponentially for such smooth integrands (L. N. Trefethen and J. A. C. Weideman, "The
/// exponentially convergent trapezoidal rule", SIAM Review 56 (2014)).
fn exceeds(chi_squared: &ChiSquared, t: f64, noncentrality: f64) -> f64 {
    const REACH: f64 = 7.0;
    let df = chi_squared.freedom();
    // The chance rises from 0 to 1 over about t/√(2·df): the step has to resolve that.
    let step = (t / (2.0 * df).sqrt() / 1.5).min(0.4);
    let steps = (REACH / step).ceil() as i64;
    let sum: f64 = (-steps..=steps)
        .map(|i| {
            let z = i as f64 * step;
            let limit = (z + noncentrality) / t;
            if limit <= 0.0 {
                return 0.0;
            }
            (-z * z / 2.0).exp() * chi_squared.cdf(df * limit * limit)
        })
        .sum();
    sum * step / TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{close, rule};
    use super::*;

    #[test]
    fn quantiles_of_students_t() {
        // scipy: t.isf(.025/k, n - 1)
        for (blocks, comparisons, expected) in [
            (2, 1, 12.706204736174705),
            (2, 6, 76.39000931113605),
            (4, 3, 4.8566572727689765),
            (8, 1, 2.3646242515927844),
            (16, 10, 3.286038570946224),
            (100, 1, 1.9842169515864176),
        ] {
            close(t_quantile(blocks, &rule(0.0, comparisons)), expected);
        }
        assert_eq!(t_quantile(1, &rule(0.0, 1)), None);
        assert_eq!(t_quantile(0, &rule(0.0, 1)), None);
    }

    #[test]
    fn noncentrality_for_eighty_percent() {
        // scipy: brentq(lambda x: nct.sf(t.isf(.025/k, n-1), n-1, x) - .8, ...), each checked by
        // integrating the other variable with mpmath. With margin 0 and sd √n it is the result itself.
        for (blocks, comparisons, expected) in [
            (2, 1, 16.334008869921025),
            (2, 6, 97.9061238798052),
            (3, 1, 5.653489266405574),
            (4, 1, 4.255898820740009),
            (4, 3, 6.248414611831652),
            (8, 1, 3.2697621494024647),
            (8, 6, 4.6655924801968505),
            (16, 10, 4.20960407565221),
            (34, 1, 2.8864884831288555),
            (1000, 1, 2.804282031082358),
        ] {
            let sd = (blocks as f64).sqrt();
            close(
                detectable_log(sd, blocks, &rule(0.0, comparisons)),
                expected,
            );
        }
    }

    #[test]
    fn sample_sizes_of_the_power_tables() {
        // Cohen's tables, and R's power.t.test(delta = d, sd = 1, power = .8, type = "paired"): 33.37
        // pairs find d = 0.5, 14.30 find 0.8 and 9.94 find 1.0. So the next whole number finds it and
        // the one before does not.
        for (effect, enough) in [(0.5, 34), (0.8, 15), (1.0, 10)] {
            let smallest = |blocks| detectable_log(1.0, blocks, &rule(0.0, 1)).unwrap();
            assert!(smallest(enough) < effect && effect < smallest(enough - 1));
        }
    }

    #[test]
    fn detectable_effect_in_percent() {
        // expm1(log1p(m) + nc*sd/n**.5) with nc as above.
        close(
            detectable_percent(0.01, 8, &rule(0.0, 1)),
            1.1627434083774015,
        );
        close(
            detectable_percent(0.01, 4, &rule(1.0, 3)),
            4.2052581252188626,
        );
        close(
            detectable_percent(0.03, 16, &rule(2.0, 1)),
            4.319343732214861,
        );
        for sd in [0.0, -0.01, f64::NAN, f64::INFINITY] {
            assert_eq!(detectable_percent(sd, 8, &rule(0.0, 1)), None);
        }
        assert_eq!(detectable_percent(0.01, 1, &rule(0.0, 1)), None);
        assert_eq!(detectable_percent(1e3, 8, &rule(0.0, 1)), None);
        // Absurd, but neither a panic nor an endless loop.
        assert!(detectable_percent(0.01, 1_000_000, &rule(0.0, 1)).unwrap() > 0.0);
        assert_eq!(detectable_percent(0.01, 2, &rule(0.0, usize::MAX)), None);
    }
}
