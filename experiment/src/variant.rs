//! A variant: a name and the factors that make it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::factor::{Factor, ParseFactorError};

/// One of the things compared: the machine as it is found, but for its factors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Variant {
    /// What the user calls it.
    pub name: String,
    /// What it changes. None: the machine as it is found.
    pub factors: Vec<Factor>,
}

impl Variant {
    /// The machine as it is found, under a name.
    pub fn as_found(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            factors: Vec::new(),
        }
    }

    /// Refuses two variants of one name, and fewer than one.
    ///
    /// # Errors
    ///
    /// [`ParseVariantError::Duplicate`] or [`ParseVariantError::NoName`].
    pub fn check_names(variants: &[Variant]) -> Result<(), ParseVariantError> {
        for (at, variant) in variants.iter().enumerate() {
            if variants[..at]
                .iter()
                .any(|other| other.name == variant.name)
            {
                return Err(ParseVariantError::Duplicate(variant.name.clone()));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (at, factor) in self.factors.iter().enumerate() {
            write!(f, "{}{factor}", if at == 0 { '=' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Variant {
    type Err = ParseVariantError;

    fn from_str(text: &str) -> Result<Self, ParseVariantError> {
        let (name, factors) = match text.split_once('=') {
            Some((name, factors)) => (name, Some(factors)),
            None => (text, None),
        };
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(ParseVariantError::NoName(text.to_owned()));
        }
        let mut variant = Variant::as_found(name);
        for factor in factors.into_iter().flat_map(|list| list.split(',')) {
            let factor: Factor = factor.parse()?;
            if let Some(other) = variant.factors.iter().find(|f| f.conflicts_with(&factor)) {
                return Err(ParseVariantError::Conflict {
                    variant: variant.name,
                    first: other.clone(),
                    second: factor,
                });
            }
            variant.factors.push(factor);
        }
        Ok(variant)
    }
}

/// Why a text is no variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseVariantError {
    /// The name is empty or holds control characters.
    #[error("variant {0:?} has no name: write NAME or NAME=FACTOR[,FACTOR...]")]
    NoName(String),
    /// A factor is not known.
    #[error(transparent)]
    Factor(#[from] ParseFactorError),
    /// Two factors can't hold at once.
    #[error("variant {variant:?}: {first} and {second} can't hold at once")]
    Conflict {
        /// The variant's name.
        variant: String,
        /// The factor that came first.
        first: Factor,
        /// The one that conflicts with it.
        second: Factor,
    },
    /// Two variants have one name.
    #[error("there are two variants called {0:?}")]
    Duplicate(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        text.parse::<Variant>().unwrap_err().to_string()
    }

    #[test]
    fn a_name_alone_is_the_machine_as_found() {
        let variant: Variant = "plain".parse().unwrap();
        assert_eq!(variant, Variant::as_found("plain"));
    }

    #[test]
    fn factors_combine_and_options_may_hold_an_equals_sign() {
        let text = "on=irqbalance:on:powerthresh=2,governor:menu,idle-off:C1,idle-off:C6";
        let variant: Variant = text.parse().unwrap();
        assert_eq!((variant.name.as_str(), variant.factors.len()), ("on", 4));
        assert_eq!(variant.to_string(), text);
    }

    #[test]
    fn faults_are_named() {
        let no_name = "has no name: write NAME or NAME=FACTOR[,FACTOR...]";
        assert_eq!(fault(""), format!("variant \"\" {no_name}"));
        assert_eq!(
            fault("=governor:menu"),
            format!("variant \"=governor:menu\" {no_name}")
        );
        assert!(fault("a=").starts_with("no such factor, or a value out of its range: \"\""));
        assert!(
            fault("a=governor:menu,b")
                .starts_with("no such factor, or a value out of its range: \"b\"")
        );
        assert_eq!(
            fault("a=irqbalance:on,irqbalance:off"),
            "variant \"a\": irqbalance:on and irqbalance:off can't hold at once"
        );
        assert_eq!(
            fault("a=idle-off:C1,idle-off:C1"),
            "variant \"a\": idle-off:C1 and idle-off:C1 can't hold at once"
        );
        let twice = [Variant::as_found("a"), Variant::as_found("a")];
        assert_eq!(
            Variant::check_names(&twice).unwrap_err().to_string(),
            "there are two variants called \"a\""
        );
    }
}
