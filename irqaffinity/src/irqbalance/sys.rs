//! The one system call that Rust can't check: what a child does before it becomes
//! another program.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getpid, getppid};

/// Gives the child a process group of its own and no blocked signals, and has the kernel
/// end it (`SIGTERM`) when the thread that starts it ends.
pub(super) fn prepare(command: &mut Command) {
    let parent = getpid();
    let before_exec = move || -> io::Result<()> {
        // Otherwise it inherits what the starting thread blocks.
        SigSet::empty().thread_set_mask()?;
        set_pdeathsig(Signal::SIGTERM)?;
        // The parent may have ended before the kernel was asked.
        if getppid() != parent {
            return Err(Errno::ESRCH.into());
        }
        Ok(())
    };
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec and makes system calls only, all of
    // them async-signal-safe; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(before_exec) };
}
