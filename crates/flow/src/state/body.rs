//! Body of a reply: bytes in memory and files, or a body that still arrives.
//!
//! Engines know no other kinds. Bodies of all policies and stores reach them as parts.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use base::HashSeed;
use bytes::Bytes;
use cache::{Object, Reader};
use files::OpenFile;
use message::range::Multipart;
use message::{Method, Status};
use origin::Tunnel;

use crate::state::slices::{MultipartRanges, StretchPiece};

/// A part of a complete body.
#[derive(Clone, Debug)]
pub enum BodyPart {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes of a complete stored body.
    Stored(Arc<Object>, Range<u64>),
    /// Bytes of a file. If the file turns out to be shorter, the connection must be cut: its length
    /// has been promised.
    File(Arc<OpenFile>, Range<u64>),
}

impl BodyPart {
    /// A part without bytes.
    pub(crate) fn empty() -> Self {
        Self::Bytes(Bytes::new())
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stored(_, range) | Self::File(_, range) => range.end - range.start,
        }
    }

    /// Returns true if the part is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the part is read from a file.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(..))
    }

    /// The bytes in `wanted`, counted from the part's beginning.
    pub(crate) fn slice(&self, wanted: &Range<u64>) -> Self {
        let within = |of: &Range<u64>| of.start + wanted.start..of.start + wanted.end;
        match self {
            Self::Bytes(bytes) => {
                Self::Bytes(bytes.slice(wanted.start as usize..wanted.end as usize))
            }
            Self::Stored(object, range) => Self::Stored(Arc::clone(object), within(range)),
            Self::File(file, range) => Self::File(Arc::clone(file), within(range)),
        }
    }

    /// Splits off the first `bytes`, at most all.
    pub fn split_to(&mut self, bytes: u64) -> Self {
        let at = bytes.min(self.len());
        let first = self.slice(&(0..at));
        *self = self.slice(&(at..self.len()));
        first
    }
}

/// Parts in sending order.
#[derive(Debug)]
pub enum BodyParts {
    /// One part.
    One(BodyPart),
    /// Several parts (multipart/byteranges).
    Many(VecDeque<BodyPart>),
}

impl BodyParts {
    /// The first part with bytes left.
    pub fn front_mut(&mut self) -> Option<&mut BodyPart> {
        match self {
            Self::One(part) => Some(part).filter(|part| !part.is_empty()),
            Self::Many(parts) => {
                while parts.front().is_some_and(BodyPart::is_empty) {
                    parts.pop_front();
                }
                parts.front_mut()
            }
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Self::One(part) => part.len(),
            Self::Many(parts) => parts.iter().map(BodyPart::len).sum(),
        }
    }

    /// Returns true if all parts are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows each part to `look`.
    pub fn each(&self, mut look: impl FnMut(&BodyPart)) {
        match self {
            Self::One(part) => look(part),
            Self::Many(parts) => parts.iter().for_each(look),
        }
    }

    /// Returns true if a part is read from a file.
    pub fn has_file(&self) -> bool {
        match self {
            Self::One(part) => part.is_file(),
            Self::Many(parts) => parts.iter().any(BodyPart::is_file),
        }
    }
}

impl Iterator for BodyParts {
    type Item = BodyPart;

    fn next(&mut self) -> Option<BodyPart> {
        match self {
            Self::One(_) => match std::mem::replace(self, Self::Many(VecDeque::new())) {
                Self::One(part) => Some(part),
                Self::Many(_) => None,
            },
            Self::Many(parts) => parts.pop_front(),
        }
    }
}

/// The body behind the head of a reply.
#[derive(Debug)]
pub enum ReplyBody {
    /// No body, as the status requires (204, 304).
    None,
    /// No body because the request is a HEAD; with the length for GET, if known.
    Head(Option<u64>),
    /// Bytes in memory or files.
    Parts(BodyParts),
    /// A body that arrives from the origin: `length` bytes, or until its end.
    Stream {
        /// The reader of the arriving body.
        reader: Reader,
        /// The number of bytes that will be sent, if known.
        length: Option<u64>,
    },
    /// After a 101: the connection to the origin, for any protocol from here on.
    Tunnel(Box<Tunnel>),
}

