//! `ab` and `restore` as a user runs them.
#![allow(clippy::unwrap_used)]

mod machine;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hostfs::HostFs;
use machine::{assert_status, command, text, with_closed_stdout};
use serde_json::Value;
use tempfile::TempDir;

/// One at a time changes the machine.
static MACHINE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Run {
    dir: TempDir,
}

impl Run {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// A short experiment that needs no privilege.
    fn ab(&self, args: &[&str]) -> Command {
        let mut ab = command("ab");
        ab.args([
            "--lead", "0", "--tail", "0", "--blocks", "2", "--loops", "200",
        ]);
        ab.arg("--out").arg(self.out()).args(args);
        ab
    }

    fn result(&self) -> Value {
        serde_json::from_slice(&fs::read(self.out().join("result.json")).unwrap()).unwrap()
    }
}

/// Everything that `ab` may change.
fn settings() -> Vec<(String, String)> {
    let fs = HostFs::live();
    let mut settings = Vec::new();
    let mut note = |path: String| {
        if let Ok(text) = fs.read_text(&path) {
            settings.push((path, text));
        }
    };
    note("sys/devices/system/cpu/cpuidle/current_governor".into());
    for irq in fs.list_numbered("proc/irq", "").unwrap_or_default() {
        note(format!("proc/irq/{irq}/smp_affinity_list"));
        note(format!("proc/irq/{irq}/effective_affinity_list"));
    }
    settings
}

/// Another governor than the one that is on, where one may be chosen.
fn other_governor() -> Option<String> {
    let fs = HostFs::live();
    let dir = "sys/devices/system/cpu/cpuidle";
    fs.check_writable(format!("{dir}/current_governor")).ok()?;
    let now = fs.read_text(format!("{dir}/current_governor")).ok()?;
    let there = fs.read_text(format!("{dir}/available_governors")).ok()?;
    there
        .split_whitespace()
        .find(|name| *name != now)
        .map(str::to_owned)
}

