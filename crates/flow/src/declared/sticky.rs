//! Sticky cookie in a response: names the server that has answered, to the one client that gets the
//! response. It must never be part of a response that is stored or shared.

use std::sync::Arc;

use message::cache_control::{CacheControl, DirectiveScope};
use message::{HeaderId, Request, Response};
use origin::Origin;
use policy::Notes;

use crate::state::site::Site;

/// Adds the cookie to a response that is not stored, from the server at `server` of the origin that
/// was asked, unless the request had it. No other cache may store the response then.
pub(super) fn add_cookie(
    site: &Site,
    notes: &Notes,
    request: &Request,
    response: &mut Response,
    asked: Option<&Arc<Origin>>,
    server: usize,
) {
    let Some(sticky) = site.policy.sticky(notes) else { return };
    let own = site.origin(notes).map(|own| &own.origin);
    let is_own = own.zip(asked).is_some_and(|(own, asked)| Arc::ptr_eq(own, asked));
    if !is_own || notes.server.map(usize::from) == Some(server) {
        return;
    }
    let Some(cookie) = sticky.set_cookie(server, request.scheme) else { return };
    let headers = &mut response.headers;
    headers.push(HeaderId::SetCookie, cookie.as_bytes());
    // These go before Cache-Control where they are understood (RFC 9213).
    headers.remove(HeaderId::CdnCacheControl);
    headers.remove(HeaderId::SurrogateControl);
    let said = CacheControl::parse(headers.values(HeaderId::CacheControl));
    if !said.no_store && said.private != DirectiveScope::Whole {
        headers.push(HeaderId::CacheControl, b"private");
    }
}
