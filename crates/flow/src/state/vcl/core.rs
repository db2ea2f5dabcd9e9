//! VCL state of a core.

use std::cell::Cell;
use std::sync::Arc;

use vcl::counts::Counts;

use super::shared::SharedVcl;
use super::turn::ProgramRequest;

/// VCL state of a core.
pub(crate) struct CoreVcl {
    /// Its counters under Varnish's names.
    pub(crate) counts: Arc<Counts>,
    /// Spare memory of a finished request.
    pub(crate) spare_turn: Cell<Option<Box<ProgramRequest>>>,
}

impl CoreVcl {
    pub(crate) fn new(common: &SharedVcl) -> Self {
        Self { counts: common.counts.register(), spare_turn: Cell::new(None) }
    }
}