#[test]
fn the_json_is_one_document_with_the_fixed_fields() {
    let run = Run::new();
    let output = run
        .ab(&["--variant", "a", "--variant", "b", "--json"])
        .output()
        .unwrap();
    assert_status(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "ab/1");
    assert_eq!(json["variants"][0]["name"], "a");
    assert!(
        json["variants"][1]["rings"][0]["us_per_loop"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let variant = json["variants"][0].as_object().unwrap();
    assert_ne!(
        variant["energy_j"].is_null(),
        variant["energy_unavailable"].is_null()
    );
    let comparison = json["comparisons"][0].as_object().unwrap();
    for field in [
        "variant",
        "baseline",
        "metric",
        "ring",
        "primary",
        "effect_percent",
        "ci95_percent",
        "verdict",
        "detectable_percent",
    ] {
        assert!(comparison.contains_key(field), "{field}");
    }
    assert_eq!(comparison["primary"], true);
    assert_eq!(comparison["ring"], Value::Null, "pooled");
    assert_eq!(comparison["ci95_percent"].as_array().unwrap().len(), 2);
    let noise = json["noise_check"].as_object().unwrap();
    for field in ["effect_percent", "ci95_percent", "passed"] {
        assert!(noise.contains_key(field), "{field}");
    }
    assert_eq!(json, run.result());
}

#[test]
fn the_report_needs_nothing_else() {
    let run = Run::new();
    assert_status(
        &run.ab(&["--variant", "<b>&\"x\"", "--variant", "b"])
            .output()
            .unwrap(),
        0,
    );
    let html = fs::read_to_string(run.out().join("report.html")).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>"));
    assert!(!html.contains("<b>"), "a name is text");
    // Names of XML namespaces are no addresses to fetch from.
    let html = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["http:", "https:", "<script", "<link", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    let (machine, result) = (html.find("Machine").unwrap(), html.find("Result").unwrap());
    assert!(machine < result, "the machine comes first");
    let svg = fs::read_to_string(run.out().join("effects.svg")).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains("currentColor"));
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_there_is() {
    let wrong = |args: &[&str], expected: &str| {
        let run = Run::new();
        let output = run.ab(args).output().unwrap();
        assert_status(&output, 2);
        let stderr = text(&output.stderr);
        assert!(
            stderr.contains("error:") && stderr.contains(expected),
            "{stderr}"
        );
        assert!(output.stdout.is_empty());
        assert!(!run.out().join("result.json").exists());
    };
    wrong(&["--variant", "a=turbo:off"], "idle-off:STATE");
    wrong(
        &["--variant", "a", "--variant", "a"],
        "two variants called \"a\"",
    );
    wrong(&["--variant", "=governor:menu"], "has no name");
    wrong(&["--transport", "smoke"], "pipe");
    wrong(&["--variant", "a", "--cpus", "0,4000"], "CPU 4000");
    wrong(&["--cpus", "0-x"], "expected CPUs such as 0-3,8");
    wrong(&["--blocks", "0"], "--blocks");
    wrong(&["--stops", "1"], "--stops");
    wrong(
        &["--variant", "a", "--rings", "100000", "--stops", "100000"],
        "at most 10000 threads",
    );
    wrong(&["--margin=-1%"], "--margin");
    wrong(&["--seconds", "1"], "cannot be used with");
    wrong(&["--seconds", "0"], "at least a millisecond");
    wrong(&["--root", "/nowhere"], "/nowhere: not there");
    wrong(
        &["--variant", "a", "--transport", "spin", "--cpus", "0"],
        "spin on CPU 0",
    );
    let idle = HostFs::live().exists("sys/devices/system/cpu/cpu0/cpuidle");
    if idle {
        wrong(
            &["--variant", "a=idle-off:C99"],
            "unknown idle-off:C99: there are",
        );
        wrong(
            &["--variant", "a=governor:none"],
            "unknown governor:none: there are",
        );
    }
}

#[test]
fn a_captured_tree_is_not_this_machine() {
    let tree = tempfile::tempdir().unwrap();
    let output = Run::new()
        .ab(&["--root", tree.path().to_str().unwrap()])
        .output()
        .unwrap();
    assert_status(&output, 2);
    assert!(text(&output.stderr).contains("is not this machine"));
}

#[test]
fn results_are_not_overwritten_and_a_folder_that_cannot_be_is_found_out_first() {
    let run = Run::new();
    let args = ["--variant", "a", "--variant", "b"];
    assert_status(&run.ab(&args).output().unwrap(), 0);
    let before = run.result();
    let output = run.ab(&args).output().unwrap();
    assert_status(&output, 2);
    assert!(text(&output.stderr).contains("holds results already"));
    assert_eq!(run.result(), before);

    let run = Run::new();
    fs::write(run.out(), "a file").unwrap();
    let start = Instant::now();
    let mut ab = command("ab");
    let output = ab
        .args(["--seconds", "30", "--out"])
        .arg(run.out())
        .output()
        .unwrap();
    assert_status(&output, 1);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "before anything ran"
    );
    assert!(text(&output.stderr).contains("choose another folder with --out"));
}

#[test]
fn a_closed_pipe_ends_it_quietly_after_the_results_are_saved() {
    let run = Run::new();
    let mut ab = run.ab(&["--variant", "a", "--variant", "b"]);
    let output = with_closed_stdout(&mut ab);
    assert_status(&output, 0);
    assert!(
        !text(&output.stderr).contains("error"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(run.result()["ending"], "complete");
}

#[test]
fn a_full_stdout_or_a_full_disk_does_not_cost_the_other() {
    let run = Run::new();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut ab = run.ab(&["--variant", "a", "--variant", "b"]);
    let output = ab.stdout(full).output().unwrap();
    assert_status(&output, 1);
    assert_eq!(run.result()["ending"], "complete");

    // A folder that goes away meanwhile can't be written to, as on a full disk.
    let run = Run::new();
    let mut ab = command("ab");
    ab.args([
        "--variant",
        "a",
        "--variant",
        "b",
        "--blocks",
        "1",
        "--seconds",
        "0.5",
    ]);
    ab.arg("--out")
        .arg(run.out())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = ab.spawn().unwrap();
    wait_until(|| run.out().exists());
    std::thread::sleep(Duration::from_millis(200));
    fs::remove_dir_all(run.out()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_status(&output, 1);
    assert!(text(&output.stderr).contains("result.json"));
    assert!(
        text(&output.stdout).contains("µs per loop"),
        "the table all the same"
    );
}

#[test]
fn one_variant_is_compared_with_itself() {
    let run = Run::new();
    assert_status(&run.ab(&["--variant", "only"]).output().unwrap(), 0);
    let json = run.result();
    assert_eq!(json["comparisons"][0]["variant"], "only, again");
    assert_eq!(json["comparisons"][0]["baseline"], "only");
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let order = |seed: &str| -> Vec<String> {
        let run = Run::new();
        let args = [
            "--variant",
            "a",
            "--variant",
            "b",
            "--blocks",
            "6",
            "--seed",
            seed,
        ];
        let mut ab = command("ab");
        ab.args(["--lead", "0", "--tail", "0", "--loops", "50", "--out"])
            .arg(run.out());
        assert_status(&ab.args(args).output().unwrap(), 0);
        let json = run.result();
        let runs = json["runs"].as_array().unwrap().clone();
        runs.iter()
            .map(|run| format!("{}{}", run["variant"], run["duplicate"]))
            .collect()
    };
    assert_eq!(order("7"), order("7"));
    assert_ne!(order("7"), order("8"));
}

#[test]
fn a_governor_is_compared_and_put_back() {
    let _alone = alone();
    let Some(other) = other_governor() else {
        println!("no governor may be chosen here: nothing to put back");
        return;
    };
    let before = settings();
    let run = Run::new();
    let variant = format!("other=governor:{other}");
    assert_status(
        &run.ab(&["--variant", "found", "--variant", &variant])
            .output()
            .unwrap(),
        0,
    );
    assert_eq!(run.result()["blocks_done"], 2);
    assert_eq!(settings(), before);
    assert!(!records_in(Path::new("/run/wakecost")));
}

#[test]
fn an_interrupt_keeps_finished_blocks_and_puts_everything_back() {
    let _alone = alone();
    let before = settings();
    let run = Run::new();
    let mut ab = command("ab");
    ab.args([
        "--blocks",
        "100000",
        "--loops",
        "500",
        "--lead",
        "0",
        "--variant",
        "found",
    ]);
    if let Some(other) = other_governor() {
        ab.arg("--variant").arg(format!("other=governor:{other}"));
    }
    ab.arg("--out")
        .arg(run.out())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = ab.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_status(&output, 1);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("error: interrupted; "), "{stderr}");
    assert!(stderr.contains("every setting was put back"), "{stderr}");
    let json = run.result();
    assert_eq!(json["ending"], "interrupted");
    let blocks = json["blocks_done"].as_u64().unwrap();
    assert!(blocks >= 1);
    let per_block = json["variants"].as_array().unwrap().len() as u64 + 1;
    assert_eq!(
        json["runs"].as_array().unwrap().len() as u64,
        blocks * per_block
    );
    assert!(run.out().join("report.html").exists());
    assert_eq!(settings(), before);
}

#[test]
fn after_a_kill_restore_puts_everything_back() {
    let _alone = alone();
    let Some(other) = other_governor() else {
        println!("no governor may be chosen here: nothing to put back");
        return;
    };
    let before = settings();
    let run = Run::new();
    // The baseline changes the governor too, so that it is changed most of the time.
    let variant = format!("a=governor:{other}");
    let mut ab = command("ab");
    ab.args([
        "--blocks",
        "100000",
        "--seconds",
        "5",
        "--lead",
        "0",
        "--variant",
        &variant,
    ]);
    ab.arg("--out")
        .arg(run.out())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = ab.spawn().unwrap();
    let records = Path::new("/run/wakecost");
    wait_until(|| records_in(records));
    signal(child.id(), "KILL");
    child.wait().unwrap();
    assert!(records_in(records), "the record outlives the kill");

    let refused = Run::new().ab(&["--variant", &variant]).output().unwrap();
    assert_status(&refused, 1);
    assert!(text(&refused.stderr).contains("put them back with `restore --dir /run/wakecost`"));

    let restored = command("restore").output().unwrap();
    assert_status(&restored, 0);
    assert!(text(&restored.stdout).contains("left by `ab`"));
    assert_eq!(settings(), before);
    let again = command("restore").output().unwrap();
    assert_status(&again, 0);
    assert!(text(&again.stdout).contains("nothing to put back"));
}

#[test]
fn without_privilege_the_run_goes_on_with_what_is_allowed() {
    let run = Run::new();
    let mut ab = command("ab");
    let program = run.dir.path().join("ab");
    fs::copy(ab.get_program(), &program).unwrap();
    let root = HostFs::live()
        .check_writable("proc/irq/default_smp_affinity")
        .is_ok();
    ab = Command::new(&program);
    if root {
        fs::create_dir(run.out()).unwrap();
        for path in [run.dir.path(), &run.out()] {
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
        }
        ab.uid(65534).gid(65534);
    }
    ab.current_dir(run.dir.path());
    ab.args([
        "--blocks", "2", "--loops", "200", "--lead", "0", "--tail", "0", "--out",
    ]);
    let output = ab.arg(run.out()).output().unwrap();
    assert_status(&output, 0);
    let json = run.result();
    let left_out = json["left_out"].as_array().unwrap();
    let on = left_out.iter().find(|l| l["what"] == "variant on").unwrap();
    let why = on["why"].as_str().unwrap();
    assert!(why.contains("root"), "how to get it: {why}");
    assert_eq!(json["variants"][1]["name"], "off, again");
    assert_eq!(json["blocks_done"], 2);
}

fn records_in(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|list| {
        list.flatten().any(|entry| {
            let name = entry.file_name();
            Path::new(&name).extension().is_some_and(|e| e == "json")
        })
    })
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "never happened");
        std::thread::sleep(Duration::from_millis(10));
    }
}
