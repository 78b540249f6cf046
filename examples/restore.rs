//! `restore`: puts back what a killed run left changed.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use examples::output::{Failure, exit, print};
use hostfs::{Replayed, Restore};

/// Put back what a run that was killed left changed.
///
/// Every command records what it finds before it changes it: in /run/wakecost as root,
/// otherwise in its output folder. Doing this twice is harmless, and what somebody else has
/// changed since is left alone and reported.
#[derive(Parser)]
#[command(
    name = "restore",
    after_help = "Example:\n  cargo run --release --example restore"
)]
struct Args {
    /// The folder of the records [default: /run/wakecost].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit(restore(&Args::parse()))
}

fn restore(args: &Args) -> Result<(), Failure> {
    let dir = match &args.dir {
        Some(dir) if !dir.is_dir() => {
            let dir = dir.display();
            return Err(Failure::Usage(format!("--dir {dir}: no such folder")));
        }
        Some(dir) => dir.clone(),
        None => PathBuf::from("/run/wakecost"),
    };
    let replayed = Restore::replay(&dir).map_err(Failure::failed)?;
    if replayed.is_empty() {
        return print(&format!("{}: nothing to put back", dir.display()));
    }
    let mut failed = 0;
    for record in &replayed {
        if let Some(error) = &record.unreadable {
            print(&error.to_string())?;
            failed += 1;
            continue;
        }
        let path = record.path.display();
        print(&format!("{path}: left by `{}`", record.command))?;
        failed += report(record)?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Failed(format!(
            "{failed} settings or records could not be put back; the records are kept"
        ))),
    }
}

/// Prints a line for each change; returns how many could not be put back.
fn report(record: &Replayed) -> Result<usize, Failure> {
    if record.outcomes.is_empty() {
        print("  of an earlier boot: its settings ended with that")?;
    }
    for (entry, outcome) in &record.outcomes {
        match outcome {
            Ok(outcome) => print(&format!("  {entry}: {outcome}"))?,
            Err(error) => print(&format!("  {entry}: not put back: {error}"))?,
        }
    }
    Ok(record
        .outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_err())
        .count())
}
