//! The kernel's doors to the counters.

use std::fmt;

/// How the kernel offers a counter. The registers behind them are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Backend {
    /// The perf PMUs `power` and `power_core` (`arch/x86/events/rapl.c`): the kernel adds
    /// up in 64 bits.
    Perf,
    /// The zones of powercap (`drivers/powercap/intel_rapl_common.c`).
    Powercap,
    /// The registers themselves, through `/dev/cpu/N/msr`.
    Msr,
}

impl Backend {
    /// All of them, the best first.
    pub const ALL: [Backend; 3] = [Backend::Perf, Backend::Powercap, Backend::Msr];
}

/// `perf`, `powercap` or `msr`.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::Perf => "perf",
            Backend::Powercap => "powercap",
            Backend::Msr => "msr",
        })
    }
}

impl std::str::FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Backend::ALL
            .into_iter()
            .find(|backend| backend.to_string() == text)
            .ok_or_else(|| format!("{text:?} is no backend: there are perf, powercap and msr"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for backend in Backend::ALL {
            assert_eq!(backend.to_string().parse(), Ok(backend));
        }
        assert_eq!(
            "rapl".parse::<Backend>(),
            Err("\"rapl\" is no backend: there are perf, powercap and msr".into())
        );
    }
}
