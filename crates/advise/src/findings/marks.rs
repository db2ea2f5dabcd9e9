//! Hit-for-miss marks that outlast the reason for them.

use std::collections::{BTreeMap, BTreeSet};

use observe::record::Served;

use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::trace::{Seen, Trace};

/// Least requests under a mark, and the least share of these whose response could be stored, in
/// hundredths.
const MARKED_MIN: u64 = 20;
const STORABLE_SHARE: u64 = 30;
/// The advised lifetime of marks, in milliseconds.
const ADVISED_MS: u64 = 10_000;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut by_site: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    // A body above the limit is refused after its head was found good: its mark is right.
    let too_large = |seen: &&Seen<'_>| seen.visit.not_stored == "too-large";
    let large: BTreeSet<_> = trace.seen.iter().filter(too_large).map(url).collect();
    for seen in &trace.seen {
        if seen.visit.served == Some(Served::HitForMiss) && !large.contains(&url(seen)) {
            let (marked, storable) = by_site.entry(seen.site).or_default();
            *marked += 1;
            *storable += u64::from(seen.plan.is_some_and(|plan| plan.verdict().is_ok()));
        }
    }
    let present_ms = trace.settings.config.limits.hit_for_miss_ttl;
    let is_long = |(_, (marked, storable)): &(usize, (u64, u64))| {
        *marked >= MARKED_MIN && storable * 100 >= marked * STORABLE_SHARE
    };
    let found = by_site.into_iter().filter(|_| present_ms > ADVISED_MS).filter(is_long);
    found.map(|(site, (marked, storable))| suspicion(site, marked, storable, present_ms)).collect()
}

fn url(seen: &Seen<'_>) -> Vec<u8> {
    [&seen.request.host[..], &seen.request.target].concat()
}

fn suspicion(site: usize, marked: u64, storable: u64, present_ms: u64) -> Suspicion {
    let value = NewValue::Whole(format!("\"{}s\"", ADVISED_MS / 1000));
    Suspicion {
        kind: FindingKind::HitForMissLong,
        site,
        about: "hit_for_miss_ttl".to_owned(),
        paths: String::new(),
        proof: Proof::Counts(format!(
            "{storable} of {marked} requests under a mark of {}s got a response that could be \
             stored",
            present_ms / 1000
        )),
        edits: vec![Edit { scope: Scope::Top, table: "limits", key: "hit_for_miss_ttl", value }],
        bytes: 0,
        is_fault: true,
        risk: "requests for what is never stored wait for each other every 10 seconds".to_owned(),
        hints: Vec::new(),
    }
}
