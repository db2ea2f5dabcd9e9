//! Slice set: the body of one version of a representation, stored in whole or in parts.

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

/// Milliseconds for which a slice is fresh: its set decides how long it is used.
const LIFETIME_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// The origin of slices.
pub(crate) struct SliceOrigin {
    pub(crate) origin: Arc<Origin>,
    /// The request without conditions and ranges.
    pub(crate) request: Request,
    pub(crate) key_hash: u64,
    /// The client that the set was made for.
    pub(crate) caller: OriginRequestContext,
    /// The request to the node that owns the response and is asked first; `None` if the set is not
    /// from a node.
    pub(crate) owner_request: Option<Box<OwnerRequest>>,
}

/// A response that may be stored in slices.
pub(crate) struct SliceableResponse {
    pub(crate) edition: Edition,
    pub(crate) source: SliceOrigin,
    /// The permit to keep its slices.
    pub(crate) parts: PartPermits,
}

/// A set of slices.
pub(crate) struct SliceSet {
    pub(crate) life: Arc<SliceLife>,
    pub(crate) shape: Shape,
    pub(crate) edition: Edition,
    pub(crate) source: SliceOrigin,
    /// The permit to keep its slices.
    pub(crate) parts: PartPermits,
    /// The sender of orders to the core that made it and fetches for it.
    pub(crate) orders: UnboundedSender<SliceOrder>,
    /// Clients that waited for another's slice and were not counted yet.
    pub(crate) joined: AtomicU64,
    /// A reader has moved or left.
    pub(crate) moved: Notify,
    /// The demotion policy of its slices.
    pub(crate) sinks: DemotionPolicy,
    readers: Mutex<Readers>,
    /// The stored response whose body it is.
    object: OnceLock<Weak<Object>>,
    has_ended: AtomicBool,
}

/// The positions of a set's readers.
#[derive(Debug, Default)]
struct Readers {
    next: u64,
    /// The number and slice of each reader.
    at: Vec<(u64, u64)>,
}

/// The next step of a response that is being cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlicingStep {
    /// Continue: a reader is near.
    GoOn,
    /// Wait for the following reader.
    Wait,
    /// End: no reader follows.
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

    /// A set whose slices have this `life`.
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

    /// Notes the stored response whose body this is.
    pub(crate) fn stands_for(&self, object: &Arc<Object>) {
        _ = self.object.set(Arc::downgrade(object));
    }

    /// Sets the fields of this version in `response`, for another node. Returns the part that
    /// `request` asks for; `None` if there is no such part.
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

    /// Ends the set: it is not read any more, and new requests fetch. False if it has ended before.
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

    /// Registers a reader at the beginning and returns its number.
    pub(crate) fn enter(&self) -> u64 {
        let mut readers = self.readers.lock();
        let number = readers.next;
        readers.next += 1;
        readers.at.push((number, 0));
        number
    }

    /// Moves a reader to `slice`; `None` removes it.
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

    /// The next step of a response that has reached `slice`.
    pub(crate) fn pace(&self, slice: u64) -> SlicingStep {
        let readers = self.readers.lock();
        pace_of(readers.at.iter().map(|(_, at)| *at), slice, self.shape.ahead)
    }
}

/// The next step at `slice` if slices may be up to `ahead` before `readers`. It waits for a reader
/// that follows, not for one that must catch up.
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

/// A slice of this length, stored from now on.
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
        assert_eq!(pace(&[9], 3), SlicingStep::End, "a reader ahead fetches for itself");
    }
}
