//! This machine's own interrupts: moved and put back, by us and by irqbalance.
//!
//! As another user than root, with one CPU or without irqbalance, each test says so and
//! checks that it is refused as it should be.
#![allow(clippy::unwrap_used)]

mod affinity;
mod irqbalance;

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hostfs::{Change, HostFs, Restore};
use irqaffinity::irqbalance::Irqbalance;
use irqaffinity::{Error, Interrupts, Irq};

/// Held by each test that moves interrupts.
static MACHINE: Mutex<()> = Mutex::new(());

/// The machine for one test alone: no daemon moves anything meanwhile.
struct Machine {
    fs: HostFs,
    record: Restore,
    _paused: Vec<Change>,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    fn alone() -> Self {
        let alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let fs = HostFs::live();
        let record = Restore::new(&fs);
        let paused = if is_root() {
            Irqbalance::pause(&record).unwrap()
        } else {
            Vec::new()
        };
        Machine {
            fs,
            record,
            _paused: paused,
            _alone: alone,
        }
    }

    /// `None`, with the reason on stderr, where nothing can be moved.
    fn that_can_move() -> Option<Self> {
        if !is_root() {
            eprintln!("not root: nothing can be moved");
            return None;
        }
        let machine = Self::alone();
        let online: hostfs::CpuSet = machine.fs.read("sys/devices/system/cpu/online").unwrap();
        if online.len() < 2 {
            eprintln!("one CPU: there is nowhere to move to");
            return None;
        }
        Some(machine)
    }

    fn irq(&self, irq: u32) -> Irq {
        Irq::read(&self.fs, irq).unwrap()
    }

    /// IRQs that can be moved and are delivered to one CPU of several.
    fn movable(&self) -> Vec<Irq> {
        let irqs = Irq::read_all(&self.fs).unwrap();
        let one_of_several = |irq: &Irq| {
            let effective = irq.effective.as_ref();
            irq.settable.is_none()
                && irq.affinity.len() > 1
                && effective.is_some_and(|at| at.len() == 1 && at.is_subset(&irq.affinity))
        };
        irqs.into_iter().filter(one_of_several).collect()
    }

    /// A movable IRQ that reading the hardware's random numbers keeps busy.
    fn busy_irq(&self) -> Option<Irq> {
        let before = Interrupts::read(&self.fs).unwrap();
        busy(|| std::thread::sleep(Duration::from_millis(50)));
        let delta = Interrupts::read(&self.fs).unwrap().since(&before);
        let count = |irq: &Irq| delta.irq(irq.irq).and_then(|row| row.change.total());
        let random = self.movable().into_iter().filter(|irq| {
            // By its action: others may be busy by chance.
            delta
                .irq(irq.irq)
                .is_some_and(|row| row.text.ends_with("-input"))
        });
        let found = random.max_by_key(count).filter(|irq| count(irq) > Some(2));
        if found.is_none() {
            eprintln!("no random number generator whose interrupt could be provoked");
        }
        found
    }
}

/// Runs something while interrupts of the random number generator come.
fn busy<T>(run: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let Ok(mut random) = File::open("/dev/hwrng") else {
                return;
            };
            while !done.load(Ordering::Relaxed) {
                if random.read(&mut [0; 64]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        // A panic in here must end the thread, too.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        done.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn is_root() -> bool {
    Irqbalance::check_privilege().is_ok()
}

/// What every attempt to move an interrupt is answered without privilege.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Host(hostfs::Error::NotPermitted { .. }))
}
