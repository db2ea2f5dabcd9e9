//! Steps of a client's request, and the halts between them.

use std::sync::Arc;

use cache::{Object, Reader, Ticket};
use vcl::sub::SyntheticStatus;

use super::call::StepHost;
use super::fetch::PassingFacts;
use crate::fetch::PassingResponse;
use crate::state::assemble::Draft;
use crate::state::duty::FetchPause;
use crate::state::tier::Lead;
use crate::state::vcl::halt::{FetchMiss, Halt};

/// The next step.
pub(crate) enum RequestStep<L = Lead, T = Ticket> {
    /// `vcl_recv`, for the first time or after a restart.
    Start,
    Lookup,
    /// This was found; with a lead it is stale, and fetched anew behind the answer.
    Hit(Arc<Object>, Option<L>),
    /// Nothing usable was found in memory; somebody fetches it, or the disk may have it.
    Pause(FetchPause<L, T>, Option<Arc<Object>>),
    /// Nothing usable was found.
    Miss(FetchMiss<L>),
    Pass,
    Pipe,
    Purge,
    Restart,
    Fail,
    Synth(SyntheticStatus),
    Deliver(DeliveredResponse),
    /// A page is to be put together.
    Page(Box<dyn Draft>),
}

/// A step on a stage.
pub(crate) type HostStep<S> = RequestStep<<S as StepHost>::Lead, <S as StepHost>::Ticket>;
/// A halt on a stage.
pub(crate) type HostHalt<S> = Halt<<S as StepHost>::Lead, <S as StepHost>::Ticket>;

/// A synthetic answer of this status.
pub(crate) fn said(status: u16, reason: &str) -> SyntheticStatus {
    let reason = (!reason.is_empty()).then(|| reason.as_bytes().into());
    SyntheticStatus { status, reason }
}

/// The response that is delivered.
pub(crate) enum DeliveredResponse {
    /// Something stored, or being stored; `reader` follows its body if it was fetched for this
    /// request.
    Object { object: Arc<Object>, reader: Option<Reader> },
    /// For this request only.
    Passing(Box<PassingResponse<PassingFacts>>),
}
