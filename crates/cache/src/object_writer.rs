//! The object writer: the writing end of an object's body. An object whose body breaks off, or does
//! not have its declared length, must leave the index.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use message::Trailers;

use crate::cache::Cache;
use crate::charged_bytes::{CHUNK_OVERHEAD, ChargedBytes, ChunkReservation};
use crate::content::CompleteBody;
use crate::fill::{AbandonedBody, Fill, FillPhase, PushOutcome, Tail, WindowLimit};
use crate::ledger::{Charge, count};
use crate::lower::{Lower, MemoryOnly};
use crate::object::Object;
use crate::shard::RemovedObjects;
use crate::size;

/// The largest chunk: large enough for a writev of few chunks, small enough for a fragmented heap.
const CHUNK_BYTES: usize = 256 * 1024;
/// The first chunk of a body of unknown length, unless more bytes come at once.
const FIRST_BYTES: usize = 4 * 1024;
/// The size to which the first chunk grows before a second one begins.
const SECOND_BYTES: usize = 64 * 1024;

/// Bytes to reserve for the state of filling.
pub(crate) const STATE_BYTES: u64 = size::arc::<Fill>();
/// [`STATE_BYTES`], and the additional bytes of a long body.
pub(crate) const BODY_BYTES: u64 = STATE_BYTES + CompleteBody::OTHER_BYTES;

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRefusal {
    /// The body is larger than the limit.
    TooLarge,
    /// Memory is short.
    NoRoom,
    /// It was invalidated while it was fetched.
    Invalidated,
    /// The end of the response reported a failure.
    Unwanted,
}

impl StoreRefusal {
    /// Returns true if the next response under the key will probably not be stored either, so that
    /// requests should not wait for each other. A lack of memory passes sooner.
    pub(crate) fn is_lasting(self) -> bool {
        self == Self::TooLarge
    }
}

/// Pushes a body into its object. Dropping the writer before [`ObjectWriter::finish`] aborts the
/// body: the object leaves the index.
#[derive(Debug)]
pub struct ObjectWriter<L: Lower = MemoryOnly> {
    cache: Arc<Cache<L>>,
    object: Arc<Object>,
    fill: Arc<Fill>,
    hash: u64,
    /// The reason why the object is not stored, if it is not.
    refused: Option<StoreRefusal>,
    window: bool,
    /// The limit of the window that the body becomes if it is not stored.
    window_limit: Option<WindowLimit>,
    open: bool,
    /// The reservation for the list of chunks, for a second chunk.
    spare: Option<Charge>,
}

impl<L: Lower> ObjectWriter<L> {
    /// A body to be stored. `spare` is the rest of [`BODY_BYTES`]; `window_limit` applies if the
    /// body is not stored after all.
    pub(crate) fn kept(
        cache: Arc<Cache<L>>,
        object: Arc<Object>,
        fill: Arc<Fill>,
        hash: u64,
        refused: Option<StoreRefusal>,
        spare: Charge,
        window_limit: WindowLimit,
    ) -> Self {
        let (spare, window_limit) = (Some(spare), Some(window_limit));
        Self { cache, object, fill, hash, refused, window: false, window_limit, open: true, spare }
    }

    /// A body that passes through a window.
    pub(crate) fn passing(
        cache: Arc<Cache<L>>,
        object: Arc<Object>,
        fill: Arc<Fill>,
        hash: u64,
        refused: StoreRefusal,
    ) -> Self {
        let refused = Some(refused);
        let (window_limit, spare) = (None, None);
        Self { cache, object, fill, hash, refused, window: true, window_limit, open: true, spare }
    }

    /// The object that is filled.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Returns true if the object is in the index and its body is still to be stored.
    pub fn stored(&self) -> bool {
        self.refused.is_none()
    }

    /// The reason why the object is not stored, if it is not.
    pub fn refused(&self) -> Option<StoreRefusal> {
        self.refused
    }

    /// Returns true if the body passes through a window: it is not stored, and the slowest reader
    /// sets the pace. The fetching request's reader must be attached before the first push.
    pub fn is_window(&self) -> bool {
        self.window
    }

