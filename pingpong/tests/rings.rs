//! What rings do when all is well: order, counts, limits, pins.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::{cpus, no_hang, pair, pairs};
use nix::sched::sched_getcpu;
use pingpong::{Limit, Rings, Stopper, TransportKind};
use proptest::prelude::*;

/// Rings of CPUs for the transport: any where it blocks, each CPU once where it spins. `None`
/// if this machine has no two CPUs to spin on.
fn placed(kind: TransportKind, shape: &[Vec<usize>]) -> Option<Vec<Vec<u32>>> {
    let cpus = cpus();
    if kind != TransportKind::Spin {
        let place = |ring: &Vec<usize>| ring.iter().map(|i| cpus[i % cpus.len()]).collect();
        return Some(shape.iter().map(place).collect());
    }
    let mut left = cpus.into_iter();
    let mut rings: Vec<Vec<u32>> = Vec::new();
    for ring in shape {
        let cpus: Vec<u32> = left.by_ref().take(ring.len()).collect();
        if cpus.len() >= 2 {
            rings.push(cpus);
        }
    }
    (!rings.is_empty()).then_some(rings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_loop_visits_every_stop_once_in_order(
        kind in prop::sample::select(TransportKind::ALL),
        shape in prop::collection::vec(prop::collection::vec(0..64_usize, 2..7), 1..5),
        work in 0..300_u64,
        loops in 1..40_u64,
    ) {
        let Some(places) = placed(kind, &shape) else {
            return Ok(());
        };
        let builder = Rings::builder().transport(kind).work(work).limit(Limit::Loops(loops));
        let rings = places
            .iter()
            .fold(builder, |builder, cpus| builder.ring(cpus.clone()))
            .build()
            .unwrap();
        let visits = Mutex::new(vec![Vec::new(); places.len()]);
        let strays = AtomicU64::new(0);
        let results = rings.run_with(|ring, stop| {
            visits.lock().unwrap()[ring].push(stop);
            if sched_getcpu() != Ok(places[ring][stop] as usize) {
                strays.fetch_add(1, Ordering::Relaxed);
            }
        }).unwrap();

        prop_assert_eq!(strays.into_inner(), 0);
        prop_assert_eq!(results.len(), places.len());
        for ((result, cpus), visits) in results.iter().zip(&places).zip(visits.into_inner().unwrap()) {
            let round: Vec<usize> = (0..cpus.len()).collect();
            prop_assert_eq!(visits, round.repeat(loops as usize));
            prop_assert_eq!(result.loops, loops);
            prop_assert!(!result.stopped);
            prop_assert!(result.elapsed > Duration::ZERO);
            let stops: Vec<_> = result.stops.iter().map(|stop| (stop.cpu, stop.hops)).collect();
            let expected: Vec<_> = cpus.iter().map(|&cpu| (cpu, loops)).collect();
            prop_assert_eq!(stops, expected);
        }
    }
}

#[test]
fn many_stops_share_a_cpu() {
    let cpu = cpus()[0];
    for kind in [TransportKind::Pipe, TransportKind::Futex] {
        let results = no_hang(move || {
            let rings = Rings::builder().ring([cpu; 64]).ring([cpu; 3]);
            rings
                .transport(kind)
                .limit(Limit::Loops(20))
                .build()
                .unwrap()
                .run()
        });
        let hops: Vec<usize> = results
            .unwrap()
            .iter()
            .map(|ring| ring.stops.iter().filter(|stop| stop.hops == 20).count())
            .collect();
        assert_eq!(hops, [64, 3]);
    }
}

#[test]
fn rings_can_run_again() {
    for place in pairs() {
        let rings = pair(place).limit(Limit::Loops(5)).build().unwrap();
        for _ in 0..3 {
            assert_eq!(rings.run().unwrap()[0].loops, 5);
        }
    }
}

#[test]
fn a_stopper_ends_rings_amid_their_loops() {
    for place in pairs() {
        for limit in [
            Limit::UntilStopped,
            Limit::Loops(u64::MAX),
            Limit::Time(Duration::MAX),
        ] {
            let stopper = Stopper::new();
            let rings = pair(place)
                .limit(limit)
                .stopper(stopper.clone())
                .build()
                .unwrap();
            let results = no_hang(move || {
                let seen = AtomicU64::new(0);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        while seen.load(Ordering::Relaxed) < 100 {
                            thread::sleep(Duration::from_millis(1));
                        }
                        stopper.stop();
                    });
                    rings.run_with(|_, _| {
                        seen.fetch_add(1, Ordering::Relaxed);
                    })
                })
            });
            let ring = &results.unwrap()[0];
            assert!(ring.stopped);
            // 100 visits, two a loop.
            assert!(ring.loops >= 50);
            assert!(ring.stops.iter().all(|stop| stop.hops == ring.loops));
        }
    }
}

