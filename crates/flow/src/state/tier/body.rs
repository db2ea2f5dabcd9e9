//! Disk body: a body too large for memory. It is read from the disk, even while it is being
//! written.

use std::any::Any;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use base::{Account, HeldBytes};
use bytes::Bytes;
use cache::{BodyOpenError, ExternalBody, ExternalBodyReader, IncompleteBody, Object};
use disk::{ReadContinuation, RecordAddress, RecordData, RecordRequest, SegmentPin};
use parking_lot::Mutex;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::oneshot;

use super::intake::{Intake, IntakeProgress};
use super::store::Store;
use super::{Cache, Tier};

/// Bytes that one read fetches: a few blocks.
const READ_BYTES: u64 = 256 * 1024;
/// Bytes taken from the page cache at once: they are still in the processor's cache when they are
/// sent.
const NOW_BYTES: u64 = 128 * 1024;

/// A body on the disk, used as the body of an object in memory.
#[derive(Debug)]
pub(crate) struct DiskBody {
    cache: Weak<Cache>,
    hash: u64,
    /// The bits of its address, which the disk may change; [`NOWHERE`] while it arrives.
    place: AtomicU64,
    length: u64,
    /// The stored response whose body it is, if that is in memory.
    object: Mutex<Weak<Object>>,
    /// The intake of a body that arrived in this process.
    coming: Option<Intake>,
    /// The beginning, if it has been read.
    prefix: BodyPrefix,
    /// Its readers, and the pin that keeps the record in place for them.
    readers: Mutex<DiskReaders>,
    /// The index contains its address, or did.
    is_entered: AtomicBool,
    /// The index does not contain it: the last reader releases the record.
    is_parting: AtomicBool,
}

/// Readers of a disk body.
#[derive(Debug, Default)]
struct DiskReaders {
    count: u32,
    hold: Option<SegmentPin>,
}

/// The beginning of a body that was read, and the facts about the rest.
#[derive(Debug, Default)]
pub(crate) struct BodyPrefix {
    pieces: Vec<Bytes>,
    seal: Option<ReadContinuation>,
}

impl BodyPrefix {
    /// The beginning in `answer`.
    pub(crate) fn of(answer: RecordData) -> Self {
        Self { pieces: answer.body, seal: answer.seal }
    }

    /// The facts without the bytes, for a body that stays on the disk.
    pub(crate) fn without_bytes(answer: &RecordData) -> Self {
        Self { pieces: Vec::new(), seal: answer.seal }
    }

    fn size(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    /// The bytes from `at` on.
    fn from(&self, at: u64) -> VecDeque<Bytes> {
        let mut before = at;
        let mut rest = VecDeque::new();
        for piece in &self.pieces {
            let length = piece.len() as u64;
            if before < length {
                rest.push_back(piece.slice(before as usize..));
            }
            before = before.saturating_sub(length);
        }
        rest
    }
}

/// No address: that of a volume, segment and unit that cannot exist.
const NOWHERE: u64 = u64::MAX;

impl DiskBody {
    /// The body of `length` bytes at `place`, under a key of this hash: shared with its present
    /// readers.
    pub(crate) fn at(
        cache: &Arc<Cache>,
        hash: u64,
        place: RecordAddress,
        length: u64,
        prefix: BodyPrefix,
    ) -> Arc<Self> {
        let mut lent = cache.lower().lent.lock();
        if let Some(body) = lent.get(&place).and_then(Weak::upgrade) {
            return body;
        }
        let body = Arc::new(Self::of(cache, hash, length, prefix, None));
        body.is_entered.store(true, Ordering::Relaxed);
        body.place.store(place.bits(), Ordering::Release);
        lent.insert(place, Arc::downgrade(&body));
        body
    }

    /// A body of `length` bytes that is arriving.
    pub(crate) fn coming(cache: &Arc<Cache>, hash: u64, length: u64, part_bytes: u64) -> Arc<Self> {
        let coming = Some(Intake::new(part_bytes));
        Arc::new(Self::of(cache, hash, length, BodyPrefix::default(), coming))
    }

    fn of(
        cache: &Arc<Cache>,
        hash: u64,
        length: u64,
        prefix: BodyPrefix,
        coming: Option<Intake>,
    ) -> Self {
        Self {
            cache: Arc::downgrade(cache),
            hash,
            place: AtomicU64::new(NOWHERE),
            length,
            object: Mutex::default(),
            coming,
            prefix,
            readers: Mutex::default(),
            is_entered: AtomicBool::new(false),
            is_parting: AtomicBool::new(false),
        }
    }

    /// Moves the complete body to its record at `place`, which the index must enter.
    pub(crate) fn finish_at(self: &Arc<Self>, cache: &Cache, place: RecordAddress) {
        cache.lower().part_later(self);
        self.lies_at(cache.lower(), place);
        cache.lower().lent.lock().insert(place, Arc::downgrade(self));
    }

