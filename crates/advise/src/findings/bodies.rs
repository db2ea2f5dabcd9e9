//! Bodies that are compared: which requests may be compared with which.

use std::collections::{BTreeMap, BTreeSet};

use message::cookie;
use message::vary::{Vary, vary_signature};
use message::{HeaderId, Method};

use crate::comparison::{BodyComparison, GivenBody, compare};
use crate::finding::Proof;
use crate::reception::response;
use crate::trace::Seen;

/// Measure by which bodies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Its fingerprint.
    Bytes,
    /// Its length, where a log has nothing else: no proof.
    Length,
}

impl Measure {
    /// The measure for these visits: lengths only if there is no fingerprint at all.
    pub(super) fn of<'s, 't: 's>(mut seen: impl Iterator<Item = &'s Seen<'t>>) -> Self {
        if seen.any(|seen| seen.visit.body.is_some()) { Self::Bytes } else { Self::Length }
    }

    /// The value for a visit; `None` without one.
    pub(super) fn value(self, seen: &Seen<'_>) -> Option<u64> {
        let visit = seen.visit;
        match self {
            _ if seen.request.method != Method::Get => None,
            // A failure tells of the origin's state, and not of the request.
            Self::Bytes if visit.status >= 500 || visit.status == 429 => None,
            Self::Bytes => visit
                .body
                .filter(|_| seen.has_response())
                .map(|print| hash(&[&print.exact.to_be_bytes(), &outcome(seen)[..]].concat())),
            Self::Length => (visit.status == 200).then_some(visit.body_bytes),
        }
    }

    /// The proof that a comparison gives.
    pub(super) fn proof(self, compared: &BodyComparison, what: &str, aspect: &str) -> Proof {
        let equal = compared.equal;
        match self {
            Self::Bytes => {
                let text = format!("{equal} of {equal} {what} were byte for byte equal {aspect}");
                Proof::Bodies { equal, text }
            }
            Self::Length => Proof::Missing(format!(
                "the log has no bodies; {equal} of {equal} {what} had equal lengths {aspect}; \
                 `--origin` compares bodies"
            )),
        }
    }
}

/// Status and Location of a response.
fn outcome(seen: &Seen<'_>) -> Vec<u8> {
    let place = seen.visit.response_field("location").unwrap_or_default();
    [&seen.visit.status.to_be_bytes(), place].concat()
}

fn hash(bytes: &[u8]) -> u64 {
    base::HashSeed::from_u64(0).hash(bytes)
}

/// The body of a visit, to be compared with others for `target` by `aspect`. `without` is a name in
/// Vary that is of no account. `None` if the visit has no value of this measure.
pub(super) fn given(
    seen: &Seen<'_>,
    measure: Measure,
    target: &[u8],
    without: &str,
    aspect: Vec<u8>,
) -> Option<GivenBody> {
    let status = seen.visit.status;
    let leads_on = status / 100 == 3 && seen.visit.response_field("location").is_some();
    Some(GivenBody {
        url: [&place(seen)[..], target].concat(),
        variant: context(seen, without),
        at_ms: seen.visit.at_ms,
        aspect,
        body: measure.value(seen)?,
        outcome: hash(&outcome(seen)),
        is_evidence: status == 200 || leads_on,
    })
}

/// Site, host and scheme.
pub(super) fn place(seen: &Seen<'_>) -> Vec<u8> {
    let mut place = format!("{} {} ", seen.site, seen.request.scheme.as_str()).into_bytes();
    place.extend_from_slice(&seen.request.host);
    place.push(b' ');
    place
}

/// The variant of a response: its coding, and the request's fields that Vary names but Cookie and
/// `without`.
pub(super) fn context(seen: &Seen<'_>, without: &str) -> Vec<u8> {
    let visit = seen.visit;
    let mut context = visit.response_field("content-encoding").unwrap_or_default().to_vec();
    context.push(b' ');
    let fields = visit.response.as_deref().unwrap_or_default();
    let head = response(visit.status, fields);
    let names = match Vary::of(&head.headers) {
        Vary::Names(names) => names.without(HeaderId::Cookie),
        Vary::None | Vary::Never => None,
    };
    if let Some(names) = names {
        let kept: Vec<&[u8]> = names.iter().filter(|name| *name != without.as_bytes()).collect();
        if !kept.is_empty() {
            vary_signature(&kept.join(&b","[..]), &seen.request.headers, &mut context);
        }
    }
    context
}

/// The cookies that count, but the one called `without`.
pub(super) fn other_cookies(seen: &Seen<'_>, without: &[u8]) -> Vec<u8> {
    let lines = seen.request.headers.values(HeaderId::Cookie);
    let mut pairs: Vec<_> = cookie::pairs(lines).filter(|pair| pair.name != without).collect();
    pairs.sort_unstable_by_key(|pair| (pair.name, pair.value));
    let words = pairs.iter().map(|pair| [pair.name, b"=", pair.value, b";"].concat());
    words.collect::<Vec<_>>().concat()
}

/// The visitor: address and browser.
pub(super) fn visitor(seen: &Seen<'_>) -> Vec<u8> {
    let agent = seen.visit.field("user-agent").unwrap_or_default();
    let client = seen.visit.client.map(|client| client.to_string()).unwrap_or_default();
    [client.as_bytes(), b" ", agent].concat()
}

/// A body with the cookies of its request.
#[derive(Clone, Debug)]
pub(super) struct CookieBody {
    /// The body.
    pub(super) given: GivenBody,
    /// The cookies of its request, but the one that is compared.
    pub(super) cookies: Vec<u8>,
}

/// Compares bodies without regard to cookies; if these make a difference, only those with equal
/// cookies. `None` if neither proves anything with `least` equal ones.
pub(super) fn prove(bodies: Vec<CookieBody>, least: u64) -> Option<BodyComparison> {
    let all = compare(bodies.iter().map(|body| body.given.clone()).collect());
    if all.proves(least) {
        return Some(all);
    }
    if !are_explained(&bodies) {
        return None;
    }
    let strict = bodies.into_iter().map(|CookieBody { mut given, cookies }| {
        given.url.push(b'\n');
        given.url.extend_from_slice(&cookies);
        given
    });
    Some(compare(strict.collect())).filter(|compared| compared.proves(least))
}

/// Returns true if each body of a URL with a difference was also given to requests that differ in
/// the aspect alone. Otherwise the cookies explain nothing: a visitor with a cookie of his own is
/// compared with no other.
fn are_explained(bodies: &[CookieBody]) -> bool {
    let mut by_url: BTreeMap<&[u8], Vec<&CookieBody>> = BTreeMap::new();
    for body in bodies {
        by_url.entry(&body.given.url).or_default().push(body);
    }
    by_url.values().all(|of_url| {
        let differing = compare(of_url.iter().map(|own| own.given.clone()).collect()).differing;
        differing == 0 || compared_alone(of_url)
    })
}

fn compared_alone(bodies: &[&CookieBody]) -> bool {
    let mut aspects: BTreeMap<Vec<u8>, BTreeSet<&[u8]>> = BTreeMap::new();
    let kind = |own: &CookieBody| [&own.given.variant[..], b"\n", &own.cookies].concat();
    for body in bodies {
        aspects.entry(kind(body)).or_default().insert(&body.given.aspect);
    }
    let is_mixed = |own: &&&CookieBody| aspects.get(&kind(own)).is_some_and(|own| own.len() > 1);
    let compared: BTreeSet<u64> =
        bodies.iter().filter(is_mixed).map(|own| own.given.body).collect();
    bodies.iter().all(|own| compared.contains(&own.given.body))
}
