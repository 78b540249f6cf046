//! What a variant changes, as it is written on a command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How factors are written, one line each; shown where one is not known.
pub const FACTORS: [&str; 4] = [
    "irqbalance:off",
    "irqbalance:on[:powerthresh=N][:interval=SECONDS from 1 on]",
    "governor:NAME",
    "idle-off:STATE",
];

/// One setting of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Factor {
    /// No irqbalance: a running daemon is paused and its moves are undone.
    IrqbalanceOff,
    /// An irqbalance of our own; a running daemon is paused.
    IrqbalanceOn {
        /// `--powerthresh=N`: spare CPUs sleep when so many are idle.
        powerthresh: Option<u32>,
        /// `--interval=S`: seconds from one look to the next; its own default is 10.
        interval: Option<u32>,
    },
    /// The idle governor, such as `menu` or `teo`.
    Governor(String),
    /// An idle state switched off on every CPU, by its name.
    IdleOff(String),
}

impl Factor {
    /// Two factors of one kind can't hold at once, other than two states switched off.
    pub(crate) fn conflicts_with(&self, other: &Factor) -> bool {
        use Factor::{Governor, IdleOff, IrqbalanceOff, IrqbalanceOn};
        match (self, other) {
            (IrqbalanceOff | IrqbalanceOn { .. }, IrqbalanceOff | IrqbalanceOn { .. })
            | (Governor(_), Governor(_)) => true,
            (IdleOff(a), IdleOff(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Factor::IrqbalanceOff => f.write_str("irqbalance:off"),
            Factor::IrqbalanceOn {
                powerthresh,
                interval,
            } => {
                f.write_str("irqbalance:on")?;
                if let Some(n) = powerthresh {
                    write!(f, ":powerthresh={n}")?;
                }
                if let Some(s) = interval {
                    write!(f, ":interval={s}")?;
                }
                Ok(())
            }
            Factor::Governor(name) => write!(f, "governor:{name}"),
            Factor::IdleOff(state) => write!(f, "idle-off:{state}"),
        }
    }
}

impl From<Factor> for String {
    fn from(factor: Factor) -> String {
        factor.to_string()
    }
}

impl TryFrom<String> for Factor {
    type Error = ParseFactorError;
    fn try_from(text: String) -> Result<Self, ParseFactorError> {
        text.parse()
    }
}

impl FromStr for Factor {
    type Err = ParseFactorError;

    fn from_str(text: &str) -> Result<Self, ParseFactorError> {
        let fail = || ParseFactorError {
            text: text.to_owned(),
        };
        let (kind, value) = text.split_once(':').ok_or_else(fail)?;
        match (kind, value) {
            (_, "") => Err(fail()),
            ("irqbalance", "off") => Ok(Factor::IrqbalanceOff),
            ("irqbalance", value) => parse_irqbalance_on(value).ok_or_else(fail),
            ("governor", name) => Ok(Factor::Governor(name.to_owned())),
            ("idle-off", state) => Ok(Factor::IdleOff(state.to_owned())),
            _ => Err(fail()),
        }
    }
}

fn parse_irqbalance_on(value: &str) -> Option<Factor> {
    let mut parts = value.split(':');
    if parts.next() != Some("on") {
        return None;
    }
    let (mut powerthresh, mut interval) = (None, None);
    for part in parts {
        let (name, number) = part.split_once('=')?;
        let place = match name {
            "powerthresh" => &mut powerthresh,
            "interval" => &mut interval,
            _ => return None,
        };
        let number: u32 = number.parse().ok()?;
        if place.replace(number).is_some() {
            return None;
        }
    }
    // irqbalance would spin without a pause.
    (interval != Some(0)).then_some(Factor::IrqbalanceOn {
        powerthresh,
        interval,
    })
}

/// A text that is no factor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such factor, or a value out of its range: {text:?}: there are {}", FACTORS.join(", "))]
pub struct ParseFactorError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_read_as_they_are_printed() {
        for text in [
            "irqbalance:off",
            "irqbalance:on",
            "irqbalance:on:powerthresh=2",
            "irqbalance:on:powerthresh=0:interval=1",
            "governor:teo",
            "idle-off:C6",
            "idle-off:haltpoll idle",
        ] {
            assert_eq!(text.parse::<Factor>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_factor_is_named_with_what_there_is() {
        for text in [
            "",
            "irqbalance",
            "irqbalance:",
            "irqbalance:maybe",
            "irqbalance:on:powerthresh",
            "irqbalance:on:powerthresh=x",
            "irqbalance:on:powerthresh=1:powerthresh=2",
            "irqbalance:on:interval=0",
            "irqbalance:on:deepestcache=1",
            "governor:",
            "turbo:off",
        ] {
            assert_eq!(
                text.parse::<Factor>().unwrap_err().to_string(),
                format!(
                    "no such factor, or a value out of its range: {text:?}: there are irqbalance:off, \
                     irqbalance:on[:powerthresh=N][:interval=SECONDS from 1 on], governor:NAME, \
                     idle-off:STATE"
                )
            );
        }
    }
}
