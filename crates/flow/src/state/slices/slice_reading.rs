//! Slice reading: a client's read of a set. Each slice is looked up, waited for or ordered when it
//! is reached, and the next ones ahead of a client that reads on.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use base::Account;
use base::units::Bytes as Size;
use bytes::Bytes;
use cache::{
    BeginOptions, CacheLookup, ExternalBody, ExternalBodyReader, IncompleteBody, Object, Reader,
    Ticket, WaiterOutcome,
};
use tokio::sync::oneshot;

use crate::state::slices::persistence::kept;
use crate::state::slices::{SliceMemory, SliceOrder, SliceSet};
use crate::state::tier::MissStep;

/// Slices that are counted for operators.
const COUNTED_MAX: u64 = 16 * 1024;
/// Further tries for one slice.
const TRIES_MAX: u32 = 2;

/// A read of a set.
pub(crate) struct SliceReading {
    set: Arc<SliceSet>,
    /// The reader's number in the set.
    number: u64,
    /// The offset of its next byte.
    at: u64,
    /// The offset at which it began.
    began: u64,
    /// The offset of the first unwanted byte.
    until: u64,
    /// The slice up to which the next ones were ordered.
    ahead_of: Option<u64>,
    /// Failed tries for this slice.
    tries: u32,
    step: SliceFetchState,
}

/// The state of a read.
enum SliceFetchState {
    /// No source of the next bytes.
    Idle,
    /// Its own order.
    Ordered(oneshot::Receiver<Reader>),
    /// Another reader's order.
    Joined(Ticket),
    /// The slice.
    Slice(Reader),
}

impl SliceReading {
    pub(crate) fn new(set: Arc<SliceSet>) -> Self {
        let (number, until) = (set.enter(), set.edition.length);
        let (at, began, ahead_of, tries, step) = (0, 0, None, 0, SliceFetchState::Idle);
        Self { set, number, at, began, until, ahead_of, tries, step }
    }

    /// Finds the slice of the next byte.
    fn begin(&mut self, account: Option<&Arc<Account>>) -> Result<SliceFetchState, IncompleteBody> {
        let memory = self.set.life.memory.upgrade().ok_or(IncompleteBody)?;
        if self.set.has_ended() {
            return Err(IncompleteBody);
        }
        let slice = self.set.slice_at(self.at);
        let key = self.set.key(&memory.seed, slice);
        let now_ms = rt::now().mono_ms;
        if let CacheLookup::Object(object) = memory.cache.lookup(&key, &mut |_, _| {}, now_ms) {
            return self.follow(&object, account);
        }
        let options = BeginOptions::default();
        match memory.cache.begin(&key, &mut |_, _| {}, options, now_ms) {
            MissStep::Object(object) => self.follow(&object, account),
            MissStep::Wait(ticket) => {
                self.set.joined.fetch_add(1, Ordering::Relaxed);
                Ok(SliceFetchState::Joined(ticket))
            }
            MissStep::Full => Err(IncompleteBody),
            MissStep::Lead(lead) | MissStep::Alone(lead) => {
                let (reply, ordered) = oneshot::channel();
                let set = Arc::clone(&self.set);
                let account = account.cloned();
                let order = SliceOrder { set, slice, lead, reply: Some(reply), account };
                self.set.orders.send(order).map_err(|_| IncompleteBody)?;
                Ok(SliceFetchState::Ordered(ordered))
            }
        }
    }

    /// Continues in a slice.
    fn follow(
        &mut self,
        object: &Arc<Object>,
        account: Option<&Arc<Account>>,
    ) -> Result<SliceFetchState, IncompleteBody> {
        let reader = object.reader();
        // The slice passes to others and began before.
        if reader.is_behind() { self.retry_slice() } else { Ok(self.read_from(reader, account)) }
    }

    fn read_from(&self, mut reader: Reader, account: Option<&Arc<Account>>) -> SliceFetchState {
        if let Some(account) = account {
            reader.hold_for(account);
        }
        reader.seek(self.at % self.set.shape.slice_bytes);
        SliceFetchState::Slice(reader)
    }

    /// Tries once more, if permitted.
    fn retry_slice(&mut self) -> Result<SliceFetchState, IncompleteBody> {
        self.tries += 1;
        if self.tries > TRIES_MAX { Err(IncompleteBody) } else { Ok(SliceFetchState::Idle) }
    }

