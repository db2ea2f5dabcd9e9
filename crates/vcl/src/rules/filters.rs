//! Filters of a backend's body (`beresp.filters`), and the recoding that they mean. Nothing is
//! recoded here.

/// Recoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recoding {
    /// Unchanged.
    None,
    /// Checked to be valid gzip.
    TestGunzip,
    /// Decoded.
    Gunzip,
    /// Encoded.
    Gzip,
    /// Decoded, and encoded again.
    Regzip,
}

/// The recoding that `filters` perform. As in Varnish, each filter examines Content-Encoding first:
/// a body that is not in gzip is neither checked nor decoded, and a coded one is not encoded.
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

/// Returns true if `filters` parse a page for ESI.
pub fn has_esi_filter(filters: &[u8]) -> bool {
    has_filter(filters, b"esi") || has_filter(filters, b"esi_gzip")
}

/// Returns true if `filters` contain `name`.
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
