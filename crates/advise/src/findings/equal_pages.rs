//! Pages that are equal for all visitors, and yet are kept from the store: they set a cookie, or
//! say that they are one visitor's.

use std::collections::{BTreeMap, BTreeSet};

use message::store::{LifetimeSource, NotStored};
use message::{HeaderId, cookie};

use super::areas::{Area, by_area};
use super::bodies::{Measure, given, visitor};
use super::lifetimes::{lifetime_for, ttl_text};
use crate::comparison::{BodyComparison, compare};
use crate::edit::{Edit, NewValue};
use crate::finding::{FindingKind, Suspicion};
use crate::trace::{Seen, Trace};

/// Least bodies that must be equal.
const EQUAL_MIN: u64 = 20;
/// Least visitors that must have got them, and least of these with cookies of their own.
const VISITORS_MIN: usize = 10;
const COOKIES_MIN: usize = 8;

/// Least visitors of each page of an area, and of each path that is named by itself.
const PAGE_VISITORS_MIN: usize = 3;
const PATH_VISITORS_MIN: usize = 6;
/// Most paths that are named by themselves.
const PATHS_MAX: usize = 20;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    // Visitors who have the cookie come back with it, and are then refused for that.
    let set = by_area(trace, |seen| {
        let why = refusal(seen);
        let has_cookie = cookie_name(seen).is_some() && why == Some(NotStored::Personal);
        why == Some(NotStored::SetCookie) || has_cookie
    });
    let set = set.iter().filter_map(|(area, seen)| {
        let (area, seen) = narrowed(area, seen)?;
        set_cookie(&area, &seen)
    });
    let private = by_area(trace, |seen| {
        matches!(refusal(seen), Some(NotStored::Private | NotStored::NoStore))
    });
    let private = private.iter().filter_map(|(area, seen)| {
        let (area, seen) = narrowed(area, seen)?;
        forbidden(&area, &seen)
    });
    set.chain(private).collect()
}

/// The area if each of its pages is known to several visitors. Otherwise the paths that are: a page
/// that one visitor alone asked for may be that visitor's.
fn narrowed<'s, 't>(area: &Area, seen: &[&'s Seen<'t>]) -> Option<(Area, Vec<&'s Seen<'t>>)> {
    let mut visitors: BTreeMap<&[u8], BTreeSet<Vec<u8>>> = BTreeMap::new();
    for seen in seen {
        visitors.entry(seen.request.path()).or_default().insert(visitor(seen));
    }
    if visitors.values().all(|known| known.len() >= PAGE_VISITORS_MIN) {
        return Some((area.clone(), seen.to_vec()));
    }
    let Area::Family(site, _) = area else { return None };
    visitors.retain(|path, known| known.len() >= PATH_VISITORS_MIN && is_plain(path));
    let paths: Vec<&[u8]> = visitors.into_keys().take(PATHS_MAX).collect();
    let kept = seen.iter().copied().filter(|seen| paths.contains(&seen.request.path()));
    let names = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    Some((Area::Paths(*site, names), kept.collect()))
}

/// Returns true if a route's `path` stands for this path alone.
fn is_plain(path: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
    path.iter().all(is_plain)
}

fn refusal(seen: &Seen<'_>) -> Option<NotStored> {
    let status = seen.visit.status;
    seen.plan.and_then(|plan| plan.verdict().err()).filter(|_| status == 200)
}

/// The proof that a page is equal for many visitors with different cookies.
fn equality(seen: &[&Seen<'_>]) -> Option<(BodyComparison, usize)> {
    let of_visit = |seen: &&Seen<'_>| {
        let cookies = seen.visit.field("cookie").unwrap_or_default();
        let aspect = [&visitor(seen)[..], b"\n", cookies].concat();
        given(seen, Measure::Bytes, &seen.request.target, "", aspect)
    };
    let compared = compare(seen.iter().filter_map(of_visit).collect());
    let visitors: BTreeSet<_> = seen.iter().map(|seen| visitor(seen)).collect();
    let cookies: BTreeSet<_> = seen.iter().filter_map(|seen| seen.visit.field("cookie")).collect();
    let is_enough = visitors.len() >= VISITORS_MIN
        && cookies.len() >= COOKIES_MIN
        && compared.aspects >= VISITORS_MIN;
    (is_enough && compared.proves(EQUAL_MIN)).then_some((compared, cookies.len()))
}