    /// Notes its address, and pins the record if it has readers.
    fn lies_at(&self, tier: &Tier, place: RecordAddress) {
        self.place.store(place.bits(), Ordering::Release);
        let mut readers = self.readers.lock();
        if readers.count > 0 {
            // Without a new pin the parts keep theirs.
            readers.hold = self.hold(tier).or_else(|| readers.hold.take());
        }
    }

    fn hold(&self, tier: &Tier) -> Option<SegmentPin> {
        let store = tier.store.get()?;
        store.disk.hold(self.place(), store.read_share.load(Ordering::Relaxed))
    }

    /// Registers a reader. A reader that `can_do_without` is refused if the record is about to be
    /// released, or if it would pin more than permitted.
    fn enter(&self, can_do_without: bool) -> Result<(), BodyOpenError> {
        let mut readers = self.readers.lock();
        if readers.hold.is_none() && self.place.load(Ordering::Acquire) != NOWHERE {
            let held = self.cache.upgrade().and_then(|cache| self.hold(cache.lower()));
            match held {
                None if can_do_without => return Err(BodyOpenError::Gone),
                Some(hold) if can_do_without && !hold.is_within() => {
                    return Err(BodyOpenError::Full);
                }
                held => readers.hold = held,
            }
        }
        readers.count += 1;
        Ok(())
    }

    /// Removes a reader.
    fn leave(&self) {
        let mut readers = self.readers.lock();
        readers.count -= 1;
        if readers.count == 0 {
            readers.hold = None;
        }
    }

    /// The intake, while the body arrives.
    pub(crate) fn intake(&self) -> Option<&Intake> {
        self.coming.as_ref().filter(|coming| !coming.is_over())
    }

    /// The address that the index must enter for `object`: once, when its body is complete on disk.
    pub(crate) fn to_enter(object: &Object) -> Option<RecordAddress> {
        let body: &Self = object.elsewhere()?.as_any()?.downcast_ref()?;
        let place = body.place.load(Ordering::Acquire);
        let is_new = place != NOWHERE && !body.is_entered.swap(true, Ordering::AcqRel);
        if is_new && let Some(cache) = body.cache.upgrade() {
            cache.lower().stay(body);
        }
        is_new.then(|| RecordAddress::of_bits(place))
    }

    /// The body of `object` if the index no longer contains its record: an origin has confirmed the
    /// object, and the head on disk is older.
    pub(crate) fn released_body(object: &Object) -> Option<&Self> {
        let body: &Self = object.elsewhere()?.as_any()?.downcast_ref()?;
        let is_left = body.is_parting.load(Ordering::Acquire);
        (is_left && body.is_entered.load(Ordering::Acquire)).then_some(body)
    }

    /// Writes the record again under the new head of `object`, which is in the index. Returns the
    /// address for the index.
    pub(crate) fn rehead(
        &self,
        tier: &Tier,
        store: &Store,
        object: &Arc<Object>,
    ) -> Option<RecordAddress> {
        let now = rt::now();
        if !may_answer(object, now.mono_ms) || !store.is_worth_it(object) {
            return None;
        }
        let was = self.place();
        let tell = |place: RecordAddress| {
            self.lies_at(tier, place);
            let mut lent = tier.lent.lock();
            if let Some(body) = lent.remove(&was) {
                lent.insert(place, body);
            }
        };
        let place = store.disk.replace_head(was, store.entry_of_received(object, now), tell)?;
        tier.stay(self);
        self.stands_for(object);
        Some(place)
    }

    /// Notes the stored response whose body this is.
    pub(crate) fn stands_for(&self, object: &Arc<Object>) {
        *self.object.lock() = Arc::downgrade(object);
    }

    /// The hash of its key.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    fn place(&self) -> RecordAddress {
        RecordAddress::of_bits(self.place.load(Ordering::Acquire))
    }

    /// Removes the response, whose body is lost.
    pub(crate) fn lose(&self) {
        let object = self.object.lock().upgrade();
        let Some(cache) = self.cache.upgrade() else { return };
        match object {
            Some(object) => cache.withdraw(self.hash, &object),
            // The response was lent, and is not in memory.
            None => _ = cache.drop_cold(self.hash, self.place()),
        }
    }
}

impl Tier {
    /// Notes that the record at `old` moved to `new`, or is gone.
    pub(crate) fn note_moved(&self, old: RecordAddress, new: Option<RecordAddress>) {
        let life = self.sets.lock().remove(&old);
        if let (Some(new), Some(life)) = (new, life) {
            self.sets.lock().insert(new, life);
        }
        // Dropping a body takes the lock too.
        let body = self.lent.lock().remove(&old).and_then(|body| body.upgrade());
        if let (Some(new), Some(body)) = (new, body) {
            body.lies_at(self, new);
            self.lent.lock().insert(new, Arc::downgrade(&body));
        }
    }
}

