//! irqbalance: the daemons that run, and one of our own that leaves nothing behind.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use irqaffinity::irqbalance::Irqbalance;
//! use irqaffinity::{HostFs, Restore};
//!
//! let record = Restore::new(&HostFs::live());
//! let mut child = Irqbalance::builder().powerthresh(2).interval(1).start(&record)?;
//! child.wait_until_acted(Duration::from_secs(5))?;
//! // ... measure ...
//! child.check()?;
//! println!("{}", child.stop()?);
//! # Ok::<(), irqaffinity::Error>(())
//! ```
//!
//! With a daemon running, the machine without irqbalance is this (dropping the guards,
//! the latest first, undoes it):
//!
//! ```no_run
//! use irqaffinity::irqbalance::Irqbalance;
//! use irqaffinity::{HostFs, Restore};
//!
//! let record = Restore::new(&HostFs::live());
//! let paused = Irqbalance::pause(&record)?;
//! let reset = Irqbalance::reset_to_default(&record)?;
//! // ... measure ...
//! drop(reset);
//! drop(paused);
//! # Ok::<(), irqaffinity::Error>(())
//! ```

mod builder;
mod output;
mod program;
mod run_dir;
mod sys;

use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hostfs::{Change, CpuSet, HostFs, OsError, Process, Restore};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{Pid, geteuid};

use crate::{AffinityGuard, Error, Irq, Report, Result, Saved, default_affinity, set_affinity};
pub use builder::Builder;
use output::Output;
use run_dir::RunDir;

/// The name of the program and of its process.
const NAME: &str = "irqbalance";

/// How long the child may take to end after `SIGTERM`.
const TIME_TO_END: Duration = Duration::from_secs(2);

/// How long a daemon may take to stop after `SIGSTOP`, and what it wrote to arrive.
const TIME_TO_STOP: Duration = Duration::from_secs(1);

/// How often is looked whether the child has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How often is looked whether the child has moved anything.
const LOOK_FOR_MOVES: Duration = Duration::from_millis(50);

/// An irqbalance that is our child.
///
/// [`stop`](Self::stop), or dropping it, ends and reaps it and puts back every affinity
/// that it moved. It has a process group of its own, so a terminal's Ctrl-C reaches us and
/// not it. If the **thread** that started it ends, the kernel ends it too
/// (`PR_SET_PDEATHSIG`): so it doesn't outlive a program that is killed, and
/// [`Builder::start`] must be called on a thread that lives as long as it is to run.
#[derive(Debug)]
pub struct Irqbalance {
    process: Process,
    child: Child,
    /// What it exited with, once it is reaped.
    ended: Option<ExitStatus>,
    output: Output,
    run_dir: RunDir,
    /// `None` once the affinities are put back.
    saved: Option<Saved>,
}

impl Irqbalance {
    /// Options for one of our own.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The daemons that run, paused ones and children of ours too, by process number.
    ///
    /// # Errors
    ///
    /// As [`Process::find_by_name`].
    pub fn find(fs: &HostFs) -> Result<Vec<Process>> {
        Ok(Process::find_by_name(fs, NAME)?)
    }

    /// Whether this process may move interrupts.
    ///
    /// # Errors
    ///
    /// [`Error::NotRoot`].
    pub fn check_privilege() -> Result<()> {
        if geteuid().is_root() {
            Ok(())
        } else {
            Err(Error::NotRoot)
        }
    }

    /// Whether one of our own could be started; nothing is changed.
    ///
    /// # Errors
    ///
    /// [`hostfs::Error::NotThisMachine`]; [`Error::NotRoot`]; [`hostfs::Error::ReadOnly`]
    /// where a container has `/proc/irq` read-only; [`Error::ProgramNotFound`].
    pub fn check_available(fs: &HostFs) -> Result<()> {
        check_machine(fs)?;
        program::find(NAME).map(drop)
    }

