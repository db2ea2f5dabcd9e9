//! Frames: their nine-byte heads, types and flags (RFC 9113 4.1 and 6).

use crate::error::{Code, ConnectionError};

/// Size of a frame's head.
pub(crate) const HEAD_BYTES: usize = 9;
/// The largest payload permitted without a setting, in both directions (RFC 9113 4.2).
pub(crate) const PAYLOAD_BYTES: usize = 16_384;
/// The preface of a client (RFC 9113 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames; unknown ones are ignored (RFC 9113 5.5).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
    pub(crate) const PRIORITY_UPDATE: u8 = 16;
}

/// Flags that this end reads or sets.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 32;
}

/// Settings that this end reads or sends (RFC 9113 6.5.2, RFC 8441 3, RFC 9218 2.1).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
    pub(crate) const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// A frame's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl FrameHead {
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, rest @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The first bit is reserved.
            stream: u32::from_be_bytes(rest) & 0x7fff_ffff,
        }
    }

    /// Checks the frame's size, and its place: a field block that is not complete continues on the
    /// stream `open`, and nothing comes in between (RFC 9113 4.2, 6.10).
    pub(crate) fn check(self, open: Option<u32>) -> Result<(), ConnectionError> {
        if self.length > PAYLOAD_BYTES {
            return Err(ConnectionError::new(Code::FrameSize, "a frame larger than permitted"));
        }
        match open {
            Some(open) if self.kind != kind::CONTINUATION || self.stream != open => {
                Err(ConnectionError::protocol("another frame within a field block"))
            }
            None if self.kind == kind::CONTINUATION => {
                Err(ConnectionError::protocol("CONTINUATION without a field block"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the frame is one of the connection.
    pub(crate) fn of_connection(self) -> Result<(), ConnectionError> {
        if self.stream != 0 {
            return Err(ConnectionError::protocol("a stream number on a frame of the connection"));
        }
        Ok(())
    }

    /// Checks that the frame is one of a stream.
    pub(crate) fn of_stream(self) -> Result<(), ConnectionError> {
        if self.stream == 0 {
            return Err(ConnectionError::protocol("no stream number on a frame of a stream"));
        }
        Ok(())
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }
}

/// Appends a frame whose payload is short.
pub(crate) fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    FrameHead { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn heads_come_back(
            length in 0..1_usize << 24, kind: u8, flags: u8, stream in 0..1_u32 << 31
        ) {
            let head = FrameHead { length, kind, flags, stream };
            let mut out = Vec::new();
            head.write(&mut out);
            let bytes: [u8; HEAD_BYTES] = out.as_slice().try_into().expect("nine bytes");
            prop_assert_eq!(FrameHead::read(&bytes), head);
            let mut reserved = bytes;
            reserved[5] |= 0x80;
            prop_assert_eq!(FrameHead::read(&reserved), head);
        }
    }
}
