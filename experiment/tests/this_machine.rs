//! Variants on the machine at hand: what is allowed, applied, checked and put back.
//! Where something is not allowed here, the refusal is what is tested.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use experiment::{Ending, Error, Experiment, Host, Plan, Progress, RingPlan, Until, Variant};
use hostfs::{HostFs, Process, Restore};
use irqaffinity::Irq;
use pingpong::TransportKind;

/// One at a time changes the machine.
static MACHINE: Mutex<()> = Mutex::new(());

fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn host() -> Host {
    Host::new(Restore::new(&HostFs::live()))
}

fn variant(text: &str) -> Variant {
    text.parse().unwrap()
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

fn ring() -> RingPlan {
    let cpu = pingpong::allowed_cpus().unwrap().min().unwrap();
    RingPlan::new(
        vec![vec![cpu, cpu]],
        TransportKind::Pipe,
        0,
        Until::Loops(100),
    )
}

fn plan(variants: &[&str]) -> Plan {
    let mut plan = Plan::new(variants.iter().map(|v| variant(v)).collect(), ring(), 1);
    plan.blocks = 2;
    plan.settle = Duration::ZERO;
    (plan.lead, plan.tail) = (Duration::ZERO, Duration::ZERO);
    plan
}

fn governor() -> String {
    let path = "sys/devices/system/cpu/cpuidle/current_governor";
    HostFs::live().read_text(path).unwrap_or_default()
}

fn affinities() -> Vec<Irq> {
    Irq::read_all(&HostFs::live()).unwrap()
}

#[test]
fn what_does_not_exist_is_named_with_what_there_is() {
    let idle = match cpuidle::CpuIdle::open(&HostFs::live()) {
        Ok(idle) => idle,
        Err(why) => {
            let left_out = host().check(&variant("a=governor:menu")).unwrap().unwrap();
            assert!(left_out.why.contains(&why.to_string()), "{left_out}");
            return;
        }
    };
    let error = host().check(&variant("a=governor:nobody")).unwrap_err();
    let there = idle.available_governors().unwrap().join(", ");
    assert_eq!(
        error.to_string(),
        format!("unknown governor:nobody: there are {there}")
    );
    let error = host().check(&variant("a=idle-off:C99")).unwrap_err();
    let first = &idle.cpus()[0].states[0].name;
    assert!(
        error
            .to_string()
            .starts_with("unknown idle-off:C99: there are")
    );
    assert!(error.to_string().contains(first), "{error}");
}

#[test]
fn a_tree_allows_no_factor() {
    let dir = tempfile::tempdir().unwrap();
    let host = Host::new(Restore::new(&HostFs::at(dir.path()).unwrap()));
    for text in ["a=irqbalance:off", "a=governor:menu", "a=idle-off:C1"] {
        let left_out = host.check(&variant(text)).unwrap().unwrap();
        assert!(left_out.why.contains("is not this machine"), "{left_out}");
        assert_eq!(left_out.what, "variant a");
    }
    assert_eq!(host.check(&variant("a")).unwrap(), None);
}

#[test]
fn a_state_that_is_off_is_checked_and_put_back() {
    let _machine = machine();
    let Ok(idle) = cpuidle::CpuIdle::open(&HostFs::live()) else {
        println!("no idle states here: nothing to switch off");
        return;
    };
    let state = idle.cpus()[0].states.last().unwrap().clone();
    let host = host();
    let text = format!("a=idle-off:{}", state.name);
    if let Some(left_out) = host.check(&variant(&text)).unwrap() {
        assert!(left_out.why.contains("not permitted"), "{left_out}");
        return;
    }
    let path = format!(
        "sys/devices/system/cpu/cpu{}/cpuidle/state{}/disable",
        idle.cpus()[0].cpu,
        state.index
    );
    let fs = HostFs::live();
    let found = fs.read_text(&path).unwrap();
    let mut applied = host.apply(&variant(&text), &never()).unwrap();
    assert_eq!(fs.read_text(&path).unwrap(), "1");
    applied.check().unwrap();
    fs.write(&path, "0").unwrap();
    let error = applied.check().unwrap_err();
    assert!(matches!(error, Error::NotInPlace { .. }), "{error}");
    assert!(error.to_string().contains("something else sets it too"));
    fs.write(&path, "1").unwrap();
    drop(applied);
    assert_eq!(fs.read_text(&path).unwrap(), found);
}

#[test]
fn governors_are_compared_and_put_back_whatever_happens() {
    let _machine = machine();
    let host = host();
    let found = governor();
    let Ok(idle) = cpuidle::CpuIdle::open(&HostFs::live()) else {
        println!("no idle states here: no governor to choose");
        return;
    };
    let there = idle.available_governors().unwrap_or_default().to_vec();
    let Some(other) = there.into_iter().find(|name| *name != found) else {
        println!("one governor only: nothing to choose");
        return;
    };
    let text = format!("a=governor:{other}");
    if let Some(left_out) = host.check(&variant(&text)).unwrap() {
        assert!(left_out.why.contains("not permitted"), "{left_out}");
        return;
    }
    let applied = host.apply(&variant(&text), &never()).unwrap();
    assert_eq!(governor(), other);
    drop(applied);
    assert_eq!(governor(), found);

    // A factor that fails undoes those before it.
    let failing = variant(&format!("a=governor:{other},idle-off:C99"));
    let error = host.apply(&failing, &never()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("idle-off:C99 could not be applied"),
        "{error}"
    );
    assert_eq!(governor(), found);

    // A panic in the middle.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _applied = host.apply(&variant(&text), &never()).unwrap();
        panic!("in the middle");
    }));
    assert!(panicked.is_err());
    assert_eq!(governor(), found);

    // Somebody else chooses a governor during a run: the run fails and names it, and what
    // they chose is left alone and reported. Here it is the found one that they choose.
    let stop = Arc::new(never());
    let mut plan = plan(&[&text, "b"]);
    plan.ring.until = Until::Seconds(0.5);
    let experiment = Experiment::new(host.clone(), plan, Vec::new(), Vec::new()).unwrap();
    let meddler = std::thread::spawn({
        let found = found.clone();
        let other = other.clone();
        move || {
            while governor() != other {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(100));
            let path = "sys/devices/system/cpu/cpuidle/current_governor";
            HostFs::live().write(path, &found).unwrap();
        }
    });
    let results = experiment.run(&stop, |_| {}).unwrap();
    meddler.join().unwrap();
    let Ending::Failed { error } = &results.ending else {
        panic!("{:?}", results.ending);
    };
    assert!(error.contains("did not hold during the run"), "{error}");
    assert_eq!(governor(), found);
}

