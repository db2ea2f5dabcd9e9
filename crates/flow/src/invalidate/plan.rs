//! Plan of an invalidation for one store: its keys, and its bans with tests made from its data.
//! Planning changes nothing; carrying out cannot fail.

use std::sync::Arc;

use base::{KeyBuf, Now};
use cache::{Ban, BanSelector, LifetimeUpdate, NewBan, Tags};
use message::{Request, Scheme, target};
use policy::{ConnectionPeer, Notes, ReceiveCtx, StoreUse};
use smallvec::SmallVec;
use vcl::program::Instance;
use vcl::sub::Sub;

use super::stored_response::{BanCriteria, Matcher, PurgeableSites, StoredUrl};
use super::{
    Invalidation, InvalidationError, InvalidationTarget, NewTimes, ResponseSelector, Sites, Url,
};
use crate::key::make_key;
use crate::state::invalidate::Invalidator;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;
use crate::state::tier::Cache;
use crate::state::vcl::extra_reading::Reading;
use crate::tags;

/// An invalidation and its means.
pub(super) struct InvalidationPlan {
    pub(super) invalidation: Invalidation,
    /// The time of the invalidation by the monotonic clock.
    made_ms: u64,
    pub(super) keys: SmallVec<[KeyBuf; 4]>,
    times: Option<LifetimeUpdate>,
    bans: Vec<NewBan>,
}

/// A URL whose keys a purge cannot make.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DescribedUrl {
    host: Vec<u8>,
    target: Vec<u8>,
}

/// A maker of plans for one store.
pub(super) struct Planner<'a> {
    pub(super) invalidator: &'a Invalidator,
    /// The configuration that a request began with; `None` for the one in force.
    pub(super) live: Option<&'a Arc<LiveConfiguration>>,
    pub(super) now: Now,
}

