//! The analysis of runs whose right answer is known beforehand.
#![allow(clippy::unwrap_used)]

use experiment::statistics::{Verdict, Warning};
use experiment::{Analysis, Metric, Plan, RingPlan, RingRun, Run, Sample, Until, Variant, analyse};
use pingpong::TransportKind;
use serde_json::json;

/// Runs of two rings, given as µs per loop of (baseline, variant, duplicate) for each block;
/// both rings take the same time.
fn runs(blocks: &[(f64, f64, f64)]) -> (Plan, Vec<Run>) {
    let variants = vec![Variant::as_found("off"), Variant::as_found("on")];
    let rings = vec![vec![0, 1], vec![0, 1]];
    let ring = RingPlan::new(rings, TransportKind::Pipe, 0, Until::Loops(10));
    let mut plan = Plan::new(variants, ring, 1);
    plan.blocks = blocks.len() as u32;
    let mut runs = Vec::new();
    for (block, (off, on, again)) in (0..).zip(blocks) {
        let cells = [("off", false, off), ("on", false, on), ("off", true, again)];
        for (variant, duplicate, us) in cells {
            runs.push(run(block, variant, duplicate, *us));
        }
    }
    (plan, runs)
}

/// Built from its saved form, as `compare` will: the fields' names are part of the schema.
fn run(block: u32, variant: &str, duplicate: bool, us: f64) -> Run {
    let ring = json!({"us_per_loop": us, "loops": 10, "elapsed_s": us * 1e-5});
    serde_json::from_value(json!({
        "block": block, "place": 0, "variant": variant, "duplicate": duplicate,
        "start_s": 0.0, "end_s": 2.0, "rings": [ring, ring],
        "energy_j": us, "first_sample": 0, "end_sample": 0,
    }))
    .unwrap()
}

fn primary(analysis: &Analysis) -> &experiment::Comparison {
    let mut primary = analysis.comparisons.iter().filter(|c| c.primary);
    let only = primary.next().unwrap();
    assert!(primary.next().is_none());
    only
}

#[test]
fn the_effect_is_the_mean_of_the_logarithms_of_the_blocks() {
    // ln(1.05·1.07)/2 over two blocks of ratios 1.05 and 1.07: sqrt(1.1235) = 1.0599528.
    let (plan, runs) = runs(&[(2.0, 2.1, 2.0), (4.0, 4.28, 4.0)]);
    let analysis = analyse(&plan, &runs, &[], None);
    let effect = &primary(&analysis).effect;
    assert!((effect.effect_percent.unwrap() - 5.99528).abs() < 1e-4);
    assert_eq!(effect.blocks_used, 2);
    // Both rings alike, and the pooled metric too.
    let rings: Vec<_> = analysis
        .comparisons
        .iter()
        .filter(|c| c.metric == Metric::UsPerLoop && c.ring.is_some())
        .collect();
    assert_eq!(rings.len(), 2);
    for ring in rings {
        assert!(!ring.primary);
        assert_eq!(ring.effect.effect_percent, effect.effect_percent);
    }
}

#[test]
fn the_duplicate_is_in_the_noise_check_and_nowhere_else() {
    let (plan, runs) = runs(&[(2.0, 2.0, 9.0), (2.0, 2.0, 9.1), (2.0, 2.0, 9.0)]);
    let analysis = analyse(&plan, &runs, &[], None);
    assert_eq!(analysis.variants.len(), 2);
    assert_eq!(analysis.variants[0].rings[0].us_per_loop, Some(2.0));
    assert!(!analysis.noise_check.passed);
    assert!(analysis.noise_check.effect_percent.unwrap() > 300.0);
    let effect = &primary(&analysis).effect;
    assert_eq!(effect.verdict, Verdict::Inconclusive);
    assert!(effect.warnings.contains(&Warning::NoiseCheckFailed));
}

#[test]
fn a_clear_effect_beyond_the_margin_is_worse_and_its_mirror_better() {
    let noisy = [
        (2.0, 2.2, 2.01),
        (2.02, 2.21, 2.0),
        (1.99, 2.2, 2.0),
        (2.0, 2.19, 1.99),
    ];
    let (plan, slower) = runs(&noisy);
    let analysis = analyse(&plan, &slower, &[], None);
    assert_eq!(primary(&analysis).effect.verdict, Verdict::Worse);
    assert!(analysis.noise_check.passed);
    let mirrored = noisy.map(|(off, on, _)| (on, off, on * 1.002));
    let (plan, faster) = runs(&mirrored);
    let analysis = analyse(&plan, &faster, &[], None);
    assert_eq!(primary(&analysis).effect.verdict, Verdict::Better);
}

