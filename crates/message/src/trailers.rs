//! Trailer sections (RFC 9110 6.5): decides which fields may pass, and keeps them.
//!
//! Must never pass a field that a recipient could merge into the head and obey there: about
//! framing, routing, authentication, the request, caching or the form of the content.

use crate::header::{Field, HeaderBlock, HeaderId, is_token, is_value};
use crate::list::members;
use crate::tags;

/// The verdict on a trailer field, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The field passes.
    Pass,
    /// The field is removed.
    Drop,
    /// The field would change framing or routing in a head: the message is malformed.
    Refuse,
}

/// The longest name that is compared with complete names.
const NAME_BYTES: usize = 48;

/// Prefixes of names whose fields belong into a head.
const PREFIXES: [&[u8]; 14] = [
    b"accept-",
    b"access-control-",
    b"cdn-",
    b"content-",
    b"cross-origin-",
    b"forwarded",
    b"if-",
    b"proxy-",
    b"sec-",
    b"set-cookie",
    b"surrogate-",
    b"x-accel-",
    b"x-content-",
    b"x-forward",
];

/// Names without an id whose fields belong into a head.
const NAMES: [&[u8]; 20] = [
    b"alt-used",
    b"authentication-info",
    b"clear-site-data",
    b"cookie2",
    b"early-data",
    b"host-override",
    b"http-host",
    b"http2-settings",
    b"nel",
    b"permissions-policy",
    b"referrer-policy",
    b"refresh",
    b"report-to",
    b"reporting-endpoints",
    b"status",
    b"x-frame-options",
    b"x-http-method-override",
    b"x-original-url",
    b"x-sendfile",
    b"x-xss-protection",
];

/// Judges a trailer field called `name`. `_` counts as `-`, since some recipients do not
/// distinguish them.
///
/// Of the known fields, only those pass whose definitions permit trailers: ETag (RFC 9110 8.8.3)
/// and Server-Timing; and of those about the content, Content-Digest (RFC 9530 3).
pub fn judge(name: &[u8]) -> Judgement {
    let mut dashed = [0; NAME_BYTES];
    let compared = name.len().min(NAME_BYTES);
    for (to, from) in dashed.iter_mut().zip(name) {
        *to = if *from == b'_' { b'-' } else { from.to_ascii_lowercase() };
    }
    let dashed = &dashed[..compared];
    if compared == name.len() {
        let id = HeaderId::of(dashed);
        if id.is_hop_by_hop() || matches!(id, HeaderId::ContentLength | HeaderId::Host) {
            return Judgement::Refuse;
        }
        let foreseen =
            matches!(id, HeaderId::Etag | HeaderId::ServerTiming) || dashed == b"content-digest";
        if foreseen && !name.contains(&b'_') {
            return Judgement::Pass;
        }
        if id != HeaderId::Other || NAMES.contains(&dashed) || tags::is_tag_field(dashed) {
            return Judgement::Drop;
        }
    }
    match PREFIXES.iter().any(|prefix| dashed.starts_with(prefix)) {
        true => Judgement::Drop,
        false => Judgement::Pass,
    }
}

/// Returns true if a sender accepts trailers (RFC 9110 6.5.1, 10.1.4).
pub fn are_taken(headers: &HeaderBlock) -> bool {
    headers.contains(HeaderId::Te)
        && members(headers.values(HeaderId::Te)).any(|m| m.eq_ignore_ascii_case(b"trailers"))
}

/// The names that a head announces (RFC 9110 6.6.2), without those whose fields never pass and
/// those that fail `passes`; `None` if none is left.
pub fn announced(headers: &HeaderBlock, passes: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut names = Vec::new();
    for name in members(headers.values(HeaderId::Trailer)) {
        if is_token(name) && judge(name) == Judgement::Pass && passes(name) {
            if !names.is_empty() {
                names.extend_from_slice(b", ");
            }
            names.extend_from_slice(name);
        }
    }
    (!names.is_empty()).then_some(names)
}

/// The fields of a trailer section that pass, encoded again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    lines: Vec<u8>,
}

