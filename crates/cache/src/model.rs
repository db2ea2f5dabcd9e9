//! Items that tests/loom.rs drives and that are not public otherwise. Built for models only.

use std::sync::Arc;

use crate::busy::{Busy, NewFetch, Ticket, Waited};

/// A fetch others wait for, without an index around it.
#[derive(Clone, Debug)]
pub struct Fetch(Arc<Busy>);

impl Fetch {
    /// A fetch in flight.
    #[expect(clippy::new_without_default, reason = "a fetch is begun, not a value")]
    pub fn new() -> Self {
        let fetch = NewFetch { shared: true, ..NewFetch::default() };
        Self(Arc::new(Busy::new(Arc::from(&b"key"[..]), 0, fetch, None)))
    }

    /// A place among those who wait; `None` beyond `waiters_max`.
    pub fn join(&self, waiters_max: usize) -> Option<Ticket> {
        self.0.join(waiters_max, None)
    }

    /// Returns true if somebody waits.
    pub fn is_watched(&self) -> bool {
        self.0.is_watched()
    }

    /// Ends it.
    pub fn conclude(&self, outcome: Waited) {
        self.0.conclude(outcome);
    }
}
