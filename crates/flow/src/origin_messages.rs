//! Origin messages: the request as it is sent to the origin, and the origin's head as it is stored
//! or passed on.

use cache::Object;
use codec::Coding;
use codec::etag::{form_of, write_plain};
use message::date::HttpDate;
use message::forwarding::{add_via, hops_left, passes};
use message::store::{strip_for_storage, strip_hop_by_hop};
use message::{
    Framing, HeaderBlock, HeaderId, Method, Request, Response, Upgrade, Version, grpc, vary,
};

use policy::EsiPages;

use crate::state::live_configuration::LiveConfiguration;
use crate::state::request_context::RequestContext;
use crate::state::site::Site;
use crate::{form, surrogate, tags};
use codec::CompressionScope;

/// The purpose of a request to the origin.
pub(crate) enum FetchPurpose<'a> {
    /// The client's request as it is; the response is not shared.
    Own,
    /// The client's request with its Upgrade.
    Upgrade,
    /// The client's request; the response may be stored.
    Alone,
    /// A whole representation for the store, or the confirmation of this stored one.
    Store(Option<&'a Object>),
}

/// Fields that select something else than the whole current representation.
pub(crate) const CONDITIONS: [HeaderId; 6] = [
    HeaderId::IfMatch,
    HeaderId::IfModifiedSince,
    HeaderId::IfNoneMatch,
    HeaderId::IfRange,
    HeaderId::IfUnmodifiedSince,
    HeaderId::Range,
];

/// Capabilities of this surrogate (W3C Edge Architecture); Surrogate-Control may name it as a
/// target.
const CAPABILITY: &str = "larder=\"Surrogate/1.0\"";
/// Capabilities where pages may be assembled.
const CAPABILITY_ESI: &str = "larder=\"Surrogate/1.0 ESI/1.0\"";

/// Fields that are added for the origin, at most: Via, Surrogate-Capability, Forwarded and others.
const ADDED_FIELDS: usize = 8;
/// Bytes of the added fields.
const ADDED_BYTES: usize = 256;

/// Passes through this proxy after which a request counts as looping.
pub(crate) const HOPS_MAX: usize = 8;

/// Builds the origin request from the client's canonical one.
pub(crate) fn origin_request(ctx: &RequestContext<'_>, purpose: &FetchPurpose<'_>) -> Request {
    let mut request = Request::new();
    let own = &ctx.request.headers;
    request.headers.reserve(own.len() + ADDED_FIELDS, own.memory() + ADDED_BYTES);
    request.clone_from(ctx.request);
    strip_hop_by_hop(&mut request.headers);
    request.headers.remove(HeaderId::Expect);
    request.headers.remove(HeaderId::Host);
    // These credentials are for this proxy (RFC 9110 11.7.2).
    request.headers.remove(HeaderId::ProxyAuthorization);
    // Requests are sent as HTTP/1.1 in any case. Scripts see this value as SERVER_PROTOCOL, and
    // must not respond in HTTP/1.0 with what is stored for others.
    request.version = request.version.max(Version::Http11);
    request.upgrade = Upgrade::None;
    if matches!(purpose, FetchPurpose::Upgrade)
        && let Some(protocols) = ctx.request.headers.value(HeaderId::Upgrade)
    {
        request.headers.push(HeaderId::Upgrade, protocols);
        request.upgrade = ctx.request.upgrade;
    }
    if !matches!(purpose, FetchPurpose::Own | FetchPurpose::Upgrade) {
        // One client's deadline must not end what others wait for.
        request.headers.remove_named(grpc::TIMEOUT);
        // The origin gets the Accept-Encoding that variants are selected by. Otherwise one client's
        // spelling would choose a coding that another client cannot read.
        if ctx.site.compress != CompressionScope::Off {
            request.headers.remove(HeaderId::AcceptEncoding);
            if request.headers.contains(HeaderId::AvailableDictionary) {
                // A stored response is for all clients, whatever dictionaries they have.
                request.headers.remove(HeaderId::AvailableDictionary);
                request.headers.remove_named(b"Dictionary-ID");
            }
            if !ctx.live.compression.ask.is_empty() {
                let codings = ctx.live.compression.ask.as_bytes();
                request.headers.push(HeaderId::AcceptEncoding, codings);
            }
        } else if let Some(normal) = vary::normal_accept_encoding(&request.headers) {
            request.headers.remove(HeaderId::AcceptEncoding);
            if !normal.is_empty() {
                request.headers.push(HeaderId::AcceptEncoding, normal.as_bytes());
            }
        }
    }
    if ctx.site.compress != CompressionScope::Off {
        list_plain_tags(&mut request.headers, HeaderId::IfMatch, |_, _, _| true);
        // A 304 for another form is useless to the client: for one that it no longer accepts, or
        // one with a dictionary, which a passed 304 never names.
        let accept = form::accept(ctx.request);
        let is_told = |tag: &[u8], plain: &[u8], coding| {
            accept.takes(coding) && form_of(tag, plain) == Some(coding)
        };
        list_plain_tags(&mut request.headers, HeaderId::IfNoneMatch, is_told);
    }
    if let FetchPurpose::Store(validate) = purpose {
        request.method = Method::Get;
        request.framing = Framing::None;
        request.headers.retain(|f| !CONDITIONS.contains(&f.id));
        let reads_esi = ctx.site.includes.esi != EsiPages::Never;
        let capability = if reads_esi { CAPABILITY_ESI } else { CAPABILITY };
        request.headers.set(HeaderId::SurrogateCapability, capability.as_bytes());
        if let Some(object) = validate {
            add_validators(&mut request.headers, object);
        }
    }
    if let Some(left) = hops_left(ctx.request) {
        request.headers.set(HeaderId::MaxForwards, left.saturating_sub(1).to_string().as_bytes());
    }
    add_via(&mut request.headers, ctx.request.version, ctx.live.announce.pseudonym.as_str());
    request
}

