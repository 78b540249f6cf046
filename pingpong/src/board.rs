//! What the stops of a run and its caller tell each other off the hot path: who is ready,
//! when all begin, who has finished, and what went wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Error, Stopper};

/// How often the caller looks whether every stop still has its CPU.
const LOOK: Duration = Duration::from_millis(200);

/// Shared by all stops of a run.
pub(crate) struct Board {
    over: Over,
    state: Mutex<State>,
    /// Where the caller waits.
    caller: Condvar,
    /// Where stops wait for the next phase.
    gate: Condvar,
}

/// What ends a run before its loops are done. Alone on its cache lines, since every first
/// stop reads it in every loop.
#[repr(align(128))]
struct Over {
    /// The time is over or a stop failed.
    flag: AtomicBool,
    stopper: Stopper,
}

struct State {
    phase: Phase,
    /// Stops that are pinned.
    pinned: usize,
    /// First stops whose ring is warm.
    warm: usize,
    finished: usize,
    /// The threads that are alive for sure, since they need this lock to finish.
    tids: Vec<Option<libc::pid_t>>,
    error: Option<Error>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pinning,
    WarmingUp,
    Running,
    /// Something failed before the start.
    Abandoned,
}

impl Board {
    /// For so many stops in all.
    pub(crate) fn new(stops: usize, stopper: Stopper) -> Self {
        Self {
            over: Over {
                flag: AtomicBool::new(false),
                stopper,
            },
            state: Mutex::new(State {
                phase: Phase::Pinning,
                pinned: 0,
                warm: 0,
                finished: 0,
                tids: vec![None; stops],
                error: None,
            }),
            caller: Condvar::new(),
            gate: Condvar::new(),
        }
    }