impl Planner<'_> {
    /// Plans `invalidation`.
    ///
    /// # Errors
    /// A site that it names is unknown.
    pub(super) fn plan(
        &self,
        invalidation: Invalidation,
    ) -> Result<InvalidationPlan, InvalidationError> {
        let made_ms = invalidation.made_ms(self.now);
        let (mut keys, mut times, mut bans) = (SmallVec::new(), None, Vec::new());
        match &invalidation.what {
            InvalidationTarget::Key(key) => {
                keys.push(KeyBuf::of_bytes(key, &self.invalidator.seed));
            }
            InvalidationTarget::Retime(key, new) => {
                keys.push(KeyBuf::of_bytes(key, &self.invalidator.seed));
                times = Some(retime(*new, made_ms));
            }
            InvalidationTarget::Many(what) => {
                bans.push(self.new_ban(&invalidation, what, made_ms)?);
            }
            InvalidationTarget::Url(url) => {
                let live = self.live();
                let site = site_of(&live, &invalidation.sites, url)?;
                for DescribedUrl { host, target } in self.keys_of(&live, site, url, &mut keys) {
                    let what = Url { host, ..url.clone() }.described(&target);
                    let (sites, many) =
                        (Sites::one(&site.name), InvalidationTarget::Many(what.clone()));
                    let cause = invalidation.cause.clone();
                    let described = Invalidation { sites, what: many, cause, ..invalidation };
                    bans.push(self.new_ban(&described, &what, made_ms)?);
                }
            }
        }
        Ok(InvalidationPlan { invalidation, made_ms, keys, times, bans })
    }

    fn live(&self) -> Arc<LiveConfiguration> {
        self.live.map_or_else(|| self.invalidator.in_force.live(), Arc::clone)
    }

    /// Adds the keys of a URL. Returns URLs whose keys contain values that a purge cannot know.
    fn keys_of(
        &self,
        live: &LiveConfiguration,
        site: &Site,
        url: &Url,
        keys: &mut SmallVec<[KeyBuf; 4]>,
    ) -> Vec<DescribedUrl> {
        let mut split = Vec::new();
        for scheme in [Scheme::Http, Scheme::Https] {
            // Purges are rare, so they take the same course as readers' requests.
            for port in [Some(None), url.port.map(Some)].into_iter().flatten() {
                for asked in self.asked(live, site, url, canonical(url, site, scheme, port)) {
                    let host = asked.host.clone();
                    let described = |target| DescribedUrl { host: host.clone(), target };
                    split.extend(site.policy.targets_apart(&asked).into_iter().map(described));
                    let (request, notes) = as_read(asked, url.client, site, self.now);
                    if is_split(site, &notes) {
                        split.push(described(request.target));
                        continue;
                    }
                    let (seed, mut key) = (&self.invalidator.seed, KeyBuf::new());
                    make_key(seed, &*site.policy, &request, &notes, None, &mut key);
                    keys.push(key);
                }
            }
        }
        split.sort();
        split.dedup();
        split
    }

    /// The request of a reader as it comes, and as the VCL beside the site's settings leaves it.
    fn asked(
        &self,
        live: &LiveConfiguration,
        site: &Site,
        url: &Url,
        came: Request,
    ) -> SmallVec<[Request; 2]> {
        let changed = site.extra.as_ref().and_then(|instance| {
            let reading = Reading { live, instance, client: url.client, now: self.now };
            let left = reading.received(site, &came)?;
            (left.target != came.target || left.host != came.host).then_some(left)
        });
        std::iter::once(came).chain(changed).collect()
    }

    /// The ban for the description in `invalidation`, with its test.
    fn new_ban(
        &self,
        invalidation: &Invalidation,
        what: &ResponseSelector,
        made_ms: u64,
    ) -> Result<NewBan, InvalidationError> {
        let (mut text, mut scope) = (what.text(), None);
        if let Sites::Named(names) = &invalidation.sites {
            let live = self.live();
            let known = names.iter().filter_map(|name| named(&live, name)).map(|site| site.number);
            let known: Vec<u32> = known.collect();
            if known.is_empty() {
                return Err(InvalidationError::NoSite(names.join(", ")));
            }
            let of = PurgeableSites::of(&live, known);
            text = format!("{} && {text}", of.text());
            scope = Some(of);
        }
        let (tags, matcher) = selection_tests(what);
        let test = Arc::new(BanCriteria { scope, matcher, now_ms: made_ms });
        Ok(NewBan {
            number: 0,
            data: invalidation.encode().into(),
            text: text.into(),
            which: BanSelector { tags, test: Some(test) },
            soft: invalidation.soft,
            now_ms: made_ms,
        })
    }
}

impl InvalidationPlan {
    /// Returns true if the plan may take longer than removing a few keys.
    pub(super) fn is_long(&self) -> bool {
        !self.bans.is_empty()
    }

    /// The text of what it selects: a URL, or a ban.
    pub(super) fn selection(&self) -> String {
        match (&self.invalidation.what, self.bans.first()) {
            (InvalidationTarget::Key(key) | InvalidationTarget::Retime(key, _), _) => {
                StoredUrl::of_key(key).text()
            }
            (InvalidationTarget::Url(Url { host, port, target, .. }), _) => {
                StoredUrl { secure: false, host, port: *port, target }.text()
            }
            (InvalidationTarget::Many(_), ban) => {
                ban.map_or_else(String::new, |ban| ban.text.to_string())
            }
        }
    }

    /// Carries the plan out. The first ban gets `number` or a higher one. Returns the number of
    /// responses that its keys selected; its bans, in force, are appended to `bans`.
    pub(super) fn carry_out(self, cache: &Cache, number: &mut u32, bans: &mut Bans) -> u64 {
        let soft = self.invalidation.soft;
        let one = |key: &KeyBuf| {
            let retimed = self.times.as_ref().map(|times| cache.retime(key, times));
            match (soft, retimed) {
                (true, Some(objects)) => objects,
                (true, None) => cache.soft_invalidate(key, self.made_ms),
                (false, _) => cache.invalidate(key),
            }
        };
        let objects: usize = self.keys.iter().map(one).sum();
        for new in self.bans {
            let number = std::mem::take(number);
            bans.push(cache.ban_at_once(NewBan { number, ..new }));
        }
        objects as u64
    }
}

