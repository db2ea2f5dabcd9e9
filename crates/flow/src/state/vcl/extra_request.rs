//! Extra request: a declared request's way through the VCL beside its site's settings: the state of
//! its subroutines from `vcl_recv` to `vcl_deliver`.
//!
//! Runs nothing; `vcl::extra` does.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Counters, KeyBuf};
use policy::DecisionStep;
use vcl::counts::Counts;
use vcl::sub::Sub;
use vcl::trace::ProgramTrace;

use super::turn::ProgramRequest;
use crate::key::KeyAddition;
use crate::state::shared::SharedState;

/// The first field of what `vcl_hash` adds to a key.
const KEY_MARK: &[u8] = b"vcl";

/// A declared request with its subroutines' state.
pub(crate) struct ExtraRequest {
    pub(crate) turn: RefCell<Box<ProgramRequest>>,
    pub(crate) runner: ExtraRunner,
}

/// The side for which subroutines run.
pub(crate) enum ExtraRunner {
    /// A core that serves the request, with its counters.
    Core { shared: Arc<SharedState>, counts: Arc<Counts>, counters: Arc<Counters> },
    /// A forecast, with the steps that it has to report.
    Forecast { shared: Arc<SharedState>, steps: RefCell<Vec<DecisionStep>> },
}

/// The fields that `vcl_hash` has added.
impl KeyAddition for ExtraRequest {
    fn add_to(&self, key: &mut KeyBuf) {
        let turn = self.turn.borrow();
        if !turn.key.bytes().is_empty() {
            key.field(KEY_MARK);
            key.field(turn.key.bytes());
        }
    }
}

impl ExtraRequest {
    /// The addition to the request's key.
    pub(crate) fn key_addition(&self) -> &dyn KeyAddition {
        self
    }

    /// Returns true if `sub` has statements.
    pub(crate) fn has(&self, sub: Sub) -> bool {
        self.turn.borrow().instance.program().uses().own.has(sub)
    }

    /// The fields that `vcl_hash` has added.
    pub(crate) fn added_key(&self) -> Vec<u8> {
        self.turn.borrow().key.bytes().to_vec()
    }

    /// Takes the trace of the subroutines that have run, for the log; `None` if there are none.
    pub(crate) fn take_trace(&self) -> Option<Box<ProgramTrace>> {
        let mut turn = self.turn.borrow_mut();
        let is_any = !turn.ran.is_empty() || !turn.lines.get_mut().is_empty();
        is_any.then(|| turn.program_trace())
    }

    /// Adds steps that a forecast has to report.
    pub(crate) fn add_steps(&self, more: Vec<DecisionStep>) {
        if let ExtraRunner::Forecast { steps, .. } = &self.runner {
            steps.borrow_mut().extend(more);
        }
    }

    /// Takes the steps that a forecast has to report.
    pub(crate) fn take_steps(&self) -> Vec<DecisionStep> {
        match &self.runner {
            ExtraRunner::Core { .. } => Vec::new(),
            ExtraRunner::Forecast { steps, .. } => steps.take(),
        }
    }
}
