//! Static files that pass the cache, because of a cookie or a rule.

use std::collections::{BTreeMap, BTreeSet};

use policy::pattern::PathPattern;
use policy::rules::{Bypass, Settings, SiteRules};

use super::areas::{Area, by_area};
use super::bodies::{Measure, given, visitor};
use super::narrowing::{kept, narrowed, paths};
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
    // In place of a route that the site or a preset has, none is put.
    let families =
        by_area(trace, |seen| seen.route == 0 && static_suffix(seen.request.path()).is_some());
    let mut by_site: BTreeMap<usize, Files<'_, '_>> = BTreeMap::new();
    for (family, all) in &families {
        let Some(area) = permitted(trace, family, all) else { continue };
        let files = by_site.entry(area.site()).or_default();
        let kept = kept(&area, all);
        files.seen.extend(kept.into_iter().filter(|seen| is_kept_away(seen)));
        match area {
            Area::Paths(_, paths) => files.paths.extend(paths),
            Area::Route(.., path) | Area::Family(_, path) => files.paths.push(path),
        }
    }
    by_site.into_iter().filter_map(|(site, files)| suspicion(site, &files)).collect()
}

/// Static files of a site, and their visits that pass the cache.
#[derive(Debug, Default)]
struct Files<'s, 't> {
    paths: Vec<String>,
    seen: Vec<&'s Seen<'t>>,
}

/// The files of a family for which a new route takes nothing away: those that many networks know,
/// and that neither a route nor the site guards.
fn permitted(trace: &Trace<'_>, family: &Area, all: &[&Seen<'_>]) -> Option<Area> {
    let rules = &trace.settings.config.sites[family.site()].rules;
    let kept_away: Vec<_> = all.iter().copied().filter(|seen| is_kept_away(seen)).collect();
    if kept_away.is_empty() {
        return None;
    }
    let suffix = family.paths().trim_start_matches('*').to_owned();
    let area = narrowed(family, all)?;
    let is_whole = matches!(area, Area::Family(..));
    if is_whole && !is_guarded(rules, |pattern| may_end_with(pattern.as_str(), &suffix)) {
        return Some(area);
    }
    let mut paths = paths(&kept_away);
    paths.retain(|path| !is_guarded(rules, |pattern| pattern.matches(path.as_bytes())));
    (!paths.is_empty()).then(|| Area::Paths(family.site(), paths))
}

/// Returns true if a setting keeps paths that `may_match` selects from the store, or from clients.
fn is_guarded(rules: &SiteRules, may_match: impl Fn(&PathPattern) -> bool) -> bool {
    let told = |settings: &Settings| settings.bypass.iter().map(Bypass::told).collect::<Vec<_>>();
    let site_bypass = told(&rules.settings);
    let guards = |own: &Settings| {
        !own.cache
            || own.basic_auth.is_some()
            || own.forward_auth.is_some()
            || own.answer.is_some()
            || !(own.allow.is_empty() && own.deny.is_empty())
            || told(own) != site_bypass
    };
    let mut routes = rules.routes.iter().filter(|route| guards(&route.settings));
    let by_route = routes
        .any(|route| route.scope.paths.is_empty() || route.scope.paths.iter().any(&may_match));
    by_route
        || rules.settings.bypass.iter().any(|bypass| match bypass {
            Bypass::Path(pattern) => may_match(pattern),
            _ => false,
        })
}

/// Returns true if a path with this suffix may match a pattern. Only patterns with another literal
/// end are known to match none.
fn may_end_with(pattern: &str, suffix: &str) -> bool {
    let end = pattern.rsplit(['*', '?', '[', ']']).next().unwrap_or_default();
    pattern.starts_with('~') || end.ends_with(suffix) || suffix.ends_with(end)
}

fn is_kept_away(seen: &Seen<'_>) -> bool {
    let is_file = static_suffix(seen.request.path()).is_some();
    let by_rule = seen.course == Course::Pass && is_lifted(&seen.rule);
    let by_cookie = seen.course == Course::Lookup && seen.is_personal;
    let is_shared = seen.plan.is_some_and(|plan| plan.shared);
    is_file && seen.visit.method == "GET" && (by_rule || by_cookie && !is_shared)
}

/// Returns true for a rule that looks at something else than the path: a bypass of paths is the
/// operator's own word about them.
fn is_lifted(rule: &str) -> bool {
    rule.starts_with("bypass") && !rule.starts_with("bypass path")
}

fn suspicion(site: usize, files: &Files<'_, '_>) -> Option<Suspicion> {
    let seen = &files.seen[..];
    let of_visit = |seen: &&Seen<'_>| {
        let cookies = seen.visit.field("cookie").unwrap_or_default();
        let aspect = [&visitor(seen)[..], b"\n", cookies].concat();
        given(seen, Measure::Bytes, &seen.request.target, "", aspect)
    };

    let compared = compare(seen.iter().filter_map(of_visit).collect());
    if seen.len() < REQUESTS_MIN || !compared.proves(EQUAL_MIN) {
        return None;
    }
    let rules: BTreeSet<_> = seen.iter().map(|seen| reason(seen)).collect();
    let paths = match &files.paths[..] {
        [one] => format!("{one:?}"),
        several => format!("{several:?}"),
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
        paths: files.paths.join(" "),
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
