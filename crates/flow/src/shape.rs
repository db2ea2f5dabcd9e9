//! Shape of a response's head after the policy's changes for one client.

mod campaign;

use message::{Response, Status};
use policy::DeliverCtx;

use crate::state::request_context::RequestContext;

/// Returns true if the policy may change a head of `status`.
#[inline]
pub(crate) fn is_shaped(ask: &RequestContext<'_>, status: Status) -> bool {
    ask.site.policy.shapes_delivery(&ask.notes) || campaign::is_due(ask.request, status)
}

/// Lets policy change a head.
pub(crate) fn shape(ask: &RequestContext<'_>, response: &mut Response, hit: bool) {
    if campaign::is_due(ask.request, response.status) {
        campaign::give_back(ask.request, &mut response.headers);
    }
    let mut ctx = DeliverCtx { request: ask.request, response, hit, notes: &ask.notes };
    ask.site.policy.deliver(&mut ctx);
}