    /// Pauses every daemon that runs (`SIGSTOP`) until the guards are dropped (`SIGCONT`),
    /// and waits until they have stopped. Empty if none runs.
    ///
    /// # Errors
    ///
    /// As [`Restore::pause`]; [`Error::DaemonRunning`] if one doesn't stop.
    pub fn pause(record: &Restore) -> Result<Vec<Change>> {
        let daemons = Self::find(record.fs())?;
        let mut changes = Vec::with_capacity(daemons.len());
        for daemon in &daemons {
            match record.pause(daemon) {
                Ok(change) => changes.push(change),
                // It has ended by itself.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        check_none_runs(record.fs())?;
        Ok(changes)
    }

    /// Gives each IRQ that may be set the default affinity, so that what a paused daemon
    /// has moved counts no more. One guard for each IRQ that had another; IRQs that can't
    /// be set are left out.
    ///
    /// An IRQ stays on its CPU where the default affinity allows that.
    ///
    /// # Errors
    ///
    /// As [`set_affinity`]; what was set is put back then.
    pub fn reset_to_default(record: &Restore) -> Result<Vec<AffinityGuard>> {
        let fs = record.fs();
        let default: CpuSet = default_affinity(fs)?;
        let mut guards = Vec::new();
        for irq in Irq::read_all(fs)? {
            if irq.settable == Some(false) || irq.affinity == default {
                continue;
            }
            match set_affinity(record, irq.irq, &default) {
                Ok(guard) => guards.push(guard),
                Err(Error::NotSettable { .. } | Error::Vanished { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(guards)
    }

    /// Our child's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The affinities that were found before it started.
    pub fn saved(&self) -> Option<&Saved> {
        self.saved.as_ref()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    ///
    /// [`Error::Died`] with its exit status and last lines; [`Error::Child`].
    pub fn check(&mut self) -> Result<()> {
        match self.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.died(status)),
        }
    }

    /// Waits until it has set an affinity, at most so long; false if it has not. It looks
    /// at the interrupts once in its interval, and may find nothing to do.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn wait_until_acted(&mut self, timeout: Duration) -> Result<bool> {
        let start = Instant::now();
        loop {
            self.check()?;
            if self
                .saved
                .as_ref()
                .is_some_and(|saved| !saved.moved().is_empty())
            {
                return Ok(true);
            }
            let rest = timeout.saturating_sub(start.elapsed());
            if rest.is_zero() {
                return Ok(false);
            }
            sleep(rest.min(LOOK_FOR_MOVES));
        }
    }

    /// Ends it (`SIGTERM`; after two seconds `SIGKILL`), reaps it, and puts back every
    /// affinity that it moved.
    ///
    /// # Errors
    ///
    /// [`Error::Died`] if it had ended by itself before: what ran with it was not what it
    /// should be; the affinities are put back all the same. [`Error::Child`].
    pub fn stop(mut self) -> Result<Report> {
        self.end()
    }

    fn end(&mut self) -> Result<Report> {
        let ended = self.end_child();
        self.run_dir.forget(self.process.pid);
        let report = self.saved.take().map(Saved::restore).unwrap_or_default();
        match ended? {
            None => Ok(report),
            Some(status) => Err(self.died(status)),
        }
    }

    /// Ends and reaps the child. If it had ended by itself, says with what.
    fn end_child(&mut self) -> Result<Option<ExitStatus>> {
        if let Some(status) = self.try_wait()? {
            return Ok(Some(status));
        }
        // Not reaped, so the number is still our child's.
        let pid = Pid::from_raw(self.process.pid as i32);
        let send = |signal| kill(pid, signal).map_err(|e| self.failed("ending it", e.into()));
        send(Signal::SIGTERM)?;
        // Somebody may have paused it.
        send(Signal::SIGCONT)?;
        let end = Instant::now() + TIME_TO_END;
        while Instant::now() < end {
            if self.try_wait()?.is_some() {
                return Ok(None);
            }
            sleep(LOOK);
        }
        // With whatever it has started: the group is its own.
        killpg(pid, Signal::SIGKILL).map_err(|errno| self.failed("killing it", errno.into()))?;
        let status = self.child.wait();
        self.ended = Some(status.map_err(|error| self.failed("reaping it", (&error).into()))?);
        Ok(None)
    }

    fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            let status = self.child.try_wait();
            self.ended = status.map_err(|error| self.failed("waiting for it", (&error).into()))?;
        }
        Ok(self.ended)
    }

    fn died(&self, status: ExitStatus) -> Error {
        Error::Died {
            status: status.to_string(),
            output: self.output.last_lines(),
        }
    }

    fn failed(&self, operation: &'static str, os: OsError) -> Error {
        Error::Child {
            pid: self.process.pid,
            operation,
            os,
        }
    }
}

impl Drop for Irqbalance {
    fn drop(&mut self) {
        if self.saved.is_some() {
            let _ = self.end();
        }
    }
}

/// Whether interrupts of the running machine may be moved from here.
fn check_machine(fs: &HostFs) -> Result<()> {
    fs.require_this_machine("running irqbalance")?;
    Irqbalance::check_privilege()?;
    // Containers often have this part of proc mounted read-only over the rest.
    let path = fs.full_path("proc/irq");
    match statvfs(&path) {
        Ok(stat) if stat.flags().contains(FsFlags::ST_RDONLY) => {
            Err(hostfs::Error::ReadOnly { path }.into())
        }
        _ => Ok(()),
    }
}

/// Waits a while for daemons to stop that have been told to.
fn check_none_runs(fs: &HostFs) -> Result<()> {
    let end = Instant::now() + TIME_TO_STOP;
    loop {
        let daemons = Irqbalance::find(fs)?;
        let Some(daemon) = daemons.into_iter().find(|daemon| !daemon.is_stopped(fs)) else {
            return Ok(());
        };
        if Instant::now() >= end {
            return Err(Error::DaemonRunning { daemon });
        }
        sleep(LOOK);
    }
}
