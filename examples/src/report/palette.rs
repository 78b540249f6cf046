//! Colours that people with any kind of colour vision tell apart (Okabe and Ito's set).

use plotters::style::RGBColor;

const VARIANTS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];

/// Stands for the text colour, which light and dark pages choose themselves.
pub(super) const INK: RGBColor = RGBColor(1, 2, 3);

/// Stands for the colour of thin lines.
pub(super) const GRID: RGBColor = RGBColor(3, 2, 1);

/// The colour of the variant of that number. After seven they repeat.
pub(super) fn variant(at: usize) -> RGBColor {
    VARIANTS[at % VARIANTS.len()]
}

/// As CSS writes it.
pub(super) fn css(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// Hands the stand-ins over to the page's style.
pub(super) fn for_page(svg: &str) -> String {
    svg.replace(&css(INK), "currentColor")
        .replace(&css(GRID), "var(--grid)")
}

/// Makes the drawing readable by itself, on white.
pub(super) fn for_file(svg: &str) -> String {
    svg.replace(&css(INK), "#222222")
        .replace(&css(GRID), "#DDDDDD")
}
