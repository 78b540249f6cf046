//! From the runs of the finished blocks to summaries, effects and verdicts.

use crate::results::{Comparison, CpuRate, IdleSummary, Metric, RingSummary, Run, VariantSummary};
use crate::sample::sum_of_all;
use crate::statistics::{Direction, NoiseCheck, Rule, noise_check, paired, pool_log_mean, settle};
use crate::{Plan, Sample};

/// The analysis of an experiment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Analysis {
    /// Each variant on its own.
    pub variants: Vec<VariantSummary>,
    /// Each variant against the baseline.
    pub comparisons: Vec<Comparison>,
    /// The baseline against its duplicate.
    pub noise_check: NoiseCheck,
}

/// Analyses the runs. They must be those of whole blocks; `energy_unavailable` says why
/// runs have no energy, where they have none.
pub fn analyse(
    plan: &Plan,
    runs: &[Run],
    samples: &[Sample],
    energy_unavailable: Option<&str>,
) -> Analysis {
    let cells = Cells { plan, runs };
    // A margin is checked where it is read; 0 is the strictest.
    let compared = plan.variants.len().saturating_sub(1);
    let rule = Rule::new(plan.margin_percent, compared)
        .or(Rule::new(0.0, compared))
        .expect("0 is a margin");
    let noise = noise_check(&cells.pairs(0, true, pooled), &rule);
    let mut comparisons = compare(&cells, &rule);
    settle(comparisons.iter_mut().map(|c| &mut c.effect), &noise);
    Analysis {
        variants: (0..plan.variants.len())
            .map(|at| summarise(&cells, at, samples, energy_unavailable))
            .collect(),
        comparisons,
        noise_check: noise,
    }
}

/// The runs by block and variant.
struct Cells<'a> {
    plan: &'a Plan,
    runs: &'a [Run],
}

impl<'a> Cells<'a> {
    fn of(&self, variant: usize, duplicate: bool) -> impl Iterator<Item = &'a Run> {
        let name = &self.plan.variants[variant].name;
        self.runs
            .iter()
            .filter(move |run| run.duplicate == duplicate && run.variant == *name)
    }

    /// A metric of the baseline and of a variant (or the duplicate), block by block.
    fn pairs(
        &self,
        variant: usize,
        duplicate: bool,
        metric: impl Fn(&Run) -> Option<f64>,
    ) -> Vec<(Option<f64>, Option<f64>)> {
        let value = |variant, duplicate, block| {
            self.of(variant, duplicate)
                .find(|run| run.block == block)
                .and_then(&metric)
        };
        (0..self.plan.blocks)
            .filter(|block| self.runs.iter().any(|run| run.block == *block))
            .map(|block| (value(0, false, block), value(variant, duplicate, block)))
            .collect()
    }
}

/// µs per loop over all rings of a run; `None` when a ring has none, since a mean over
/// fewer rings is another metric.
fn pooled(run: &Run) -> Option<f64> {
    let values: Option<Vec<f64>> = run.rings.iter().map(|ring| ring.us_per_loop).collect();
    pool_log_mean(&values?)
}

fn watts(run: &Run) -> Option<f64> {
    Some(run.energy_j? / (run.end_s - run.start_s))
}

fn compare(cells: &Cells<'_>, rule: &Rule) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let baseline = &cells.plan.variants[0].name;
    let rings = cells.plan.ring.rings.len();
    for (at, variant) in cells.plan.variants.iter().enumerate().skip(1) {
        let mut compare = |metric, ring, value: &dyn Fn(&Run) -> Option<f64>| {
            let pairs = cells.pairs(at, false, value);
            comparisons.push(Comparison {
                variant: variant.name.clone(),
                baseline: baseline.clone(),
                metric,
                ring,
                primary: metric == Metric::UsPerLoop && ring.is_none(),
                effect: paired(&pairs, Direction::LowerIsBetter, rule),
            });
        };
        compare(Metric::UsPerLoop, None, &pooled);
        for ring in 0..rings {
            compare(Metric::UsPerLoop, Some(ring), &|run| {
                run.rings.get(ring)?.us_per_loop
            });
        }
        compare(Metric::EnergyJ, None, &|run| run.energy_j);
        compare(Metric::Watts, None, &watts);
    }
    comparisons.sort_by_key(|comparison| !comparison.primary);
    comparisons
}

