//! Object of a fetch: the object to be stored, from a response and its times.

use base::Now;
use cache::{Flags, NewObject, Tags};
use message::{HeaderId, Response};

use crate::stored_heads::head_to_store;

/// The times of an object, in milliseconds.
pub(crate) struct ObjectTimes {
    /// Age when the response arrived.
    pub(crate) age_ms: u64,
    pub(crate) lifetime_ms: u64,
    pub(crate) grace_ms: u64,
    pub(crate) stale_if_error_ms: u64,
    pub(crate) stale_if_unreachable_ms: u64,
}

/// An object with the head of `response`, which arrived at `now`, without tags, note and length.
/// `date` parses a field as seconds since 1970.
pub(crate) fn new_object(
    response: &Response,
    now: Now,
    times: &ObjectTimes,
    flags: Flags,
    date: &dyn Fn(&[u8]) -> Option<u64>,
) -> NewObject {
    let date = |id| response.headers.value(id).and_then(date);
    let (head, etag) = head_to_store(response);
    NewObject {
        status: response.status,
        etag,
        last_modified: date(HeaderId::LastModified),
        date: date(HeaderId::Date),
        head,
        born_ms: now.mono_ms as i64 - times.age_ms as i64,
        lifetime_ms: times.lifetime_ms,
        grace_ms: times.grace_ms,
        stale_if_error_ms: times.stale_if_error_ms,
        stale_if_unreachable_ms: times.stale_if_unreachable_ms,
        flags,
        note: Box::default(),
        tags: Tags::default(),
        length: None,
    }
}
