//! Changes that a backend's body undergoes on its way into the store, as `beresp.filters` names it.

/// The change that a body's coding undergoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recoding {
    /// None.
    None,
    /// It is tested whether it is in gzip.
    TestGunzip,
    /// It is decoded.
    Gunzip,
    /// It is coded.
    Gzip,
    /// It is decoded, and coded once more.
    Regzip,
}

/// The change that `filters` make of a body's coding. Each of them looks at Content-Encoding first,
/// as Varnish's do: what is not in gzip is neither tested nor decoded, and what has a coding is not
/// coded once more.
pub fn coding_of(filters: &[u8], content_encoding: Option<&[u8]>) -> Recoding {
    let is_gzip = content_encoding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip"));
    let has = |name: &[u8]| has_filter(filters, name);
    match (is_gzip, content_encoding) {
        (true, _) if has(b"gunzip") && has(b"gzip") => Recoding::Regzip,
        (true, _) if has(b"gunzip") => Recoding::Gunzip,
        (true, _) if has(b"testgunzip") => Recoding::TestGunzip,
        (false, None) if has(b"gzip") => Recoding::Gzip,
        _ => Recoding::None,
    }
}

/// Returns true if `filters` read a page for its instructions.
pub fn has_esi_filter(filters: &[u8]) -> bool {
    has_filter(filters, b"esi") || has_filter(filters, b"esi_gzip")
}

/// Returns true if `filters` have `name` among them.
pub fn has_filter(filters: &[u8], name: &[u8]) -> bool {
    filters.split(|b| *b == b' ').any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_does_what_the_coding_allows() {
        for (filters, coding, filter) in [
            (" testgunzip", Some("gzip"), Recoding::TestGunzip),
            (" gunzip", Some("GZIP"), Recoding::Gunzip),
            ("gunzip gzip", Some("gzip"), Recoding::Regzip),
            (" gunzip", None, Recoding::None),
            (" gzip", None, Recoding::Gzip),
            (" gzip", Some("br"), Recoding::None),
            (" gzip", Some("gzip"), Recoding::None),
            ("", Some("gzip"), Recoding::None),
            (" esi_gzip", None, Recoding::None),
        ] {
            let coding = coding.map(str::as_bytes);
            assert_eq!(coding_of(filters.as_bytes(), coding), filter, "{filters} {coding:?}");
        }
    }
}
