//! A pipe for each hop (`fs/pipe.c`); the token is one byte.
//!
//! Each end exists once and belongs to its stop, so that a stop that goes leaves the next
//! one an end of file and the previous one EPIPE.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{pipe2, read, write};

use super::{HopError, Link, Token, Transport};

/// Passes the token through pipes.
pub(crate) struct Pipe;

pub(crate) struct PipeLink {
    input: OwnedFd,
    output: OwnedFd,
}

impl Transport for Pipe {
    type Link = PipeLink;
    type Out = OwnedFd;
    type In = OwnedFd;

    fn hop() -> io::Result<(OwnedFd, OwnedFd)> {
        let (input, output) = pipe2(OFlag::O_CLOEXEC)?;
        Ok((output, input))
    }

    fn link(input: OwnedFd, output: OwnedFd) -> PipeLink {
        PipeLink { input, output }
    }
}

impl Link for PipeLink {
    #[inline]
    fn receive(&mut self) -> Result<Token, HopError> {
        let mut byte = [0];
        loop {
            match read(&self.input, &mut byte) {
                Ok(1) if byte[0] == Token::Go as u8 => return Ok(Token::Go),
                Ok(1) => return Ok(Token::Stop),
                Ok(_) => return Err(HopError::HungUp),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(failed("read", errno)),
            }
        }
    }

    #[inline]
    fn send(&mut self, token: Token) -> Result<(), HopError> {
        loop {
            match write(&self.output, &[token as u8]) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(Errno::EPIPE) => return Err(HopError::HungUp),
                Err(errno) => return Err(failed("write", errno)),
            }
        }
    }
}

#[cold]
fn failed(call: &'static str, errno: Errno) -> HopError {
    HopError::Os {
        call,
        source: errno.into(),
    }
}
