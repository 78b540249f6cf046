//! What a stop does with the token: the loops that are measured.

use std::time::{Duration, Instant};

use crate::board::Board;
use crate::transport::{HopError, Link, Token};
use crate::work::{PIECE, work};

/// Loops before the measured ones, without work: enough to have every stop run and its
/// memory and its wakeup path in the caches.
const WARM_UP: u32 = 8;

/// One stop of a ring and what it has to do.
pub(crate) struct Stop<'a, V> {
    pub(crate) ring: usize,
    pub(crate) stop: usize,
    /// Loops to run; [`u64::MAX`] for no limit.
    pub(crate) loops: u64,
    /// Units of work at each visit.
    pub(crate) work: u64,
    pub(crate) board: &'a Board,
    /// Called with ring and stop at each visit.
    pub(crate) visit: &'a V,
}

/// What a stop did.
pub(crate) struct Done {
    pub(crate) hops: u64,
    /// What only the first stop of a ring knows.
    pub(crate) lead: Option<Lead>,
}

/// How the ring ran.
pub(crate) struct Lead {
    pub(crate) elapsed: Duration,
    pub(crate) stopped: bool,
}

impl<V: Fn(usize, usize)> Stop<'_, V> {
    /// The ring's first stop, which sends the token round, counts and takes both stamps.
    pub(crate) fn lead(&self, mut link: impl Link) -> Result<Done, HopError> {
        for _ in 0..WARM_UP {
            link.send(Token::Go)?;
            link.receive()?;
        }
        if !self.board.wait_for_start() {
            return Err(HopError::HungUp);
        }

        // Work that can be given up makes a loop that doesn't count; so there the last stamp
        // must be older, and it costs nothing beside such work.
        let long = self.work > PIECE;
        let mut loops = 0;
        let start = Instant::now();
        let mut end = start;
        let stopped = loop {
            if loops == self.loops || self.board.is_over() {
                break false;
            }
            if self.board.is_stopped() {
                break true;
            }
            self.visit();
            link.send(Token::Go)?;
            link.receive()?;
            if long {
                if self.is_ending() {
                    break !self.board.is_over();
                }
                end = Instant::now();
            }
            loops += 1;
        };
        if !long {
            end = Instant::now();
        }

        // Once more round, to tell all.
        link.send(Token::Stop)?;
        link.receive()?;
        Ok(Done {
            hops: loops,
            lead: Some(Lead {
                elapsed: end - start,
                stopped,
            }),
        })
    }

    /// Any other stop.
    pub(crate) fn follow(&self, mut link: impl Link) -> Result<Done, HopError> {
        for _ in 0..WARM_UP {
            link.receive()?;
            link.send(Token::Go)?;
        }
        let mut hops = 0;
        while link.receive()? == Token::Go {
            self.visit();
            link.send(Token::Go)?;
            hops += 1;
        }
        link.send(Token::Stop)?;
        Ok(Done { hops, lead: None })
    }

    #[inline]
    fn visit(&self) {
        (self.visit)(self.ring, self.stop);
        work(self.work, || self.is_ending());
    }

    fn is_ending(&self) -> bool {
        self.board.is_over() || self.board.is_stopped()
    }
}
