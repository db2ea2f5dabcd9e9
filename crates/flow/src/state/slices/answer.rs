//! Answer of an origin to a request for a range. It is used only if it is the requested range of
//! the requested version.

use std::ops::Range;

use base::{Limits, Now};
use message::conditional::is_strong;
use message::date::{DATE_LEN, parse_http_date, write_http_date};
use message::list::members;
use message::range::{ContentRange, RangePlan, first_wanted, plan, write_content_range};
use message::store::StorageObjections;
use message::{Framing, HeaderBlock, HeaderId, Method, Request, Response, Status};
use origin::Exchange;

use super::shape::Shape;

/// The name of a version, strong enough to combine ranges (RFC 9110 8.8.1, RFC 9111 3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Validator {
    Etag(Box<[u8]>),
    /// A Last-Modified before the second of Date (RFC 9110 8.8.2.2).
    Modified(Box<[u8]>),
}

impl Validator {
    /// The strong validator of a response, if there is one. A date counts only without an entity
    /// tag (RFC 9110 13.1.5).
    pub(crate) fn of(headers: &HeaderBlock) -> Option<Self> {
        if headers.contains(HeaderId::Etag) {
            let tag = sole(headers, HeaderId::Etag).filter(|tag| is_strong(tag))?;
            return Some(Self::Etag(tag.into()));
        }
        let text = sole(headers, HeaderId::LastModified)?;
        let date = parse_http_date(sole(headers, HeaderId::Date)?, 0)?;
        let modified = parse_http_date(text, date)?;
        (modified < date).then(|| Self::Modified(text.into()))
    }

    /// The value for If-Range.
    pub(crate) fn text(&self) -> &[u8] {
        match self {
            Self::Etag(text) | Self::Modified(text) => text,
        }
    }

    /// Returns true if `headers` name this version; `None` if they name none.
    fn names(&self, headers: &HeaderBlock) -> Option<bool> {
        let id = match self {
            Self::Etag(_) => HeaderId::Etag,
            Self::Modified(_) => HeaderId::LastModified,
        };
        headers.contains(id).then(|| sole(headers, id) == Some(self.text()))
    }
}

/// The value of a field that occurs once.
fn sole(headers: &HeaderBlock, id: HeaderId) -> Option<&[u8]> {
    let mut values = headers.values(id);
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.trim_ascii()),
        _ => None,
    }
}

/// The verdict on the response to a request for a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceVerdict {
    /// The slice.
    Slice,
    /// Another version exists.
    Changed,
    /// The origin sends no ranges, or not the requested ones.
    NoRange,
    /// No usable response.
    Nothing,
}

/// The properties that all slices of a set share.
#[derive(Clone, Debug)]
pub(crate) struct Edition {
    pub(crate) validator: Validator,
    /// Length of the whole.
    pub(crate) length: u64,
    /// Content-Encoding of the whole.
    pub(crate) coding: Box<[u8]>,
    /// The directives against storing in it.
    pub(crate) against: StorageObjections,
}

impl Edition {
    /// The version that an origin sent all or a part of; `None` if it is not stored in slices.
    ///
    /// A whole response counts only if its origin sends ranges. A set without further slices would
    /// break off for clients that reach a missing one.
    pub(crate) fn of(exchange: &Exchange, limits: &Limits) -> Option<Self> {
        let headers = &exchange.response.headers;
        let length = match (exchange.response.status, exchange.framing) {
            (Status::OK, Framing::Length(length)) => Some(length).filter(|_| sends_ranges(headers)),
            (Status::PARTIAL_CONTENT, _) => {
                sole(headers, HeaderId::ContentRange).and_then(ContentRange::parse)?.length
            }
            _ => None,
        };
        let from = Shape::of(limits)?.from;
        let length = length.filter(|length| *length >= from)?;
        let coding = coding_of(headers).into();
        let against = StorageObjections::of(headers);
        Some(Self { validator: Validator::of(headers)?, length, coding, against })
    }

