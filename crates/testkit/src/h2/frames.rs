//! Frames as bytes (RFC 9113 4.1 and 6), invalid ones included: wrong lengths, flags and streams
//! are sent as given.

/// Bytes with which a client's side of a connection begins (RFC 9113 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's head.
pub const HEAD_BYTES: usize = 9;

/// The largest payload before any setting (RFC 9113 4.2).
pub const PAYLOAD_BYTES: usize = 16_384;

/// Types of frames (RFC 9113 6, RFC 9218 7.1).
#[allow(missing_docs, reason = "the RFC's own names")]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    pub const PRIORITY_UPDATE: u8 = 16;
}

/// Flags.
#[allow(missing_docs, reason = "the RFC's own names")]
pub mod flag {
    pub const END_STREAM: u8 = 0x1;
    pub const ACK: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Settings (RFC 9113 6.5.2, RFC 8441 3, RFC 9218 2.1).
#[allow(missing_docs, reason = "the RFCs' own names")]
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
    pub const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// Error codes (RFC 9113 7).
#[allow(missing_docs, reason = "the RFC's own names")]
pub mod error {
    pub const NO_ERROR: u32 = 0;
    pub const PROTOCOL_ERROR: u32 = 1;
    pub const INTERNAL_ERROR: u32 = 2;
    pub const FLOW_CONTROL_ERROR: u32 = 3;
    pub const SETTINGS_TIMEOUT: u32 = 4;
    pub const STREAM_CLOSED: u32 = 5;
    pub const FRAME_SIZE_ERROR: u32 = 6;
    pub const REFUSED_STREAM: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const COMPRESSION_ERROR: u32 = 9;
    pub const CONNECT_ERROR: u32 = 10;
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

/// One frame. Its length is that of its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type, see [`kind`].
    pub kind: u8,
    /// The flags, see [`flag`].
    pub flags: u8,
    /// The stream, 0 for the connection; the reserved bit is sent as given.
    pub stream: u32,
    /// Bytes that follow the head.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Makes any frame.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    /// DATA.
    pub fn data(stream: u32, body: &[u8], end: bool) -> Self {
        Self::new(kind::DATA, ends(end), stream, body)
    }

    /// DATA followed by `padding` zeros (RFC 9113 6.1).
    pub fn padded_data(stream: u32, body: &[u8], padding: u8, end: bool) -> Self {
        let payload = [&[padding], body, &vec![0; usize::from(padding)]].concat();
        Self::new(kind::DATA, ends(end) | flag::PADDED, stream, payload)
    }

    /// HEADERS with a complete block.
    pub fn headers(stream: u32, block: impl Into<Vec<u8>>, end: bool) -> Self {
        Self::new(kind::HEADERS, ends(end) | flag::END_HEADERS, stream, block)
    }

    /// HEADERS whose block continues in CONTINUATION.
    pub fn open_headers(stream: u32, block: impl Into<Vec<u8>>, end: bool) -> Self {
        Self::new(kind::HEADERS, ends(end), stream, block)
    }

    /// CONTINUATION.
    pub fn continuation(stream: u32, block: impl Into<Vec<u8>>, last: bool) -> Self {
        let flags = if last { flag::END_HEADERS } else { 0 };
        Self::new(kind::CONTINUATION, flags, stream, block)
    }

    /// PRIORITY, which RFC 9113 5.3.2 has deprecated.
    pub fn priority(stream: u32, depends_on: u32, weight: u8) -> Self {
        let payload = [&depends_on.to_be_bytes()[..], &[weight]].concat();
        Self::new(kind::PRIORITY, 0, stream, payload)
    }

    /// RST_STREAM.
    pub fn reset(stream: u32, code: u32) -> Self {
        Self::new(kind::RST_STREAM, 0, stream, code.to_be_bytes())
    }

    /// SETTINGS.
    pub fn settings(values: &[(u16, u32)]) -> Self {
        let pair =
            |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        Self::new(kind::SETTINGS, 0, 0, values.iter().flat_map(pair).collect::<Vec<u8>>())
    }

    /// SETTINGS that acknowledges the peer's.
    pub fn settings_ack() -> Self {
        Self::new(kind::SETTINGS, flag::ACK, 0, [])
    }

    /// PING.
    pub fn ping(data: [u8; 8]) -> Self {
        Self::new(kind::PING, 0, 0, data)
    }

