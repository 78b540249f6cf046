//! What a snapshot costs beside a bare loop of `pread` over the same open files, and beside
//! opening each file anew.
//!
//! The ratios are of interleaved rounds, so that a slower phase of the machine meets all
//! three alike. On this machine's own idle states, or on a tree where it has none.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cpuidle::CpuIdle;
use criterion::Criterion;
use hostfs::HostFs;

const COUNTERS: [&str; 5] = ["usage", "time", "above", "below", "rejected"];
const ROUNDS: usize = 400;
const CALLS: u32 = 20;

/// The files that a snapshot reads, but for the list of online CPUs.
fn files(fs: &HostFs, idle: &CpuIdle) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for cpu in idle.cpus() {
        for state in &cpu.states {
            let dir = format!(
                "sys/devices/system/cpu/cpu{}/cpuidle/state{}",
                cpu.cpu, state.index
            );
            let paths = COUNTERS.map(|counter| fs.full_path(&dir).join(counter));
            files.extend(paths.into_iter().filter(|path| path.exists()));
        }
    }
    files
}

fn bare(files: &[File]) {
    let mut buffer = [0; 64];
    for file in files {
        black_box(file.read_at(&mut buffer, 0).unwrap());
        black_box(&buffer);
    }
}

fn anew(paths: &[PathBuf]) {
    let mut buffer = [0; 64];
    for path in paths {
        let mut file = File::open(path).unwrap();
        black_box(file.read(&mut buffer).unwrap());
        black_box(&buffer);
    }
}

fn time(mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..CALLS {
        work();
    }
    start.elapsed() / CALLS
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn tree(root: &Path) -> HostFs {
    let cpus = root.join("sys/devices/system/cpu");
    for cpu in 0..8 {
        for state in 0..4 {
            let dir = cpus.join(format!("cpu{cpu}/cpuidle/state{state}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("name"), format!("C{state}\n")).unwrap();
            for counter in COUNTERS {
                fs::write(dir.join(counter), "1234567890\n").unwrap();
            }
        }
    }
    fs::write(cpus.join("online"), "0-7\n").unwrap();
    HostFs::at(root).unwrap()
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let live = HostFs::live();
    let (fs, idle) = match CpuIdle::open(&live) {
        Ok(idle) => (live, idle),
        Err(why) => {
            println!("on a tree, since: {why}");
            let fs = tree(dir.path());
            let idle = CpuIdle::open(&fs).unwrap();
            (fs, idle)
        }
    };
    let paths = files(&fs, &idle);
    let open: Vec<File> = paths.iter().map(|path| File::open(path).unwrap()).collect();
    let mut reader = idle.snapshotter().unwrap();
    let mut snapshot = reader.snapshot();

    let (mut to_bare, mut to_anew) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Whatever comes first in a round must not always be the same.
        let (ours, pread) = if round % 2 == 0 {
            let ours = time(|| reader.snapshot_into(&mut snapshot));
            (ours, time(|| bare(&open)))
        } else {
            let pread = time(|| bare(&open));
            (time(|| reader.snapshot_into(&mut snapshot)), pread)
        };
        let opened = time(|| anew(&paths));
        to_bare.push(ours.as_secs_f64() / pread.as_secs_f64());
        to_anew.push(opened.as_secs_f64() / ours.as_secs_f64());
    }
    println!(
        "{} files, median of {ROUNDS} interleaved rounds: a snapshot takes {:.3} times a bare \
         pread loop; opening each file anew takes {:.2} times a snapshot",
        paths.len(),
        median(to_bare),
        median(to_anew)
    );

    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    let mut group = criterion.benchmark_group("snapshot");
    group.bench_function("snapshot_into", |b| {
        b.iter(|| reader.snapshot_into(&mut snapshot));
    });
    group.bench_function("bare pread", |b| b.iter(|| bare(&open)));
    group.bench_function("open anew", |b| b.iter(|| anew(&paths)));
    group.finish();
    criterion.final_summary();
}
