//! What must hold for any values.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Blocks whose values are of one size, as measurements are.
fn measured() -> impl Strategy<Value = Vec<(f64, f64)>> {
    vec((0.5..2.0_f64, 0.5..2.0_f64), 2..10)
}

/// Blocks with any positive finite values at all.
fn wild() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let value = || {
        prop_oneof![
            (-300.0..300.0_f64).prop_map(|e| 10_f64.powf(e)),
            Just(1e300),
            Just(1e-300),
            Just(f64::MIN_POSITIVE),
            Just(f64::MAX),
            Just(5e-324)
        ]
    };
    vec((value(), value()), 0..10)
}

fn a_rule() -> impl Strategy<Value = Rule> {
    (prop_oneof![Just(0.0), 0.0..150.0_f64], 1..20_usize)
        .prop_map(|(margin, comparisons)| Rule::new(margin, comparisons).unwrap())
}

fn a_direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::LowerIsBetter),
        Just(Direction::HigherIsBetter)
    ]
}

fn analyse(blocks: &[(f64, f64)], direction: Direction, rule: &Rule) -> Effect {
    let blocks: Vec<_> = blocks.iter().map(|&(b, v)| (Some(b), Some(v))).collect();
    paired(&blocks, direction, rule)
}

fn mirrored(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Better => Verdict::Worse,
        Verdict::Worse => Verdict::Better,
        other => other,
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

/// The percentage of the same change seen from the other side.
fn undone(percent: f64) -> f64 {
    100.0 * (1.0 / (1.0 + percent / 100.0) - 1.0)
}

proptest! {
    #[test]
    fn exchanging_the_two_mirrors_everything(
        blocks in measured(), rule in a_rule(), direction in a_direction()
    ) {
        let exchanged: Vec<_> = blocks.iter().map(|&(b, v)| (v, b)).collect();
        let one = analyse(&blocks, direction, &rule);
        let other = analyse(&exchanged, direction, &rule);
        prop_assert_eq!(one.p_sign_flip, other.p_sign_flip);
        prop_assert_eq!(one.detectable_percent, other.detectable_percent);
        prop_assert_eq!(&one.warnings, &other.warnings);
        prop_assert!(near(other.effect_percent.unwrap(), undone(one.effect_percent.unwrap())));
        let ((low, high), (other_low, other_high)) =
            (one.ci95_percent.unwrap(), other.ci95_percent.unwrap());
        // 1/(1 + p/100) is only as good as 1 + p/100 is: near -100 % it says little.
        if low > -99.9 && other_low > -99.9 {
            prop_assert!(near(other_low, undone(high)) && near(other_high, undone(low)));
        }
        // With a margin, -1 % and the -0.99 % that undoes +1 % are not the same limit; an
        // interval that ends between them is all that may be judged otherwise.
        let margin = rule.margin_percent();
        let between = |end: f64| -margin <= end && end <= undone(margin);
        if margin == 0.0 || ![low, high, other_low, other_high].into_iter().any(between) {
            prop_assert_eq!(other.verdict, mirrored(one.verdict));
        }
    }

    #[test]
    fn the_other_direction_mirrors_the_verdict_alone(blocks in measured(), rule in a_rule()) {
        let lower = analyse(&blocks, Direction::LowerIsBetter, &rule);
        let higher = analyse(&blocks, Direction::HigherIsBetter, &rule);
        prop_assert_eq!(mirrored(lower.verdict), higher.verdict);
        prop_assert_eq!(lower.ci95_percent, higher.ci95_percent);
    }

    #[test]
    fn the_unit_does_not_matter(
        blocks in measured(), exponent in -200..200_i32, rule in a_rule(), direction in a_direction()
    ) {
        let factor = 10_f64.powi(exponent);
        let scaled: Vec<_> = blocks.iter().map(|&(b, v)| (b * factor, v * factor)).collect();
        let one = analyse(&blocks, direction, &rule);
        let other = analyse(&scaled, direction, &rule);
        prop_assert!(near(one.effect_percent.unwrap(), other.effect_percent.unwrap()));
        prop_assert_eq!(one.p_sign_flip, other.p_sign_flip);
        if let (Some(a), Some(b)) = (one.detectable_percent, other.detectable_percent) {
            prop_assert!(near(a.ln_1p(), b.ln_1p()));
        }
        let margin = rule.margin_percent();
        let ends = one.ci95_percent.unwrap();
        if ![ends.0, ends.1].into_iter().any(|end| near(end.abs(), margin)) {
            prop_assert_eq!(one.verdict, other.verdict);
        }
    }

    #[test]
    fn the_order_of_blocks_does_not_matter(blocks in measured(), rule in a_rule()) {
        let mut reversed = blocks.clone();
        reversed.reverse();
        let one = analyse(&blocks, Direction::LowerIsBetter, &rule);
        let other = analyse(&reversed, Direction::LowerIsBetter, &rule);
        prop_assert!(near(one.effect_percent.unwrap(), other.effect_percent.unwrap()));
        prop_assert_eq!(one.p_sign_flip, other.p_sign_flip);
    }

    #[test]
    fn the_verdict_can_be_checked_by_the_reader(
        blocks in measured(), rule in a_rule(), direction in a_direction()
    ) {
        let effect = analyse(&blocks, direction, &rule);
        let (low, high) = effect.ci95_percent.unwrap();
        let centre = effect.effect_percent.unwrap();
        prop_assert!(low <= centre && centre <= high);
        prop_assert!((0.0..=1.0).contains(&effect.p_sign_flip.unwrap()));
        let margin = rule.margin_percent();
        match effect.verdict {
            Verdict::Better | Verdict::Worse => {
                prop_assert!(low > margin || high < -margin);
                prop_assert!(!(low <= 0.0 && 0.0 <= high));
                let larger_is_good = direction == Direction::HigherIsBetter;
                prop_assert_eq!(effect.verdict == Verdict::Better, (centre > 0.0) == larger_is_good);
            }
            Verdict::WithinMargin => prop_assert!(-margin < low && high < margin),
            Verdict::Inconclusive => {}
        }
    }

    #[test]
    fn more_comparisons_never_narrow_the_interval(blocks in measured(), comparisons in 2..20_usize) {
        let direction = Direction::LowerIsBetter;
        let one = analyse(&blocks, direction, &Rule::new(0.0, 1).unwrap());
        let many = analyse(&blocks, direction, &Rule::new(0.0, comparisons).unwrap());
        if let (Some(narrow), Some(wide)) = (one.ci95_percent, many.ci95_percent) {
            prop_assert!(wide.0 <= narrow.0 && narrow.1 <= wide.1);
        }
    }

    #[test]
    fn every_number_is_finite(blocks in wild(), rule in a_rule(), direction in a_direction()) {
        let effect = analyse(&blocks, direction, &rule);
        let (low, high) = effect.ci95_percent.unzip();
        for number in [effect.effect_percent, low, high, effect.p_sign_flip, effect.detectable_percent] {
            prop_assert!(number.is_none_or(f64::is_finite));
        }
        prop_assert_eq!((effect.blocks_used, effect.blocks_missing), (blocks.len(), 0));
        if effect.ci95_percent.is_none() {
            prop_assert!(!effect.warnings.is_empty());
            prop_assert_eq!(effect.verdict, Verdict::Inconclusive);
        }
        let values: Vec<f64> = blocks.iter().flat_map(|&(b, v)| [b, v]).collect();
        if let Some(pooled) = pool_log_mean(&values) {
            prop_assert!(pooled.is_finite() && pooled > 0.0);
        }
    }
}
