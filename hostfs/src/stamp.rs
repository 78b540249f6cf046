//! When something was read, and how exactly that is known.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A suspend takes longer than this; a shorter difference of the two clocks is the time
/// that passed between asking one and the other.
const SHORTEST_SUSPEND: Duration = Duration::from_millis(1);

/// The moment of a reading: the midpoint of the clock before and after it.
///
/// The clocks are `CLOCK_MONOTONIC`, which stands still while the machine is suspended,
/// and `CLOCK_BOOTTIME`, which does not (`clock_gettime(2)`). Stamps of one boot can be
/// compared with each other, also across processes.
///
/// ```
/// use hostfs::Stamp;
///
/// let (_, earlier) = Stamp::around(|| std::fs::read_to_string("/proc/uptime"));
/// let (_, later) = Stamp::around(|| std::fs::read_to_string("/proc/uptime"));
/// let elapsed = later.since(&earlier).expect("the clock does not run backwards");
/// println!("{:?} ± {:?}", elapsed.time, elapsed.uncertainty);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stamp {
    monotonic: Duration,
    uncertainty: Duration,
    boottime: Duration,
}

impl Stamp {
    /// A stamp halfway between two readings of the monotonic clock. `boottime` belongs to
    /// that midpoint.
    pub fn between(before: Duration, after: Duration, boottime: Duration) -> Self {
        let uncertainty = after.saturating_sub(before) / 2;
        Self {
            monotonic: before.saturating_add(uncertainty),
            uncertainty,
            boottime,
        }
    }

    /// Runs `read` between two looks at the clock.
    pub fn around<T>(read: impl FnOnce() -> T) -> (T, Self) {
        let mut stamps = Stamps::start();
        let answer = read();
        (answer, stamps.next_stamp())
    }

    /// `CLOCK_MONOTONIC` at the midpoint, since an arbitrary moment before the boot's end.
    pub fn monotonic(&self) -> Duration {
        self.monotonic
    }

    /// The reading was taken at most this long before or after the midpoint.
    pub fn uncertainty(&self) -> Duration {
        self.uncertainty
    }

    /// `CLOCK_BOOTTIME` at the midpoint.
    pub fn boottime(&self) -> Duration {
        self.boottime
    }

    /// The time from an earlier stamp to this one; `None` if that one is not earlier.
    pub fn since(&self, earlier: &Stamp) -> Option<Elapsed> {
        let time = self.monotonic.checked_sub(earlier.monotonic)?;
        let asleep = self
            .boottime
            .saturating_sub(earlier.boottime)
            .saturating_sub(time);
        Some(Elapsed {
            time,
            uncertainty: self.uncertainty.saturating_add(earlier.uncertainty),
            asleep: if asleep < SHORTEST_SUSPEND {
                Duration::ZERO
            } else {
                asleep
            },
        })
    }
}

/// The time between two stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Elapsed {
    /// On the monotonic clock, without the time for which the machine was suspended.
    pub time: Duration,
    /// `time` is right to within this.
    pub uncertainty: Duration,
    /// For how long the machine was suspended, zero if it was not.
    pub asleep: Duration,
}

impl Elapsed {
    /// The time that passed on a clock on the wall: awake and suspended.
    pub fn wall(&self) -> Duration {
        self.time.saturating_add(self.asleep)
    }
}

/// Stamps for several readings in a row: each ends where the next begins, so that a
/// reading costs one look at the clock. Allocates nothing.
#[derive(Debug, Clone)]
pub struct Stamps {
    start: Duration,
    last: Duration,
    /// The boot-time clock at some moment of the monotonic one.
    boottime_at: (Duration, Duration),
}

impl Stamps {
    /// Looks at both clocks: the first reading begins now.
    pub fn start() -> Self {
        let (boottime_at, now) = boottime();
        Self {
            start: now,
            last: now,
            boottime_at,
        }
    }

    /// The stamp of what was read since the one before, or since the start.
    pub fn next_stamp(&mut self) -> Stamp {
        let now = clock(ClockId::CLOCK_MONOTONIC);
        let before = std::mem::replace(&mut self.last, now);
        self.stamp(before, now)
    }

    /// The monotonic clock at the end of the last reading, or at the start.
    pub fn last(&self) -> Duration {
        self.last
    }

