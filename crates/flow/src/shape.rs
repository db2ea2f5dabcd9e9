//! Shape of a response's head after the policy's changes for one client.

mod campaign;

use message::{Response, Status};
use policy::DeliverCtx;

use crate::state::request_context::RequestContext;

/// Returns true if the policy may change a head of `status`.
#[inline]
pub(crate) fn is_shaped(ctx: &RequestContext<'_>, status: Status) -> bool {
    ctx.site.policy.shapes_delivery(&ctx.notes) || campaign::is_due(ctx.request, status)
}

/// Lets policy change a head.
pub(crate) fn shape(ctx: &RequestContext<'_>, response: &mut Response, hit: bool) {
    if campaign::is_due(ctx.request, response.status) {
        campaign::give_back(ctx.request, &mut response.headers);
    }
    let mut policy_ctx = DeliverCtx { request: ctx.request, response, hit, notes: &ctx.notes };
    ctx.site.policy.deliver(&mut policy_ctx);
}
