//! Shape of a response's head after the policy's changes for one client.

mod campaign;

use message::{Response, Status};
use policy::DeliverCtx;
use policy::response_rules::MatchedRules;

use crate::state::request_context::RequestContext;

/// Returns true if the policy may change a head of `status`.
#[inline]
pub(crate) fn is_shaped(ctx: &RequestContext<'_>, status: Status) -> bool {
    ctx.site.policy.shapes_delivery(&ctx.notes) || campaign::is_due(ctx.request, status)
}

/// The rules for responses that match an origin's response, before it is adapted to the client.
pub(crate) fn matched(ctx: &RequestContext<'_>, response: &Response) -> MatchedRules {
    ctx.site.policy.matched_rules(&ctx.notes, response)
}

/// Lets policy change a head.
pub(crate) fn shape(
    ctx: &RequestContext<'_>,
    response: &mut Response,
    hit: bool,
    matched: &MatchedRules,
) {
    if campaign::is_due(ctx.request, response.status) {
        campaign::give_back(ctx.request, &mut response.headers);
    }
    let (request, notes) = (ctx.request, &ctx.notes);
    let mut policy_ctx = DeliverCtx { request, response, hit, matched, notes };
    ctx.site.policy.deliver(&mut policy_ctx);
}
