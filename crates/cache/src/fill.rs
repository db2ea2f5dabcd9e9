//! A fill: a body on its way from one writer to its readers. A stored body grows without regard to
//! its readers; a window holds only what the slowest reader has not taken, and makes the writer
//! wait when it is full. A stored body allocates nothing here, because the writer brings reserved
//! chunks. Under the lock of a fill no other lock is taken, nothing is reserved and no task is
//! woken.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::{Account, HeldBytes};
use bytes::Bytes;
use message::Trailers;
use smallvec::SmallVec;

use crate::charged_bytes::{CHUNK_OVERHEAD, ChargedBytes, ChunkReservation};
use crate::ledger::Charge;
use crate::size;
use crate::slots::Slots;
use crate::sync::Mutex;

/// The most bytes of an unfinished chunk that a reader gets at once, as a copy made under the lock.
pub(crate) const COPY_BYTES: usize = 64 * 1024;
/// The smallest buffer of a window, and the least that a window holds.
pub(crate) const WINDOW_CHUNK_BYTES: usize = 4096;

/// The memory that a body may hold while it passes through.
#[derive(Clone, Debug)]
pub struct WindowLimit {
    /// Bytes after which the writer has to wait.
    pub bytes: u64,
    /// The account of the client that they are held for. Without memory left, the client gets the
    /// smallest window, which is counted with its request.
    pub account: Arc<Account>,
}

/// The error of a body that ended before it was complete: its writer failed or was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncompleteBody;

impl std::fmt::Display for IncompleteBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the body was cut before its end")
    }
}

impl std::error::Error for IncompleteBody {}

/// The error of a body without readers and without an owner: the rest need not be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbandonedBody;

impl std::fmt::Display for AbandonedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the body has lost its readers")
    }
}

impl std::error::Error for AbandonedBody {}

/// The outcome of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PushOutcome {
    /// Accepted: continue.
    Ok,
    /// Accepted: wait for room before the next push.
    Wait,
    /// The window has lost its readers: drop the fetch.
    Abandoned,
    /// More bytes than the declared length: the body is aborted.
    Overrun,
}

/// The phase of the writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillPhase {
    Open,
    /// The chunks are moving into the object; readers wait a moment.
    Sealing,
    Finished,
    Aborted,
}

/// A chunk that is being filled.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub(crate) data: Vec<u8>,
    pub(crate) cost: Option<ChunkReservation>,
}

impl Tail {
    /// A tail of `bytes` for a window, and true if the client may not hold them.
    fn of_window(bytes: usize, account: Option<&Arc<Account>>) -> (Self, bool) {
        let bytes = bytes.max(WINDOW_CHUNK_BYTES);
        let cost = size::class(bytes) + CHUNK_OVERHEAD;
        let held = account.map(|account| (account.hold(cost), account));
        let short = matches!(held, Some((Err(_), _)));
        let held = held.and_then(|(held, account)| match held {
            Ok(held) => Some(held),
            // The memory held for the request includes the smallest window.
            Err(_) if bytes <= WINDOW_CHUNK_BYTES => None,
            // Bytes that have been read already are accepted and counted.
            Err(_) => Some(account.hold_anyway(cost)),
        });
        (Self { data: Vec::with_capacity(bytes), cost: held.map(ChunkReservation::Held) }, short)
    }

    fn spare(&self) -> usize {
        self.data.capacity() - self.data.len()
    }

    fn freeze(self) -> Bytes {
        match self.cost {
            Some(cost) => ChargedBytes::into_bytes(self.data, cost),
            None => Bytes::from(self.data),
        }
    }
}

/// Trailers behind a body, held for the client that they are sent to.
#[derive(Debug)]
pub struct HeldTrailers {
    /// The fields.
    pub trailers: Trailers,
    _held: Option<HeldBytes>,
}

impl HeldTrailers {
    /// Trailers, held for the client of `account`.
    pub(crate) fn held_by(trailers: Trailers, account: Option<&Arc<Account>>) -> Self {
        let cost = size::class(size_of::<Self>()) + size::class(trailers.memory());
        // Trailers that have been read already are accepted and counted.
        Self { trailers, _held: account.map(|account| account.hold_anyway(cost)) }
    }
}

/// The position of a reader.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Offset of the next byte to read, counted from the body's beginning.
    pub(crate) at: u64,
    /// Number of a chunk that begins there or before, counted from the first chunk.
    chunk: u64,
    /// Offset of that chunk's first byte.
    begins: u64,
}

