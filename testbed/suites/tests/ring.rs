//! Rings on the CPUs of the guest, as many as there are.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use pingpong::{Error, Limit, Rings, TransportKind};
use suites::online;

#[test]
fn a_ring_goes_round_every_cpu() {
    let cpus: Vec<u32> = online().iter().collect();
    for transport in [TransportKind::Pipe, TransportKind::Futex] {
        // With one CPU: two stops on it.
        let stops = if cpus.len() == 1 {
            vec![0, 0]
        } else {
            cpus.clone()
        };
        let rings = Rings::builder()
            .ring(stops.clone())
            .transport(transport)
            .limit(Limit::Loops(200))
            .build()
            .unwrap();
        let [ring] = &rings.run().unwrap()[..] else {
            panic!("one ring");
        };
        assert_eq!(ring.loops, 200);
        let there: Vec<u32> = ring.stops.iter().map(|stop| stop.cpu).collect();
        assert_eq!(there, stops);
        assert!(ring.stops.iter().all(|stop| stop.hops >= 200), "{ring:?}");
        println!(
            "{transport:?}: {:.1} µs a loop",
            ring.us_per_loop().unwrap()
        );
    }
}

#[test]
fn rings_run_side_by_side_for_a_time() {
    let cpus: Vec<u32> = online().iter().collect();
    let pairs: Vec<&[u32]> = cpus.chunks_exact(2).take(4).collect();
    let mut builder = Rings::builder().limit(Limit::Time(Duration::from_secs(1)));
    for pair in &pairs {
        builder = builder.ring(*pair);
    }
    if pairs.is_empty() {
        builder = builder.ring([0, 0]).ring([0, 0]);
    }
    let results = builder.build().unwrap().run().unwrap();
    assert_eq!(
        results.len(),
        pairs.len().max(if pairs.is_empty() { 2 } else { 0 })
    );
    for ring in results {
        assert!(ring.loops > 0);
    }
}

#[test]
fn spinning_stops_on_one_cpu_are_refused() {
    let error = Rings::builder()
        .ring([0, 0])
        .transport(TransportKind::Spin)
        .limit(Limit::Loops(10))
        .build()
        .unwrap_err();
    assert!(matches!(error, Error::SpinShared { .. }), "{error}");
}

#[test]
fn a_cpu_that_is_not_there_is_named() {
    let past = online().iter().max().unwrap() + 1;
    let rings = Rings::builder().ring([0, past]).limit(Limit::Loops(10));
    let error = rings.build().and_then(|rings| rings.run()).unwrap_err();
    assert!(matches!(error, Error::NoSuchCpu { .. }), "{error}");
}
