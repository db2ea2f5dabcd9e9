//! Steps of a client's request, and the halts between them.

use std::sync::Arc;

use cache::{Object, Reader, Ticket};
use vcl::sub::Said;

use super::call::Stage;
use super::fetch::Passed;
use crate::fetch::Passing;
use crate::state::assemble::Draft;
use crate::state::duty::FetchPause;
use crate::state::tier::Lead;
use crate::state::vcl::halt::{Halt, Missing};

/// The next step.
pub(crate) enum Step<L = Lead, T = Ticket> {
    /// `vcl_recv`, for the first time or after a restart.
    Start,
    Lookup,
    /// This was found; with a lead it is stale, and fetched anew behind the answer.
    Hit(Arc<Object>, Option<L>),
    /// Nothing usable was found in memory; somebody fetches it, or the disk may have it.
    Pause(FetchPause<L, T>, Option<Arc<Object>>),
    /// Nothing usable was found.
    Miss(Missing<L>),
    Pass,
    Pipe,
    Purge,
    Restart,
    Fail,
    Synth(Said),
    Deliver(Delivered),
    /// A page is to be put together.
    Page(Box<dyn Draft>),
}

/// A step on a stage.
pub(crate) type StepOn<S> = Step<<S as Stage>::Lead, <S as Stage>::Ticket>;
/// A halt on a stage.
pub(crate) type HaltOn<S> = Halt<<S as Stage>::Lead, <S as Stage>::Ticket>;

/// A synthetic answer of this status.
pub(crate) fn said(status: u16, reason: &str) -> Said {
    let reason = (!reason.is_empty()).then(|| reason.as_bytes().into());
    Said { status, reason }
}

/// The response that is delivered.
pub(crate) enum Delivered {
    /// Something stored, or being stored; `reader` follows its body if it was fetched for this
    /// request.
    Object { object: Arc<Object>, reader: Option<Reader> },
    /// For this request only.
    Passing(Box<Passing<Passed>>),
}