    /// Whether the run is over for everybody, by time or by failure.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.flag.load(Ordering::Relaxed)
    }

    /// Whether the stopper ended it.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.over.stopper.is_stopped()
    }

    /// A stop is pinned: waits for all others. Whether to go on.
    pub(crate) fn wait_for_pins(&self, stop: usize, tid: libc::pid_t) -> bool {
        let mut state = self.lock();
        state.tids[stop] = Some(tid);
        state.pinned += 1;
        self.wait_while(state, Phase::Pinning)
    }

    /// A first stop's ring is warm: waits for all other rings. Whether to go on.
    pub(crate) fn wait_for_start(&self) -> bool {
        let mut state = self.lock();
        state.warm += 1;
        self.wait_while(state, Phase::WarmingUp)
    }

    fn wait_while(&self, state: MutexGuard<'_, State>, phase: Phase) -> bool {
        self.caller.notify_one();
        let state = self.gate.wait_while(state, |state| state.phase == phase);
        state.unwrap_or_else(PoisonError::into_inner).phase != Phase::Abandoned
    }

    /// A stop's last word.
    pub(crate) fn finish(&self, stop: usize, error: Option<Error>) {
        let mut state = self.lock();
        state.tids[stop] = None;
        state.finished += 1;
        if let Some(error) = error {
            self.fail(&mut state, error);
        }
        self.caller.notify_one();
    }

    /// Ends the run for want of the threads that were still to come.
    pub(crate) fn abandon(&self, error: Error) {
        self.fail(&mut self.lock(), error);
    }

    /// The error that ended the run, if one did.
    pub(crate) fn into_error(self) -> Option<Error> {
        let state = self.state.into_inner();
        state.unwrap_or_else(PoisonError::into_inner).error
    }

    /// Waits for `stops` stops of `rings` rings to finish. Leads them from phase to phase,
    /// ends the run when its time is over, and looks at every thread now and then with
    /// `check(stop, tid)`.
    pub(crate) fn watch(
        &self,
        stops: usize,
        rings: usize,
        time: Option<Duration>,
        check: impl Fn(usize, libc::pid_t) -> Result<(), Error>,
    ) {
        let mut deadline = None;
        let mut next_look = Instant::now() + LOOK;
        let mut state = self.lock();
        while state.finished < stops {
            match state.phase {
                Phase::Pinning if state.pinned == stops => {
                    self.enter(&mut state, Phase::WarmingUp);
                }
                Phase::WarmingUp if state.warm == rings => {
                    self.enter(&mut state, Phase::Running);
                    // A time past the end of time is no limit.
                    deadline = time.and_then(|time| Instant::now().checked_add(time));
                }
                _ => {}
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                deadline = None;
                self.over.flag.store(true, Ordering::Relaxed);
            }
            if next_look <= now {
                next_look = now + LOOK;
                let alive = state.tids.iter().enumerate();
                let checked: Result<(), Error> = alive
                    .filter_map(|(stop, tid)| Some((stop, (*tid)?)))
                    .try_for_each(|(stop, tid)| check(stop, tid));
                if let Err(error) = checked {
                    self.fail(&mut state, error);
                }
            }
            let until = deadline.map_or(next_look, |deadline| deadline.min(next_look));
            let waited = self
                .caller
                .wait_timeout(state, until.saturating_duration_since(now));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn enter(&self, state: &mut State, phase: Phase) {
        state.phase = phase;
        self.gate.notify_all();
    }

    /// Ends the run with an error: the first one, unless that is a mere consequence.
    fn fail(&self, state: &mut State, error: Error) {
        if matches!(state.error, None | Some(Error::HungUp { .. })) {
            state.error = Some(error);
        }
        self.over.flag.store(true, Ordering::Relaxed);
        if state.phase != Phase::Running {
            self.enter(state, Phase::Abandoned);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hung_up(stop: usize) -> Error {
        Error::HungUp {
            ring: 0,
            stop,
            cpu: 0,
        }
    }

    fn panicked(stop: usize) -> Error {
        Error::Panicked {
            ring: 0,
            stop,
            cpu: 0,
            message: String::new(),
        }
    }

    fn outcome(errors: Vec<Error>) -> Option<Error> {
        let board = Board::new(errors.len(), Stopper::new());
        for (stop, error) in errors.into_iter().enumerate() {
            board.finish(stop, Some(error));
        }
        assert!(board.is_over());
        board.into_error()
    }

    #[test]
    fn the_cause_is_kept_and_not_its_consequences() {
        let error = outcome(vec![hung_up(0), panicked(1), hung_up(2), panicked(3)]);
        assert!(matches!(error, Some(Error::Panicked { stop: 1, .. })));
    }

    #[test]
    fn a_hang_up_without_a_cause_is_an_error_too() {
        let error = outcome(vec![hung_up(0), hung_up(1)]);
        assert!(matches!(error, Some(Error::HungUp { .. })));
    }

    #[test]
    fn a_failure_before_the_start_opens_the_gates() {
        let board = Board::new(2, Stopper::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!board.wait_for_pins(0, 0));
                board.finish(0, None);
            });
            scope.spawn(|| board.finish(1, Some(panicked(1))));
            board.watch(2, 1, None, |_, _| Ok(()));
        });
        assert!(!board.wait_for_start());
    }

    #[test]
    fn a_run_abandoned_for_want_of_threads_waits_for_those_there_are() {
        let board = Board::new(3, Stopper::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!board.wait_for_pins(0, 0));
                board.finish(0, None);
            });
            board.abandon(panicked(1));
            board.watch(1, 1, None, |_, _| Ok(()));
        });
        assert!(matches!(
            board.into_error(),
            Some(Error::Panicked { stop: 1, .. })
        ));
    }

    #[test]
    fn a_failed_check_ends_the_run_within_a_second() {
        let board = Board::new(1, Stopper::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(board.wait_for_pins(0, 42));
                assert!(board.wait_for_start());
                while !board.is_over() {
                    std::thread::yield_now();
                }
                board.finish(0, None);
            });
            board.watch(1, 1, None, |stop, tid| {
                assert_eq!((stop, tid), (0, 42));
                Err(panicked(stop))
            });
        });
        assert!(board.into_error().is_some());
    }

    #[test]
    fn a_time_past_the_end_of_time_is_no_limit() {
        let board = Board::new(1, Stopper::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(board.wait_for_pins(0, 0));
                assert!(board.wait_for_start());
                assert!(!board.is_over());
                board.finish(0, None);
            });
            board.watch(1, 1, Some(Duration::MAX), |_, _| Ok(()));
        });
        assert!(!board.is_over());
    }
}
