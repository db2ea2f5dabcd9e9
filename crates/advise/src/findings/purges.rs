//! Purges that remove pages which have not changed.

use std::collections::BTreeMap;

use super::bodies::{Measure, context, place};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::reception::Course;
use crate::trace::{Seen, Trace};

/// Least pages that were fetched again too early, and the share of unchanged ones in hundredths.
const EARLY_MIN: u64 = 20;
const EQUAL_SHARE: u64 = 90;

/// Pages of a site that were fetched again although they were fresh.
#[derive(Debug, Default)]
struct EarlyFetches {
    equal: u64,
    changed: u64,
    bytes: u64,
}

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut purges: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for seen in trace.seen.iter().filter(|seen| seen.course == Course::Purge) {
        purges.entry(seen.site).or_default().push(seen.visit.at_ms);
    }
    purges.into_iter().filter_map(|(site, times)| suspicion(trace, site, &times)).collect()
}

fn suspicion(trace: &Trace<'_>, site: usize, purges: &[u64]) -> Option<Suspicion> {
    let early = early(trace, site, purges);
    let all = early.equal + early.changed;
    if all < EARLY_MIN || early.equal * 100 < all * EQUAL_SHARE {
        return None;
    }
    Some(Suspicion {
        kind: FindingKind::PurgeWide,
        site,
        about: format!("{} purges", purges.len()),
        paths: String::new(),
        proof: Proof::Bodies {
            equal: early.equal,
            text: format!(
                "{} of {all} pages that were fetched again after {} purges, while they were \
                 fresh, brought equal bytes",
                early.equal,
                purges.len()
            ),
        },
        edits: Vec::new(),
        bytes: early.bytes,
        is_fault: true,
        risk: "a page that depends on what was changed must still be purged".to_owned(),
        hints: vec![
            "make the application purge by tag (`Surrogate-Key`) or by URL, in place of everything"
                .to_owned(),
        ],
    })
}

/// Fetches of pages that were fresh, with a purge between.
fn early(trace: &Trace<'_>, site: usize, purges: &[u64]) -> EarlyFetches {
    let mut last: BTreeMap<Vec<u8>, (&Seen<'_>, u64)> = BTreeMap::new();
    let mut found = EarlyFetches::default();
    let of_site = trace
        .seen
        .iter()
        .filter(|seen| seen.site == site && seen.course == Course::Lookup && !seen.is_personal);
    for seen in of_site {
        let (Some(body), Some(plan)) = (Measure::Bytes.value(seen), seen.plan) else { continue };
        if plan.verdict().is_err() {
            continue;
        }
        let page = [place(seen), context(seen, ""), seen.request.target.clone()].concat();
        let Some((before, known)) = last.insert(page, (seen, body)) else { continue };
        let fresh_ms = before.plan.map_or(0, |plan| plan.lifetime_ms.saturating_sub(plan.age_ms));
        let (from, to) = (before.visit.at_ms, seen.visit.at_ms);
        let was_purged = purges.iter().any(|at| (from..to).contains(at));
        if was_purged && to < from.saturating_add(fresh_ms) {
            found.equal += u64::from(known == body);
            found.changed += u64::from(known != body);
            found.bytes += if known == body { seen.visit.body_bytes } else { 0 };
        }
    }
    found
}
