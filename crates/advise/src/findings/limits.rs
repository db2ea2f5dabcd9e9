//! Limits that refuse or change requests.

use std::collections::BTreeMap;

use crate::finding::{FindingKind, Proof, Suspicion};
use crate::trace::Trace;

/// Least requests that met a limit.
const REQUESTS_MIN: u64 = 5;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut counts: BTreeMap<(usize, &str), u64> = BTreeMap::new();
    for seen in trace.seen.iter().filter(|seen| !seen.visit.limit.is_empty()) {
        *counts.entry((seen.site, &seen.visit.limit)).or_default() += 1;
    }
    let often = counts.into_iter().filter(|(_, count)| *count >= REQUESTS_MIN);
    often.map(|((site, limit), count)| suspicion(site, limit, count)).collect()
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
