//! One direction of a connection: its bytes in flight, and the times at which they come out.
//!
//! It reads no clock. Input comes by `take` and `finish`; after `arrive` the bytes whose time has
//! come are at hand, and `sent` removes them. It must never let a byte overtake another.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use super::conditions::Conditions;

/// Bytes of a segment: Ethernet's 1,500 without the headers of IP and TCP.
const SEGMENT_BYTES: usize = 1460;

/// Least time after which TCP sends a segment again: that of Linux, `TCP_RTO_MIN`.
const RETRANSMISSION: Duration = Duration::from_millis(200);

/// The most bytes in flight, unless the rate and the delay together need more. It stands for the
/// windows of TCP: 20 MB/s at a delay of 50 ms. A full line is not read from.
pub(super) const IN_FLIGHT_BYTES: usize = 1 << 20;

/// Bytes under way, first in first out.
#[derive(Debug)]
pub(super) struct Direction {
    conditions: Conditions,
    random: Rng,
    bytes: VecDeque<u8>,
    /// Number of bytes, at the front, whose time has come.
    arrived: usize,
    /// Lengths of the segments after those bytes, with the times at which they come out.
    segments: VecDeque<(Instant, usize)>,
    /// The time at which all that was taken has been put on the line, as fast as the rate allows.
    idle_from: Instant,
    /// The time at which the latest segment comes out.
    latest: Instant,
    /// The time at which the end comes out; `None` until it is known.
    end: Option<Instant>,
}

impl Direction {
    /// A direction into which bytes go from `opened` on.
    pub(super) fn new(conditions: Conditions, random: Rng, opened: Instant) -> Self {
        Self {
            conditions,
            random,
            bytes: VecDeque::new(),
            arrived: 0,
            segments: VecDeque::new(),
            idle_from: opened,
            latest: opened,
            end: None,
        }
    }

    /// The number of bytes that can be taken now; 0 after the end.
    pub(super) fn room(&self) -> usize {
        if self.end.is_some() { 0 } else { self.capacity().saturating_sub(self.bytes.len()) }
    }

    /// Takes bytes from the sender.
    pub(super) fn take(&mut self, bytes: &[u8], now: Instant) {
        let delay = self.delay();
        self.idle_from = self.idle_from.max(now);
        for segment in bytes.chunks(SEGMENT_BYTES) {
            self.idle_from += self.line_time(segment.len());
            let mut due = self.idle_from + delay;
            if self.random.f64() < self.conditions.loss {
                due += RETRANSMISSION.max(2 * self.conditions.delay);
            }
            self.latest = self.latest.max(due);
            self.segments.push_back((self.latest, segment.len()));
        }
        self.bytes.extend(bytes);
    }

    /// Takes the sender's end.
    pub(super) fn finish(&mut self, now: Instant) {
        let due = self.idle_from.max(now) + self.delay();
        self.end = Some(self.latest.max(due));
    }

    /// Lets everything arrive whose time has come by `now`.
    pub(super) fn arrive(&mut self, now: Instant) {
        while let Some((_, length)) = self.segments.pop_front_if(|(due, _)| *due <= now) {
            self.arrived += length;
        }
    }

    /// Says that everything has come out and been sent, the end included.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.bytes.is_empty() && self.end.is_some_and(|end| end <= now)
    }

    /// The time at which something comes out next; `None` if that depends on the two ends.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.segments.front() {
            Some((due, _)) => Some(*due),
            None if self.bytes.is_empty() => self.end,
            None => None,
        }
    }

    /// Bytes that have arrived, or the first part of them.
    pub(super) fn arrived(&self) -> &[u8] {
        let (front, _) = self.bytes.as_slices();
        &front[..front.len().min(self.arrived)]
    }

    /// Removes `count` of the bytes that have arrived.
    pub(super) fn sent(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.arrived -= count;
    }

    /// The most bytes in flight.
    fn capacity(&self) -> usize {
        let Conditions { delay, jitter, rate, .. } = self.conditions;
        let filled = rate.map_or(0.0, |rate| rate.get() as f64 * (delay + jitter).as_secs_f64());
        IN_FLIGHT_BYTES.max(filled as usize)
    }

    /// The delay of what is read now.
    fn delay(&mut self) -> Duration {
        self.conditions.delay + self.conditions.jitter.mul_f64(self.random.f64())
    }

    /// The time that putting so many bytes on the line takes.
    fn line_time(&self, bytes: usize) -> Duration {
        let nanos = |rate: NonZeroU64| bytes as u64 * 1_000_000_000 / rate;
        self.conditions.rate.map_or(Duration::ZERO, |rate| Duration::from_nanos(nanos(rate)))
    }
}
