//! `energy`: what does a command consume?

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, Table};
use cpuidle::{CpuIdle, Snapshot, Snapshotter};
use examples::child::{Started, exit_code, run};
use examples::output::{Failure, exit, print_json, say};
use examples::{figures, meters};
use hostfs::HostFs;
use hostfs::interrupts::{Interrupts, InterruptsReader};
use rapl::{Backend, Diagnosis, Meter, Sampler, Series};
use serde::Serialize;

/// Run a command and say what it consumed: joules and watts by domain, idle states,
/// interrupts by CPU.
///
/// The whole machine is counted, not the command alone. The figures go to stderr, and the
/// command's exit status is passed on: 128+n when signal n ended it, 127 when there is no
/// such command, 126 when it can't be run.
#[derive(Parser)]
#[command(
    name = "energy",
    after_help = "Example:\n  cargo run --release --example energy -- -- make -j8"
)]
struct Args {
    /// Read the energy by this backend only: perf, powercap or msr.
    #[arg(long)]
    backend: Option<Backend>,
    /// No package draws more watts than this.
    #[arg(long, value_name = "WATTS", default_value_t = 1000.0)]
    power_bound: f64,
    /// The root of the machine to read.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Print one JSON document; the command's own stdout goes to stderr.
    #[arg(long)]
    json: bool,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<String>,
}

fn main() -> ExitCode {
    match energy(&Args::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => exit(Err(failure)),
    }
}

fn energy(args: &Args) -> Result<u8, Failure> {
    let fs = HostFs::at(&args.root).map_err(Failure::usage)?;
    let meter = match meters::open(&fs, args.backend, args.power_bound) {
        Ok(meter) => Ok(meter),
        Err(error @ rapl::Error::PowerBound(_)) => return Err(Failure::usage(error)),
        Err(error) => Err(error.to_string()),
    };
    let mut others = Others::open(&fs);
    // However long the command runs, the sampler misses no wrap.
    let sampler = meter.map(|meter: Meter| Sampler::start(meter, Duration::from_secs(3600)));
    let sampler = match sampler {
        Ok(sampler) => Ok(sampler.map_err(Failure::failed)?),
        Err(why) => Err(why),
    };
    let before = others.read();
    if let Ok(sampler) = &sampler {
        sampler.mark();
    }
    let start = Instant::now();
    let started = run(&args.command, args.json)?;
    let seconds = start.elapsed().as_secs_f64();
    let series = sampler.map(Sampler::stop);
    let after = others.read();
    let status = match started {
        Started::Ended(status) => exit_code(status),
        Started::Not(code, why) => {
            say(&format!("error: {why}"));
            return Ok(code);
        }
    };
    let mut report = Report::new(&series, seconds, status);
    report.add_others(&before, &after);
    if series.is_err() {
        report.diagnosis = Some(rapl::diagnose(&fs));
    }
    let shown = if args.json {
        print_json(&report)
    } else {
        say(&report.text());
        Ok(())
    };
    match shown {
        // The command's own status is what counts.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(status),
        Err(failure) => Err(failure),
    }
}

/// Idle states and interrupts, where they can be read.
struct Others {
    idle: Option<Snapshotter>,
    interrupts: Option<InterruptsReader>,
}

struct OtherReadings {
    idle: Option<Snapshot>,
    interrupts: Option<Interrupts>,
}

impl Others {
    fn open(fs: &HostFs) -> Self {
        let idle = CpuIdle::open(fs).and_then(|idle| idle.snapshotter());
        Self {
            idle: idle.ok(),
            interrupts: InterruptsReader::open(fs).ok(),
        }
    }

    fn read(&mut self) -> OtherReadings {
        OtherReadings {
            idle: self.idle.as_mut().map(Snapshotter::snapshot),
            interrupts: self.interrupts.as_mut().and_then(|r| r.read().ok()),
        }
    }
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    domains: Vec<DomainReport>,
    /// Packages and dram, each once.
    total_joules: Option<f64>,
    total_watts: Option<f64>,
    /// Why there is no total.
    energy_unavailable: Option<String>,
    diagnosis: Option<Diagnosis>,
    seconds: f64,
    exit_status: u8,
    /// Summed over the CPUs.
    idle: Vec<IdleReport>,
    interrupts: Vec<CpuReport>,
    gaps: usize,
}

#[derive(Serialize)]
struct DomainReport {
    id: String,
    kind: rapl::Kind,
    joules: Option<f64>,
    watts: Option<f64>,
    in_total: bool,
    backend: Backend,
    /// Why it has no value, or what is doubtful about it.
    note: Option<String>,
}

#[derive(Serialize)]
struct IdleReport {
    name: String,
    usage: Option<u64>,
    time_us: Option<u64>,
    too_deep: Option<u64>,
    too_shallow: Option<u64>,
}

#[derive(Serialize)]
struct CpuReport {
    cpu: u32,
    count: u64,
}

impl Report {
    fn new(series: &Result<Series, String>, seconds: f64, exit_status: u8) -> Self {
        let mut report = Self {
            schema: "energy/1",
            domains: Vec::new(),
            total_joules: None,
            total_watts: None,
            energy_unavailable: None,
            diagnosis: None,
            seconds,
            exit_status,
            idle: Vec::new(),
            interrupts: Vec::new(),
            gaps: 0,
        };
        match series {
            Ok(series) => report.add_energy(series),
            Err(why) => report.energy_unavailable = Some(why.clone()),
        }
        report
    }