#[test]
fn a_stopper_ends_the_longest_work() {
    for place in pairs() {
        let stopper = Stopper::new();
        let rings = pair(place)
            .work(u64::MAX)
            .limit(Limit::UntilStopped)
            .stopper(stopper.clone())
            .build()
            .unwrap();
        let results = no_hang(move || {
            // From within, so that the work is under way or about to be.
            rings.run_with(|_, _| stopper.stop())
        });
        let ring = &results.unwrap()[0];
        assert!(ring.stopped);
        assert_eq!((ring.loops, ring.us_per_loop()), (0, None));
        assert_eq!(ring.elapsed, Duration::ZERO);
    }
}

#[test]
fn a_stopped_stopper_lets_no_loop_begin() {
    let stopper = Stopper::new();
    stopper.stop();
    assert!(stopper.is_stopped());
    for place in pairs() {
        let rings = pair(place).stopper(stopper.clone()).build().unwrap();
        let ring = &rings.run().unwrap()[0];
        assert!(ring.stopped);
        assert_eq!(ring.loops, 0);
        assert!(ring.stops.iter().all(|stop| stop.hops == 0));
    }
}

#[test]
fn time_ends_a_run() {
    for place in pairs() {
        let results = no_hang(move || {
            let limit = Limit::Time(Duration::from_millis(20));
            pair(place).limit(limit).build().unwrap().run()
        });
        let ring = &results.unwrap()[0];
        assert!(!ring.stopped);
        assert!(ring.us_per_loop().is_some());
    }
}

#[test]
fn time_ends_the_longest_work() {
    for place in pairs() {
        let results = no_hang(move || {
            let limit = Limit::Time(Duration::from_millis(20));
            pair(place)
                .limit(limit)
                .work(u64::MAX)
                .build()
                .unwrap()
                .run()
        });
        let ring = &results.unwrap()[0];
        assert!(!ring.stopped);
        assert_eq!(ring.loops, 0);
    }
}

#[test]
fn long_work_is_done_in_full_where_nothing_ends_it() {
    let units = 200_000;
    for place in pairs() {
        let rings = pair(place)
            .limit(Limit::Loops(3))
            .work(units)
            .build()
            .unwrap();
        let ring = &rings.run().unwrap()[0];
        assert_eq!(ring.loops, 3);
        assert!(ring.stops.iter().all(|stop| stop.hops == 3));
    }
}

#[test]
fn the_callers_mask_neither_binds_nor_moves() {
    let cpus = cpus();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    no_hang(move || {
        let core = core_affinity::CoreId { id: first as usize };
        assert!(core_affinity::set_for_current(core));
        let rings = Rings::builder().ring([last, last]).limit(Limit::Loops(5));
        let results = rings.build().unwrap().run().unwrap();
        assert_eq!(results[0].stops[0].cpu, last);
        let own: Vec<u32> = pingpong::allowed_cpus().unwrap().iter().collect();
        assert_eq!(own, [first]);
    });
}

/// `syscr` and `syscw` of the calling thread (`fs/proc/base.c`): its calls of the read and
/// the write families. `None` where the kernel doesn't count them.
fn reads_and_writes() -> Option<[u64; 2]> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    let fields: HashMap<&str, u64> = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    Some([*fields.get("syscr")?, *fields.get("syscw")?])
}

#[test]
fn a_visit_of_a_pipe_is_one_read_and_one_write() {
    const LOOPS: usize = 500;
    let place = (TransportKind::Pipe, [cpus()[0]; 2]);
    let rings = pair(place)
        .limit(Limit::Loops(LOOPS as u64))
        .build()
        .unwrap();
    // The counts at each stop's first visit, at once again, and at its last visit.
    let counts = Mutex::new([Vec::new(), Vec::new()]);
    let visits = [AtomicU64::new(0), AtomicU64::new(0)];
    rings
        .run_with(|_, stop| {
            let visit = visits[stop].fetch_add(1, Ordering::Relaxed) as usize;
            let times = match visit {
                0 => 2,
                _ if visit == LOOPS - 1 => 1,
                _ => 0,
            };
            for _ in 0..times {
                let count = reads_and_writes();
                counts.lock().unwrap()[stop].extend(count);
            }
        })
        .unwrap();
    for counts in counts.into_inner().unwrap() {
        let [first, second, last] = counts[..] else {
            assert!(counts.is_empty());
            eprintln!("not seen: this kernel has no /proc/thread-self/io");
            return;
        };
        let looking = second[0] - first[0];
        let hops = LOOPS as u64 - 1;
        assert_eq!(last[0] - second[0], hops + looking);
        assert_eq!(last[1] - second[1], hops);
    }
}

#[test]
fn everything_can_go_to_another_thread() {
    fn can<T: Send + Sync>() {}
    can::<Rings>();
    can::<Stopper>();
    can::<pingpong::RingResult>();
    can::<pingpong::Error>();
}

#[cfg(feature = "serde")]
#[test]
fn results_survive_json() {
    let rings = pair(pairs()[0]).limit(Limit::Loops(2)).build().unwrap();
    let results = rings.run().unwrap();
    let json = serde_json::to_string(&results).unwrap();
    assert!(json.contains("\"loops\":2"), "{json}");
    let back: Vec<pingpong::RingResult> = serde_json::from_str(&json).unwrap();
    assert_eq!(back, results);
    let kind = serde_json::to_string(&TransportKind::Futex).unwrap();
    assert_eq!(kind, "\"futex\"");
}
