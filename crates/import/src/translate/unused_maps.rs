//! Unused maps: `map`, `geo` and `split_clients` on whose variables no request depends.

use super::state::State;
use crate::syntax::Directive;

/// Reason for a map that only formats of logs use, or nothing.
const UNUSED: &str = "no request depends on it";

/// Settles the maps whose variables only formats of logs use, or nothing.
pub(crate) fn settle(state: &mut State<'_>, directives: &[Directive]) {
    let maps: Vec<_> = state.world.maps.iter().map(|(name, map)| (*name, *map)).collect();
    let mut texts = Vec::new();
    directives.iter().for_each(|own| gather(own, &mut texts));
    let mut used = vec![false; maps.len()];
    // A map that is used may use others.
    while let Some(at) = (0..maps.len()).find(|at| !used[*at] && names(&texts, maps[*at].0)) {
        used[at] = true;
        maps[at].1.visit(&mut |own| texts.extend(own.args.iter().map(String::as_str)));
    }
    for (_, map) in maps.iter().zip(used).filter(|(_, used)| !used).map(|(map, _)| map) {
        map.visit(&mut |own| {
            if state.ledger.is_open(own.id) {
                state.ledger.not_needed(own.id, UNUSED);
            }
        });
    }
}

/// Gathers the arguments on which requests depend.
fn gather<'d>(own: &'d Directive, texts: &mut Vec<&'d str>) {
    if !matches!(own.name.as_str(), "map" | "geo" | "split_clients" | "log_format") {
        texts.extend(own.args.iter().map(String::as_str));
        own.children().iter().for_each(|own| gather(own, texts));
    }
}

/// Returns true if a text has the variable.
fn names(texts: &[&str], variable: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    texts.iter().any(|text| {
        text.split('$').skip(1).any(|rest| {
            let rest = rest.strip_prefix('{').unwrap_or(rest);
            rest.strip_prefix(variable).is_some_and(|behind| !behind.starts_with(is_of_name))
        })
    })
}
