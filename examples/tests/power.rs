//! `power` as a user runs it.
#![allow(clippy::unwrap_used)]

mod machine;

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use machine::{Machine, assert_status, command, text, with_closed_stdout};
use serde_json::Value;

fn laptop() -> Machine {
    Machine::with(&[
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl:0:0", "core", 0),
    ])
}

/// Runs something while a counter advances at 20 W.
fn while_drawing<R>(machine: &Machine, work: impl FnOnce() -> R) -> R {
    let stop = AtomicBool::new(false);
    let (counter, new) = (machine.counter("intel-rapl:0"), machine.root().join("new"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                let uj = start.elapsed().as_micros() * 20;
                // Never found empty: a file of fixed width is written over in one piece.
                fs::write(&new, format!("{uj:<20}\n")).unwrap();
                let text = fs::read(&new).unwrap();
                let file = fs::OpenOptions::new().write(true).open(&counter).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, &text, 0).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let answer = work();
        stop.store(true, Ordering::Relaxed);
        answer
    })
}

#[test]
fn the_json_is_one_document_of_samples() {
    let laptop = laptop();
    let output = while_drawing(&laptop, || {
        laptop
            .command("power")
            .args(["--json", "--period", "0.2", "--seconds", "1"])
            .output()
            .unwrap()
    });
    assert_status(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "power/1");
    let samples = json["samples"].as_array().unwrap();
    assert!(
        !samples.is_empty() && samples.len() <= 6,
        "{}",
        samples.len()
    );
    let mut last = 0.0;
    for sample in samples {
        let t_s = sample["t_s"].as_f64().unwrap();
        assert!(t_s > last, "in their order");
        last = t_s;
        assert!(sample["watts"].as_f64().unwrap() >= 0.0);
        assert_eq!(sample["domain_watts"][1], 0.0);
    }
    let joules = json["total_joules"].as_f64().unwrap();
    assert!(
        joules > 0.0 && joules <= 20.0 * last + 5.0,
        "{joules} J in {last} s"
    );
}

#[test]
fn lines_come_one_by_one() {
    let laptop = laptop();
    let output = laptop
        .command("power")
        .args(["--jsonl", "--period", "0.1", "--seconds", "0.3"])
        .output()
        .unwrap();
    assert_status(&output, 0);
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(!lines.is_empty());
    assert!(lines.iter().all(|line| line["watts"] == 0.0));
}

#[test]
fn the_table_names_its_columns_and_the_chart_draws() {
    let laptop = laptop();
    let run = |more: &[&str]| {
        let mut power = laptop.command("power");
        power
            .args(["--period", "0.1", "--seconds", "0.3"])
            .args(more);
        let output = while_drawing(&laptop, || power.output().unwrap());
        assert_status(&output, 0);
        text(&output.stdout).to_owned()
    };
    let table = run(&[]);
    assert!(
        table.contains("column 3: intel-rapl/package-0\n"),
        "{table}"
    );
    assert!(run(&["--chart"]).contains('█'));
}

#[test]
fn an_interrupt_ends_it_with_what_there_is() {
    let laptop = laptop();
    let child = laptop
        .command("power")
        .args(["--json", "--period", "0.05"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_status(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!json["samples"].as_array().unwrap().is_empty());
}

#[test]
fn without_counters_the_reasons_are_told() {
    let bare = Machine::with(&[]);
    let output = bare.command("power").arg("--json").output().unwrap();
    assert_status(&output, 1);
    assert!(output.stdout.is_empty());
    let stderr = text(&output.stderr);
    for word in ["perf: ", "powercap: ", "msr: ", "error: "] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    let wrong = |args: &[&str]| assert_status(&command("power").args(args).output().unwrap(), 2);
    wrong(&["--json", "--jsonl"]);
    wrong(&["--period", "0"]);
    wrong(&["--backend", "x"]);
    wrong(&["--root", "/nowhere"]);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let laptop = laptop();
    let mut power = laptop.command("power");
    power.args(["--jsonl", "--period", "0.05", "--seconds", "30"]);
    let output = with_closed_stdout(&mut power);
    assert_status(&output, 0);
    assert_eq!(text(&output.stderr), "");
}
