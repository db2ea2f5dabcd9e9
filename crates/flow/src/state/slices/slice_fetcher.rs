//! A core's desk for slices, and the orders that it takes from whatever thread a client is served
//! by.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use base::Account;
use cache::Reader;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, oneshot};

use super::set::SliceSet;
use crate::state::tier::Lead;

/// An order for a slice, with the duty to answer all who wait for it.
pub(crate) struct SliceOrder {
    pub(crate) set: Arc<SliceSet>,
    pub(crate) slice: u64,
    pub(crate) lead: Lead,
    /// Where the reader goes of whoever ordered it; none of what is ordered ahead.
    pub(crate) reply: Option<oneshot::Sender<Reader>>,
    /// For whom the slice is held, should it not be kept; this core if it is `None`.
    pub(crate) account: Option<Arc<Account>>,
}

impl SliceOrder {
    /// Returns true if somebody still waits for the slice.
    pub(crate) fn is_wanted(&self) -> bool {
        let is_awaited = match &self.reply {
            Some(reply) => !reply.is_closed(),
            None => self.set.has_readers(),
        };
        !self.set.has_ended() && (is_awaited || self.lead.is_watched())
    }
}

/// A core's desk.
#[derive(Debug, Default)]
pub(crate) struct SliceFetcher {
    pub(crate) orders: OnceCell<UnboundedSender<SliceOrder>>,
    pub(crate) under_way: Cell<u64>,
    pub(crate) freed: Notify,
}