    /// Sets the fields of this version in `response`, for another node. Returns the part that
    /// `request` asks for; `None` if there is no such part.
    pub(crate) fn show(
        &self,
        request: &Request,
        now: Now,
        response: &mut Response,
    ) -> Option<Range<u64>> {
        let headers = &mut response.headers;
        match &self.validator {
            Validator::Etag(tag) => headers.push(HeaderId::Etag, tag),
            Validator::Modified(date) => {
                headers.push(HeaderId::LastModified, date);
                let mut text = [0; DATE_LEN];
                write_http_date(now.unix_ms / 1000, &mut text);
                headers.push(HeaderId::Date, &text);
            }
        }
        if !self.coding.is_empty() {
            headers.push(HeaderId::ContentEncoding, &self.coding);
        }
        self.against.show(headers);
        headers.push(HeaderId::AcceptRanges, b"bytes");
        let Some(wanted) = request.headers.value(HeaderId::Range) else {
            return Some(0..self.length);
        };
        let RangePlan::Ranges(ranges) = plan(wanted, self.length, 1) else { return None };
        let range = ranges.first()?.clone();
        let mut part = Vec::new();
        write_content_range(&range, self.length, &mut part);
        headers.push(HeaderId::ContentRange, &part);
        response.status = Status::PARTIAL_CONTENT;
        Some(range)
    }

    /// Makes `request` ask for `range` of this version.
    pub(crate) fn ask(&self, range: &Range<u64>, request: &mut Request) {
        request.headers.set(HeaderId::Range, range_text(range).as_bytes());
        request.headers.set(HeaderId::IfRange, self.validator.text());
    }

    /// Returns true if `exchange` brings `range` of this version.
    pub(crate) fn is_part(&self, exchange: &Exchange, range: &Range<u64>) -> bool {
        self.judge(&exchange.response, exchange.framing, range) == SliceVerdict::Slice
    }

    /// Judges `response` with this framing as the response to a request for `range`.
    pub(crate) fn judge(
        &self,
        response: &Response,
        framing: Framing,
        range: &Range<u64>,
    ) -> SliceVerdict {
        let headers = &response.headers;
        let named = self.validator.names(headers);
        match response.status {
            Status::PARTIAL_CONTENT => {
                let Some(part) =
                    sole(headers, HeaderId::ContentRange).and_then(ContentRange::parse)
                else {
                    return SliceVerdict::NoRange;
                };
                let is_other = part.length.is_some_and(|length| length != self.length);
                if is_other || named == Some(false) || coding_of(headers) != &*self.coding {
                    return SliceVerdict::Changed;
                }
                let is_it = named == Some(true) && part.length.is_some() && part.range == *range;
                if is_it && may_bring(framing, range) {
                    SliceVerdict::Slice
                } else {
                    SliceVerdict::NoRange
                }
            }
            Status::OK => match (named, framing.length()) {
                (Some(true), Some(length)) if length == self.length => SliceVerdict::NoRange,
                _ => SliceVerdict::Changed,
            },
            status if status.code() == 412 => SliceVerdict::Changed,
            Status::RANGE_NOT_SATISFIABLE => {
                let is_same = sole(headers, HeaderId::ContentRange)
                    .is_none_or(|value| value == format!("bytes */{}", self.length).as_bytes());
                if is_same { SliceVerdict::Nothing } else { SliceVerdict::Changed }
            }
            _ => SliceVerdict::Nothing,
        }
    }
}

/// Returns true if an origin sends ranges of the representation.
fn sends_ranges(headers: &HeaderBlock) -> bool {
    members(headers.values(HeaderId::AcceptRanges)).any(|unit| unit.eq_ignore_ascii_case(b"bytes"))
}

/// Returns true if a body of this framing may contain `range`.
fn may_bring(framing: Framing, range: &Range<u64>) -> bool {
    framing.length().is_none_or(|length| length == range.end - range.start)
        && framing != Framing::None
}

/// The Content-Encoding of a response; empty without one.
fn coding_of(headers: &HeaderBlock) -> &[u8] {
    sole(headers, HeaderId::ContentEncoding).unwrap_or_default()
}

/// A part of a whole representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) range: Range<u64>,
    /// Length of the whole.
    pub(crate) length: u64,
}

impl Extent {
    pub(crate) fn is_whole(&self) -> bool {
        self.range == (0..self.length)
    }

    /// Turns the head of a 206 into that of the 200 for the whole (RFC 9110 15.3.7).
    pub(crate) fn become_whole(&self, response: &mut Response) {
        response.status = Status::OK;
        response.reason = Status::OK.reason().into();
        response.headers.remove(HeaderId::ContentRange);
        response.headers.remove(HeaderId::ContentLength);
        response.headers.push(HeaderId::ContentLength, self.length.to_string().as_bytes());
    }
}

