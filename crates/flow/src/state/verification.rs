//! Verification: the share of hits that are compared with the origin, and what the comparisons of
//! a site have found; and the observation of a site whose requests all go to the origin.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use base::HashSeed;
use message::{HeaderId, Request, cookie};
use parking_lot::Mutex;
use policy::SiteRules;

use crate::state::task_slots::TaskSlots;

/// One of so many hits on an observed site is compared, unless its settings say otherwise.
const OBSERVED_ONE_IN: u32 = 20;
/// Keys that a core remembers to have been asked for once.
const ASKED_KEYS: usize = 4096;

/// A page that was seen to differ by visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The URL.
    pub url: String,
    /// The route; empty if the request belonged to none.
    pub route: String,
    /// The part of the request that makes the difference.
    pub cause: DifferenceCause,
    /// The requests that are concerned.
    pub scope: FindingScope,
    /// The time, in unix milliseconds.
    pub unix_ms: u64,
    /// The monotonic time in milliseconds until which it is acted on.
    pub(crate) until_ms: u64,
    /// The page's cache key.
    pub(crate) key: u64,
    /// The page's host and path.
    pub(crate) page: Vec<u8>,
    /// The network of the visitor.
    pub(crate) network: Option<IpAddr>,
}

/// The part of a request that makes a difference which the cache cannot see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceCause {
    /// The cookies of these names.
    Cookies(Vec<Vec<u8>>),
    /// The field of this name.
    Field(&'static str),
    /// No single cookie or field.
    Unknown,
}

impl std::fmt::Display for DifferenceCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Cookies(names) = self else {
            return match self {
                Self::Field(name) => write!(f, "field {name}"),
                _ => f.write_str("several cookies or fields"),
            };
        };
        f.write_str(if names.len() == 1 { "cookie " } else { "cookies " })?;
        for (at, name) in names.iter().enumerate() {
            let gap = if at == 0 { "" } else { ", " };
            write!(f, "{gap}{}", String::from_utf8_lossy(name))?;
        }
        Ok(())
    }
}

/// The requests that a finding concerns, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingScope {
    /// None: it is only reported. So are cookies that every visitor has.
    Report,
    /// Those for its page.
    Page,
    /// Those for all pages of the site: visitors of two networks have shown the difference.
    Site,
}

/// The findings of a site at a time.
#[derive(Debug, Default)]
struct FindingSnapshot {
    listed: Vec<Finding>,
    /// The time until which one of them is acted on.
    until_ms: u64,
}

/// The findings of a site, and its counts.
#[derive(Debug, Default)]
struct SiteFindings {
    snapshot: ArcSwap<FindingSnapshot>,
    /// Locked by the writer.
    writing: Mutex<()>,
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
#[derive(Debug)]
pub struct SiteVerification {
    /// One of so many hits is compared, by the numbers of routes; 0 for none.
    one_in: Box<[u32]>,
    /// All requests go to the origin.
    observes: bool,
    findings: ArcSwap<SiteFindings>,
}

/// The result of adding a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddedFinding {
    pub(crate) scope: FindingScope,
    /// It concerns more requests than what was known before.
    pub(crate) is_new: bool,
    /// Another one was dropped for it.
    pub(crate) drops: bool,
}

impl SiteVerification {
    /// The comparison that `rules` ask for, and the observation of the site if it `observes`;
    /// `None` if there is neither.
    pub fn of(rules: &SiteRules, observes: bool) -> Option<Box<Self>> {
        let routes = rules.routes.iter().map(|route| &route.settings);
        let all = std::iter::once(&rules.settings).chain(routes);
        let usual = if observes { OBSERVED_ONE_IN } else { 0 };
        let one_in: Box<[_]> = all.map(|own| own.verify_one_in.unwrap_or(usual)).collect();
        let is_on = observes || one_in.iter().any(|share| *share > 0);
        is_on.then(|| Box::new(Self { one_in, observes, findings: ArcSwap::default() }))
    }

