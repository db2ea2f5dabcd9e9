//! Areas: the paths that a change of a route's settings would be for.

use std::collections::BTreeMap;

use crate::edit::Scope;
use crate::trace::{Seen, Trace};

/// Requests that one route has, or may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Area {
    /// A route of the file, by the indices of its site and its own, and its name.
    Route(usize, usize, String),
    /// A family of paths for which the file has no route.
    Family(usize, String),
    /// Single paths, for which the file has no route.
    Paths(usize, Vec<String>),
}

impl Area {
    /// Its paths, as a route's `path`, or the route's name.
    pub(super) fn paths(&self) -> String {
        match self {
            Self::Route(.., paths) | Self::Family(_, paths) => paths.clone(),
            Self::Paths(_, paths) => paths.join(" "),
        }
    }

    /// Index of its site.
    pub(super) fn site(&self) -> usize {
        let (Self::Route(site, ..) | Self::Family(site, _) | Self::Paths(site, _)) = self;
        *site
    }

    /// The table for its settings.
    pub(super) fn scope(&self) -> Scope {
        match self {
            Self::Route(site, route, _) => Scope::Route(*site, *route),
            Self::Family(site, paths) => Scope::Path(*site, format!("{paths:?}")),
            Self::Paths(site, paths) => Scope::Path(*site, format!("{paths:?}")),
        }
    }
}

/// The area of a visit; `None` if it belongs to a route of a preset, in whose place none is put.
pub(super) fn area(trace: &Trace<'_>, seen: &Seen<'_>) -> Option<Area> {
    let rules = &trace.settings.config.sites[seen.site].rules;
    match (seen.route as usize).checked_sub(1) {
        None => Some(seen.family())
            .filter(|own| is_literal(own))
            .map(|own| Area::Family(seen.site, own)),
        Some(route) if route < trace.settings.own_routes(seen.site) => {
            Some(Area::Route(seen.site, route, rules.routes.get(route)?.name.clone()))
        }
        Some(_) => None,
    }
}

/// Returns true if a family's pattern matches what it says: clients can send paths with the signs
/// of patterns in them.
fn is_literal(family: &str) -> bool {
    let suffix = family.strip_prefix("*.");
    // The folders of deeper paths have names; other families are paths themselves.
    let folder = family.strip_suffix("/*").filter(|own| own.len() > 1 && !own.starts_with("//"));
    let inner = suffix.or(folder).unwrap_or(family);
    !inner.contains(['*', '?', '[', ']', '{', '}', '~', '\\'])
}

/// The visits that `wanted` selects, by area.
pub(super) fn by_area<'s, 't>(
    trace: &'s Trace<'t>,
    wanted: impl Fn(&Seen<'t>) -> bool,
) -> BTreeMap<Area, Vec<&'s Seen<'t>>> {
    let mut areas: BTreeMap<Area, Vec<&Seen<'_>>> = BTreeMap::new();
    for seen in trace.seen.iter().filter(|seen| wanted(seen)) {
        if let Some(area) = area(trace, seen) {
            areas.entry(area).or_default().push(seen);
        }
    }
    areas
}
