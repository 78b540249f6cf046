//! `energy` as a user runs it.
#![allow(clippy::unwrap_used)]

mod machine;

use std::process::Stdio;
use std::time::{Duration, Instant};

use machine::{Machine, RANGE_61, assert_status, command, text, with_closed_stdout};
use serde_json::Value;

fn server() -> Machine {
    Machine::with(&[
        ("intel-rapl:0", "package-0", 1_000_000),
        ("intel-rapl:0:0", "core", 1_000_000),
        ("intel-rapl:0:1", "dram", RANGE_61),
        ("intel-rapl:1", "psys", 1_000_000),
        ("intel-rapl-mmio:0", "package-0", 1_000_000),
    ])
}

const SPENT: [(&str, u64); 5] = [
    ("intel-rapl:0", 6_000_000),
    ("intel-rapl:0:0", 4_000_000),
    // Over a wrap: 2 J and the 61 µJ by which 2^32 counts exceed the range.
    ("intel-rapl:0:1", 2_000_000),
    ("intel-rapl:1", 9_000_000),
    ("intel-rapl-mmio:0", 6_000_000),
];

#[test]
fn the_json_has_the_fixed_fields_and_known_joules() {
    let server = server();
    let script = format!("echo out && {} && exit 3", server.setting(&SPENT));
    let output = server
        .command("energy")
        .args(["--json", "--", "sh", "-c", &script])
        .output()
        .unwrap();
    assert_status(&output, 3);
    assert_eq!(text(&output.stderr), "out\n", "the command's own stdout");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "energy/1");
    assert_eq!(json["exit_status"], 3);
    assert!(json["seconds"].as_f64().unwrap() > 0.0);
    let domains: Vec<_> = json["domains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| {
            assert!(d["watts"].as_f64().unwrap() > 0.0);
            let joules = (d["joules"].as_f64().unwrap() * 1e3).round();
            (
                d["id"].as_str().unwrap(),
                d["kind"].as_str().unwrap(),
                joules,
                d["in_total"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        domains,
        [
            ("intel-rapl/package-0", "package", 5000.0, true),
            ("intel-rapl/package-0/core", "core", 3000.0, false),
            ("intel-rapl/package-0/dram", "dram", 2000.0, true),
            ("intel-rapl/psys", "psys", 8000.0, false),
            ("intel-rapl-mmio/package-0", "package", 5000.0, false),
        ]
    );
    let total = json["total_joules"].as_f64().unwrap();
    assert!((total - 7.000_061_36).abs() < 1e-6, "{total}");
}

#[test]
fn the_table_goes_to_stderr_and_the_commands_output_stays() {
    let server = server();
    let script = format!("echo out && {}", server.setting(&SPENT));
    let output = server
        .command("energy")
        .args(["--", "sh", "-c", &script])
        .output()
        .unwrap();
    assert_status(&output, 0);
    assert_eq!(text(&output.stdout), "out\n");
    let stderr = text(&output.stderr);
    for word in [
        "intel-rapl/package-0/dram",
        "packages and dram",
        "7.000",
        "exit status 0",
    ] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
}

#[test]
fn exit_statuses_are_passed_on() {
    let server = server();
    let status = |words: &[&str]| {
        let output = server
            .command("energy")
            .arg("--")
            .args(words)
            .output()
            .unwrap();
        output.status.code().unwrap()
    };
    assert_eq!(status(&["true"]), 0);
    assert_eq!(status(&["sh", "-c", "exit 42"]), 42);
    assert_eq!(status(&["sh", "-c", "kill -KILL $$"]), 137);
    assert_eq!(status(&["/no/such/command"]), 127);
    let wrong = command("energy").output().unwrap();
    assert_status(&wrong, 2);
    let wrong = command("energy")
        .args(["--backend", "magic", "true"])
        .output()
        .unwrap();
    assert_status(&wrong, 2);
    assert!(text(&wrong.stderr).contains("there are perf, powercap and msr"));
    let wrong = command("energy")
        .args(["--power-bound", "0", "true"])
        .output()
        .unwrap();
    assert_status(&wrong, 2);
    let wrong = command("energy")
        .args(["--root", "/nowhere", "true"])
        .output()
        .unwrap();
    assert_status(&wrong, 2);
}

#[test]
fn a_signal_is_handed_on_and_what_was_measured_is_shown() {
    let server = server();
    let mut child = server
        .command("energy")
        .args([
            "--json",
            "--",
            "sh",
            "-c",
            "echo started >&2; exec sleep 60",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 8];
    std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut line).unwrap();
    let start = Instant::now();
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_status(&output, 143);
    assert!(start.elapsed() < Duration::from_secs(50));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["exit_status"], 143);
}

#[test]
fn without_counters_the_command_runs_and_the_reasons_are_told() {
    let bare = Machine::with(&[]);
    let output = bare
        .command("energy")
        .args(["--json", "--", "sh", "-c", "exit 5"])
        .output()
        .unwrap();
    assert_status(&output, 5);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["total_joules"], Value::Null);
    assert_eq!(json["domains"].as_array().unwrap().len(), 0);
    assert!(
        json["energy_unavailable"]
            .as_str()
            .unwrap()
            .contains("modprobe intel_rapl_msr")
    );
    let backends = json["diagnosis"]["backends"].as_array().unwrap();
    assert_eq!(backends.len(), 3);
    let output = bare
        .command("energy")
        .args(["--", "true"])
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("no energy: ") && stderr.contains("\nmsr: "),
        "{stderr}"
    );
}

/// A total that lacks a package is none.
#[test]
fn a_package_that_is_lost_leaves_no_total() {
    let server = Machine::with(&[
        ("intel-rapl:0", "package-0", 1_000_000),
        ("intel-rapl:1", "package-1", 1_000_000),
    ]);
    let lost = format!("echo none > '{}'", server.counter("intel-rapl:1").display());
    let output = server
        .command("energy")
        .args(["--json", "--", "sh", "-c", &lost])
        .output()
        .unwrap();
    assert_status(&output, 0);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["total_joules"], Value::Null);
    assert_eq!(json["domains"][0]["joules"], 0.0);
    assert_eq!(json["domains"][1]["joules"], Value::Null);
    let why = json["energy_unavailable"].as_str().unwrap();
    assert!(
        why.contains("intel-rapl/package-1: expected a number"),
        "{why}"
    );
}

#[test]
fn a_closed_pipe_changes_no_exit_status() {
    let server = server();
    let mut energy = server.command("energy");
    energy.args(["--json", "--", "sh", "-c", "exit 9"]);
    let output = with_closed_stdout(&mut energy);
    assert_status(&output, 9);
    assert!(
        !text(&output.stderr).contains("error"),
        "{}",
        text(&output.stderr)
    );
}
