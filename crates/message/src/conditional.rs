//! Conditional requests: a client's preconditions against a stored response (RFC 9110 13, RFC 9111
//! 4.3.2).
//!
//! A cache must never decide If-Match and If-Unmodified-Since, which belong to the origin
//! ([`belongs_to_origin`]).

use crate::date::parse_http_date;
use crate::header::{HeaderBlock, HeaderId};
use crate::list::trim;
use crate::request::{Method, Request};
use crate::response::Status;

/// The effect of preconditions on a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answer as without preconditions.
    Proceed,
    /// 304: the client's copy is current.
    NotModified,
    /// 412: If-None-Match excludes the stored response.
    PreconditionFailed,
}

/// Returns true if the request must go to the origin because it has preconditions that only the
/// origin can evaluate.
pub fn belongs_to_origin(headers: &HeaderBlock) -> bool {
    headers.contains(HeaderId::IfMatch) || headers.contains(HeaderId::IfUnmodifiedSince)
}

/// Evaluates If-Match and, only without it, If-Unmodified-Since (RFC 9110 13.1.1 and 13.1.4), for a
/// caller that owns the current representation. False means a 412. `now_secs` resolves the century
/// of two-digit years.
pub fn may_proceed(
    headers: &HeaderBlock,
    etag: Option<&[u8]>,
    last_modified: Option<u64>,
    now_secs: u64,
) -> bool {
    if headers.contains(HeaderId::IfMatch) {
        let current = etag.map(trim);
        return etags(headers.values(HeaderId::IfMatch))
            .any(|tag| tag == b"*" || current.is_some_and(|current| strong_match(tag, current)));
    }
    match (last_modified, single_date(headers, HeaderId::IfUnmodifiedSince, now_secs)) {
        (Some(modified), Some(since)) => modified <= since,
        _ => true,
    }
}

/// Evaluates If-None-Match and, only without it, If-Modified-Since (RFC 9110 13.2.2).
///
/// `etag`, `last_modified`, `date` (unix seconds) and `status` are the stored response's. Without a
/// Last-Modified its Date is compared (RFC 9111 4.3.2). Conditions on anything but a 2xx are
/// ignored (RFC 9110 13.2.1), and so is an invalid or repeated date.
pub fn evaluate(
    request: &Request,
    etag: Option<&[u8]>,
    last_modified: Option<u64>,
    date: Option<u64>,
    status: Status,
) -> Outcome {
    let headers = &request.headers;
    if status.code() / 100 != 2 {
        return Outcome::Proceed;
    }
    let reads = matches!(request.method, Method::Get | Method::Head);
    if headers.contains(HeaderId::IfNoneMatch) {
        return match lists_etag(headers.values(HeaderId::IfNoneMatch), etag) {
            false => Outcome::Proceed,
            true if reads => Outcome::NotModified,
            true => Outcome::PreconditionFailed,
        };
    }
    let Some(changed) = last_modified.or(date).filter(|_| reads) else { return Outcome::Proceed };
    // The stored date is near enough to now to resolve the century.
    match single_date(headers, HeaderId::IfModifiedSince, date.unwrap_or(changed)) {
        Some(since) if changed <= since => Outcome::NotModified,
        _ => Outcome::Proceed,
    }
}

/// Returns true if If-Range lets Range apply (RFC 9110 13.1.5): it is absent, or names the stored
/// response's strong entity tag, or exactly its Last-Modified when that is strong.
pub fn if_range_matches(
    headers: &HeaderBlock,
    etag: Option<&[u8]>,
    last_modified: Option<u64>,
    date: Option<u64>,
) -> bool {
    let mut values = headers.values(HeaderId::IfRange);
    let condition = match (values.next(), values.next()) {
        (None, _) => return true,
        (Some(one), None) => trim(one),
        (Some(_), Some(_)) => return false,
    };
    if condition.contains(&b'"') {
        return etag.is_some_and(|stored| strong_match(condition, trim(stored)));
    }
    let (Some(modified), Some(date)) = (last_modified, date) else { return false };
    // Strong only if it could not have changed again within the same second (RFC 9110 8.8.2.2).
    modified < date && parse_http_date(condition, date) == Some(modified)
}

