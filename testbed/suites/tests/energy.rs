//! Measured joules are watts times seconds, by `rapl` and by the perf PMU.
#![allow(clippy::unwrap_used)]

use std::thread::sleep;
use std::time::{Duration, Instant};

use hostfs::HostFs;
use rapl::{Backend, Energy, Kind, Meter, Options, Outcome, Watts, Wrap};
use suites::perf::{Event, cpumask};
use suites::{Module, near};

const SECOND: Duration = Duration::from_secs(1);

/// In this unit a counter wraps at 42.9 J.
const SMALL_UNIT: &str = "unit_nj=10";
/// Every domain's power in mW, and in the order of the meter: by package, the package itself
/// before what is below it.
const POWERS: [(&str, u64); 6] = [
    ("package0_mw", 9_000),
    ("package0_core_mw", 5_000),
    ("package0_dram_mw", 2_500),
    ("package1_mw", 8_000),
    ("package1_core_mw", 4_000),
    ("package1_dram_mw", 1_500),
];
const IDS: [&str; 6] = [
    "intel-rapl/package-0",
    "intel-rapl/package-0/core",
    "intel-rapl/package-0/dram",
    "intel-rapl/package-1",
    "intel-rapl/package-1/core",
    "intel-rapl/package-1/dram",
];

fn load(unit: &str) -> Module {
    let powers = POWERS.map(|(name, mw)| format!("{name}={mw}"));
    let mut parameters = vec![unit];
    parameters.extend(powers.iter().map(String::as_str));
    Module::load("testbed_energy", &parameters)
}

/// No domain draws more than this, by which a counter of 42.9 J can't wrap twice in a second,
/// nor in the two and more that a busy machine may make of it.
/// By powercap, whose events don't hold the module, and whose counters wrap.
fn powercap() -> Options {
    Options::default().backend(Backend::Powercap)
}

fn open_meter(bound: Watts) -> Meter {
    Meter::open_with(&HostFs::live(), powercap().power_bound(bound)).unwrap()
}

fn joules(energy: &Energy, id: &str) -> f64 {
    energy.get(id).unwrap().outcome.joules().unwrap().0
}

#[test]
fn zones_are_what_the_driver_shows() {
    let _module = load("unit_nj=61035");
    let meter = Meter::open_with(&HostFs::live(), powercap()).unwrap();
    let ids: Vec<&str> = meter.domains().iter().map(|d| d.id.as_str()).collect();
    assert_eq!(ids, IDS);
    for domain in meter.domains() {
        assert_eq!(domain.in_total, domain.kind != Kind::Core, "{}", domain.id);
        // floor((2^32 - 1) * 61035 / 1000), as on many a processor.
        assert_eq!(domain.max_energy_range_uj, Some(262_143_328_850));
    }
    assert!(meter.skipped().is_empty());
}

#[test]
fn ten_seconds_of_both_backends_are_watts_times_seconds_over_wraps() {
    let _module = load(SMALL_UNIT);
    let mut meter = open_meter(Watts(9.2));
    assert_eq!(meter.domains()[0].max_energy_range_uj, Some(42_949_672));
    assert_eq!(cpumask().to_string(), "0,4");
    let mut events: Vec<Event> = [0, 4]
        .into_iter()
        .flat_map(|cpu| ["energy-pkg", "energy-cores", "energy-ram"].map(|name| (name, cpu)))
        .map(|(name, cpu)| Event::open(name, cpu).unwrap())
        .collect();

    let (mut sums, mut seconds, mut wraps) = ([0.0; 6], [0.0; 6], [0; 6]);
    let (mut total, mut total_seconds) = (0.0, 0.0);
    let first: Vec<(f64, f64)> = events.iter_mut().map(Event::read).collect();
    let mut before = meter.read();
    for _ in 0..10 {
        sleep(SECOND);
        let now = meter.read();
        let energy = now.since(&before);
        for (at, id) in IDS.iter().enumerate() {
            let domain = energy.get(id).unwrap();
            let Outcome::Measured { joules, wrap, .. } = &domain.outcome else {
                panic!("{id}: {}", domain.outcome);
            };
            sums[at] += joules.0;
            seconds[at] += domain.elapsed.time.as_secs_f64();
            wraps[at] += u32::from(*wrap == Wrap::Corrected);
        }
        total += energy.total().unwrap().0;
        total_seconds += energy.elapsed.time.as_secs_f64();
        before = now;
    }
    let last: Vec<(f64, f64)> = events.iter_mut().map(Event::read).collect();

    for (at, (id, (_, mw))) in IDS.iter().zip(POWERS).enumerate() {
        let watts = mw as f64 / 1000.0;
        let powercap = sums[at] / seconds[at];
        let perf = (last[at].0 - first[at].0) / (last[at].1 - first[at].1);
        println!(
            "{id}: {watts} W, powercap {powercap:.4}, perf {perf:.4}, {} wraps",
            wraps[at]
        );
        assert!(
            near(powercap, watts, 0.5),
            "{id}: {powercap} W of {watts} W by powercap"
        );
        assert!(
            near(perf, watts, 0.5),
            "{id}: {perf} W of {watts} W by perf"
        );
        assert!(
            near(powercap, perf, 0.5),
            "{id}: {powercap} W by powercap, {perf} W by perf"
        );
    }
    // 9 W for 10 s are 2.1 times 42.9 J.
    assert!(wraps[0] >= 2, "{wraps:?}");
    // Packages and memory, each once.
    assert!(
        near(total / total_seconds, 21.0, 0.5),
        "{total} J in {total_seconds} s"
    );
}

