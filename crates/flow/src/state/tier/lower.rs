//! Lower tier as the cache sees it, and the counters of limits that store and tier share.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Limit;
use cache::{Lower, Object};
use disk::RecordAddress;

use super::body::DiskBody;
use super::{Cache, Tier};

impl Lower for Tier {
    type Place = RecordAddress;

    fn is_open(&self) -> bool {
        self.store.get().is_some() || self.found.goes_on()
    }

    fn demote(&self, object: &Arc<Object>) -> Option<RecordAddress> {
        if self.is_handed_over() {
            return None;
        }
        if let Some(place) = DiskBody::to_enter(object) {
            return Some(place);
        }
        if let Some(body) = DiskBody::released_body(object) {
            return body.rehead(self, self.store.get()?, object);
        }
        let place = self.store.get()?.keep(object, self.is_resting.load(Ordering::Relaxed))?;
        if let Some(life) = object.elsewhere().and_then(|body| body.life()) {
            self.sets.lock().insert(place, life);
        }
        Some(place)
    }

    fn forget(&self, place: RecordAddress) {
        _ = self.sets.lock().remove(&place);
        if !self.forget_later(place)
            && let Some(disk) = self.disk()
        {
            disk.forget(place);
        }
    }

    fn discard_hash(&self, h32: u32) {
        self.found.strike(h32);
    }

    fn passed(&self) -> Option<u32> {
        if self.found.goes_on() {
            return Some(0);
        }
        let store = self.store.get()?;
        let oldest = store.disk.oldest()?;
        if oldest >= store.disk.began() {
            store.disk.passed()
        } else {
            Some(store.passed(oldest, 0))
        }
    }
}

/// Returns the number of times that `limit` was reached in the store, in memory or below.
pub(crate) fn limit_hits(cache: &Cache, limit: Limit) -> u64 {
    let store = || cache.stats();
    let below = || cache.lower().disk().map(|disk| disk.stats()).unwrap_or_default();
    match limit {
        Limit::ObjectBytes => store().too_large,
        Limit::Variants => store().variants_over,
        Limit::Bans => store().bans_over,
        Limit::DiskReadTimeout => below().reads_late,
        Limit::DiskQueueBytes => below().refused_queue,
        Limit::DiskRetry => below().outs + below().pauses,
        Limit::DiskIndexBytes => {
            let below = below();
            cache.index().refused() + below.refused_index + below.dropped_index
        }
        Limit::DiskReadShare => below().refused_hold,
        _ => 0,
    }
}
