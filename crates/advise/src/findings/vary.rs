//! Names in Vary on which responses do not depend.

use std::collections::BTreeMap;

use message::list::members;
use message::store::IgnoredFields;

use super::areas::{Area, by_area};
use super::bodies::{CookieBody, Measure, given, other_cookies, prove};
use crate::comparison::compare;
use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Suspicion};
use crate::trace::{Seen, Trace};

/// Least bodies that must be equal, and different values that they must have had.
const EQUAL_MIN: u64 = 12;
const VALUES_MIN: usize = 3;

/// Visits of an area whose responses name a field in Vary.
struct VaryingArea<'s, 't> {
    area: &'s Area,
    seen: Vec<&'s Seen<'t>>,
}

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let areas = by_area(trace, |seen| seen.has_response() && !seen.is_personal);
    let mut names: BTreeMap<(usize, String), Vec<VaryingArea<'_, '_>>> = BTreeMap::new();
    for (area, seen) in &areas {
        for name in names_of(seen) {
            let with_name = seen.iter().copied().filter(|seen| names_of(&[seen]).contains(&name));
            let entry = names.entry((area.site(), name.clone())).or_default();
            entry.push(VaryingArea { area, seen: with_name.collect() });
        }
    }
    names.into_iter().flat_map(|((site, name), areas)| suspicions(site, &name, areas)).collect()
}

/// The names in Vary that storing may ignore, and that tell of browsers alone.
fn names_of(seen: &[&Seen<'_>]) -> Vec<String> {
    let lines = seen.iter().filter_map(|seen| seen.visit.response_field("vary"));
    let mut names: Vec<String> =
        members(lines).map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| {
        let mut ignored = IgnoredFields::default();
        // A name that may tell of a visitor needs a stronger proof than visits can give.
        ignored.add(&format!("Vary: {name}")).is_ok() && !ignored.may_reveal()
    });
    names
}

/// One suspicion for the whole site, or one for each area if another area does depend on the name.
fn suspicions(site: usize, name: &str, areas: Vec<VaryingArea<'_, '_>>) -> Vec<Suspicion> {
    let all: Vec<&Seen<'_>> = areas.iter().flat_map(|own| own.seen.iter().copied()).collect();
    let whole = if let [one] = &areas[..] { one.area.paths() } else { String::new() };
    let depends_somewhere = compare(bodies(&all, name).into_iter().map(|own| own.given).collect());
    if depends_somewhere.differing == 0 {
        return suspicion(site, name, &whole, Scope::Site(site), &all).into_iter().collect();
    }
    let each = areas.iter();
    each.filter_map(|own| suspicion(site, name, &own.area.paths(), own.area.scope(), &own.seen))
        .collect()
}

fn bodies(seen: &[&Seen<'_>], name: &str) -> Vec<CookieBody> {
    let of_visit = |seen: &&Seen<'_>| {
        let values: Vec<_> = seen.request.headers.values_named(name.as_bytes()).collect();
        let aspect = values.join(&b","[..]);
        let given = given(seen, Measure::Bytes, &seen.request.target, name, aspect)?;
        Some(CookieBody { given, cookies: other_cookies(seen, b"") })
    };
    seen.iter().filter_map(of_visit).collect()
}

fn suspicion(
    site: usize,
    name: &str,
    paths: &str,
    scope: Scope,
    seen: &[&Seen<'_>],
) -> Option<Suspicion> {
    let compared = prove(bodies(seen, name), EQUAL_MIN)?;
    if compared.aspects < VALUES_MIN {
        return None;
    }
    let about = title(name);
    let value = NewValue::Item(format!("Vary: {about}"));
    let aspect = format!("for {} different values of {about}", compared.aspects);
    Some(Suspicion {
        kind: FindingKind::VaryUnused,
        site,
        paths: paths.to_owned(),
        proof: Measure::Bytes.proof(&compared, "responses", &aspect),
        edits: vec![Edit { scope, table: "cache", key: "ignore", value }],
        bytes: 0,
        is_fault: false,
        risk: format!("a page that none of these visits asked for may depend on {about}"),
        hints: vec![format!("or make the application leave {about} out of Vary")],
        about,
    })
}

/// A field's name as people write it.
fn title(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}
