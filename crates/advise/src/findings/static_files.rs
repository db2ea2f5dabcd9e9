//! Static files that pass the cache, because of a cookie or a rule.

use std::collections::{BTreeMap, BTreeSet};

use super::areas::{Area, area};
use super::bodies::{Measure, given, visitor};
use crate::comparison::compare;
use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::reception::Course;
use crate::trace::{Seen, Trace, static_suffix};

/// Least requests for such files.
const REQUESTS_MIN: usize = 20;
/// Least bodies that must be equal for different visitors.
const EQUAL_MIN: u64 = 10;

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    let mut by_site: BTreeMap<usize, Vec<&Seen<'_>>> = BTreeMap::new();
    for seen in trace.seen.iter().filter(|seen| is_kept_away(seen)) {
        // In place of a route that the site or a preset has, none is put.
        if matches!(area(trace, seen), Some(Area::Family(..))) {
            by_site.entry(seen.site).or_default().push(seen);
        }
    }
    by_site.into_iter().filter_map(|(site, seen)| suspicion(site, &seen)).collect()
}

fn is_kept_away(seen: &Seen<'_>) -> bool {
    let is_file = static_suffix(seen.request.path()).is_some();
    let by_rule = seen.course == Course::Pass && seen.rule.starts_with("bypass");
    let by_cookie = seen.course == Course::Lookup && seen.is_personal;
    let is_shared = seen.plan.is_some_and(|plan| plan.shared);
    is_file && seen.visit.method == "GET" && (by_rule || by_cookie && !is_shared)
}

fn suspicion(site: usize, seen: &[&Seen<'_>]) -> Option<Suspicion> {
    let of_visit = |seen: &&Seen<'_>| {
        let cookies = seen.visit.field("cookie").unwrap_or_default();
        let aspect = [&visitor(seen)[..], b"\n", cookies].concat();
        given(seen, Measure::Bytes, &seen.request.target, "", aspect)
    };

    let compared = compare(seen.iter().filter_map(of_visit).collect());
    if seen.len() < REQUESTS_MIN || !compared.proves(EQUAL_MIN) {
        return None;
    }
    let suffixes: BTreeSet<_> =
        seen.iter().filter_map(|seen| static_suffix(seen.request.path())).collect();
    let rules: BTreeSet<_> = seen.iter().map(|seen| reason(seen)).collect();
    let paths: Vec<String> = suffixes.iter().map(|suffix| format!("\"*.{suffix}\"")).collect();
    let paths = match &paths[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let scope = || Scope::Path(site, paths.clone());
    let by_rule = seen.iter().any(|seen| seen.course == Course::Pass);
    let strip = NewValue::Item("*".to_owned());
    let mut edits = vec![Edit { scope: scope(), table: "cookies", key: "strip", value: strip }];
    if by_rule {
        let value = NewValue::Whole("false".to_owned());
        edits.insert(0, Edit { scope: scope(), table: "", key: "bypass", value });
    }
    let equal = compared.equal;
    let text = format!(
        "{equal} of {equal} files were byte for byte equal for {} visitors with their cookies",
        compared.aspects
    );
    Some(Suspicion {
        kind: FindingKind::PassStatic,
        site,
        about: rules.into_iter().collect::<Vec<_>>().join(", "),
        paths: suffixes.iter().map(|s| format!("*.{s}")).collect::<Vec<_>>().join(" "),
        proof: Proof::Bodies { equal, text },
        edits,
        bytes: 0,
        is_fault: false,
        risk: "a file of these names that a script makes for each visitor must have a route of \
               its own before this one"
            .to_owned(),
        hints: Vec::new(),
    })
}

fn reason(seen: &Seen<'_>) -> String {
    match seen.course {
        Course::Pass => seen.rule.clone(),
        _ => "cookies make the request personal".to_owned(),
    }
}
