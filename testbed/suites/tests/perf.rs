//! `rapl` by perf: known watts, a CPU that goes away, and what a user without privilege is told.
#![allow(clippy::unwrap_used)]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hostfs::HostFs;
use rapl::{Backend, CrossCheck, Energy, Joules, Meter, Options, Outcome, Sampler, Watts};
use suites::{Module, near, set_online};

const SECOND: Duration = Duration::from_secs(1);

/// Unloads it when the kernel has let go of the events.
struct Loaded(Module);

impl Loaded {
    fn load(parameters: &[&str]) -> Self {
        Self(Module::load("testbed_energy", parameters))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let end = Instant::now() + 5 * SECOND;
        while !self.0.unload() && Instant::now() < end {
            sleep(SECOND / 10);
        }
    }
}

fn watts(energy: &Energy, id: &str) -> f64 {
    energy.get(id).unwrap().outcome.watts().unwrap().0
}

#[test]
fn perf_is_preferred_and_its_joules_are_watts_times_seconds() {
    let module = Loaded::load(&["package0_mw=20000", "package1_mw=10000"]);
    let mut meter = Meter::open(&HostFs::live()).unwrap();
    let ids: Vec<&str> = meter.domains().iter().map(|d| d.id.as_str()).collect();
    let expected = ["core", "dram", "pkg"];
    assert_eq!(ids.len(), 2 * expected.len(), "{ids:?}");
    for domain in meter.domains() {
        assert_eq!(domain.backend, Backend::Perf, "{}", domain.id);
        assert_eq!(
            domain.resolution,
            Some(Joules(1.0 / 16_384.0)),
            "{}",
            domain.id
        );
    }
    let (_, energy) = meter.measure(|| sleep(5 * SECOND));
    for (id, expected) in [
        ("power/package-0", 20.0),
        ("power/package-0/core", 12.0),
        ("power/package-0/dram", 3.0),
        ("power/package-1", 10.0),
        ("power/package-1/core", 6.0),
        ("power/package-1/dram", 2.0),
    ] {
        let got = watts(&energy, id);
        println!(
            "{id}: {got} W of {expected} W, {}",
            energy.get(id).unwrap().outcome
        );
        assert!(near(got, expected, 0.5), "{id}: {got}");
    }
    assert!(near(energy.total_watts().unwrap().0, 35.0, 0.5));
    module.0.set("package0_mw", 60_000);
    let (_, energy) = meter.measure(|| sleep(SECOND));
    let got = watts(&energy, "power/package-0");
    assert!(near(got, 60.0, 0.5), "{got}");
    drop(meter);
}

#[test]
fn both_backends_agree() {
    let _module = Loaded::load(&["package0_mw=20000"]);
    let fs = HostFs::live();
    let options = Options::default();
    let mut check = CrossCheck::open(&fs, &options, Backend::Perf, Backend::Powercap, 0.5).unwrap();
    let (_, compared) = check.measure(|| sleep(3 * SECOND));
    assert_eq!(compared.len(), 6);
    for domain in compared {
        println!("{domain}");
        assert_eq!(domain.agrees, Some(true), "{domain}");
    }
}

#[test]
fn a_series_over_many_wraps_with_watts_changed_midway() {
    // 2^32 counts of 1 nJ are 4.29 J: at 40 W a wrap in 107 ms.
    let module = Loaded::load(&["unit_nj=1", "package0_mw=40000"]);
    for backend in [Backend::Powercap, Backend::Perf] {
        module.0.set("package0_mw", 40_000);
        let options = Options::default()
            .power_bound(Watts(100.0))
            .backend(backend)
            .domains(["package"]);
        let meter = Meter::open_with(&HostFs::live(), options).unwrap();
        let at = meter
            .domains()
            .iter()
            .position(|d| d.package == Some(0))
            .unwrap();
        let sampler = Sampler::start(meter, SECOND).unwrap();
        sampler.mark();
        sleep(4 * SECOND);
        sampler.mark();
        let before = sampler.series();
        module.0.set("package0_mw", 80_000);
        sleep(4 * SECOND);
        let series = sampler.stop();
        let (first, all) = (&before.totals[at], &series.totals[at]);
        let slow = first.joules.0 / first.time.as_secs_f64();
        let fast = (all.joules.0 - first.joules.0) / (all.time - first.time).as_secs_f64();
        println!(
            "{backend}: {slow} W, then {fast} W, {} wraps, gaps {:?}",
            all.wraps, series.gaps
        );
        assert_eq!(all.missing, 0, "{:?}", all.last_missing);
        assert!(near(slow, 40.0, 0.5), "{backend}: {slow}");
        assert!(near(fast, 80.0, 0.5), "{backend}: {fast}");
    }
}

#[test]
fn an_event_whose_cpu_goes_away_is_opened_anew_on_another_one() {
    let _module = Loaded::load(&["package1_mw=10000"]);
    let options = Options::default().domains(["power/package-1"]);
    let mut meter = Meter::open_with(&HostFs::live(), options).unwrap();
    let (_, energy) = meter.measure(|| sleep(SECOND));
    assert!(near(watts(&energy, "power/package-1"), 10.0, 0.5));
    let before = meter.read();
    set_online(4, false);
    sleep(SECOND / 2);
    let after = meter.read();
    let domain = &after.since(&before).domains[0];
    println!("{}", domain.outcome);
    assert_eq!(domain.outcome, Outcome::Reopened);
    assert!(domain.reopened);
    sleep(SECOND);
    let energy = meter.read().since(&after);
    assert!(near(watts(&energy, "power/package-1"), 10.0, 0.5));
    // The whole package.
    let before = meter.read();
    for cpu in 5..8 {
        set_online(cpu, false);
    }
    sleep(SECOND / 2);
    let without = meter.read();
    println!("{}", without.since(&before).domains[0].outcome);
    assert_eq!(without.since(&before).domains[0].outcome, Outcome::Frozen);
    for cpu in 4..8 {
        set_online(cpu, true);
    }
    sleep(SECOND / 2);
    let back = meter.read();
    sleep(SECOND);
    let energy = meter.read().since(&back);
    assert!(near(watts(&energy, "power/package-1"), 10.0, 0.5));
}

#[test]
fn a_user_without_privilege_is_told_what_would_help() {
    let _module = Loaded::load(&[]);
    let run = |user| {
        let mut energy = Command::new("/bin/energy");
        energy.args(["--json", "--", "true"]).uid(user);
        let output = energy.output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert!(run(0)["total_joules"].as_f64().unwrap() > 0.0);
    std::fs::write("/proc/sys/kernel/perf_event_paranoid", "2").unwrap();
    let refused = run(65534);
    println!("{:#}", refused["diagnosis"]);
    assert!(refused["total_joules"].is_null());
    let backends = refused["diagnosis"]["backends"].as_array().unwrap();
    let remedy = |at: usize| {
        backends[at]["remedy"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(remedy(0).contains("CAP_PERFMON") && remedy(0).contains("(it is 2)"));
    assert!(remedy(1).contains("CAP_DAC_READ_SEARCH"));
    std::fs::write("/proc/sys/kernel/perf_event_paranoid", "-1").unwrap();
    let allowed = run(65534);
    println!("{}", allowed["domains"]);
    assert!(allowed["total_joules"].as_f64().unwrap() > 0.0);
    assert_eq!(allowed["domains"][0]["backend"], "perf");
    println!("{}", rapl::diagnose(&HostFs::live()));
}
