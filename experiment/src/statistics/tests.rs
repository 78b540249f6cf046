//! Against values worked out by hand or by other programs. "scipy" is scipy 1.17.1; the commands
//! stand beside the values.

use super::*;

fn pairs(baseline: &[f64], variant: &[f64]) -> Vec<(Option<f64>, Option<f64>)> {
    let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    some(baseline).into_iter().zip(some(variant)).collect()
}

pub(super) fn rule(margin_percent: f64, comparisons: usize) -> Rule {
    Rule::new(margin_percent, comparisons).unwrap()
}

#[track_caller]
pub(super) fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs(),
        "{found} is not {expected}"
    );
}

#[track_caller]
fn close_pair(found: Option<(f64, f64)>, low: f64, high: f64) {
    close(found.map(|pair| pair.0), low);
    close(found.map(|pair| pair.1), high);
}

const BASELINE: [f64; 8] = [2.91, 2.95, 2.88, 3.02, 2.97, 2.90, 2.94, 3.05];
const VARIANT: [f64; 8] = [2.84, 2.93, 2.85, 2.91, 2.90, 2.88, 2.83, 2.95];

#[test]
fn three_blocks_by_hand() {
    // d = 0.01, 0.02, 0.03: mean 0.02, s 0.01. t(2; 0.975) = 4.302653 from any table, so the half
    // width is 4.302653·0.01/√3 = 0.0248414.
    let variant = [0.01_f64, 0.02, 0.03].map(|d| 100.0 * d.exp());
    let effect = paired(
        &pairs(&[100.0; 3], &variant),
        Direction::LowerIsBetter,
        &rule(0.0, 1),
    );
    close(effect.effect_percent, 2.020134002675581);
    close_pair(effect.ci95_percent, -0.48296765412226916, 4.586194911337856);
    assert_eq!(effect.verdict, Verdict::Inconclusive);
    // All three have one sign, as 2 of the 8 patterns have.
    assert_eq!(effect.p_sign_flip, Some(0.25));
    assert_eq!(effect.warnings, []);
}

#[test]
fn eight_blocks_as_scipy() {
    // d = log(v/b); expm1(d.mean());
    // ttest_1samp(d, 0).confidence_interval(1 - .05/k) for k = 1 and 3
    let blocks = pairs(&BASELINE, &VARIANT);
    let effect = paired(&blocks, Direction::LowerIsBetter, &rule(0.0, 3));
    close(effect.effect_percent, -2.2367036057192022);
    close_pair(effect.ci95_percent, -3.650029821102051, -0.8026457701046102);
    // permutation_test(..., permutation_type='samples', n_resamples=inf): 2 of 256.
    assert_eq!(effect.p_sign_flip, Some(0.0078125));
    // tq = t.isf(.025/3, 7); nc = brentq(lambda x: nct.sf(tq, 7, x) - .8, tq, 2*tq + 2);
    // expm1(log1p(m) + nc*d.std(ddof=1)/8**.5) for m = 0 and 0.01
    close(effect.detectable_percent, 1.9283690539509564);
    assert_eq!(effect.verdict, Verdict::Better);

    let effect = paired(&blocks, Direction::HigherIsBetter, &rule(1.0, 1));
    close_pair(
        effect.ci95_percent,
        -3.3071617602359127,
        -1.1543947218058637,
    );
    assert_eq!(effect.verdict, Verdict::Worse);

    let effect = paired(&blocks, Direction::LowerIsBetter, &rule(1.0, 3));
    close(effect.detectable_percent, 2.947652744490466);
    // -0.8 % is not beyond -1 %.
    assert_eq!(effect.verdict, Verdict::Inconclusive);
}

