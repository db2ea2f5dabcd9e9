//! The pacer of an open loop: due times of requests. They must never depend on the server's
//! responses.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::settings::Load;
use crate::urls::List;

/// The last part of each wait polls for responses, because a timer's wake-up takes up to this long.
const SPUN: Duration = Duration::from_micros(100);

/// A due request or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueRequest {
    pub(crate) at: Instant,
    /// The number of the request; `None` for the next one of the list.
    pub(crate) number: Option<u32>,
}

/// The due times of one thread of a run.
#[derive(Debug)]
pub(crate) enum Arrivals {
    /// Evenly spaced.
    Even { begin: Instant, distance: f64, next: u64, step: u64 },
    /// At random intervals with a mean.
    Random { at: Instant, mean: f64, draws: fastrand::Rng },
    /// As in a log, `speed` times as fast.
    Replay { begin: Instant, speed: f64, due: Vec<(u64, u32)>, next: usize },
}

impl Arrivals {
    /// Makes the due times of thread `own` of `all`; `None` for a closed load.
    pub(crate) fn new(
        load: &Load,
        list: &List,
        begin: Instant,
        own: usize,
        all: usize,
    ) -> Option<Self> {
        match *load {
            Load::Open { rate, random: true, .. } => Some(Self::Random {
                at: begin,
                mean: all as f64 / rate,
                draws: fastrand::Rng::with_seed(own as u64 + 1),
            }),
            Load::Open { rate, .. } | Load::Sessions { rate, .. } => {
                Some(Self::Even { begin, distance: 1.0 / rate, next: own as u64, step: all as u64 })
            }
            Load::Replay { speed, .. } => {
                let due = list.due().iter().zip(list.sequence());
                let due = due.skip(own).step_by(all).map(|(at, number)| (*at, *number)).collect();
                Some(Self::Replay { begin, speed, due, next: 0 })
            }
            Load::Closed { .. } | Load::Ramp { .. } => None,
        }
    }

    /// The next due time; `None` after the end of a log.
    pub(crate) fn next(&mut self) -> Option<DueRequest> {
        match self {
            Self::Even { begin, distance, next, step } => {
                let after = Duration::from_secs_f64(*next as f64 * *distance);
                *next += *step;
                Some(DueRequest { at: *begin + after, number: None })
            }
            Self::Random { at, mean, draws } => {
                let after = Duration::from_secs_f64(-(1.0 - draws.f64()).ln() * *mean);
                *at += after;
                Some(DueRequest { at: *at, number: None })
            }
            Self::Replay { begin, speed, due, next } => {
                let (after, number) = *due.get(*next)?;
                *next += 1;
                let after = Duration::from_secs_f64(after as f64 / 1e6 / *speed);
                Some(DueRequest { at: *begin + after, number: Some(number) })
            }
        }
    }
}

/// A timer that is exact to some microseconds (tokio's is to a millisecond): a timer descriptor of
/// the kernel.
pub(crate) struct Timer {
    timer: OwnedFd,
    rings: Receiver,
}

impl Timer {
    pub(crate) fn new() -> Result<Self, String> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let both = || -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            let rings = Receiver::from_owned_fd_unchecked(timer.try_clone()?)?;
            Ok(Self { timer, rings })
        };
        both().map_err(|error| format!("timer: {error}"))
    }

    /// Waits until `at`.
    pub(crate) async fn until(&mut self, at: Instant) -> Result<(), String> {
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let Some(asleep) = left.checked_sub(SPUN).filter(|asleep| !asleep.is_zero()) else {
                tokio::task::yield_now().await;
                continue;
            };
            let none = Timespec { tv_sec: 0, tv_nsec: 0 };
            let value = Timespec {
                tv_sec: i64::try_from(asleep.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: asleep.subsec_nanos().into(),
            };
            let spec = Itimerspec { it_interval: none, it_value: value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec)
                .map_err(|error| format!("timer: {error}"))?;
            let mut count = [0; 8];
            self.rings.read(&mut count).await.map_err(|error| format!("timer: {error}"))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_rate() {
        let begin = Instant::now();
        let load = Load::Open { rate: 1000.0, random: false, connections: 1 };
        let mut all: Vec<_> = (0..3)
            .filter_map(|own| Arrivals::new(&load, &List::default(), begin, own, 3))
            .flat_map(|mut arrivals| (0..5).filter_map(move |_| arrivals.next()))
            .map(|due| due.at.duration_since(begin).as_micros())
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..15).map(|nth| nth * 1000).collect::<Vec<u128>>());
    }

    #[test]
    fn random_distances_have_the_rate_as_their_mean() {
        let begin = Instant::now();
        let load = Load::Open { rate: 1000.0, random: true, connections: 1 };
        let mut arrivals = Arrivals::new(&load, &List::default(), begin, 0, 1).expect("open");
        let last = (0..100_000).filter_map(|_| arrivals.next()).last().expect("due");
        let seconds = last.at.duration_since(begin).as_secs_f64();
        assert!((98.0..102.0).contains(&seconds), "{seconds}");
    }
}
