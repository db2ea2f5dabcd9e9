//! Vary (RFC 9110 12.5.5), and the part of the cache key that it adds (RFC 9111 4.1).
//!
//! A stored variant has the names in its Vary, and its request's signature over them. A request
//! matches if its signature over these names is equal. The signature is computed on the hit path:
//! it must allocate nothing beyond a reused buffer.

use crate::header::{HeaderBlock, HeaderId, is_token};
use crate::list::{members, trim};

/// The selection by a response's Vary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// No selection: one variant for all requests.
    None,
    /// Selection by these request fields.
    Names(VaryNames),
    /// No request ever matches.
    Never,
}

/// Names of request fields: lower case, sorted, each once, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VaryNames(Box<[u8]>);

impl VaryNames {
    /// The names in a blob of [`VaryNames::as_bytes`].
    pub fn from_blob(blob: &[u8]) -> Self {
        Self(blob.into())
    }

    /// The names as one comma-separated blob, for [`vary_signature`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The names without `id`; `None` if no other is left.
    pub fn without(&self, id: HeaderId) -> Option<Self> {
        let left: Vec<&[u8]> = self.iter().filter(|name| HeaderId::of(name) != id).collect();
        (!left.is_empty()).then(|| Self(left.join(&b","[..]).into()))
    }

    /// The names one by one.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|b| *b == b',')
    }
}

impl Vary {
    /// Parses a response's Vary.
    pub fn of(response: &HeaderBlock) -> Self {
        if is_never(response) {
            return Self::Never;
        }
        let mut names: Vec<Vec<u8>> =
            members(response.values(HeaderId::Vary)).map(<[u8]>::to_ascii_lowercase).collect();
        if names.is_empty() {
            return Self::None;
        }
        names.sort_unstable();
        names.dedup();
        Self::Names(VaryNames(names.join(&b","[..]).into()))
    }
}

/// Returns true if no request ever matches: a member is `*`, or not a field name, so that the
/// origin's criteria are unknown (Varnish rejects such a Vary, too).
pub fn is_never(response: &HeaderBlock) -> bool {
    members(response.values(HeaderId::Vary)).any(|name| name == b"*" || !is_token(name))
}

/// Appends the request's value of each of `names` ([`VaryNames::as_bytes`]) to `out`, each with its
/// length, so that different requests have different signatures.
///
/// Values are normalised if the field's syntax permits it (RFC 9111 4.1): lists are joined over
/// lines without white space around commas, Accept-Encoding becomes [`normal_accept_encoding`]. An
/// absent field differs from an empty one.
pub fn vary_signature(names: &[u8], request: &HeaderBlock, out: &mut Vec<u8>) {
    for name in names.split(|b| *b == b',') {
        let id = HeaderId::of(name);
        let mut values = request.values_named(name).peekable();
        if values.peek().is_none() {
            out.push(0);
            continue;
        }
        out.push(1);
        let len_at = out.len();
        out.extend_from_slice(&[0; 4]);
        match id {
            HeaderId::AcceptEncoding if normalises_codings(request) => {
                out.extend_from_slice(Codings::read(values).normal().as_bytes());
            }
            _ if is_single(id) => join(values.map(trim), separator(id), out),
            _ => join(members(values), b", ", out),
        }
        let len = (out.len() - len_at - 4) as u32;
        out[len_at..len_at + 4].copy_from_slice(&len.to_le_bytes());
    }
}

/// The values in a signature, by name; `None` if the request had no such field.
pub fn signature_values<'s>(
    names: &'s [u8],
    signature: &'s [u8],
) -> Vec<(&'s [u8], Option<&'s [u8]>)> {
    let mut rest = signature;
    let mut next = || {
        let (there, after) = rest.split_first()?;
        if *there == 0 {
            rest = after;
            return None;
        }
        let (len, after) = after.split_first_chunk()?;
        let (value, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        rest = after;
        Some(value)
    };
    names.split(|b| *b == b',').map(|name| (name, next())).collect()
}

/// Fields that are not lists: a comma in them separates nothing, so white space around it is
/// significant.
const fn is_single(id: HeaderId) -> bool {
    use HeaderId as Id;
    matches!(
        id,
        Id::Authorization
            | Id::Cookie
            | Id::Host
            | Id::IfModifiedSince
            | Id::IfRange
            | Id::IfUnmodifiedSince
            | Id::Origin
            | Id::ProxyAuthorization
            | Id::Range
            | Id::Referer
            | Id::UserAgent
    )
}

/// Cookie may be split over lines, and has its own separator (RFC 9113 8.2.3).
const fn separator(id: HeaderId) -> &'static [u8] {
    if matches!(id, HeaderId::Cookie) { b"; " } else { b", " }
}

