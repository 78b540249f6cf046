//! A word of memory that carries the token from one stop to the next.
//!
//! Only the sender writes it, and each token is a new value; the receiver waits until the
//! value differs from the one that it saw last. So nothing needs to be reset, no update can
//! be lost, and hanging up is one more value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{HopError, Token};

/// The low bits say what it is, the others count.
const STEP: u32 = 4;
const KIND: u32 = STEP - 1;
const STOP: u32 = Token::Stop as u32;
const HUNG_UP: u32 = 2;

/// Alone on its cache lines (128: x86 fetches them in pairs, and some Arm cores have lines of
/// that size).
#[repr(align(128))]
struct Word(AtomicU32);

/// The sender's end.
pub(crate) struct Outbox {
    word: Arc<Word>,
    sent: u32,
}

/// The receiver's end.
pub(crate) struct Inbox {
    word: Arc<Word>,
    seen: u32,
}

/// Both ends of a hop.
pub(super) fn word() -> (Outbox, Inbox) {
    let word = Arc::new(Word(AtomicU32::new(0)));
    let outbox = Outbox {
        word: word.clone(),
        sent: 0,
    };
    (outbox, Inbox { word, seen: 0 })
}

impl Outbox {
    #[inline]
    pub(super) fn put(&mut self, token: Token) {
        self.store(token as u32);
    }

    /// Tells the receiver that nothing will come any more, unless it was told to stop.
    /// Whether there was a need to.
    pub(super) fn hang_up(&mut self) -> bool {
        let needed = self.sent & KIND != STOP;
        if needed {
            self.store(HUNG_UP);
        }
        needed
    }

    /// The word, to wake its receiver by.
    #[inline]
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.word.0
    }

    #[inline]
    fn store(&mut self, kind: u32) {
        self.sent = (self.sent & !KIND).wrapping_add(STEP) | kind;
        self.word.0.store(self.sent, Ordering::Release);
    }
}

impl Inbox {
    /// The token, if there is a new one.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Result<Token, HopError>> {
        let value = self.word.0.load(Ordering::Acquire);
        if value == self.seen {
            return None;
        }
        self.seen = value;
        Some(match value & KIND {
            0 => Ok(Token::Go),
            STOP => Ok(Token::Stop),
            _ => Err(HopError::HungUp),
        })
    }

    /// The word, and the value that it holds until there is something new.
    #[inline]
    pub(super) fn awaited(&self) -> (&AtomicU32, u32) {
        (&self.word.0, self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_new_over_the_wrap_too() {
        let (mut outbox, mut inbox) = word();
        outbox.sent = 0_u32.wrapping_sub(2 * STEP);
        outbox.word().store(outbox.sent, Ordering::Relaxed);
        inbox.seen = outbox.sent;
        for _ in 0..4 {
            assert!(inbox.take().is_none());
            outbox.put(Token::Go);
            assert!(matches!(inbox.take(), Some(Ok(Token::Go))));
        }
        outbox.put(Token::Stop);
        assert!(matches!(inbox.take(), Some(Ok(Token::Stop))));
    }

    #[test]
    fn hanging_up_does_not_hide_a_stop() {
        let (mut outbox, mut inbox) = word();
        assert!(outbox.hang_up());
        assert!(matches!(inbox.take(), Some(Err(HopError::HungUp))));
        outbox.put(Token::Stop);
        assert!(!outbox.hang_up());
        assert!(matches!(inbox.take(), Some(Ok(Token::Stop))));
    }

    #[test]
    fn words_share_no_cache_line() {
        assert_eq!(align_of::<Word>(), 128);
        assert_eq!(size_of::<Word>(), 128);
    }
}
