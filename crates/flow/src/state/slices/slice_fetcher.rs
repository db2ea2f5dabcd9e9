//! Slice fetcher of a core, and the orders that it takes from the threads of all clients.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use base::Account;
use cache::Reader;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, oneshot};

use super::set::SliceSet;
use crate::state::tier::Lead;

/// An order for a slice, with the duty to answer all its waiters.
pub(crate) struct SliceOrder {
    pub(crate) set: Arc<SliceSet>,
    pub(crate) slice: u64,
    pub(crate) lead: Lead,
    /// The receiver of the ordering reader; `None` for a slice ordered ahead.
    pub(crate) reply: Option<oneshot::Sender<Reader>>,
    /// The account of a slice that is not stored; `None` for the core's.
    pub(crate) account: Option<Arc<Account>>,
}

impl SliceOrder {
    /// Returns true if a reader still waits for the slice.
    pub(crate) fn is_wanted(&self) -> bool {
        let is_awaited = match &self.reply {
            Some(reply) => !reply.is_closed(),
            None => self.set.has_readers(),
        };
        !self.set.has_ended() && (is_awaited || self.lead.is_watched())
    }
}

/// The slice fetcher of a core.
#[derive(Debug, Default)]
pub(crate) struct SliceFetcher {
    pub(crate) orders: OnceCell<UnboundedSender<SliceOrder>>,
    pub(crate) under_way: Cell<u64>,
    pub(crate) freed: Notify,
}
