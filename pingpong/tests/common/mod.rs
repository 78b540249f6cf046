//! What the integration tests share.
#![allow(dead_code)]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pingpong::{Error, RingResult, Rings, RingsBuilder, TransportKind};

pub type Outcome = Result<Vec<RingResult>, Error>;

/// The CPUs that a ring can use here; at least one.
pub fn cpus() -> Vec<u32> {
    pingpong::usable_cpus().unwrap().iter().collect()
}

/// The transports that can carry a ring of two stops here, each with CPUs for it: two where
/// there are two.
pub fn pairs() -> Vec<(TransportKind, [u32; 2])> {
    let cpus = cpus();
    let pair = [cpus[0], *cpus.get(1).unwrap_or(&cpus[0])];
    let kinds = TransportKind::ALL.iter().copied();
    kinds
        .filter(|&kind| kind != TransportKind::Spin || pair[0] != pair[1])
        .map(|kind| (kind, pair))
        .collect()
}

/// A builder with one ring of two stops.
pub fn pair((kind, cpus): (TransportKind, [u32; 2])) -> RingsBuilder {
    Rings::builder().ring(cpus).transport(kind)
}

/// Fails, where a hang would be the failure. The limit is no measure of time: it is far
/// longer than anything here takes.
pub fn no_hang<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = sender.send(what());
    });
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(done) => {
            thread.join().unwrap();
            done
        }
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().unwrap_err())
        }
    }
}
