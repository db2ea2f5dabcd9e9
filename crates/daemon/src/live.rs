//! Live figures for dashboards: one sampler for all who look.
//!
//! While somebody looks, it takes a reading a second and reads the log ring. While nobody does, it
//! only notes the counters every ten seconds, so that whoever comes sees the time before. It
//! waits for no viewer: one that is slow misses what it was too slow for.

mod figures;
mod ring;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::counters::{Counters, Registry};
use base::limits::Limit;
use bytes::Bytes;
use parking_lot::Mutex;
use rt::time::{MissedTickBehavior, interval, sleep};
use tokio::sync::{Notify, watch};

use crate::state::Daemon;
use figures::{History, Reading};
use ring::RingView;

/// The interval at which viewers are sent figures.
const EVERY: Duration = Duration::from_secs(1);
/// The interval at which the counters are noted while there are no viewers.
const IDLE: Duration = Duration::from_secs(10);
/// Looks at the ring in each of these seconds: a busy core fills its ring in a few.
const LOOKS: u32 = 10;

/// State that viewers share.
#[derive(Debug)]
pub(crate) struct Live {
    viewers: AtomicU64,
    came: Notify,
    latest: watch::Sender<Bytes>,
    history: Mutex<History>,
    counters: Arc<Counters>,
}

/// Somebody who looks. The sampler rests when the last one is gone.
#[derive(Debug)]
pub(crate) struct Viewer {
    live: Arc<Live>,
    updates: watch::Receiver<Bytes>,
}

impl Live {
    /// Nobody looks yet; whoever comes is told of as many minutes as `history_minutes`.
    pub(crate) fn new(counters: &Registry, history_minutes: usize) -> Arc<Self> {
        Arc::new(Self {
            viewers: AtomicU64::new(0),
            came: Notify::new(),
            latest: watch::Sender::default(),
            history: Mutex::new(History::new(history_minutes)),
            counters: counters.register(),
        })
    }

    /// One more viewer; `None` if there are `most` already.
    pub(crate) fn view(self: &Arc<Self>, most: u64) -> Option<Viewer> {
        let one_more = |viewers| (viewers < most).then_some(viewers + 1);
        if self.viewers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
            self.counters.limit(Limit::DashboardViewers);
            return None;
        }
        self.came.notify_one();
        let mut updates = self.latest.subscribe();
        // What was sent before it came may be old.
        updates.mark_unchanged();
        Some(Viewer { live: Arc::clone(self), updates })
    }

    fn is_looked_at(&self) -> bool {
        self.viewers.load(Ordering::Relaxed) > 0
    }
}

impl Viewer {
    /// The time before it came, as an event.
    pub(crate) fn history(&self) -> Bytes {
        event("history", &self.live.history.lock().json())
    }

    /// The next figures, as an event; `None` if there will be none any more.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        self.updates.changed().await.ok()?;
        Some(self.updates.borrow_and_update().clone())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.live.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server-sent event (HTML, 9.2). JSON has no line ends of its own.
pub(crate) fn event(name: &str, value: &serde_json::Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}

/// Samples for as long as the daemon runs.
pub(crate) async fn run(daemon: Arc<Daemon>, live: Arc<Live>) {
    let mut before = Reading::take(&daemon);
    let mut view: Option<RingView> = None;
    let mut has_rested = true;
    let mut tick = interval(EVERY / LOOKS);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if live.is_looked_at() {
            if view.is_none() {
                view = daemon.ring.as_ref().and_then(|ring| RingView::open(ring.folder()));
            }
            // Whoever came first is not kept waiting.
            let looks = if has_rested { 1 } else { LOOKS };
            has_rested = false;
            for _ in 0..looks {
                tick.tick().await;
                let looked = aside(view, RingView::look).await;
                view = looked.and_then(|(view, is_there)| is_there.then_some(view));
            }
        } else {
            (view, has_rested) = (None, true);
            tokio::select! {
                () = sleep(IDLE) => {}
                () = live.came.notified() => {}
            }
        }
        let reading = Reading::take(&daemon);
        live.history.lock().note(&before, &reading);
        if live.is_looked_at() {
            let mut value = reading.json(&before);
            let seconds = reading.since(&before);
            let told = aside(view, move |view| {
                view.pass(seconds);
                view.json()
            });
            view = told.await.map(|(view, told)| {
                value["ring"] = told;
                view
            });
            live.latest.send_replace(event("figures", &value));
        }
        before = reading;
    }
}

/// Works on what the ring tells, next to the runtime: it may be much. `None` if there is nothing to
/// work on.
async fn aside<T: Send + 'static>(
    view: Option<RingView>,
    work: impl FnOnce(&mut RingView) -> T + Send + 'static,
) -> Option<(RingView, T)> {
    let mut view = view?;
    let done = rt::blocking(move || {
        let result = work(&mut view);
        (view, result)
    });
    done.await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_viewers_than_may_be_and_each_is_noticed() {
        let registry = Registry::default();
        let live = Live::new(&registry, 10);
        let (first, second) = (live.view(2), live.view(2));
        assert!(first.is_some() && second.is_some() && live.view(2).is_none());
        assert_eq!(registry.limit_sum(Limit::DashboardViewers), 1);
        drop(first);
        let third = live.view(2);
        assert!(third.is_some());
        drop((second, third));
        assert!(!live.is_looked_at());
    }

    #[tokio::test]
    async fn a_slow_viewer_gets_the_latest_and_a_newcomer_nothing_old() {
        let live = Live::new(&Registry::default(), 10);
        live.latest.send_replace(Bytes::from_static(b"old"));
        let mut viewer = live.view(1).expect("one");
        live.latest.send_replace(Bytes::from_static(b"1"));
        live.latest.send_replace(Bytes::from_static(b"2"));
        assert_eq!(viewer.next().await.as_deref(), Some(&b"2"[..]));
        assert!(!viewer.updates.has_changed().expect("open"));
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let told = event("figures", &serde_json::json!({ "url": "/a\n\ndata: x\r" }));
        let text = String::from_utf8(told.to_vec()).expect("text");
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("event: figures\ndata: {") && text.ends_with("}\n\n"));
    }
}
