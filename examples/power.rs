//! `power`: watts along a time line.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Parser;
use examples::output::{Failure, exit, interrupt_flag, print, print_json, say};
use examples::{arguments, figures, meters};
use hostfs::HostFs;
use indicatif::{ProgressBar, ProgressStyle};
use rapl::{Backend, Domain, Gap, Sample, Sampler};
use serde::Serialize;

/// Watch the power of packages and memory: a line a sample, a chart, or JSON.
///
/// Ends after --seconds, or when it is interrupted.
#[derive(Parser)]
#[command(
    name = "power",
    after_help = "Example, a sample in 15 seconds for ten minutes, drawn at the end:\n  \
                  cargo run --release --example power -- --period 15 --seconds 600 --chart"
)]
struct Args {
    /// Seconds from one sample to the next.
    #[arg(long, default_value = "1", value_parser = arguments::positive_seconds)]
    period: Duration,
    /// Ends after this time [default: when interrupted].
    #[arg(long, value_parser = arguments::positive_seconds)]
    seconds: Option<Duration>,
    /// Draw a bar for each sample.
    #[arg(long, conflicts_with_all = ["json", "jsonl"])]
    chart: bool,
    /// Read the energy by this backend only: perf, powercap or msr.
    #[arg(long)]
    backend: Option<Backend>,
    /// No package draws more watts than this.
    #[arg(long, value_name = "WATTS", default_value_t = 1000.0)]
    power_bound: f64,
    /// The root of the machine to read.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Print one JSON document at the end.
    #[arg(long)]
    json: bool,
    /// Print a line of JSON for each sample.
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    domains: &'a [Domain],
    samples: &'a [Line],
    total_joules: Option<f64>,
    gaps: &'a [Gap],
}

/// A sample as it is printed.
#[derive(Serialize)]
struct Line {
    /// Its end, in seconds since the first reading.
    t_s: f64,
    /// Packages and dram, each once.
    watts: Option<f64>,
    /// In the order of the domains.
    domain_watts: Vec<Option<f64>>,
}

fn main() -> ExitCode {
    exit(power(&Args::parse()))
}

fn power(args: &Args) -> Result<(), Failure> {
    let fs = HostFs::at(&args.root).map_err(Failure::usage)?;
    let meter = meters::open(&fs, args.backend, args.power_bound).map_err(|error| match error {
        rapl::Error::PowerBound(_) => Failure::usage(error),
        error => {
            say(&rapl::diagnose(&fs).to_string());
            Failure::failed(error)
        }
    })?;
    for skipped in meter.skipped() {
        say(&format!("left out: {skipped}"));
    }
    let domains = meter.domains().to_vec();
    let stop = interrupt_flag()?;
    // Samples end at the marks below; between them the thread reads as often as it must.
    let hour = Duration::from_secs(3600).max(args.period);
    let sampler = Sampler::start_bounded(meter, hour, 2).map_err(Failure::failed)?;
    sampler.mark();
    let start = Instant::now();
    let bar = progress_bar(args)?;
    if !args.json && !args.jsonl {
        print(&header(&domains))?;
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut due = start + args.period;
    let end = args.seconds.map(|seconds| start + seconds);
    while !stop.load(Ordering::Relaxed) {
        let until = end.map_or(due, |end| due.min(end));
        sleep_until(until, || stop.load(Ordering::Relaxed));
        sampler.mark();
        let series = sampler.series();
        if let Some(sample) = series.samples.last() {
            let elapsed = sample.end.since(&series.start);
            let line = Line::new(elapsed.unwrap_or_default().wall(), sample, domains.len());
            if args.jsonl {
                print(&serde_json::to_string(&line).map_err(Failure::failed)?)?;
            } else if !args.json && !args.chart {
                print(&line.text())?;
            }
            if args.json || args.chart {
                lines.push(line);
            }
        }
        bar.set_position(start.elapsed().as_secs());
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        while due <= Instant::now() {
            due += args.period;
        }
    }
    bar.finish_and_clear();
    let series = sampler.stop();
    for gap in &series.gaps {
        say(&gap_text(gap));
    }
    if args.json {
        return print_json(&Document {
            schema: "power/1",
            domains: &domains,
            samples: &lines,
            total_joules: series.total().map(|joules| joules.0),
            gaps: &series.gaps,
        });
    }
    if args.chart {
        print(&chart(&lines))?;
    }
    Ok(())
}

/// Hidden by itself where stderr is no terminal.
fn progress_bar(args: &Args) -> Result<ProgressBar, Failure> {
    let shown = (args.json || args.chart) && std::io::stderr().is_terminal();
    let Some(seconds) = args.seconds.filter(|_| shown) else {
        return Ok(ProgressBar::hidden());
    };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} s");
    let bar = ProgressBar::new(seconds.as_secs());
    Ok(bar.with_style(style.map_err(Failure::failed)?))
}

fn sleep_until(until: Instant, stop: impl Fn() -> bool) {
    const LOOK: Duration = Duration::from_millis(100);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stop() {
            return;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

impl Line {
    fn new(at: Duration, sample: &Sample, domains: usize) -> Self {
        Self {
            t_s: at.as_secs_f64(),
            watts: sample.total_watts().map(|watts| watts.0),
            domain_watts: (0..domains)
                .map(|domain| sample.watts(domain).map(|watts| watts.0))
                .collect(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{:>9.1}  {:>8}", self.t_s, watts(self.watts));
        for domain in &self.domain_watts {
            text += &format!("  {:>8}", watts(*domain));
        }
        text
    }
}

fn watts(watts: Option<f64>) -> String {
    watts.map_or("–".into(), |watts| format!("{watts:.2}"))
}

fn header(domains: &[Domain]) -> String {
    let each = domains.iter().enumerate();
    let each: Vec<String> = each
        .map(|(at, d)| format!("  column {}: {}", at + 3, d.id))
        .collect();
    format!(
        "{}\n  seconds     watts of packages and dram, then of each domain",
        each.join("\n")
    )
}

/// A bar for each sample, the longest for the most watts.
fn chart(lines: &[Line]) -> String {
    const WIDTH: f64 = 60.0;
    let most = lines
        .iter()
        .filter_map(|line| line.watts)
        .fold(0.0, f64::max);
    let bar = |line: &Line| {
        let share = line.watts.unwrap_or(0.0) / most;
        let bar = "█".repeat((share * WIDTH).round() as usize);
        format!("{:>9.1} s {:>9} W {bar}", line.t_s, watts(line.watts))
    };
    let bars: Vec<String> = lines.iter().map(bar).collect();
    bars.join("\n")
}

fn gap_text(gap: &Gap) -> String {
    match gap {
        Gap::Suspended { asleep, .. } => {
            format!(
                "the machine slept for {} s",
                figures::plain(asleep.as_secs_f64())
            )
        }
        Gap::Late { by, .. } => {
            format!("a reading was {} s late", figures::plain(by.as_secs_f64()))
        }
        _ => "a gap".into(),
    }
}
