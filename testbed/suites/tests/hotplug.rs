//! A CPU that goes offline and comes back while everything is being read.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use cpuidle::{CpuIdle, Outcome};
use hostfs::{HostFs, Topology};
use irqaffinity::{CpuSet, Interrupts, Irq};
use pingpong::{Error, Limit, Rings};
use rapl::{Backend, Meter, Options};
use suites::perf::Event;
use suites::{EndOnDrop, Module, near, online, set_online, wake};

const SECOND: Duration = Duration::from_secs(1);
const CPU: u32 = 3;

/// CPU 3 is offline until this is dropped.
struct Offline;

impl Offline {
    fn new() -> Self {
        set_online(CPU, false);
        Self
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        set_online(CPU, true);
    }
}

#[test]
fn the_topology_has_a_gap() {
    let before = Topology::read(&HostFs::live()).unwrap();
    let offline = Offline::new();
    let topology = Topology::read(&HostFs::live()).unwrap();
    assert_eq!(topology.online.to_string(), "0-2,4-7");
    assert_eq!(topology.present.to_string(), "0-7");
    assert!(!topology.cpu(CPU).unwrap().online);
    assert_eq!(topology.cpu(2).unwrap().siblings.to_string(), "2");
    assert_eq!((topology.packages(), topology.cores()), (2, 4));
    drop(offline);
    assert_eq!(Topology::read(&HostFs::live()).unwrap(), before);
}

#[test]
fn columns_of_interrupts_keep_their_cpus() {
    let fs = HostFs::live();
    let before = Interrupts::read(&fs).unwrap();
    let offline = Offline::new();
    let table = Interrupts::read(&fs).unwrap();
    assert_eq!(table.cpus(), [0, 1, 2, 4, 5, 6, 7]);
    let (then, now) = (before.other("LOC").unwrap(), table.other("LOC").unwrap());
    for (cpu, count) in now.per_cpu() {
        let (_, earlier) = then.per_cpu().find(|(there, _)| *there == cpu).unwrap();
        assert!((earlier..earlier + 100_000).contains(&count), "CPU {cpu}");
    }
    let delta = table.since(&before);
    assert!(
        delta
            .per_cpu_total()
            .iter()
            .all(|(_, count)| *count < 100_000),
        "{delta:?}"
    );
    drop(offline);
    assert_eq!(Interrupts::read(&fs).unwrap().cpus(), before.cpus());
}

#[test]
fn an_affinity_beside_an_offline_cpu_is_stored_and_one_of_it_alone_refused() {
    let fs = HostFs::live();
    let record = irqaffinity::Restore::new(&fs);
    let devices = hostfs::pci::devices(&fs).unwrap();
    let e1000e = devices
        .iter()
        .find(|d| d.driver.as_deref() == Some("e1000e"))
        .unwrap();
    let irq = e1000e.msi_irqs.as_ref().unwrap()[0].irq;
    let offline = Offline::new();
    let both: CpuSet = "3,5".parse().unwrap();
    let guard = irqaffinity::set_affinity(&record, irq, &both).unwrap();
    assert_eq!(guard.outcome().affinity, both);
    drop(guard);
    let alone: CpuSet = "3".parse().unwrap();
    let error = irqaffinity::set_affinity(&record, irq, &alone).unwrap_err();
    assert!(
        matches!(error, irqaffinity::Error::NoOnlineCpu { .. }),
        "{error}"
    );
    assert!(Irq::read_all(&fs).is_ok());
    drop(offline);
}

#[test]
fn idle_states_of_an_offline_cpu_have_no_figures_and_the_others_do() {
    let _module = Module::load("testbed_idle", &[]);
    let mut reader = CpuIdle::open(&HostFs::live())
        .unwrap()
        .snapshotter()
        .unwrap();
    let before = reader.snapshot();
    let offline = Offline::new();
    sleep(SECOND);
    wake(&online());
    let without = reader.snapshot();
    let delta = without.since(&before);
    for cpu in &delta.cpus {
        for state in &cpu.states {
            let counted = matches!(state.outcome, Outcome::Counted(_));
            assert_eq!(
                counted,
                cpu.cpu != CPU,
                "CPU {}: {}",
                cpu.cpu,
                state.outcome
            );
        }
    }
    for sum in delta.sum() {
        assert_eq!(sum.missing.to_string(), "3", "{}", sum.name);
    }
    drop(offline);
    sleep(SECOND / 2);
    wake(&online());
    let back = reader.snapshot();
    sleep(SECOND / 2);
    wake(&online());
    let delta = reader.snapshot().since(&back);
    for cpu in &delta.cpus {
        let states = || cpu.states.iter().map(|state| &state.outcome);
        assert!(
            states().all(|outcome| matches!(outcome, Outcome::Counted(_))),
            "{cpu:?}"
        );
    }
    CpuIdle::open(&HostFs::live()).unwrap();
}

