//! A limit on how fast a merge takes its inputs, as `compaction_throughput` is in Cassandra.
//!
//! What is counted are stored bytes of `Data.db`: Cassandra counts uncompressed positions times the
//! compression ratio. There is no burst: bytes are paid for before the next are taken, so that over
//! any time no more than the rate and one block go through.
//!
//! Source: `CompactionManager.compactionRateLimiterAcquire`.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long to sleep at most before looking whether somebody wants to stop.
const NAP: Duration = Duration::from_millis(50);

/// One rate for all inputs of a merge, and for all merges that share it.
#[derive(Debug)]
pub struct RateLimiter {
    bytes_per_s: NonZeroU64,
    bill: Mutex<Bill>,
}

#[derive(Debug, Default)]
struct Bill {
    /// When what was taken so far will have been paid for.
    paid_at: Option<Instant>,
    bytes: u64,
}

impl RateLimiter {
    /// A limiter at this rate.
    pub fn new(bytes_per_s: NonZeroU64) -> RateLimiter {
        RateLimiter {
            bytes_per_s,
            bill: Mutex::default(),
        }
    }

    /// Waits until everything before these bytes is paid for, and puts them on the bill. Returns early
    /// when `cancelled` is set.
    pub fn take(&self, bytes: u64, cancelled: &AtomicBool) {
        let wait_until = self.enter(bytes, Instant::now());
        loop {
            let left = wait_until.saturating_duration_since(Instant::now());
            if left.is_zero() || cancelled.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(left.min(NAP));
        }
    }

    /// When bytes that are asked for at `now` may be taken.
    fn enter(&self, bytes: u64, now: Instant) -> Instant {
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s.get() as f64);
        let mut bill = self.bill();
        // Time in which nothing was taken is lost: it is no credit.
        let start = bill.paid_at.map_or(now, |paid_at| paid_at.max(now));
        bill.paid_at = Some(start + cost);
        bill.bytes = bill.bytes.saturating_add(bytes);
        start
    }

    /// Bytes that all who share it have taken so far.
    pub fn taken_bytes(&self) -> u64 {
        self.bill().bytes
    }

    fn bill(&self) -> MutexGuard<'_, Bill> {
        self.bill.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(limiter.enter(500, now), now);
        assert_eq!(limiter.enter(100, now), after(500));
        assert_eq!(limiter.enter(1, after(100)), after(600));
        // A pause is no credit for later.
        assert_eq!(limiter.enter(1000, after(5000)), after(5000));
        assert_eq!(limiter.enter(1, after(5001)), after(6000));
        assert_eq!(limiter.taken_bytes(), 1602);
    }

    #[test]
    fn who_is_cancelled_does_not_wait() {
        let limiter = RateLimiter::new(NonZeroU64::new(1).unwrap());
        let cancelled = AtomicBool::new(true);
        limiter.take(1 << 40, &cancelled);
        limiter.take(1, &cancelled);
    }
}
