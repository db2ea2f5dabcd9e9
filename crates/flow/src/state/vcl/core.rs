//! State of the programs of one core.

use std::cell::Cell;
use std::sync::Arc;

use vcl::counts::Counts;

use super::shared::SharedVcl;
use super::turn::ProgramRequest;

/// State of the programs of one core.
pub(crate) struct CoreVcl {
    /// Its counters under Varnish's names.
    pub(crate) counts: Arc<Counts>,
    /// The memory of a request that has been through a program.
    pub(crate) spare_turn: Cell<Option<Box<ProgramRequest>>>,
}

impl CoreVcl {
    pub(crate) fn new(common: &SharedVcl) -> Self {
        Self { counts: common.counts.register(), spare_turn: Cell::new(None) }
    }
}
