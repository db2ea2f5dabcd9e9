//! Several ranges in one body: multipart/byteranges (RFC 9110 14.6).

use std::ops::Range;

use base::HashSeed;
use bytes::Bytes;
use message::range::Multipart;

use crate::reply::Piece;

/// The pieces of a body with `ranges` of a representation of `length` bytes, and the Content-Type
/// that names what separates them. `kind` is the representation's own.
pub(crate) fn pieces(
    ranges: &[Range<u64>],
    kind: Option<&[u8]>,
    length: u64,
) -> (Vec<Piece>, Box<str>) {
    // Long and random enough that no body holds it by accident; nobody gains by making one that
    // does.
    let [high, low] = [HashSeed::random(), HashSeed::random()].map(|seed| seed.hash(b""));
    let boundary = format!("{high:016x}{low:016x}");
    let multipart = Multipart { boundary: boundary.as_bytes(), content_type: kind, length };
    let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
    for range in ranges {
        let mut part = Vec::new();
        multipart.write_part_head(range, &mut part);
        pieces.push(Piece::Bytes(Bytes::from(part)));
        pieces.push(Piece::Stored(range.clone()));
    }
    let mut end = Vec::new();
    multipart.write_end(&mut end);
    pieces.push(Piece::Bytes(Bytes::from(end)));
    (pieces, format!("multipart/byteranges; boundary={boundary}").into())
}
