//! The main command from its start to its report, with power that is known.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use hostfs::HostFs;
use irqaffinity::{CpuSet, Irq};
use serde_json::Value;
use suites::{EndOnDrop, Module, near};

/// Packages and memory of both sockets as the module has them: 20 + 3 + 10 + 2.
const WATTS: f64 = 35.0;

fn ab(name: &str, arguments: &[&str]) -> Value {
    let folder = format!("/tmp/{name}");
    let output = Command::new("/bin/ab")
        .args(arguments)
        .args(["--json", "--out", &folder])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "ab/1");
    let saved = fs::read(format!("{folder}/result.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&saved).unwrap(), report);
    let page = fs::read_to_string(format!("{folder}/report.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("</html>"),
        "{} bytes",
        page.len()
    );
    assert!(
        fs::read_to_string(format!("{folder}/effects.svg"))
            .unwrap()
            .contains("<svg")
    );
    report
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
}

/// The comparison of a variant by that metric, of all rings together.
fn comparison<'a>(report: &'a Value, variant: &str, metric: &str) -> &'a Value {
    list(&report["comparisons"])
        .iter()
        .find(|c| c["variant"] == variant && c["metric"] == metric && c["ring"].is_null())
        .unwrap_or_else(|| panic!("no {metric} of {variant}: {}", report["comparisons"]))
}

fn affinities() -> Vec<(u32, CpuSet)> {
    let irqs = Irq::read_all(&HostFs::live()).unwrap();
    irqs.into_iter()
        .map(|irq| (irq.irq, irq.affinity))
        .collect()
}

/// E1, E2 and E3: irqbalance off, on and saving power, with watts and idle states over time.
#[test]
fn irqbalance_is_compared_with_energy_and_idle_states_over_time() {
    let _energy = Module::load("testbed_energy", &[]);
    let _idle = Module::load("testbed_idle", &[]);
    let before = affinities();
    let report = ab(
        "irqbalance",
        &[
            "--variant=off=irqbalance:off",
            "--variant=on=irqbalance:on:interval=1",
            "--variant=saving=irqbalance:on:powerthresh=2:interval=1",
            "--rings=3",
            "--blocks=3",
            "--seconds=1",
            "--sample=0.5",
            "--lead=2",
            "--tail=1",
            "--seed=1",
        ],
    );
    assert_eq!(affinities(), before);
    assert_eq!(report["ending"], "complete");
    assert_eq!(report["blocks_done"], 3);
    assert_eq!(list(&report["left_out"]), [] as [Value; 0]);
    assert_eq!(list(&report["warnings"]), [] as [Value; 0]);
    let names: Vec<&Value> = list(&report["variants"])
        .iter()
        .map(|v| &v["name"])
        .collect();
    assert_eq!(names, ["off", "on", "saving"]);
    for variant in list(&report["variants"]) {
        assert!(near(number(&variant["watts"]), WATTS, 1.0), "{variant}");
        assert!(variant["energy_unavailable"].is_null());
        assert_eq!(list(&variant["rings"]).len(), 3);
        for ring in list(&variant["rings"]) {
            assert!(number(&ring["us_per_loop"]) > 0.0, "{variant}");
        }
        let states: Vec<&Value> = list(&variant["idle"]).iter().map(|s| &s["name"]).collect();
        assert_eq!(states, ["POLL", "C1", "C1E", "C6"]);
        let entries = list(&variant["idle"])
            .iter()
            .map(|s| number(&s["usage_per_s"]));
        assert!(entries.sum::<f64>() > 0.0, "{variant}");
    }
    for run in list(&report["runs"]) {
        let seconds = number(&run["end_s"]) - number(&run["start_s"]);
        assert!(
            near(number(&run["energy_j"]), WATTS * seconds, 1.0),
            "{run}"
        );
    }
    for variant in ["on", "saving"] {
        for metric in ["us_per_loop", "energy_j"] {
            let verdict = &comparison(&report, variant, metric)["verdict"];
            assert!(verdict.is_string(), "{variant}, {metric}: {verdict}");
        }
    }
    // The time line goes from the lead to the tail without a gap.
    let samples = list(&report["samples"]);
    assert!(samples.len() > 20);
    for pair in samples.windows(2) {
        assert_eq!(pair[0]["end_s"], pair[1]["start_s"]);
    }
    let first_run = &list(&report["runs"])[0];
    assert!(number(&samples[0]["start_s"]) + 1.9 < number(&first_run["start_s"]));
    for sample in samples {
        // A reading may be held up by some milliseconds here, which a sample that was cut
        // short at a run's border feels.
        let seconds = number(&sample["end_s"]) - number(&sample["start_s"]);
        let percent = 1.0 + 100.0 * 0.003 / seconds;
        assert!(near(number(&sample["watts"]), WATTS, percent), "{sample}");
        assert_eq!(list(&sample["idle"]).len(), 4, "{sample}");
    }
}

