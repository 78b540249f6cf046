//! A futex for each hop (`kernel/futex/waitwake.c`): the token is a word of memory, on which
//! the next stop sleeps.

use std::io;

use super::word::{Inbox, Outbox, word};
use super::{HopError, Link, Token, Transport};
use crate::sys::{futex_wait, futex_wake};

/// Passes the token through words that the next stop sleeps on.
pub(crate) struct Futex;

pub(crate) struct FutexLink {
    input: Inbox,
    output: Outbox,
}

impl Transport for Futex {
    type Link = FutexLink;
    type Out = Outbox;
    type In = Inbox;

    fn hop() -> io::Result<(Outbox, Inbox)> {
        Ok(word())
    }

    fn link(input: Inbox, output: Outbox) -> FutexLink {
        FutexLink { input, output }
    }
}

impl Link for FutexLink {
    #[inline]
    fn receive(&mut self) -> Result<Token, HopError> {
        loop {
            if let Some(token) = self.input.take() {
                return token;
            }
            let (word, seen) = self.input.awaited();
            futex_wait(word, seen).map_err(|source| HopError::Os {
                call: "futex(FUTEX_WAIT)",
                source,
            })?;
        }
    }

    #[inline]
    fn send(&mut self, token: Token) -> Result<(), HopError> {
        self.output.put(token);
        // Always, whether or not anybody sleeps by now: every hop makes the same calls.
        futex_wake(self.output.word()).map_err(|source| HopError::Os {
            call: "futex(FUTEX_WAKE)",
            source,
        })
    }
}

impl Drop for FutexLink {
    fn drop(&mut self) {
        if self.output.hang_up() {
            // It can't fail where the calls before it worked; nobody is left to be told.
            let _ = futex_wake(self.output.word());
        }
    }
}
