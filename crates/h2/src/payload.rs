//! Payloads of frames, as both sides read them (RFC 9113 6).

use crate::error::{Code, ConnectionError};
use crate::frame::{FrameHead, PAYLOAD_BYTES, flag, setting};
use crate::streams::WINDOW_MAX;

/// The largest payload that a peer can allow (RFC 9113 6.5.2).
const PAYLOAD_MAX: u32 = (1 << 24) - 1;

pub(crate) const LENGTH: ConnectionError =
    ConnectionError::new(Code::FrameSize, "a frame of an invalid length for its type");

const SHORT: ConnectionError =
    ConnectionError::new(Code::FrameSize, "a frame shorter than its flags say");

/// Capacity for field blocks that is kept from one to the next.
const BLOCK_KEPT: usize = 4 << 10;

/// Gives back a buffer that was taken from `place`, unless it has grown large.
pub(crate) fn give_back(place: &mut Vec<u8>, mut taken: Vec<u8>) {
    if taken.capacity() <= BLOCK_KEPT {
        taken.clear();
        *place = taken;
    }
}

/// Checks a PING frame (RFC 9113 6.7).
pub(crate) fn ping(head: FrameHead, payload: &[u8]) -> Result<(), ConnectionError> {
    head.of_connection()?;
    match payload.len() {
        8 => Ok(()),
        _ => Err(LENGTH),
    }
}

/// The settings in a SETTINGS frame, names with values, each checked (RFC 9113 6.5.2).
pub(crate) fn settings(
    payload: &[u8],
) -> Result<impl Iterator<Item = Result<(u16, u32), ConnectionError>>, ConnectionError> {
    let (settings, rest) = payload.as_chunks::<6>();
    if !rest.is_empty() {
        return Err(LENGTH);
    }
    Ok(settings.iter().map(|[name_a, name_b, value @ ..]| {
        let (name, value) = (u16::from_be_bytes([*name_a, *name_b]), u32::from_be_bytes(*value));
        match name {
            setting::INITIAL_WINDOW_SIZE if i64::from(value) > WINDOW_MAX => {
                Err(ConnectionError::new(Code::FlowControl, "a window too large"))
            }
            setting::ENABLE_PUSH | setting::NO_RFC7540_PRIORITIES if value > 1 => {
                Err(ConnectionError::protocol("a setting that is neither 0 nor 1"))
            }
            setting::MAX_FRAME_SIZE if !(PAYLOAD_BYTES as u32..=PAYLOAD_MAX).contains(&value) => {
                Err(ConnectionError::protocol("a frame size out of bounds"))
            }
            _ => Ok((name, value)),
        }
    }))
}

/// The bytes that a WINDOW_UPDATE adds.
pub(crate) fn increment(payload: &[u8]) -> Result<u32, ConnectionError> {
    match u32::from_be_bytes(payload.try_into().map_err(|_| LENGTH)?) & 0x7fff_ffff {
        0 => Err(ConnectionError::protocol("a window update of zero")),
        more => Ok(more),
    }
}

/// The payload without its padding, if the flags say that there is some.
pub(crate) fn unpadded(head: FrameHead, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    if !head.has(flag::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(SHORT)?;
    let end = rest.len().checked_sub(usize::from(*padding));
    let end = end.ok_or(ConnectionError::protocol("more padding than frame"))?;
    Ok(&rest[..end])
}

/// The fragment in a HEADERS frame, without the priority of RFC 7540 and without padding.
pub(crate) fn fragment(head: FrameHead, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    let fragment = unpadded(head, payload)?;
    if !head.has(flag::PRIORITY) {
        return Ok(fragment);
    }
    let (parent, rest) = fragment.split_first_chunk().ok_or(SHORT)?;
    depends_on_itself(head.stream, parent)?;
    rest.get(1..).ok_or(SHORT)
}

/// The only check of the priorities of RFC 7540 (5.3.1).
pub(crate) fn depends_on_itself(stream: u32, parent: &[u8; 4]) -> Result<(), ConnectionError> {
    if u32::from_be_bytes(*parent) & 0x7fff_ffff == stream {
        return Err(ConnectionError::protocol("a stream that depends on itself"));
    }
    Ok(())
}
