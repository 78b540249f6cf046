//! The charts of the idle states: four rates of each state over time.

use experiment::{IdleSample, Results, Sample};

use super::charts::{self, Rate};

/// One state's charts, each with what it shows.
pub(super) struct StateCharts {
    pub(super) name: String,
    pub(super) charts: Vec<(&'static str, Rate)>,
}

/// Every state that appears in the samples, in the kernel's order.
pub(super) fn states(results: &Results) -> Vec<StateCharts> {
    let mut names: Vec<&str> = Vec::new();
    for state in results.samples.iter().flat_map(|sample| &sample.idle) {
        if !names.contains(&state.name.as_str()) {
            names.push(&state.name);
        }
    }
    let cpus = results.plan.ring.cpus().len().max(1) as f64;
    names
        .into_iter()
        .map(|name| {
            let chart = |label: &str, count: &dyn Fn(&IdleSample) -> Option<f64>| {
                charts::rate_by_variant(results, label, |sample| per_second(sample, name, count))
            };
            let charts = vec![
                (
                    "usage (entries)",
                    chart("entries/s", &|state| as_float(state.usage)),
                ),
                (
                    "time",
                    chart("% of CPU time", &|state| {
                        as_float(state.time_us).map(|us| us / 1e4 / cpus)
                    }),
                ),
                (
                    "too deep (above)",
                    chart("entries/s", &|state| as_float(state.too_deep)),
                ),
                (
                    "too shallow (below)",
                    chart("entries/s", &|state| as_float(state.too_shallow)),
                ),
            ];
            StateCharts {
                name: name.to_owned(),
                charts,
            }
        })
        .collect()
}

fn per_second(
    sample: &Sample,
    name: &str,
    count: &dyn Fn(&IdleSample) -> Option<f64>,
) -> Option<f64> {
    let state = sample.idle.iter().find(|state| state.name == name)?;
    (sample.seconds() > 0.0).then_some(count(state)? / sample.seconds())
}

fn as_float(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}
