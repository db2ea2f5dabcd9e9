//! A set of slices: the body of one version of a representation. Any part of it may be there.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use base::{HashSeed, KeyBuf, Now};
use cache::{DemotionPolicy, Flags, NewObject, Object, Tags};
use message::store::PartPermits;
use message::{Request, Response, Status};
use origin::{Origin, OriginRequestContext};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::answer::Edition;
use super::life::SliceLife;
use super::memory::SliceMemory;
use super::shape::Shape;
use super::slice_fetcher::SliceOrder;
use crate::key::slice_key;
use crate::state::peers::OwnerRequest;

/// Milliseconds for which a slice would be fresh: its set says how long it is used.
const LIFETIME_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// Where slices are fetched.
pub(crate) struct SliceOrigin {
    pub(crate) origin: Arc<Origin>,
    /// The request, without conditions and ranges.
    pub(crate) request: Request,
    pub(crate) key_hash: u64,
    /// The client for which the set was made.
    pub(crate) caller: OriginRequestContext,
    /// The question to the node that owns the response, and is asked first; absent where the set is
    /// not from one.
    pub(crate) asking: Option<Box<OwnerRequest>>,
}

/// A response as slices of it are had.
pub(crate) struct SliceableResponse {
    pub(crate) edition: Edition,
    pub(crate) source: SliceOrigin,
    /// The permission to keep its slices.
    pub(crate) parts: PartPermits,
}

/// A set of slices.
pub(crate) struct SliceSet {
    pub(crate) life: Arc<SliceLife>,
    pub(crate) shape: Shape,
    pub(crate) edition: Edition,
    pub(crate) source: SliceOrigin,
    /// The permission to keep its slices.
    pub(crate) parts: PartPermits,
    /// The desk of the core that made it, and fetches for it.
    pub(crate) orders: UnboundedSender<SliceOrder>,
    /// Clients that waited for another's slice and have not been counted.
    pub(crate) joined: AtomicU64,
    /// A reader has gone on, or left.
    pub(crate) moved: Notify,
    /// The way of its slices when they leave memory.
    pub(crate) sinks: DemotionPolicy,
    readers: Mutex<Readers>,
    /// The stored response that has it as its body.
    object: OnceLock<Weak<Object>>,
    has_ended: AtomicBool,
}

/// Where the readers of a set are.
#[derive(Debug, Default)]
struct Readers {
    next: u64,
    /// Number and slice of each.
    at: Vec<(u64, u64)>,
}

/// The next step of whoever cuts a running response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlicingStep {
    /// Goes on: a reader is near.
    GoOn,
    /// Waits for the reader that follows.
    Wait,
    /// Ends: nobody follows.
    End,
}

impl SliceSet {
    pub(crate) fn new(
        memory: &Arc<SliceMemory>,
        shape: Shape,
        sliced: SliceableResponse,
        sinks: DemotionPolicy,
        orders: UnboundedSender<SliceOrder>,
    ) -> Arc<Self> {
        let count = sliced.edition.length.div_ceil(shape.slice_bytes);
        let life = SliceLife::new(memory, memory.number(), count);
        Self::living(life, shape, sliced, sinks, orders)
    }

