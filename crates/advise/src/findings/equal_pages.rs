//! Pages that are equal for all visitors, and yet are kept from the store: they set a cookie, or
//! say that they are one visitor's.

use std::collections::{BTreeMap, BTreeSet};

use message::store::{LifetimeSource, NotStored};
use message::{HeaderId, cookie};

use super::areas::{Area, by_area};
use super::bodies::{Measure, given, visitor};
use super::cookies::is_of_visitor;
use super::lifetimes::{lifetime_for, ttl_text};
use super::narrowing::{NETWORKS_WANTED, kept, narrowed, networks};
use crate::comparison::{BodyComparison, compare};
use crate::edit::{Edit, NewValue};
use crate::finding::{FindingKind, Suspicion};
use crate::trace::{Seen, Trace};

/// Least bodies that must be equal.
const EQUAL_MIN: u64 = 20;
/// Least sets of cookies whose visitors must have got them.
const COOKIES_MIN: usize = 8;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let all = by_area(trace, |seen| seen.visit.method == "GET");
    // Visitors who have the cookie come back with it, and are then refused for that.
    let set = by_area(trace, |seen| {
        let why = refusal(seen);
        let has_cookie = !cookie_names(seen).is_empty() && why == Some(NotStored::Personal);
        why == Some(NotStored::SetCookie) || has_cookie
    });
    let private = by_area(trace, |seen| {
        matches!(refusal(seen), Some(NotStored::Private | NotStored::NoStore))
    });
    let found = |areas: BTreeMap<Area, Vec<&Seen<'_>>>, make: Make| {
        let of_area = |(area, refused): (&Area, &Vec<&Seen<'_>>)| {
            let all = all.get(area)?;
            let area = narrowed(area, all)?;
            make(&area, &Pages { refused: kept(&area, refused), all: kept(&area, all) })
        };
        areas.iter().filter_map(of_area).collect::<Vec<_>>()
    };
    [found(set, set_cookie), found(private, forbidden)].concat()
}

/// Makes a suspicion of an area's pages.
type Make = fn(&Area, &Pages<'_, '_>) -> Option<Suspicion>;

/// Visits of an area.
struct Pages<'s, 't> {
    /// Those whose response was kept from the store.
    refused: Vec<&'s Seen<'t>>,
    /// All with GET: pages without the cookie may differ from those with it.
    all: Vec<&'s Seen<'t>>,
}

fn refusal(seen: &Seen<'_>) -> Option<NotStored> {
    let status = seen.visit.status;
    seen.plan.and_then(|plan| plan.verdict().err()).filter(|_| status == 200)
}

/// The proof that a page is equal for many visitors with different cookies.
fn equality(pages: &Pages<'_, '_>) -> Option<(BodyComparison, usize)> {
    let of_visit = |seen: &&Seen<'_>| {
        let cookies = seen.visit.field("cookie").unwrap_or_default();
        let aspect = [&visitor(seen)[..], b"\n", cookies].concat();
        given(seen, Measure::Bytes, &seen.request.target, "", aspect)
    };
    if compare(pages.all.iter().filter_map(of_visit).collect()).differing > 0 {
        return None;
    }
    let refused = &pages.refused;
    let compared = compare(refused.iter().filter_map(of_visit).collect());
    let cookies: BTreeSet<_> =
        refused.iter().filter_map(|seen| seen.visit.field("cookie")).collect();
    let is_enough = networks(refused) >= NETWORKS_WANTED && cookies.len() >= COOKIES_MIN;
    (is_enough && compared.proves(EQUAL_MIN)).then_some((compared, cookies.len()))
}

fn set_cookie(area: &Area, pages: &Pages<'_, '_>) -> Option<Suspicion> {
    let seen = &pages.refused[..];
    let names: BTreeSet<_> = pages.all.iter().flat_map(|seen| cookie_names(seen)).collect();
    // A visitor without such a cookie could no longer log in, or send a form.
    if names.iter().any(|name| is_of_visitor(name)) {
        return None;
    }
    let (compared, cookies) = equality(pages)?;
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
    edits.extend(returning_cookies(area, seen, &names));
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

fn forbidden(area: &Area, pages: &Pages<'_, '_>) -> Option<Suspicion> {
    let (compared, cookies) = equality(pages)?;
    // A page that also sets a cookie is for its visitor, whatever its bytes are.
    if pages.all.iter().any(|seen| !cookie_names(seen).is_empty()) {
        return None;
    }
    let seen = &pages.refused[..];
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
fn returning_cookies(area: &Area, seen: &[&Seen<'_>], names: &BTreeSet<String>) -> Vec<Edit> {
    let comes_back = |name: &str| {
        seen.iter().any(|seen| {
            let lines = seen.request.headers.values(HeaderId::Cookie);
            cookie::pairs(lines).any(|pair| pair.name == name.as_bytes())
        })
    };
    let strip = |name: &String| {
        let value = NewValue::Item(name.clone());
        Edit { scope: area.scope(), table: "cookies", key: "strip", value }
    };
    names.iter().filter(|name| comes_back(name)).map(strip).collect()
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

/// The names of the cookies that the response sets.
fn cookie_names(seen: &Seen<'_>) -> BTreeSet<String> {
    let name = |set: &[u8]| {
        let name = set.split(|byte| matches!(byte, b'=' | b';')).next().unwrap_or_default();
        String::from_utf8_lossy(name).trim().to_owned()
    };
    seen.visit.response_fields("set-cookie").map(name).collect()
}
