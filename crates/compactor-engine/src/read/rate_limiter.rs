//! A limit on how fast a merge takes its inputs, as `compaction_throughput` is in Cassandra.
//!
//! What is counted are stored bytes of `Data.db`: Cassandra counts uncompressed positions times the
//! compression ratio. There is no burst: bytes are paid for before the next are taken, so that over
//! any time no more than the rate and one block go through.
//!
//! Source: `CompactionManager.compactionRateLimiterAcquire`.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How long to sleep at most before looking whether somebody wants to stop.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// One rate for all inputs of a merge, and for all merges that share it.
#[derive(Debug)]
pub struct RateLimiter {
    bytes_per_s: NonZeroU64,
    /// Ends every wait when it is set.
    stop: Arc<AtomicBool>,
    reservations: Mutex<Reservations>,
}

#[derive(Debug, Default)]
struct Reservations {
    /// When what was taken so far will have been paid for.
    next_free: Option<Instant>,
    bytes: u64,
}

impl RateLimiter {
    /// A limiter at this rate.
    pub fn new(bytes_per_s: NonZeroU64) -> RateLimiter {
        RateLimiter {
            bytes_per_s,
            stop: Arc::default(),
            reservations: Mutex::default(),
        }
    }

    /// Cancels every wait once `stop` is set. A merge asks its observer only between rows, and a block may
    /// have to be waited for for seconds.
    #[must_use]
    pub fn stopped_by(self, stop: Arc<AtomicBool>) -> RateLimiter {
        RateLimiter { stop, ..self }
    }

    /// Waits until everything before these bytes is paid for, and puts them on the reservations.
    ///
    /// # Errors
    /// Cancelled, if `cancelled` or the limiter's own flag is set before these bytes may be taken.
    pub fn take(&self, bytes: u64, cancelled: &AtomicBool) -> Result<()> {
        let wait_until = self.reserve(bytes, Instant::now());
        loop {
            let left = wait_until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if cancelled.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            std::thread::sleep(left.min(MAX_SLEEP));
        }
    }

    /// When bytes that are asked for at `now` may be taken.
    fn reserve(&self, bytes: u64, now: Instant) -> Instant {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s.get() as f64);
        let mut reservations = self.reservations();
        // Time in which nothing was taken is lost: it is no credit.
        let start = reservations
            .next_free
            .map_or(now, |next_free| next_free.max(now));
        reservations.next_free = Some(start + cost);
        reservations.bytes = reservations.bytes.saturating_add(bytes);
        start
    }

    /// Bytes that all who share it have taken so far.
    pub fn taken_bytes(&self) -> u64 {
        self.reservations().bytes
    }

    fn reservations(&self) -> MutexGuard<'_, Reservations> {
        self.reservations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wait_for_those_before_them() {
        let limiter = RateLimiter::new(NonZeroU64::new(1000).unwrap());
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms);
        assert_eq!(limiter.reserve(500, now), now);
        assert_eq!(limiter.reserve(100, now), after(500));
        assert_eq!(limiter.reserve(1, after(100)), after(600));
        // A pause is no credit for later.
        assert_eq!(limiter.reserve(1000, after(5000)), after(5000));
        assert_eq!(limiter.reserve(1, after(5001)), after(6000));
        assert_eq!(limiter.taken_bytes(), 1602);
    }

    #[test]
    fn who_is_cancelled_does_not_wait() {
        let rate = NonZeroU64::new(1).unwrap();
        let (set, clear) = (AtomicBool::new(true), AtomicBool::new(false));
        let stopped = RateLimiter::new(rate).stopped_by(Arc::new(AtomicBool::new(true)));
        for (limiter, cancelled) in [(RateLimiter::new(rate), set), (stopped, clear)] {
            // Nothing is before these.
            limiter.take(1 << 40, &cancelled).unwrap();
            let taken = limiter.take(1, &cancelled);
            assert!(matches!(taken, Err(Error::Cancelled)), "{taken:?}");
        }
    }
}