/// Extends the condition `id` by the origin's tags of the listed forms: a client of a form coded
/// here has that form's tag (RFC 9110 13.1.1, 13.1.2). `is_meant` gets a listed tag, the origin's
/// tag and the coding.
fn list_plain_tags(
    headers: &mut HeaderBlock,
    id: HeaderId,
    is_meant: impl Fn(&[u8], &[u8], Coding) -> bool,
) {
    let mut plain = Vec::new();
    for value in headers.values(id) {
        for tag in message::list::members([value]) {
            let start = plain.len();
            plain.extend_from_slice(b", ");
            let coding = write_plain(tag, &mut plain);
            if !coding.is_some_and(|coding| is_meant(tag, &plain[start + 2..], coding)) {
                plain.truncate(start);
            }
        }
    }
    if let Some(plain) = plain.strip_prefix(b", ") {
        headers.push(id, plain);
    }
}

fn add_validators(headers: &mut HeaderBlock, object: &Object) {
    if let Some(etag) = form::origin_tag(object) {
        headers.push(HeaderId::IfNoneMatch, &etag);
    }
    if let Some(modified) = object.last_modified() {
        headers.push(HeaderId::IfModifiedSince, HttpDate::new(modified).as_bytes());
    }
}

/// Returns true if the request has passed this proxy too often.
pub(crate) fn loops(request: &Request, live: &LiveConfiguration) -> bool {
    passes(&request.headers, live.announce.pseudonym.as_str()) >= HOPS_MAX
}

/// Returns true if the request has passed this proxy before.
pub(crate) fn was_here(request: &Request, live: &LiveConfiguration) -> bool {
    passes(&request.headers, live.announce.pseudonym.as_str()) > 0
}

/// Prepares the origin's head for storing. Via of this cache is not stored but written when the
/// head is sent.
pub(crate) fn keepable(response: &mut Response, site: &Site, unix_secs: u64) {
    strip_for_storage(&mut response.headers);
    hide_tags(response, site);
    response.headers.remove(HeaderId::Age);
    add_date(response, unix_secs);
}

/// Prepares the origin's head for passing on.
pub(crate) fn passable(
    response: &mut Response,
    site: &Site,
    live: &LiveConfiguration,
    unix_secs: u64,
) {
    strip_hop_by_hop(&mut response.headers);
    // Clients do not authenticate to this proxy by these fields (RFC 9110 11.7).
    response.headers.remove(HeaderId::ProxyAuthenticate);
    response.headers.remove(HeaderId::ProxyAuthenticationInfo);
    hide_tags(response, site);
    surrogate::hide(&mut response.headers, site);
    add_date(response, unix_secs);
    add_via(&mut response.headers, response.version, live.announce.pseudonym.as_str());
}

/// Removes surrogate keys, unless the site shows them: they are between origins and caches.
fn hide_tags(response: &mut Response, site: &Site) {
    if !site.shown.tags {
        tags::hide(&mut response.headers);
    }
}

fn add_date(response: &mut Response, unix_secs: u64) {
    if !response.headers.contains(HeaderId::Date) {
        response.headers.push(HeaderId::Date, HttpDate::new(unix_secs).as_bytes());
    }
}
