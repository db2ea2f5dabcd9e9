//! Lifetimes that are too short or missing, and validators that would make renewals cheap.

use std::collections::BTreeMap;

use message::list::members;
use message::store::{LifetimeSource, NotStored};
use observe::record::Served;

use super::areas::{Area, by_area};
use super::bodies::{Measure, context};
use super::narrowing::{PATH_NETWORKS_MIN, networks};
use crate::edit::{Edit, NewValue};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::reception::Course;
use crate::trace::{Seen, Trace, static_suffix};

/// Least renewals that must have brought equal bytes.
const EQUAL_MIN: u64 = 10;
/// Longest advised lifetime of pages, whose URLs stay when they change, and of static files.
const PAGE_MAX_MS: u64 = 60 * 60 * 1000;
const FILE_MAX_MS: u64 = 24 * 60 * 60 * 1000;
/// Least factor by which a lifetime is made longer.
const FACTOR_MIN: u64 = 2;

/// Lifetimes as people write them, the longest first.
const ROUND: [(u64, &str); 14] = [
    (86_400_000, "1d"),
    (21_600_000, "6h"),
    (3_600_000, "1h"),
    (1_800_000, "30m"),
    (600_000, "10m"),
    (300_000, "5m"),
    (120_000, "2m"),
    (60_000, "1m"),
    (30_000, "30s"),
    (20_000, "20s"),
    (10_000, "10s"),
    (5_000, "5s"),
    (2_000, "2s"),
    (1_000, "1s"),
];

/// The longest lifetime in [`ROUND`] that is not longer than `ms`; a second at least.
pub(super) fn ttl_text(ms: u64) -> &'static str {
    ROUND.into_iter().find(|(own, _)| *own <= ms).map_or("1s", |(_, text)| text)
}

/// Renewals of an area: fetches for a URL that had been fetched before.
#[derive(Clone, Copy, Debug, Default)]
struct Renewals {
    /// Those that brought equal bytes.
    equal: u64,
    /// Those that brought others.
    changed: u64,
    /// Bytes of the equal ones.
    equal_bytes: u64,
    /// The longest time for which bytes stayed equal.
    longest_ms: u64,
    /// The shortest time between two changes, or from the first fetch to one.
    shortest_ms: Option<u64>,
}

impl Renewals {
    fn confirm(&mut self, bytes: u64, lasted_ms: u64) {
        self.equal += 1;
        self.equal_bytes += bytes;
        self.longest_ms = self.longest_ms.max(lasted_ms);
    }

    fn change(&mut self, lasted_ms: u64) {
        self.changed += 1;
        self.shortest_ms = Some(self.shortest_ms.map_or(lasted_ms, |ms| ms.min(lasted_ms)));
    }
}

fn renewals(seen: &[&Seen<'_>]) -> Renewals {
    let mut by_url: BTreeMap<Vec<u8>, Vec<&Seen<'_>>> = BTreeMap::new();
    for seen in seen {
        let url = [&seen.request.host[..], b" ", &seen.request.target[..]].concat();
        by_url.entry(url).or_default().push(seen);
    }
    let mut found = Renewals::default();
    for fetches in by_url.values() {
        let mut bodies: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
        for seen in fetches {
            let at_ms = seen.visit.at_ms;
            let variant = context(seen, "");
            let Some(body) = Measure::Bytes.value(seen) else {
                // The origin has confirmed a body: the latest, of whatever variant.
                if let Some(since_ms) = bodies.values().map(|(_, since_ms)| *since_ms).max() {
                    found.confirm(0, at_ms - since_ms);
                }
                continue;
            };
            match bodies.insert(variant.clone(), (body, at_ms)) {
                Some((known, since_ms)) if known == body => {
                    bodies.insert(variant, (body, since_ms));
                    found.confirm(seen.visit.body_bytes, at_ms - since_ms);
                }
                Some((_, since_ms)) => found.change(at_ms - since_ms),
                None => {}
            }
        }
    }
    found
}

/// The lifetime in milliseconds that these visits prove, for pages that do not change meanwhile;
/// `None` without proof.
pub(super) fn lifetime_for(seen: &[&Seen<'_>]) -> Option<u64> {
    let found = renewals(seen);
    if found.equal < EQUAL_MIN {
        return None;
    }
    let is_static = seen.iter().all(|seen| static_suffix(seen.request.path()).is_some());
    let most_ms = if is_static { FILE_MAX_MS } else { PAGE_MAX_MS };
    // A page may be old for a quarter of the time between its changes.
    let proved_ms = found.shortest_ms.map_or(found.longest_ms, |shortest| shortest / 4);
    Some(proved_ms.min(most_ms)).filter(|ms| *ms >= 1000)
}

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let is_judged = |seen: &Seen<'_>| {
        let is_lookup = seen.course == Course::Lookup && !seen.is_personal;
        let is_confirmed = seen.visit.served == Some(Served::Revalidated);
        is_lookup && (seen.visit.status == 200 && seen.has_response() || is_confirmed)
    };
    let areas = by_area(trace, is_judged);
    areas.iter().filter_map(|(area, seen)| of_area(trace, area, seen)).collect()
}

