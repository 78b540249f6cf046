//! Energy for readers without privilege.

use std::time::Duration;

use hostfs::Stamp;

use crate::{Energy, Meter, Reading};

/// The shortest time between two updates.
const SHORTEST: Duration = Duration::from_secs(1);

/// A [`Meter`] whose figures may be handed on to readers without privilege: they change at
/// most once in a second, however often they are asked for.
///
/// What a program computes, up to its keys, can be told from energy that is read often
/// (CVE-2020-8694). A server that reads with privilege and answers everybody goes through
/// this type, so that nobody can make it read more often.
#[derive(Debug)]
pub struct Coarse {
    meter: Meter,
    period: Duration,
    first: Reading,
    last: Reading,
}

impl Coarse {
    /// Reads anew when the last reading is as old as the period, which is at least a second.
    pub fn new(mut meter: Meter, period: Duration) -> Self {
        let first = meter.read();
        Self {
            meter,
            period: period.max(SHORTEST),
            last: first.clone(),
            first,
        }
    }

    /// The time from one update to the next.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The energy since the first reading, as of the latest update. Two calls within a
    /// period get the same answer.
    ///
    /// A counter that may have wrapped more than once since the first reading is
    /// [`Ambiguous`](crate::Outcome::Ambiguous): [`restart`](Self::restart) before that.
    pub fn energy(&mut self) -> Energy {
        self.update();
        self.last.since(&self.first)
    }

    /// As [`energy`](Self::energy), then the next answer counts from here.
    pub fn restart(&mut self) -> Energy {
        let energy = self.energy();
        self.first.clone_from(&self.last);
        energy
    }

    fn update(&mut self) {
        let ((), now) = Stamp::around(|| ());
        let age = now.since(self.last.stamp());
        if age.is_some_and(|age| age.wall() >= self.period) {
            self.meter.read_into(&mut self.last);
        }
    }
}
