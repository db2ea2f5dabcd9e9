//! Parameters of queries on which pages do not depend.

use std::collections::BTreeMap;

use message::query;

use super::bodies::{CookieBody, Measure, given, other_cookies, prove};
use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Suspicion};
use crate::reception::Course;
use crate::trace::{Seen, Trace};

/// Least requests with a parameter, for an opinion about it.
const REQUESTS_MIN: u64 = 10;
/// Least bodies that must be equal, and different values that they must have had.
const EQUAL_MIN: u64 = 12;
const VALUES_MIN: usize = 3;
/// Most parameters that are looked at: clients can send any number.
const NAMES_MAX: usize = 200;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut counts: BTreeMap<(usize, &[u8]), u64> = BTreeMap::new();
    for seen in trace.asked().filter(|seen| may_be_stored(seen)) {
        for name in names(seen) {
            *counts.entry((seen.site, name)).or_default() += 1;
        }
    }
    let mut frequent: Vec<_> =
        counts.into_iter().filter(|(_, count)| *count >= REQUESTS_MIN).collect();
    frequent.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let found = frequent.into_iter().take(NAMES_MAX);
    found.filter_map(|((site, name), _)| suspicion(trace, site, name)).collect()
}

fn may_be_stored(seen: &Seen<'_>) -> bool {
    matches!(seen.course, Course::Lookup | Course::Pass)
        && matches!(&seen.visit.method[..], "GET" | "HEAD")
}

fn names<'s>(seen: &'s Seen<'_>) -> impl Iterator<Item = &'s [u8]> {
    query::params(seen.request.query().unwrap_or_default()).map(query::name)
}

fn suspicion(trace: &Trace<'_>, site: usize, name: &[u8]) -> Option<Suspicion> {
    let text = std::str::from_utf8(name).ok().filter(|text| !text.is_empty())?;
    let measure = Measure::of(trace.seen.iter());
    let of_site = trace.seen.iter().filter(|seen| seen.site == site && may_be_stored(seen));
    let bodies = of_site.filter_map(|seen| {
        let (rest, aspect) = split(seen, name);
        let given = given(seen, measure, &rest, "", aspect)?;
        Some(CookieBody { given, cookies: other_cookies(seen, b"") })
    });
    let compared = prove(bodies.collect(), EQUAL_MIN)?;
    if compared.aspects < VALUES_MIN {
        return None;
    }
    let value = NewValue::Item(text.to_owned());
    Some(Suspicion {
        kind: FindingKind::QueryParameterUnused,
        site,
        about: text.to_owned(),
        paths: String::new(),
        proof: measure.proof(&compared, "pages", &format!("with and without `{text}`")),
        edits: vec![Edit { scope: Scope::Site(site), table: "query", key: "strip", value }],
        bytes: 0,
        is_fault: false,
        risk: format!(
            "the origin no longer gets `{text}` with requests that may be stored: a script of the \
             origin that counts it must read it in the browser"
        ),
        hints: Vec::new(),
    })
}

/// The target without the parameter, and the parameter's values.
fn split(seen: &Seen<'_>, name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut rest, mut aspect) = (seen.request.path().to_vec(), Vec::new());
    let mut others = Vec::new();
    for param in query::params(seen.request.query().unwrap_or_default()) {
        if query::name(param) == name {
            aspect.push(b'&');
            aspect.extend_from_slice(param);
        } else {
            others.push(param);
        }
    }
    if !others.is_empty() {
        rest.push(b'?');
        rest.extend_from_slice(&others.join(&b"&"[..]));
    }
    (rest, aspect)
}
