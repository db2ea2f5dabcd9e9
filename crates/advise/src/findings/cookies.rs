//! Cookies on which pages do not depend, and which keep requests from the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use message::{HeaderId, cookie};

use super::bodies::{CookieBody, Measure, given, other_cookies, prove};
use super::narrowing::network;
use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Suspicion};
use crate::reception::Course;
use crate::trace::{Seen, Trace, static_suffix};

/// Least requests with a cookie, for an opinion about it.
const REQUESTS_MIN: u64 = 20;
/// Least bodies that must be equal.
const EQUAL_MIN: u64 = 20;
/// Different values that they must have had, if there are so many.
const VALUES_MIN: usize = 8;
/// Least networks whose requests have the cookie: one client may send any values of it.
const NETWORKS_MIN: usize = 5;
/// Most cookies that are looked at: clients can send any number.
const NAMES_MAX: usize = 100;

/// The requests that have a cookie.
#[derive(Debug, Default)]
struct CookieUse<'t> {
    requests: u64,
    values: BTreeSet<&'t [u8]>,
    networks: BTreeSet<IpAddr>,
}

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut values: BTreeMap<(usize, &[u8]), CookieUse<'_>> = BTreeMap::new();
    for seen in trace.asked().filter(|seen| is_kept_away(seen)) {
        for pair in cookie::pairs(seen.request.headers.values(HeaderId::Cookie)) {
            let cookie = values.entry((seen.site, pair.name)).or_default();
            cookie.requests += 1;
            cookie.values.insert(pair.value);
            cookie.networks.extend(network(seen));
        }
    }
    let is_frequent = |cookie: &CookieUse<'_>| {
        cookie.requests >= REQUESTS_MIN && cookie.networks.len() >= NETWORKS_MIN
    };
    let mut frequent: Vec<_> =
        values.into_iter().filter(|(_, cookie)| is_frequent(cookie)).collect();
    frequent.sort_by_key(|(_, cookie)| std::cmp::Reverse(cookie.requests));
    let found = frequent.into_iter().take(NAMES_MAX);
    found
        .filter_map(|((site, name), cookie)| suspicion(trace, site, name, cookie.values.len()))
        .collect()
}

/// Returns true if a cookie may be what keeps the request from the store. What a preset's rule
/// passes is for the application's own reason.
fn is_kept_away(seen: &Seen<'_>) -> bool {
    let by_preset = seen.place.as_deref().is_some_and(|place| place.starts_with("preset"));
    match seen.course {
        Course::Lookup => seen.is_personal,
        Course::Pass => seen.rule.starts_with("bypass cookie") && !by_preset,
        Course::Own | Course::Purge => false,
    }
}

/// Parts of the names of cookies by which applications know their visitors. Such a cookie matters
/// on pages that these visits may not show.
const OF_VISITORS: [&str; 10] =
    ["account", "auth", "cart", "csrf", "logged", "login", "sess", "token", "user", "xsrf"];

/// Returns true if a cookie of this name may be the one by which a visitor is known.
pub(super) fn is_of_visitor(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with("sid") || OF_VISITORS.iter().any(|part| lower.contains(part))
}

fn suspicion(trace: &Trace<'_>, site: usize, name: &[u8], values: usize) -> Option<Suspicion> {
    let text =
        std::str::from_utf8(name).ok().filter(|text| !text.is_empty() && !is_of_visitor(text))?;
    // Lengths are no proof, and a wrong guess would give a visitor's page to others.
    let measure = Measure::Bytes;
    // Files that are equal for all visitors say nothing of pages.
    let is_page = |seen: &&Seen<'_>| {
        matches!(seen.course, Course::Lookup | Course::Pass)
            && static_suffix(seen.request.path()).is_none()
    };
    let of_site = trace.seen.iter().filter(|seen| seen.site == site).filter(is_page);
    let bodies = of_site.filter_map(|seen| {
        let pairs = cookie::pairs(seen.request.headers.values(HeaderId::Cookie));
        let own: Vec<_> = pairs.filter(|pair| pair.name == name).map(|pair| pair.value).collect();
        let aspect = own.join(&b";"[..]);
        let given = given(seen, measure, &seen.request.target, "", aspect)?;
        Some(CookieBody { given, cookies: other_cookies(seen, name) })
    });
    let compared = prove(bodies.collect(), EQUAL_MIN)?;
    if compared.aspects < VALUES_MIN.min(values) {
        return None;
    }
    let value = NewValue::Item(text.to_owned());
    let aspect = format!("with {} different values of `{text}`, or without", compared.aspects);
    Some(Suspicion {
        kind: FindingKind::CookieUnused,
        site,
        about: text.to_owned(),
        paths: String::new(),
        proof: measure.proof(&compared, "pages", &aspect),
        edits: vec![Edit { scope: Scope::Site(site), table: "cookies", key: "strip", value }],
        bytes: 0,
        is_fault: false,
        risk: format!(
            "a page that none of these visits asked for may depend on `{text}`; requests that \
             pass the cache keep it"
        ),
        hints: Vec::new(),
    })
}
