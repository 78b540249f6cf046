//! Figures as people read them.

use experiment::{Metric, Until};

/// `+5.6 %`, or `–` where there is none.
pub fn percent(value: Option<f64>) -> String {
    value.map_or("–".into(), |v| format!("{} %", signed(v)))
}

/// `+4.1 to +7.1 %`.
pub fn interval(ci: Option<(f64, f64)>) -> String {
    ci.map_or("–".into(), |(low, high)| {
        format!("{} to {} %", signed(low), signed(high))
    })
}

/// `1.3 %`, without a sign.
pub fn size(value: Option<f64>) -> String {
    value.map_or("–".into(), |v| format!("{v:.1} %"))
}

/// A probability.
pub fn p(value: Option<f64>) -> String {
    match value {
        None => "–".into(),
        Some(p) if p < 0.001 => "<0.001".into(),
        Some(p) => format!("{p:.3}"),
    }
}

/// A number without zeros that say nothing: `1`, `0.5`.
pub fn plain(value: f64) -> String {
    format!("{value}")
}

/// Three significant digits and more, never an exponent: `2.95`, `152`, `0.0312`.
pub fn significant(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "–".into();
    };
    let digits = match value.abs() {
        v if v >= 100.0 => 1,
        v if v >= 1.0 => 3,
        v if v >= 0.01 => 4,
        _ => 6,
    };
    format!("{value:.digits$}")
}

/// What a metric is called.
pub fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::UsPerLoop => "µs per loop",
        Metric::EnergyJ => "joules of a run",
        Metric::Watts => "watts",
        _ => "other",
    }
}

/// When a run ends.
pub fn until(until: Until) -> String {
    match until {
        Until::Loops(loops) => format!("{loops} loops of each ring"),
        Until::Seconds(seconds) => format!("{seconds} s"),
        _ => "other".into(),
    }
}

/// `0, 1, 4`.
pub fn list(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(", ")
}

/// A command as a shell takes it.
pub fn command(words: &[String]) -> String {
    let quote = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:,./%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn signed(value: f64) -> String {
    let text = format!("{value:+.1}");
    // A sign on a zero says nothing.
    if text == "-0.0" || text == "+0.0" {
        "0.0".into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(percent(Some(5.62)), "+5.6 %");
        assert_eq!(percent(Some(-0.01)), "0.0 %");
        assert_eq!(percent(None), "–");
        assert_eq!(interval(Some((-1.24, 7.06))), "-1.2 to +7.1 %");
        assert_eq!(p(Some(0.0002)), "<0.001");
        assert_eq!(p(Some(0.03125)), "0.031");
        assert_eq!(significant(Some(152.37)), "152.4");
        assert_eq!(significant(Some(2.9512)), "2.951");
        assert_eq!(significant(Some(0.03124)), "0.0312");
        assert_eq!(plain(1.0), "1");
        assert_eq!(plain(0.5), "0.5");
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words = ["ab", "--variant", "deep=idle-off:haltpoll idle", "it's"];
        let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
        assert_eq!(
            command(&words),
            r"ab --variant 'deep=idle-off:haltpoll idle' 'it'\''s'"
        );
    }
}
