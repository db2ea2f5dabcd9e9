//! Verification: the share of hits that are compared with the origin, and what the comparisons of
//! a site have found; and the observation of a site whose requests all go to the origin.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use message::{HeaderId, Request, cookie};
use parking_lot::Mutex;
use policy::SiteRules;

use crate::state::site::Site;
use crate::state::task_slots::TaskSlots;

/// One of so many hits on an observed site is compared, unless the site says otherwise.
const OBSERVED_ONE_IN: u32 = 20;

/// A page that was seen to differ by visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The URL.
    pub url: String,
    /// The route; empty if the request belonged to none.
    pub route: String,
    /// The part of the request that makes the difference.
    pub cause: DifferenceCause,
    /// The time, in unix milliseconds.
    pub unix_ms: u64,
    /// The monotonic time in milliseconds until which it is acted on.
    pub(crate) until_ms: u64,
    /// The hash of the page's cache key.
    pub(crate) key: u64,
}

/// The part of a request that makes a difference which the cache cannot see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceCause {
    /// The cookie of this name.
    Cookie(Vec<u8>),
    /// The field of this name.
    Field(&'static str),
    /// No single cookie or field.
    Unknown,
}

impl std::fmt::Display for DifferenceCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cookie(name) => write!(f, "cookie {}", String::from_utf8_lossy(name)),
            Self::Field(name) => write!(f, "field {name}"),
            Self::Unknown => f.write_str("several cookies or fields"),
        }
    }
}

/// The findings of a site.
#[derive(Debug, Default)]
struct SiteFindings {
    /// There may be one: requests look only then.
    any: AtomicBool,
    listed: Mutex<VecDeque<Finding>>,
    observed: [AtomicU64; WouldBe::ALL.len()],
}

/// The outcome that a request on an observed site would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WouldBe {
    /// A fresh stored response.
    Hit,
    /// A stale one within its grace.
    Stale,
    /// A fetch whose response may be stored.
    Miss,
    /// A fetch past the cache.
    Pass,
}

impl WouldBe {
    /// All outcomes, with their names.
    pub const ALL: [(Self, &str); 4] =
        [(Self::Hit, "hit"), (Self::Stale, "stale"), (Self::Miss, "miss"), (Self::Pass, "pass")];
}

/// The comparison of a site's hits with the origin.
pub struct SiteVerification {
    /// One of so many hits is compared, by the numbers of routes; 0 for none.
    one_in: Box<[u32]>,
    findings: ArcSwap<SiteFindings>,
    /// The site as it would be if it cached; `None` if it does.
    shadow: Option<Arc<Site>>,
}

impl SiteVerification {
    /// The comparison that `rules` ask for; `None` if they ask for none.
    pub fn of(rules: &SiteRules) -> Option<Box<Self>> {
        let routes = rules.routes.iter().map(|route| &route.settings);
        let all = std::iter::once(&rules.settings).chain(routes);
        let one_in: Box<[_]> = all.map(|own| own.verify_one_in).collect();
        let is_on = one_in.iter().any(|share| *share > 0);
        is_on.then(|| Box::new(Self { one_in, findings: ArcSwap::default(), shadow: None }))
    }

    /// The observation of a site with `rules` that caches nothing; `shadow` is the site if it did.
    /// Routes without a share of their own are compared, too.
    pub fn observing(rules: &SiteRules, shadow: Arc<Site>) -> Box<Self> {
        let all = || vec![OBSERVED_ONE_IN; 1 + rules.routes.len()].into();
        let own = Self::of(rules);
        let mut own = own.unwrap_or_else(|| {
            Box::new(Self { one_in: all(), findings: ArcSwap::default(), shadow: None })
        });
        own.shadow = Some(shadow);
        own
    }

    /// The site as it would be if it cached; `None` if it does.
    pub fn shadow(&self) -> Option<&Arc<Site>> {
        self.shadow.as_ref()
    }