impl Trailers {
    /// Adds a field. Its name must be a token, and its value checked.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        debug_assert!(is_token(name) && is_value(value), "an engine has checked it");
        for part in [name, b": ", trimmed(value), b"\r\n"] {
            self.lines.extend_from_slice(part);
        }
    }

    /// The trailers of [`Trailers::lines`]; `None` if no fields have such lines.
    pub fn of_lines(lines: &[u8]) -> Option<Self> {
        let mut read = Self::default();
        for line in lines.split_inclusive(|b| *b == b'\n') {
            let field = line.strip_suffix(b"\r\n").and_then(|_| field_of(line))?;
            if !is_token(field.name)
                || !is_value(field.value)
                || judge(field.name) != Judgement::Pass
            {
                return None;
            }
            read.push(field.name, field.value);
        }
        (read.lines == lines).then_some(read)
    }

    /// The names of the fields, each once, as a Trailer field lists them (RFC 9110 6.6.2).
    pub fn names(&self) -> Vec<u8> {
        let mut names: Vec<u8> = Vec::new();
        for field in self.iter() {
            if members([&names[..]]).any(|name| name.eq_ignore_ascii_case(field.name)) {
                continue;
            }
            if !names.is_empty() {
                names.extend_from_slice(b", ");
            }
            names.extend_from_slice(field.name);
        }
        names
    }

    /// Returns true if there is no field.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The fields as lines of HTTP/1, each with CRLF.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Bytes of memory of the fields.
    pub fn memory(&self) -> usize {
        self.lines.capacity()
    }

    /// The fields, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines.split_inclusive(|b| *b == b'\n').filter_map(field_of)
    }

    /// Keeps the fields for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Field<'_>) -> bool) {
        let mut left = Self::default();
        for field in self.iter().filter(|field| keep(field)) {
            left.push(field.name, field.value);
        }
        if left.lines.len() < self.lines.len() {
            *self = left;
        }
    }

    /// The trailers themselves; `None` if there is no field.
    pub fn non_empty(self) -> Option<Self> {
        (!self.is_empty()).then_some(self)
    }
}

