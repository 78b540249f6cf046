//! `ab`: does a change pay, or is it noise?

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use examples::output::{Failure, exit, interrupt_flag, print, print_json, say};
use examples::results_dir::ResultsDir;
use examples::{arguments, figures, table};
use experiment::{
    Ending, Experiment, Host, LeftOut, Plan, Progress, Results, RingPlan, Until, Variant, loops_for,
};
use hostfs::{CpuSet, HostFs, Restore, Topology};
use indicatif::{ProgressBar, ProgressStyle};
use pingpong::TransportKind;

/// How long a run is where neither loops nor seconds are asked for.
const RUN: Duration = Duration::from_secs(1);

/// More threads than this are a slip of the finger.
const MOST_STOPS: u64 = 10_000;

/// Compare variants of this machine: µs per wakeup, energy, idle states, interrupts.
///
/// Each block runs every variant, and the baseline once more as a check of this machine's
/// noise, in a random order. The workload is one or more rings of pinned threads that pass
/// a token. Without options it compares irqbalance off and on, or, where that is not
/// allowed, the machine with itself. Everything that is changed is put back.
#[derive(Parser)]
#[command(
    name = "ab",
    args_override_self = true,
    after_help = "\
Factors:
  irqbalance:off                             no irqbalance; a running one is paused, its moves undone
  irqbalance:on[:powerthresh=N][:interval=S] an irqbalance of our own; before each of its runs it
                                             is given twice its interval (10 s) to act
  governor:NAME                              the idle governor
  idle-off:STATE                             an idle state switched off on every CPU

Example, with the timeline of the first published comparison:
  cargo run --release --example ab -- --variant off=irqbalance:off \\
    --variant on=irqbalance:on --variant saving=irqbalance:on:powerthresh=2 \\
    --rings 3 --blocks 8 --seconds 60 --sample 15 --lead 30 --tail 10"
)]
struct Args {
    /// A variant, the first being the baseline; without factors: the machine as it is found.
    #[arg(long = "variant", value_name = "NAME[=FACTOR,...]")]
    variants: Vec<Variant>,
    /// How often each variant runs.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    blocks: u32,
    /// Rings that run side by side [default: as many as there are CPUs for, at most 3].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rings: Option<u32>,
    /// Stops of each ring.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    stops: u32,
    /// Each run ends after so many loops [default: what takes about a second].
    #[arg(long, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    loops: Option<u64>,
    /// Each run ends after this time.
    #[arg(long, value_parser = arguments::positive_seconds)]
    seconds: Option<Duration>,
    /// Units of work at each stop, of about a nanosecond.
    #[arg(long, default_value_t = 0)]
    work: u64,
    /// How the token is passed: pipe, futex or spin.
    #[arg(long, default_value_t = TransportKind::Pipe)]
    transport: TransportKind,
    /// The CPUs of the stops, dealt out in turn [default: this process' CPUs that are not
    /// isolated].
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuSet>,
    /// Seconds from one sample to the next; samples are cut at the borders of runs.
    #[arg(long, default_value = "0.5", value_parser = arguments::positive_seconds)]
    sample: Duration,
    /// Seconds that are sampled before the first run.
    #[arg(long, default_value = "1", value_parser = arguments::seconds)]
    lead: Duration,
    /// Seconds that are sampled after the last run.
    #[arg(long, default_value = "1", value_parser = arguments::seconds)]
    tail: Duration,
    /// The smallest change that matters.
    #[arg(long, default_value = "1%", value_parser = arguments::percent)]
    margin: f64,
    /// Decides the order of the runs [default: from the clock].
    #[arg(long)]
    seed: Option<u64>,
    /// The folder for the results [default: wakecost-results/ab-<date>].
    #[arg(long)]
    out: Option<PathBuf>,
    /// The root of the machine to read; it must be the running one.
    #[arg(long, default_value = "/")]
    root: PathBuf,
    /// Print the results as one JSON document.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    exit(ab(&Args::parse()))
}

