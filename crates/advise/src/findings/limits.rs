//! Limits that refuse or change requests.

use std::collections::BTreeMap;

use crate::finding::{FindingKind, Proof, Suspicion};
use crate::trace::Trace;
use crate::visit::Visit;

/// Least requests that met a limit.
const REQUESTS_MIN: u64 = 5;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut counts: BTreeMap<(usize, &str), u64> = BTreeMap::new();
    for seen in &trace.seen {
        if let Some(limit) = limit_of(seen.visit) {
            *counts.entry((seen.site, limit)).or_default() += 1;
        }
    }
    let often = counts.into_iter().filter(|(_, count)| *count >= REQUESTS_MIN);
    often.map(|((site, limit), count)| suspicion(site, limit, count)).collect()
}

/// The limit that a visit met. The one for bodies refuses to store, and not the request.
fn limit_of(visit: &Visit) -> Option<&str> {
    match (&visit.limit[..], &visit.not_stored[..]) {
        ("", "too-large") => Some("object_bytes"),
        ("", _) => None,
        (limit, _) => Some(limit),
    }
}

fn suspicion(site: usize, limit: &str, count: u64) -> Suspicion {
    Suspicion {
        kind: FindingKind::LimitFires,
        site,
        about: limit.to_owned(),
        paths: String::new(),
        proof: Proof::Counts(format!("{count} requests met the limit `{limit}`")),
        edits: Vec::new(),
        bytes: 0,
        is_fault: true,
        risk: "a limit protects the machine: raise it only for requests that are wanted".to_owned(),
        hints: vec![format!(
            "`larder log -q 'limit ~ {limit}'` shows the requests; the limit is in `[limits]` or \
             a rule of the site"
        )],
    }
}
