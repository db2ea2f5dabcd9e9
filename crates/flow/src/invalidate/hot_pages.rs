//! Hot pages: stored responses with their hits, on sites where what leaves the store comes back by
//! itself (`rewarm`): those that an invalidation ends, or all that are stored.
//!
//! The hottest come back first, so all that end are known before any is queued.

use std::collections::HashMap;
use std::sync::Arc;

use cache::{Object, Record};
use message::vary::signature_values;

use super::stored_response::StoredUrl;
use crate::key::is_internal;
use crate::state::invalidate::Invalidator;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::warmth::{HotUrl, SharedWarmth, WarmUrl};

/// The hottest pages of some stored responses, by site.
pub(super) struct HotPages {
    live: Arc<LiveConfiguration>,
    warmth: Arc<SharedWarmth>,
    sites: HashMap<Arc<str>, Vec<HotUrl>>,
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

    /// Adds a stored response.
    pub(super) fn note(&mut self, object: &Object) {
        let Some((site, url)) = warm_url(&self.live, object) else { return };
        let pages = self.sites.entry(site).or_default();
        pages.push(HotUrl { url: Arc::new(url), score: f64::from(object.hits()) });
        let most = usize::try_from(self.live.limits.hot_urls).unwrap_or(usize::MAX);
        if pages.len() > most.saturating_mul(2) {
            pages.select_nth_unstable_by(most, |a, b| b.score.total_cmp(&a.score));
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
            pages.note(object);
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
