//! Limit on the rate at which a merge reads its inputs, as `compaction_throughput` in Cassandra.
//!
//! Stored bytes of `Data.db` are counted; Cassandra counts uncompressed positions times the compression
//! ratio. There is no burst: a read waits until all previous bytes are due, so that over any time at most the
//! rate and one block are read.
//!
//! Source: `CompactionManager.compactionRateLimiterAcquire`.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use compactor_io::lock;

use crate::error::{Error, Result};

/// Maximum sleep before checking for cancellation.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// Rate limit shared by all inputs of a merge, and by all merges that use it.
#[derive(Debug)]
pub struct RateLimiter {
    bytes_per_s: NonZeroU64,
    /// Cancels every wait once it is set.
    stop: Arc<AtomicBool>,
    reservations: Mutex<Reservations>,
}

#[derive(Debug, Default)]
struct Reservations {
    /// Time at which all reserved bytes will have been read at the limited rate.
    next_free: Option<Instant>,
    bytes: u64,
}

impl RateLimiter {
    /// Creates a limiter of this rate.
    pub fn new(bytes_per_s: NonZeroU64) -> RateLimiter {
        RateLimiter {
            bytes_per_s,
            stop: Arc::default(),
            reservations: Mutex::default(),
        }
    }

    /// Cancels every wait once `stop` is set. A merge asks its observer only between rows, and the wait for a
    /// block may take seconds.
    #[must_use]
    pub fn stopped_by(self, stop: Arc<AtomicBool>) -> RateLimiter {
        RateLimiter { stop, ..self }
    }

    /// Reserves these bytes and waits until all previously reserved ones are due.
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

    /// Time at which bytes requested at `now` may be read.
    fn reserve(&self, bytes: u64, now: Instant) -> Instant {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s.get() as f64);
        let mut reservations = lock(&self.reservations);
        // Idle time gives no credit.
        let start = reservations
            .next_free
            .map_or(now, |next_free| next_free.max(now));
        reservations.next_free = Some(start + cost);
        reservations.bytes = reservations.bytes.saturating_add(bytes);
        start
    }

    /// Bytes reserved so far by all users.
    pub fn taken_bytes(&self) -> u64 {
        lock(&self.reservations).bytes
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
        // A pause gives no credit for later.
        assert_eq!(limiter.reserve(1000, after(5000)), after(5000));
        assert_eq!(limiter.reserve(1, after(5001)), after(6000));
        assert_eq!(limiter.taken_bytes(), 1602);
    }

    #[test]
    fn cancellation_ends_the_wait() {
        let rate = NonZeroU64::new(1).unwrap();
        let (set, clear) = (AtomicBool::new(true), AtomicBool::new(false));
        let stopped = RateLimiter::new(rate).stopped_by(Arc::new(AtomicBool::new(true)));
        for (limiter, cancelled) in [(RateLimiter::new(rate), set), (stopped, clear)] {
            // No bytes were reserved before.
            limiter.take(1 << 40, &cancelled).unwrap();
            let taken = limiter.take(1, &cancelled);
            assert!(matches!(taken, Err(Error::Cancelled)), "{taken:?}");
        }
    }
}
