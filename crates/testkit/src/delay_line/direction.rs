//! One direction of a connection: bytes in flight, and their times of arrival.
//!
//! It reads no clock. `take` and `finish` are its input; after `arrive` the bytes that have arrived
//! are available, and `sent` removes them. No byte may overtake another.
//! come are at hand, and `sent` removes them. It must never let a byte overtake another.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::Instant;

use super::conditions::Conditions;

/// Payload of a segment: Ethernet's 1,500 bytes without the headers of IP and TCP.
const SEGMENT_BYTES: usize = 1460;

/// Smallest retransmission timeout of TCP, that of Linux (`TCP_RTO_MIN`).
const RETRANSMISSION: Duration = Duration::from_millis(200);

/// Most bytes in flight, unless rate and delay together need more. It stands for TCP's windows: 20
/// MB/s at a delay of 50 ms. While it is full, the line reads nothing.
pub(super) const IN_FLIGHT_BYTES: usize = 1 << 20;

/// Bytes in flight, first in first out.
#[derive(Debug)]
pub(super) struct Direction {
    conditions: Conditions,
    random: Rng,
    bytes: VecDeque<u8>,
    /// Number of bytes at the front that have arrived.
    arrived: usize,
    /// Lengths of the segments behind them, with their times of arrival.
    segments: VecDeque<(Instant, usize)>,
    /// The time at which the rate has let all bytes onto the line.
    idle_from: Instant,
    /// The time of arrival of the latest segment.
    latest: Instant,
    /// The time of arrival of the end; `None` before the sender ends.
    end: Option<Instant>,
}

impl Direction {
    /// Makes a direction that takes bytes from `opened` on.
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

    /// Number of bytes that it can take now; 0 after the end.
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

    /// Takes the sender's end of stream.
    pub(super) fn finish(&mut self, now: Instant) {
        let due = self.idle_from.max(now) + self.delay();
        self.end = Some(self.latest.max(due));
    }

    /// Moves the bytes whose time has come by `now` to the arrived ones.
    pub(super) fn arrive(&mut self, now: Instant) {
        while let Some((_, length)) = self.segments.pop_front_if(|(due, _)| *due <= now) {
            self.arrived += length;
        }
    }

    /// Returns true if all bytes and the end have arrived and been sent.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.bytes.is_empty() && self.end.is_some_and(|end| end <= now)
    }

    /// The time of the next arrival; `None` if it depends on the two ends.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.segments.front() {
            Some((due, _)) => Some(*due),
            None if self.bytes.is_empty() => self.end,
            None => None,
        }
    }

    /// Arrived bytes, or the first part of them.
    pub(super) fn arrived(&self) -> &[u8] {
        let (front, _) = self.bytes.as_slices();
        &front[..front.len().min(self.arrived)]
    }

    /// Removes `count` arrived bytes.
    pub(super) fn sent(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.arrived -= count;
    }

    /// Most bytes in flight.
    fn capacity(&self) -> usize {
        let Conditions { delay, jitter, rate, .. } = self.conditions;
        let filled = rate.map_or(0.0, |rate| rate.get() as f64 * (delay + jitter).as_secs_f64());
        IN_FLIGHT_BYTES.max(filled as usize)
    }

    /// The delay of bytes read now.
    fn delay(&mut self) -> Duration {
        self.conditions.delay + self.conditions.jitter.mul_f64(self.random.f64())
    }

    /// The time that the rate takes for `bytes`.
    fn line_time(&self, bytes: usize) -> Duration {
        let nanos = |rate: NonZeroU64| bytes as u64 * 1_000_000_000 / rate;
        self.conditions.rate.map_or(Duration::ZERO, |rate| Duration::from_nanos(nanos(rate)))
    }
}
