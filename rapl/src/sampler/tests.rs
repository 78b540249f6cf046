use super::*;
use crate::place::Place;
use crate::{Backend, Domain, Fault, Kind, Modulus, Watts};

const RANGE_61: u64 = 262_143_328_850;

fn plan(kinds: &[Kind]) -> Arc<Plan> {
    let domains = kinds.iter().map(|kind| Domain {
        in_total: *kind != Kind::Core,
        unit: Joules(1e-6),
        max_energy_range_uj: Some(RANGE_61),
        modulus: Modulus::of_range(Some(RANGE_61)),
        ..Domain::at(Backend::Powercap, "intel-rapl", *kind, Place::default())
    });
    Arc::new(Plan::new(domains.collect(), Vec::new(), Watts(1000.0)))
}

/// A reading at that second, awake and asleep before.
fn at(plan: &Arc<Plan>, seconds: f64, asleep: f64, counts: &[Result<u64, Fault>]) -> Reading {
    let clock = Duration::from_secs_f64(seconds);
    let stamp = Stamp::between(clock, clock, clock + Duration::from_secs_f64(asleep));
    let mut reading = Reading::empty(plan);
    reading.stamp = stamp;
    reading.values = counts
        .iter()
        .map(|count| DomainReading {
            count: count.clone(),
            stamp,
            reopened: 0,
        })
        .collect();
    reading
}

fn state(plan: &Arc<Plan>, first: &Reading, ticks: u32, keep: Option<usize>) -> State {
    State::new(Arc::clone(plan), first, Duration::from_secs(1), ticks, keep)
}

const J: u64 = 1_000_000;

/// Three days at 200 W, read every minute: 51.84 MJ, 197 wraps of 262.143 kJ.
#[test]
fn days_of_wraps_are_added_up() {
    let plan = plan(&[Kind::Package]);
    let modulus_uj = 262_143_328_911.36;
    let count = |minute: u64| Ok((minute as f64 * 12e9 % modulus_uj) as u64);
    let mut state = state(&plan, &at(&plan, 100.0, 0.0, &[count(0)]), 15, Some(10));
    for minute in 1..=4320 {
        state.add(&at(
            &plan,
            100.0 + minute as f64 * 60.0,
            0.0,
            &[count(minute)],
        ));
    }
    let series = state.series();
    let total = &series.totals[0];
    assert!((total.joules.0 - 51.84e6).abs() < 0.001, "{total:?}");
    assert_eq!((total.wraps, total.missing), (197, 0));
    assert_eq!(total.time, Duration::from_secs(4320 * 60));
    assert_eq!((series.samples.len(), series.dropped), (10, 278));
    for sample in &series.samples {
        assert!((sample.total_watts().unwrap().0 - 200.0).abs() < 1e-6);
    }
    assert!((series.total().unwrap().0 - 51.84e6).abs() < 0.001);
}

#[test]
fn a_reading_that_fails_costs_its_samples_and_not_the_total() {
    let plan = plan(&[Kind::Package, Kind::Dram]);
    let mut state = state(&plan, &at(&plan, 100.0, 0.0, &[Ok(0), Ok(0)]), 1, None);
    state.add(&at(&plan, 101.0, 0.0, &[Ok(10 * J), Ok(J)]));
    state.add(&at(&plan, 102.0, 0.0, &[Err(Fault::Gone), Ok(2 * J)]));
    let meanwhile = state.series();
    assert_eq!((meanwhile.totals[0].missing, meanwhile.total()), (1, None));
    state.add(&at(&plan, 103.0, 0.0, &[Ok(30 * J), Ok(3 * J)]));
    state.add(&at(&plan, 104.0, 0.0, &[Ok(40 * J), Ok(4 * J)]));
    let series = state.series();
    let totals: Vec<_> = series
        .samples
        .iter()
        .map(|s| s.total.map(|j| j.0))
        .collect();
    assert_eq!(totals, [Some(11.0), None, None, Some(11.0)]);
    assert_eq!(series.samples[1].joules, [None, Some(Joules(1.0))]);
    assert_eq!(series.totals[0].joules, Joules(40.0));
    assert_eq!(series.totals[0].missing, 0);
    assert_eq!(series.totals[0].last_missing, Some(Outcome::Gone));
    assert_eq!(series.total(), Some(Joules(44.0)));
    assert_eq!(series.samples[3].watts(1), Some(Watts(1.0)));
}

#[test]
fn what_is_lost_is_said() {
    let plan = plan(&[Kind::Package]);
    let mut state = state(&plan, &at(&plan, 100.0, 0.0, &[Ok(200_000 * J)]), 1, None);
    state.add(&at(&plan, 101.0, 0.0, &[Ok(5 * J)]));
    state.add(&at(&plan, 102.0, 0.0, &[Ok(7 * J)]));
    let series = state.series();
    let total = &series.totals[0];
    assert_eq!((total.joules, total.missing), (Joules(2.0), 1));
    assert_eq!(total.last_missing, Some(Outcome::Reset));
    assert_eq!(total.time, Duration::from_secs(1));
    assert_eq!(series.total(), None);
}

#[test]
fn gaps_are_reported() {
    let plan = plan(&[Kind::Package]);
    let mut state = state(&plan, &at(&plan, 100.0, 0.0, &[Ok(0)]), 1, None);
    state.add(&at(&plan, 101.0, 0.0, &[Ok(J)]));
    state.add(&at(&plan, 104.5, 0.0, &[Ok(2 * J)]));
    state.add(&at(&plan, 105.5, 3600.0, &[Ok(3 * J)]));
    let series = state.series();
    assert_eq!(series.gaps.len(), 2, "{:?}", series.gaps);
    assert!(matches!(series.gaps[0], Gap::Late { by, .. } if by == Duration::from_millis(2500)));
    assert!(
        matches!(series.gaps[1], Gap::Suspended { asleep, .. } if asleep == Duration::from_secs(3600))
    );
    assert_eq!(series.gaps_dropped, 0);
}

#[test]
fn an_event_that_stood_still_is_missing_until_it_counts_again() {
    let plan = plan(&[Kind::Package]);
    let frozen = || Err(Fault::Frozen { cpu: 1 });
    let mut state = state(&plan, &at(&plan, 100.0, 0.0, &[Ok(0)]), 1, None);
    state.add(&at(&plan, 101.0, 0.0, &[frozen()]));
    state.add(&at(&plan, 102.0, 0.0, &[Ok(5 * J)]));
    state.add(&at(&plan, 103.0, 0.0, &[Ok(6 * J)]));
    let total = &state.series().totals[0];
    assert_eq!((total.joules, total.missing), (Joules(1.0), 1));
    assert_eq!(total.last_missing, Some(Outcome::Frozen));
}

#[test]
fn counters_are_read_often_enough_whatever_the_period() {
    let seconds = Duration::from_secs;
    assert_eq!(ticks(seconds(1), None), 1);
    assert_eq!(ticks(seconds(1), Some(seconds(262))), 1);
    assert_eq!(ticks(seconds(3600), Some(seconds(262))), 28, "every 131 s");
    assert_eq!(ticks(seconds(1), Some(Duration::ZERO)), 1000);
}
