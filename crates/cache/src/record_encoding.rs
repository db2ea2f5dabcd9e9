//! The encoding of a record for another process, with times of the wall clock. The seed of hashed
//! tags and the numbers of bans are not in it: the code that stores the bytes must carry them over.

use base::Now;
use message::Status;

use crate::compact_duration::CompactDuration;
use crate::record::{Record, RecordFields};

/// Bytes before the block.
const FIXED_BYTES: usize = 62;

impl Record {
    /// Appends the encoded record to `out`. `now` is a reading of both clocks.
    pub fn encode(&self, now: Now, out: &mut Vec<u8>) {
        let fields = self.fields();
        out.reserve(FIXED_BYTES + self.block().len());
        for short in [fields.flags, fields.status.code(), fields.etag_len] {
            out.extend_from_slice(&short.to_le_bytes());
        }
        for time_ms in [fields.born_ms, fields.fresh_until_ms] {
            out.extend_from_slice(&now.unix_at(time_ms).to_le_bytes());
        }
        let spans = [fields.lifetime, fields.grace, fields.stale_if_error];
        let spans =
            spans.into_iter().chain([fields.stale_if_unreachable]).map(CompactDuration::bits);
        let places = [fields.key_len, fields.head_at, fields.etag_at];
        let others = [fields.passed, fields.last_modified, fields.date];
        for number in places.into_iter().chain(others).chain(spans) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.block());
    }

    /// Decodes a record that [`Record::encode`] wrote, here or in another process. `now` is a
    /// reading of this process's clocks. `None` if the bytes are malformed.
    ///
    /// A response from the future, after the wall clock was set back, counts as received now: it
    /// stays fresh for its lifetime at most.
    pub fn decode(bytes: &[u8], now: Now) -> Option<Self> {
        let mut rest = bytes;
        let [flags, status, etag_len] = [short(&mut rest)?, short(&mut rest)?, short(&mut rest)?];
        let [born_ms, fresh_until_ms] = [time(&mut rest)?, time(&mut rest)?];
        let mut numbers = [0; 10];
        for place in &mut numbers {
            *place = number(&mut rest)?;
        }
        let [key_len, head_at, etag_at, passed, last_modified, date, spans @ ..] = numbers;
        let [lifetime, grace, stale_if_error, stale_if_unreachable] =
            spans.map(CompactDuration::of_bits);
        let born_ms = now.mono_at(born_ms);
        let ahead_ms = born_ms.saturating_sub_unsigned(now.mono_ms).max(0);
        let fields = RecordFields {
            flags,
            status: Status::new(status)?,
            passed,
            fresh_until_ms: now.mono_at(fresh_until_ms).saturating_sub(ahead_ms),
            born_ms: born_ms.saturating_sub(ahead_ms),
            key_len,
            head_at,
            etag_at,
            etag_len,
            lifetime,
            grace,
            stale_if_error,
            stale_if_unreachable,
            last_modified,
            date,
        };
        Self::of_fields(&fields, rest.into())
    }
}

fn short(bytes: &mut &[u8]) -> Option<u16> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_le_bytes(*value))
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*value))
}

fn time(bytes: &mut &[u8]) -> Option<i64> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(i64::from_le_bytes(*value))
}
