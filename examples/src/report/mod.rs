//! The report: one HTML page that needs nothing else, no network either.

mod charts;
mod idle;
mod page;
mod palette;

use experiment::Results;

/// The whole page.
pub fn html(results: &Results) -> String {
    page::page(results).into_string()
}

/// The effects with their intervals as an SVG file, for a README or a slide.
pub fn effects_svg(results: &Results) -> String {
    palette::for_file(&charts::effects(results))
}
