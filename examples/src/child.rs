//! A command that is run and waited for, as a shell would.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// What came of starting a command.
#[derive(Debug)]
pub enum Started {
    /// It ran to its end.
    Ended(ExitStatus),
    /// It could not be started: the exit status that a shell would give, and why.
    Not(u8, String),
}

/// Runs a command to its end. Its stdout goes to this process' stderr if `quiet`.
///
/// SIGTERM and SIGHUP are handed on to it, while the terminal itself sends SIGINT and
/// SIGQUIT to both: either way this process outlives it and reports.
///
/// # Errors
///
/// What the system answers when signals can't be handled or the command can't be waited for.
pub fn run(words: &[String], quiet: bool) -> std::io::Result<Started> {
    let Some((program, arguments)) = words.split_first() else {
        return Ok(Started::Not(127, "no command".into()));
    };
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let mut command = Command::new(program);
    command.args(arguments);
    if quiet {
        command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Started::Not(127, format!("{program}: not found")));
        }
        Err(error) => return Ok(Started::Not(126, format!("{program}: {error}"))),
    };
    let handle = signals.handle();
    let pid = Pid::from_raw(child.id() as i32);
    let forward = std::thread::spawn(move || {
        for signal in signals.forever() {
            if let (SIGTERM | SIGHUP, Ok(signal)) = (signal, Signal::try_from(signal)) {
                // One that has just ended needs no signal.
                let _ = kill(pid, signal);
            }
        }
    });
    let status = child.wait();
    handle.close();
    let _ = forward.join();
    status.map(Started::Ended)
}

/// The exit status as a shell shows it: 128+n for a signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    code as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    #[test]
    fn exit_statuses_are_those_of_a_shell() {
        let code = |script: &str| match run(&words(&["sh", "-c", script]), true).unwrap() {
            Started::Ended(status) => exit_code(status),
            Started::Not(..) => panic!("not started"),
        };
        assert_eq!(code("exit 0"), 0);
        assert_eq!(code("exit 7"), 7);
        assert_eq!(code("kill -KILL $$"), 137);
        assert_eq!(code("kill -TERM $$"), 143);
        let not = |program: &str| match run(&words(&[program]), true).unwrap() {
            Started::Not(code, why) => (code, why),
            Started::Ended(_) => panic!("started"),
        };
        assert_eq!(not("/no/such/program").0, 127);
        assert_eq!(not("/").0, 126);
    }
}