    /// Copies `data` into the body. All of it is accepted, even with [`PushOutcome::Wait`].
    pub fn push(&mut self, data: &[u8]) -> PushOutcome {
        if !self.open {
            return PushOutcome::Abandoned;
        }
        let len = self.fill.len() + data.len() as u64;
        if self.fill.declared.is_some_and(|declared| len > declared) {
            self.fail();
            return PushOutcome::Overrun;
        }
        if !self.window && len > self.cache.config().object_bytes_max {
            count(&self.cache.ledger().too_large, 1);
            self.spill(StoreRefusal::TooLarge);
        }
        let mut rest = data;
        while !self.window {
            rest = &rest[self.fill.append(rest)..];
            if rest.is_empty() {
                return PushOutcome::Ok;
            }
            if !self.extend(rest.len()) {
                self.spill(StoreRefusal::NoRoom);
            }
        }
        match self.fill.push_window(rest) {
            PushOutcome::Abandoned => {
                self.fail();
                PushOutcome::Abandoned
            }
            push => push,
        }
    }

    /// [`ObjectWriter::push`] for a chunk that is stored without a copy. It may be a part of an
    /// allocation that is not much larger.
    pub fn push_chunk(&mut self, data: &Bytes) -> PushOutcome {
        let len = self.fill.len() + data.len() as u64;
        let is_over = self.fill.declared.is_some_and(|declared| len > declared)
            || len > self.cache.config().object_bytes_max;
        if !self.open || self.window || is_over || data.is_empty() {
            return self.push(data);
        }
        let Some(charge) = self.cache.reserve(size::class(data.len()) + CHUNK_OVERHEAD) else {
            return self.push(data);
        };
        self.fill
            .add_chunk(ChargedBytes::into_bytes(data.clone(), ChunkReservation::Stored(charge)));
        PushOutcome::Ok
    }

    /// [`crate::BodyWriter::at_most`]: unlimited while the body is stored.
    pub fn at_most(&self) -> usize {
        if self.window { self.fill.at_most() } else { usize::MAX }
    }

