//! A run: makes the links and the threads, watches them, and gathers what they found.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::gettid;

use crate::board::Board;
use crate::cpus::{allowed_cpus, is_offline, is_only, pin};
use crate::stop::{Done, Stop};
use crate::sys;
use crate::transport::{Futex, HopError, Link, Pipe, Spin, Transport, TransportKind};
use crate::{Error, Limit, RingResult, Rings, StopResult};

/// Runs the rings, with their transport known to the compiler from here on.
pub(crate) fn run<V>(rings: &Rings, visit: &V) -> Result<Vec<RingResult>, Error>
where
    V: Fn(usize, usize) + Sync,
{
    match rings.transport {
        TransportKind::Pipe => run_over::<Pipe, V>(rings, visit),
        TransportKind::Futex => run_over::<Futex, V>(rings, visit),
        TransportKind::Spin => run_over::<Spin, V>(rings, visit),
    }
}

/// A stop's place.
#[derive(Clone, Copy)]
struct Place {
    ring: usize,
    stop: usize,
    cpu: u32,
}

fn run_over<T: Transport, V>(rings: &Rings, visit: &V) -> Result<Vec<RingResult>, Error>
where
    V: Fn(usize, usize) + Sync,
{
    let places = places(rings);
    let links = links::<T>(rings)?;
    let board = Board::new(places.len(), rings.stopper.clone());
    let (loops, time) = match rings.limit {
        Limit::Loops(loops) => (loops, None),
        Limit::Time(time) => (u64::MAX, Some(time)),
        Limit::UntilStopped => (u64::MAX, None),
    };

    let done: Vec<Option<Done>> = thread::scope(|scope| {
        let mut threads: Vec<ScopedJoinHandle<'_, Option<Done>>> = Vec::new();
        for (index, (place, link)) in places.iter().copied().zip(links).enumerate() {
            let stop = Stop {
                ring: place.ring,
                stop: place.stop,
                loops,
                work: rings.work,
                board: &board,
                visit,
            };
            let started = thread::Builder::new()
                .name(format!("ring{}.{}", place.ring, place.stop))
                .spawn_scoped(scope, move || body(index, place, &stop, link));
            match started {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    board.abandon(Error::Spawn {
                        ring: place.ring,
                        stop: place.stop,
                        source,
                    });
                    break;
                }
            }
        }
        board.watch(threads.len(), rings.rings.len(), time, |stop, tid| {
            still_pinned(places[stop], tid)
        });
        // Joined one by one: the scope itself waits for their work only, not for their end.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(None))
            .collect()
    });

    match board.into_error() {
        Some(error) => Err(error),
        None => Ok(results(rings, done)),
    }
}

/// All stops, ring by ring.
fn places(rings: &Rings) -> Vec<Place> {
    let rings = rings.rings.iter().enumerate();
    rings
        .flat_map(|(ring, cpus)| {
            let stops = cpus.iter().enumerate();
            stops.map(move |(stop, &cpu)| Place { ring, stop, cpu })
        })
        .collect()
}

/// Their links, in the same order.
fn links<T: Transport>(rings: &Rings) -> Result<Vec<T::Link>, Error> {
    let mut links = Vec::new();
    for (ring, cpus) in rings.rings.iter().enumerate() {
        let made = T::ring(cpus.len()).map_err(|source| Error::Create {
            ring,
            transport: rings.transport,
            source,
        })?;
        links.extend(made);
    }
    Ok(links)
}

/// A stop's thread, from its first instruction to its last.
fn body<V, L>(index: usize, place: Place, stop: &Stop<'_, V>, link: L) -> Option<Done>
where
    V: Fn(usize, usize),
    L: Link,
{
    // The link goes with the closure, so that a panic hangs up before anything else.
    let ran = catch_unwind(AssertUnwindSafe(move || stay(index, place, stop, link)));
    let ran = ran.unwrap_or_else(|panic| {
        Err(Error::Panicked {
            ring: place.ring,
            stop: place.stop,
            cpu: place.cpu,
            message: said(panic.as_ref()),
        })
    });
    let (done, error) = match ran {
        Ok(done) => (done, None),
        Err(error) => (None, Some(error)),
    };
    stop.board.finish(index, error);
    done
}

/// `None` when the run was abandoned before it began.
fn stay<V, L>(
    index: usize,
    place: Place,
    stop: &Stop<'_, V>,
    link: L,
) -> Result<Option<Done>, Error>
where
    V: Fn(usize, usize),
    L: Link,
{
    // A write to a dead stop's pipe is to fail, also in programs that let SIGPIPE kill them.
    // It can't fail: the set is valid.
    let _ = SigSet::from(Signal::SIGPIPE).thread_block();
    pin(place.cpu)?;
    if !stop.board.wait_for_pins(index, gettid().as_raw()) {
        return Ok(None);
    }
    let passed = if place.stop == 0 {
        stop.lead(link)
    } else {
        stop.follow(link)
    };
    let done = passed.map_err(|error| failed(place, error))?;
    still_pinned(place, 0)?;
    Ok(Some(done))
}

/// Looks whether a thread (0: the caller) may run on its CPU and nowhere else.
fn still_pinned(place: Place, tid: libc::pid_t) -> Result<(), Error> {
    let found = match tid {
        0 => allowed_cpus()?,
        tid => sys::affinity(tid).map_err(|source| Error::Affinity { source })?,
    };
    if is_only(&found, place.cpu) {
        return Ok(());
    }
    Err(Error::LostCpu {
        ring: place.ring,
        stop: place.stop,
        cpu: place.cpu,
        found,
        offline: is_offline(place.cpu),
    })
}

fn failed(place: Place, error: HopError) -> Error {
    let Place { ring, stop, cpu } = place;
    match error {
        HopError::HungUp => Error::HungUp { ring, stop, cpu },
        HopError::Os { call, source } => Error::Hop {
            ring,
            stop,
            cpu,
            call,
            source,
        },
    }
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "(no message)".to_owned()
    }
}

/// Gathers what the stops did, which without an error is all there.
fn results(rings: &Rings, done: Vec<Option<Done>>) -> Vec<RingResult> {
    let mut done = done.into_iter().flatten();
    let mut results = Vec::new();
    for cpus in &rings.rings {
        let stops: Vec<(u32, Done)> = cpus.iter().copied().zip(done.by_ref()).collect();
        let lead = stops.first().and_then(|(_, done)| done.lead.as_ref());
        results.push(RingResult {
            loops: stops.first().map_or(0, |(_, done)| done.hops),
            elapsed: lead.map_or(Duration::ZERO, |lead| lead.elapsed),
            stopped: lead.is_some_and(|lead| lead.stopped),
            stops: stops
                .iter()
                .map(|(cpu, done)| StopResult {
                    cpu: *cpu,
                    hops: done.hops,
                })
                .collect(),
        });
    }
    results
}