/// Returns true if If-None-Match lists `etag`, by weak comparison (RFC 9110 13.1.2).
pub fn lists_none_match(headers: &HeaderBlock, etag: Option<&[u8]>) -> bool {
    lists_etag(headers.values(HeaderId::IfNoneMatch), etag)
}

/// Returns true if an If-None-Match list contains `stored`, by weak comparison. `*` matches any
/// stored response.
fn lists_etag<'a>(lines: impl Iterator<Item = &'a [u8]>, stored: Option<&[u8]>) -> bool {
    let stored = stored.map(|s| opaque(trim(s)));
    etags(lines).any(|tag| tag == b"*" || stored == Some(opaque(tag)))
}

/// Returns true if an entity tag is strong (RFC 9110 8.8.1).
pub fn is_strong(tag: &[u8]) -> bool {
    strong_match(tag, tag)
}

/// Returns true if both tags are strong and equal (RFC 9110 8.8.3.2).
fn strong_match(one: &[u8], other: &[u8]) -> bool {
    one == other && one.len() >= 2 && one.first() == Some(&b'"') && one.last() == Some(&b'"')
}

/// An entity tag without its weakness prefix; an invalid tag is returned unchanged.
fn opaque(tag: &[u8]) -> &[u8] {
    match tag.strip_prefix(b"W/") {
        Some(strong) if strong.first() == Some(&b'"') => strong,
        _ => tag,
    }
}

/// Members of an entity tag list. Unlike a quoted string, an entity tag has no escapes and may
/// contain a comma, so `list` cannot split it.
fn etags<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    lines.flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                let mut quoted = false;
                let end = rest.iter().position(|b| {
                    quoted ^= *b == b'"';
                    *b == b',' && !quoted
                });
                let (tag, after) = match end {
                    Some(at) => (&rest[..at], &rest[at + 1..]),
                    None => (rest, &b""[..]),
                };
                rest = after;
                let tag = trim(tag);
                if !tag.is_empty() {
                    return Some(tag);
                }
            }
            None
        })
    })
}

