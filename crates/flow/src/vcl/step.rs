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

/// The next step of a request.
pub(crate) enum RequestStep<L = Lead, T = Ticket> {
    /// `vcl_recv`, for the first time or after a restart.
    Start,
    Lookup,
    /// An object was found; with a lead it is stale, and refreshed in the background.
    Hit(Arc<Object>, Option<L>),
    /// No usable object is in memory; another request fetches it, or the disk may have it.
    Pause(FetchPause<L, T>, Option<Arc<Object>>),
    /// No usable object was found.
    Miss(FetchMiss<L>),
    /// A stored object is renewed by this request itself, as it warms the store.
    Renewal(FetchMiss<L>),
    Pass,
    Pipe,
    Purge,
    Restart,
    Fail,
    Synth(SyntheticStatus),
    Deliver(DeliveredResponse),
    /// A page must be assembled.
    Page(Box<dyn Draft>),
}

/// A step on a host.
pub(crate) type HostStep<S> = RequestStep<<S as StepHost>::Lead, <S as StepHost>::Ticket>;
/// A halt on a host.
pub(crate) type HostHalt<S> = Halt<<S as StepHost>::Lead, <S as StepHost>::Ticket>;

/// A synthetic response of this status.
pub(crate) fn said(status: u16, reason: &str) -> SyntheticStatus {
    let reason = (!reason.is_empty()).then(|| reason.as_bytes().into());
    SyntheticStatus { status, reason }
}

/// The response to deliver.
pub(crate) enum DeliveredResponse {
    /// A stored object, or one being stored; `reader` reads its body if it was fetched for this
    /// request.
    Object { object: Arc<Object>, reader: Option<Reader> },
    /// A response for this request only.
    Passing(Box<PassingResponse<PassingFacts>>),
}
