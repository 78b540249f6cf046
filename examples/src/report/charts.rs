//! The charts, each an SVG of its own. Their colours for text and grid are stand-ins
//! (see `palette`).

use std::ops::Range;

use experiment::{CpuRate, Results, Run, Sample};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::{self, GRID, INK};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawResult = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Draws into an SVG of the given size; a failure to draw becomes its text.
fn draw(size: (u32, u32), paint: impl FnOnce(&Area<'_>) -> DrawResult) -> String {
    let mut svg = String::new();
    let painted = {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        paint(&area).and_then(|()| area.present())
    };
    match painted {
        Ok(()) => svg,
        Err(error) => format!("<p>This chart could not be drawn: {error}</p>"),
    }
}

/// µs per loop of every run against the time at which it ran; the hidden duplicate of the
/// baseline is hollow.
pub(super) fn runs(results: &Results) -> String {
    let points: Vec<(&Run, f64)> = results
        .runs
        .iter()
        .flat_map(|run| {
            let rings = run.rings.iter().filter_map(|ring| ring.us_per_loop);
            rings.map(move |us| (run, us))
        })
        .collect();
    let Some(y) = range(points.iter().map(|(_, us)| *us), false) else {
        return "<p>No run has a result.</p>".into();
    };
    draw((760, 320), |area| {
        let x = 0.0..results.samples.last().map_or(1.0, |s| s.end_s).max(1.0);
        let mut chart = axes(area, x, y, "seconds", "µs per loop")?;
        for (run, us) in &points {
            let colour = palette::variant(number_of(results, &run.variant));
            let middle = (run.start_s + run.end_s) / 2.0;
            let style: ShapeStyle = if run.duplicate {
                colour.stroke_width(2)
            } else {
                colour.filled()
            };
            chart.draw_series([Circle::new((middle, *us), 4, style)])?;
        }
        Ok(())
    })
}

/// Each variant's effect on µs per loop with its interval, and the noise check's.
pub(super) fn effects(results: &Results) -> String {
    let noise = &results.noise_check;
    let baseline = results.plan.variants[0].name.as_str();
    let mut rows = vec![(
        format!("{baseline} again (noise)"),
        0,
        noise.effect_percent,
        noise.ci95_percent,
    )];
    for comparison in results.comparisons.iter().filter(|c| c.primary) {
        rows.push((
            comparison.variant.clone(),
            number_of(results, &comparison.variant),
            comparison.effect.effect_percent,
            comparison.effect.ci95_percent,
        ));
    }
    let margin = results.plan.margin_percent;
    let ends = rows
        .iter()
        .filter_map(|(_, _, _, ci)| *ci)
        .flat_map(|(low, high)| [low, high]);
    let widest = ends.fold(margin.max(0.1), |widest, end| widest.max(end.abs())) * 1.15;
    let count = rows.len() as f64;
    draw((760, 90 + 44 * rows.len() as u32), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(44)
            .y_label_area_size(190)
            .build_cartesian_2d(-widest..widest, -0.5..count - 0.5)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .y_labels(0)
            .x_labels(9)
            .x_label_formatter(&|x| number(*x))
            .x_desc("change of µs per loop against the baseline, percent")
            .axis_style(INK)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .label_style(("sans-serif", 13).into_font().color(&INK))
            .draw()?;
        chart.draw_series([Rectangle::new(
            [(-margin, -0.5), (margin, count - 0.5)],
            INK.mix(0.08).filled(),
        )])?;
        chart.draw_series(LineSeries::new([(0.0, -0.5), (0.0, count - 0.5)], INK))?;
        for (row, (name, number, effect, ci)) in rows.iter().enumerate() {
            // The first row on top.
            let y = count - 1.0 - row as f64;
            let colour = palette::variant(*number);
            let (_, pixel_y) = chart.backend_coord(&(0.0, y));
            let anchor = Pos::new(HPos::Right, VPos::Center);
            let style = ("sans-serif", 14).into_font().color(&INK).pos(anchor);
            area.draw(&Text::new(shorten(name, 26), (186, pixel_y), style))?;
            if let Some((low, high)) = ci {
                let line = [(*low, y), (*high, y)];
                chart.draw_series(LineSeries::new(line, colour.stroke_width(3)))?;
            }
            if let Some(effect) = effect {
                let style = if row == 0 {
                    colour.stroke_width(2)
                } else {
                    colour.filled()
                };
                chart.draw_series([Circle::new((*effect, y), 6, style)])?;
            }
        }
        Ok(())
    })
}

/// Watts over the whole time line, with a band for each run.
pub(super) fn power(results: &Results) -> Option<String> {
    let y = range(results.samples.iter().filter_map(|s| s.watts), true)?;
    Some(draw((760, 260), |area| {
        let mut chart = axes(area, time_line(results), y.clone(), "seconds", "watts")?;
        for run in &results.runs {
            let colour = palette::variant(number_of(results, &run.variant));
            let corners = [(run.start_s, y.start), (run.end_s, y.end)];
            chart.draw_series([Rectangle::new(corners, colour.mix(0.15).filled())])?;
        }
        for line in steps(&results.samples, |sample| sample.watts) {
            chart.draw_series(LineSeries::new(line, INK.stroke_width(2)))?;
        }
        Ok(())
    }))
}

/// A rate over the time line.
pub(super) enum Rate {
    /// As a chart.
    Chart(String),
    /// It was 0 throughout.
    Zero,
    /// It is never known.
    NotCounted,
}

