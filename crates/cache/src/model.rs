//! Parts for the models in tests/loom.rs that are not public otherwise. They are built for models
//! only.

use std::sync::Arc;

use crate::busy::{Busy, NewFetch, Ticket, WaiterOutcome};

/// A fetch with waiters, without an index.
#[derive(Clone, Debug)]
pub struct Fetch(Arc<Busy>);

impl Fetch {
    /// A fetch under way.
    #[expect(clippy::new_without_default, reason = "a fetch is begun, not a value")]
    pub fn new() -> Self {
        let fetch = NewFetch { shared: true, ..NewFetch::default() };
        Self(Arc::new(Busy::new(Arc::from(&b"key"[..]), 0, fetch, None)))
    }

    /// A waiter's ticket; `None` beyond `waiters_max`.
    pub fn join(&self, waiters_max: usize) -> Option<Ticket> {
        self.0.join(waiters_max, None)
    }

    /// Returns true if a request waits.
    pub fn is_watched(&self) -> bool {
        self.0.is_watched()
    }

    /// Ends the fetch with this outcome.
    pub fn conclude(&self, outcome: WaiterOutcome) {
        self.0.conclude(outcome);
    }
}