fn of_area(trace: &Trace<'_>, area: &Area, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let plans = || seen.iter().filter_map(|seen| seen.plan);
    let lacks = |source| matches!(source, LifetimeSource::None | LifetimeSource::Heuristic);
    let verdicts = plans().map(|plan| plan.verdict());
    let others = verdicts.filter_map(Result::err).any(|why| {
        !matches!(why, NotStored::NoLifetime | NotStored::NoValidator | NotStored::Personal)
    });
    if others {
        return None;
    }
    let found = renewals(seen);
    let longest_ms = plans().map(|plan| plan.lifetime_ms).max()?;
    let is_missing = plans().all(|plan| lacks(plan.source));
    let advised = lifetime_for(seen).filter(|ms| *ms >= longest_ms.max(500) * FACTOR_MIN);
    match advised {
        Some(ms) if is_missing => may_ignore(trace, area, missing(area, seen, &found, ms)),
        Some(ms) => may_ignore(trace, area, short(area, seen, &found, ms)),
        None => without_validator(trace, area, seen, &found),
    }
}

/// The suspicion, if it does not make the cache ignore a refusal. Where Cache-Control is ignored
/// for a whole area, none of its pages may refuse to be stored, and many networks must know it.
fn may_ignore(trace: &Trace<'_>, area: &Area, mut made: Suspicion) -> Option<Suspicion> {
    let ignored = NewValue::Item("Cache-Control".to_owned());
    if made.edits.iter().all(|edit| edit.value != ignored) {
        return Some(made);
    }
    let all = by_area(trace, |_| true).remove(area)?;
    let refuses = |seen: &&Seen<'_>| {
        let lines = seen.visit.response_fields("cache-control");
        members(lines).any(|word| {
            let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
            [&b"private"[..], b"no-store", b"no-cache"]
                .iter()
                .any(|own| name.trim_ascii().eq_ignore_ascii_case(own))
        })
    };
    // The responses permit by their own words that they are stored for all.
    if all.iter().any(refuses) || networks(&all) < PATH_NETWORKS_MIN {
        return None;
    }
    made.risk.push_str(
        "; a page of these paths that no visit has shown is stored even if it says `private` or \
         `no-store`",
    );
    Some(made)
}

fn edits(area: &Area, seen: &[&Seen<'_>], ms: u64) -> Vec<Edit> {
    let has = |name: &str| seen.iter().any(|seen| seen.visit.response_field(name).is_some());
    let edit = |key, value| Edit { scope: area.scope(), table: "cache", key, value };
    let sources: Vec<_> =
        seen.iter().filter_map(|seen| seen.plan).map(|plan| plan.source).collect();
    let mut edits = Vec::new();
    let states = |wanted: &[LifetimeSource]| sources.iter().any(|source| wanted.contains(source));
    if states(&[LifetimeSource::MaxAge, LifetimeSource::SMaxAge]) {
        edits.push(edit("ignore", NewValue::Item("Cache-Control".to_owned())));
    }
    if states(&[LifetimeSource::Expires]) || !edits.is_empty() && has("expires") {
        edits.push(edit("ignore", NewValue::Item("Expires".to_owned())));
    }
    edits.push(edit("ttl", NewValue::Status("200".to_owned(), ttl_text(ms).to_owned())));
    edits
}

fn renewals_proof(found: &Renewals, area: &Area) -> Proof {
    let (equal, all) = (found.equal, found.equal + found.changed);
    let text = format!("{equal} of {all} renewals of {} brought equal bytes", area.paths());
    Proof::Bodies { equal, text }
}

fn risk(ms: u64) -> String {
    format!("a change may show up to {} later, unless the application purges", ttl_text(ms))
}

fn missing(area: &Area, seen: &[&Seen<'_>], found: &Renewals, ms: u64) -> Suspicion {
    Suspicion {
        kind: FindingKind::LifetimeMissing,
        site: area.site(),
        about: "200".to_owned(),
        paths: area.paths(),
        proof: renewals_proof(found, area),
        edits: edits(area, seen, ms),
        bytes: 0,
        is_fault: false,
        risk: risk(ms),
        hints: vec![format!(
            "or make the application send `Cache-Control: s-maxage={}`",
            ms / 1000
        )],
    }
}

fn short(area: &Area, seen: &[&Seen<'_>], found: &Renewals, ms: u64) -> Suspicion {
    let longest_ms = seen.iter().filter_map(|seen| seen.plan).map(|plan| plan.lifetime_ms).max();
    let seconds = longest_ms.unwrap_or(0) / 1000;
    Suspicion {
        kind: FindingKind::LifetimeShort,
        about: format!("{seconds}s"),
        ..missing(area, seen, found, ms)
    }
}

/// Least share of bytes from origins, in hundredths, that validators must save.
const VALIDATOR_SHARE: u64 = 5;

fn without_validator(
    trace: &Trace<'_>,
    area: &Area,
    seen: &[&Seen<'_>],
    found: &Renewals,
) -> Option<Suspicion> {
    let has_validator = |seen: &&Seen<'_>| {
        ["etag", "last-modified"].iter().any(|name| seen.visit.response_field(name).is_some())
    };
    let is_worth_it = found.equal_bytes * 100 >= trace.figures.origin_bytes * VALIDATOR_SHARE;
    if seen.iter().any(has_validator) || found.equal < EQUAL_MIN || !is_worth_it {
        return None;
    }
    Some(Suspicion {
        kind: FindingKind::ValidatorMissing,
        site: area.site(),
        about: "ETag".to_owned(),
        paths: area.paths(),
        proof: renewals_proof(found, area),
        edits: Vec::new(),
        bytes: found.equal_bytes,
        is_fault: true,
        risk: "a validator that does not change with the page would keep the old page".to_owned(),
        hints: vec![
            "make the application send ETag or Last-Modified, and answer If-None-Match with 304"
                .to_owned(),
        ],
    })
}