#[test]
fn irqbalance_comes_and_goes_and_its_death_is_named() {
    let _machine = machine();
    let host = host();
    let on = variant("on=irqbalance:on:interval=1");
    if let Some(left_out) = host.check(&on).unwrap() {
        let why = &left_out.why;
        let reasons = ["root", "irqbalance", "one CPU"];
        assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
        return;
    }
    let fs = HostFs::live();
    let running = || Process::find_by_name(&fs, "irqbalance").unwrap();
    let (found, before) = (affinities(), running());
    let mut applied = host.apply(&on, &never()).unwrap();
    let ours: Vec<Process> = running()
        .into_iter()
        .filter(|p| !before.contains(p))
        .collect();
    assert_eq!(ours.len(), 1);
    applied.check().unwrap();
    drop(applied);
    assert_eq!(running(), before);
    assert_eq!(affinities(), found);

    // It dies in the middle of a run.
    let mut plan = plan(&["on=irqbalance:on:interval=1", "off"]);
    plan.ring.until = Until::Seconds(1.0);
    let experiment = Experiment::new(host, plan, Vec::new(), Vec::new()).unwrap();
    let stop = Arc::new(never());
    let killer = std::thread::spawn({
        let before = before.clone();
        move || {
            let fs = HostFs::live();
            let ours = loop {
                let all = Process::find_by_name(&fs, "irqbalance").unwrap();
                if let Some(ours) = all.into_iter().find(|p| !before.contains(p)) {
                    break ours;
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            let pid = ours.pid.to_string();
            let status = std::process::Command::new("kill")
                .args(["-KILL", &pid])
                .status();
            assert!(status.unwrap().success());
        }
    });
    let results = experiment.run(&stop, |_| {}).unwrap();
    killer.join().unwrap();
    let Ending::Failed { error } = &results.ending else {
        panic!("{:?}", results.ending);
    };
    assert!(error.contains("irqbalance"), "{error}");
    assert_eq!(running(), before);
    assert_eq!(affinities(), found);
}

#[test]
fn an_irqbalance_that_comes_up_meanwhile_is_noticed() {
    let _machine = machine();
    let host = host();
    let off = variant("off=irqbalance:off");
    if !Process::find_by_name(host.fs(), "irqbalance")
        .unwrap()
        .is_empty()
    {
        println!("an irqbalance runs here already: another one is not started beside it");
        return;
    }
    let mut applied = host.apply(&off, &never()).unwrap();
    applied.check().unwrap();
    // Any program of that name will do; the kernel takes the name from the file's.
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("irqbalance");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut other = std::process::Command::new(&program)
        .arg("60")
        .spawn()
        .unwrap();
    let mut checked = applied.check();
    for _ in 0..200 {
        if checked.is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        checked = applied.check();
    }
    other.kill().unwrap();
    other.wait().unwrap();
    let error = checked.unwrap_err().to_string();
    let expected = format!("another irqbalance runs, process {}", other.id());
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn told_to_stop_it_keeps_the_finished_blocks() {
    let stop = Arc::new(never());
    let mut plan = plan(&["a", "b"]);
    plan.blocks = 1000;
    let experiment = Experiment::new(host(), plan, Vec::new(), Vec::new()).unwrap();
    let teller = Arc::clone(&stop);
    let results = experiment
        .run(&stop, move |progress| {
            if let Progress::Run { block: 3, .. } = progress {
                teller.store(true, Ordering::Relaxed);
            }
        })
        .unwrap();
    assert_eq!(results.ending, Ending::Interrupted);
    assert_eq!(results.blocks_done, 3);
    assert_eq!(results.runs.len(), 9);
    assert_eq!(results.comparisons[0].effect.blocks_used, 3);
}

#[test]
fn a_plan_that_cannot_run_is_refused_beforehand() {
    let refuse = |plan: Plan| {
        let refused = Experiment::new(host(), plan, Vec::new(), Vec::new());
        refused.unwrap_err().to_string()
    };
    assert_eq!(refuse(plan(&[])), "nothing to run: there is no variant");
    let mut no_blocks = plan(&["a"]);
    no_blocks.blocks = 0;
    assert_eq!(refuse(no_blocks), "nothing to run: there is no block");
    assert_eq!(
        refuse(plan(&["a", "a"])),
        "there are two variants called \"a\""
    );
    let mut no_cpu = plan(&["a"]);
    no_cpu.ring.rings = vec![vec![0, 99_999]];
    assert!(refuse(no_cpu).contains("CPU 99999"));
    let mut no_transport = plan(&["a"]);
    no_transport.ring.transport = "smoke".into();
    assert!(refuse(no_transport).contains("unknown transport \"smoke\""));
    for seconds in [-1.0, f64::NAN, f64::INFINITY, 0.0] {
        let mut no_time = plan(&["a"]);
        no_time.ring.until = Until::Seconds(seconds);
        assert!(refuse(no_time).contains("nothing would be measured"));
    }
}
