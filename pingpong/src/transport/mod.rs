//! How the token gets from one stop to the next.
//!
//! A transport makes the [`Link`]s of a ring, one for each stop. A link that is dropped
//! before it passed [`Token::Stop`] on hangs up: whoever waits for it gets
//! [`HopError::HungUp`] and hangs up in its turn, so that a stop that dies takes its whole
//! ring along and nobody waits for ever.

mod futex;
mod pipe;
mod spin;
mod word;

use std::fmt;
use std::io;
use std::str::FromStr;

pub(crate) use futex::Futex;
pub(crate) use pipe::Pipe;
pub(crate) use spin::Spin;

use crate::Error;

/// What passes the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum TransportKind {
    /// A pipe for each hop: one `read` and one `write` of a byte at each stop
    /// (`fs/pipe.c`).
    #[default]
    Pipe,
    /// A private futex for each hop: a FUTEX_WAKE and at most a FUTEX_WAIT at each stop
    /// (`kernel/futex/waitwake.c`); across CPUs a late wakeup can cost one more wait.
    Futex,
    /// A word in memory that the next stop watches without ever sleeping (with `pause` or
    /// its like); needs a CPU of its own for every stop.
    Spin,
}

impl TransportKind {
    /// Every transport there is.
    pub const ALL: &'static [TransportKind] = &[Self::Pipe, Self::Futex, Self::Spin];

    /// Its name in lower case, as [`FromStr`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Futex => "futex",
            Self::Spin => "spin",
        }
    }

    /// All names, for people to choose from.
    pub(crate) fn names() -> String {
        Self::ALL
            .iter()
            .map(|kind| kind.name())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TransportKind {
    type Err = Error;

    /// Takes a [`name`](TransportKind::name); otherwise [`Error::UnknownTransport`], whose
    /// message lists them.
    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|kind| kind.name() == name);
        found.copied().ok_or_else(|| Error::UnknownTransport {
            name: name.to_owned(),
        })
    }
}

/// What is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// Do your work and pass it on.
    Go,
    /// The run is over: pass it on and leave.
    Stop,
}

/// Why a hop failed.
#[derive(Debug)]
pub(crate) enum HopError {
    /// A neighbour left without having passed [`Token::Stop`] on.
    HungUp,
    /// The kernel's answer to the named call.
    Os {
        call: &'static str,
        source: io::Error,
    },
}

/// One stop's ends of its two hops.
pub(crate) trait Link: Send {
    /// Waits for the token from the previous stop.
    fn receive(&mut self) -> Result<Token, HopError>;

    /// Passes the token to the next stop.
    fn send(&mut self, token: Token) -> Result<(), HopError>;
}

/// A way of making links.
pub(crate) trait Transport {
    type Link: Link;

    /// The hop from one stop to the next: the sender's end and the receiver's.
    type Out;
    type In;

    fn hop() -> io::Result<(Self::Out, Self::In)>;

    fn link(input: Self::In, output: Self::Out) -> Self::Link;

    /// The links of a ring, in its order: the hop made last leads from the last stop back to
    /// the first.
    fn ring(stops: usize) -> io::Result<Vec<Self::Link>> {
        let mut hops = Vec::new();
        for _ in 0..stops {
            hops.push(Self::hop()?);
        }
        let (outs, mut ins): (Vec<_>, Vec<_>) = hops.into_iter().unzip();
        // Stop n sends on hop n and receives from hop n - 1.
        ins.rotate_right(1);
        let pairs = ins.into_iter().zip(outs);
        Ok(pairs
            .map(|(input, output)| Self::link(input, output))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for kind in TransportKind::ALL {
            assert_eq!(kind.to_string().parse::<TransportKind>().unwrap(), *kind);
        }
        assert_eq!(
            "spin".parse::<TransportKind>().unwrap(),
            TransportKind::Spin
        );
        assert_eq!(format!("{:>6}", TransportKind::Pipe), "  pipe");
    }

    #[test]
    fn an_unknown_name_is_told_what_there_is() {
        for name in ["Pipe", "", "carrier pigeon"] {
            let message = name.parse::<TransportKind>().unwrap_err().to_string();
            let expected = format!("unknown transport {name:?}: choose one of pipe, futex, spin");
            assert_eq!(message, expected);
        }
    }

    /// Three stops, moved by one thread.
    fn passes_in_order<T: Transport>() {
        let mut links = T::ring(3).unwrap();
        for token in [Token::Go, Token::Go, Token::Stop] {
            for stop in 0..3 {
                links[stop].send(token).unwrap();
                assert_eq!(links[(stop + 1) % 3].receive().unwrap(), token);
            }
        }
    }

    /// The token gets lost with the stop that holds it.
    fn hangs_up_all_round<T: Transport>() {
        let mut links = T::ring(4).unwrap();
        let mut third = links.remove(2);
        links[0].send(Token::Go).unwrap();
        links[1].receive().unwrap();
        links[1].send(Token::Go).unwrap();
        third.receive().unwrap();
        drop(third);
        let mut fourth = links.remove(2);
        assert!(matches!(fourth.receive(), Err(HopError::HungUp)));
        drop(fourth);
        assert!(matches!(links[0].receive(), Err(HopError::HungUp)));
    }

    /// Once the token said stop, leaving is no hanging up: the token is still there.
    fn leaves_after_stop<T: Transport>() {
        let mut links = T::ring(2).unwrap();
        let mut second = links.remove(1);
        links[0].send(Token::Stop).unwrap();
        second.receive().unwrap();
        second.send(Token::Stop).unwrap();
        drop(second);
        assert_eq!(links[0].receive().unwrap(), Token::Stop);
    }

    #[test]
    fn pipe() {
        passes_in_order::<Pipe>();
        hangs_up_all_round::<Pipe>();
        leaves_after_stop::<Pipe>();
    }

    #[test]
    fn futex() {
        passes_in_order::<Futex>();
        hangs_up_all_round::<Futex>();
        leaves_after_stop::<Futex>();
    }

    #[test]
    fn spin() {
        passes_in_order::<Spin>();
        hangs_up_all_round::<Spin>();
        leaves_after_stop::<Spin>();
    }
}
