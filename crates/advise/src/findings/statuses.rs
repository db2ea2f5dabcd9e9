//! Redirects, pages that are not there, and errors: responses whose lifetime origins rarely state.

use std::collections::{BTreeMap, BTreeSet};

use message::store::NotStored;

use super::areas::Area;
use super::bodies::visitor;
use super::narrowing::{kept, networks, paths};
use crate::comparison::{GivenBody, compare};
use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::reception::Course;
use crate::trace::{Seen, Trace};

/// Least fetches of such responses, for an opinion about them.
const FETCHES_MIN: usize = 10;
/// Least networks whose visitors got them.
const NETWORKS_MIN: usize = 3;
/// Longest lifetime of an error that is no fault: an outage may last so long.
const ERROR_MAX_MS: u64 = 60_000;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut by_status: BTreeMap<(usize, u16), Vec<&Seen<'_>>> = BTreeMap::new();
    let looked_up = trace
        .seen
        .iter()
        .filter(|seen| seen.course == Course::Lookup && !seen.is_personal && seen.has_response());
    for seen in looked_up {
        by_status.entry((seen.site, seen.visit.status)).or_default().push(seen);
    }
    let of_status = |((site, status), seen): (_, Vec<&Seen<'_>>)| match status {
        301 | 302 | 307 | 308 => redirects(trace, site, status, &seen),
        404 | 410 => not_found(trace, site, status, &seen),
        500.. => errors(trace, site, status, &seen),
        _ => None,
    };
    by_status.into_iter().filter_map(of_status).collect()
}

fn lack_lifetime(seen: &[&Seen<'_>]) -> bool {
    let lacks = |seen: &&&Seen<'_>| {
        seen.plan.is_some_and(|plan| plan.verdict() == Err(NotStored::NoLifetime))
    };
    seen.iter().filter(lacks).count() >= FETCHES_MIN && networks(seen) >= NETWORKS_MIN
}

fn with_ttl(scope: Scope, status: u16, ttl: &str) -> Vec<Edit> {
    let value = NewValue::Status(status.to_string(), ttl.to_owned());
    vec![Edit { scope, table: "cache", key: "ttl", value }]
}

/// Parts of paths by which applications let visitors in and out: such a redirect must reach them
/// each time, whatever these visits show.
const OF_SESSIONS: [&str; 12] = [
    "account", "auth", "cart", "log-in", "log-out", "login", "logoff", "logout", "session", "sign",
    "sso", "user",
];

fn redirects(trace: &Trace<'_>, site: usize, status: u16, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let of_site: Vec<_> = trace.seen.iter().filter(|seen| seen.site == site).collect();
    // In place of a route that the site or a preset has, none is put.
    let free: Vec<_> = seen.iter().copied().filter(|seen| seen.route == 0).collect();
    let mut names = paths(&free);
    names.retain(|path| is_steady(path, &of_site));
    let kept = kept(&Area::Paths(site, names.clone()), &free);
    let seen = &kept[..];
    let compared = compare(seen.iter().map(|seen| redirect(seen)).collect());
    if !lack_lifetime(seen) || !compared.proves(FETCHES_MIN as u64 / 2) {
        return None;
    }
    let equal = compared.equal;
    Some(Suspicion {
        kind: FindingKind::RedirectLifetime,
        site,
        about: status.to_string(),
        paths: names.join(" "),
        proof: Proof::Counts(format!(
            "{} redirects were fetched; {equal} of {equal} led other visitors to the same place",
            seen.len()
        )),
        edits: with_ttl(Scope::Path(site, format!("{names:?}")), status, "1h"),
        bytes: 0,
        is_fault: false,
        risk: "a redirect that changes is seen an hour later, unless the application purges it"
            .to_owned(),
        hints: Vec::new(),
    })
}

/// Returns true if a path leads all visitors to one place for each target, and has nothing to do
/// with their sessions.
fn is_steady(path: &str, of_site: &[&Seen<'_>]) -> bool {
    let lower = path.to_ascii_lowercase();
    let answers = |seen: &&&Seen<'_>| {
        seen.request.path() == path.as_bytes() && seen.has_response() && seen.visit.status < 500
    };
    let own: Vec<_> = of_site.iter().filter(answers).collect();
    let changes_cookies = own.iter().any(|seen| {
        let has = |name| seen.visit.response_field(name).is_some();
        has("set-cookie") || has("clear-site-data")
    });
    let compared = compare(own.iter().map(|seen| redirect(seen)).collect());
    !changes_cookies
        && compared.differing == 0
        && !OF_SESSIONS.iter().any(|part| lower.contains(part))
}

/// A redirect, to be compared by its status and place.
fn redirect(seen: &Seen<'_>) -> GivenBody {
    let place = seen.visit.response_field("location").unwrap_or_default();
    let outcome = [&seen.visit.status.to_be_bytes(), place].concat();
    let outcome = base::HashSeed::from_u64(0).hash(&outcome);
    GivenBody {
        url: [&seen.request.host[..], b" ", &seen.request.target[..]].concat(),
        variant: Vec::new(),
        at_ms: seen.visit.at_ms,
        aspect: visitor(seen),
        body: outcome,
        outcome,
        is_evidence: seen.visit.response_field("location").is_some(),
    }
}

fn not_found(trace: &Trace<'_>, site: usize, status: u16, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let urls: BTreeSet<_> = seen.iter().map(|seen| &seen.request.target[..]).collect();
    let is_found_by_others = trace.seen.iter().any(|other| {
        other.site == site
            && other.visit.status / 100 == 2
            && urls.contains(&other.request.target[..])
    });
    if !lack_lifetime(seen) || is_found_by_others {
        return None;
    }
    Some(Suspicion {
        kind: FindingKind::NotFoundLifetime,
        site,
        about: status.to_string(),
        paths: String::new(),
        proof: Proof::Counts(format!(
            "{} requests for {} URLs all got {status}",
            seen.len(),
            urls.len()
        )),
        edits: with_ttl(Scope::Site(site), status, "1m"),
        bytes: 0,
        is_fault: false,
        risk: "a page that is made is missing for up to a minute, unless the application purges it"
            .to_owned(),
        hints: Vec::new(),
    })
}

fn errors(trace: &Trace<'_>, site: usize, status: u16, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let kept = |seen: &&&Seen<'_>| {
        seen.plan.is_some_and(|plan| plan.verdict().is_ok() && plan.lifetime_ms > ERROR_MAX_MS)
    };
    let kept: Vec<_> = seen.iter().filter(kept).collect();
    let longest_ms = kept.iter().filter_map(|seen| seen.plan).map(|plan| plan.lifetime_ms).max()?;
    let urls: BTreeSet<_> = kept.iter().map(|seen| &seen.request.target[..]).collect();
    let served = trace.asked().filter(|other| {
        other.site == site
            && other.visit.status == status
            && urls.contains(&other.request.target[..])
    });
    let served = served.count();
    let value = NewValue::Item(status.to_string());
    Some(Suspicion {
        kind: FindingKind::ErrorLifetime,
        site,
        about: status.to_string(),
        paths: String::new(),
        proof: Proof::Counts(format!(
            "{} responses with {status} may be used for up to {}; {served} visitors got one",
            kept.len(),
            super::lifetimes::ttl_text(longest_ms)
        )),
        edits: vec![Edit { scope: Scope::Site(site), table: "cache", key: "not_stored", value }],
        bytes: 0,
        is_fault: true,
        risk: "the origin is asked again for each request while it fails, one at a time for each \
               URL"
        .to_owned(),
        hints: vec!["or make the application send no lifetime with errors".to_owned()],
    })
}