/// A date field that may occur only once.
fn single_date(headers: &HeaderBlock, id: HeaderId, now_secs: u64) -> Option<u64> {
    let mut values = headers.values(id);
    match (values.next(), values.next()) {
        (Some(value), None) => parse_http_date(value, now_secs),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_request_is_carried_out_only_on_what_it_was_meant_for() {
        let judge = |id, value: &str| {
            let mut headers = HeaderBlock::new();
            headers.push(id, value.as_bytes());
            may_proceed(&headers, Some(b"\"a\""), Some(784_111_777), 800_000_000)
        };
        for (value, expected) in [
            ("\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("W/\"a\"", false),
        ] {
            assert_eq!(judge(HeaderId::IfMatch, value), expected, "{value}");
        }
        for (value, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", true),
            ("Sun, 06 Nov 1994 08:49:36 GMT", false),
            ("yesterday", true),
        ] {
            assert_eq!(judge(HeaderId::IfUnmodifiedSince, value), expected, "{value}");
        }
        assert!(may_proceed(&HeaderBlock::new(), None, None, 0));
    }

    use super::*;

    const MODIFIED: u64 = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT
    const DATE: Option<u64> = Some(MODIFIED + 100);

    fn request(fields: &[(HeaderId, &str)]) -> Request {
        let mut request = Request::new();
        for (id, value) in fields {
            request.headers.push(*id, value.as_bytes());
        }
        request
    }

    fn judge(fields: &[(HeaderId, &str)], etag: Option<&str>, modified: Option<u64>) -> Outcome {
        let etag = etag.map(str::as_bytes);
        evaluate(&request(fields), etag, modified, DATE, Status::OK)
    }

    fn none_match(condition: &str, etag: &str) -> bool {
        judge(&[(HeaderId::IfNoneMatch, condition)], Some(etag), None) == Outcome::NotModified
    }

    #[test]
    fn entity_tags_compare_weakly() {
        assert!(none_match(r#""abc""#, r#""abc""#));
        assert!(none_match(r#"W/"abc""#, r#""abc""#));
        assert!(none_match(r#""abc""#, r#"W/"abc""#));
        assert!(none_match(r#""1", "abc" ,"2""#, r#""abc""#));
        assert!(none_match(r#""a,b\""#, r#""a,b\""#));
        assert!(none_match("*", r#""abc""#));
        assert!(!none_match(r#""abd""#, r#""abc""#));
        assert!(!none_match(r#""a, "abc", b""#, r#""abc""#));
    }

    #[test]
    fn what_is_no_entity_tag_is_compared_as_it_is() {
        assert!(none_match("abc", "abc"));
        assert!(none_match("w/\"abc\"", "w/\"abc\""));
        assert!(none_match("W\\\"abc\"", "W\\\"abc\""));
        assert!(!none_match("abc", "\"abc\""));
        assert!(!none_match("", ""));
    }

    #[test]
    fn if_none_match_beats_if_modified_since() {
        let later = (HeaderId::IfModifiedSince, "Mon, 07 Nov 1994 08:49:37 GMT");
        let other = (HeaderId::IfNoneMatch, "\"other\"");
        assert_eq!(judge(&[other, later], Some("\"a\""), Some(MODIFIED)), Outcome::Proceed);
        let same = (HeaderId::IfNoneMatch, "\"a\"");
        let earlier = (HeaderId::IfModifiedSince, "Sat, 05 Nov 1994 08:49:37 GMT");
        assert_eq!(judge(&[same, earlier], Some("\"a\""), Some(MODIFIED)), Outcome::NotModified);
    }

    #[test]
    fn dates_compare_in_any_form() {
        let since = |text| judge(&[(HeaderId::IfModifiedSince, text)], None, Some(MODIFIED));
        assert_eq!(since("Sun, 06 Nov 1994 08:49:37 GMT"), Outcome::NotModified);
        assert_eq!(since("Sunday, 06-Nov-94 08:49:37 GMT"), Outcome::NotModified);
        assert_eq!(since("Sun, 06 Nov 1994 08:49:36 GMT"), Outcome::Proceed);
        assert_eq!(since("yesterday"), Outcome::Proceed);
        let twice = (HeaderId::IfModifiedSince, "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(judge(&[twice, twice], None, Some(MODIFIED)), Outcome::Proceed);
    }

    #[test]
    fn without_last_modified_the_date_is_compared() {
        let since = |text| judge(&[(HeaderId::IfModifiedSince, text)], None, None);
        assert_eq!(since("Sun, 06 Nov 1994 08:51:17 GMT"), Outcome::NotModified);
        assert_eq!(since("Sun, 06 Nov 1994 08:51:16 GMT"), Outcome::Proceed);
    }

    #[test]
    fn only_successes_and_reads_are_not_modified() {
        let mut request = request(&[(HeaderId::IfNoneMatch, "*")]);
        let not_found = Status::new(404).expect("three digits");
        assert_eq!(evaluate(&request, None, None, None, not_found), Outcome::Proceed);
        request.method = Method::Put;
        assert_eq!(evaluate(&request, None, None, None, Status::OK), Outcome::PreconditionFailed);
    }

    #[test]
    fn if_range_compares_strongly() {
        let matches = |condition, etag: &str| {
            let request = request(&[(HeaderId::IfRange, condition)]);
            if_range_matches(&request.headers, Some(etag.as_bytes()), Some(MODIFIED), DATE)
        };
        assert!(matches("\"a\"", "\"a\""));
        assert!(!matches("W/\"a\"", "W/\"a\""));
        assert!(!matches("\"b\"", "\"a\""));
        assert!(matches("Sun, 06 Nov 1994 08:49:37 GMT", "\"a\""));
        assert!(!matches("Sun, 06 Nov 1994 08:49:38 GMT", "\"a\""));
        assert!(!matches("\"", "\""));
        assert!(if_range_matches(&HeaderBlock::new(), None, None, None));
        let same_second = request(&[(HeaderId::IfRange, "Sun, 06 Nov 1994 08:49:37 GMT")]);
        let now = Some(MODIFIED);
        assert!(!if_range_matches(&same_second.headers, None, now, now));
    }

    #[test]
    fn some_conditions_belong_to_the_origin() {
        assert!(belongs_to_origin(&request(&[(HeaderId::IfMatch, "*")]).headers));
        assert!(belongs_to_origin(&request(&[(HeaderId::IfUnmodifiedSince, "x")]).headers));
        assert!(!belongs_to_origin(&request(&[(HeaderId::IfNoneMatch, "*")]).headers));
    }
}
