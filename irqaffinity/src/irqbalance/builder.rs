//! Options of an irqbalance of our own, and its start.

use std::io::pipe;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hostfs::{Process, Restore};

use super::output::Output;
use super::run_dir::RunDir;
use super::{Irqbalance, NAME, check_machine, check_none_runs, program, sys};
use crate::{Error, Result, Saved};

/// Options of irqbalance; those that are not given are left to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    program: Option<PathBuf>,
    powerthresh: Option<u32>,
    interval: Option<u32>,
}

impl Builder {
    /// `--powerthresh=N`: CPUs are left without interrupts for power's sake once more than
    /// N of them have little load. irqbalance doesn't do so by default.
    pub fn powerthresh(mut self, cpus: u32) -> Self {
        self.powerthresh = Some(cpus);
        self
    }

    /// `--interval=S`: how many seconds it sleeps between two looks at the interrupts; 10
    /// by default.
    pub fn interval(mut self, seconds: u32) -> Self {
        self.interval = Some(seconds);
        self
    }

    /// The program to run instead of the `irqbalance` that is found in `PATH`, `/usr/sbin`
    /// or `/sbin`.
    pub fn program(mut self, path: impl AsRef<Path>) -> Self {
        self.program = Some(path.as_ref().to_path_buf());
        self
    }

    /// Records every affinity, then runs `irqbalance --foreground` with these options.
    /// While it runs there is a `/run/irqbalance` for its socket.
    ///
    /// Needs root. Call it on a thread that lives as long as the child is to run: when that
    /// thread ends, the kernel ends the child.
    ///
    /// # Errors
    ///
    /// As [`Irqbalance::check_available`]; [`Error::DaemonRunning`] if another irqbalance
    /// runs that is not paused; [`Error::NotStarted`]; as [`Saved::take`].
    pub fn start(&self, record: &Restore) -> Result<Irqbalance> {
        let fs = record.fs();
        check_machine(fs)?;
        let program = match &self.program {
            Some(path) => program::check(path)?,
            None => program::find(NAME)?,
        };
        check_none_runs(fs)?;
        let saved = Saved::take(record)?;
        let run_dir = RunDir::make();
        let (mut child, output) = self.spawn(&program).map_err(|error| Error::NotStarted {
            program,
            os: (&error).into(),
        })?;
        let process = match Process::of(fs, child.id()) {
            Ok(process) => process,
            Err(error) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(error.into());
            }
        };
        Ok(Irqbalance {
            process,
            child,
            ended: None,
            output,
            run_dir,
            saved: Some(saved),
        })
    }

    fn spawn(&self, program: &Path) -> std::io::Result<(std::process::Child, Output)> {
        let (reader, writer) = pipe()?;
        let mut command = Command::new(program);
        command
            .args(self.arguments())
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        sys::prepare(&mut command);
        let output = Output::drain(reader)?;
        Ok((command.spawn()?, output))
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--foreground".to_owned()];
        arguments.extend(self.powerthresh.map(|n| format!("--powerthresh={n}")));
        arguments.extend(self.interval.map(|s| format!("--interval={s}")));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_not_given_are_left_to_irqbalance() {
        assert_eq!(Builder::default().arguments(), ["--foreground"]);
        assert_eq!(
            Irqbalance::builder().powerthresh(2).interval(1).arguments(),
            ["--foreground", "--powerthresh=2", "--interval=1"]
        );
    }
}
