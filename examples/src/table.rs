//! The table that `ab` prints: a line for each ring, then the energy, against the baseline.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, Table};
use experiment::{Comparison, Metric, Results, VariantSummary};

use crate::figures;

/// A column for each variant: the figure, and for all but the baseline the percent.
pub fn comparison(results: &Results) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    let mut header = vec![Cell::new("")];
    for (at, variant) in results.variants.iter().enumerate() {
        header.push(right(&variant.name));
        if at > 0 {
            header.push(right("percent"));
        }
    }
    table.set_header(header);
    for (ring, cpus) in results.plan.ring.rings.iter().enumerate() {
        let name = format!("ring {ring} on CPUs {}, µs per loop", figures::list(cpus));
        table.add_row(row(results, name, Metric::UsPerLoop, Some(ring), |v| {
            v.rings.get(ring)?.us_per_loop
        }));
    }
    if results.variants.iter().any(|v| v.energy_j.is_some()) {
        let name = "energy of a run, joules".to_owned();
        table.add_row(row(results, name, Metric::EnergyJ, None, |v| v.energy_j));
        let name = "power, watts".to_owned();
        table.add_row(row(results, name, Metric::Watts, None, |v| v.watts));
    }
    table.to_string()
}

fn row(
    results: &Results,
    name: String,
    metric: Metric,
    ring: Option<usize>,
    value: impl Fn(&VariantSummary) -> Option<f64>,
) -> Vec<Cell> {
    let mut cells = vec![Cell::new(name)];
    for (at, variant) in results.variants.iter().enumerate() {
        cells.push(right(&figures::significant(value(variant))));
        if at > 0 {
            let effect = results
                .comparisons
                .iter()
                .find(|c| c.variant == variant.name && c.metric == metric && c.ring == ring)
                .and_then(|c| c.effect.effect_percent);
            cells.push(right(&figures::percent(effect)));
        }
    }
    cells
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// What the figures mean: a line for each primary comparison and one for the noise check.
pub fn verdicts(results: &Results) -> String {
    let mut lines: Vec<String> = results
        .comparisons
        .iter()
        .filter(|comparison| comparison.primary)
        .flat_map(verdict)
        .collect();
    let noise = &results.noise_check;
    lines.push(format!(
        "Noise check ({baseline} against itself): {effect} ({interval}): {passed}; it can show \
         {detectable}.",
        detectable = figures::size(noise.detectable_percent),
        baseline = results.plan.variants[0].name,
        effect = figures::percent(noise.effect_percent),
        interval = figures::interval(noise.ci95_percent),
        passed = if noise.passed { "passed" } else { "failed" },
    ));
    if results.variants.iter().all(|v| v.energy_j.is_none())
        && let Some(why) = results
            .variants
            .first()
            .and_then(|v| v.energy_unavailable.as_ref())
    {
        lines.push(format!("No energy: {why}."));
    }
    lines.join("\n")
}

fn verdict(comparison: &Comparison) -> Vec<String> {
    let effect = &comparison.effect;
    let mut lines = vec![format!(
        "{variant} against {baseline}: {effect} µs per loop over all rings ({interval}): \
         {verdict}. {blocks} blocks can show {detectable} here.",
        variant = comparison.variant,
        baseline = comparison.baseline,
        effect = figures::percent(effect.effect_percent),
        interval = figures::interval(effect.ci95_percent),
        verdict = comparison.metric.words(effect.verdict),
        blocks = effect.blocks_used,
        detectable = figures::size(effect.detectable_percent),
    )];
    lines.extend(effect.warnings.iter().map(|warning| format!("  {warning}")));
    lines
}
