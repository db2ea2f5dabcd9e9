//! The distance between the two halves of a page's task, and what they tell each other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Account, HeldBytes};
use bytes::Bytes;
use tokio::sync::Notify;

/// The distance between the two halves of a page's task, and what they tell each other.
#[derive(Debug)]
pub(super) struct AssemblyReadahead {
    /// Bytes of text that wait for the pieces before them, held for the client.
    held: RefCell<HeldBytes>,
    less: Notify,
    /// Nothing is left to be handed on: what begins next has its turn at once.
    is_idle: Cell<bool>,
    idle: Notify,
    /// Pieces handed on, and if the page's reader is what the next one waits for.
    moved: Cell<u64>,
    waits_for_reader: Cell<bool>,
}

impl AssemblyReadahead {
    /// None yet, held on `account`.
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

    /// There are more of them.
    fn more(&self, bytes: u64) {
        // They are copies of what has been held.
        self.held.borrow_mut().grow_anyway(bytes);
    }

    /// Ready when they are no more than `most`.
    pub(super) async fn room(&self, most: u64) {
        while self.held.borrow().bytes() > most {
            self.less.notified().await;
        }
    }

    /// Some of them wait no more.
    fn less(&self, bytes: u64) {
        let mut held = self.held.borrow_mut();
        let left = held.bytes().saturating_sub(bytes);
        held.shrink_to(left);
        self.less.notify_one();
    }

    /// Says if nothing is left to be handed on.
    pub(super) fn set_idle(&self, is_idle: bool) {
        self.is_idle.set(is_idle);
        if is_idle {
            self.idle.notify_one();
        }
    }

    /// Ready when nothing is left to be handed on.
    pub(super) async fn wait_until_idle(&self) {
        while !self.is_idle.get() {
            self.idle.notified().await;
        }
    }

    /// Something has been handed on, and perhaps the reader must take it first.
    pub(super) fn moved(&self, waits_for_reader: bool) {
        self.moved.set(self.moved.get() + 1);
        self.waits_for_reader.set(waits_for_reader);
    }

    /// Ready when for `most`, and not twice as long, nothing was handed on that the reader would
    /// have taken.
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

/// A text of the page itself, in bytes that are counted as long as it waits.
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