    /// A set whose slices have `life`.
    pub(crate) fn living(
        life: Arc<SliceLife>,
        shape: Shape,
        SliceableResponse { edition, source, parts }: SliceableResponse,
        sinks: DemotionPolicy,
        orders: UnboundedSender<SliceOrder>,
    ) -> Arc<Self> {
        Arc::new(Self {
            life,
            shape,
            edition,
            source,
            parts,
            orders,
            joined: AtomicU64::new(0),
            moved: Notify::new(),
            sinks,
            readers: Mutex::default(),
            object: OnceLock::new(),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Takes note of the stored response whose body this is.
    pub(crate) fn stands_for(&self, object: &Arc<Object>) {
        _ = self.object.set(Arc::downgrade(object));
    }

    /// Says in `response`, which another node gets, which version this is. The result is the part
    /// that `request` asks for; `None` if it asks for none that there is.
    pub(crate) fn show(
        &self,
        request: &Request,
        now: Now,
        response: &mut Response,
    ) -> Option<Range<u64>> {
        self.edition.show(request, now, response)
    }

    /// The number of slices.
    pub(crate) fn count(&self) -> u64 {
        self.life.count
    }

    /// The bytes of a slice.
    pub(crate) fn range(&self, number: u64) -> Range<u64> {
        let start = number * self.shape.slice_bytes;
        start..self.edition.length.min(start + self.shape.slice_bytes)
    }

    pub(crate) fn slice_at(&self, offset: u64) -> u64 {
        offset / self.shape.slice_bytes
    }

    pub(crate) fn key(&self, seed: &HashSeed, number: u64) -> KeyBuf {
        let mut key = KeyBuf::new();
        slice_key(seed, self.life.id, number, &mut key);
        key
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Ends the set: nobody reads it any more, and new requests are fetched. False if it has ended
    /// before.
    pub(crate) fn end(&self) -> bool {
        if self.has_ended.swap(true, Ordering::AcqRel) {
            return false;
        }
        let object = self.object.get().and_then(Weak::upgrade);
        if let (Some(memory), Some(object)) = (self.life.memory.upgrade(), object) {
            memory.cache.withdraw(self.source.key_hash, &object);
        }
        self.moved.notify_one();
        true
    }

    /// Takes in a reader at the beginning; returns its number.
    pub(crate) fn enter(&self) -> u64 {
        let mut readers = self.readers.lock();
        let number = readers.next;
        readers.next += 1;
        readers.at.push((number, 0));
        number
    }

    /// A reader has come to `slice`; without one it has left.
    pub(crate) fn move_reader(&self, reader: u64, slice: Option<u64>) {
        {
            let mut readers = self.readers.lock();
            let Some(place) = readers.at.iter().position(|(number, _)| *number == reader) else {
                return;
            };
            match slice {
                Some(slice) => readers.at[place].1 = slice,
                None => _ = readers.at.swap_remove(place),
            }
        }
        self.moved.notify_one();
    }

    pub(crate) fn has_readers(&self) -> bool {
        !self.readers.lock().at.is_empty()
    }

    /// The pace of whoever comes to `slice` with a running response.
    pub(crate) fn pace(&self, slice: u64) -> SlicingStep {
        let readers = self.readers.lock();
        pace_of(readers.at.iter().map(|(_, at)| *at), slice, self.shape.ahead)
    }
}

/// The pace at `slice` of whoever brings slices up to `ahead` before `readers`: it waits for one
/// that follows it, not for one that has to catch up.
fn pace_of(readers: impl Iterator<Item = u64>, slice: u64, ahead: u64) -> SlicingStep {
    match readers.filter(|at| *at <= slice + ahead).max() {
        Some(at) if at + ahead >= slice => SlicingStep::GoOn,
        Some(at) if at + ahead + 1 == slice => SlicingStep::Wait,
        _ => SlicingStep::End,
    }
}

impl fmt::Debug for SliceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SliceSet").field("id", &self.life.id).finish_non_exhaustive()
    }
}

/// A slice of so many bytes as it is stored from now on.
pub(crate) fn new_slice(length: u64, now_ms: u64) -> NewObject {
    NewObject {
        status: Status::PARTIAL_CONTENT,
        etag: None,
        last_modified: None,
        date: None,
        head: Box::default(),
        born_ms: i64::try_from(now_ms).unwrap_or(i64::MAX),
        lifetime_ms: LIFETIME_MS,
        grace_ms: 0,
        stale_if_error_ms: 0,
        stale_if_unreachable_ms: 0,
        flags: Flags::default(),
        note: Box::default(),
        tags: Tags::default(),
        length: Some(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_is_cut_stays_near_a_reader() {
        let pace = |readers: &[u64], slice| pace_of(readers.iter().copied(), slice, 2);
        assert_eq!(pace(&[0], 2), SlicingStep::GoOn);
        assert_eq!(pace(&[0], 3), SlicingStep::Wait);
        assert_eq!(pace(&[0], 4), SlicingStep::End, "that one seeks back");
        assert_eq!(pace(&[], 1), SlicingStep::End);
        assert_eq!(pace(&[0, 9], 3), SlicingStep::Wait, "one is far ahead");
        assert_eq!(pace(&[0, 5], 3), SlicingStep::GoOn, "one waits for what comes soon");
        assert_eq!(pace(&[9], 3), SlicingStep::End, "whoever is ahead fetches for itself");
    }
}