fn set_cookie(area: &Area, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let (compared, cookies) = equality(seen)?;
    let edit = |key, value| Edit { scope: area.scope(), table: "cache", key, value };
    let is_declared = seen.iter().all(|seen| {
        let explicit = |plan: &message::store::StorePlan| {
            plan.shared && !matches!(plan.source, LifetimeSource::None | LifetimeSource::Heuristic)
        };
        seen.plan.as_ref().is_some_and(explicit)
    });
    let mut edits = Vec::new();
    if is_declared {
        edits.push(edit("drop_set_cookie", NewValue::Whole("true".to_owned())));
    } else {
        edits.push(edit("ignore", NewValue::Item("Set-Cookie".to_owned())));
        edits.extend(missing_lifetime(area, seen));
    }
    edits.extend(returning_cookies(area, seen));
    let names: BTreeSet<_> = seen.iter().filter_map(|seen| cookie_name(seen)).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    Some(Suspicion {
        kind: FindingKind::SetCookieOnEqualPages,
        site: area.site(),
        about: names.clone(),
        paths: area.paths(),
        proof: proof(&compared, cookies),
        edits,
        bytes: 0,
        is_fault: false,
        risk: format!("visitors no longer get {names} with these pages, but only with others"),
        hints: vec!["or make the application set the cookie when it is needed".to_owned()],
    })
}

fn forbidden(area: &Area, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let (compared, cookies) = equality(seen)?;
    // A page that also sets a cookie is for its visitor, whatever its bytes are.
    if seen.iter().any(|seen| cookie_name(seen).is_some()) {
        return None;
    }
    let control = seen.iter().find_map(|seen| seen.visit.response_field("cache-control"));
    let control = String::from_utf8_lossy(control.unwrap_or_default()).into_owned();
    let scope = area.scope();
    let value = NewValue::Item("Cache-Control".to_owned());
    let mut edits = vec![Edit { scope, table: "cache", key: "ignore", value }];
    edits.extend(lifetime(area, seen));
    Some(Suspicion {
        kind: FindingKind::PrivateOnEqualPages,
        site: area.site(),
        about: format!("Cache-Control: {control}"),
        paths: area.paths(),
        proof: proof(&compared, cookies),
        edits,
        bytes: 0,
        is_fault: false,
        risk: "a page below these paths that no visit has shown may be one visitor's: name such \
               paths in `bypass`"
            .to_owned(),
        hints: vec![
            "or make the application send `Cache-Control: public, s-maxage=60` there".to_owned(),
        ],
    })
}

/// Edits that remove the cookies of visitors who have got them before.
fn returning_cookies(area: &Area, seen: &[&Seen<'_>]) -> Vec<Edit> {
    let names: BTreeSet<_> = seen.iter().filter_map(|seen| cookie_name(seen)).collect();
    let comes_back = |name: &String| {
        seen.iter().any(|seen| {
            let lines = seen.request.headers.values(HeaderId::Cookie);
            cookie::pairs(lines).any(|pair| pair.name == name.as_bytes())
        })
    };
    let strip = |name| {
        let value = NewValue::Item(name);
        Edit { scope: area.scope(), table: "cookies", key: "strip", value }
    };
    names.into_iter().filter(comes_back).map(strip).collect()
}

/// The lifetime for pages that state none.
fn missing_lifetime(area: &Area, seen: &[&Seen<'_>]) -> Option<Edit> {
    let has_none =
        |seen: &&Seen<'_>| seen.plan.is_none_or(|plan| plan.source == LifetimeSource::None);
    seen.iter().any(has_none).then(|| lifetime(area, seen))?
}

fn lifetime(area: &Area, seen: &[&Seen<'_>]) -> Option<Edit> {
    let value = NewValue::Status("200".to_owned(), ttl_text(lifetime_for(seen)?).to_owned());
    Some(Edit { scope: area.scope(), table: "cache", key: "ttl", value })
}

fn proof(compared: &BodyComparison, cookies: usize) -> crate::finding::Proof {
    let aspect = format!("for {} visitors, {cookies} different sets of cookies", compared.aspects);
    Measure::Bytes.proof(compared, "pages", &aspect)
}

/// The name of the cookie that the response sets.
fn cookie_name(seen: &Seen<'_>) -> Option<String> {
    let set = seen.visit.response_field("set-cookie")?;
    let name = set.split(|byte| matches!(byte, b'=' | b';')).next()?;
    Some(String::from_utf8_lossy(name).trim().to_owned())
}