fn ab(args: &Args) -> Result<(), Failure> {
    let fs = HostFs::at(&args.root).map_err(Failure::usage)?;
    fs.require_this_machine("the rings and every factor")
        .map_err(Failure::usage)?;
    Variant::check_names(&args.variants).map_err(Failure::usage)?;
    let (variants, left_out) = allowed_variants(args, &Host::new(Restore::new(&fs)))?;
    for left_out in &left_out {
        say(&left_out.to_string());
    }
    if let [only, again] = variants.as_slice()
        && only.factors == again.factors
    {
        say(&format!("{} is compared with itself", only.name));
    }
    let ring = ring_plan(args, &fs)?;
    let stop = interrupt_flag()?;
    let out = ResultsDir::create(args.out.as_deref(), "ab")?;
    let record = match variants.iter().all(|variant| variant.factors.is_empty()) {
        true => Restore::new(&fs),
        false => record_of_changes(&fs, out.path())?,
    };

    let mut plan = Plan::new(variants, ring, args.seed.unwrap_or_else(arguments::seed));
    plan.blocks = args.blocks;
    plan.margin_percent = args.margin;
    (plan.sample, plan.lead, plan.tail) = (args.sample, args.lead, args.tail);
    let host = Host::new(record);
    // Everything that may be wrong with the rings is found before the first of them runs.
    let checked = Experiment::new(host.clone(), plan.clone(), Vec::new(), Vec::new());
    checked.map_err(Failure::usage)?;
    plan.ring.until = until(args, &plan.ring, &stop)?;
    if stop.load(Ordering::Relaxed) {
        let nothing = "interrupted before anything was measured or changed";
        return Err(Failure::Failed(nothing.into()));
    }
    let command = command(args, &plan);
    let experiment = Experiment::new(host, plan.clone(), left_out, command);
    let results = run(experiment.map_err(Failure::usage)?, &plan, &stop)?;

    // Neither a full disk nor a closed pipe may cost the other what was measured.
    let saved = save(&out, &results);
    let shown = show(args, &results);
    saved.and(shown)
}

fn save(out: &ResultsDir, results: &Results) -> Result<(), Failure> {
    let json = serde_json::to_string(results).map_err(Failure::failed)?;
    out.save("result.json", &json)?;
    out.save("report.html", &examples::report::html(results))?;
    out.save("effects.svg", &examples::report::effects_svg(results))?;
    say(&format!("results and report: {}", out.path().display()));
    Ok(())
}

/// The variants that this machine allows. Where only one is left, it is compared with
/// itself.
fn allowed_variants(args: &Args, host: &Host) -> Result<(Vec<Variant>, Vec<LeftOut>), Failure> {
    let wanted = match args.variants.as_slice() {
        [] => ["off=irqbalance:off", "on=irqbalance:on:interval=1"]
            .iter()
            .map(|text| text.parse().map_err(Failure::failed))
            .collect::<Result<_, _>>()?,
        given => given.to_vec(),
    };
    let (mut variants, mut left_out) = (Vec::new(), Vec::new());
    for (at, variant) in wanted.into_iter().enumerate() {
        match host.check(&variant).map_err(Failure::usage)? {
            None => variants.push(variant),
            Some(why) => {
                left_out.push(why);
                if at == 0 {
                    variants.push(Variant::as_found("as found"));
                }
            }
        }
    }
    if let [only] = variants.as_slice() {
        let mut again = only.clone();
        again.name.push_str(", again");
        say(&format!(
            "only {} is left: it is compared with itself",
            only.name
        ));
        variants.push(again);
    }
    Variant::check_names(&variants).map_err(Failure::usage)?;
    Ok((variants, left_out))
}

fn ring_plan(args: &Args, fs: &HostFs) -> Result<RingPlan, Failure> {
    let cpus = match &args.cpus {
        Some(cpus) => cpus.clone(),
        None => {
            let allowed = pingpong::allowed_cpus().map_err(Failure::failed)?;
            let isolated = Topology::read(fs).map_err(Failure::failed)?.isolated;
            let rest = &allowed - &isolated;
            if rest.is_empty() { allowed } else { rest }
        }
    };
    let cpus: Vec<u32> = cpus.iter().collect();
    if cpus.is_empty() {
        return Err(Failure::Usage("--cpus names no CPU".into()));
    }
    let room = cpus.len() as u32 / args.stops;
    let rings = args.rings.unwrap_or(room.clamp(1, 3));
    if u64::from(rings) * u64::from(args.stops) > MOST_STOPS {
        return Err(Failure::Usage(format!(
            "--rings {rings} --stops {}: at most {MOST_STOPS} threads altogether",
            args.stops
        )));
    }
    Ok(RingPlan::new(
        RingPlan::spread(&cpus, rings, args.stops),
        args.transport,
        args.work,
        Until::Loops(args.loops.unwrap_or(1)),
    ))
}

