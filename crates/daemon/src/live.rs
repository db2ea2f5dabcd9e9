//! Live figures for dashboards: one sampler for all viewers.
//!
//! With viewers, it takes a reading a second and reads the log ring. Without, it only notes the
//! counters every ten seconds, so that a new viewer gets a history. It must never wait for a
//! viewer: a slow one misses events.

mod figures;
mod history;
mod ring;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::counters::{Counters, Registry};
use base::limits::Limit;
use bytes::Bytes;
use parking_lot::Mutex;
use rt::time::{MissedTickBehavior, interval, sleep};
use tokio::sync::{Notify, watch};

use crate::state::Daemon;
use figures::FigureReading;
pub(crate) use figures::{campaign_row, finding_row};
use history::History;
use ring::RingView;

/// The interval between figures sent to viewers.
const EVERY: Duration = Duration::from_secs(1);
/// The interval of notes without viewers.
const IDLE: Duration = Duration::from_secs(10);
/// Polls of the ring each second: a busy core fills its ring in a few.
const LOOKS: u32 = 10;

/// The figures of one moment: of all sites together, and of each site that a viewer has selected.
type FigureSnapshot = BTreeMap<Option<String>, Bytes>;

/// State that viewers share.
#[derive(Debug)]
pub(crate) struct LiveFigures {
    /// The number of viewers of each site, and of all sites together.
    viewers: Mutex<BTreeMap<Option<String>, u64>>,
    came: Notify,
    latest: watch::Sender<FigureSnapshot>,
    history: Mutex<History>,
    counters: Arc<Counters>,
}

/// A viewer. The sampler rests when the last one is gone.
#[derive(Debug)]
pub(crate) struct Viewer {
    live: Arc<LiveFigures>,
    /// The selected site; `None` for all together.
    site: Option<String>,
    updates: watch::Receiver<FigureSnapshot>,
}

impl LiveFigures {
    /// Live figures without viewers, with a history of `history_minutes`.
    pub(crate) fn new(counters: &Registry, history_minutes: usize) -> Arc<Self> {
        Arc::new(Self {
            viewers: Mutex::default(),
            came: Notify::new(),
            latest: watch::Sender::default(),
            history: Mutex::new(History::new(history_minutes)),
            counters: counters.register(),
        })
    }

    /// Adds a viewer, of one site or of all together; `None` if there are `most` already.
    pub(crate) fn view(self: &Arc<Self>, site: Option<String>, most: u64) -> Option<Viewer> {
        let mut viewers = self.viewers.lock();
        if viewers.values().sum::<u64>() >= most {
            drop(viewers);
            self.counters.limit(Limit::DashboardViewers);
            return None;
        }
        *viewers.entry(site.clone()).or_default() += 1;
        drop(viewers);
        self.came.notify_one();
        let mut updates = self.latest.subscribe();
        // Figures sent before the viewer came may be old.
        updates.mark_unchanged();
        Some(Viewer { live: Arc::clone(self), site, updates })
    }

    /// The selected sites; `None` stands for all together.
    fn looked_at(&self) -> Vec<Option<String>> {
        self.viewers.lock().keys().cloned().collect()
    }

    fn is_looked_at(&self) -> bool {
        !self.viewers.lock().is_empty()
    }
}

impl Viewer {
    /// The history, as an event.
    pub(crate) fn history(&self) -> Bytes {
        event("history", &self.live.history.lock().json(self.site.as_deref()))
    }

    /// The next figures, as an event; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.updates.changed().await.ok()?;
            // The snapshot may have been made before the viewer came.
            if let Some(own) = self.updates.borrow_and_update().get(&self.site) {
                return Some(own.clone());
            }
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let mut viewers = self.live.viewers.lock();
        if let Some(count) = viewers.get_mut(&self.site) {
            *count -= 1;
            if *count == 0 {
                viewers.remove(&self.site);
            }
        }
    }
}

/// A server-sent event (HTML, 9.2). JSON has no line ends of its own.
pub(crate) fn event(name: &str, value: &serde_json::Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}