    fn add_energy(&mut self, series: &Series) {
        self.domains = series
            .domains
            .iter()
            .zip(&series.totals)
            .map(|(domain, total)| {
                let known = total.missing == 0 && !total.time.is_zero();
                DomainReport {
                    id: domain.id.clone(),
                    kind: domain.kind,
                    joules: known.then_some(total.joules.0),
                    watts: known.then(|| (total.joules / total.time).0),
                    in_total: domain.in_total,
                    backend: domain.backend,
                    note: match &total.last_missing {
                        Some(missing) if !known => Some(missing.to_string()),
                        _ if domain.unit_assumed => {
                            Some("unknown processor: its unit register is believed".into())
                        }
                        _ => None,
                    },
                }
            })
            .collect();
        self.total_joules = series.total().map(|joules| joules.0);
        let watts = |domain: &&DomainReport| domain.in_total;
        self.total_watts = self.total_joules.and_then(|_| {
            let counted = self.domains.iter().filter(watts);
            counted.map(|domain| domain.watts).sum()
        });
        if self.total_joules.is_none() {
            let skipped = series.skipped.iter().filter(|skipped| skipped.in_total);
            let lacking = self.domains.iter().filter(|domain| domain.in_total);
            let lacking = lacking.filter_map(|d| Some(format!("{}: {}", d.id, d.note.as_ref()?)));
            let all: Vec<String> = skipped.map(ToString::to_string).chain(lacking).collect();
            self.energy_unavailable = Some(match all.as_slice() {
                [] => "there is no package or dram to add up".into(),
                all => all.join("; "),
            });
        }
        self.gaps = series.gaps.len() + series.gaps_dropped as usize;
    }

    fn add_others(&mut self, before: &OtherReadings, after: &OtherReadings) {
        if let (Some(before), Some(after)) = (&before.idle, &after.idle) {
            for state in after.since(before).sum() {
                let counts = state.counts.filter(|_| state.missing.is_empty());
                self.idle.push(IdleReport {
                    usage: counts.map(|counts| counts.entries),
                    time_us: counts.map(|counts| counts.time_us),
                    too_deep: counts.and_then(|counts| counts.too_deep),
                    too_shallow: counts.and_then(|counts| counts.too_shallow),
                    name: state.name,
                });
            }
        }
        if let (Some(before), Some(after)) = (&before.interrupts, &after.interrupts) {
            let counts = after.since(before).per_cpu_total();
            self.interrupts = counts
                .into_iter()
                .map(|(cpu, count)| CpuReport { cpu, count })
                .collect();
        }
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        if !self.domains.is_empty() {
            let mut table = new_table(&["domain", "joules", "watts", ""]);
            for domain in &self.domains {
                let note = domain.note.clone().unwrap_or_default();
                let figures = [domain.joules, domain.watts];
                add_row(
                    &mut table,
                    &domain.id,
                    &figures.map(figures::significant),
                    &note,
                );
            }
            if self.total_joules.is_some() {
                let figures = [self.total_joules, self.total_watts];
                let name = "packages and dram";
                add_row(&mut table, name, &figures.map(figures::significant), "");
            }
            lines.push(table.to_string());
        }
        if !self.idle.is_empty() {
            let mut table = new_table(&["idle state", "usage", "ms", "too deep", "too shallow"]);
            for state in &self.idle {
                let count = |count: Option<u64>| count.map_or("–".into(), |c| c.to_string());
                let ms = count(state.time_us.map(|us| us / 1000));
                let mut row = [count(state.usage), ms, count(state.too_deep), String::new()];
                row[3] = count(state.too_shallow);
                let mut cells = vec![Cell::new(&state.name)];
                cells.extend(row.iter().map(|text| right(text)));
                table.add_row(cells);
            }
            lines.push(table.to_string());
        }
        if !self.interrupts.is_empty() {
            let each = self.interrupts.iter();
            let each: Vec<String> = each
                .map(|c| format!("CPU {}: {}", c.cpu, c.count))
                .collect();
            lines.push(format!("interrupts: {}", each.join(", ")));
        }
        if let Some(why) = &self.energy_unavailable {
            lines.push(format!("no energy: {why}"));
        }
        if let Some(diagnosis) = &self.diagnosis {
            lines.push(diagnosis.to_string());
        }
        if self.gaps > 0 {
            lines.push(format!(
                "{} readings came late or after a suspend",
                self.gaps
            ));
        }
        let (seconds, status) = (figures::significant(Some(self.seconds)), self.exit_status);
        lines.push(format!("{seconds} s, exit status {status}"));
        lines.join("\n")
    }
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    let cells = header.iter().enumerate();
    table.set_header(cells.map(|(at, text)| {
        if at == 0 {
            Cell::new(text)
        } else {
            right(text)
        }
    }));
    table
}

fn add_row(table: &mut Table, name: &str, figures: &[String], note: &str) {
    let mut cells = vec![Cell::new(name)];
    cells.extend(figures.iter().map(|figure| right(figure)));
    cells.push(Cell::new(note));
    table.add_row(cells);
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