fn until(args: &Args, ring: &RingPlan, stop: &Arc<AtomicBool>) -> Result<Until, Failure> {
    match (args.loops, args.seconds) {
        (Some(loops), _) => Ok(Until::Loops(loops)),
        (None, Some(seconds)) => Ok(Until::Seconds(seconds.as_secs_f64())),
        (None, None) => {
            let loops = loops_for(ring, RUN, stop).map_err(Failure::failed)?;
            Ok(Until::Loops(loops))
        }
    }
}

/// Kept in /run for root, where `restore` looks for it, otherwise beside the results.
fn record_of_changes(fs: &HostFs, out: &Path) -> Result<Restore, Failure> {
    match Restore::journaled(fs, "/run/wakecost", "ab") {
        Err(
            hostfs::Error::NotPermitted { .. }
            | hostfs::Error::NotOurs { .. }
            | hostfs::Error::ReadOnly { .. },
        ) => Restore::journaled(fs, out, "ab").map_err(Failure::failed),
        other => other.map_err(Failure::failed),
    }
}

/// The command that repeats the experiment, with everything that was decided here.
fn command(args: &Args, plan: &Plan) -> Vec<String> {
    let mut words: Vec<String> = ["cargo", "run", "--release", "--example", "ab", "--"]
        .map(str::to_owned)
        .to_vec();
    for variant in &plan.variants {
        words.extend(["--variant".to_owned(), variant.to_string()]);
    }
    let cpus: CpuSet = plan.ring.rings.iter().flatten().copied().collect();
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    option("blocks", plan.blocks.to_string());
    option("rings", plan.ring.rings.len().to_string());
    option("stops", args.stops.to_string());
    option("cpus", args.cpus.clone().unwrap_or(cpus).to_string());
    match plan.ring.until {
        Until::Seconds(seconds) => option("seconds", seconds.to_string()),
        Until::Loops(loops) => option("loops", loops.to_string()),
        _ => {}
    }
    option("work", plan.ring.work.to_string());
    option("transport", plan.ring.transport.clone());
    option("sample", plan.sample.as_secs_f64().to_string());
    option("lead", plan.lead.as_secs_f64().to_string());
    option("tail", plan.tail.as_secs_f64().to_string());
    option(
        "margin",
        format!("{}%", figures::plain(plan.margin_percent)),
    );
    option("seed", plan.seed.to_string());
    words
}

fn run(experiment: Experiment, plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Results, Failure> {
    say(&format!(
        "{} blocks of {} runs, each of {}; seed {}",
        plan.blocks,
        plan.variants.len() + 1,
        figures::until(plan.ring.until),
        plan.seed
    ));
    // Hidden by itself where stderr is no terminal.
    let bar = ProgressBar::new(u64::from(plan.runs()));
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left: {msg}");
    bar.set_style(style.map_err(Failure::failed)?);
    let results = experiment.run(stop, |progress| match progress {
        Progress::Run {
            number, variant, ..
        } => {
            bar.set_position(u64::from(number));
            bar.set_message(variant.to_owned());
        }
        Progress::Lead => bar.set_message("lead"),
        _ => bar.set_message("tail"),
    });
    bar.finish_and_clear();
    results.map_err(Failure::failed)
}

fn show(args: &Args, results: &Results) -> Result<(), Failure> {
    if args.json {
        print_json(results)?;
    } else {
        print(&table::comparison(results))?;
        print(&table::verdicts(results))?;
    }
    for warning in &results.warnings {
        say(&format!("warning: {warning}"));
    }
    let kept = format!(
        "{} of {} blocks were finished and are kept; every setting was put back",
        results.blocks_done, results.plan.blocks
    );
    match &results.ending {
        Ending::Complete => Ok(()),
        Ending::Failed { error } => Err(Failure::Failed(format!("{error}; {kept}"))),
        _ => Err(Failure::Failed(format!("interrupted; {kept}"))),
    }
}