/// A range that is requested instead of an unknown whole.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    range: Range<u64>,
}

impl Probe {
    /// The slice of `shape` with the first byte that `request` wants, as far as that is known
    /// without the length; `None` if it wants no part, or more than `most` parts.
    pub(crate) fn of(request: &Request, shape: Shape, most: u64) -> Option<Self> {
        if request.method != Method::Get {
            return None;
        }
        let first = first_wanted(sole(&request.headers, HeaderId::Range)?, most as usize)?;
        let start = first / shape.slice_bytes * shape.slice_bytes;
        Some(Self { range: start..start.checked_add(shape.slice_bytes)? })
    }

    /// Sets the range of a request.
    pub(crate) fn ask(&self, request: &mut Request) {
        request.headers.set(HeaderId::Range, range_text(&self.range).as_bytes());
    }
}

/// Parses a 206 to the request for `probe`; `None` if it does not fit.
pub(crate) fn part_of(response: &Response, framing: Framing, probe: &Probe) -> Option<Extent> {
    let part = ContentRange::parse(sole(&response.headers, HeaderId::ContentRange)?)?;
    let length = part.length?;
    let end = probe.range.end.min(length);
    let is_it = part.range == (probe.range.start..end) && may_bring(framing, &part.range);
    is_it.then_some(Extent { range: part.range, length })
}

