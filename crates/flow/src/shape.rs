//! The head of a response as the policy changes it on its way to the client.

mod campaign;

use message::{Response, Status};
use policy::DeliverCtx;

use crate::state::request_context::RequestContext;

/// Returns true if a head of `status` is changed on its way to the client.
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
