//! Readahead: the bytes and pieces that the feeding half of an assembly task is ahead of the
//! sending half, and their signals to each other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Account, HeldBytes};
use bytes::Bytes;
use tokio::sync::Notify;

/// The readahead between the two halves of an assembly task.
#[derive(Debug)]
pub(super) struct AssemblyReadahead {
    /// Bytes of text that wait for earlier pieces, reserved for the client.
    held: RefCell<HeldBytes>,
    less: Notify,
    /// No piece is left to be sent: the next operation starts without a permit.
    is_idle: Cell<bool>,
    idle: Notify,
    /// Pieces that were sent; beside it, if the next one waits for the page's reader.
    moved: Cell<u64>,
    waits_for_reader: Cell<bool>,
}

impl AssemblyReadahead {
    /// An empty readahead, reserved on `account`.
    pub(super) fn new(account: &Arc<Account>) -> Self {
        Self {
            held: RefCell::new(account.hold_anyway(0)),
            less: Notify::default(),
            is_idle: Cell::default(),
            idle: Notify::default(),
            moved: Cell::default(),
            waits_for_reader: Cell::default(),
        }
    }

    /// Adds waiting bytes.
    fn more(&self, bytes: u64) {
        // The bytes are copies of others that are reserved.
        self.held.borrow_mut().grow_anyway(bytes);
    }

    /// Completes once at most `most` bytes wait.
    pub(super) async fn room(&self, most: u64) {
        while self.held.borrow().bytes() > most {
            self.less.notified().await;
        }
    }

    /// Removes waiting bytes.
    fn less(&self, bytes: u64) {
        let mut held = self.held.borrow_mut();
        let left = held.bytes().saturating_sub(bytes);
        held.shrink_to(left);
        self.less.notify_one();
    }

    /// Sets if no piece is left to be sent.
    pub(super) fn set_idle(&self, is_idle: bool) {
        self.is_idle.set(is_idle);
        if is_idle {
            self.idle.notify_one();
        }
    }

    /// Completes once no piece is left to be sent.
    pub(super) async fn wait_until_idle(&self) {
        while !self.is_idle.get() {
            self.idle.notified().await;
        }
    }

    /// Notes that a piece was sent; `waits_for_reader` if the reader must take it before the next.
    pub(super) fn moved(&self, waits_for_reader: bool) {
        self.moved.set(self.moved.get() + 1);
        self.waits_for_reader.set(waits_for_reader);
    }

    /// Completes once no piece was sent for `most`, or for up to twice as long, although the reader
    /// was ready.
    pub(super) async fn wait_until_stalled(&self, most: Duration) {
        loop {
            let before = self.moved.get();
            rt::time::sleep(most).await;
            if self.moved.get() == before && !self.waits_for_reader.get() {
                return;
            }
        }
    }
}

/// A text of the page, whose bytes count while it waits.
pub(super) struct OwnText {
    pub(super) bytes: Bytes,
    ahead: Rc<AssemblyReadahead>,
}

impl OwnText {
    pub(super) fn new(bytes: Bytes, ahead: &Rc<AssemblyReadahead>) -> Self {
        ahead.more(bytes.len() as u64);
        Self { bytes, ahead: Rc::clone(ahead) }
    }
}

impl Drop for OwnText {
    fn drop(&mut self) {
        self.ahead.less(self.bytes.len() as u64);
    }
}