    /// Ready when more may be pushed: at once, unless the body passes through a window.
    ///
    /// # Errors
    /// [`AbandonedBody`] if the window has lost its readers.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AbandonedBody>> {
        self.fill.poll_room(cx)
    }

    /// [`ObjectWriter::poll_room`] as a future.
    ///
    /// # Errors
    /// As [`ObjectWriter::poll_room`].
    pub async fn room(&mut self) -> Result<(), AbandonedBody> {
        poll_fn(|cx| self.poll_room(cx)).await
    }

    /// Completes the body. Returns false if it does not have the declared length: readers see an
    /// incomplete body, and the object leaves the index.
    pub fn finish(self) -> bool {
        self.finish_with(None)
    }

    /// [`ObjectWriter::finish`] with `trailers` behind the body. Without memory for them they are
    /// dropped, as any recipient may do (RFC 9110 6.5.1).
    pub fn finish_with(mut self, trailers: Option<Trailers>) -> bool {
        let len = self.fill.len();
        if !self.open || self.fill.declared.is_some_and(|declared| declared != len) {
            self.fail();
            return false;
        }
        self.open = false;
        if !self.window {
            let body = self.seal();
            count(&self.cache.ledger().variants, u64::from(self.object.vary().is_some()));
            let mut body = self.merged(body);
            if let Some(trailers) = trailers
                && let Some(charge) = self.cache.reserve(CompleteBody::trailed_bytes(&trailers))
            {
                charge.into_ledger();
                body = body.trailed(trailers);
            }
            let place = self.cache.place(self.hash);
            self.cache.shard(place.shard).complete(place.h32, &self.object, body);
            self.object.forget_fill();
        } else if let Some(trailers) = trailers {
            self.fill.trail(trailers);
        }
        self.fill.end(FillPhase::Finished);
        true
    }

    /// Completes the body without storing it: the object leaves the index, and present readers get
    /// the whole body. Returns false as [`ObjectWriter::finish`] does.
    pub fn finish_unkept(mut self) -> bool {
        if self.open && self.refused.is_none() {
            self.refused = Some(StoreRefusal::Unwanted);
            self.withdraw(false);
        }
        self.finish()
    }

    /// Ends the body before it is complete: the object leaves the index.
    pub fn abort(mut self) {
        self.fail();
    }

    fn fail(&mut self) {
        if std::mem::take(&mut self.open) {
            self.withdraw(false);
            self.fill.end(FillPhase::Aborted);
        }
    }

    /// Removes the object, and all objects that share its body, from the index.
    fn withdraw(&self, marked: bool) {
        if !self.window {
            let place = self.cache.place(self.hash);
            let marker = marked.then(|| self.cache.marker(None, self.object.passed()));
            let mut dead = RemovedObjects::new();
            self.cache.shard(place.shard).withdraw(place.h32, &self.object, marker, &mut dead);
        }
    }

    /// Turns the body into a window, because it is too large or memory is short.
    fn spill(&mut self, why: StoreRefusal) {
        self.refused = Some(why);
        count(&self.cache.ledger().refused, 1);
        self.withdraw(why.is_lasting());
        self.window = true;
        if let Some(window_limit) = self.window_limit.take() {
            self.fill.open_window(window_limit);
        }
    }

    /// Reserves memory for `more` bytes, or for some of them. Returns false without memory.
    fn extend(&self, more: usize) -> bool {
        let (chunks, tail) = self.fill.shape();
        let widen = chunks == 0 && tail > 0 && tail < SECOND_BYTES && self.fill.declared.is_none();
        let bytes = match self.fill.declared {
            Some(declared) => {
                let missing = declared - self.fill.len();
                usize::try_from(missing).map_or(CHUNK_BYTES, |missing| missing.min(CHUNK_BYTES))
            }
            None if tail == 0 => more.clamp(FIRST_BYTES, SECOND_BYTES),
            None if widen => SECOND_BYTES,
            None => CHUNK_BYTES,
        };
        let Some(charge) = self.cache.reserve(size::class(bytes) + CHUNK_OVERHEAD) else {
            return false;
        };
        let next =
            Tail { data: Vec::with_capacity(bytes), cost: Some(ChunkReservation::Stored(charge)) };
        if widen {
            self.fill.widen_tail(next);
        } else {
            self.fill.begin_chunk(next);
        }
        true
    }

    /// `body`, or the same bytes of another variant of the key: they are stored once.
    fn merged(&self, body: CompleteBody) -> CompleteBody {
        let Some(own) = body.state().whole().filter(|_| body.is_common()) else { return body };
        let place = self.cache.place(self.hash);
        let others =
            self.cache.shard(place.shard).common_bodies(place.h32, &self.object, own.len());
        // Compared without the lock.
        let is_same = |other: &CompleteBody| {
            other.state().whole().is_some_and(|other| other.has_bytes_of(own))
        };
        let equal = others.into_iter().find(is_same);
        count(&self.cache.ledger().variants_equal, u64::from(equal.is_some()));
        equal.unwrap_or(body)
    }

    /// Makes the complete body of the pushed bytes.
    fn seal(&mut self) -> CompleteBody {
        let (mut chunks, tail) = self.fill.seal();
        let Tail { mut data, cost } = tail;
        let chunk_cost = |chunk: &Bytes| size::class(chunk.len()) + CHUNK_OVERHEAD;
        let cost_of = |chunks: &VecDeque<Bytes>| chunks.iter().map(chunk_cost).sum::<u64>();
        let Some(ChunkReservation::Stored(mut charge)) = cost else {
            if chunks.is_empty() {
                return CompleteBody::One(Box::default());
            }
            self.spare.take().map(Charge::into_ledger);
            let cost = cost_of(&chunks);
            return CompleteBody::many(chunks.into(), cost);
        };
        let exact = self.trim(&mut data, &mut charge);
        if chunks.is_empty()
            && exact
            && self.object.vary().is_some()
            && let Some(spare) = self.spare.take()
        {
            spare.into_ledger();
            let cost = charge.bytes();
            let bytes = ChargedBytes::into_bytes(data, ChunkReservation::Stored(charge));
            return CompleteBody::common(bytes, cost);
        }
        if chunks.is_empty() && exact {
            charge.shrink_to(size::class(data.len()));
            charge.into_ledger();
            let bytes = data.into_boxed_slice();
            let may_have_forms = self.object.flags().may_have_forms();
            return match self.spare.take() {
                Some(spare) if may_have_forms => {
                    spare.into_ledger();
                    CompleteBody::formed(bytes)
                }
                _ => CompleteBody::One(bytes),
            };
        }
        let cost = cost_of(&chunks) + charge.bytes();
        chunks.push_back(ChargedBytes::into_bytes(data, ChunkReservation::Stored(charge)));
        // The object returns these bytes.
        self.spare.take().map(Charge::into_ledger);
        CompleteBody::many(chunks.into(), cost)
    }

    /// Cuts the last chunk to its length. Returns false without memory for the copy.
    fn trim(&self, data: &mut Vec<u8>, charge: &mut Charge) -> bool {
        if data.len() == data.capacity() {
            return true;
        }
        let taken = size::class(data.len());
        // Shrinking may copy, so for a moment both exist.
        let Some(copy) = Charge::try_new(self.cache.ledger(), taken) else { return false };
        data.shrink_to_fit();
        charge.shrink_to(taken + CHUNK_OVERHEAD);
        drop(copy);
        data.len() == data.capacity()
    }
}

impl<L: Lower> Drop for ObjectWriter<L> {
    fn drop(&mut self) {
        self.fail();
    }
}
