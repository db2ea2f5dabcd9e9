//! OTLP: exports spans of sampled transactions from the log ring to a collector, over HTTP.
//!
//! It reads the ring like any reader and must never delay a core. What the collector does not
//! accept in time, or rejects, is dropped and counted.

mod delivery;
mod messages;
mod spans;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::units::DurationMs;
use base::{Counter, Counters, Limit};
use observe::ring::{FollowStart, RingFollower};

use crate::collector::Collector;
use crate::state::Daemon;
use delivery::{Deliveries, DeliveryOutcome};
use spans::{RingSpans, SpanBatch};

/// The interval at which the ring is polled.
const LOOK: Duration = Duration::from_millis(500);
/// The backoff after the first failure, about; it doubles with every further one up to
/// [`REST_MAX_MS`] (OTLP asks for backoff with jitter and names no numbers).
const REST_MS: u64 = 1_000;
const REST_MAX_MS: u64 = 30_000;
/// The longest backoff that a collector can ask for.
const SPARED_MAX_MS: u64 = 600_000;

/// Exports everything that is written to the log ring from now on.
pub(crate) fn start(daemon: &Arc<Daemon>, config: Option<&config::Tracing>) {
    if config.is_none() {
        return;
    }
    let Some(ring) = &daemon.ring else {
        base::tell!(Warn, "larder: no traces: they need the log ring, which is off");
        return;
    };
    // At once, so that no request of a client is missed.
    let follower = match RingFollower::open(ring.folder(), FollowStart::Now) {
        Ok(follower) => follower,
        Err(e) => return base::tell!(Error, "larder: no traces: {}: {e}", ring.folder().display()),
    };
    if let Err(e) = start_thread(Arc::clone(daemon), follower, ring.folder().to_owned()) {
        base::tell!(Error, "larder: no traces: {e}");
    }
}

/// Exports on a thread of its own, as connection pools belong to a thread.
fn start_thread(daemon: Arc<Daemon>, follower: RingFollower, folder: PathBuf) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let counters = daemon.shared.counters.register();
    let (noted, mut first) = (Arc::clone(&counters), Some(follower));
    let begin = move || {
        let exporter = Exporter::new(Arc::clone(&daemon), Arc::clone(&counters));
        let follower =
            first.take().map_or_else(|| RingFollower::open(&folder, FollowStart::Now), Ok);
        async move {
            match follower {
                Ok(follower) => exporter.run(follower).await,
                Err(e) => base::tell!(Error, "larder: traces have ended: {e}"),
            }
        }
    };
    let work = move || {
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, net::run_with_restarts(begin, || noted.inc(Counter::Panics)));
    };
    std::thread::Builder::new().name("traces".to_owned()).spawn(work).map(drop)
}

/// Spans on their way from the ring to the collector.
struct Exporter {
    daemon: Arc<Daemon>,
    counters: Arc<Counters>,
    deliveries: Deliveries,
    waiting: VecDeque<SpanBatch>,
    rest: CollectorBackoff,
    /// Deliveries fail, which was logged.
    fails: bool,
    /// Spans are rejected, or the collector warns, which was logged.
    is_warned: bool,
}

impl Exporter {
    fn new(daemon: Arc<Daemon>, counters: Arc<Counters>) -> Self {
        let deliveries = Deliveries::new(&daemon.shared, &daemon.shared.live().limits);
        Self {
            daemon,
            counters,
            deliveries,
            waiting: VecDeque::new(),
            rest: CollectorBackoff::default(),
            fails: false,
            is_warned: false,
        }
    }

    async fn run(mut self, mut follower: RingFollower) {
        let mut look = rt::time::interval(LOOK);
        look.set_missed_tick_behavior(rt::time::MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            self.deliveries.sweep();
            let live = self.daemon.shared.live();
            let (tracing, collector) = (live.tracing.clone(), self.daemon.collector());
            let Some((tracing, collector)) = tracing.zip(collector) else {
                self.expire(live.limits.trace_retry);
                continue;
            };
            let waiting = self.waiting.iter().map(|batch| batch.spans).sum();
            let room = live.limits.trace_spans.saturating_sub(waiting);
            let (now_ms, gzip) = (rt::now().mono_ms, collector.gzip);
            let read = rt::run_blocking(move || {
                let found = spans::found(&mut follower, &tracing, room);
                let found = found.map(|RingSpans { spans, dropped }| {
                    (spans::batches(spans, gzip, now_ms), dropped)
                });
                (follower, found)
            });
            let (back, found) = read.await;
            follower = back;
            let (batches, dropped) = match found {
                Ok(found) => found,
                Err(e) => {
                    return base::tell!(Error, "larder: traces have ended: the log ring: {e}");
                }
            };
            if dropped > 0 {
                self.counters.add(Counter::TraceDropped, dropped);
                self.counters.limit(Limit::TraceSpans);
            }
            self.waiting.extend(batches);
            self.hand_on(&collector).await;
        }
    }

