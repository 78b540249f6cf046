//! The page around the charts.

use experiment::statistics::Verdict;
use experiment::{Comparison, Ending, Results};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::charts::{self, Rate};
use super::{idle, palette};
use crate::figures;

const STYLE: &str = "
:root { color-scheme: light dark; --grid: #ddd; --soft: #666; --line: #ccc; }
@media (prefers-color-scheme: dark) { :root { --grid: #444; --soft: #aaa; --line: #555; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
figure { margin: 1rem 0; } figcaption { color: var(--soft); font-size: .9rem; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th, td.n { white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.small { display: grid; gap: .5rem 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
.swatch { display: inline-block; width: .8em; height: .8em; margin: 0 .4em 0 1em; }
.note { border-left: 4px solid #d55e00; padding-left: .8rem; }
code { overflow-wrap: anywhere; }
";

pub(super) fn page(results: &Results) -> Markup {
    let title = headline(results);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                h2 { "Machine" }
                (machine(results))
                h2 { "Result" }
                (notes(results))
                (legend(results))
                (comparisons(results))
                (figure(
                    &charts::effects(results),
                    "Effect of each variant on µs per loop against the baseline, with its 95 % \
                     interval. The shaded band is the margin; the hollow point is the baseline \
                     against its hidden duplicate: what this machine's noise does.",
                ))
                h2 { "µs per loop of every run" }
                (figure(
                    &charts::runs(results),
                    "One point for each ring of each run, at the middle of the run. Hollow: the \
                     hidden duplicate of the baseline.",
                ))
                h2 { "Power" }
                (power(results))
                h2 { "Idle states" }
                (idle_states(results))
                h2 { "Interrupts by CPU" }
                (interrupts(results))
                h2 { "Method" }
                (method(results))
            }
        }
    }
}

/// The verdict in one sentence.
fn headline(results: &Results) -> String {
    let baseline = &results.plan.variants[0].name;
    let primary: Vec<String> = results
        .comparisons
        .iter()
        .filter(|comparison| comparison.primary)
        .map(|c| {
            let words = match c.effect.verdict {
                Verdict::Better => "faster".to_owned(),
                Verdict::Worse => "slower".to_owned(),
                Verdict::WithinMargin => {
                    format!("within ±{} %", figures::plain(results.plan.margin_percent))
                }
                _ => "inconclusive".to_owned(),
            };
            let effect = figures::percent(c.effect.effect_percent);
            format!("{}: {words} ({effect} µs per loop)", c.variant)
        })
        .collect();
    match primary.is_empty() {
        true => format!("{baseline}: nothing was compared"),
        false => format!("Against {baseline}: {}", primary.join("; ")),
    }
}

fn notes(results: &Results) -> Markup {
    let ending = match &results.ending {
        Ending::Complete => None,
        Ending::Interrupted => Some("The experiment was interrupted.".to_owned()),
        Ending::Failed { error } => Some(format!("The experiment failed: {error}")),
        _ => Some("The experiment did not end as planned.".to_owned()),
    };
    html! {
        @if let Some(ending) = ending {
            p.note {
                (ending) " " (results.blocks_done) " of " (results.plan.blocks)
                " blocks were finished; only these are analysed."
            }
        }
        @if !results.noise_check.passed {
            p.note {
                "The noise check did not pass: the baseline against its own duplicate came out at "
                (figures::percent(results.noise_check.effect_percent)) " "
                (figures::interval(results.noise_check.ci95_percent))
                ". Every verdict is inconclusive."
            }
        }
        @for left_out in &results.left_out {
            p.note { (left_out.to_string()) }
        }
        @for warning in &results.warnings {
            p.note { (warning) }
        }
    }
}

fn machine(results: &Results) -> Markup {
    html! {
        table {
            @for (name, value) in results.machine.facts() {
                tr { th { (name) } td { (value) } }
            }
        }
    }
}

fn legend(results: &Results) -> Markup {
    html! {
        p {
            @for (at, variant) in results.plan.variants.iter().enumerate() {
                span.swatch style=(format!("background:{}", palette::css(palette::variant(at)))) {}
                (variant.name)
                @if at == 0 { " (baseline)" }
            }
        }
    }
}

fn comparisons(results: &Results) -> Markup {
    html! {
        table {
            tr {
                th { "variant" } th { "metric" } th { "ring" }
                th.n { "effect" } th.n { "95 % interval" } th { "verdict" }
                th.n { "detectable" } th.n { "p (sign flip)" }
            }
            // What was never measured is explained below, under "Power".
            @for comparison in &results.comparisons {
                @if comparison.primary || comparison.effect.effect_percent.is_some() {
                    (comparison_row(comparison))
                }
            }
            @let noise = &results.noise_check;
            tr {
                td { (results.plan.variants[0].name) " again" } td { "µs per loop" } td { "all" }
                td.n { (figures::percent(noise.effect_percent)) }
                td.n { (figures::interval(noise.ci95_percent)) }
                td { @if noise.passed { "noise check passed" } @else { "noise check failed" } }
                td.n { (figures::size(noise.detectable_percent)) }
                td {}
            }
        }
        p {
            "µs per loop over all rings is the primary metric; the others are exploratory. "
            "Detectable: the smallest true effect that so many blocks would have shown in 80 % \
             of such experiments."
        }
        @for warning in warnings(results) { p.note { (warning) } }
    }
}

fn comparison_row(comparison: &Comparison) -> Markup {
    let effect = &comparison.effect;
    html! {
        tr {
            td { (comparison.variant) }
            td { (figures::metric(comparison.metric)) }
            td { @match comparison.ring { Some(ring) => (ring), None => "all" } }
            td.n { (figures::percent(effect.effect_percent)) }
            td.n { (figures::interval(effect.ci95_percent)) }
            td { (comparison.metric.words(effect.verdict)) @if !comparison.primary { " (exploratory)" } }
            td.n { (figures::size(effect.detectable_percent)) }
            td.n { (figures::p(effect.p_sign_flip)) }
        }
    }
}

/// Each warning of the primary comparisons once.
fn warnings(results: &Results) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for comparison in results.comparisons.iter().filter(|c| c.primary) {
        for warning in &comparison.effect.warnings {
            let text = format!("{}: {warning}", comparison.variant);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    texts
}

fn power(results: &Results) -> Markup {
    match charts::power(results) {
        Some(svg) => figure(
            &svg,
            "Watts of the whole machine (packages and memory) over the experiment, lead and tail \
             included. A band in the variant's colour marks each run.",
        ),
        None => {
            let why = results
                .variants
                .first()
                .and_then(|v| v.energy_unavailable.as_deref());
            html! { p { "No energy: " (why.unwrap_or("no sample has any")) "." } }
        }
    }
}

fn idle_states(results: &Results) -> Markup {
    let states = idle::states(results);
    html! {
        @if states.is_empty() {
            p { "No idle states: see what was left out above." }
        } @else {
            p {
                "Sums over the CPUs of the rings, coloured by the variant that ran. Time is counted \
                 when a state is left, so a share may pass 100 %. It is what the governor asked for, \
                 not what the hardware did."
            }
        }
        @for state in &states {
            h3 { (state.name) }
            div.small {
                @for (what, rate) in &state.charts {
                    @match rate {
                        Rate::Chart(svg) => (figure(svg, &format!("{}: {what}", state.name))),
                        Rate::Zero => p { (what) ": none throughout the experiment." },
                        Rate::NotCounted => p { (what) ": not counted by this kernel." },
                    }
                }
            }
        }
    }
}

fn interrupts(results: &Results) -> Markup {
    match charts::interrupts(results) {
        Some(svg) => figure(
            &svg,
            "Interrupts of numbered IRQs a second on each CPU during the runs of each variant.",
        ),
        None => html! { p { "No interrupt counts." } },
    }
}

fn method(results: &Results) -> Markup {
    let plan = &results.plan;
    html! {
        p {
            (plan.blocks) " blocks were planned. In each, every variant and a hidden duplicate of the \
             baseline run once, in an order shuffled from the seed " (plan.seed) ". Between two runs \
             the machine is put back to what it was found as. The effect is the mean over blocks of \
             ln(variant/baseline), with Student's t interval at 95 %, adjusted (Bonferroni) for the \
             number of variants. It is better or worse when the interval lies wholly beyond ±"
            (figures::plain(plan.margin_percent)) " %, within the margin when wholly inside."
        }
        table {
            @for variant in &plan.variants {
                tr {
                    th { (variant.name) }
                    td {
                        @if variant.factors.is_empty() { "the machine as it was found" }
                        @for factor in &variant.factors { code { (factor.to_string()) } " " }
                    }
                }
            }
            @for (ring, cpus) in plan.ring.rings.iter().enumerate() {
                tr {
                    th { "ring " (ring) }
                    td { "stops on CPUs " (figures::list(cpus)) }
                }
            }
            tr { th { "transport" } td { (plan.ring.transport) } }
            tr { th { "work" } td { (plan.ring.work) " units at each stop" } }
            tr { th { "each run" } td { (figures::until(plan.ring.until)) } }
        }
        p { "Repeat it with " code { (figures::command(&results.command)) } "." }
    }
}

fn figure(svg: &str, caption: &str) -> Markup {
    let svg = palette::for_page(svg).replacen(
        "<svg ",
        &format!("<svg role=\"img\" aria-label=\"{}\" ", attribute(caption)),
        1,
    );
    html! {
        figure {
            (PreEscaped(svg))
            figcaption { (caption) }
        }
    }
}

/// A text within quotes.
fn attribute(text: &str) -> String {
    html! { (text) }.into_string().replace('"', "&quot;")
}
