//! A word of memory for each hop, which the next stop watches without sleeping.

use std::hint::spin_loop;
use std::io;

use super::word::{Inbox, Outbox, word};
use super::{HopError, Link, Token, Transport};

/// Passes the token through words that the next stop watches.
pub(crate) struct Spin;

pub(crate) struct SpinLink {
    input: Inbox,
    output: Outbox,
}

impl Transport for Spin {
    type Link = SpinLink;
    type Out = Outbox;
    type In = Inbox;

    fn hop() -> io::Result<(Outbox, Inbox)> {
        Ok(word())
    }

    fn link(input: Inbox, output: Outbox) -> SpinLink {
        SpinLink { input, output }
    }
}

impl Link for SpinLink {
    #[inline]
    fn receive(&mut self) -> Result<Token, HopError> {
        loop {
            if let Some(token) = self.input.take() {
                return token;
            }
            spin_loop();
        }
    }

    #[inline]
    fn send(&mut self, token: Token) -> Result<(), HopError> {
        self.output.put(token);
        Ok(())
    }
}

impl Drop for SpinLink {
    fn drop(&mut self) {
        self.output.hang_up();
    }
}
