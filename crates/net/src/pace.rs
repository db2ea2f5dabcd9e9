//! Pace of a socket: a program's limit on its send rate (`tcp.set_socket_pace`).
//!
//! The kernel's own limit (`SO_MAX_PACING_RATE`) needs `unsafe`, so a paced socket takes its bytes
//! from a token bucket that fills at the rate. A connection without a pace must pay nothing for it.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rt::time::{Instant, Sleep};

/// The least number of bytes sent at once, if there are as many: smaller writes cost more than they
/// smooth.
const LEAST_BYTES: u64 = 4 * 1024;
/// The bucket holds what this part of a second brings.
const BUCKETS_PER_SECOND: u64 = 10;

/// The rate limit of one connection.
#[derive(Debug)]
pub(crate) struct SocketPace {
    /// Bytes per second; 0 for no limit.
    rate: Cell<u64>,
    /// Bytes in the bucket, as of `at`.
    left: Cell<f64>,
    at: Cell<Instant>,
    sleep: RefCell<Option<Pin<Box<Sleep>>>>,
}

impl SocketPace {
    pub(crate) fn new() -> Self {
        Self {
            rate: Cell::new(0),
            left: Cell::new(0.0),
            at: Cell::new(Instant::now()),
            sleep: RefCell::default(),
        }
    }

    /// Sets the rate, in bytes per second; 0 for no limit.
    pub(crate) fn set(&self, rate: u64) {
        self.rate.set(rate);
        self.left.set(self.full());
        self.at.set(Instant::now());
    }

    fn full(&self) -> f64 {
        (self.rate.get() / BUCKETS_PER_SECOND).max(LEAST_BYTES) as f64
    }

    /// The number of `wanted` bytes that may be sent at `now`; otherwise the time until some may.
    fn allowed(&self, now: Instant, wanted: usize) -> Result<usize, Duration> {
        let rate = self.rate.get();
        if rate == 0 || wanted == 0 {
            return Ok(wanted);
        }
        let filled = (now - self.at.replace(now)).as_secs_f64() * rate as f64;
        self.left.set((self.left.get() + filled).min(self.full()));
        let missing = (wanted as u64).min(LEAST_BYTES) as f64 - self.left.get();
        if missing <= 0.0 {
            return Ok(wanted.min(self.left.get() as usize));
        }
        // Rounded up, so that the bucket has enough afterwards.
        Err(Duration::from_secs_f64(missing / rate as f64) + Duration::from_millis(1))
    }

    /// The number of `wanted` bytes that may be sent now; otherwise the task is woken when some
    /// may.
    pub(crate) fn poll_allowed(&self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        loop {
            let wait = match self.allowed(Instant::now(), wanted) {
                Ok(allowed) => return Poll::Ready(allowed),
                Err(wait) => wait,
            };
            let mut sleep = Box::pin(rt::time::sleep(wait));
            if sleep.as_mut().poll(cx).is_pending() {
                *self.sleep.borrow_mut() = Some(sleep);
                return Poll::Pending;
            }
        }
    }

    /// Takes `bytes` that were sent from the bucket.
    pub(crate) fn sent(&self, bytes: usize) {
        if self.rate.get() > 0 {
            self.left.set(self.left.get() - bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time that `bytes` take, in seconds.
    fn seconds(pace: &SocketPace, mut bytes: usize) -> f64 {
        let began = pace.at.get();
        let mut now = began;
        while bytes > 0 {
            match pace.allowed(now, bytes) {
                Ok(allowed) => {
                    pace.sent(allowed);
                    bytes -= allowed;
                }
                Err(wait) => now += wait,
            }
        }
        (now - began).as_secs_f64()
    }

    #[test]
    fn a_paced_connection_sends_as_much_as_the_pace_allows() {
        let pace = SocketPace::new();
        pace.set(100 * 1024);
        // Bytes of ten seconds, of which the bucket holds a tenth of a second's.
        let took = seconds(&pace, 1000 * 1024);
        assert!((9.9..10.5).contains(&took), "{took}");
        pace.set(0);
        assert_eq!(seconds(&pace, 1000 * 1024), 0.0);
    }

    #[test]
    fn the_slowest_pace_still_sends() {
        let pace = SocketPace::new();
        pace.set(1024);
        let took = seconds(&pace, 16 * 1024);
        assert!((12.0..12.1).contains(&took), "{took}");
    }

    #[test]
    fn what_was_not_used_is_no_credit() {
        let pace = SocketPace::new();
        pace.set(100 * 1024);
        let later = pace.at.get() + Duration::from_secs(60);
        assert_eq!(pace.allowed(later, 1 << 20), Ok(10 * 1024));
    }
}
