//! What the child writes: read all the time, so that it never has to wait, and mostly
//! forgotten.

use std::collections::VecDeque;
use std::io::{ErrorKind, PipeReader, Read, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How much of the end is kept, in bytes.
const KEPT: usize = 4096;

/// How many lines of it are shown.
const LINES: usize = 5;

/// How long the last words of a dead child may take to arrive.
const TIME_TO_ARRIVE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Output {
    end: Arc<Mutex<VecDeque<u8>>>,
    drain: JoinHandle<()>,
}

impl Output {
    /// Starts the thread that reads the pipe until its other end is closed.
    pub fn drain(mut pipe: PipeReader) -> Result<Self> {
        let end = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&end);
        let drain = Builder::new()
            .name("irqbalance-out".into())
            .spawn(move || {
                let mut buffer = [0; 1024];
                loop {
                    match pipe.read(&mut buffer) {
                        Ok(0) => return,
                        Ok(more) => keep(&mut lock(&kept), &buffer[..more]),
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(_) => return,
                    }
                }
            })?;
        Ok(Self { end, drain })
    }

    /// The last lines, once the child has ended.
    pub fn last_lines(&self) -> String {
        // A grandchild might hold the pipe open for ever.
        let deadline = Instant::now() + TIME_TO_ARRIVE;
        while !self.drain.is_finished() && Instant::now() < deadline {
            sleep(Duration::from_millis(1));
        }
        let bytes: Vec<u8> = lock(&self.end).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

fn keep(end: &mut VecDeque<u8>, more: &[u8]) {
    end.extend(more);
    let over = end.len().saturating_sub(KEPT);
    end.drain(..over);
}

fn lock(end: &Mutex<VecDeque<u8>>) -> MutexGuard<'_, VecDeque<u8>> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_end_is_kept_and_the_writer_never_waits() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let output = Output::drain(reader).unwrap();
        // Far more than a pipe holds.
        for line in 0..100_000 {
            writeln!(writer, "line {line}").unwrap();
        }
        write!(writer, "\nthe last").unwrap();
        drop(writer);
        assert_eq!(
            output.last_lines(),
            "line 99996\nline 99997\nline 99998\nline 99999\nthe last"
        );
        assert!(lock(&output.end).len() <= KEPT);
    }

    #[test]
    fn a_pipe_that_stays_open_does_not_hold_up() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let output = Output::drain(reader).unwrap();
        writer.write_all(b"one\n").unwrap();
        assert_eq!(output.last_lines(), "one");
    }
}