#[test]
fn several_wraps_in_one_interval_are_never_taken_for_none() {
    let module = load(SMALL_UNIT);
    module.set("package0_mw", 30_000);
    let mut meter = open_meter(Watts(31.0));
    let before = meter.read();
    // 30 W for 4 s are 2.8 times 42.9 J.
    sleep(4 * SECOND);
    let energy = meter.read().since(&before);
    let outcome = &energy.get(IDS[0]).unwrap().outcome;
    let Outcome::Ambiguous {
        at_least, modulus, ..
    } = outcome
    else {
        panic!("{outcome}");
    };
    assert!(near(modulus.0, 42.94967296, 0.0001), "{modulus}");
    let used = 30.0 * energy.elapsed.time.as_secs_f64();
    let further = (used - at_least.0) / modulus.0;
    assert!(
        further > 0.9 && (further - further.round()).abs() < 0.02,
        "{at_least} and {further} wraps make {used} J"
    );
    let missing = energy.total().unwrap_err();
    assert!(
        missing.missing.iter().any(|missing| missing.id == IDS[0]),
        "{missing}"
    );
}

#[test]
fn another_power_bends_the_counter_and_does_not_make_it_jump() {
    let module = load("unit_nj=61035");
    let mut meter = Meter::open_with(&HostFs::live(), powercap()).unwrap();
    let start = meter.read();
    sleep(SECOND);
    let middle = meter.read();
    module.set("package0_mw", 60_000);
    let changed = meter.read();
    sleep(SECOND);
    let end = meter.read();
    let (slow, jump, fast) = (
        middle.since(&start),
        changed.since(&middle),
        end.since(&changed),
    );
    let watts = |energy: &Energy| energy.get(IDS[0]).unwrap().outcome.watts().unwrap().0;
    assert!(near(watts(&slow), 9.0, 0.5), "{}", watts(&slow));
    assert!(near(watts(&fast), 60.0, 0.5), "{}", watts(&fast));
    // No more than 60 W for the moment of the change.
    let most = 60.0 * jump.elapsed.time.as_secs_f64() + 0.001;
    assert!(joules(&jump, IDS[0]) <= most, "{}", joules(&jump, IDS[0]));
}

#[test]
fn a_reload_is_a_reset_and_not_a_figure() {
    let mut module = load("unit_nj=61035");
    let mut meter = Meter::open_with(&HostFs::live(), powercap()).unwrap();
    sleep(2 * SECOND);
    let before = meter.read();
    assert!(module.unload());
    let without = meter.read();
    for domain in &without.since(&before).domains {
        assert_eq!(domain.outcome, Outcome::Gone, "{}", domain.domain.id);
    }
    assert!(without.since(&before).total().is_err());

    module = load("unit_nj=61035");
    let again = meter.read();
    for domain in &again.since(&before).domains {
        assert!(domain.reopened, "{}", domain.domain.id);
        assert_eq!(domain.outcome, Outcome::Reset, "{}", domain.domain.id);
    }
    sleep(SECOND);
    let energy = meter.read().since(&again);
    let watts = energy.get(IDS[0]).unwrap().outcome.watts().unwrap().0;
    assert!(near(watts, 9.0, 0.5), "{watts}");
    drop(module);
}

#[test]
fn an_open_event_holds_the_module_and_a_meter_does_not() {
    let mut module = load("unit_nj=61035");
    let _meter = Meter::open_with(&HostFs::live(), powercap()).unwrap();
    let event = Event::open("energy-pkg", 0).unwrap();
    assert!(!module.unload(), "unloaded below an open event");
    drop(event);
    // The kernel frees an event when nobody can be using it any more.
    let end = Instant::now() + 5 * SECOND;
    while !module.unload() {
        assert!(Instant::now() < end, "still held");
        sleep(SECOND / 10);
    }
}

#[test]
fn a_package_without_zones_is_not_counted_and_the_other_is() {
    let module = Module::load("testbed_energy", &["hidden_package=0", "package1_mw=30000"]);
    let mut meter = Meter::open_with(&HostFs::live(), powercap()).unwrap();
    let packages: Vec<Option<u32>> = meter.domains().iter().map(|d| d.package).collect();
    assert_eq!(packages, [Some(1); 3]);
    // Its zone is the first one all the same: the zone's number is not the socket's.
    assert!(meter.domains()[0].path.ends_with("intel-rapl:0"));
    let before = meter.read();
    sleep(SECOND);
    let energy = meter.read().since(&before);
    let watts = energy.get(IDS[3]).unwrap().outcome.watts().unwrap().0;
    assert!(near(watts, 30.0, 0.5), "{watts}");
    drop(module);
}

#[test]
fn without_the_module_there_is_no_energy_and_the_reason_is_said() {
    let error = Meter::open_with(&HostFs::live(), powercap()).unwrap_err();
    assert!(matches!(
        error,
        rapl::Error::NoZones { .. } | rapl::Error::NoPowercap { .. }
    ));
    assert!(error.to_string().contains("virtual machine"), "{error}");
}