    /// Counts bytes read.
    fn advance(&mut self, bytes: u64) {
        let slice = self.set.slice_at(self.at);
        self.at += bytes;
        let next = self.set.slice_at(self.at);
        // A client that has read half a slice probably reads on.
        let reads_on = self.at - self.began >= self.set.shape.slice_bytes / 2;
        if reads_on && self.ahead_of.is_none_or(|of| of < next) {
            self.ahead_of = Some(next);
            if let Some(memory) = self.set.life.memory.upgrade() {
                self.order_ahead(&memory, next);
            }
        }
        if next != slice {
            (self.step, self.tries) = (SliceFetchState::Idle, 0);
            self.set.move_reader(self.number, Some(next));
        }
    }

    /// Orders the slices behind `slice` that are neither stored nor being fetched.
    fn order_ahead(&self, memory: &SliceMemory, slice: u64) {
        for slice in slice + 1..=slice + self.set.shape.ahead {
            if slice >= self.set.count() || self.set.range(slice).start >= self.until {
                return;
            }
            let key = self.set.key(&memory.seed, slice);
            let now_ms = rt::now().mono_ms;
            let begun = memory.cache.begin(&key, &mut |_, _| {}, BeginOptions::default(), now_ms);
            if let MissStep::Lead(lead) = begun {
                let set = Arc::clone(&self.set);
                let order = SliceOrder { set, slice, lead, reply: None, account: None };
                // Without the core's task the order is dropped, which wakes its waiters.
                drop(self.set.orders.send(order));
            }
        }
    }
}

impl ExternalBodyReader for SliceReading {
    fn seek(&mut self, offset: u64) {
        let (before, slice) = (self.set.slice_at(self.at), self.set.slice_at(offset));
        (self.at, self.began) = (offset, offset);
        if slice == before {
            if let SliceFetchState::Slice(reader) = &mut self.step {
                reader.seek(offset % self.set.shape.slice_bytes);
            }
            return;
        }
        (self.step, self.tries, self.ahead_of) = (SliceFetchState::Idle, 0, None);
        self.set.move_reader(self.number, Some(slice));
    }

    fn until(&mut self, offset: u64) {
        self.until = offset;
    }

    fn poll_next(
        &mut self,
        account: Option<&Arc<Account>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        loop {
            if self.at >= self.set.edition.length {
                return Poll::Ready(Ok(None));
            }
            self.step = match &mut self.step {
                SliceFetchState::Idle => self.begin(account)?,
                SliceFetchState::Ordered(ordered) => match ready!(Pin::new(ordered).poll(cx)) {
                    Ok(reader) => self.read_from(reader, account),
                    Err(_) => self.retry_slice()?,
                },
                SliceFetchState::Joined(ticket) => match ready!(Pin::new(ticket).poll(cx)) {
                    WaiterOutcome::Ready(object) => self.follow(&object, account)?,
                    WaiterOutcome::Refused | WaiterOutcome::Failed | WaiterOutcome::Again => {
                        self.retry_slice()?
                    }
                },
                SliceFetchState::Slice(reader) => match ready!(reader.poll_next(cx)) {
                    Ok(Some(data)) => {
                        self.advance(data.len() as u64);
                        return Poll::Ready(Ok(Some(data)));
                    }
                    Ok(None) | Err(IncompleteBody) => self.retry_slice()?,
                },
            };
        }
    }
}

impl fmt::Debug for SliceReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SliceReading").field("set", &self.set).field("at", &self.at).finish()
    }
}

impl Drop for SliceReading {
    fn drop(&mut self) {
        self.set.move_reader(self.number, None);
    }
}

impl ExternalBody for SliceSet {
    fn length(&self) -> u64 {
        self.edition.length
    }

    fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader> {
        Box::new(SliceReading::new(self))
    }

    fn memory(&self) -> u64 {
        let request = &self.source.request;
        let fields = request.headers.memory() + request.target.len() + request.host.len();
        let owner_request =
            self.source.owner_request.as_ref().map_or(0, |owner_request| owner_request.memory());
        (size_of::<Self>() + fields + self.edition.coding.len() + owner_request) as u64
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn kept(&self) -> Option<Vec<u8>> {
        (!self.has_ended()).then(|| kept(self))
    }

    fn life(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        (!self.has_ended()).then(|| Arc::clone(&self.life) as _)
    }

    fn told(&self) -> Option<String> {
        let memory = self.life.memory.upgrade()?;
        let (count, size) = (self.count(), Size(self.shape.slice_bytes));
        let looked_at = count.min(COUNTED_MAX);
        let is_there = |number: &u64| {
            let seen = memory.cache.peek(&self.key(&memory.seed, *number), &mut |_, _| {});
            seen.found.is_some() || seen.below > 0
        };
        let there = (0..looked_at).filter(is_there).count();
        let of = if looked_at < count {
            format!("the first {looked_at} of {count}")
        } else {
            count.to_string()
        };
        Some(format!("slices: {there} of {of}, of {size} each"))
    }
}
