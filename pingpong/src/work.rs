//! Work to do at each stop: a chain of integer operations, each of which needs the last.

use std::hint::black_box;
use std::time::Instant;

/// Longer work is cut into pieces of this many units (some 90 µs), between which the end of
/// the run is looked for.
pub(crate) const PIECE: u64 = 1 << 16;

/// Does so many units, or fewer if `over` says between two pieces that nobody waits for it.
#[inline]
pub(crate) fn work(mut units: u64, over: impl Fn() -> bool) {
    while units > PIECE {
        chain(PIECE);
        units -= PIECE;
        if over() {
            return;
        }
    }
    if units > 0 {
        chain(units);
    }
}

/// What one unit of [`work`](crate::RingsBuilder::work) costs here and now, in nanoseconds.
///
/// The best of several timings of some milliseconds on the calling thread: about 1.3 on a
/// CPU of 3 GHz. A unit is a multiplication and an addition that wait for the last one's, so
/// its cost is a number of clock cycles and follows the CPU's frequency.
pub fn work_unit_ns() -> f64 {
    const UNITS: u64 = 1 << 20;
    let timing = || {
        let start = Instant::now();
        chain(UNITS);
        start.elapsed().as_nanos() as f64 / UNITS as f64
    };
    (0..7).map(|_| timing()).fold(f64::INFINITY, f64::min)
}

/// The one piece of machine code that does the work, whatever the stop and the transport.
#[inline(never)]
fn chain(units: u64) {
    // Knuth's MMIX generator; hidden at both ends, so that no step can be left out.
    let mut x: u64 = black_box(1);
    for _ in 0..units {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(x);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_unit_takes_time() {
        // More would be a lie of the optimiser: no CPU does a multiplication in 0.1 ns.
        assert!(work_unit_ns() > 0.1);
    }

    #[test]
    fn long_work_is_given_up_between_two_pieces() {
        let asked = Cell::new(0);
        work(u64::MAX, || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        });
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn short_work_never_asks() {
        work(PIECE, || panic!("asked"));
        work(0, || panic!("asked"));
    }
}
