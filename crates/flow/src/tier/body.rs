//! A body that is too large to be brought into memory: it is read from where it lies.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, ready};

use base::{Account, Held};
use bytes::Bytes;
use cache::{Aborted, Elsewhere, Object, Reading};
use disk::{Answer, Ask, Place};
use tokio::sync::oneshot;

use super::Cache;

/// Bytes that one read brings: a few blocks.
const READ_BYTES: u64 = 256 * 1024;

/// A body on the disk, which an object in memory has as its own.
#[derive(Debug)]
pub(super) struct OnDisk {
    cache: Weak<Cache>,
    hash: u64,
    /// The bits of its place, which the disk may change.
    place: AtomicU64,
    length: u64,
    object: OnceLock<Weak<Object>>,
}

impl OnDisk {
    /// The body of `length` bytes at `place`, under a key of this hash.
    pub(super) fn new(cache: &Arc<Cache>, (hash, place): (u64, Place), length: u64) -> Arc<Self> {
        let body = Arc::new(Self {
            cache: Arc::downgrade(cache),
            hash,
            place: AtomicU64::new(place.bits()),
            length,
            object: OnceLock::new(),
        });
        cache.lower().lent.lock().insert(place, Arc::downgrade(&body));
        body
    }

    /// Takes note of the stored response whose body this is.
    pub(super) fn stands_for(&self, object: &Arc<Object>) {
        _ = self.object.set(Arc::downgrade(object));
    }

    fn place(&self) -> Place {
        Place::of_bits(self.place.load(Ordering::Acquire))
    }

    /// The body can no longer be had: the response leaves.
    fn lose(&self) {
        let object = self.object.get().and_then(Weak::upgrade);
        if let (Some(cache), Some(object)) = (self.cache.upgrade(), object) {
            cache.withdraw(self.hash, &object);
        }
    }
}

impl super::Tier {
    /// Notes that the record at `old` is at `new` from now on, or is gone.
    pub(super) fn note_moved(&self, old: Place, new: Option<Place>) {
        let life = self.sets.lock().remove(&old);
        if let (Some(new), Some(life)) = (new, life) {
            self.sets.lock().insert(new, life);
        }
        // A body that ends takes the lock, too.
        let body = self.lent.lock().remove(&old).and_then(|body| body.upgrade());
        if let (Some(new), Some(body)) = (new, body) {
            body.place.store(new.bits(), Ordering::Release);
            self.lent.lock().insert(new, Arc::downgrade(&body));
        }
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.upgrade() {
            let mut lent = cache.lower().lent.lock();
            let place = self.place();
            // Another one may have come up from there meanwhile.
            if lent.get(&place).is_some_and(|body| std::ptr::eq(body.as_ptr(), self)) {
                lent.remove(&place);
            }
        }
    }
}

impl Elsewhere for OnDisk {
    fn length(&self) -> u64 {
        self.length
    }

    fn open(self: Arc<Self>) -> Box<dyn Reading> {
        let until = self.length;
        let (pieces, step) = (VecDeque::new(), DiskStep::Idle);
        Box::new(DiskReading { body: self, at: 0, until, pieces, step })
    }

    fn memory(&self) -> u64 {
        size_of::<Self>() as u64
    }

    fn told(&self) -> Option<String> {
        Some("its body is on disk".to_owned())
    }
}

/// A read of such a body.
#[derive(Debug)]
struct DiskReading {
    body: Arc<OnDisk>,
    /// The offset behind what has been read.
    at: u64,
    /// The offset of the first byte that is not wanted.
    until: u64,
    /// Bytes that have been read and not been asked for.
    pieces: VecDeque<Bytes>,
    step: DiskStep,
}

#[derive(Debug)]
enum DiskStep {
    Idle,
    /// The disk is asked for what is at this place.
    Asked(Place, oneshot::Receiver<Result<Answer, disk::Error>>),
}

impl DiskReading {
    fn take(&mut self, answer: Answer) -> bool {
        self.at += answer.body.iter().map(|piece| piece.len() as u64).sum::<u64>();
        self.pieces = answer.body.into_iter().filter(|piece| !piece.is_empty()).collect();
        !self.pieces.is_empty()
    }

    /// Asks the disk for the next bytes; true if they have been there already.
    fn ask(&mut self, cache: &Arc<Cache>) -> Result<bool, Aborted> {
        let store = cache.lower().store.get().ok_or(Aborted)?;
        let (place, hash) = (self.body.place(), self.body.hash);
        let ask = Ask::range(self.at..self.until.min(self.at + READ_BYTES));
        if let Some(answer) = store.disk.read_now(place, hash, &ask) {
            return Ok(self.take(answer));
        }
        let asked = store.ask(place, hash, ask);
        self.step = DiskStep::Asked(place, asked);
        Ok(false)
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Aborted>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Poll::Ready(Ok(Some(piece)));
            }
            if self.at >= self.body.length {
                return Poll::Ready(Ok(None));
            }
            match &mut self.step {
                DiskStep::Idle => {
                    self.until = self.until.max(self.at + 1).min(self.body.length);
                    let cache = self.body.cache.upgrade().ok_or(Aborted)?;
                    self.ask(&cache)?;
                }
                DiskStep::Asked(place, asked) => {
                    let answer = ready!(Pin::new(asked).poll(cx));
                    let was_at = *place;
                    self.step = DiskStep::Idle;
                    let has_come =
                        answer.is_ok_and(|answer| answer.is_ok_and(|answer| self.take(answer)));
                    // It may have moved on meanwhile.
                    if !has_come && self.body.place() == was_at {
                        return Poll::Ready(Err(Aborted));
                    }
                }
            }
        }
    }
}

/// Bytes that are held for a client.
struct ForClient(Bytes, #[expect(dead_code, reason = "it gives back when dropped")] Held);

impl AsRef<[u8]> for ForClient {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Reading for DiskReading {
    fn seek(&mut self, offset: u64) {
        self.at = offset;
        self.pieces.clear();
        self.step = DiskStep::Idle;
    }

    fn until(&mut self, offset: u64) {
        self.until = offset;
    }

    fn poll_next(
        &mut self,
        account: Option<&Arc<Account>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Aborted>> {
        let next = ready!(self.next(cx));
        if next.is_err() {
            self.body.lose();
        }
        Poll::Ready(next.map(|piece| {
            piece.map(|piece| match account {
                Some(account) => {
                    let held = account.hold_anyway(piece.len() as u64);
                    Bytes::from_owner(ForClient(piece, held))
                }
                None => piece,
            })
        }))
    }
}
