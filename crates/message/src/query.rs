//! Query parameters of a request target: removes insignificant ones and sorts the rest, so that
//! equal pages have equal keys.
//!
//! Only `&` separates parameters: a cache that also splits at `;` would merge pages that the origin
//! distinguishes. Names are compared byte for byte, never decoded.

/// Names of query parameters, complete or by prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamSet {
    /// Sorted.
    exact: Vec<Box<[u8]>>,
    prefixes: Vec<Box<[u8]>>,
}

/// Parameters that advertising and mailing links carry for scripts in the browser; no server's
/// response depends on them.
pub const TRACKING: &[&str] = &[
    // Google: campaigns, ads, cross-domain measuring
    "utm_*",
    "gclid",
    "gclsrc",
    "dclid",
    "gbraid",
    "wbraid",
    "gad_source",
    "gad_campaignid",
    "srsltid",
    "_ga",
    "_gl",
    // Meta, Microsoft, X, LinkedIn, TikTok, Pinterest, Snapchat, Instagram, Yandex
    "fbclid",
    "msclkid",
    "twclid",
    "li_fat_id",
    "ttclid",
    "epik",
    "ScCid",
    "igshid",
    "yclid",
    "ysclid",
    // mailing and marketing services
    "mc_cid",
    "mc_eid",
    "_hsenc",
    "_hsmi",
    "__hssc",
    "__hstc",
    "__hsfp",
    "hsCtaTracking",
    "mkt_tok",
    "_openstat",
    "_kx",
    "vero_id",
    "oly_anon_id",
    "oly_enc_id",
    // Matomo
    "mtm_*",
    "pk_campaign",
    "pk_kwd",
];

impl ParamSet {
    /// A set of `names`; a `*` at the end of a name stands for any suffix.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::default();
        for name in names {
            match name.strip_suffix('*') {
                Some(prefix) => set.prefixes.push(prefix.as_bytes().into()),
                None => set.exact.push(name.as_bytes().into()),
            }
        }
        set.exact.sort_unstable();
        set
    }

    /// The set of [`TRACKING`] parameters.
    pub fn tracking() -> Self {
        Self::new(TRACKING.iter().copied())
    }

    /// Returns true if `name` is in the set.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.exact.binary_search_by(|exact| (**exact).cmp(name)).is_ok()
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// The parameters of a query, as written: names with optional `=` and value, empty ones included.
pub fn params(query: &[u8]) -> impl Iterator<Item = &[u8]> {
    query.split(|b| *b == b'&')
}

/// The name of a parameter: the part before the first `=`.
pub fn name(param: &[u8]) -> &[u8] {
    &param[..memchr::memchr(b'=', param).unwrap_or(param.len())]
}

/// Removes from `target` (path and query) the parameters whose names `drop` selects, and with the
/// last parameter the question mark. Returns true if anything changed. Allocates nothing.
pub fn remove_params(target: &mut Vec<u8>, mut drop: impl FnMut(&[u8]) -> bool) -> bool {
    let Some(start) = query_start(target) else { return false };
    if !params(&target[start..]).any(|p| drop(name(p))) {
        return false;
    }
    let (mut read, mut written, mut kept) = (start, start, false);
    while read <= target.len() {
        let end = memchr::memchr(b'&', &target[read..]).map_or(target.len(), |at| read + at);
        if !drop(name(&target[read..end])) {
            if kept {
                target[written] = b'&';
                written += 1;
            }
            target.copy_within(read..end, written);
            written += end - read;
            kept = true;
        }
        read = end + 1;
    }
    target.truncate(if kept { written } else { start - 1 });
    true
}

/// As [`remove_params`], and appends the removed parameters to `taken`.
pub fn take_params(
    target: &mut Vec<u8>,
    taken: &mut Vec<u8>,
    mut drop: impl FnMut(&[u8]) -> bool,
) -> bool {
    let Some(start) = query_start(target) else { return false };
    if !params(&target[start..]).any(|p| drop(name(p))) {
        return false;
    }
    for param in params(&target[start..]).filter(|p| drop(name(p))) {
        if !taken.is_empty() {
            taken.push(b'&');
        }
        taken.extend_from_slice(param);
    }
    remove_params(target, drop)
}

