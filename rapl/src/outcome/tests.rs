use super::*;
use crate::place::Place;
use crate::{Backend, Kind, Modulus};
use hostfs::Stamp;
use proptest::prelude::*;

const RANGE_61: u64 = 262_143_328_850;

fn domain(range_uj: Option<u64>) -> Domain {
    let place = Place {
        package: Some(0),
        ..Place::default()
    };
    Domain {
        in_total: true,
        unit: Joules(1e-6),
        max_energy_range_uj: range_uj,
        modulus: Modulus::of_range(range_uj),
        ..Domain::at(Backend::Powercap, "intel-rapl", Kind::Package, place)
    }
}

fn at(seconds: f64, asleep: f64, count: Result<u64, Fault>) -> DomainReading {
    let clock = Duration::from_secs_f64(seconds);
    DomainReading {
        count,
        stamp: Stamp::between(clock, clock, clock + Duration::from_secs_f64(asleep)),
        reopened: 0,
    }
}

/// A counter of 2^-14 J at 1 kW, after so many seconds awake and asleep.
fn after(seconds: f64, asleep: f64, from_uj: u64, to_uj: u64) -> Outcome {
    let earlier = at(100.0, 0.0, Ok(from_uj));
    let later = at(100.0 + seconds, asleep, Ok(to_uj));
    outcome(&domain(Some(RANGE_61)), Watts(1000.0), &earlier, &later)
}

#[test]
fn watts_are_over_the_time_that_passed_suspended_or_not() {
    // A step of a µJ, and what is drawn in a millisecond.
    let measured = |joules, watts| Outcome::Measured {
        joules: Joules(joules),
        watts: Watts(watts),
        uncertainty: Joules(1e-6 + watts * 0.001),
        wrap: Wrap::No,
    };
    assert_eq!(after(2.0, 0.0, 5, 30_000_005), measured(30.0, 15.0));
    assert_eq!(after(2.0, 1.0, 5, 30_000_005), measured(30.0, 10.0));
    assert_eq!(after(0.0, 0.0, 5, 30_000_005), Outcome::NotLater);
}

/// Several wraps in one interval (likwid#646, zeus#91). A wrap is worth 262.143 kJ,
/// which takes 262.143 s at 1 kW.
#[test]
fn ambiguous_as_soon_as_one_more_wrap_is_possible() {
    assert!(after(262.0, 0.0, 0, 0).joules().is_some());
    assert!(matches!(after(263.0, 0.0, 0, 0), Outcome::Ambiguous { .. }));
    // What is consumed anyway leaves less for a hidden wrap.
    assert!(after(263.0, 0.0, 0, 10_000_000_000).joules().is_some());
    // The counter may go on while the machine is suspended.
    assert!(matches!(
        after(100.0, 163.0, 0, 0),
        Outcome::Ambiguous { .. }
    ));
    let wrapped = after(400.0, 0.0, RANGE_61 - 9_000_000, 1_000_000);
    let Outcome::Ambiguous { at_least, modulus } = wrapped else {
        panic!("{wrapped}");
    };
    assert!((at_least.0 - 10.000_061_36).abs() < 1e-9);
    assert_eq!(modulus, Joules(262_143.328_911_36));
}

/// 2 s count in any case for what a counter shows late.
#[test]
fn a_reset_is_told_from_a_wrap_by_the_power_it_would_take() {
    let fell_as_if_by = |joules: u64| RANGE_61 - joules * 1_000_000;
    assert!(after(1.0, 0.0, fell_as_if_by(2_999), 0).joules().is_some());
    assert_eq!(after(1.0, 0.0, fell_as_if_by(3_001), 0), Outcome::Reset);
    assert!(after(2.0, 0.0, fell_as_if_by(3_001), 0).joules().is_some());
}

#[test]
fn vanished_and_unreadable_zones() {
    let gone = at(101.0, 0.0, Err(Fault::Gone));
    let refused = at(101.0, 0.0, Err(Fault::NotPermitted));
    let good = at(100.0, 0.0, Ok(1));
    let of = |a, b| outcome(&domain(None), Watts(1000.0), a, b);
    assert_eq!(of(&good, &gone), Outcome::Gone);
    assert_eq!(
        of(&good, &refused),
        Outcome::Unreadable(Fault::NotPermitted)
    );
    assert_eq!(of(&gone, &good), Outcome::Gone);
    assert_eq!(
        of(&refused, &gone),
        Outcome::Gone,
        "the later one is the news"
    );
}

fn register(unit: f64) -> Domain {
    Domain {
        backend: Backend::Msr,
        unit: Joules(unit),
        resolution: Some(Joules(unit)),
        modulus: Modulus::Register,
        max_energy_range_uj: None,
        ..domain(None)
    }
}

/// In units of 2^-14 J a register holds 2^18 J.
#[test]
fn a_register_wraps_at_two_to_the_32() {
    let domain = register(2f64.powi(-14));
    let of = |from, to, seconds| {
        let (from, to) = (at(100.0, 0.0, Ok(from)), at(100.0 + seconds, 0.0, Ok(to)));
        outcome(&domain, Watts(1000.0), &from, &to)
    };
    let Outcome::Measured {
        joules,
        wrap,
        uncertainty,
        ..
    } = of(u64::from(u32::MAX), 16_383, 2.0)
    else {
        panic!("not measured");
    };
    assert_eq!((joules, wrap), (Joules(1.0), Wrap::Corrected));
    // A step, and half a watt for a millisecond.
    assert!((uncertainty.0 - (2f64.powi(-14) + 0.0005)).abs() < 1e-12);
    assert_eq!(of(1 << 31, 0, 2.0), Outcome::Reset);
    assert!(of(0, 0, 262.0).joules().is_some());
    assert!(matches!(
        of(0, 0, 263.0),
        Outcome::Ambiguous {
            modulus: Joules(262_144.0),
            ..
        }
    ));
    assert_eq!(
        longest_gap(&domain, Watts(1000.0)),
        Some(Duration::from_secs_f64(262.144))
    );
}