/// One rate over the time line, coloured by the variant that ran.
pub(super) fn rate_by_variant(
    results: &Results,
    label: &str,
    rate: impl Fn(&Sample) -> Option<f64>,
) -> Rate {
    let Some(y) = range(results.samples.iter().filter_map(&rate), true) else {
        return Rate::NotCounted;
    };
    if results
        .samples
        .iter()
        .filter_map(&rate)
        .all(|rate| rate == 0.0)
    {
        return Rate::Zero;
    }
    Rate::Chart(draw((440, 200), |area| {
        let mut chart = axes(area, time_line(results), y, "seconds", label)?;
        for run in &results.runs {
            let Some(during) = results.samples.get(run.first_sample..run.end_sample) else {
                continue;
            };
            let colour = palette::variant(number_of(results, &run.variant));
            for line in steps(during, &rate) {
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
            }
        }
        Ok(())
    }))
}

/// Interrupts a second by CPU, a bar for each variant.
pub(super) fn interrupts(results: &Results) -> Option<String> {
    let rates: Vec<&[CpuRate]> = results
        .variants
        .iter()
        .map(|variant| variant.interrupts.as_slice())
        .collect();
    let mut cpus: Vec<u32> = rates.iter().copied().flatten().map(|r| r.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let y = range(rates.iter().copied().flatten().map(|r| r.per_s), true)?;
    let count = cpus.len() as f64;
    Some(draw((760, 260), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(44)
            .y_label_area_size(80)
            .build_cartesian_2d(-0.5..count - 0.5, y)?;
        let name = |x: &f64| {
            let nearest = x.round();
            match cpus.get(nearest as usize) {
                Some(cpu) if (x - nearest).abs() < 1e-6 => cpu.to_string(),
                _ => String::new(),
            }
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(cpus.len().min(24) * 2 + 1)
            .y_labels(5)
            .x_label_formatter(&name)
            .y_label_formatter(&|y| number(*y))
            .x_desc("CPU")
            .y_desc("interrupts a second")
            .axis_style(INK)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .label_style(("sans-serif", 13).into_font().color(&INK))
            .draw()?;
        let width = 0.8 / rates.len() as f64;
        for (variant, rates) in rates.iter().enumerate() {
            for rate in *rates {
                let Ok(place) = cpus.binary_search(&rate.cpu) else {
                    continue;
                };
                let left = place as f64 - 0.4 + width * variant as f64;
                let corners = [(left, 0.0), (left + width, rate.per_s)];
                let colour = palette::variant(variant).filled();
                chart.draw_series([Rectangle::new(corners, colour)])?;
            }
        }
        Ok(())
    }))
}

type Chart<'a> = ChartContext<
    'a,
    SVGBackend<'a>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn axes<'a>(
    area: &Area<'a>,
    x: Range<f64>,
    y: Range<f64>,
    x_label: &str,
    y_label: &str,
) -> Result<Chart<'a>, DrawingAreaErrorKind<std::io::Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(72)
        .build_cartesian_2d(x, y)?;
    let (width, height) = area.dim_in_pixel();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(width as usize / 90)
        .y_labels(height as usize / 45)
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&|y| number(*y))
        .x_desc(x_label)
        .y_desc(y_label)
        .axis_style(INK)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .label_style(("sans-serif", 13).into_font().color(&INK))
        .draw()?;
    Ok(chart)
}

fn time_line(results: &Results) -> Range<f64> {
    0.0..results.samples.last().map_or(1.0, |s| s.end_s).max(1e-3)
}

fn number_of(results: &Results, variant: &str) -> usize {
    let mut variants = results.plan.variants.iter();
    variants.position(|v| v.name == variant).unwrap_or(0)
}

/// Lines that hold each value for the length of its sample, broken where one is missing.
fn steps(samples: &[Sample], value: impl Fn(&Sample) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
    samples
        .split(|sample| value(sample).is_none())
        .filter(|stretch| !stretch.is_empty())
        .map(|stretch| {
            stretch
                .iter()
                .filter_map(|sample| Some((sample, value(sample)?)))
                .flat_map(|(sample, y)| [(sample.start_s, y), (sample.end_s, y)])
                .collect()
        })
        .collect()
}

/// What the axis spans: the values with some room, from 0 on if asked for.
fn range(values: impl Iterator<Item = f64>, from_zero: bool) -> Option<Range<f64>> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        low = low.min(value);
        high = high.max(value);
    }
    if low > high {
        return None;
    }
    if from_zero {
        low = low.min(0.0);
    }
    // Equal values still need an axis with a length.
    let room = ((high - low) * 0.08).max(high.abs() * 1e-3).max(1e-6);
    let bottom = if from_zero { low } else { low - room };
    Some(bottom..high + room)
}

/// A figure for an axis: short, with as many digits as its size needs.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e6 {
        format!("{:.1}M", value / 1e6)
    } else if size >= 1e4 {
        format!("{:.0}k", value / 1e3)
    } else if size >= 100.0 || value == 0.0 {
        format!("{value:.0}")
    } else {
        let digits = if size >= 1.0 { 1 } else { 3 };
        let text = format!("{value:.digits$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_a_length_also_for_equal_values() {
        let range_of = |values: &[f64]| range(values.iter().copied(), false);
        assert_eq!(range_of(&[]), None);
        assert_eq!(range_of(&[f64::NAN]), None);
        let equal = range_of(&[5.0, 5.0]).unwrap();
        assert!(equal.start < 5.0 && 5.0 < equal.end);
        let zero = range([0.0].into_iter(), true).unwrap();
        assert!(zero.start == 0.0 && zero.end > 0.0);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(20.0), "20");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(1234.0), "1234");
        assert_eq!(number(65_000.0), "65k");
        assert_eq!(number(2_500_000.0), "2.5M");
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shorten("short", 26), "short");
        assert_eq!(shorten("0123456789", 5), "0123…");
    }
}
