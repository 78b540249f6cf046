//! How a command writes, fails and is interrupted.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub enum Failure {
    /// It was called wrongly: exit status 2.
    Usage(String),
    /// It could not be done: exit status 1.
    Failed(String),
    /// Nobody reads on: exit status 0, without a word.
    ClosedPipe,
}

impl Failure {
    /// A failure with the message of any error.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Failure::Failed(error.to_string())
    }

    /// Wrong usage with the message of any error.
    pub fn usage(error: impl std::fmt::Display) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::failed(error),
        }
    }
}

/// Ends a command: the exit status, and an `error:` line where it failed.
pub fn exit(outcome: Result<(), Failure>) -> ExitCode {
    let (status, message) = match outcome {
        Ok(()) | Err(Failure::ClosedPipe) => return ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => (1, message),
        Err(Failure::Usage(message)) => (2, message),
    };
    say(&format!("error: {message}"));
    ExitCode::from(status)
}

/// A line on stderr; where nobody reads it, nothing is lost.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A text on stdout, with a line end.
///
/// # Errors
///
/// [`Failure::ClosedPipe`] when nobody reads on.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    Ok(stdout.flush()?)
}

/// One JSON document on stdout.
///
/// # Errors
///
/// [`Failure::ClosedPipe`] when nobody reads on.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(document).map_err(Failure::failed)?)
}

/// A flag that SIGINT, SIGTERM and SIGHUP set instead of ending the process, so that what
/// was changed is put back first.
///
/// # Errors
///
/// What the system answers when handlers can't be set.
pub fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
