//! Requests of sites that have a VCL: Varnish's request and fetch state machines over our store and
//! our origins.
//!
//! Each step runs a subroutine and returns what comes next. Nothing here waits but where a fetch, a
//! waiting list or a request's body does; a hit does not.

pub mod counts;
pub mod link;
mod outside;
mod xids;

use std::sync::Arc;

use arc_swap::ArcSwapOption;

pub use outside::Outside;
pub use xids::Xids;

/// What all programs of the daemon share.
#[derive(Default)]
pub struct Common {
    /// The numbers of transactions.
    pub xids: Xids,
    /// Counters under Varnish's names.
    pub counts: counts::Registry,
    outside: ArcSwapOption<Box<dyn Outside>>,
}

impl Common {
    /// Has `outside` answer for the world beyond requests.
    pub fn set_outside(&self, outside: Box<dyn Outside>) {
        self.outside.store(Some(Arc::new(outside)));
    }
}