fn join<'a>(parts: impl Iterator<Item = &'a [u8]>, separator: &[u8], out: &mut Vec<u8>) {
    for (at, part) in parts.enumerate() {
        if at > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(part);
    }
}

/// The request's Accept-Encoding in the normal form that selects variants: brotli, zstd and gzip in
/// this order, if accepted, and `identity;q=0` if an uncoded body is not. Weights and other codings
/// are omitted.
///
/// The origin must be sent this form, too; otherwise one client's spelling would select a coding
/// for others. `None` without Accept-Encoding, or if the request offers a dictionary (RFC 9842),
/// whose codings are not in the table.
pub fn normal_accept_encoding(request: &HeaderBlock) -> Option<&'static str> {
    let present = request.contains(HeaderId::AcceptEncoding) && normalises_codings(request);
    present.then(|| Codings::read(request.values(HeaderId::AcceptEncoding)).normal())
}

fn normalises_codings(request: &HeaderBlock) -> bool {
    !request.contains(HeaderId::AvailableDictionary)
}

/// The known codings; `None` for one that is not named.
#[derive(Default)]
struct Codings {
    br: Option<bool>,
    zstd: Option<bool>,
    gzip: Option<bool>,
    identity: Option<bool>,
    any: Option<bool>,
}

impl Codings {
    fn read<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut codings = Self::default();
        for member in members(values) {
            let (name, weight) = match member.iter().position(|b| *b == b';') {
                Some(at) => (trim(&member[..at]), trim(&member[at + 1..])),
                None => (member, &b""[..]),
            };
            let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
            let slot = match () {
                () if is(b"br") => &mut codings.br,
                () if is(b"zstd") => &mut codings.zstd,
                () if is(b"gzip") || is(b"x-gzip") => &mut codings.gzip,
                () if is(b"identity") => &mut codings.identity,
                () if is(b"*") => &mut codings.any,
                () => continue,
            };
            *slot = Some(!is_zero(weight));
        }
        codings
    }

    fn normal(&self) -> &'static str {
        let accepts = |named: Option<bool>| named.or(self.any).unwrap_or(false);
        let br = usize::from(accepts(self.br));
        let zstd = usize::from(accepts(self.zstd));
        let gzip = usize::from(accepts(self.gzip));
        let no_identity = usize::from(self.identity.or(self.any) == Some(false));
        NORMAL_CODINGS[no_identity << 3 | br << 2 | zstd << 1 | gzip]
    }
}

const NORMAL_CODINGS: [&str; 16] = [
    "",
    "gzip",
    "zstd",
    "zstd, gzip",
    "br",
    "br, gzip",
    "br, zstd",
    "br, zstd, gzip",
    "identity;q=0",
    "gzip, identity;q=0",
    "zstd, identity;q=0",
    "zstd, gzip, identity;q=0",
    "br, identity;q=0",
    "br, gzip, identity;q=0",
    "br, zstd, identity;q=0",
    "br, zstd, gzip, identity;q=0",
];