/// The margin is far above what an emulated machine's rings differ by from themselves, so that
/// these two never fail by chance.
const WIDE: [&str; 9] = [
    "--rings=1",
    "--cpus=2,6",
    "--blocks=6",
    "--seconds=0.5",
    "--sample=0.25",
    "--lead=0.5",
    "--tail=0",
    "--margin=30%",
    "--seed=7",
];

/// Here a variant draws two thirds more, and everything draws a little more or less by chance.
#[test]
fn a_planted_effect_is_found_with_its_sign_and_size() {
    const MORE: f64 = 20.0;
    let energy = Module::load("testbed_energy", &[]);
    let _idle = Module::load("testbed_idle", &[]);
    let end = AtomicBool::new(false);
    let report = scope(|scope| {
        scope.spawn(|| {
            let fs = HostFs::live();
            let mut noise = 1_u32;
            for step in 0.. {
                if end.load(Ordering::Relaxed) {
                    break;
                }
                // Another power ten times a second, within 2 W; the variant's at once.
                if step % 10 == 0 {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                }
                let governor = fs
                    .read_text("sys/devices/system/cpu/cpuidle/current_governor")
                    .unwrap();
                let more = if governor == "ladder" { MORE } else { 0.0 };
                let noisy = 20.0 + more + f64::from(noise >> 16) / 65_536.0 * 2.0 - 1.0;
                energy.set("package0_mw", (noisy * 1000.0) as u64);
                sleep(Duration::from_millis(10));
            }
        });
        let variants = [
            "--variant=menu=governor:menu",
            "--variant=ladder=governor:ladder",
        ];
        let _ending = EndOnDrop(&end);
        ab("planted", &[&variants[..], &WIDE].concat())
    });
    assert_eq!(
        report["noise_check"]["passed"], true,
        "{}",
        report["noise_check"]
    );
    println!("{}", report["noise_check"]);
    for metric in ["watts", "energy_j"] {
        let found = comparison(&report, "ladder", metric);
        println!("{found}");
        let effect = number(&found["effect_percent"]);
        let (low, high) = (
            number(&found["ci95_percent"][0]),
            number(&found["ci95_percent"][1]),
        );
        let planted = MORE / WATTS * 100.0;
        assert!(effect > 0.0 && low <= effect && effect <= high, "{found}");
        assert!(
            (planted - effect).abs() <= high - low,
            "{found}: planted {planted} %"
        );
        assert_eq!(found["verdict"], "worse", "{found}");
    }
}

#[test]
fn no_effect_is_found_where_none_was_planted() {
    let _energy = Module::load("testbed_energy", &[]);
    let _idle = Module::load("testbed_idle", &[]);
    let variants = ["--variant=found", "--variant=again"];
    let report = ab("null", &[&variants[..], &WIDE].concat());
    assert_eq!(
        report["noise_check"]["passed"], true,
        "{}",
        report["noise_check"]
    );
    for found in list(&report["comparisons"]) {
        let verdict = found["verdict"].as_str().unwrap();
        assert!(
            ["within-margin", "inconclusive"].contains(&verdict),
            "{found}"
        );
    }
    let watts = comparison(&report, "again", "watts");
    assert_eq!(watts["verdict"], "within-margin", "{watts}");
}