    /// Counts a request on an observed site.
    pub(crate) fn observed(&self, would_be: WouldBe) {
        self.findings.load().observed[would_be as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The requests on an observed site, in the order of [`WouldBe::ALL`].
    pub fn observations(&self) -> [u64; WouldBe::ALL.len()] {
        let findings = self.findings.load();
        WouldBe::ALL.map(|(own, _)| findings.observed[own as usize].load(Ordering::Relaxed))
    }

    /// Shares the findings of `same`, the site as it was configured before.
    pub(crate) fn take_over(&self, same: &Self) {
        self.findings.store(same.findings.load_full());
    }

    /// One of so many hits of a route is compared; 0 for none.
    pub(crate) fn one_in(&self, route: u32) -> u32 {
        self.one_in.get(route as usize).copied().unwrap_or(0)
    }

    /// Keeps a finding, and returns true if that drops another one of at most `most`.
    pub(crate) fn add(&self, finding: Finding, most: u64) -> bool {
        let findings = self.findings.load();
        let mut listed = findings.listed.lock();
        let is_same = |other: &Finding| match (&other.cause, &finding.cause) {
            (DifferenceCause::Cookie(known), DifferenceCause::Cookie(name)) => known == name,
            _ => other.key == finding.key,
        };
        listed.retain(|other| !is_same(other));
        let is_full = listed.len() as u64 >= most.max(1);
        if is_full {
            listed.pop_front();
        }
        listed.push_back(finding);
        findings.any.store(true, Ordering::Relaxed);
        is_full
    }

    /// The findings, the latest last.
    pub fn findings(&self) -> Vec<Finding> {
        self.findings.load().listed.lock().iter().cloned().collect()
    }

    /// Returns true if the page of this key was seen to differ by something else than a cookie.
    pub(crate) fn holds(&self, key: u64, now_ms: u64) -> bool {
        self.acts(now_ms, |finding| {
            finding.key == key && !matches!(finding.cause, DifferenceCause::Cookie(_))
        })
    }

    /// The cookies of a request that has one by which pages were seen to differ.
    pub(crate) fn telling_cookies(&self, request: &Request, now_ms: u64) -> Option<Arc<[u8]>> {
        let cookies = || cookie::pairs(request.headers.values(HeaderId::Cookie));
        let is_told = self.acts(now_ms, |finding| match &finding.cause {
            DifferenceCause::Cookie(name) => cookies().any(|pair| pair.name == name),
            _ => false,
        });
        is_told.then(|| joined_cookies(request).into())
    }

    fn acts(&self, now_ms: u64, on: impl Fn(&Finding) -> bool) -> bool {
        let findings = self.findings.load();
        if !findings.any.load(Ordering::Relaxed) {
            return false;
        }
        let listed = findings.listed.lock();
        listed.iter().any(|finding| now_ms < finding.until_ms && on(finding))
    }
}

/// The cookies of a request, in one line.
pub(crate) fn joined_cookies(request: &Request) -> Vec<u8> {
    let lines: Vec<_> = request.headers.values(HeaderId::Cookie).collect();
    lines.join(&b"; "[..])
}

/// The comparisons of a core.
#[derive(Debug, Default)]
pub(crate) struct CoreVerification {
    /// Comparisons under way.
    pub(crate) slots: TaskSlots,
    hits: Cell<u32>,
}

impl CoreVerification {
    /// Counts a hit, and returns true if it is one of `one_in` to be compared.
    pub(crate) fn is_due(&self, one_in: u32) -> bool {
        if one_in == 0 {
            return false;
        }
        let hits = self.hits.get() + 1;
        let is_due = hits >= one_in;
        self.hits.set(if is_due { 0 } else { hits });
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(cause: DifferenceCause, key: u64) -> Finding {
        let (url, route) = ("http://a.test/".to_owned(), String::new());
        Finding { url, route, cause, unix_ms: 0, until_ms: 100, key }
    }

    fn verification() -> SiteVerification {
        SiteVerification { one_in: [4].into(), findings: ArcSwap::default(), shadow: None }
    }

    #[test]
    fn one_of_so_many_hits_is_compared() {
        let core = CoreVerification::default();
        let due = (0..12).filter(|_| core.is_due(4)).count();
        assert_eq!((due, core.is_due(0), core.is_due(1)), (3, false, true));
    }

    #[test]
    fn a_finding_is_acted_on_for_its_time() {
        let own = verification();
        let mut request = Request::new();
        request.headers.push(HeaderId::Cookie, b"a=1");
        request.headers.push(HeaderId::Cookie, b"cart=3");
        assert_eq!(own.telling_cookies(&request, 0), None);
        own.add(finding(DifferenceCause::Cookie(b"cart".to_vec()), 1), 10);
        own.add(finding(DifferenceCause::Field("User-Agent"), 2), 10);
        assert_eq!(own.telling_cookies(&request, 99).as_deref(), Some(&b"a=1; cart=3"[..]));
        assert_eq!(own.telling_cookies(&request, 100), None);
        assert_eq!((own.holds(1, 0), own.holds(2, 99), own.holds(2, 100)), (false, true, false));
        request.headers.remove(HeaderId::Cookie);
        assert_eq!(own.telling_cookies(&request, 0), None);
    }

    #[test]
    fn findings_are_bounded_and_outlive_a_reload() {
        let own = verification();
        for key in 0..5 {
            assert_eq!(own.add(finding(DifferenceCause::Unknown, key), 3), key >= 3);
        }
        assert!(!own.add(finding(DifferenceCause::Unknown, 4), 4), "it is known");
        let next = verification();
        next.take_over(&own);
        let keys: Vec<_> = next.findings().iter().map(|finding| finding.key).collect();
        assert_eq!(keys, [2, 3, 4]);
    }
}
