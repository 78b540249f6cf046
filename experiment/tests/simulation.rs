//! The verdicts against noise of known kinds: how often they are wrong, how often the interval
//! holds the truth, and how often an effect of the size that is called detectable is found.
//!
//! Every experiment here is run as a real one is: blocks in which the baseline and its variants
//! run once each in random order, one after the other, on a machine whose noise (on
//! the logarithm of each run's result) may remember the run before. The margin is 0, where any
//! claim about nothing is wrong. The seed was fixed before the first run.
#![allow(clippy::unwrap_used)]

use std::f64::consts::TAU;

use experiment::statistics::{
    Direction, Effect, Rule, Verdict, detectable_percent, noise_check, paired,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const SEED: u64 = 9;
const EXPERIMENTS: usize = 2_000;
const BLOCKS: usize = 8;

/// The noise of one run after the other, as logarithms.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Independent and normal, 1 %.
    Normal,
    /// Normal, 1 %, and correlated by 0.5 with the run before: heat, a neighbour that stays.
    Autocorrelated,
    /// Three runs in ten are 25 % slower, on 1 % of normal noise: a ring with two stable speeds.
    TwoSpeed,
    /// One run in ten is disturbed and takes up to some times longer, on 1 % of normal noise.
    Spiky,
}

/// A machine with one kind of noise.
struct Machine {
    rng: Pcg64,
    noise: Noise,
    last: f64,
}

impl Machine {
    fn new(noise: Noise, seed: u64) -> Machine {
        let mut rng = Pcg64::seed_from_u64(seed);
        let last = normal(&mut rng);
        Machine { rng, noise, last }
    }

    /// The noise of the next run.
    fn next(&mut self) -> f64 {
        const SD: f64 = 0.01;
        let fresh = normal(&mut self.rng);
        match self.noise {
            Noise::Normal => SD * fresh,
            Noise::Autocorrelated => {
                // Keeps the variance at 1: 0.5² + 0.75.
                self.last = 0.5 * self.last + 0.75_f64.sqrt() * fresh;
                SD * self.last
            }
            Noise::TwoSpeed => {
                let slow = self.rng.random_bool(0.3);
                SD * fresh + if slow { 1.25_f64.ln() } else { 0.0 }
            }
            Noise::Spiky => {
                let disturbed = self.rng.random_bool(0.1);
                let spike = -0.5 * (1.0 - self.rng.random::<f64>()).ln();
                SD * fresh + if disturbed { spike } else { 0.0 }
            }
        }
    }

    /// One experiment: the pairs of each variant, whose true effects (in logarithms) are given.
    fn experiment(
        &mut self,
        blocks: usize,
        effects: &[f64],
    ) -> Vec<Vec<(Option<f64>, Option<f64>)>> {
        let mut pairs = vec![Vec::with_capacity(blocks); effects.len()];
        for _ in 0..blocks {
            // Run 0 is the baseline. Fisher and Yates put the runs in order.
            let mut order: Vec<usize> = (0..=effects.len()).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, self.rng.random_range(0..=i));
            }
            let mut result = vec![0.0; order.len()];
            for run in order {
                let effect = if run == 0 { 0.0 } else { effects[run - 1] };
                result[run] = (3.0_f64.ln() + effect + self.next()).exp();
            }
            for (variant, pairs) in pairs.iter_mut().enumerate() {
                pairs.push((Some(result[0]), Some(result[variant + 1])));
            }
        }
        pairs
    }

    /// The share of `EXPERIMENTS` experiments with these true effects of which `is` holds.
    fn share(
        &mut self,
        blocks: usize,
        effects: &[f64],
        rule: &Rule,
        mut is: impl FnMut(&[Effect]) -> bool,
    ) -> f64 {
        let hits = (0..EXPERIMENTS).filter(|_| {
            let found: Vec<Effect> = self
                .experiment(blocks, effects)
                .iter()
                .map(|pairs| paired(pairs, Direction::LowerIsBetter, rule))
                .collect();
            is(&found)
        });
        hits.count() as f64 / EXPERIMENTS as f64
    }
}

/// A standard normal number. Source: G. E. P. Box and M. E. Muller, "A note on the generation of
/// random normal deviates", Annals of Mathematical Statistics 29 (1958).
fn normal(rng: &mut Pcg64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (TAU * rng.random::<f64>()).cos()
}

fn claims(effect: &Effect) -> bool {
    matches!(effect.verdict, Verdict::Better | Verdict::Worse)
}

