//! An origin's answer to a request for a range, read with distrust: it is the range that was asked
//! for, of the version that was asked for, or it is not used.

use std::ops::Range;

use message::conditional::is_strong;
use message::date::parse_http_date;
use message::range::{ContentRange, first_wanted};
use message::{Framing, HeaderBlock, HeaderId, Method, Request, Response, Status};

use super::set::Shape;

/// The name of a version, strong enough to combine ranges (RFC 9110 8.8.1, RFC 9111 3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Validator {
    Etag(Box<[u8]>),
    /// A Last-Modified from before the second of Date (RFC 9110 8.8.2.2).
    Modified(Box<[u8]>),
}

impl Validator {
    /// The strong validator of a response; `None` if it has no strong one. A date counts only where
    /// there is no entity tag (RFC 9110 13.1.5).
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

    /// Returns true if `headers` name this version; `None` if they do not say.
    fn names(&self, headers: &HeaderBlock) -> Option<bool> {
        let id = match self {
            Self::Etag(_) => HeaderId::Etag,
            Self::Modified(_) => HeaderId::LastModified,
        };
        headers.contains(id).then(|| sole(headers, id) == Some(self.text()))
    }
}

/// The value of a field that is there once.
fn sole(headers: &HeaderBlock, id: HeaderId) -> Option<&[u8]> {
    let mut values = headers.values(id);
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.trim_ascii()),
        _ => None,
    }
}

/// The verdict on an answer to a request for a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceVerdict {
    /// It is the slice.
    Slice,
    /// There is another version.
    Changed,
    /// The origin sends no ranges, or not those that it is asked for.
    NoRange,
    /// It is nothing, for now.
    Nothing,
}

/// The facts that all slices of a set share.
#[derive(Clone, Debug)]
pub(super) struct Edition {
    pub(super) validator: Validator,
    /// Length of the whole.
    pub(super) length: u64,
    /// Content-Encoding of the whole.
    pub(super) coding: Box<[u8]>,
}

impl Edition {
    /// Judges `response` to a request for `range`.
    pub(super) fn judge(
        &self,
        (response, framing): (&Response, Framing),
        range: &Range<u64>,
    ) -> SliceVerdict {
        let headers = &response.headers;
        let named = self.validator.names(headers);
        match response.status {
            Status::PARTIAL_CONTENT => {
                let Some(part) = sole(headers, HeaderId::ContentRange).and_then(ContentRange::parse)
                else {
                    return SliceVerdict::NoRange;
                };
                let is_other = part.length.is_some_and(|length| length != self.length);
                if is_other || named == Some(false) || coding_of(headers) != &*self.coding {
                    return SliceVerdict::Changed;
                }
                let is_it = named == Some(true) && part.length.is_some() && part.range == *range;
                if is_it && may_bring(framing, range) { SliceVerdict::Slice } else { SliceVerdict::NoRange }
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

/// Tells whether a body of this framing may have the bytes of `range`.
fn may_bring(framing: Framing, range: &Range<u64>) -> bool {
    framing.length().is_none_or(|length| length == range.end - range.start)
        && framing != Framing::None
}

/// The Content-Encoding of a response; empty without one.
pub(super) fn coding_of(headers: &HeaderBlock) -> &[u8] {
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

    /// Makes the head of a 206 that of the 200 that would have had the whole (RFC 9110 15.3.7).
    pub(crate) fn become_whole(&self, response: &mut Response) {
        response.status = Status::OK;
        response.reason = Status::OK.reason().into();
        response.headers.remove(HeaderId::ContentRange);
        response.headers.remove(HeaderId::ContentLength);
        response.headers.push(HeaderId::ContentLength, self.length.to_string().as_bytes());
    }
}

/// A range that an origin is asked for in place of the whole, of which nothing is known yet.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    range: Range<u64>,
}

impl Probe {
    /// The slice of `shape` with the first byte that `request` wants; `None` if the request does
    /// not say which one that is.
    pub(crate) fn of(request: &Request, shape: Shape) -> Option<Self> {
        if request.method != Method::Get {
            return None;
        }
        let first = first_wanted(sole(&request.headers, HeaderId::Range)?)?;
        let start = first / shape.slice_bytes * shape.slice_bytes;
        Some(Self { range: start..start.checked_add(shape.slice_bytes)? })
    }

    /// Asks for it.
    pub(crate) fn ask(&self, request: &mut Request) {
        request.headers.set(HeaderId::Range, range_text(&self.range).as_bytes());
    }
}

/// Reads a 206 to a request for what `probe` says; `None` if it is not that, or its version has no
/// strong name.
pub(crate) fn part_of(response: &Response, framing: Framing, probe: &Probe) -> Option<Extent> {
    let headers = &response.headers;
    let part = ContentRange::parse(sole(headers, HeaderId::ContentRange)?)?;
    let length = part.length?;
    let end = probe.range.end.min(length);
    let is_it = part.range == (probe.range.start..end) && may_bring(framing, &part.range);
    (is_it && Validator::of(headers).is_some()).then_some(Extent { range: part.range, length })
}

/// The value of a Range.
pub(super) fn range_text(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end - 1)
}
