//! Shape of a response's head after the changes for one client, by the policy and by the VCL
//! beside it.

mod campaign;

use cache::Object;
use message::{Response, Status};
use policy::DeliverCtx;
use policy::response_rules::MatchedRules;
use vcl::sub::Sub;

use crate::pages;
use crate::problem::Problem;
use crate::state::reply::{CacheOutcome, Reply};
use crate::state::request_context::RequestContext;
use crate::state::vcl::ExtraRequest;

/// The response whose head is shaped.
#[derive(Clone, Copy)]
pub(crate) enum ShapedResponse<'a> {
    /// A stored one, with the cache's part in the reply.
    Stored(&'a Object, CacheOutcome),
    /// One for this request only, or a file.
    Passing,
}

/// Returns true if the policy, or the VCL beside it, may change a head of `status`.
#[inline]
pub(crate) fn is_shaped(ctx: &RequestContext<'_>, status: Status) -> bool {
    shapes(ctx) || campaign::is_due(ctx.request, status)
}

/// Returns true if the policy, or the VCL beside it, may change heads of any status.
#[inline]
pub(crate) fn shapes(ctx: &RequestContext<'_>) -> bool {
    ctx.site.policy.shapes_delivery(&ctx.notes)
        || ctx.extra.is_some_and(|extra| extra.has(Sub::Deliver))
}

/// The rules for responses that match an origin's response, before it is adapted to the client.
pub(crate) fn matched(ctx: &RequestContext<'_>, response: &Response) -> MatchedRules {
    ctx.site.policy.matched_rules(&ctx.notes, response)
}

/// Lets policy, then the VCL beside it, change a head. Returns false if the VCL fails: the head
/// must not be sent, since it may have what the VCL removes.
#[must_use]
pub(crate) fn shape(
    ctx: &RequestContext<'_>,
    response: &mut Response,
    of: ShapedResponse<'_>,
    matched: &MatchedRules,
) -> bool {
    if campaign::is_due(ctx.request, response.status) {
        campaign::give_back(ctx.request, &mut response.headers);
    }
    let (request, notes, hit) = (ctx.request, &ctx.notes, matches!(of, ShapedResponse::Stored(..)));
    let mut policy_ctx = DeliverCtx { request, response, hit, matched, notes };
    ctx.site.policy.deliver(&mut policy_ctx);
    match ctx.extra {
        Some(extra) if extra.has(Sub::Deliver) => deliver_beside(extra, ctx, of, response),
        _ => true,
    }
}

#[inline(never)]
fn deliver_beside(
    extra: &ExtraRequest,
    ctx: &RequestContext<'_>,
    of: ShapedResponse<'_>,
    response: &mut Response,
) -> bool {
    let (object, is_hit) = match of {
        ShapedResponse::Stored(object, served) => {
            (Some(object), !matches!(served, CacheOutcome::Fetched { .. }))
        }
        ShapedResponse::Passing => (None, false),
    };
    extra.deliver(ctx, object, is_hit, response)
}

/// The reply in place of one whose head must not be sent.
pub(crate) fn unshaped(ctx: &RequestContext<'_>) -> Reply {
    pages::problem(ctx.request, Problem::Program)
}