/// `q=0`, `q=0.`, `q=0.000`
fn is_zero(weight: &[u8]) -> bool {
    let Some(value) = weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q=")) else {
        return false;
    };
    match value.split_first() {
        Some((b'0', [])) => true,
        Some((b'0', [b'.', fraction @ ..])) => fraction.iter().all(|b| *b == b'0'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> HeaderBlock {
        let mut block = HeaderBlock::new();
        for (name, value) in fields {
            block.push_named(name.as_bytes(), value.as_bytes());
        }
        block
    }

    fn vary(lines: &[&str]) -> Vary {
        Vary::of(&block(&lines.iter().map(|l| ("Vary", *l)).collect::<Vec<_>>()))
    }

    fn signature(names: &str, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        vary_signature(names.as_bytes(), &block(fields), &mut out);
        out
    }

    #[test]
    fn a_star_anywhere_never_matches() {
        for lines in [
            &["*"][..],
            &["*, *"],
            &["*", "*"],
            &[", *"],
            &["", "*"],
            &["*, Foo"],
            &["Foo, *"],
            &["foo bar"],
            &["\"a\""],
        ] {
            assert_eq!(vary(lines), Vary::Never, "{lines:?}");
        }
        assert_eq!(vary(&[]), Vary::None);
        assert_eq!(vary(&["", ","]), Vary::None);
    }

    #[test]
    fn names_are_sorted_and_folded() {
        let Vary::Names(names) = vary(&["Foo, accept", "FOO,Bar"]) else { panic!("three names") };
        assert_eq!(names.as_bytes(), b"accept,bar,foo");
        assert_eq!(names.iter().count(), 3);
    }

    #[test]
    fn absent_and_empty_differ() {
        assert_ne!(signature("foo", &[]), signature("foo", &[("Foo", "")]));
        assert_ne!(signature("foo", &[("Foo", "1")]), signature("foo", &[("Foo", "2")]));
        assert_eq!(
            signature("foo", &[("Foo", "1")]),
            signature("foo", &[("fOO", "1"), ("X", "2")])
        );
    }

    #[test]
    fn values_do_not_run_into_each_other() {
        let one = signature("a,b", &[("a", "x"), ("b", "yz")]);
        let two = signature("a,b", &[("a", "xy"), ("b", "z")]);
        assert_ne!(one, two);
        assert_ne!(signature("a,b", &[("a", "1")]), signature("a,b", &[("b", "1")]));
    }

    #[test]
    fn lists_are_joined_and_rid_of_white_space() {
        let plain = signature("foo", &[("Foo", "1, 2")]);
        assert_eq!(plain, signature("foo", &[("Foo", "1"), ("Foo", "2")]));
        assert_eq!(plain, signature("foo", &[("Foo", " 1,2 ")]));
        let languages = signature("accept-language", &[("Accept-Language", "en, de")]);
        assert_eq!(languages, signature("accept-language", &[("Accept-Language", " en ,   de")]));
        assert_ne!(languages, signature("accept-language", &[("Accept-Language", "de, en")]));
    }

    #[test]
    fn fields_that_are_no_lists_are_left_alone() {
        let agent = |text| signature("user-agent", &[("User-Agent", text)]);
        assert_ne!(agent("a,b"), agent("a, b"));
        let crumbs = signature("cookie", &[("Cookie", "a=1"), ("Cookie", "b=2")]);
        assert_eq!(crumbs, signature("cookie", &[("Cookie", "a=1; b=2")]));
    }

    #[test]
    fn accept_encoding_falls_into_few_buckets() {
        let normal = |text| {
            normal_accept_encoding(&block(&[("Accept-Encoding", text)]))
                .expect("the field is there")
        };
        assert_eq!(normal("gzip, deflate, br, zstd"), "br, zstd, gzip");
        assert_eq!(normal("zstd;q=0.5,X-GZIP;q=1.0, br;q=0"), "zstd, gzip");
        assert_eq!(normal("deflate, junk, \"gzip\""), "");
        assert_eq!(normal("identity"), "");
        assert_eq!(normal("gzip, identity;q=0.0"), "gzip, identity;q=0");
        assert_eq!(normal("gzip, *;q=0"), "gzip, identity;q=0");
        assert_eq!(normal("*"), "br, zstd, gzip");
        assert_eq!(normal("*, br;q=0."), "zstd, gzip");
        assert_eq!(normal_accept_encoding(&block(&[])), None);
        let one = signature("accept-encoding", &[("Accept-Encoding", "br, gzip")]);
        let two = signature("accept-encoding", &[("Accept-Encoding", "gzip;q=0.5, br, foo")]);
        assert_eq!(one, two);
    }

    #[test]
    fn dictionaries_keep_accept_encoding_as_it_is() {
        let offer = |codings| {
            signature(
                "accept-encoding",
                &[("Accept-Encoding", codings), ("Available-Dictionary", ":aGk=:")],
            )
        };
        assert_ne!(offer("br, dcb"), offer("br, dcz"));
        assert_ne!(offer("br, dcb"), offer("br"));
        let request = block(&[("Accept-Encoding", "br"), ("Available-Dictionary", ":aGk=:")]);
        assert_eq!(normal_accept_encoding(&request), None);
    }

    #[test]
    fn a_roomy_buffer_is_not_reallocated() {
        let request = block(&[("Accept-Encoding", "br, gzip"), ("Foo", "1, 2")]);
        let mut out = Vec::with_capacity(64);
        let before = out.as_ptr();
        vary_signature(b"accept-encoding,foo", &request, &mut out);
        assert_eq!(out.as_ptr(), before);
    }
}
