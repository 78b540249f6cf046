//! A thread that takes samples at a steady pace, and at once when asked to.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A series of samples, taken by a thread of its own at multiples of a period.
///
/// What a sample is, the caller's closure decides; it is the one place that owns what it
/// reads, so that nothing is read by two threads.
///
/// ```
/// use std::time::{Duration, Instant};
/// use hostfs::Sampler;
///
/// let sampler = Sampler::start(Duration::from_millis(10), Instant::now)?;
/// let border = sampler.mark();
/// let series = sampler.stop();
/// assert_eq!(border, Some(1), "a sample is taken at the start, then at the mark");
/// assert!(series.len() >= 3, "and one at the end");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler<T> {
    series: Arc<Mutex<Vec<T>>>,
    /// Asks for a sample and is answered with its place in the series. Dropped to stop.
    ask: Option<SyncSender<SyncSender<usize>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Sampler<T> {
    /// Starts the thread, which takes the first sample at once. The period is the time
    /// from one regular sample to the next whatever a sample takes; when one takes longer
    /// than that, the regular samples that were missed are left out.
    ///
    /// # Errors
    ///
    /// What the system answers when no thread can be started.
    pub fn start(period: Duration, take: impl FnMut() -> T + Send + 'static) -> io::Result<Self> {
        let series = Arc::new(Mutex::new(Vec::new()));
        let (ask, asked) = sync_channel(0);
        let thread = std::thread::Builder::new().name("sampler".into()).spawn({
            let series = Arc::clone(&series);
            // A period of zero would never let a mark through.
            let period = period.max(Duration::from_millis(1));
            move || run(period, take, &series, &asked)
        })?;
        Ok(Self {
            series,
            ask: Some(ask),
            thread: Some(thread),
        })
    }

    /// Takes a sample now and returns its place in the series once it is taken; `None` if
    /// the thread has ended because the closure panicked.
    pub fn mark(&self) -> Option<usize> {
        let (answer, answered) = sync_channel(1);
        self.ask.as_ref()?.send(answer).ok()?;
        answered.recv().ok()
    }

    /// Takes a last sample, ends the thread and returns the whole series. What was sampled
    /// before a panic of the closure is there too.
    pub fn stop(mut self) -> Vec<T> {
        self.mark();
        self.end();
        std::mem::take(&mut self.series.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Sampler<T> {
    fn end(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the closure was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl<T> Drop for Sampler<T> {
    fn drop(&mut self) {
        self.end();
    }
}

fn run<T>(
    period: Duration,
    mut take: impl FnMut() -> T,
    series: &Mutex<Vec<T>>,
    asked: &Receiver<SyncSender<usize>>,
) {
    let mut sample = || {
        let sample = take();
        let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
        series.push(sample);
        series.len() - 1
    };
    // Before anybody is answered: the series begins at the start, also where a mark is
    // asked for at once.
    let mut due = Instant::now() + period;
    sample();
    loop {
        match asked.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(answer) => {
                let _ = answer.send(sample());
            }
            Err(RecvTimeoutError::Timeout) => {
                sample();
                while due <= Instant::now() {
                    due += period;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lie_where_they_were_asked_for() {
        let mut count = 0;
        let sampler = Sampler::start(Duration::from_secs(3600), move || {
            count += 1;
            count
        })
        .unwrap();
        assert_eq!(sampler.mark(), Some(1), "after the first sample, always");
        assert_eq!(sampler.mark(), Some(2));
        assert_eq!(sampler.stop(), [1, 2, 3, 4]);
    }

    #[test]
    fn samples_come_by_themselves() {
        let sampler = Sampler::start(Duration::from_millis(1), || ()).unwrap();
        while sampler.series.lock().unwrap().len() < 10 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_panic_of_the_closure_keeps_the_series() {
        let mut left = 2;
        let sampler = Sampler::start(Duration::from_millis(1), move || {
            assert!(left > 0, "the closure's own fault");
            left -= 1;
            left
        })
        .unwrap();
        while sampler.mark().is_some() {}
        assert_eq!(sampler.stop(), [1, 0]);
    }

    #[test]
    fn dropping_ends_the_thread() {
        let owned = Arc::new(());
        let kept = Arc::clone(&owned);
        let sampler = Sampler::start(Duration::from_secs(3600), move || {
            let _ = &kept;
        })
        .unwrap();
        drop(sampler);
        assert_eq!(Arc::strong_count(&owned), 1);
    }
}
