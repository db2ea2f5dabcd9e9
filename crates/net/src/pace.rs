//! A connection that sends no faster than a program wants (`tcp.set_socket_pace`).
//!
//! The kernel could keep the pace itself (`SO_MAX_PACING_RATE`), but nobody offers that call
//! without `unsafe`. So a paced socket takes from a bucket that fills at the pace, and what does
//! not fit into it waits. Connections that no program paces have none of this.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rt::time::{Instant, Sleep};

/// Bytes that are sent at once at least, where there are as many: fewer cost more in calls than
/// they smooth.
const LEAST_BYTES: u64 = 4 * 1024;
/// The bucket holds what this part of a second brings.
const BUCKETS_PER_SECOND: u64 = 10;

/// The pace of one connection.
#[derive(Debug)]
pub(crate) struct SocketPace {
    /// Bytes per second; 0 for as many as go.
    rate: Cell<u64>,
    /// Bytes that may be sent, as of `at`.
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

    /// Sets the pace, in bytes per second; 0 for none.
    pub(crate) fn set(&self, rate: u64) {
        self.rate.set(rate);
        self.left.set(self.full());
        self.at.set(Instant::now());
    }

    fn full(&self) -> f64 {
        (self.rate.get() / BUCKETS_PER_SECOND).max(LEAST_BYTES) as f64
    }

    /// The number of the `wanted` bytes that may be sent at `now`; otherwise the time until some
    /// may.
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
        // Rounded up, so that enough is there afterwards.
        Err(Duration::from_secs_f64(missing / rate as f64) + Duration::from_millis(1))
    }

    /// The number of the `wanted` bytes that may be sent now; otherwise the task is woken when some
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

    /// So many bytes have been sent.
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
        // Ten seconds' worth, a tenth of a second's of it at once.
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
