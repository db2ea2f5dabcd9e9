//! The origin's clock: Date against the time at which the response arrived.

use std::collections::BTreeMap;

use message::date::parse_http_date;

use crate::finding::{FindingKind, Proof, Suspicion};
use crate::trace::{Seen, Trace};

/// Least responses, for an opinion about a clock.
const RESPONSES_MIN: usize = 10;
/// Least seconds that count: Date has whole seconds, and a response takes its time.
const OFF_MIN_S: i64 = 5;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut by_site: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for seen in trace.seen.iter().filter(|seen| seen.has_response()) {
        if let Some(off_s) = off_s(seen) {
            by_site.entry(seen.site).or_default().push(off_s);
        }
    }
    by_site.into_iter().filter_map(|(site, off)| suspicion(site, off)).collect()
}

/// Seconds by which Date is ahead of the response's arrival. A response with Age is an older one.
fn off_s(seen: &Seen<'_>) -> Option<i64> {
    if seen.visit.response_field("age").is_some() {
        return None;
    }
    let arrived_s = (seen.visit.at_ms + seen.visit.fetch_us.unwrap_or(0) / 1000) / 1000;
    let date_s = parse_http_date(seen.visit.response_field("date")?, arrived_s)?;
    Some(i64::try_from(date_s).ok()? - i64::try_from(arrived_s).ok()?)
}

fn suspicion(site: usize, mut off: Vec<i64>) -> Option<Suspicion> {
    off.sort_unstable();
    let middle_s = *off.get(off.len() / 2)?;
    // Dates that differ widely are of stored pages, not of a clock.
    let is_steady = off[off.len() / 10].abs_diff(off[off.len() * 9 / 10]) <= OFF_MIN_S as u64;
    if off.len() < RESPONSES_MIN || middle_s.abs() < OFF_MIN_S || !is_steady {
        return None;
    }
    let way = if middle_s < 0 { "behind" } else { "ahead" };
    let seconds = middle_s.abs();
    Some(Suspicion {
        kind: FindingKind::ClockOff,
        site,
        about: format!("{seconds}s {way}"),
        paths: String::new(),
        proof: Proof::Counts(format!(
            "Date was {seconds} seconds {way} in the middle of {} responses",
            off.len()
        )),
        edits: Vec::new(),
        bytes: 0,
        is_fault: true,
        risk: "a clock that is set changes the lifetimes of all responses at once".to_owned(),
        hints: vec!["set the origin's clock (NTP)".to_owned()],
    })
}
