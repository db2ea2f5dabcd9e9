//! A request that is not answered at once.

use std::cell::RefCell;

use base::Held;
use flow::finish::Started;
use flow::{LiveRef, Peer};
use message::Request;

use crate::account;

/// A request that is not answered at once, and what belongs to it.
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) live: LiveRef,
    /// On whose behalf it is made.
    pub(crate) client: Peer,
    pub(crate) started: Started,
    /// Memory that it takes while it is here.
    pub(crate) held: RefCell<Option<Held>>,
}

impl Asked {
    /// Gives back what the request waited with: it has become a tunnel.
    pub(super) fn keep_for_tunnel(&self) {
        if let Some(held) = &mut *self.held.borrow_mut() {
            account::keep_for_tunnel(held, &self.request);
        }
    }
}