/// Samples until the daemon ends.
pub(crate) async fn run(daemon: Arc<Daemon>, live: Arc<LiveFigures>) {
    let mut before = FigureReading::take(&daemon);
    live.history.lock().note(&before);
    let mut view: Option<RingView> = None;
    let mut has_rested = true;
    let mut tick = interval(EVERY / LOOKS);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if live.is_looked_at() {
            if view.is_none() {
                view = daemon.ring.as_ref().and_then(|ring| RingView::open(ring.folder()));
            }
            // The first viewer is not kept waiting.
            let looks = if has_rested { 1 } else { LOOKS };
            has_rested = false;
            for _ in 0..looks {
                tick.tick().await;
                let sites = live.looked_at();
                let looked = aside(view, move |view| view.read_records(&sites)).await;
                view = looked.and_then(|(view, is_there)| is_there.then_some(view));
            }
        } else {
            (view, has_rested) = (None, true);
            tokio::select! {
                () = sleep(IDLE) => {}
                () = live.came.notified() => {}
            }
        }
        let reading = FigureReading::take(&daemon);
        live.history.lock().note(&reading);
        let shown = live.looked_at();
        if !shown.is_empty() {
            let told = send_figures(&reading, &before, shown, &mut view).await;
            live.latest.send_replace(told);
        }
        before = reading;
    }
}

/// Sends the figures of everything that is `shown`.
async fn send_figures(
    reading: &FigureReading,
    before: &FigureReading,
    shown: Vec<Option<String>>,
    view: &mut Option<RingView>,
) -> FigureSnapshot {
    let seconds = reading.since(before);
    let sites = shown.clone();
    let of_ring = aside(view.take(), move |view| {
        view.pass(seconds);
        sites.iter().map(|site| view.json(site.as_deref())).collect::<Vec<_>>()
    });
    let of_ring = of_ring.await.map(|(own, told)| {
        *view = Some(own);
        told
    });
    let mut of_ring = of_ring.unwrap_or_default().into_iter();
    let one = |site: Option<String>| {
        let mut value = reading.json(before, site.as_deref());
        value["ring"] = of_ring.next().unwrap_or_default();
        (site, event("figures", &value))
    };
    shown.into_iter().map(one).collect()
}

/// Works on the ring on a thread beside the runtime: it may be much. `None` if there is no ring.
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
        let live = LiveFigures::new(&registry, 10);
        let site = || Some("a".to_owned());
        let (first, second) = (live.view(None, 2), live.view(site(), 2));
        assert!(first.is_some() && second.is_some() && live.view(None, 2).is_none());
        assert_eq!(registry.limit_sum(Limit::DashboardViewers), 1);
        assert_eq!(live.looked_at(), [None, site()]);
        drop(first);
        let third = live.view(site(), 2);
        assert!(third.is_some());
        assert_eq!(live.looked_at(), [site()]);
        drop((second, third));
        assert!(!live.is_looked_at());
    }

    #[tokio::test]
    async fn a_slow_viewer_gets_the_latest_of_its_site_and_a_newcomer_nothing_old() {
        let live = LiveFigures::new(&Registry::default(), 10);
        let told = |site: Option<&str>, text: &'static [u8]| {
            live.latest.send_replace(FigureSnapshot::from([(
                site.map(str::to_owned),
                Bytes::from_static(text),
            )]));
        };
        told(None, b"old");
        let mut viewer = live.view(None, 2).expect("one");
        told(None, b"1");
        told(None, b"2");
        assert_eq!(viewer.next().await.as_deref(), Some(&b"2"[..]));
        assert!(!viewer.updates.has_changed().expect("open"));
        let mut of_a = live.view(Some("a".to_owned()), 2).expect("two");
        // It was made before a viewer had selected the site.
        told(None, b"3");
        let early = tokio::time::timeout(Duration::from_millis(20), of_a.next()).await;
        assert!(early.is_err(), "{early:?}");
        told(Some("a"), b"4");
        assert_eq!(of_a.next().await.as_deref(), Some(&b"4"[..]));
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let told = event("figures", &serde_json::json!({ "url": "/a\n\ndata: x\r" }));
        let text = String::from_utf8(told.to_vec()).expect("text");
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("event: figures\ndata: {") && text.ends_with("}\n\n"));
    }
}