/// The value of a Range field.
pub(crate) fn range_text(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, fields: &[(HeaderId, &str)]) -> Response {
        let mut response = Response::new(Status::new(status).expect("a status"));
        for (id, value) in fields {
            response.headers.push(*id, value.as_bytes());
        }
        response
    }

    const RANGE: HeaderId = HeaderId::ContentRange;
    const ETAG: HeaderId = HeaderId::Etag;

    #[test]
    fn an_answer_is_the_slice_only_if_all_of_it_says_so() {
        use SliceVerdict::{Changed, NoRange, Nothing, Slice};
        let validator = Validator::Etag((*b"\"a\"").into());
        let edition = Edition {
            validator,
            length: 100,
            coding: Box::default(),
            against: StorageObjections::default(),
        };
        let judge = |status, fields: &[_], framing| {
            edition.judge(&response(status, fields), framing, &(20..40))
        };
        let right = [(RANGE, "bytes 20-39/100"), (ETAG, "\"a\"")];
        let twenty = Framing::Length(20);
        assert_eq!(judge(206, &right, twenty), Slice);
        assert_eq!(judge(206, &right, Framing::Chunked), Slice);
        assert_eq!(judge(206, &right, Framing::Length(21)), NoRange);
        for (range, etag, verdict) in [
            ("bytes 20-39/101", "\"a\"", Changed),
            ("bytes 20-39/100", "\"b\"", Changed),
            ("bytes 20-39/100", "W/\"a\"", Changed),
            ("bytes 20-39/*", "\"a\"", NoRange),
            ("bytes 21-40/100", "\"a\"", NoRange),
            ("bytes 20-38/100", "\"a\"", NoRange),
            ("bytes 0-99/100", "\"a\"", NoRange),
            ("bytes 39-20/100", "\"a\"", NoRange),
            ("items 20-39/100", "\"a\"", NoRange),
        ] {
            let fields = [(RANGE, range), (ETAG, etag)];
            assert_eq!(judge(206, &fields, twenty), verdict, "{range} {etag}");
        }
        assert_eq!(judge(206, &right[..1], twenty), NoRange, "nameless");
        assert_eq!(judge(206, &right[1..], twenty), NoRange);
        assert_eq!(judge(206, &[right[0], right[0], right[1]], twenty), NoRange, "twice");
        let coded = [right[0], right[1], (HeaderId::ContentEncoding, "br")];
        assert_eq!(judge(206, &coded, twenty), Changed);
        assert_eq!(judge(200, &right[1..], Framing::Length(100)), NoRange, "the same, whole");
        assert_eq!(judge(200, &right[1..], Framing::Length(99)), Changed);
        assert_eq!(judge(200, &[(ETAG, "\"b\"")], Framing::Length(100)), Changed);
        assert_eq!(judge(412, &[], Framing::None), Changed);
        assert_eq!(judge(416, &[(RANGE, "bytes */100")], Framing::None), Nothing);
        assert_eq!(judge(416, &[(RANGE, "bytes */10")], Framing::None), Changed);
        assert_eq!(judge(503, &right, twenty), Nothing);
    }

    #[test]
    fn another_node_reads_a_part_as_an_origin_s() {
        let now = Now { mono_ms: 0, unix_ms: 784_111_777_000 };
        let date = Validator::Modified((*b"Sun, 06 Nov 1994 08:49:36 GMT").into());
        for validator in [Validator::Etag((*b"\"a\"").into()), date] {
            let mut private = HeaderBlock::new();
            private.push(HeaderId::CacheControl, b"private");
            let against = StorageObjections::of(&private);
            let edition = Edition { validator, length: 100, coding: (*b"br").into(), against };
            let mut request = Request::new();
            let whole = &mut Response::new(Status::OK);
            assert_eq!(edition.show(&request, now, whole), Some(0..100));
            assert_eq!(Validator::of(&whole.headers).as_ref(), Some(&edition.validator));
            assert_eq!((whole.status, coding_of(&whole.headers)), (Status::OK, &b"br"[..]));
            assert_eq!(StorageObjections::of(&whole.headers), against);
            edition.ask(&(20..40), &mut request);
            let part = &mut Response::new(Status::OK);
            assert_eq!(edition.show(&request, now, part), Some(20..40));
            let verdict = edition.judge(part, Framing::Length(20), &(20..40));
            assert_eq!(verdict, SliceVerdict::Slice);
            for nothing in ["bytes=100-", "bytes=0-1,5-6", "bytes=x"] {
                request.headers.set(HeaderId::Range, nothing.as_bytes());
                assert_eq!(edition.show(&request, now, part), None, "{nothing}");
            }
        }
    }

    #[test]
    fn only_strong_validators_bind_slices() {
        let of = |fields: &[_]| Validator::of(&response(200, fields).headers);
        let date = (HeaderId::Date, "Sun, 06 Nov 1994 08:49:37 GMT");
        let modified = |text| (HeaderId::LastModified, text);
        assert_eq!(of(&[(ETAG, "\"a\"")]), Some(Validator::Etag((*b"\"a\"").into())));
        assert_eq!(of(&[(ETAG, "W/\"a\"")]), None);
        assert_eq!(of(&[(ETAG, "\"a\""), (ETAG, "\"b\"")]), None);
        let before = modified("Sun, 06 Nov 1994 08:49:36 GMT");
        assert!(matches!(of(&[date, before]), Some(Validator::Modified(_))));
        assert_eq!(of(&[before]), None, "without a date");
        assert_eq!(of(&[date, modified("Sun, 06 Nov 1994 08:49:37 GMT")]), None, "the same second");
        assert_eq!(of(&[date, before, (ETAG, "W/\"a\"")]), None, "a weak tag comes first");
    }

    #[test]
    fn a_first_range_is_the_slice_of_its_first_byte() {
        let shape = Shape { from: 1000, slice_bytes: 100, ahead: 1 };
        let probe = |value: &str| {
            let mut request = Request::new();
            request.headers.push(HeaderId::Range, value.as_bytes());
            Some(Probe::of(&request, shape, 2)?.range)
        };
        assert_eq!(probe("bytes=0-"), Some(0..100));
        assert_eq!(probe("bytes=250-999"), Some(200..300));
        assert_eq!(probe("bytes=-5"), Some(0..100), "any slice has the length");
        assert_eq!(probe("bytes=900-999, 250-259"), Some(200..300));
        assert_eq!(probe("bytes=0-0, 2-2, 4-4"), None, "too many");
        assert_eq!(
            probe(&format!("bytes={}-", u64::MAX - 1)),
            None,
            "beyond what can be asked for"
        );
        let probe = Probe { range: 200..300 };
        let part = |range: &str| {
            let response = response(206, &[(RANGE, range), (ETAG, "\"a\"")]);
            Some(part_of(&response, Framing::Chunked, &probe)?.range)
        };
        assert_eq!(part("bytes 200-299/2000"), Some(200..300));
        assert_eq!(part("bytes 200-249/250"), Some(200..250));
        for range in ["bytes 200-249/2000", "bytes 201-299/2000", "bytes 200-299/*", ""] {
            assert_eq!(part(range), None, "{range}");
        }
    }
}