impl From<BodyPart> for ReplyBody {
    fn from(part: BodyPart) -> Self {
        Self::Parts(BodyParts::One(part))
    }
}

impl From<Bytes> for ReplyBody {
    fn from(bytes: Bytes) -> Self {
        BodyPart::Bytes(bytes).into()
    }
}

impl ReplyBody {
    /// The whole body of `object`; `reader` reads it if it was fetched for this request.
    pub(crate) fn whole(object: &Arc<Object>, reader: Option<Reader>) -> Self {
        if let Some(whole) = object.whole() {
            return BodyPart::Stored(Arc::clone(object), 0..whole.len()).into();
        }
        let reader = reader.unwrap_or_else(|| object.reader());
        Self::Stream { reader, length: object.length() }
    }

    /// This body in an answer to `method` with `status`.
    #[inline]
    pub(crate) fn answering(self, method: &Method, status: Status) -> Self {
        if status.has_no_body() {
            Self::None
        } else if *method == Method::Head {
            Self::Head(self.length())
        } else {
            self
        }
    }

    /// The length, if known; 0 if nothing follows the head.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::None | Self::Head(_) | Self::Tunnel(_) => Some(0),
            Self::Parts(parts) => Some(parts.len()),
            Self::Stream { length, .. } => *length,
        }
    }

    /// The length for Content-Length: for HEAD, that for GET.
    pub(crate) fn declared_length(&self) -> Option<u64> {
        match self {
            Self::Head(length) => *length,
            _ => self.length(),
        }
    }

    /// The part, if there is exactly one.
    #[inline]
    pub fn part(&self) -> Option<&BodyPart> {
        match self {
            Self::Parts(BodyParts::One(part)) => Some(part),
            _ => None,
        }
    }

    /// Cuts the body to `range`, counted from its beginning.
    pub(crate) fn narrow(&mut self, range: &Range<u64>) {
        match self {
            Self::Parts(BodyParts::One(part)) => *part = part.slice(range),
            Self::Stream { reader, length } => {
                reader.seek(range.start);
                reader.until(range.end);
                *length = Some(range.end - range.start);
            }
            Self::Head(length) => *length = Some(range.end - range.start),
            Self::None | Self::Parts(BodyParts::Many(_)) | Self::Tunnel(_) => {}
        }
    }

    /// Cuts the body to several ranges of a representation of `length` bytes (multipart/byteranges,
    /// RFC 9110 14.6), and returns the Content-Type with the boundary. `kind` is the
    /// representation's Content-Type. An arriving body can only be cut in ascending order.
    pub(crate) fn narrow_to_parts(
        &mut self,
        ranges: &[Range<u64>],
        kind: Option<&[u8]>,
        length: u64,
    ) -> Option<Box<str>> {
        let can_cut = match self {
            Self::Parts(BodyParts::One(_)) => true,
            Self::Stream { reader, .. } => {
                reader.goes_back() || ranges.is_sorted_by_key(|range| range.start)
            }
            _ => false,
        };
        if !can_cut {
            return None;
        }
        // Long and random, so that no body contains it by accident; a body that does on purpose
        // harms only its own site.
        let [high, low] = [HashSeed::random(), HashSeed::random()].map(|seed| seed.hash(b""));
        let boundary = format!("{high:016x}{low:016x}");
        let multipart = Multipart { boundary: boundary.as_bytes(), content_type: kind, length };
        let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
        for range in ranges {
            let mut head = Vec::new();
            multipart.write_part_head(range, &mut head);
            pieces.push(StretchPiece::Bytes(Bytes::from(head)));
            pieces.push(StretchPiece::Of(range.clone()));
        }
        let mut end = Vec::new();
        multipart.write_end(&mut end);
        pieces.push(StretchPiece::Bytes(Bytes::from(end)));
        *self = match std::mem::replace(self, Self::None) {
            Self::Parts(BodyParts::One(whole)) => {
                let part = |piece| match piece {
                    StretchPiece::Bytes(bytes) => BodyPart::Bytes(bytes),
                    StretchPiece::Of(range) => whole.slice(&range),
                };
                Self::Parts(BodyParts::Many(pieces.into_iter().map(part).collect()))
            }
            Self::Stream { reader, .. } => {
                let reader = MultipartRanges::read(reader, pieces);
                let length = reader.length();
                Self::Stream { reader, length }
            }
            other => other,
        };
        Some(format!("multipart/byteranges; boundary={boundary}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(parts: BodyParts) -> Vec<u8> {
        let mut out = Vec::new();
        for part in parts {
            let BodyPart::Bytes(bytes) = part else { panic!("bytes") };
            out.extend_from_slice(&bytes);
        }
        out
    }

    #[test]
    fn a_body_is_cut_to_one_range_or_to_parts_that_say_where_they_are_from() {
        let mut one = ReplyBody::from(Bytes::from_static(b"0123456789"));
        one.narrow(&(2..5));
        assert_eq!(one.length(), Some(3));
        let ReplyBody::Parts(parts) = one else { panic!("parts") };
        assert_eq!(bytes_of(parts), b"234");

        let mut several = ReplyBody::from(Bytes::from_static(b"0123456789"));
        let kind = several.narrow_to_parts(&[0..1, 8..10], Some(b"text/plain"), 10);
        let kind = kind.expect("what is there can be cut");
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
        let length = several.length();
        let ReplyBody::Parts(parts) = several else { panic!("parts") };
        let body = bytes_of(parts);
        assert_eq!(length, Some(body.len() as u64));
        let part = |range: &str, bytes: &str| {
            format!(
                "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n{bytes}"
            )
        };
        let whole = part("0-0", "0") + &part("8-9", "89") + &format!("\r\n--{boundary}--\r\n");
        assert_eq!(String::from_utf8(body).expect("text"), whole);
    }

    #[test]
    fn what_is_still_coming_is_cut_to_parts_from_its_beginning_to_its_end() {
        let coming = || {
            let memory = base::MemoryBudget::new(2 << 20, 2 << 20);
            let account = base::Account::open(&memory, u64::MAX);
            let (mut writer, reader) =
                cache::BodyWindow::window(cache::WindowLimit { bytes: 1 << 20, account });
            assert_eq!(writer.push(b"0123456789"), cache::PushOutcome::Ok);
            assert!(writer.finish());
            ReplyBody::Stream { reader, length: Some(10) }
        };
        // A window does not move backwards.
        assert_eq!(coming().narrow_to_parts(&[8..10, 0..1], None, 10), None);
        let mut several = coming();
        let kind = several.narrow_to_parts(&[0..1, 8..10], Some(b"text/plain"), 10);
        let kind = kind.expect("it can be cut");
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
        let ReplyBody::Stream { mut reader, length } = several else { panic!("a stream") };
        let mut body = Vec::new();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        while let std::task::Poll::Ready(Ok(Some(data))) = reader.poll_next(&mut cx) {
            body.extend_from_slice(&data);
        }
        assert_eq!(length, Some(body.len() as u64));
        let part = |range: &str, bytes: &str| {
            format!(
                "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n{bytes}"
            )
        };
        let whole = part("0-0", "0") + &part("8-9", "89") + &format!("\r\n--{boundary}--\r\n");
        assert_eq!(String::from_utf8(body).expect("text"), whole);
    }

    #[test]
    fn parts_are_taken_off_from_the_front_until_none_has_bytes() {
        let [a, b, c] = ["ab", "", "cde"].map(|text| BodyPart::Bytes(Bytes::from(text)));
        let mut parts = BodyParts::Many(VecDeque::from([a, b, c]));
        let mut taken = Vec::new();
        while let Some(front) = parts.front_mut() {
            let BodyPart::Bytes(bytes) = front.split_to(2) else { panic!("bytes") };
            taken.push(bytes);
        }
        assert_eq!(taken, ["ab", "cd", "e"]);
        assert!(parts.is_empty());
    }

    #[test]
    fn a_head_has_the_length_of_get_and_a_204_has_no_body() {
        let body = || ReplyBody::from(Bytes::from_static(b"abc"));
        let head = body().answering(&Method::Head, Status::OK);
        assert_eq!((head.length(), head.declared_length()), (Some(0), Some(3)));
        assert!(matches!(body().answering(&Method::Get, Status::NO_CONTENT), ReplyBody::None));
        assert_eq!(body().answering(&Method::Get, Status::OK).length(), Some(3));
    }
}