#[test]
fn verdict_from_interval_margin_and_direction() {
    use Direction::{HigherIsBetter, LowerIsBetter};
    use Verdict::{Better, Inconclusive, WithinMargin, Worse};
    for (low, high, margin, for_lower, for_higher) in [
        (1.5, 3.0, 1.0, Worse, Better),
        (-3.0, -1.5, 1.0, Better, Worse),
        (0.2, 0.9, 1.0, WithinMargin, WithinMargin), // real, and too small to matter
        (-0.9, 0.9, 1.0, WithinMargin, WithinMargin),
        (0.5, 1.5, 1.0, Inconclusive, Inconclusive),
        (-5.0, 5.0, 1.0, Inconclusive, Inconclusive),
        (1.0, 2.0, 1.0, Inconclusive, Inconclusive), // touches the margin
        (-1.0, 0.0, 1.0, Inconclusive, Inconclusive),
        (0.1, 0.2, 0.0, Worse, Better),
        (-0.2, -0.1, 0.0, Better, Worse),
        (-0.1, 0.1, 0.0, Inconclusive, Inconclusive),
        (0.0, 0.0, 0.0, Inconclusive, Inconclusive),
        (0.0, 0.0, 1.0, WithinMargin, WithinMargin),
        (-99.0, -98.0, 100.0, WithinMargin, WithinMargin),
    ] {
        let rule = rule(margin, 1);
        let interval = Some((low, high));
        assert_eq!(
            rule.judge(interval, LowerIsBetter),
            for_lower,
            "{low} {high} {margin}"
        );
        assert_eq!(
            rule.judge(interval, HigherIsBetter),
            for_higher,
            "{low} {high} {margin}"
        );
    }
    assert_eq!(rule(1.0, 1).judge(None, LowerIsBetter), Inconclusive);
}

#[test]
fn not_significant_is_not_the_same() {
    // A hyperfine script prints "the two benchmarks are almost the same (p >= 0.05)" for this:
    // five noisy blocks, p far above 0.05, and an interval that allows ±20 %.
    let effect = paired(
        &pairs(&[10.0, 11.0, 9.0, 10.5, 9.5], &[11.0, 9.5, 10.5, 9.8, 10.4]),
        Direction::LowerIsBetter,
        &rule(1.0, 1),
    );
    assert!(effect.p_sign_flip.unwrap() > 0.5);
    assert_eq!(effect.verdict, Verdict::Inconclusive);
    assert!(effect.detectable_percent.unwrap() > 10.0);
}

#[test]
fn a_count_that_always_changes_alike_did_change() {
    // golang#19634: a difference without variance was reported as no difference.
    let allocations = pairs(&[10.0; 8], &[9.0; 8]);
    let effect = paired(&allocations, Direction::LowerIsBetter, &rule(1.0, 2));
    close(effect.effect_percent, -10.0);
    close_pair(effect.ci95_percent, -10.0, -10.0);
    assert_eq!(effect.p_sign_flip, Some(2.0 / 256.0));
    assert_eq!(effect.verdict, Verdict::Better);
    // But a spread of 0 is no proof of a machine without noise.
    assert_eq!(effect.warnings, [Warning::ZeroVariance]);
    assert_eq!(effect.detectable_percent, None);
}

#[test]
fn one_constant_side_is_not_zero_variance() {
    // The times of the report behind golang#19634: only the new ones are all alike.
    let effect = paired(
        &pairs(&[115.0, 114.0, 115.0, 115.0, 115.0], &[78.8; 5]),
        Direction::LowerIsBetter,
        &rule(1.0, 1),
    );
    assert_eq!(effect.verdict, Verdict::Better);
    assert_eq!(effect.warnings, []);
}

#[test]
fn no_difference_in_any_block() {
    let blocks = pairs(&[2.0, 3.0, 4.0], &[2.0, 3.0, 4.0]);
    for (margin, verdict) in [(1.0, Verdict::WithinMargin), (0.0, Verdict::Inconclusive)] {
        let effect = paired(&blocks, Direction::LowerIsBetter, &rule(margin, 1));
        assert_eq!(effect.effect_percent, Some(0.0));
        assert_eq!(effect.ci95_percent, Some((0.0, 0.0)));
        assert_eq!(effect.p_sign_flip, Some(1.0));
        assert_eq!(effect.detectable_percent, None);
        assert_eq!(effect.verdict, verdict);
        assert_eq!(effect.warnings, [Warning::ZeroVariance]);
    }
}