fn summarise(
    cells: &Cells<'_>,
    variant: usize,
    samples: &[Sample],
    energy_unavailable: Option<&str>,
) -> VariantSummary {
    let runs: Vec<&Run> = cells.of(variant, false).collect();
    let energy_j = mean(runs.iter().map(|run| run.energy_j));
    let unavailable = match energy_j {
        Some(_) => None,
        None => Some(match energy_unavailable {
            Some(why) => why.to_owned(),
            None if runs.is_empty() => "no block was finished".to_owned(),
            None => "an energy counter could not be read during one of its runs".to_owned(),
        }),
    };
    let during: Vec<&Sample> = runs
        .iter()
        .filter_map(|run| samples.get(run.first_sample..run.end_sample))
        .flatten()
        .collect();
    let rings = cells.plan.ring.rings.iter().enumerate();
    VariantSummary {
        name: cells.plan.variants[variant].name.clone(),
        energy_j,
        energy_unavailable: unavailable,
        watts: mean(runs.iter().map(|run| watts(run))),
        rings: rings
            .map(|(ring, cpus)| RingSummary {
                cpus: cpus.clone(),
                us_per_loop: mean(
                    runs.iter()
                        .map(|run| run.rings.get(ring).and_then(|ring| ring.us_per_loop)),
                ),
            })
            .collect(),
        idle: idle(&during, cells.plan.ring.cpus().len()),
        interrupts: interrupts(&during),
    }
}

/// The mean of values, none of which may be missing.
fn mean(values: impl ExactSizeIterator<Item = Option<f64>>) -> Option<f64> {
    let count = values.len();
    Some(sum_of_all(values)? / count as f64)
}

fn seconds(samples: &[&Sample]) -> f64 {
    samples.iter().map(|sample| sample.seconds()).sum()
}

/// Every state by its name, in the order of the first sample.
fn idle(samples: &[&Sample], cpus: usize) -> Vec<IdleSummary> {
    let Some(first) = samples.first() else {
        return Vec::new();
    };
    let seconds = seconds(samples);
    let names = first.idle.iter().map(|state| &state.name);
    names
        .map(|name| {
            let rate = |count: &dyn Fn(&crate::IdleSample) -> Option<u64>| {
                let counts = samples.iter().map(|sample| {
                    let state = sample.idle.iter().find(|state| state.name == *name)?;
                    count(state).map(|count| count as f64)
                });
                Some(sum_of_all(counts)? / seconds)
            };
            IdleSummary {
                name: name.clone(),
                usage_per_s: rate(&|state| state.usage),
                time_percent: rate(&|state| state.time_us)
                    .map(|us_per_s| us_per_s / 1e6 * 100.0 / cpus.max(1) as f64),
                too_deep_per_s: rate(&|state| state.too_deep),
                too_shallow_per_s: rate(&|state| state.too_shallow),
            }
        })
        .collect()
}

/// Over the CPUs that every sample has.
fn interrupts(samples: &[&Sample]) -> Vec<CpuRate> {
    let Some(first) = samples.first() else {
        return Vec::new();
    };
    let seconds = seconds(samples);
    first
        .interrupts
        .iter()
        .filter_map(|entry| {
            let counts = samples.iter().map(|sample| {
                let count = sample.interrupts.iter().find(|c| c.cpu == entry.cpu)?;
                Some(count.count as f64)
            });
            Some(CpuRate {
                cpu: entry.cpu,
                per_s: sum_of_all(counts)? / seconds,
            })
        })
        .collect()
}
