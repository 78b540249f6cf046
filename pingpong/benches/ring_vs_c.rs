//! The crate's rings beside those of `ring.c`, a minimal C program with the same transports
//! and the same pinning.
//!
//! `cargo bench -p pingpong --bench ring_vs_c [-- --pairs N]` runs, N times (20 if not said),
//! the C program, the crate, and the C program again, in an order that changes each time.
//! Each run is a process of its own. The table shows the crate's time against the first C
//! run's, and as the noise the second C run's against the first's: geometric mean, Student's
//! 95 % interval, and the standard deviation of the logarithms. It asserts no time.
//!
//! Without `--bench`, which `cargo bench` gives, each ring just runs a few loops.

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

use pingpong::{Limit, Rings, TransportKind};
use statrs::distribution::{ContinuousCDF, StudentsT};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// About how long one run takes.
const RUN_NS: f64 = 0.25e9;

/// The orders in which a round's three runs are made, in turn.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
    [0, 2, 1],
    [2, 0, 1],
    [1, 0, 2],
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, ring)) if first == "--ring" => one_ring(ring),
        _ => compare(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The counterpart of `ring.c`, with its arguments and its output.
fn one_ring(args: &[String]) -> Outcome<()> {
    let [transport, loops, cpus @ ..] = args else {
        return Err("--ring TRANSPORT LOOPS CPU CPU...".into());
    };
    let cpus: Vec<u32> = cpus
        .iter()
        .map(|cpu| cpu.parse())
        .collect::<Result<_, _>>()?;
    let results = Rings::builder()
        .ring(cpus)
        .transport(transport.parse()?)
        .limit(Limit::Loops(loops.parse()?))
        .build()?
        .run()?;
    for ring in results {
        println!("{:.3}", ring.us_per_loop().unwrap_or(f64::NAN) * 1e3);
    }
    Ok(())
}

fn compare(args: &[String]) -> Outcome<()> {
    let value_of = |option: &str| {
        let at = args.iter().position(|arg| arg == option)?;
        args.get(at + 1)
    };
    let pairs: usize = match value_of("--pairs") {
        Some(pairs) => pairs
            .parse()
            .map_err(|error| format!("--pairs {pairs}: {error}"))?,
        None => 20,
    };
    let has = |option: &str| args.iter().any(|arg| arg == option);
    let for_real = has("--bench") && !has("--test");
    if pairs < 2 {
        return Err("--pairs: an interval needs at least 2".into());
    }

    let folder = tempfile::tempdir()?;
    let c_ring = folder.path().join("ring");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ring.c");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-pthread", "-o"]).arg(&c_ring).arg(source);
    match cc.status() {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("cc could not compile ring.c: {status}").into()),
        Err(error) if !for_real => {
            println!("ring_vs_c: not run, since there is no C compiler (cc: {error})");
            return Ok(());
        }
        Err(error) => {
            let remedy = "install a C compiler, e.g. apt-get install gcc libc6-dev";
            return Err(format!("running cc: {error}; {remedy}").into());
        }
    }

    let allowed: Vec<u32> = pingpong::allowed_cpus()?.iter().collect();
    let one = *allowed.first().ok_or("no CPU is allowed")?;
    let mut places = vec![
        (TransportKind::Pipe, vec![one, one]),
        (TransportKind::Futex, vec![one, one]),
    ];
    match allowed[..] {
        [a, b, ..] => {
            let across = TransportKind::ALL.iter().map(|kind| (*kind, vec![a, b]));
            places.extend(across);
        }
        _ => println!("only one CPU is allowed: nothing across CPUs"),
    }

    let own_ring = std::env::current_exe()?;
    println!(
        "{:6} {:>7} {:>9} {:>9}  {:30}  noise: C/C",
        "ring", "CPUs", "loops", "C ns/loop", "crate/C"
    );
    for (transport, cpus) in places {
        let run = |who: usize, loops: u64| -> Outcome<f64> {
            let mut command = Command::new(if who == 1 { &own_ring } else { &c_ring });
            if who == 1 {
                command.arg("--ring");
            }
            command.arg(transport.name()).arg(loops.to_string());
            command.args(cpus.iter().map(u32::to_string));
            ns_per_loop(&mut command)
        };
        let label = cpus
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(",");
        if !for_real {
            println!(
                "{transport:6} {label:>7}: C {:.0} ns, crate {:.0} ns",
                run(0, 100)?,
                run(1, 100)?
            );
            continue;
        }
        let loops = ((RUN_NS / run(0, 2000)?) as u64).max(1000);
        let mut crate_to_c = Vec::new();
        let mut c_to_c = Vec::new();
        let mut c_ns = Vec::new();
        for order in ORDERS.iter().cycle().take(pairs) {
            let mut ns = [0.0; 3];
            for &who in order {
                ns[who] = run(who, loops)?;
            }
            crate_to_c.push((ns[1] / ns[0]).ln());
            c_to_c.push((ns[2] / ns[0]).ln());
            c_ns.push(ns[0]);
        }
        c_ns.sort_by(f64::total_cmp);
        println!(
            "{transport:6} {label:>7} {loops:>9} {:>9.1}  {:30}  {}",
            c_ns[pairs / 2],
            summary(&crate_to_c)?,
            summary(&c_to_c)?,
        );
    }
    Ok(())
}

/// What a ring program prints.
fn ns_per_loop(command: &mut Command) -> Outcome<f64> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().parse::<f64>() {
        Ok(ns) if output.status.success() && ns > 0.0 => Ok(ns),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?}: {}, {text:?}, {said:?}", output.status).into())
        }
    }
}

/// The ratio whose logarithms these are.
fn summary(logs: &[f64]) -> Outcome<String> {
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let sd = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = StudentsT::new(0.0, 1.0, n - 1.0)?.inverse_cdf(0.975) * sd / n.sqrt();
    Ok(format!(
        "{:.4} [{:.4}, {:.4}] sd {:.2} %",
        mean.exp(),
        (mean - half).exp(),
        (mean + half).exp(),
        sd * 100.0
    ))
}