#[test]
fn rounding_is_not_an_effect() {
    // One ratio, 1 and 1.1, written in numbers that round differently.
    let baseline = [0.1, 0.3, 0.7, 1e-9, 1e9 / 3.0];
    let same = [
        0.1 * 3.0 / 3.0,
        0.1 + 0.2,
        0.1 * 7.0,
        1.0 / 1e9,
        1e9 / 9.0 * 3.0,
    ];
    let effect = paired(
        &pairs(&baseline, &same),
        Direction::LowerIsBetter,
        &rule(0.0, 1),
    );
    assert_eq!(effect.ci95_percent, Some((0.0, 0.0)));
    assert_eq!(effect.verdict, Verdict::Inconclusive);

    let more = baseline.map(|value| value * 1.1);
    let effect = paired(
        &pairs(&baseline, &more),
        Direction::LowerIsBetter,
        &rule(0.0, 1),
    );
    assert_eq!(effect.warnings, [Warning::ZeroVariance]);
}

#[test]
fn one_block_claims_nothing() {
    let effect = paired(
        &pairs(&[100.0], &[150.0]),
        Direction::LowerIsBetter,
        &rule(1.0, 1),
    );
    close(effect.effect_percent, 50.0);
    assert_eq!(effect.ci95_percent, None);
    assert_eq!(effect.p_sign_flip, Some(1.0));
    assert_eq!(effect.detectable_percent, None);
    assert_eq!(effect.verdict, Verdict::Inconclusive);
    assert_eq!(effect.warnings, [Warning::OneBlock]);
}

#[test]
fn no_block_claims_nothing() {
    for blocks in [vec![], vec![(None, Some(1.0)), (Some(1.0), None)]] {
        let effect = paired(&blocks, Direction::LowerIsBetter, &rule(1.0, 1));
        assert_eq!(effect.effect_percent, None);
        assert_eq!(effect.ci95_percent, None);
        assert_eq!(effect.p_sign_flip, None);
        assert_eq!(effect.detectable_percent, None);
        assert_eq!(
            (effect.blocks_used, effect.blocks_missing),
            (0, blocks.len())
        );
        assert_eq!(effect.verdict, Verdict::Inconclusive);
        assert_eq!(effect.warnings, [Warning::NoBlocks]);
    }
}

#[test]
fn missing_cells_drop_their_block_only() {
    let mut blocks = pairs(&BASELINE, &VARIANT);
    let clean = paired(&blocks, Direction::LowerIsBetter, &rule(1.0, 1));
    for (i, bad) in [0.0, -1.0, f64::NAN, f64::INFINITY, -0.0]
        .into_iter()
        .enumerate()
    {
        blocks.insert(2 * i, (Some(bad), Some(1.0)));
        blocks.insert(2 * i, (Some(1.0), Some(bad)));
    }
    blocks.push((None, None));
    let effect = paired(&blocks, Direction::LowerIsBetter, &rule(1.0, 1));
    assert_eq!((effect.blocks_used, effect.blocks_missing), (8, 11));
    assert_eq!(
        effect,
        Effect {
            blocks_missing: 11,
            ..clean
        }
    );
}

#[test]
fn what_no_percentage_can_express_is_left_out() {
    let blocks = pairs(&[1e-300, 1e-300, 1e-299], &[1e300, 2e300, 1e300]);
    let effect = paired(&blocks, Direction::LowerIsBetter, &rule(1.0, 1));
    assert_eq!((effect.effect_percent, effect.ci95_percent), (None, None));
    assert_eq!(effect.verdict, Verdict::Inconclusive);
    assert_eq!(effect.warnings, [Warning::OutOfRange]);

    // Here the mean fits and the upper end, ln 2·0.5 + 12.7·300, does not.
    let blocks = pairs(&[1.0, 1.0], &[1e-130, 2e130]);
    let effect = paired(&blocks, Direction::LowerIsBetter, &rule(1.0, 1));
    close(effect.effect_percent, 100.0 * (2_f64.sqrt() - 1.0));
    assert_eq!(
        (effect.ci95_percent, effect.detectable_percent),
        (None, None)
    );
    assert_eq!(effect.warnings, [Warning::OutOfRange]);
}

#[test]
fn rule_refuses_what_is_no_margin() {
    for margin in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Rule::new(margin, 1), None);
    }
    assert_eq!(rule(1.0, 0).comparisons(), 1);
    assert_eq!(rule(2.5, 4).margin_percent(), 2.5);
    assert_eq!(rule(2.5, 4).error_rate(), 0.0125);
}