    /// Returns true if all requests go to the origin, and the cache only watches.
    pub fn observes(&self) -> bool {
        self.observes
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

    /// Keeps a finding among at most `most`. One about cookies concerns the whole site once
    /// visitors of two networks have shown it; `now_ms` ends old ones.
    pub(crate) fn add(&self, mut finding: Finding, most: u64, now_ms: u64) -> AddedFinding {
        let findings = self.findings.load();
        let _writing = findings.writing.lock();
        let mut listed = findings.snapshot.load().listed.clone();
        let is_acted_on = |other: &Finding| now_ms < other.until_ms;
        let alike = |other: &Finding| other.cause == finding.cause && is_acted_on(other);
        let is_known = |other: &Finding| {
            alike(other) && (other.scope == FindingScope::Site || other.page == finding.page)
        };
        let known = listed.iter().find(|other| is_known(other)).map(|other| other.scope);
        if let DifferenceCause::Cookies(names) = &finding.cause {
            let is_of_all = |name: &Vec<u8>| cookie::is_tracking(name) || cookie::is_of_way(name);
            let is_seen_elsewhere = listed.iter().any(|other| {
                let is_site = other.scope == FindingScope::Site;
                alike(other) && (is_site || are_two(other.network, finding.network))
            });
            finding.scope = match names.iter().all(is_of_all) {
                true => FindingScope::Report,
                false if is_seen_elsewhere => FindingScope::Site,
                false => FindingScope::Page,
            };
        }
        let is_site = finding.scope == FindingScope::Site;
        listed.retain(|other| {
            let is_of_page = other.page == finding.page;
            other.cause != finding.cause || !(is_site || is_of_page)
        });
        let drops = listed.len() as u64 >= most.max(1);
        if drops {
            let rank = |other: &Finding| (is_acted_on(other), other.scope as u8);
            let least = (0..listed.len()).min_by_key(|at| rank(&listed[*at]));
            least.into_iter().for_each(|at| _ = listed.remove(at));
        }
        let added =
            AddedFinding { scope: finding.scope, is_new: known != Some(finding.scope), drops };
        listed.push(finding);
        let until_ms = listed.iter().map(|other| other.until_ms).max().unwrap_or(0);
        findings.snapshot.store(Arc::new(FindingSnapshot { listed, until_ms }));
        added
    }

    /// The findings, the latest last.
    pub fn findings(&self) -> Vec<Finding> {
        self.findings.load().snapshot.load().listed.clone()
    }

    /// Returns true if the page of this key was seen to differ by something else than cookies.
    pub(crate) fn holds(&self, key: u64, now_ms: u64) -> bool {
        self.acts(now_ms, |finding| {
            finding.key == key
                && finding.scope != FindingScope::Report
                && !matches!(finding.cause, DifferenceCause::Cookies(_))
        })
    }

    /// The cookies of a request that has one by which its page, or a page of the site, was seen to
    /// differ.
    pub(crate) fn telling_cookies(&self, request: &Request, now_ms: u64) -> Option<Vec<u8>> {
        let is_about = |finding: &Finding| match (&finding.cause, finding.scope) {
            (DifferenceCause::Cookies(names), FindingScope::Site) => has_one(request, names),
            (DifferenceCause::Cookies(names), FindingScope::Page) => {
                is_page(&finding.page, request) && has_one(request, names)
            }
            _ => false,
        };
        self.acts(now_ms, is_about).then(|| joined_cookies(request))
    }

    #[inline]
    fn acts(&self, now_ms: u64, on: impl Fn(&Finding) -> bool) -> bool {
        let findings = self.findings.load();
        let snapshot = findings.snapshot.load();
        now_ms < snapshot.until_ms
            && snapshot.listed.iter().any(|finding| now_ms < finding.until_ms && on(finding))
    }
}

fn has_one(request: &Request, names: &[Vec<u8>]) -> bool {
    cookie::pairs(request.headers.values(HeaderId::Cookie))
        .any(|pair| names.iter().any(|name| name == pair.name))
}

/// The host and path of a request.
pub(crate) fn page_of(request: &Request) -> Vec<u8> {
    [&request.host[..], request.path()].concat()
}

fn is_page(page: &[u8], request: &Request) -> bool {
    page.strip_prefix(&request.host[..]).is_some_and(|path| path == request.path())
}

/// The cookies of a request, in one line.
pub(crate) fn joined_cookies(request: &Request) -> Vec<u8> {
    let mut joined = Vec::new();
    cookie::write_joined(request.headers.values(HeaderId::Cookie), &mut joined);
    joined
}

/// Returns true if these are networks of two visitors. One visitor may have an address of each
/// family.
fn are_two(one: Option<IpAddr>, other: Option<IpAddr>) -> bool {
    let both = one.zip(other);
    both.is_some_and(|(one, other)| one.is_ipv4() == other.is_ipv4() && one != other)
}

/// The network of a client: /24 of IPv4, /48 of IPv6. On loopback each address is a client.
pub(crate) fn network_of(client: IpAddr) -> IpAddr {
    match client {
        _ if client.is_loopback() => client,
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & !0xff).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (!0 << 80)).into(),
    }
}

/// The comparisons of a core.
#[derive(Debug)]
pub(crate) struct CoreVerification {
    /// Comparisons under way.
    pub(crate) slots: TaskSlots,
    /// Draws which hits are compared.
    draw: Cell<u64>,
    seed: HashSeed,
    /// Hashes of keys of observed sites, by their lowest bits; empty before the first.
    asked: RefCell<Box<[u64]>>,
}

impl Default for CoreVerification {
    fn default() -> Self {
        Self {
            slots: TaskSlots::default(),
            draw: Cell::new(0),
            seed: HashSeed::random(),
            asked: RefCell::default(),
        }
    }
}

impl CoreVerification {
    /// Draws if a hit is compared, one of `one_in` on average.
    pub(crate) fn is_due(&self, one_in: u32) -> bool {
        if one_in == 0 {
            return false;
        }
        self.draw.set(self.draw.get().wrapping_add(1));
        self.seed.hash(&self.draw.get().to_ne_bytes()).is_multiple_of(u64::from(one_in))
    }

    /// Notes that a key was asked for. Returns true if it was before, as far as is remembered.
    pub(crate) fn is_asked_again(&self, key: u64) -> bool {
        let mut asked = self.asked.borrow_mut();
        if asked.is_empty() {
            *asked = vec![0; ASKED_KEYS].into();
        }
        let place = &mut asked[key as usize % ASKED_KEYS];
        std::mem::replace(place, key) == key
    }
}

#[cfg(test)]
mod tests;