fn accumulated(step: Option<f64>) -> Domain {
    Domain {
        backend: Backend::Perf,
        unit: Joules(2f64.powi(-32)),
        modulus: Modulus::Accumulated {
            step: step.map(Joules),
        },
        max_energy_range_uj: None,
        ..domain(None)
    }
}

const JOULE: i64 = 1 << 32;

fn perf(step: Option<f64>, bound: f64, seconds: f64, from: i64, to: i64) -> Outcome {
    let from = at(100.0, 0.0, Ok(from as u64));
    let to = at(100.0 + seconds, 0.0, Ok(to as u64));
    outcome(&accumulated(step), Watts(bound), &from, &to)
}

/// 2^-14 J a step: 2^32 of them are 262.144 kJ, half of which take 131 s at 1 kW.
#[test]
fn what_the_kernel_adds_up_does_not_wrap_but_may_step_back() {
    let step = Some(2f64.powi(-14));
    let joules = |outcome: Outcome| outcome.joules().unwrap().0;
    assert_eq!(
        joules(perf(step, 1000.0, 10.0, -5 * JOULE, 20 * JOULE)),
        25.0
    );
    assert_eq!(joules(perf(step, 1000.0, 10.0, i64::MAX, i64::MAX)), 0.0);
    // 132 kJ in 140 s, of which the kernel made 132 - 262.144 kJ.
    let back = perf(step, 1000.0, 140.0, 0, (132_000 - 262_144) * JOULE);
    assert_eq!(joules(back), 132_000.0);
    assert_eq!(perf(step, 1000.0, 1.0, 5 * JOULE, 0), Outcome::Reset);
    assert_eq!(
        perf(None, 1000.0, 1.0, 5 * JOULE, 0),
        Outcome::NotCorrectable
    );
    assert!(matches!(
        perf(step, 1000.0, 263.0, 0, 0),
        Outcome::Ambiguous { .. }
    ));
    assert!(matches!(
        perf(None, 1000.0, 66.0, 0, 0),
        Outcome::Ambiguous { .. }
    ));
    // At 200 W the kernel looks often enough by itself, for hours.
    assert_eq!(
        joules(perf(step, 200.0, 36_000.0, 0, 5_000_000 * JOULE)),
        5e6
    );
    assert_eq!(
        longest_gap(&accumulated(step), Watts(1000.0)),
        Some(Duration::from_secs_f64(131.072))
    );
}

#[test]
fn an_event_that_was_opened_anew_counts_from_zero() {
    let earlier = at(100.0, 0.0, Ok(50));
    let mut later = at(101.0, 0.0, Ok(70));
    later.reopened = 1;
    let of = |a, b| outcome(&accumulated(None), Watts(1000.0), a, b);
    assert_eq!(of(&earlier, &later), Outcome::Reopened);
    let frozen = at(101.0, 0.0, Err(Fault::Frozen { cpu: 3 }));
    assert_eq!(of(&earlier, &frozen), Outcome::Frozen);
    assert!(Outcome::Reopened.to_string().contains("opened anew"));
    assert!(Outcome::Frozen.to_string().contains("stands still"));
}

proptest! {
    /// Unsigned underflow to 1.8e19 (kepler PR#53): no two readings give a negative or
    /// wrapped figure, nor more than the counter can hold.
    #[test]
    fn never_negative_and_never_more_than_a_wrap(
        from: u64, to: u64, near in 0u64..300_000_000_000, range: Option<u64>,
        seconds in 0.0..1e6f64, exact: bool,
    ) {
        let range = if exact { Some(RANGE_61) } else { range };
        let (from, to) = if exact { (from % near.max(1), to % near.max(1)) } else { (from, to) };
        let earlier = at(100.0, 0.0, Ok(from));
        let later = at(100.0 + seconds, 0.0, Ok(to));
        let got = outcome(&domain(range), Watts(1000.0), &earlier, &later);
        if let Outcome::Measured { joules, watts, wrap, .. } = got {
            prop_assert!(joules.0 >= 0.0 && watts.0 >= 0.0);
            let most = match wrap {
                Wrap::No | Wrap::Unknown => to as f64 / 1e6,
                _ => Modulus::of_range(range).nanojoules().unwrap() as f64 / 1e9,
            };
            prop_assert!(joules.0 <= most * (1.0 + 1e-12), "{joules} of {most}");
        }
        if let Outcome::Ambiguous { at_least, modulus } = got {
            prop_assert!(at_least.0 >= 0.0 && modulus.0 > 0.0);
        }
    }

    /// What was consumed comes back, whatever the counter stood at, if it is less than
    /// a wrap and within the power bound.
    #[test]
    fn what_was_consumed_comes_back(start in 0u64..=RANGE_61, spent in 0u64..60_000_000_000) {
        let modulus = 262_143_328_911; // 2^32 * 61035 / 1000, without .36 µJ
        let got = after(60.0, 0.0, start, (start + spent) % modulus);
        let joules = got.joules().unwrap().0;
        prop_assert!((joules - spent as f64 / 1e6).abs() < 1e-6, "{got} for {spent}");
    }
}