    /// Delivers waiting batches until a delivery fails or the next poll is due.
    async fn hand_on(&mut self, collector: &Collector) {
        let until_ms = rt::now().mono_ms.saturating_add(LOOK.as_millis() as u64);
        while !self.rest.is_on(rt::now().mono_ms)
            && let Some(batch) = self.waiting.pop_front()
        {
            self.deliver(collector, batch).await;
            if rt::now().mono_ms >= until_ms {
                break;
            }
        }
        if self.rest.is_on(rt::now().mono_ms) {
            self.expire(self.daemon.shared.live().limits.trace_retry);
        }
    }

    async fn deliver(&mut self, collector: &Collector, batch: SpanBatch) {
        let wait_ms = self.daemon.shared.live().limits.trace_timeout;
        let delivery = self.deliveries.deliver(collector, &batch);
        let outcome = rt::time::timeout(Duration::from_millis(wait_ms), delivery).await;
        let outcome = outcome.unwrap_or_else(|_| {
            self.counters.limit(Limit::TraceTimeout);
            let why = format!("no answer within {} (trace_timeout)", DurationMs(wait_ms));
            DeliveryOutcome::Later { why, wait_ms: None }
        });
        match outcome {
            DeliveryOutcome::Taken { rejected, words } => {
                let rejected = rejected.min(batch.spans);
                self.counters.add(Counter::TraceSpans, batch.spans - rejected);
                self.counters.add(Counter::TraceDropped, rejected);
                self.rest = CollectorBackoff::default();
                self.succeeds(rejected, &words);
            }
            DeliveryOutcome::Later { why, wait_ms } => {
                self.counters.inc(Counter::TraceRetries);
                self.rest.begin(rt::now().mono_ms, wait_ms);
                self.waiting.push_front(batch);
                self.fails_for(&why);
            }
            DeliveryOutcome::Refused { why } => {
                self.counters.add(Counter::TraceDropped, batch.spans);
                self.rest = CollectorBackoff::default();
                self.fails_for(&why);
            }
        }
    }

    /// Drops batches that have waited longer than `most_ms`.
    fn expire(&mut self, most_ms: u64) {
        let now_ms = rt::now().mono_ms;
        while let Some(batch) = self.waiting.front()
            && now_ms.saturating_sub(batch.since_ms) >= most_ms
        {
            self.counters.add(Counter::TraceDropped, batch.spans);
            self.counters.limit(Limit::TraceRetry);
            self.waiting.pop_front();
        }
    }

    fn fails_for(&mut self, why: &str) {
        if !self.fails {
            base::tell!(Warn, "larder: traces do not reach the collector: {why}");
        }
        self.fails = true;
    }

    fn succeeds(&mut self, rejected: u64, words: &str) {
        if self.fails {
            base::tell!(Notice, "larder: traces reach the collector again");
        }
        let has_words = rejected > 0 || !words.is_empty();
        if has_words && !self.is_warned {
            let words = if words.is_empty() { "it gives no reason" } else { words };
            base::tell!(Warn, "larder: the collector of traces rejects {rejected} spans: {words}");
        }
        (self.fails, self.is_warned) = (false, has_words);
    }
}

/// The time for which a failing collector gets no requests.
#[derive(Debug, Default)]
struct CollectorBackoff {
    /// Failures in a row.
    failures: u32,
    until_ms: u64,
}

impl CollectorBackoff {
    fn is_on(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// Begins a backoff after a failure: as long as the collector says, or longer each time, with
    /// jitter. It is never so short that the collector is asked again at once.
    fn begin(&mut self, now_ms: u64, wanted_ms: Option<u64>) {
        let own_ms = REST_MS.saturating_mul(1 << self.failures.min(16)).min(REST_MAX_MS);
        let own_ms = fastrand::u64(own_ms / 2..=own_ms);
        self.failures = self.failures.saturating_add(1);
        let rest_ms = wanted_ms.unwrap_or(own_ms).clamp(REST_MS / 2, SPARED_MAX_MS);
        self.until_ms = now_ms.saturating_add(rest_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_by_chance_and_are_what_a_collector_wants() {
        let mut rest = CollectorBackoff::default();
        assert!(!rest.is_on(1_000));
        for least in [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000] {
            rest.begin(1_000, None);
            let long = rest.until_ms - 1_000;
            assert!((least..=2 * least).contains(&long), "{least}: {long}");
            assert!(rest.is_on(1_000) && !rest.is_on(rest.until_ms));
        }
        rest.begin(1_000, Some(7_000));
        assert_eq!(rest.until_ms, 8_000);
        rest.begin(1_000, Some(u64::MAX));
        assert_eq!(rest.until_ms, 1_000 + SPARED_MAX_MS);
        rest.begin(1_000, Some(0));
        assert!(rest.is_on(1_400));
    }
}