impl Cursor {
    /// Continues at `offset`.
    pub(crate) fn seek(&mut self, offset: u64) {
        if offset < self.begins {
            (self.chunk, self.begins) = (0, 0);
        }
        self.at = offset;
    }

    /// The index of the next byte in the cursor's chunk, whose length is `len` so far. `None` if
    /// the byte lies behind the chunk.
    fn within(&self, len: usize) -> Option<usize> {
        usize::try_from(self.at - self.begins).ok().filter(|at| *at < len)
    }

    /// Takes the rest of a piece that begins at the offset `begins`. `None` if the next byte lies
    /// behind the piece.
    pub(crate) fn take(&mut self, piece: &Bytes, begins: u64) -> Option<Bytes> {
        let at = usize::try_from(self.at - begins).ok().filter(|at| *at < piece.len())?;
        self.at = begins + piece.len() as u64;
        Some(piece.slice(at..))
    }

    /// Moves to the chunk behind the cursor's, whose length is `len`.
    fn pass(&mut self, len: usize) {
        self.chunk += 1;
        self.begins += len as u64;
    }
}

/// The next item for a reader.
#[derive(Debug)]
pub(crate) enum FillItem {
    Data(Bytes),
    /// A copy of the unread part of a stored body's unfinished chunk.
    Copy(Vec<u8>),
    /// The length of that part, if no copy was requested.
    Tail(usize),
    End,
    /// The body is complete, in its object.
    Whole,
}

#[derive(Debug)]
struct Follower {
    chunk: u64,
    waker: Option<Waker>,
}

/// The wakers of one watcher of a window. Each question of the writing side has a waker of its own,
/// so that no wait replaces another's waker.
#[derive(Debug, Default)]
struct Watcher {
    gone: Option<Waker>,
    taken: Option<Waker>,
}

type Wakers = SmallVec<[Waker; 4]>;

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

/// The state that a body's writer and readers share.
#[derive(Debug)]
pub(crate) struct Fill {
    /// The length that the origin declared.
    pub(crate) declared: Option<u64>,
    /// The charge for this value; `None` for a window.
    _charge: Option<Charge>,
    state: Mutex<FillState>,
}

#[derive(Debug)]
struct FillState {
    chunks: VecDeque<Bytes>,
    /// Number of `chunks[0]`, and the offset of its first byte.
    first: u64,
    base: u64,
    tail: Tail,
    len: u64,
    phase: FillPhase,
    /// Bytes that the window may hold; `None` for a stored body.
    window: Option<u64>,
    /// The window's limit while its client has memory for it, and the client's account.
    window_limit: Option<WindowLimit>,
    followers: Slots<Follower>,
    /// True once a reader has been attached.
    followed: bool,
    /// The waker of the writer that waits for room.
    room: Option<Waker>,
    /// The watchers, by their numbers.
    watchers: SmallVec<[Watcher; 1]>,
    /// The trailers behind a window's body.
    trailed: Option<Box<HeldTrailers>>,
}

impl Fill {
    pub(crate) fn new(
        declared: Option<u64>,
        window_limit: Option<WindowLimit>,
        charge: Option<Charge>,
    ) -> Self {
        let state = FillState {
            chunks: VecDeque::new(),
            first: 0,
            base: 0,
            tail: Tail::default(),
            len: 0,
            phase: FillPhase::Open,
            window: window_limit.as_ref().map(|window_limit| window_limit.bytes),
            window_limit,
            followers: Slots::default(),
            followed: false,
            room: None,
            watchers: SmallVec::new(),
            trailed: None,
        };
        Self { declared, _charge: charge, state: Mutex::new(state) }
    }

    /// Bytes pushed so far.
    pub(crate) fn len(&self) -> u64 {
        self.state.lock().len
    }

    /// Bytes pushed and not yet taken by every reader.
    pub(crate) fn held(&self) -> u64 {
        self.state.lock().held()
    }

    /// Returns true if this is a window at its end, with all bytes taken.
    pub(crate) fn is_spent(&self) -> bool {
        let state = self.state.lock();
        state.window.is_some() && state.phase == FillPhase::Finished && state.held() == 0
    }

    // The writer of a stored body.

