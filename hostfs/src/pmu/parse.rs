//! Parsers for what a PMU's files hold (`Documentation/ABI/testing/sysfs-bus-event_source-devices-*`).

/// The numbers that describe an event to `perf_event_open(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// `config` of `struct perf_event_attr`.
    pub config: u64,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
}

/// Where the value of a term goes: a field and the bits of it, lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    field: Field,
    bits: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Config,
    Config1,
    Config2,
}

/// `config:0-7,32`: the value's bits go to these bits of the field, in this order.
pub(crate) fn parse_format(text: &str) -> Option<Format> {
    let (field, ranges) = text.trim().split_once(':')?;
    let field = match field {
        "config" => Field::Config,
        "config1" => Field::Config1,
        "config2" => Field::Config2,
        _ => return None,
    };
    let mut bits = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > 63 || bits.len() + (last - first) as usize >= 64 {
            return None;
        }
        bits.extend(first..=last);
    }
    Some(Format { field, bits })
}

/// `event=0x02,umask=0x1,any`: terms of which `format` knows the place; a term without a
/// value is 1. `None` for a term that has no place or whose value does not fit.
pub(crate) fn parse_event(text: &str, format: impl Fn(&str) -> Option<Format>) -> Option<Config> {
    let mut config = Config::default();
    for term in text.trim().split(',') {
        let (name, value) = match term.split_once('=') {
            Some((name, value)) => (name, number(value)?),
            None => (term, 1),
        };
        let format = format(name)?;
        let used = u32::try_from(format.bits.len()).ok()?;
        if used < 64 && value >> used != 0 {
            return None;
        }
        let field = match format.field {
            Field::Config => &mut config.config,
            Field::Config1 => &mut config.config1,
            Field::Config2 => &mut config.config2,
        };
        for (at, bit) in format.bits.iter().enumerate() {
            *field |= (value >> at & 1) << bit;
        }
    }
    Some(config)
}

/// A factor as a decimal text, above 0: `2.3283064365386962890625e-10`.
pub(crate) fn parse_scale(text: &str) -> Option<f64> {
    let scale: f64 = text.trim().parse().ok()?;
    (scale.is_finite() && scale > 0.0).then_some(scale)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(name: &str) -> Option<Format> {
        match name {
            "event" => parse_format("config:0-7\n"),
            "umask" => parse_format("config:8-15"),
            "edge" => parse_format("config:18"),
            "split" => parse_format("config1:0-1,60-61"),
            "whole" => parse_format("config2:0-63"),
            _ => None,
        }
    }

    #[test]
    fn terms_go_where_their_format_says() {
        let event = |text| parse_event(text, known);
        let config = |config, config1, config2| {
            Some(Config {
                config,
                config1,
                config2,
            })
        };
        assert_eq!(event("event=0x02\n"), config(2, 0, 0));
        assert_eq!(event("event=0x3c,umask=1,edge"), config(0x4_013c, 0, 0));
        // 0b1101: the low two bits stay, the high two go to 60 and 61.
        assert_eq!(event("split=13"), config(0, 1 | 3 << 60, 0));
        assert_eq!(event("whole=0xffffffffffffffff"), config(0, 0, u64::MAX));
        for text in [
            "",
            "event",
            "event=0x100",
            "event=",
            "event=x",
            "event=-1",
            "other=1",
            "event=+1",
            "event=0x+1",
        ] {
            let expected = (text == "event").then_some(Config {
                config: 1,
                ..Config::default()
            });
            assert_eq!(event(text), expected, "{text:?}");
        }
    }

    #[test]
    fn formats_that_are_none() {
        for text in [
            "",
            "config",
            "config:",
            "config:64",
            "config:7-0",
            "config3:0-7",
            "config:0-63,5",
            "config:a",
        ] {
            assert_eq!(parse_format(text), None, "{text:?}");
        }
    }

    #[test]
    fn scales_are_texts() {
        let scale = parse_scale("2.3283064365386962890625e-10\n").unwrap();
        assert_eq!(scale, 2f64.powi(-32));
        for text in ["", "0", "-1", "nan", "inf", "1e-10 J"] {
            assert_eq!(parse_scale(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(event in "[a-z0-9=,x-]{0,30}", format in "(config[12]?)?[0-9:,-]{0,12}") {
            let _ = parse_event(&event, |_| parse_format(&format));
        }
    }
}
