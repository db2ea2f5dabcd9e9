//! Hot pages: stored responses with their hits, on sites where what leaves the store comes back by
//! itself (`rewarm`): those that an invalidation ends, or all that are stored.
//!
//! The hottest come back first, so all that end are known before any is queued.

use std::collections::HashMap;
use std::sync::Arc;

use cache::{Object, ObjectEnding, Record};
use message::vary::signature_values;

use super::stored_response::StoredUrl;
use crate::key::is_internal;
use crate::state::invalidate::Invalidator;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::warmth::{HotUrl, PageHits, SharedWarmth, WarmUrl};

/// The hottest pages of some stored responses, by site.
pub(super) struct HotPages {
    live: Arc<LiveConfiguration>,
    warmth: Arc<SharedWarmth>,
    sites: HashMap<Arc<str>, Vec<PageHits>>,
    now_ms: u64,
}

impl HotPages {
    /// No pages yet; `None` if no site wants them.
    pub(super) fn of(invalidator: &Invalidator, now_ms: u64) -> Option<Self> {
        let live = invalidator.in_force.live();
        live.sites.listed.iter().any(|site| site.warmth.rewarm).then(|| Self {
            warmth: Arc::clone(&invalidator.warmth),
            sites: HashMap::new(),
            now_ms,
            live,
        })
    }

    /// No pages yet, at the present time, which is not asked for if no site wants them.
    pub(super) fn of_now(invalidator: &Invalidator) -> Option<Self> {
        let own = Self::of(invalidator, 0)?;
        Some(Self { now_ms: rt::now().mono_ms, ..own })
    }

    /// Returns true if a stored response is fresh. Visitors have left others alone.
    pub(super) fn is_fresh(&self, object: &Object) -> bool {
        i64::try_from(self.now_ms).is_ok_and(|now_ms| now_ms < object.fresh_until_ms())
    }

    /// Adds a stored response that was fresh until it ended in this way.
    pub(super) fn note(&mut self, object: &Object, ending: ObjectEnding) {
        if ending == ObjectEnding::Removed && !self.is_fresh(object) {
            return;
        }
        let Some((site, url)) = warm_url(&self.live, object) else { return };
        let pages = self.sites.entry(site).or_default();
        let (hits, stays) = (object.hits(), ending == ObjectEnding::MadeStale);
        pages.push(PageHits { url: Arc::new(url), hits, stays });
        let most = usize::try_from(self.live.limits.hot_urls).unwrap_or(usize::MAX);
        if pages.len() > most.saturating_mul(2) {
            pages.select_nth_unstable_by(most, |a, b| b.hits.cmp(&a.hits));
            pages.truncate(most);
        }
    }

    /// Lets the pages come back that visitors have asked for.
    pub(super) fn rewarm(self) {
        for (site, pages) in self.sites {
            self.warmth.rewarm(&site, pages, &self.live.limits, self.now_ms);
        }
    }
}

impl Invalidator {
    /// The hot list of each site with `rewarm`, with the visits of what is stored now: at most
    /// `hot_urls` pages each, the hottest first.
    pub async fn hot_lists(&self, now_ms: u64) -> Vec<(Arc<str>, Vec<HotUrl>)> {
        let Some(pages) = HotPages::of(self, now_ms) else { return Vec::new() };
        let (live, see) = (Arc::clone(&pages.live), |pages: &mut HotPages, object: &Object| {
            pages.note(object, ObjectEnding::Removed);
            true
        });
        let mut sites = self.look_through(pages, see).await.sites;
        let most = live.limits.hot_urls;
        let named = live.sites.listed.iter().filter(|site| site.warmth.rewarm);
        let mut lists: Vec<(Arc<str>, Vec<HotUrl>)> = Vec::new();
        for site in named {
            if lists.iter().any(|(name, _)| *name == site.name) {
                continue;
            }
            let stored = sites.remove(&site.name).unwrap_or_default();
            let hottest = self.warmth.hottest_with(&site.name, stored, most, now_ms);
            lists.push((Arc::clone(&site.name), hottest));
        }
        lists
    }
}

/// The site of a stored response, and its URL and variant; `None` if it does not come back.
fn warm_url(live: &LiveConfiguration, record: &Record) -> Option<(Arc<str>, WarmUrl)> {
    if is_internal(record) {
        return None;
    }
    let StoredUrl { secure, host, port, target } = StoredUrl::of(record);
    let site = live.sites.by_host.find(host).filter(|site| site.warmth.rewarm)?;
    let vary = record.vary();
    let values = vary.map(|vary| signature_values(vary.spec, vary.signature)).unwrap_or_default();
    let fields = Box::default();
    let url = WarmUrl { host: host.into(), target: target.into(), secure, port, fields };
    Some((Arc::clone(&site.name), url.with_values(&values)?))
}