    /// GOAWAY.
    pub fn goaway(last: u32, code: u32, debug: &[u8]) -> Self {
        let payload = [&last.to_be_bytes()[..], &code.to_be_bytes(), debug].concat();
        Self::new(kind::GOAWAY, 0, 0, payload)
    }

    /// WINDOW_UPDATE; 0 and the reserved bit are sent as given.
    pub fn window_update(stream: u32, increment: u32) -> Self {
        Self::new(kind::WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
    }

    /// PRIORITY_UPDATE (RFC 9218 7.1): `value` is a priority field's, such as `u=0, i`.
    pub fn priority_update(stream: u32, value: &str) -> Self {
        let payload = [&stream.to_be_bytes()[..], value.as_bytes()].concat();
        Self::new(kind::PRIORITY_UPDATE, 0, 0, payload)
    }

    /// Serialises the frame.
    pub fn bytes(&self) -> Vec<u8> {
        let length = self.payload.len() as u32;
        [
            &length.to_be_bytes()[1..],
            &[self.kind, self.flags],
            &self.stream.to_be_bytes(),
            &self.payload,
        ]
        .concat()
    }

    /// Parses the frame at the start of `bytes`. Returns it with its length; `None` while it is
    /// incomplete.
    pub fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (&[a, b, c, kind, flags, ref stream @ ..], rest) = bytes.split_first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = rest.get(..length)?;
        let stream = u32::from_be_bytes(*stream) & 0x7fff_ffff;
        Some((Self::new(kind, flags, stream, payload), HEAD_BYTES + length))
    }

    /// Returns true if `flag` is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The four bytes at `at` of the payload as a number, if present.
    pub fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }
}

/// A field block in a HEADERS frame and CONTINUATION frames of at most `most` bytes (RFC 9113
/// 6.10).
pub fn header_frames(stream: u32, block: &[u8], most: usize, end: bool) -> Vec<u8> {
    let mut pieces = block.chunks(most.max(1)).peekable();
    let first = pieces.next().unwrap_or_default();
    let mut bytes = match pieces.peek() {
        None => Frame::headers(stream, first, end),
        Some(_) => Frame::open_headers(stream, first, end),
    }
    .bytes();
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().is_none();
        bytes.extend_from_slice(&Frame::continuation(stream, piece, last).bytes());
    }
    bytes
}

fn ends(end: bool) -> u8 {
    if end { flag::END_STREAM } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_wait_for_their_last_byte() {
        for frame in [
            Frame::data(3, b"body", true),
            Frame::padded_data(1, b"", 255, false),
            Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1)]),
            Frame::goaway(7, error::ENHANCE_YOUR_CALM, b"why"),
            Frame::new(0xfa, 0xff, 0x7fff_ffff, vec![1; 70_000]),
        ] {
            let bytes = frame.bytes();
            assert_eq!(Frame::read(&bytes), Some((frame, bytes.len())));
            assert_eq!(Frame::read(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn frames_have_the_bytes_of_the_rfc() {
        assert_eq!(Frame::settings_ack().bytes(), [0, 0, 0, 4, 1, 0, 0, 0, 0]);
        assert_eq!(Frame::window_update(5, 256).bytes(), [0, 0, 4, 8, 0, 0, 0, 0, 5, 0, 0, 1, 0]);
        assert_eq!(
            Frame::padded_data(1, b"ab", 2, true).bytes(),
            [0, 0, 5, 0, 9, 0, 0, 0, 1, 2, b'a', b'b', 0, 0]
        );
        let update = Frame::priority_update(9, "u=0");
        assert_eq!((update.stream, update.number(0)), (0, Some(9)));
        assert_eq!(&update.payload[4..], b"u=0");
    }

    #[test]
    fn a_block_is_cut_into_frames() {
        let bytes = header_frames(1, b"abcde", 2, true);
        let mut at = 0;
        let mut found = Vec::new();
        while let Some((frame, used)) = Frame::read(&bytes[at..]) {
            found.push((frame.kind, frame.flags, frame.payload));
            at += used;
        }
        assert_eq!(at, bytes.len());
        assert_eq!(
            found,
            [
                (kind::HEADERS, flag::END_STREAM, b"ab".to_vec()),
                (kind::CONTINUATION, 0, b"cd".to_vec()),
                (kind::CONTINUATION, flag::END_HEADERS, b"e".to_vec()),
            ]
        );
        assert_eq!(header_frames(1, b"", 9, false), Frame::headers(1, [], false).bytes());
    }
}