/// Sorts the parameters of `target` by name; equal names keep their order, which may be
/// significant. Returns true if anything changed; allocates only then.
pub fn sort_params(target: &mut Vec<u8>) -> bool {
    let Some(start) = query_start(target) else { return false };
    let query = &target[start..];
    if params(query).map(name).is_sorted() {
        return false;
    }
    let mut sorted: Vec<&[u8]> = params(query).collect();
    sorted.sort_by_key(|p| name(p));
    let sorted = sorted.join(&b'&');
    target.truncate(start);
    target.extend_from_slice(&sorted);
    true
}

/// The position of the query, if there is one.
fn query_start(target: &[u8]) -> Option<usize> {
    memchr::memchr(b'?', target).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn without(target: &str, names: &[&str]) -> (String, bool) {
        let set = ParamSet::new(names.iter().copied());
        let mut target = target.as_bytes().to_vec();
        let changed = remove_params(&mut target, |name| set.contains(name));
        (String::from_utf8(target).expect("made of a string"), changed)
    }

    #[test]
    fn chosen_parameters_go() {
        let names = ["a", "utm_*"];
        for (before, after) in [
            ("/?a=1", "/"),
            ("/?a", "/"),
            ("/?a=1&b=2", "/?b=2"),
            ("/?b=2&a=1", "/?b=2"),
            ("/?b&a=1&c&utm_x=1&utm_=&d", "/?b&c&d"),
            ("/?a=1&&b", "/?&b"),
            ("/?a=1?a=2", "/"),
        ] {
            assert_eq!(without(before, &names), (after.to_owned(), true), "{before}");
        }
    }

    #[test]
    fn others_stay_byte_for_byte() {
        for target in
            ["/", "/?", "/?b;a=1", "/?A=1", "/?%61=1", "/?ab=1", "/?utm=1", "/a=1", "/?&&"]
        {
            assert_eq!(without(target, &["a", "utm_*"]), (target.to_owned(), false));
        }
    }

    #[test]
    fn sorting_is_by_name_and_stable() {
        let sorted = |target: &str| {
            let mut target = target.as_bytes().to_vec();
            let changed = sort_params(&mut target);
            (String::from_utf8(target).expect("made of a string"), changed)
        };
        assert_eq!(sorted("/?b=1&a=2&b=0&a=1"), ("/?a=2&a=1&b=1&b=0".to_owned(), true));
        assert_eq!(sorted("/?a=2&a=1&b"), ("/?a=2&a=1&b".to_owned(), false));
        assert_eq!(sorted("/x"), ("/x".to_owned(), false));
    }

    #[test]
    fn tracking_parameters_are_known() {
        let tracking = ParamSet::tracking();
        for name in ["utm_source", "gclid", "fbclid", "mc_eid", "_gl"] {
            assert!(tracking.contains(name.as_bytes()), "{name}");
        }
        for name in ["id", "page", "utm", "q", "ref", ""] {
            assert!(!tracking.contains(name.as_bytes()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn removing_leaves_exactly_the_others(
            given in prop::collection::vec("[ab]{1,2}(=[x?=]{0,2})?", 1..6),
        ) {
            let mut target = format!("/p?{}", given.join("&")).into_bytes();
            remove_params(&mut target, |n| n == b"a");
            let kept: Vec<_> =
                given.iter().filter(|p| name(p.as_bytes()) != b"a").map(String::as_str).collect();
            let mark = if kept.is_empty() { "" } else { "?" };
            let expected = format!("/p{mark}{}", kept.join("&"));
            prop_assert_eq!(String::from_utf8(target).expect("ASCII"), expected);
        }

        #[test]
        fn sorting_loses_nothing(query in "[ab=&]{0,12}") {
            let mut target = format!("/?{query}").into_bytes();
            sort_params(&mut target);
            let mut before: Vec<_> = params(query.as_bytes()).collect();
            let mut after: Vec<_> = params(&target[2..]).collect();
            prop_assert!(after.iter().map(|p| name(p)).is_sorted());
            before.sort_unstable();
            after.sort_unstable();
            prop_assert_eq!(before, after);
            prop_assert!(!sort_params(&mut target.clone()));
        }
    }
}
