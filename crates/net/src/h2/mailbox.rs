//! Mailbox of a connection: messages from its requests' tasks, and the bound on how far a task may
//! be ahead of its client.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;

use base::Counter;
use bytes::Bytes;
use cache::{BodyDerivation, HeldTrailers};
use flow::Reply;
use h2::StreamHandle;
use message::Response;

use crate::core::CoreCtx;

/// Bytes of a body, approximately, that its task may have sent and the client not taken.
const AHEAD: usize = 4 * 1024;

/// A task's message about its stream.
pub(crate) enum StreamMessage {
    /// An interim response.
    Interim(Box<Response>),
    /// The reply. With a feed, its body comes in pieces; `length` is then the length of the whole
    /// body.
    Reply { reply: Box<Reply>, feed: Option<Rc<BodyBackpressure>>, length: Option<u64> },
    /// More of the body.
    Piece(Bytes),
    /// The body is complete; trailers may follow it.
    End(Option<Box<HeldTrailers>>),
    /// The body has ended early.
    Broke,
}

/// A connection's mailbox.
#[derive(Default)]
pub(crate) struct Mailbox {
    items: RefCell<VecDeque<(StreamHandle, StreamMessage)>>,
    taker: RefCell<Option<Waker>>,
}

impl Mailbox {
    pub(crate) fn put(&self, stream: StreamHandle, item: StreamMessage) {
        self.items.borrow_mut().push_back((stream, item));
        self.wake();
    }

    /// Wakes the connection.
    pub(crate) fn wake(&self) {
        let taker = self.taker.borrow_mut().take();
        if let Some(taker) = taker {
            taker.wake();
        }
    }

    pub(crate) fn take(&self) -> Option<(StreamHandle, StreamMessage)> {
        self.items.borrow_mut().pop_front()
    }

    /// Frees the capacity beyond `kept` messages.
    pub(crate) fn fit(&self, kept: usize) {
        self.items.borrow_mut().shrink_to(kept);
    }

    /// Wakes the calling task at the next message.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        let mut taker = self.taker.borrow_mut();
        if !taker.as_ref().is_some_and(|taker| taker.will_wake(cx.waker())) {
            *taker = Some(cx.waker().clone());
        }
    }
}

/// Back-pressure: suspends a task that is faster than its client.
#[derive(Default)]
pub(crate) struct BodyBackpressure {
    held: Cell<usize>,
    waiting: RefCell<Option<Waker>>,
    making: Cell<BodyDerivation>,
    /// The client's window permits further bytes.
    is_open: Cell<bool>,
}

impl BodyBackpressure {
    /// Back-pressure for a body of the given derivation.
    pub(crate) fn of(making: BodyDerivation) -> Self {
        Self { making: Cell::new(making), ..Self::default() }
    }

    /// The derivation of the body's bytes.
    pub(crate) fn making(&self) -> BodyDerivation {
        self.making.get()
    }

    /// Sets whether further bytes may be produced.
    pub(crate) fn open(&self, is_open: bool) {
        self.is_open.set(is_open);
        self.wake();
    }

    fn has_room(&self) -> bool {
        self.held.get() < AHEAD && (self.making.get() == BodyDerivation::None || self.is_open.get())
    }

    fn wake(&self) {
        if self.has_room() {
            let waiting = self.waiting.borrow_mut().take();
            if let Some(waiting) = waiting {
                waiting.wake();
            }
        }
    }

    /// Counts bytes that the task has sent.
    pub(crate) fn note_produced(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
    }

    /// Counts bytes that the connection has forwarded.
    pub(crate) fn note_consumed(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes));
        self.wake();
    }

    /// Ready when more may be sent.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        if self.has_room() {
            return Poll::Ready(());
        }
        *self.waiting.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits until more may be sent.
    pub(crate) async fn room(&self) {
        poll_fn(|cx| self.poll_room(cx)).await;
    }
}

/// A task's promise to report the end of its stream. Dropped earlier, it reports a failure.
pub(crate) struct Promise {
    core: Rc<CoreCtx>,
    mail: Rc<Mailbox>,
    stream: StreamHandle,
    kept: Cell<bool>,
}

impl Promise {
    pub(crate) fn new(core: Rc<CoreCtx>, mail: Rc<Mailbox>, stream: StreamHandle) -> Self {
        Self { core, mail, stream, kept: Cell::default() }
    }

    pub(crate) fn tell(&self, item: StreamMessage) {
        self.mail.put(self.stream, item);
    }

    /// Sends the last message; later ones are dropped.
    pub(crate) fn keep(&self, item: StreamMessage) {
        if !self.kept.replace(true) {
            self.tell(item);
        }
    }

    /// Returns true if the last message was sent.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.get()
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.is_kept() {
            if thread::panicking() {
                self.core.flow.counters.inc(Counter::Panics);
            }
            self.tell(StreamMessage::Broke);
        }
    }
}
