//! Cookie values that count: a cookie in the key, with the values that it may have.
//!
//! A cookie with another value is removed, so that what a client invents makes no stored response
//! and does not reach the origin.

use message::cookie::{self, CookiePair};
use message::{HeaderBlock, HeaderId};

/// A cookie in the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieValues {
    /// Its name.
    pub name: String,
    /// Its permitted values; `None` for all.
    pub values: Option<Vec<String>>,
}

impl CookieValues {
    fn permits(&self, value: &[u8]) -> bool {
        let values = self.values.as_ref();
        values.is_none_or(|values| values.iter().any(|own| own.as_bytes() == value))
    }
}

/// Removes cookies whose values are not permitted, and those that repeat the name of one with
/// listed values. If only cookies of `known` are left, they get the order of `known`: browsers send
/// them in the order in which they were set.
pub(super) fn normalise(known: &[CookieValues], headers: &mut HeaderBlock) {
    let rank =
        |pair: &CookiePair<'_>| known.iter().position(|own| own.name.as_bytes() == pair.name);
    let stays = |pair: &CookiePair<'_>| rank(pair).is_none_or(|at| known[at].permits(pair.value));
    let (mut is_odd, mut has_others, mut last) = (false, false, None);
    for pair in cookie::pairs(headers.values(HeaderId::Cookie)) {
        let Some(at) = rank(&pair) else {
            has_others = true;
            continue;
        };
        is_odd |= !stays(&pair) || at < last.unwrap_or_default() || last == Some(at);
        last = Some(at);
    }
    if !is_odd {
        return;
    }
    let mut pairs: Vec<CookiePair<'_>> = Vec::new();
    for pair in cookie::pairs(headers.values(HeaderId::Cookie)).filter(stays) {
        let is_listed = rank(&pair).is_some_and(|at| known[at].values.is_some());
        if !is_listed || pairs.iter().all(|earlier| earlier.name != pair.name) {
            pairs.push(pair);
        }
    }
    if !has_others {
        pairs.sort_by_key(rank);
    }
    let written: Vec<Vec<u8>> = pairs.iter().map(written).collect();
    match written.is_empty() {
        true => headers.remove(HeaderId::Cookie),
        false => headers.set(HeaderId::Cookie, &written.join(&b"; "[..])),
    }
}

fn written(pair: &CookiePair<'_>) -> Vec<u8> {
    match pair.name {
        b"" => pair.value.to_vec(),
        name => [name, b"=", pair.value].concat(),
    }
}
