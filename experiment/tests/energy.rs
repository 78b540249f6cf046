//! The whole experiment on a machine whose energy counters a thread advances.
#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use experiment::{Ending, Experiment, Host, Plan, Results, RingPlan, Until, Variant};
use hostfs::{HostFs, Restore};
use pingpong::TransportKind;

/// A unit of 50 nJ: the counter wraps every 214.7 J, floor((2^32 - 1)·50/1000) µJ.
const RANGE_UJ: u64 = 214_748_364;
/// 2^32 · 50 / 1000 µJ.
const MODULUS_UJ: f64 = 214_748_364.8;

/// A package that draws a constant power, as a powercap zone in a tree.
struct Package {
    dir: tempfile::TempDir,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Package {
    fn drawing(watts: f64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let zone = dir.path().join("sys/class/powercap/intel-rapl:0");
        fs::create_dir_all(&zone).unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::write(zone.join("name"), "package-0\n").unwrap();
        fs::write(zone.join("max_energy_range_uj"), format!("{RANGE_UJ}\n")).unwrap();
        write_energy(&zone, 0.0);
        let ended = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                let start = Instant::now();
                while !ended.load(Ordering::Relaxed) {
                    write_energy(&zone, watts * start.elapsed().as_secs_f64() * 1e6);
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Self {
            dir,
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Always of one length, so that a reader never sees half a number.
fn write_energy(zone: &Path, uj: f64) {
    let path: PathBuf = zone.join("energy_uj");
    let text = format!("{:020}\n", (uj % MODULUS_UJ) as u64);
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).open(path);
    file.unwrap().write_all_at(text.as_bytes(), 0).unwrap();
}

fn run(root: &Path, seconds: f64) -> Results {
    let variants = vec![Variant::as_found("once"), Variant::as_found("again")];
    let cpu = pingpong::allowed_cpus().unwrap().min().unwrap();
    let until = Until::Seconds(seconds);
    let ring = RingPlan::new(vec![vec![cpu, cpu]], TransportKind::Pipe, 0, until);
    let mut plan = Plan::new(variants, ring, 3);
    plan.blocks = 2;
    plan.sample = Duration::from_millis(50);
    plan.settle = Duration::ZERO;
    (plan.lead, plan.tail) = (Duration::from_millis(250), Duration::from_millis(250));
    let host = Host::new(Restore::new(&HostFs::at(root).unwrap()));
    let stop = Arc::new(AtomicBool::new(false));
    let experiment = Experiment::new(host, plan, Vec::new(), Vec::new()).unwrap();
    experiment.run(&stop, |_| {}).unwrap()
}

#[test]
fn joules_are_watts_times_seconds_over_several_wraps() {
    // 500 W: a wrap every 0.43 s, at least one in every run of 0.5 s, and two never fit
    // between samples 0.05 s apart.
    const WATTS: f64 = 500.0;
    let package = Package::drawing(WATTS);
    let results = run(package.dir.path(), 0.5);
    assert_eq!(results.ending, Ending::Complete);
    assert_eq!(results.runs.len(), 6);
    for run in &results.runs {
        let seconds = run.end_s - run.start_s;
        assert!(seconds >= 0.5, "{run:?}");
        let (joules, expected) = (run.energy_j.unwrap(), WATTS * seconds);
        // The counter is 1 ms behind at most, and a loaded machine holds the thread up.
        assert!(
            (joules / expected - 1.0).abs() < 0.1,
            "{joules} J of {expected} J"
        );
    }
    for variant in &results.variants {
        assert!(variant.energy_j.unwrap() > 0.9 * WATTS * 0.5);
        assert!((variant.watts.unwrap() / WATTS - 1.0).abs() < 0.1);
        assert_eq!(variant.energy_unavailable, None);
    }
}

#[test]
fn samples_are_cut_at_the_borders_of_runs_and_cover_lead_and_tail() {
    let package = Package::drawing(50.0);
    let results = run(package.dir.path(), 0.3);
    let samples = &results.samples;
    assert!(
        samples
            .windows(2)
            .all(|pair| pair[0].end_s == pair[1].start_s)
    );
    let (first, last) = (&results.runs[0], results.runs.last().unwrap());
    assert!(first.start_s >= 0.25, "the lead");
    assert!(
        samples.last().unwrap().end_s - last.end_s >= 0.25,
        "the tail"
    );
    for run in &results.runs {
        let during = &samples[run.first_sample..run.end_sample];
        assert_eq!(during[0].start_s, run.start_s);
        assert_eq!(during.last().unwrap().end_s, run.end_s);
        let ring = run.rings[0].elapsed_s;
        assert!(ring <= run.end_s - run.start_s);
    }
    assert!(
        results
            .runs
            .windows(2)
            .all(|pair| pair[0].end_s <= pair[1].start_s)
    );
}

#[test]
fn what_the_machine_lacks_is_none_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let results = run(dir.path(), 0.05);
    let whats: Vec<&str> = results.left_out.iter().map(|l| l.what.as_str()).collect();
    assert_eq!(whats, ["energy", "idle states", "interrupts"]);
    for variant in &results.variants {
        assert_eq!(variant.energy_j, None);
        assert!(
            variant
                .energy_unavailable
                .as_ref()
                .unwrap()
                .contains("powercap")
        );
        assert!(variant.rings[0].us_per_loop.unwrap() > 0.0);
    }
    let json = serde_json::to_value(&results).unwrap();
    assert_eq!(json["variants"][0]["energy_j"], serde_json::Value::Null);
    assert_eq!(json["schema"], "ab/1");
    let again: Results = serde_json::from_value(json).unwrap();
    assert_eq!(again, results);
}