    /// Copies what fits into the tail and wakes the readers. Returns the number of bytes copied.
    pub(crate) fn append(&self, data: &[u8]) -> usize {
        let (taken, wakers) = {
            let mut state = self.state.lock();
            let taken = data.len().min(state.tail.spare());
            state.tail.data.extend_from_slice(&data[..taken]);
            state.len += taken as u64;
            (taken, if taken > 0 { state.parked() } else { Wakers::new() })
        };
        wake(wakers);
        taken
    }

    /// Adds a finished chunk.
    pub(crate) fn add_chunk(&self, chunk: Bytes) {
        let wakers = {
            let mut state = self.state.lock();
            state.freeze_tail();
            state.len += chunk.len() as u64;
            state.chunks.push_back(chunk);
            state.parked()
        };
        wake(wakers);
    }

    /// The number of finished chunks, and the capacity of the tail.
    pub(crate) fn shape(&self) -> (u64, usize) {
        let state = self.state.lock();
        (state.first + state.chunks.len() as u64, state.tail.data.capacity())
    }

    /// Finishes the tail's chunk and begins another.
    pub(crate) fn begin_chunk(&self, next: Tail) {
        let mut state = self.state.lock();
        state.freeze_tail();
        state.tail = next;
    }

    /// Moves the tail into larger memory.
    pub(crate) fn widen_tail(&self, mut wider: Tail) {
        let narrow = {
            let mut state = self.state.lock();
            wider.data.extend_from_slice(&state.tail.data);
            std::mem::replace(&mut state.tail, wider)
        };
        drop(narrow);
    }

    /// Takes all chunks out, for the object to keep. Readers wait until [`Fill::end`].
    pub(crate) fn seal(&self) -> (VecDeque<Bytes>, Tail) {
        let mut state = self.state.lock();
        state.phase = FillPhase::Sealing;
        (std::mem::take(&mut state.chunks), std::mem::take(&mut state.tail))
    }

    // The writer of a window.

    /// Turns the body into a window: bytes that every reader has taken are freed, and the writer
    /// waits for the slowest reader.
    pub(crate) fn open_window(&self, window_limit: WindowLimit) {
        let gone = {
            let mut state = self.state.lock();
            state.window = Some(window_limit.bytes);
            state.window_limit = Some(window_limit);
            state.advance()
        };
        drop(gone);
    }

    /// Takes all of `data` into the window.
    pub(crate) fn push_window(&self, data: &[u8]) -> PushOutcome {
        let mut next: Option<(Tail, bool)> = None;
        let (push, wakers) = loop {
            let mut state = self.state.lock();
            if state.is_abandoned() {
                return PushOutcome::Abandoned;
            }
            let fits = data.len().min(state.tail.spare());
            let (now, later) = data.split_at(fits);
            if !later.is_empty() {
                let Some((mut tail, short)) = next.take_if(|(tail, _)| tail.spare() >= later.len())
                else {
                    let account = state.window_limit.as_ref().map(|it| Arc::clone(&it.account));
                    drop(state);
                    next = Some(Tail::of_window(later.len(), account.as_ref()));
                    continue;
                };
                tail.data.extend_from_slice(later);
                state.tail.data.extend_from_slice(now);
                state.freeze_tail();
                state.tail = tail;
                state.narrow(short);
            } else {
                state.tail.data.extend_from_slice(now);
            }
            state.len += data.len() as u64;
            let push = match (state.is_abandoned(), state.is_full()) {
                (true, _) => PushOutcome::Abandoned,
                (false, true) => PushOutcome::Wait,
                (false, false) => PushOutcome::Ok,
            };
            break (push, state.parked());
        };
        wake(wakers);
        push
    }

    /// Sets the trailers behind a window's body. To be called before the end.
    pub(crate) fn trail(&self, trailers: Trailers) {
        let account = self.state.lock().window_limit.as_ref().map(|it| Arc::clone(&it.account));
        let trailed = HeldTrailers::held_by(trailers, account.as_ref());
        self.state.lock().trailed = Some(Box::new(trailed));
    }

    /// Takes the trailers behind the body. They are given out once.
    pub(crate) fn take_trailed(&self) -> Option<Box<HeldTrailers>> {
        let mut state = self.state.lock();
        if state.phase == FillPhase::Finished { state.trailed.take() } else { None }
    }

    /// The most bytes to bring at once: few if the window's client is short of memory.
    pub(crate) fn at_most(&self) -> usize {
        let state = self.state.lock();
        match &state.window_limit {
            Some(WindowLimit { account, bytes }) if account.left() < *bytes => WINDOW_CHUNK_BYTES,
            Some(window_limit) => {
                usize::try_from(window_limit.bytes).unwrap_or(usize::MAX).max(WINDOW_CHUNK_BYTES)
            }
            None => usize::MAX,
        }
    }