impl Tier {
    /// Notes that the index has dropped the record at `place`; true if readers delay its release.
    pub(crate) fn forget_later(&self, place: RecordAddress) -> bool {
        let body = self.lent.lock().get(&place).and_then(Weak::upgrade);
        // Dropping a body takes the lock too.
        body.inspect(|body| self.part_later(body)).is_some()
    }

    fn part_later(&self, body: &DiskBody) {
        if !body.is_parting.swap(true, Ordering::AcqRel) {
            self.parting.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn stay(&self, body: &DiskBody) {
        if body.is_parting.swap(false, Ordering::AcqRel) {
            self.parting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Returns true if there are records that no lookup finds and that readers keep.
    pub(crate) fn has_parting(&self) -> bool {
        self.parting.load(Ordering::Acquire) > 0
    }
}

impl Drop for DiskBody {
    fn drop(&mut self) {
        let Some(cache) = self.cache.upgrade() else { return };
        let place = self.place();
        {
            let mut lent = cache.lower().lent.lock();
            // Another body of this record may exist by now.
            if lent.get(&place).is_some_and(|body| std::ptr::eq(body.as_ptr(), self)) {
                lent.remove(&place);
            }
        }
        if self.is_parting.load(Ordering::Acquire) {
            if let Some(disk) = cache.lower().disk() {
                disk.forget(place);
            }
            cache.lower().stay(self);
        }
    }
}

impl ExternalBody for DiskBody {
    fn length(&self) -> u64 {
        self.length
    }

    fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader> {
        _ = self.enter(false);
        Box::new(DiskReading::new(self))
    }

    fn open_within(self: Arc<Self>) -> Result<Box<dyn ExternalBodyReader>, BodyOpenError> {
        let entered = self.enter(true);
        if entered == Err(BodyOpenError::Gone) {
            self.lose();
        }
        entered.map(|()| Box::new(DiskReading::new(self)) as _)
    }

    fn memory(&self) -> u64 {
        let parts = self.coming.as_ref().map_or(0, |coming| coming.parts_of(self.length));
        (size_of::<Self>() as u64)
            + parts * size_of::<disk::PartRecord>() as u64
            + self.prefix.size()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn told(&self) -> Option<String> {
        Some(match self.intake() {
            Some(coming) => {
                let (come, all) = (coming.len(), self.length);
                format!("its body is on its way to the disk: {come} of {all} bytes have come")
            }
            None => "its body is on disk".to_owned(),
        })
    }
}

/// A read of a disk body.
#[derive(Debug)]
struct DiskReading {
    body: Arc<DiskBody>,
    /// The reader's number in the intake while the body arrives.
    number: Option<u64>,
    /// The offset behind the bytes read.
    at: u64,
    /// The offset of the first unwanted byte.
    until: u64,
    /// Bytes that were read and not taken.
    pieces: VecDeque<Bytes>,
    step: DiskStep,
}

#[derive(Debug)]
enum DiskStep {
    Idle,
    /// A read of the disk at this address is in progress.
    Asked(RecordAddress, oneshot::Receiver<Result<RecordData, disk::Error>>),
    /// The body has not arrived so far.
    Waiting(Pin<Box<OwnedNotified>>),
}

impl DiskReading {
    /// A read by a registered reader.
    fn new(body: Arc<DiskBody>) -> Self {
        let number = body.intake().map(Intake::enter);
        let (pieces, step, until) = (VecDeque::new(), DiskStep::Idle, body.length);
        Self { body, number, at: 0, until, pieces, step }
    }

    fn take(&mut self, answer: RecordData) -> bool {
        self.at += answer.body.iter().map(|piece| piece.len() as u64).sum::<u64>();
        self.pieces = answer.body.into_iter().filter(|piece| !piece.is_empty()).collect();
        !self.pieces.is_empty()
    }

    /// Starts to get the next bytes.
    fn begin(&mut self) -> Result<(), IncompleteBody> {
        self.until = self.until.max(self.at + 1).min(self.body.length);
        let wanted = self.at..self.until.min(self.at + READ_BYTES);
        let coming = self.number.zip(self.body.coming.as_ref());
        let Some((number, coming)) = coming else {
            let begun = self.body.prefix.from(self.at);
            if !begun.is_empty() {
                self.pieces = begun;
                self.at = self.body.prefix.size();
                return Ok(());
            }
            return self
                .ask(self.body.place(), RecordRequest::range(wanted).of(self.body.prefix.seal));
        };
        match coming.next(number, self.at) {
            IntakeProgress::Bytes(pieces) => {
                self.at += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
                self.pieces = pieces.into();
                Ok(())
            }
            IntakeProgress::Part(part, behind) => {
                let wanted = behind..behind + (wanted.end - wanted.start);
                self.ask(part.place(), RecordRequest::part(&part, wanted))
            }
            IntakeProgress::Wait(more) => {
                self.step = DiskStep::Waiting(Box::pin(more));
                Ok(())
            }
            IntakeProgress::Kept => self.ask(self.body.place(), RecordRequest::range(wanted)),
            IntakeProgress::Broken => Err(IncompleteBody),
        }
    }

    /// Requests the next bytes of the disk.
    fn ask(&mut self, place: RecordAddress, ask: RecordRequest) -> Result<(), IncompleteBody> {
        let cache = self.body.cache.upgrade().ok_or(IncompleteBody)?;
        let store = cache.lower().store.get().ok_or(IncompleteBody)?;
        let now = store.disk.read_now(place, self.body.hash, &ask.at_most(NOW_BYTES));
        if !now.is_some_and(|answer| self.take(answer)) {
            let asked = store.ask(place, self.body.hash, ask);
            self.step = DiskStep::Asked(place, asked);
        }
        Ok(())
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Poll::Ready(Ok(Some(piece)));
            }
            if self.at >= self.body.length {
                return Poll::Ready(Ok(None));
            }
            match &mut self.step {
                DiskStep::Idle => self.begin()?,
                DiskStep::Waiting(more) => {
                    ready!(more.as_mut().poll(cx));
                    self.step = DiskStep::Idle;
                }
                DiskStep::Asked(place, asked) => {
                    let answer = ready!(Pin::new(asked).poll(cx));
                    let was_at = *place;
                    self.step = DiskStep::Idle;
                    let answer = match answer {
                        Ok(Ok(answer)) => Some(answer),
                        // The next read may find a faster disk.
                        Ok(Err(disk::Error::Late | disk::Error::Busy)) => {
                            return Poll::Ready(Err(IncompleteBody));
                        }
                        Ok(Err(_)) | Err(_) => None,
                    };
                    let has_come = answer.is_some_and(|answer| self.take(answer));
                    // The record may have moved meanwhile, or the parts become one record.
                    if !has_come && !self.has_moved(was_at) {
                        self.body.lose();
                        return Poll::Ready(Err(IncompleteBody));
                    }
                }
            }
        }
    }

    /// Returns true if the next bytes are at another address now.
    fn has_moved(&self, was_at: RecordAddress) -> bool {
        let next = self.number.zip(self.body.coming.as_ref());
        match next.map(|(number, coming)| coming.next(number, self.at)) {
            None | Some(IntakeProgress::Kept) => self.body.place() != was_at,
            Some(IntakeProgress::Part(part, _)) => part.place() != was_at,
            Some(IntakeProgress::Bytes(_) | IntakeProgress::Wait(_) | IntakeProgress::Broken) => {
                true
            }
        }
    }
}

impl Drop for DiskReading {
    fn drop(&mut self) {
        if let Some((number, coming)) = self.number.zip(self.body.coming.as_ref()) {
            coming.leave(number);
        }
        self.body.leave();
    }
}

/// Bytes reserved for a client.
struct ClientBytes(Bytes, #[expect(dead_code, reason = "it gives back when dropped")] HeldBytes);

impl AsRef<[u8]> for ClientBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ExternalBodyReader for DiskReading {
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
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        let next = ready!(self.next(cx));
        Poll::Ready(next.map(|piece| {
            piece.map(|piece| match account {
                Some(account) => {
                    let held = account.hold_anyway(piece.len() as u64);
                    Bytes::from_owner(ClientBytes(piece, held))
                }
                None => piece,
            })
        }))
    }
}

/// Returns true if the whole response is in memory, in slices, or on disk under an older head, and
/// may still answer.
pub(crate) fn may_answer(object: &Object, now_ms: u64) -> bool {
    let end_ms = end_ms(object);
    let is_all = object.whole().is_some()
        || object.elsewhere().is_some_and(|body| body.life().is_some())
        || DiskBody::released_body(object).is_some();
    is_all && !object.flags().is_mark() && i64::try_from(now_ms).is_ok_and(|now| now < end_ms)
}

/// The time from which the response is useless, of the monotonic clock.
pub(crate) fn end_ms(object: &Object) -> i64 {
    let stale = [object.stale_if_error_ms(), object.stale_if_unreachable_ms()];
    let stale_ms = stale.into_iter().fold(object.grace_ms(), u64::max);
    object.fresh_until_ms().saturating_add_unsigned(stale_ms)
}
