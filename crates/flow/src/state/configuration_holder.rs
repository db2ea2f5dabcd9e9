//! Configuration holder: the configuration in force and the fields that log readers request. Both
//! are replaced as a whole; each core takes them over before its next request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use observe::{FieldSubscription, FieldSubscriptions};
use parking_lot::Mutex;

use crate::state::live_configuration::{LiveConfiguration, LiveRef};

/// The values that cores take over while they run.
pub struct ConfigurationHolder {
    live: ArcSwap<LiveConfiguration>,
    /// The header fields that log readers request.
    wanted: Mutex<Option<Arc<FieldSubscriptions>>>,
    /// Grows with each change; cores read only this in between.
    version: AtomicU64,
}

impl ConfigurationHolder {
    pub(crate) fn new(live: LiveConfiguration) -> Self {
        let (live, wanted) = (ArcSwap::from_pointee(live), Mutex::default());
        Self { live, wanted, version: AtomicU64::new(0) }
    }

    /// The configuration in force.
    pub(crate) fn live(&self) -> Arc<LiveConfiguration> {
        self.live.load_full()
    }

    /// The header fields that log readers request.
    pub(crate) fn wanted(&self) -> Option<Arc<FieldSubscriptions>> {
        self.wanted.lock().clone()
    }

    /// Puts `live` in force, keeping the present trust.
    pub(crate) fn replace(&self, mut live: LiveConfiguration) {
        live.trust = Arc::clone(&self.live.load().trust);
        self.live.store(Arc::new(live));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Has cores record the fields of `want` from `now_ms` until `until_ms`; false if there are too
    /// many readers.
    pub fn want(&self, want: FieldSubscription, now_ms: u64, until_ms: u64) -> bool {
        let most = self.live.load().limits.log_readers as usize;
        self.change_wanted(|before| before.with(want, now_ms, until_ms, most))
    }

    /// Has cores record the fields of `want` for as long as the daemon runs.
    pub fn want_always(&self, want: FieldSubscription) {
        self.change_wanted(|before| Some(before.with_lasting(want)));
    }

    fn change_wanted(
        &self,
        change: impl FnOnce(FieldSubscriptions) -> Option<FieldSubscriptions>,
    ) -> bool {
        let mut wanted = self.wanted.lock();
        let Some(next) = change(wanted.as_deref().cloned().unwrap_or_default()) else {
            return false;
        };
        *wanted = Some(Arc::new(next));
        drop(wanted);
        self.version.fetch_add(1, Ordering::Release);
        true
    }
}

/// The configuration as a core has taken it over.
pub(crate) struct CoreConfiguration {
    in_force: Arc<ConfigurationHolder>,
    live: RefCell<LiveRef>,
    version: Cell<u64>,
}

impl CoreConfiguration {
    pub(crate) fn of(in_force: &Arc<ConfigurationHolder>) -> Self {
        let version = Cell::new(in_force.version.load(Ordering::Acquire));
        let live = RefCell::new(Rc::new(in_force.live()));
        Self { in_force: Arc::clone(in_force), live, version }
    }

    /// The configuration. If it was replaced, `change` gets the holder, the former configuration
    /// and the new one.
    #[inline]
    pub(crate) fn live(
        &self,
        change: impl FnOnce(&ConfigurationHolder, &LiveConfiguration, &LiveConfiguration),
    ) -> LiveRef {
        let version = self.in_force.version.load(Ordering::Acquire);
        if version != self.version.get() {
            let next = self.in_force.live();
            change(&self.in_force, &self.live.borrow(), &next);
            *self.live.borrow_mut() = Rc::new(next);
            self.version.set(version);
        }
        Rc::clone(&self.live.borrow())
    }

    /// A number that grows with each change of [`CoreConfiguration::live`].
    pub(crate) fn version(&self) -> u64 {
        self.version.get()
    }
}

#[cfg(test)]
mod tests {
    use base::{HashSeed, Limits};

    use super::*;
    use crate::state::site::SiteTable;

    fn live(log_readers: u64) -> LiveConfiguration {
        let limits = Limits { log_readers, ..Limits::default() };
        LiveConfiguration::new(SiteTable::new(HashSeed::from_u64(1)), limits)
    }

    #[test]
    fn a_core_takes_a_change_over_once() {
        let in_force = Arc::new(ConfigurationHolder::new(live(1)));
        let own = CoreConfiguration::of(&in_force);
        let changes = Cell::new(0);
        let take = || own.live(|_, _, _| changes.set(changes.get() + 1)).limits.log_readers;
        assert_eq!((take(), changes.get()), (1, 0));
        in_force.replace(live(2));
        assert_eq!((take(), take(), changes.get()), (2, 2, 1));
        in_force.want_always(FieldSubscription::default());
        assert_eq!((take(), take(), changes.get()), (2, 2, 2));
    }

    #[test]
    fn no_more_readers_ask_than_may() {
        let in_force = ConfigurationHolder::new(live(1));
        let want = |name: &str| FieldSubscription {
            names: vec![name.to_owned()],
            ..FieldSubscription::default()
        };
        in_force.want_always(FieldSubscription::default());
        assert!(in_force.want(want("a"), 0, 10) && !in_force.want(want("b"), 5, 15));
        assert!(in_force.want(want("b"), 10, 20), "the first one is over");
    }
}
