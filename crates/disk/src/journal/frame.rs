//! The frames of a journal: their encoding, and the names of the files.

use crate::checksum::{self, SUM_BYTES, seed_of};

pub(super) const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"LJRN");

/// Bytes of a frame before its payload: checksum, magic, length, wall clock.
pub(super) const FRAME_BYTES: usize = 24;

/// Frames begin at multiples of this.
pub(super) const FRAME_ALIGN: usize = 8;

/// Distinguishes the checksums of journals.
pub(super) const OF_JOURNAL: u64 = 4;

/// The name of a journal.
pub(super) fn file_name(generation: u64) -> String {
    format!("journal-{generation:016x}")
}

/// The frame of a payload that begins `at` bytes into its journal.
pub(super) fn encode_frame(
    key: u64,
    generation: u64,
    at: u64,
    wall_ms: u64,
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = vec![0; SUM_BYTES];
    frame.extend_from_slice(&FRAME_MAGIC.to_le_bytes());
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&wall_ms.to_le_bytes());
    frame.extend_from_slice(payload);
    checksum::seal(seed_of(key, &[OF_JOURNAL, generation, at]), 0, &mut frame);
    frame.resize(frame.len().next_multiple_of(FRAME_ALIGN), 0);
    frame
}