/// A value without white space around it (RFC 9110 5.5).
fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The field in a line of [`Trailers`].
fn field_of(line: &[u8]) -> Option<Field<'_>> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = (&line[..colon], line.get(colon + 2..line.len() - 2)?);
    Some(Field { id: HeaderId::of(name), name, value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_frames_or_routes_a_message_is_refused() {
        for name in [
            "Transfer-Encoding",
            "transfer_encoding",
            "CONTENT-LENGTH",
            "Host",
            "Connection",
            "TE",
            "Trailer",
            "Keep-Alive",
            "Upgrade",
            "proxy_connection",
        ] {
            assert_eq!(judge(name.as_bytes()), Judgement::Refuse, "{name}");
        }
    }

    #[test]
    fn what_a_head_is_heeded_for_is_dropped() {
        for name in [
            "Set-Cookie",
            "set-cookie2",
            "Cookie",
            "Authorization",
            "WWW-Authenticate",
            "Proxy-Authorization",
            "Proxy-Foo",
            "Cache-Control",
            "CDN-Cache-Control",
            "Surrogate-Control",
            "Surrogate-Key",
            "Cache-Tag",
            "Expires",
            "Age",
            "Date",
            "Vary",
            "Via",
            "Range",
            "If-None-Match",
            "if_none_match",
            "Expect",
            "Max-Forwards",
            "Content-Type",
            "content_encoding",
            "Content-Security-Policy",
            "X-Forwarded-For",
            "x_forwarded_host",
            "Forwarded",
            "X-Accel-Redirect",
            "X-Sendfile",
            "Location",
            "Retry-After",
            "Access-Control-Allow-Origin",
            "Strict-Transport-Security",
            "Status",
        ] {
            assert_eq!(judge(name.as_bytes()), Judgement::Drop, "{name}");
        }
        let long = format!("Content-{}", "x".repeat(100));
        assert_eq!(judge(long.as_bytes()), Judgement::Drop);
    }

    #[test]
    fn what_tells_of_the_message_passes() {
        for name in [
            "Digest",
            "Content-Digest",
            "Repr-Digest",
            "ETag",
            "Server-Timing",
            "Grpc-Status",
            "X-A",
        ] {
            assert_eq!(judge(name.as_bytes()), Judgement::Pass, "{name}");
        }
        assert_eq!(judge(b"content_digest"), Judgement::Drop);
        assert_eq!(judge(b"Server_Timing"), Judgement::Drop);
        assert_eq!(judge(&b"x".repeat(1000)), Judgement::Pass);
    }

    #[test]
    fn trailers_are_taken_by_those_that_say_so() {
        for (values, expected) in [
            (&["trailers"][..], true),
            (&["gzip;q=0.5, Trailers"], true),
            (&["gzip", "trailers"], true),
            (&["trailers;q=1"], false),
            (&["gzip"], false),
            (&[], false),
        ] {
            let mut headers = HeaderBlock::new();
            values.iter().for_each(|value| headers.push(HeaderId::Te, value.as_bytes()));
            assert_eq!(are_taken(&headers), expected, "{values:?}");
        }
    }

    #[test]
    fn announcements_name_only_what_passes() {
        let mut headers = HeaderBlock::new();
        assert_eq!(announced(&headers, |_| true), None);
        headers.push(HeaderId::Trailer, b"Set-Cookie, Host");
        assert_eq!(announced(&headers, |_| true), None);
        headers.push(HeaderId::Trailer, b"X-Sum, a b,, Content-Digest");
        let all = announced(&headers, |_| true);
        assert_eq!(all.as_deref(), Some(&b"X-Sum, Content-Digest"[..]));
        let one = announced(&headers, |name| name != b"X-Sum");
        assert_eq!(one.as_deref(), Some(&b"Content-Digest"[..]));
    }

    #[test]
    fn an_unwanted_field_leaves_and_the_others_stay_in_order() {
        let mut trailers = Trailers::default();
        for (name, value) in [("A", " 1 "), ("B", ""), ("a", "3")] {
            trailers.push(name.as_bytes(), value.as_bytes());
        }
        trailers.retain(|field| field.name != b"B");
        assert_eq!(trailers.lines(), b"A: 1\r\na: 3\r\n");
        trailers.retain(|_| false);
        assert_eq!(trailers.non_empty(), None);
    }

    #[test]
    fn names_are_listed_once() {
        let mut trailers = Trailers::default();
        assert_eq!(trailers.names(), b"");
        for name in ["X-Sum", "ETag", "x-sum"] {
            trailers.push(name.as_bytes(), b"1");
        }
        assert_eq!(trailers.names(), b"X-Sum, ETag");
    }

    #[test]
    fn lines_that_are_none_of_trailers_are_not_read() {
        assert_eq!(Trailers::of_lines(b""), Some(Trailers::default()));
        for lines in [
            "A",
            "A: 1",
            "A: 1\n",
            "A:1\r\n",
            "A:  1\r\n",
            ": 1\r\n",
            "A b: 1\r\n",
            "A: \x01\r\n",
            "A: 1\r\n\r\n",
            "Set-Cookie: a=1\r\n",
            "Content-Length: 1\r\n",
        ] {
            assert_eq!(Trailers::of_lines(lines.as_bytes()), None, "{lines:?}");
        }
    }

    const NAME: &str = "[!#-'*+.0-9A-Z^_`a-z|~-]{1,60}";
    const VALUE: &str = "[!-~]([ -~]{0,20}[!-~])?|";

    proptest! {
        #[test]
        fn fields_come_out_as_they_went_in(
            fields in proptest::collection::vec((NAME, VALUE), 0..8)
        ) {
            let mut trailers = Trailers::default();
            for (name, value) in &fields {
                trailers.push(name.as_bytes(), value.as_bytes());
            }
            let taken = trailers.iter().map(|f| (f.name.to_vec(), f.value.to_vec()));
            let out: Vec<_> = taken.collect();
            let sent: Vec<_> = fields
                .iter()
                .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
                .collect();
            prop_assert_eq!(out, sent);
            let may_pass = trailers.iter().all(|field| judge(field.name) == Judgement::Pass);
            let read = Trailers::of_lines(trailers.lines());
            prop_assert_eq!(read, may_pass.then_some(trailers));
        }
    }
}
