//! When a run ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long each ring runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// So many times once round, each ring on its own.
    Loops(u64),
    /// So long, counted from the common start; the loop under way is finished.
    Time(Duration),
    /// Until the [`Stopper`] says so.
    UntilStopped,
}

/// A handle that ends rings while they run, from any thread.
///
/// Clones are one and the same. Once stopped it stays so; a run that begins with a stopped
/// stopper ends before its first loop.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicBool;
/// use pingpong::Stopper;
///
/// // A flag that a signal handler sets is a stopper too:
/// let flag = Arc::new(AtomicBool::new(false));
/// let stopper = Stopper::from(flag.clone());
/// stopper.stop();
/// assert!(flag.load(std::sync::atomic::Ordering::Relaxed));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// A stopper that has not stopped anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every run that this stopper was given to, each ring at the end of its loop.
    ///
    /// It is one atomic store, so that a signal handler may call it.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for Stopper {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}
