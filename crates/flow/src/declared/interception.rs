//! Interception: a site's own page in place of an error that its origin sent (nginx's
//! `proxy_intercept_errors`).
//!
//! The page is put in when the response is sent: what is stored stays as the origin sent it. Only
//! clients get pages: another node of the cluster, and a page that includes a fragment, get what
//! the origin sent.

use message::{HeaderId, Response, Status};

use crate::problem::ErrorPage;
use crate::shape::{ShapedResponse, matched, shape, shapes, unshaped};
use crate::state::body::ReplyBody;
use crate::state::reply::{CacheOutcome, Reply};
use crate::state::request_context::RequestContext;

/// Fields of the origin that clients get beside the page: about its use by caches, passwords,
/// cookies, and what is permitted. All others may speak of the origin's page, or of the error.
const KEPT: [HeaderId; 12] = [
    HeaderId::Age,
    HeaderId::Allow,
    HeaderId::CacheControl,
    HeaderId::CdnCacheControl,
    HeaderId::Date,
    HeaderId::Expires,
    HeaderId::Pragma,
    HeaderId::RetryAfter,
    HeaderId::SetCookie,
    HeaderId::Vary,
    HeaderId::Via,
    HeaderId::WwwAuthenticate,
];
/// Without the fields of this prefix, a script of another site could not even see the status.
const CORS: &[u8] = b"access-control-";

/// The site's page for a response of `status`, if the site replaces such responses for the client.
#[inline]
pub(crate) fn page_for<'a>(ctx: &RequestContext<'a>, status: Status) -> Option<&'a ErrorPage> {
    if status.code() < 400 { None } else { page_for_error(ctx, status) }
}

#[cold]
fn page_for_error<'a>(ctx: &RequestContext<'a>, status: Status) -> Option<&'a ErrorPage> {
    let is_for_client = ctx.downstream.page().is_none() && !ctx.downstream.is_node();
    let is_due = is_for_client && ctx.site.policy.intercepts(&ctx.notes, status);
    ctx.site.error_pages.iter().find(|page| is_due && page.status == status)
}

/// The reply with `page` in place of the origin's `response`.
pub(super) fn reply(
    ctx: &RequestContext<'_>,
    page: &ErrorPage,
    response: &Response,
    served: CacheOutcome,
    of: ShapedResponse<'_>,
) -> Reply {
    let mut own = Response::new(response.status);
    own.version = response.version;
    for field in response.headers.iter() {
        let prefix = field.name.get(..CORS.len());
        let is_cors = prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(CORS));
        if is_cors || KEPT.contains(&field.id) {
            own.headers.push_as(field.id, field.name, field.value);
        }
    }
    own.headers.push(HeaderId::ContentType, page.kind.as_bytes());
    if shapes(ctx) && !shape(ctx, &mut own, of, &matched(ctx, response)) {
        return unshaped(ctx);
    }
    let body = ReplyBody::from(page.content.clone()).answering(&ctx.request.method, own.status);
    Reply::owned(own, body, served)
}