fn holds(effect: &Effect, percent: f64) -> bool {
    let (low, high) = effect.ci95_percent.unwrap();
    low <= percent && percent <= high
}

/// Both promises under one kind of noise; the coverage is that of a planted effect of +3 %.
fn check(noise: Noise, most_coverage: f64) {
    let rule = Rule::new(0.0, 1).unwrap();
    let mut machine = Machine::new(noise, SEED);

    let mut small_p = 0;
    let wrong = machine.share(BLOCKS, &[0.0], &rule, |found| {
        small_p += usize::from(found[0].p_sign_flip.unwrap() <= 0.05);
        claims(&found[0])
    });
    let flips = small_p as f64 / EXPERIMENTS as f64;
    let coverage = machine.share(BLOCKS, &[1.03_f64.ln()], &rule, |found| {
        holds(&found[0], 3.0)
    });
    println!("{noise:?}: wrong {wrong:.4}, coverage {coverage:.4}, p <= 0.05 {flips:.4}");
    assert!(
        wrong <= 0.06,
        "{noise:?}: {wrong} of A/A experiments claim an effect"
    );
    assert!(
        (0.93..=most_coverage).contains(&coverage),
        "{noise:?}: {coverage} of the intervals hold the effect"
    );
    assert!(
        flips <= 0.06,
        "{noise:?}: {flips} of A/A experiments have p <= 0.05"
    );
}

#[test]
fn normal_noise() {
    check(Noise::Normal, 0.97);
}

#[test]
fn autocorrelated_noise() {
    check(Noise::Autocorrelated, 0.97);
}

#[test]
fn two_speed_noise() {
    check(Noise::TwoSpeed, 1.0);
}

#[test]
fn spiky_noise() {
    check(Noise::Spiky, 1.0);
}

#[test]
fn several_variants_share_one_error_rate() {
    // Without the adjustment, about one experiment in nine would claim something here.
    let rule = Rule::new(0.0, 3).unwrap();
    let mut machine = Machine::new(Noise::Normal, SEED);
    let wrong = machine.share(BLOCKS, &[0.0; 3], &rule, |found| found.iter().any(claims));
    println!("any of three: {wrong:.4}");
    assert!(
        wrong <= 0.06,
        "{wrong} of the experiments claim at least one effect"
    );
}

#[test]
fn noise_check_fails_once_in_twenty() {
    // With three variants too: the check is not adjusted. With a margin of 1 %, hardly ever.
    let mut machine = Machine::new(Noise::Autocorrelated, SEED);
    let mut failed = |margin| {
        let rule = Rule::new(margin, 3).unwrap();
        let fails = (0..EXPERIMENTS)
            .filter(|_| !noise_check(&machine.experiment(BLOCKS, &[0.0])[0], &rule).passed);
        fails.count() as f64 / EXPERIMENTS as f64
    };
    let (strict, with_margin) = (failed(0.0), failed(1.0));
    println!("noise check: margin 0 {strict:.4}, margin 1 % {with_margin:.4}");
    assert!(
        (0.03..=0.07).contains(&strict),
        "{strict} of the noise checks failed"
    );
    assert!(
        with_margin <= 0.01,
        "{with_margin} of the noise checks failed"
    );
}

#[test]
fn the_detectable_effect_is_found_in_four_of_five() {
    // The noise of a run is 1 %, so that of d, a difference of two, is √2 %.
    let sd = 0.01 * 2_f64.sqrt();
    let mut machine = Machine::new(Noise::Normal, SEED);
    for (blocks, comparisons, margin) in [
        (BLOCKS, 1, 0.0),
        (BLOCKS, 1, 1.0),
        (BLOCKS, 3, 0.0),
        (4, 1, 0.0),
    ] {
        let rule = Rule::new(margin, comparisons).unwrap();
        let percent = detectable_percent(sd, blocks, &rule).unwrap();
        let more = machine.share(blocks, &[(percent / 100.0).ln_1p()], &rule, |found| {
            found[0].verdict == Verdict::Worse
        });
        println!(
            "{blocks} blocks, {comparisons} comparisons, margin {margin} %: {percent:.3} % found in {more:.4}"
        );
        assert!((0.75..=0.85).contains(&more), "{percent} % found in {more}");

        // A decrease of as many percent is at least as easy to find.
        let less = machine.share(blocks, &[(-percent / 100.0).ln_1p()], &rule, |found| {
            found[0].verdict == Verdict::Better
        });
        println!("    decrease {less:.4}");
        assert!(less >= 0.75, "-{percent} % found in {less}");
    }
}