#[test]
fn rings_are_pooled_by_their_logarithms() {
    close(pool_log_mean(&[2.0, 8.0]), 4.0);
    close(pool_log_mean(&[1.0, 10.0, 100.0]), 10.0);
    assert_eq!(pool_log_mean(&[0.1; 12]), Some(0.1));
    assert_eq!(pool_log_mean(&[f64::MAX; 3]), Some(f64::MAX));
    assert_eq!(pool_log_mean(&[]), None);
    for bad in [0.0, -2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(pool_log_mean(&[1.0, bad]), None);
    }
}

#[test]
fn noise_check_takes_claims_back() {
    let claim = || {
        paired(
            &pairs(&BASELINE, &VARIANT),
            Direction::LowerIsBetter,
            &rule(0.0, 3),
        )
    };
    assert_eq!(claim().verdict, Verdict::Better);

    // A duplicate like the baseline: passed, nothing changes.
    let mut shuffled = BASELINE;
    shuffled.rotate_left(3);
    let noise = noise_check(&pairs(&BASELINE, &shuffled), &rule(1.0, 3));
    assert!(noise.passed);
    let mut effect = claim();
    settle([&mut effect], &noise);
    assert_eq!(effect, claim());

    // A "duplicate" that differs, either way: all verdicts go, the figures stay.
    for blocks in [pairs(&BASELINE, &VARIANT), pairs(&VARIANT, &BASELINE)] {
        let noise = noise_check(&blocks, &rule(1.0, 3));
        assert!(!noise.passed);
        let mut effects = [claim(), claim()];
        settle(&mut effects, &noise);
        settle(&mut effects, &noise);
        for effect in effects {
            assert_eq!(effect.verdict, Verdict::Inconclusive);
            assert_eq!(effect.warnings, [Warning::NoiseCheckFailed]);
            assert_eq!(effect.ci95_percent, claim().ci95_percent);
        }
    }

    // Unadjusted: -1.15 % is beyond the margin though three variants are compared (-0.80 % would
    // not be), and it is the interval that scipy gives for one comparison.
    let noise = noise_check(&pairs(&BASELINE, &VARIANT), &rule(1.0, 3));
    close_pair(noise.ci95_percent, -3.3071617602359127, -1.1543947218058637);

    // One block cannot vouch for the machine.
    let noise = noise_check(&[(Some(1.0), Some(1.0)), (None, Some(1.0))], &rule(1.0, 3));
    assert_eq!(
        (noise.passed, noise.blocks_used, noise.blocks_missing),
        (false, 1, 1)
    );
    let mut effect = claim();
    settle([&mut effect], &noise);
    assert_eq!(effect.verdict, Verdict::Inconclusive);
    assert_eq!(effect.warnings, [Warning::NoiseCheckMissing]);
}

#[test]
fn written_and_read_again() {
    let effect = paired(
        &pairs(&[10.0; 8], &[9.0; 8]),
        Direction::LowerIsBetter,
        &rule(1.0, 1),
    );
    let json = serde_json::to_value(&effect).unwrap();
    assert_eq!(json["verdict"], "better");
    assert_eq!(json["warnings"][0], "zero-variance");
    assert!(json["detectable_percent"].is_null());
    assert_eq!(json["ci95_percent"].as_array().unwrap().len(), 2);
    assert_eq!(serde_json::from_value::<Effect>(json).unwrap(), effect);

    for verdict in [
        Verdict::Better,
        Verdict::Worse,
        Verdict::WithinMargin,
        Verdict::Inconclusive,
    ] {
        assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.to_string());
    }
    assert_eq!(format!("{:>14}|", Verdict::WithinMargin), " within-margin|");
}

#[test]
fn each_warning_says_what_to_do() {
    for (warning, fact, remedy) in [
        (
            Warning::NoBlocks,
            "no block has a positive value",
            "see why the runs failed",
        ),
        (
            Warning::OneBlock,
            "only one usable block",
            "run at least 2 blocks",
        ),
        (
            Warning::ZeroVariance,
            "exactly the same ratio",
            "make the runs longer",
        ),
        (
            Warning::OutOfRange,
            "differ so wildly",
            "look at the values",
        ),
        (
            Warning::NoiseCheckFailed,
            "different from its own duplicate",
            "quieten the machine",
        ),
        (
            Warning::NoiseCheckMissing,
            "too few usable blocks",
            "run at least 2 blocks",
        ),
    ] {
        let text = warning.to_string();
        assert!(text.contains(fact) && text.contains(remedy), "{text}");
    }
}
