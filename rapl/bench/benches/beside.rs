//! The counters of a tree read by `rapl`, by the crates `powercap` and `rapl-energy`, and by a
//! bare `pread` of the same files, in turns.
//!
//! The tree is this machine's powercap where it has one; otherwise one is made in a mount
//! namespace of this process' own, since `rapl-energy` reads `/sys/class/powercap` and
//! nothing else. Its counters are a file of sysfs that holds a number, so that they cost what
//! sysfs costs; a real counter costs a look at its register besides.

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use hostfs::HostFs;
use rapl::{Backend, Meter, Options};

const CLASS: &str = "/sys/class/powercap";
/// A number that every machine has in sysfs.
const NUMBER: &str = "/sys/devices/system/cpu/cpu0/topology/core_id";
const INSIDE: &str = "RAPL_BENCH_INSIDE";
const ROUNDS: usize = 60;
const READINGS: u32 = 500;

fn main() -> ExitCode {
    let own = std::env::var_os(INSIDE).is_some();
    if own {
        make_tree(Path::new(CLASS));
    } else if !Path::new(CLASS)
        .join("intel-rapl/intel-rapl:0/energy_uj")
        .exists()
    {
        return in_a_namespace();
    }
    println!(
        "tree: {}",
        if own {
            "made for this run, of sysfs files"
        } else {
            "this machine's"
        }
    );
    compare();
    ExitCode::SUCCESS
}

fn in_a_namespace() -> ExitCode {
    let this = std::env::current_exe().expect("this program's path");
    let status = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t tmpfs tmpfs /sys/class && exec \"$0\"")
        .arg(this)
        .env(INSIDE, "1")
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        other => {
            eprintln!("no powercap here, and no mount namespace to make one in: {other:?}");
            ExitCode::FAILURE
        }
    }
}

/// Two packages with two zones each, nested as the kernel's devices are, and linked flat.
fn make_tree(class: &Path) {
    for package in 0..2 {
        let socket = class.join(format!("intel-rapl/intel-rapl:{package}"));
        let zones = [
            (socket.clone(), format!("package-{package}")),
            (
                socket.join(format!("intel-rapl:{package}:0")),
                "core".into(),
            ),
            (
                socket.join(format!("intel-rapl:{package}:1")),
                "dram".into(),
            ),
        ];
        for (zone, name) in zones {
            fs::create_dir_all(&zone).expect("a folder");
            for (file, text) in [
                ("name", name.as_str()),
                ("enabled", "1"),
                ("energy_uj", "123456789012"),
                ("max_energy_range_uj", "262143328850"),
            ] {
                fs::write(zone.join(file), format!("{text}\n")).expect("a file");
            }
            let counter = zone.join("energy_uj");
            let bound = Command::new("mount")
                .arg("--bind")
                .arg(NUMBER)
                .arg(counter)
                .status();
            assert!(
                bound.is_ok_and(|status| status.success()),
                "mount --bind {NUMBER}"
            );
        }
    }
}

fn compare() {
    let fs = HostFs::live();
    let options = Options::default().backend(Backend::Powercap);
    let mut meter = Meter::open_with(&fs, options).expect("zones");
    let mut reading = meter.read();
    let zones = meter.domains().len();
    let files: Vec<File> = meter
        .domains()
        .iter()
        .map(|domain| File::open(fs.full_path(domain.path.join("energy_uj"))).expect("a counter"))
        .collect();
    let other = powercap::PowerCap::try_from(PathBuf::from(CLASS)).expect("powercap's zones");
    let energy = rapl_energy::Rapl::new(true).expect("rapl-energy's zones");

    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        times[0].push(time(|| {
            for file in &files {
                let mut buffer = [0; 64];
                let _ = black_box(file.read_at(&mut buffer, 0));
                black_box(buffer);
            }
        }));
        times[1].push(time(|| meter.read_into(black_box(&mut reading))));
        times[2].push(time(|| {
            for socket in other.intel_rapl.sockets.values() {
                let _ = black_box(socket.energy());
                for domain in socket.domains.values() {
                    let _ = black_box(domain.energy());
                }
            }
        }));
        times[3].push(time(|| {
            black_box(energy.elapsed());
        }));
    }
    let [bare, ours, powercap, rapl_energy] = times.map(median);
    println!("{zones} zones, ns a reading of all:");
    for (name, ns) in [
        ("pread", bare),
        ("rapl", ours),
        ("powercap", powercap),
        ("rapl-energy", rapl_energy),
    ] {
        println!(
            "  {name:<12} {ns:>8.0}   {:.2} times pread, {:.2} times rapl",
            ns / bare,
            ns / ours
        );
    }
}

/// Nanoseconds of one reading.
fn time(mut reading: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..READINGS {
        reading();
    }
    start.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