/// Bans made by an invalidation.
pub(super) type Bans = SmallVec<[Arc<Ban>; 1]>;

/// The new times of responses after an invalidation at `made_ms`.
fn retime(times: NewTimes, made_ms: u64) -> LifetimeUpdate {
    let made_ms = i64::try_from(made_ms).unwrap_or(i64::MAX);
    LifetimeUpdate {
        fresh_until_ms: times.ttl_ms.map(|ttl_ms| made_ms.saturating_add(ttl_ms)),
        grace_ms: times.grace_ms,
        stale_if_error_ms: times.keep_ms,
    }
}

/// A reader's request for the URL, before the site's rules.
fn canonical(url: &Url, site: &Site, scheme: Scheme, port: Option<u16>) -> Request {
    let (host, target) = (url.host.clone(), url.target.clone());
    let mut request = Request { scheme, host, port, target, ..Request::new() };
    if site.vcl.is_none() {
        target::canonical(&mut request);
    }
    request
}

/// Returns true if keys of a request with these notes contain values that a purge cannot know: what
/// a program makes of the URL, or adds to it.
fn is_split(site: &Site, notes: &Notes) -> bool {
    let adds = |extra: &Arc<Instance>| extra.program().uses().own.has(Sub::Hash);
    site.vcl.is_some() || site.extra.as_ref().is_some_and(adds) || site.policy.splits_key(notes)
}

/// The request of a reader as the site's rules leave it.
fn as_read(
    mut request: Request,
    client: ConnectionPeer,
    site: &Site,
    now: Now,
) -> (Request, Notes) {
    // The VCL beside the settings may have set fields in which proxies name clients.
    let mut notes = Notes { client: Some(client), ..Notes::default() };
    request.arrived_unix_ms = now.unix_ms;
    let mut ctx = ReceiveCtx {
        request: &mut request,
        client,
        now,
        store: StoreUse::ByRules,
        notes: &mut notes,
    };
    // Only the changed request matters here, not the verdict.
    _ = site.policy.receive(&mut ctx);
    (request, notes)
}

/// The site that makes the keys of a URL.
fn site_of<'l>(
    live: &'l LiveConfiguration,
    sites: &Sites,
    url: &Url,
) -> Result<&'l Arc<Site>, InvalidationError> {
    match sites {
        Sites::Every => live.sites.by_host.find(&url.host).ok_or_else(|| {
            InvalidationError::NoSite(String::from_utf8_lossy(&url.host).into_owned())
        }),
        Sites::Named(names) => {
            let mut known = names.iter().filter_map(|name| named(live, name));
            known.next().ok_or_else(|| InvalidationError::NoSite(names.join(", ")))
        }
    }
}

/// The site of this name, which is its first host.
fn named<'l>(live: &'l LiveConfiguration, name: &str) -> Option<&'l Arc<Site>> {
    let by_host = live.sites.by_host.find(name.as_bytes()).filter(|site| *site.name == *name);
    by_host.or_else(|| live.sites.listed.iter().find(|site| *site.name == *name))
}

/// Returns the tests of stored responses for a selector: surrogate keys and a matcher.
pub(crate) fn selection_tests(what: &ResponseSelector) -> (Option<Tags>, Matcher) {
    let hashes = |tags: &[Vec<u8>]| Tags::new(tags.iter().map(|tag| tags::hash(tag)).collect());
    match what {
        ResponseSelector::Everything => (None, Matcher::All),
        ResponseSelector::Tags(of) => (Some(hashes(of)), Matcher::All),
        ResponseSelector::Ban { expression, tags } => {
            (tags.as_deref().map(hashes), Matcher::Expression(expression.clone()))
        }
        ResponseSelector::Listed(regex) => (None, Matcher::Listed(regex.clone())),
    }
}