#[test]
fn a_ring_without_a_result_drops_the_block_from_the_pooled_metric() {
    let (plan, mut runs) = runs(&[(2.0, 2.1, 2.0), (2.0, 2.1, 2.0), (2.0, 2.2, 2.0)]);
    let broken: RingRun =
        serde_json::from_value(json!({"us_per_loop": null, "loops": 0, "elapsed_s": 0.0})).unwrap();
    runs[1].rings[1] = broken;
    let analysis = analyse(&plan, &runs, &[], None);
    let effect = &primary(&analysis).effect;
    assert_eq!((effect.blocks_used, effect.blocks_missing), (2, 1));
    assert_eq!(
        analysis.variants[1].rings[1].us_per_loop, None,
        "not a mean of fewer"
    );
}

#[test]
fn missing_energy_is_said_with_its_reason() {
    let (plan, mut runs) = runs(&[(2.0, 2.1, 2.0), (2.0, 2.1, 2.0)]);
    let analysis = analyse(&plan, &runs, &[], None);
    assert_eq!(analysis.variants[0].energy_j, Some(2.0));
    assert_eq!(analysis.variants[0].watts, Some(1.0), "2 J in 2 s");
    assert_eq!(analysis.variants[0].energy_unavailable, None);

    runs[0].energy_j = None;
    let analysis = analyse(&plan, &runs, &[], None);
    assert_eq!(analysis.variants[0].energy_j, None);
    let why = analysis.variants[0].energy_unavailable.as_deref().unwrap();
    assert_eq!(
        why,
        "an energy counter could not be read during one of its runs"
    );

    for run in &mut runs {
        run.energy_j = None;
    }
    let analysis = analyse(&plan, &runs, &[], Some("no counters here"));
    let why = analysis.variants[1].energy_unavailable.as_deref();
    assert_eq!(why, Some("no counters here"));
    let energy = analysis
        .comparisons
        .iter()
        .find(|c| c.metric == Metric::EnergyJ)
        .unwrap();
    assert_eq!(energy.effect.effect_percent, None);
    assert_eq!(energy.effect.verdict, Verdict::Inconclusive);
}

#[test]
fn idle_states_and_interrupts_are_rates_over_the_runs_of_the_variant() {
    let (plan, mut runs) = runs(&[(2.0, 2.1, 2.0)]);
    let sample = |start: f64, usage: u64, time_us: u64, count: u64| -> Sample {
        serde_json::from_value(json!({
            "start_s": start, "end_s": start + 2.0, "energy_j": null, "watts": null,
            "idle": [{"name": "C1", "usage": usage, "time_us": time_us, "too_deep": 10, "too_shallow": null}],
            "interrupts": [{"cpu": 0, "count": count}, {"cpu": 4, "count": 0}],
        }))
        .unwrap()
    };
    // Of the baseline: the samples 0 and 1. What lies outside of runs is not counted.
    let samples = [
        sample(0.0, 100, 1_000_000, 8),
        sample(2.0, 300, 3_000_000, 0),
        sample(4.0, 7, 7, 7),
    ];
    (runs[0].first_sample, runs[0].end_sample) = (0, 2);
    let analysis = analyse(&plan, &runs, &samples, None);
    let idle = &analysis.variants[0].idle[0];
    // 400 entries in 4 s; 4 s of idle time in 4 s on two CPUs.
    assert_eq!((idle.name.as_str(), idle.usage_per_s), ("C1", Some(100.0)));
    assert_eq!(idle.time_percent, Some(50.0));
    assert_eq!(
        (idle.too_deep_per_s, idle.too_shallow_per_s),
        (Some(5.0), None)
    );
    let rates: Vec<(u32, f64)> = analysis.variants[0]
        .interrupts
        .iter()
        .map(|r| (r.cpu, r.per_s))
        .collect();
    assert_eq!(rates, [(0, 2.0), (4, 0.0)]);
    assert!(analysis.variants[1].idle.is_empty());
}

#[test]
fn no_finished_block_gives_no_figure() {
    let (mut plan, _) = runs(&[]);
    plan.blocks = 6;
    let analysis = analyse(&plan, &[], &[], None);
    assert_eq!(primary(&analysis).effect.effect_percent, None);
    assert_eq!(primary(&analysis).effect.verdict, Verdict::Inconclusive);
    assert!(!analysis.noise_check.passed);
    let why = analysis.variants[0].energy_unavailable.as_deref();
    assert_eq!(why, Some("no block was finished"));
}