    /// The monotonic clock now, without ending a reading.
    pub fn now() -> Duration {
        clock(ClockId::CLOCK_MONOTONIC)
    }

    /// One stamp over everything that was read since the start.
    pub fn whole(&self) -> Stamp {
        self.stamp(self.start, self.last)
    }

    fn stamp(&self, before: Duration, after: Duration) -> Stamp {
        let (monotonic, boottime) = self.boottime_at;
        let mut stamp = Stamp::between(before, after, Duration::ZERO);
        stamp.boottime = boottime.saturating_add(stamp.monotonic.saturating_sub(monotonic));
        stamp
    }
}

/// The boot-time clock with the monotonic one at that moment, and the monotonic one just
/// after. A look that was interrupted is taken again a few times, so that an interruption is
/// not taken for a suspend.
fn boottime() -> ((Duration, Duration), Duration) {
    const QUICK: Duration = Duration::from_micros(5);
    let look = || {
        let before = clock(ClockId::CLOCK_MONOTONIC);
        let boottime = clock(ClockId::CLOCK_BOOTTIME);
        let after = clock(ClockId::CLOCK_MONOTONIC);
        let took = after.saturating_sub(before);
        (took, (before + took / 2, boottime), after)
    };
    let mut best = look();
    for _ in 0..4 {
        if best.0 < QUICK {
            break;
        }
        let again = look();
        // The end is that of the last look, whichever is the best.
        best = (
            best.0.min(again.0),
            if again.0 < best.0 { again.1 } else { best.1 },
            again.2,
        );
    }
    (best.1, best.2)
}

/// These two clocks are there since Linux 2.6.39; `clock_gettime(2)` knows no other
/// failure for them.
fn clock(id: ClockId) -> Duration {
    clock_gettime(id).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_stamp_is_the_midpoint_and_its_uncertainty_half_the_distance() {
        let stamp = Stamp::between(ms(100), ms(104), ms(102));
        assert_eq!((stamp.monotonic(), stamp.uncertainty()), (ms(102), ms(2)));
        let turned = Stamp::between(ms(104), ms(100), ms(102));
        assert_eq!((turned.monotonic(), turned.uncertainty()), (ms(104), ms(0)));
    }

    #[test]
    fn a_suspend_is_noticed_and_an_interruption_is_not_one() {
        let earlier = Stamp::between(ms(100), ms(100), ms(5_100));
        let awake = Stamp::between(ms(199), ms(201), ms(5_200));
        let elapsed = awake.since(&earlier).unwrap();
        assert_eq!((elapsed.time, elapsed.uncertainty), (ms(100), ms(1)));
        assert_eq!((elapsed.asleep, elapsed.wall()), (ms(0), ms(100)));
        let slept = Stamp::between(ms(200), ms(200), ms(8_200));
        let elapsed = slept.since(&earlier).unwrap();
        assert_eq!((elapsed.time, elapsed.asleep), (ms(100), ms(3_000)));
        assert_eq!(elapsed.wall(), ms(3_100));
        let late = Duration::from_micros(5_200_900);
        let interrupted = Stamp::between(ms(200), ms(200), late);
        assert_eq!(interrupted.since(&earlier).unwrap().asleep, ms(0));
    }

    #[test]
    fn nothing_elapsed_since_what_comes_later() {
        let (_, first) = Stamp::around(|| ());
        let (_, second) = Stamp::around(|| std::thread::sleep(ms(1)));
        assert!(first.since(&second).is_none());
        assert!(second.since(&first).unwrap().time > Duration::ZERO);
        assert!(second.uncertainty() >= Duration::from_micros(500));
        assert!(second.boottime() > first.boottime());
    }

    #[test]
    fn stamps_in_a_row_meet_and_the_whole_spans_them() {
        let mut stamps = Stamps::start();
        let first = stamps.next_stamp();
        let second = stamps.next_stamp();
        let whole = stamps.whole();
        let end = |stamp: &Stamp| stamp.monotonic() + stamp.uncertainty();
        let start = |stamp: &Stamp| stamp.monotonic() - stamp.uncertainty();
        let rounding = Duration::from_nanos(2);
        assert!(end(&first).abs_diff(start(&second)) <= rounding);
        assert!(start(&whole).abs_diff(start(&first)) <= rounding);
        assert!(end(&whole).abs_diff(end(&second)) <= rounding);
    }
}
