//! The sign-flip permutation test.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Up to so many blocks every pattern of signs is tried (2^16 of them at most).
const EXACT_BLOCKS: usize = 16;

/// Above that, so many random patterns.
const DRAWS: u32 = (1 << 16) - 1;

/// Fixed, so that the same blocks always give the same p.
const SEED: u64 = 0x7369_676e_666c_6970;

/// The two-sided sign-flip p of the log-ratios d: if the variant made no difference, each block
/// could as well have come out with its two values exchanged, which flips the sign of its d. p is
/// the share of all patterns of signs whose mean is at least as far from 0 as the one observed.
///
/// Nothing is assumed about the shape of the noise. The smallest possible p with n blocks is
/// 2/2^n, so fewer than six blocks can never get below 0.05. Up to 16 blocks all patterns are
/// counted; above, 65,535 random ones from a fixed seed, and the observed pattern counts as one
/// of them, so that p is never 0. `None` without a block or when a value is not finite.
///
/// Source: R. A. Fisher, *The Design of Experiments* (1935), section 21; for the random patterns
/// B. Phipson and G. K. Smyth, "Permutation p-values should never be zero", Statistical
/// Applications in Genetics and Molecular Biology 9 (2010).
pub fn sign_flip_p(d: &[f64]) -> Option<f64> {
    if d.is_empty() || !d.iter().all(|x| x.is_finite()) {
        return None;
    }
    // Patterns that tie in exact arithmetic must not be told apart by rounding.
    let rounding = 1e-12 * d.iter().map(|x| x.abs()).sum::<f64>();
    let observed = d.iter().sum::<f64>().abs() - rounding;
    let as_far = |bits: &[u64]| flipped_sum(d, bits).abs() >= observed;

    if d.len() <= EXACT_BLOCKS {
        // A pattern and its opposite are equally far from 0: the last sign need not be flipped.
        let patterns = 1_u64 << (d.len() - 1);
        let hits = (0..patterns).filter(|&bits| as_far(&[bits])).count();
        return Some(hits as f64 / patterns as f64);
    }
    let mut rng = Pcg64::seed_from_u64(SEED);
    let mut bits = vec![0; d.len().div_ceil(64)];
    let hits = (0..DRAWS)
        .filter(|_| {
            bits.fill_with(|| rng.next_u64());
            as_far(&bits)
        })
        .count();
    Some((hits as f64 + 1.0) / (f64::from(DRAWS) + 1.0))
}

/// The sum of `d` where each value whose bit is set has its sign flipped.
fn flipped_sum(d: &[f64], bits: &[u64]) -> f64 {
    d.chunks(64)
        .zip(bits)
        .flat_map(|(chunk, &word)| {
            chunk
                .iter()
                .enumerate()
                .map(move |(i, &x)| if word >> i & 1 == 1 { -x } else { x })
        })
        .sum()
}