#[test]
fn a_ring_whose_cpu_goes_away_says_so() {
    let rings = Rings::builder()
        .ring([1, CPU])
        .limit(Limit::Time(10 * SECOND))
        .build()
        .unwrap();
    let result = scope(|scope| {
        let ring = scope.spawn(|| rings.run());
        sleep(SECOND);
        let _offline = Offline::new();
        ring.join().unwrap()
    });
    let error = result.unwrap_err();
    assert!(matches!(error, Error::LostCpu { .. }), "{error}");
    let offline = Offline::new();
    let error = rings.run().unwrap_err();
    assert!(matches!(error, Error::CpuOffline { .. }), "{error}");
    drop(offline);
    assert_eq!(online().to_string(), "0-7");
}

/// What an instrument has to expect of perf: an answer that stands still.
#[test]
fn an_event_of_an_offline_cpu_stands_still_and_its_time_too() {
    let _module = Module::load("testbed_energy", &[]);
    let mut event = Event::open("energy-pkg", CPU).unwrap();
    sleep(SECOND / 2);
    let (_, counted) = event.read();
    assert!(counted > 0.4, "{counted} s");
    let offline = Offline::new();
    let then = event.read();
    sleep(SECOND / 2);
    assert_eq!(event.read(), then);
    drop(offline);
    drop(event);
    // Its last user is gone when the kernel has noticed.
    sleep(SECOND / 2);
}

#[test]
fn everything_can_be_read_while_a_cpu_comes_and_goes() {
    let _idle = Module::load("testbed_idle", &[]);
    let _energy = Module::load("testbed_energy", &["package0_mw=20000"]);
    let fs = HostFs::live();
    let (end, flips) = (AtomicBool::new(false), std::sync::atomic::AtomicU32::new(0));
    scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::Relaxed) {
                drop(Offline::new());
                flips.fetch_add(1, Ordering::Relaxed);
            }
        });
        let ending = EndOnDrop(&end);
        let mut meter =
            Meter::open_with(&fs, Options::default().backend(Backend::Powercap)).unwrap();
        let first = meter.read();
        let mut idle = CpuIdle::open(&fs).unwrap().snapshotter().unwrap();
        let mut before = (Interrupts::read(&fs).unwrap(), idle.snapshot());
        let start = std::time::Instant::now();
        let mut rounds = 0;
        while start.elapsed() < 6 * SECOND {
            let topology = Topology::read(&fs).unwrap();
            assert!(topology.online.len() >= 7);
            Irq::read_all(&fs).unwrap();
            CpuIdle::open(&fs).unwrap();
            msi_probe::probe(&fs).unwrap();
            let now = (Interrupts::read(&fs).unwrap(), idle.snapshot());
            let interrupts = now.0.since(&before.0).per_cpu_total();
            assert!(
                interrupts.iter().all(|(_, count)| *count < 100_000),
                "{interrupts:?}"
            );
            for cpu in &now.1.since(&before.1).cpus {
                for counts in cpu.states.iter().filter_map(|state| state.outcome.counts()) {
                    assert!(counts.time_us < 60_000_000, "{cpu:?}");
                    assert!(counts.entries < 1_000_000, "{cpu:?}");
                }
            }
            before = now;
            rounds += 1;
        }
        drop(ending);
        let energy = meter.read().since(&first);
        let watts = energy
            .get("intel-rapl/package-0")
            .unwrap()
            .outcome
            .watts()
            .unwrap()
            .0;
        assert!(near(watts, 20.0, 0.5), "{watts}");
        println!(
            "{rounds} rounds, {} times offline",
            flips.load(Ordering::Relaxed)
        );
        assert!(rounds > 0);
    });
    assert!(flips.into_inner() > 1);
}
