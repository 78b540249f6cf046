//! Values on command lines.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A length of time in seconds, such as `15` or `0.5`.
///
/// # Errors
///
/// A message for the user.
pub fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|length| *length <= Duration::from_secs(365 * 24 * 3600))
        .ok_or_else(|| "expected seconds, such as 15 or 0.5".to_owned())
}

/// As [`seconds`], and more than none.
///
/// # Errors
///
/// A message for the user.
pub fn positive_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|length| {
        if length < Duration::from_millis(1) {
            Err("expected at least a millisecond (0.001)".to_owned())
        } else {
            Ok(length)
        }
    })
}

/// Percent, such as `1%` or `0.5`.
///
/// # Errors
///
/// A message for the user.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent),
        _ => Err("expected percent, such as 1% or 0.5%".to_owned()),
    }
}

/// A seed that is short enough to be typed, from the clock.
pub fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::from(since.map_or(0, |since| since.subsec_nanos())) % 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_percentages() {
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "x", "-1", "nan", "inf", "1e30"] {
            assert!(seconds(bad).is_err(), "{bad:?}");
        }
        assert!(positive_seconds("0").is_err());
        assert_eq!(percent("1%"), Ok(1.0));
        assert_eq!(percent("0.5"), Ok(0.5));
        for bad in ["", "%", "-1%", "nan", "1001"] {
            assert!(percent(bad).is_err(), "{bad:?}");
        }
    }
}