    /// Returns true if the window's client has no memory for more.
    pub(crate) fn is_short(&self) -> bool {
        let state = self.state.lock();
        state
            .window_limit
            .as_ref()
            .is_some_and(|window_limit| state.window < Some(window_limit.bytes))
    }

    /// Ready when the window has room, or has lost the readers that would make room.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<Result<(), AbandonedBody>> {
        let mut state = self.state.lock();
        if state.is_abandoned() {
            return Poll::Ready(Err(AbandonedBody));
        }
        if !state.is_full() {
            return Poll::Ready(Ok(()));
        }
        set_waker(&mut state.room, cx);
        Poll::Pending
    }

    /// Registers a watcher and returns its number.
    pub(crate) fn watch(&self) -> usize {
        let mut state = self.state.lock();
        state.watchers.push(Watcher::default());
        state.watchers.len() - 1
    }

    /// Removes a watcher and its waits.
    pub(crate) fn unwatch(&self, number: usize) {
        let watcher = std::mem::take(&mut self.state.lock().watchers[number]);
        drop(watcher);
    }

    /// Ready when nothing is held, or no reader is left to take it.
    pub(crate) fn poll_taken(
        &self,
        watcher: usize,
        cx: &Context<'_>,
    ) -> Poll<Result<(), AbandonedBody>> {
        let mut state = self.state.lock();
        if state.is_abandoned() {
            return Poll::Ready(Err(AbandonedBody));
        }
        if state.held() == 0 {
            return Poll::Ready(Ok(()));
        }
        set_waker(&mut state.watchers[watcher].taken, cx);
        Poll::Pending
    }

    /// Ready when a window has lost its readers.
    pub(crate) fn poll_abandoned(&self, watcher: usize, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.is_abandoned() {
            return Poll::Ready(());
        }
        set_waker(&mut state.watchers[watcher].gone, cx);
        Poll::Pending
    }

    /// Returns true if a window has lost its readers.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.state.lock().is_abandoned()
    }

    /// Ends the body in this phase.
    pub(crate) fn end(&self, phase: FillPhase) {
        let wakers = {
            let mut state = self.state.lock();
            state.phase = phase;
            state.room = None;
            state.parked()
        };
        wake(wakers);
    }

    // Readers.

    /// Attaches a reader at the beginning. `None` if the beginning is gone already.
    pub(crate) fn attach(&self) -> Option<u32> {
        let mut state = self.state.lock();
        if state.first > 0 {
            return None;
        }
        state.followed = true;
        Some(state.followers.insert(Follower { chunk: 0, waker: None }))
    }

    /// Returns true if a slow reader delays no other: it is the only one of a window.
    pub(crate) fn is_for_one(&self) -> bool {
        let state = self.state.lock();
        state.window.is_some() && state.followers.len() == 1
    }

    /// Returns true if the body is incomplete for good.
    pub(crate) fn has_aborted(&self) -> bool {
        self.state.lock().phase == FillPhase::Aborted
    }

    /// Detaches a reader.
    pub(crate) fn detach(&self, place: u32) {
        let (awaited, gone) = {
            let mut state = self.state.lock();
            state.followers.remove(place);
            let gone = state.advance();
            (state.awaited(), gone)
        };
        drop(gone);
        wake(awaited);
    }

    /// The next bytes for the reader at `place`. From a stored body's unfinished chunk, a copy of
    /// at most `copied` bytes.
    pub(crate) fn poll_read(
        &self,
        place: u32,
        cursor: &mut Cursor,
        copied: usize,
        cx: &Context<'_>,
    ) -> Poll<Result<FillItem, IncompleteBody>> {
        let (step, awaited, gone) = {
            let mut state = self.state.lock();
            let step = state.read(place, cursor, copied, cx);
            let moved = state.followers.get_mut(place).is_some_and(|follower| {
                std::mem::replace(&mut follower.chunk, cursor.chunk) != cursor.chunk
            });
            let gone = if moved { state.advance() } else { SmallVec::new() };
            (step, if moved { state.awaited() } else { Wakers::new() }, gone)
        };
        drop(gone);
        wake(awaited);
        step
    }
}

fn set_waker(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *place = Some(cx.waker().clone()),
    }
}

