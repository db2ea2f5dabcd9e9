//! Expiry of many responses at one moment, which sends their requests to the origin together.

use std::collections::BTreeMap;

use message::store::LifetimeSource;

use super::areas::{Area, area};
use super::lifetimes::ttl_text;
use crate::edit::{Edit, NewValue};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::reception::Course;
use crate::trace::{Seen, Trace};

/// Least URLs that expire together.
const URLS_MIN: usize = 20;
/// Least seconds over which they were fetched: what is fetched together may expire together.
const SPREAD_MIN_S: u64 = 10;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut moments: BTreeMap<(Area, u64), Vec<&Seen<'_>>> = BTreeMap::new();
    for seen in trace.seen.iter().filter(|seen| seen.course == Course::Lookup) {
        let Some(plan) = seen.plan.filter(|plan| plan.source == LifetimeSource::Expires) else {
            continue;
        };
        let at_s = (seen.visit.at_ms + plan.lifetime_ms.saturating_sub(plan.age_ms)) / 1000;
        if let Some(area) = area(trace, seen) {
            // Arrival and Date are whole seconds apart by chance.
            moments.entry((area, at_s / 2)).or_default().push(seen);
        }
    }
    let mut largest: BTreeMap<Area, Vec<&Seen<'_>>> = BTreeMap::new();
    for ((area, _), seen) in moments {
        let known = largest.entry(area).or_default();
        if known.len() < seen.len() {
            *known = seen;
        }
    }
    largest.iter().filter_map(|(area, seen)| suspicion(area, seen)).collect()
}

fn suspicion(area: &Area, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let mut urls: Vec<&[u8]> = seen.iter().map(|seen| &seen.request.target[..]).collect();
    urls.sort_unstable();
    urls.dedup();
    let times = || seen.iter().map(|seen| seen.visit.at_ms / 1000);
    let spread_s = times().max()? - times().min()?;
    if urls.len() < URLS_MIN || spread_s < SPREAD_MIN_S {
        return None;
    }
    let lifetimes = seen.iter().filter_map(|seen| seen.plan).map(|plan| plan.lifetime_ms);
    let usual_ms = lifetimes.max()?;
    let edit = |key, value| Edit { scope: area.scope(), table: "cache", key, value };
    let ttl = NewValue::Status("200".to_owned(), ttl_text(usual_ms).to_owned());
    let ignore = NewValue::Item("Expires".to_owned());
    Some(Suspicion {
        kind: FindingKind::ExpireTogether,
        site: area.site(),
        about: "Expires".to_owned(),
        paths: area.paths(),
        proof: Proof::Counts(format!(
            "{} URLs that were fetched over {spread_s} seconds expire within two",
            urls.len()
        )),
        edits: vec![edit("ignore", ignore), edit("ttl", ttl)],
        bytes: 0,
        is_fault: true,
        risk: "pages that must change at that moment change later".to_owned(),
        hints: vec![
            "or make the application send `Cache-Control: max-age` in place of Expires".to_owned(),
        ],
    })
}