impl FillState {
    fn freeze_tail(&mut self) {
        let tail = std::mem::take(&mut self.tail);
        if !tail.data.is_empty() {
            self.chunks.push_back(tail.freeze());
        }
    }

    fn read(
        &mut self,
        place: u32,
        cursor: &mut Cursor,
        copied: usize,
        cx: &Context<'_>,
    ) -> Poll<Result<FillItem, IncompleteBody>> {
        match self.phase {
            FillPhase::Finished if self.window.is_none() => {
                return Poll::Ready(Ok(FillItem::Whole));
            }
            FillPhase::Sealing => return self.park(place, cx),
            _ => {}
        }
        loop {
            // Only a reader that went back in a window can miss a chunk, see `advance`.
            let Some(index) = cursor.chunk.checked_sub(self.first) else {
                return Poll::Ready(Err(IncompleteBody));
            };
            if let Some(chunk) = self.chunks.get(index as usize) {
                let data = cursor.take(chunk, cursor.begins);
                cursor.pass(chunk.len());
                match data {
                    Some(data) => return Poll::Ready(Ok(FillItem::Data(data))),
                    None => continue,
                }
            }
            let tail = self.tail.data.len();
            if self.window.is_some() && tail > 0 {
                // Given as it is: bytes are copied once. Bytes that are passed over make room, too.
                self.freeze_tail();
                continue;
            }
            if let Some(at) = cursor.within(tail) {
                if copied == 0 {
                    return Poll::Ready(Ok(FillItem::Tail(tail - at)));
                }
                let data = self.tail.data[at..tail.min(at + copied)].to_vec();
                cursor.at += data.len() as u64;
                return Poll::Ready(Ok(FillItem::Copy(data)));
            }
            return match self.phase {
                FillPhase::Finished => Poll::Ready(Ok(FillItem::End)),
                FillPhase::Aborted => Poll::Ready(Err(IncompleteBody)),
                FillPhase::Open | FillPhase::Sealing => self.park(place, cx),
            };
        }
    }

    fn park(&mut self, place: u32, cx: &Context<'_>) -> Poll<Result<FillItem, IncompleteBody>> {
        if let Some(follower) = self.followers.get_mut(place) {
            set_waker(&mut follower.waker, cx);
        }
        Poll::Pending
    }

    /// The wakers of all waiting readers.
    fn parked(&mut self) -> Wakers {
        self.followers.iter_mut().filter_map(|follower| follower.waker.take()).collect()
    }

    fn held(&self) -> u64 {
        self.len - self.base
    }

    /// Limits the window to the minimum while its client has no memory for more.
    fn narrow(&mut self, short: bool) {
        if let Some(window_limit) = &self.window_limit {
            let least = window_limit.bytes.min(WINDOW_CHUNK_BYTES as u64);
            self.window = Some(if short { least } else { window_limit.bytes });
        }
    }

    fn is_full(&self) -> bool {
        self.window.is_some_and(|bytes| self.held() > bytes)
    }

    /// Before its first reader a window waits only until it is full: nothing else would wake it.
    fn is_abandoned(&self) -> bool {
        self.window.is_some() && self.followers.is_empty() && (self.followed || self.is_full())
    }

    /// Removes the chunks of a window that every reader has passed, for the caller to drop.
    fn advance(&mut self) -> SmallVec<[Bytes; 2]> {
        let mut gone = SmallVec::new();
        if self.window.is_none() {
            return gone;
        }
        let slowest = self.followers.iter().map(|follower| follower.chunk).min();
        while slowest.is_some_and(|chunk| self.first < chunk)
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.first += 1;
            self.base += chunk.len() as u64;
            gone.push(chunk);
        }
        gone
    }

    /// The wakers of the writing side whose wait is over. Room and bytes taken are reported once
    /// the window is half empty, so that a writer and a reader of equal speed do not wake each
    /// other for every chunk. Without readers all are woken.
    fn awaited(&mut self) -> Wakers {
        let mut wakers = Wakers::new();
        let Some(bytes) = self.window else { return wakers };
        let is_abandoned = self.is_abandoned();
        if self.held() <= bytes / 2 || is_abandoned {
            wakers.extend(self.room.take());
            wakers.extend(self.watchers.iter_mut().filter_map(|watcher| watcher.taken.take()));
        }
        if is_abandoned {
            wakers.extend(self.watchers.iter_mut().filter_map(|watcher| watcher.gone.take()));
        }
        wakers
    }
}
