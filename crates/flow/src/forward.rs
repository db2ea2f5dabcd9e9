//! The request as the origin sees it, and the origin's head as it is kept and passed on.

use cache::Object;
use message::date::HttpDate;
use message::store::{strip_for_storage, strip_hop_by_hop};
use message::{Framing, HeaderBlock, HeaderId, Method, Request, Response, Upgrade, Version, vary};

use crate::ask::Ask;
use crate::live::{Live, Site};
use crate::{surrogate, tags};

/// For what the origin is asked.
pub(crate) enum Errand<'a> {
    /// This client's request as it is: nothing of it is shared.
    Own,
    /// This client's request, with its wish to speak another protocol.
    Upgrade,
    /// This client's request, whose answer may be kept for others all the same.
    Alone,
    /// A whole representation for the store, or the confirmation that a stored one is still good.
    Store(Option<&'a Object>),
}

/// Fields that ask for something other than the whole current representation.
const CONDITIONS: [HeaderId; 6] = [
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

/// Room for the fields that are added on the way: Via, Surrogate-Capability, Forwarded and its kin.
const ADDED_FIELDS: usize = 8;
/// Bytes of them.
const ADDED_BYTES: usize = 256;

/// Passes through this proxy after which a request is held to go round in a circle.
pub(crate) const HOPS_MAX: usize = 8;

/// Builds the origin request from the client's canonical one.
pub(crate) fn origin_request(ask: &Ask<'_>, errand: &Errand<'_>) -> Request {
    let mut request = Request::new();
    let own = &ask.request.headers;
    request.headers.reserve(own.len() + ADDED_FIELDS, own.memory() + ADDED_BYTES);
    request.clone_from(ask.request);
    strip_hop_by_hop(&mut request.headers);
    request.headers.remove(HeaderId::Expect);
    request.headers.remove(HeaderId::Host);
    // For a proxy, which is this one (RFC 9110 11.7.2).
    request.headers.remove(HeaderId::ProxyAuthorization);
    // It is sent in HTTP/1.1 whatever this says, which is what scripts are told (SERVER_PROTOCOL):
    // they must not answer in HTTP/1.0 what is kept for others.
    request.version = request.version.max(Version::Http11);
    request.upgrade = Upgrade::None;
    if matches!(errand, Errand::Upgrade)
        && let Some(protocols) = ask.request.headers.value(HeaderId::Upgrade)
    {
        request.headers.push(HeaderId::Upgrade, protocols);
        request.upgrade = ask.request.upgrade;
    }
    if !matches!(errand, Errand::Own | Errand::Upgrade) {
        // What the store tells apart is what the origin must be asked with, else one client's
        // spelling of Accept-Encoding would choose a coding for another that cannot read it.
        if let Some(normal) = vary::normal_accept_encoding(&request.headers) {
            request.headers.remove(HeaderId::AcceptEncoding);
            if !normal.is_empty() {
                request.headers.push(HeaderId::AcceptEncoding, normal.as_bytes());
            }
        }
    }
    if let Errand::Store(validate) = errand {
        request.method = Method::Get;
        request.framing = Framing::None;
        request.headers.retain(|f| !CONDITIONS.contains(&f.id));
        request.headers.set(HeaderId::SurrogateCapability, CAPABILITY.as_bytes());
        if let Some(object) = validate {
            add_validators(&mut request.headers, object);
        }
    }
    if let Some(left) = hops_left(ask.request) {
        request.headers.set(HeaderId::MaxForwards, left.saturating_sub(1).to_string().as_bytes());
    }
    add_via(&mut request.headers, ask.request.version, &ask.live.pseudonym);
    request
}

/// Returns the number of hops that an OPTIONS may still go: its Max-Forwards (RFC 9110 7.6.2). The
/// field counts for TRACE, too, which is refused everywhere (nginx: 405); for other methods it
/// means nothing. A value that is no number is passed on as it is; a number too large to be counted
/// is as good as the largest.
fn hops_left(request: &Request) -> Option<u64> {
    if request.method != Method::Options {
        return None;
    }
    let mut values = request.headers.values(HeaderId::MaxForwards);
    let (value, None) = (values.next()?, values.next()) else { return None };
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(value).ok()?.parse().ok()).map(|n| n.unwrap_or(u64::MAX))
}

/// Returns true if the request is to be answered here, because it may go no further.
pub(crate) fn is_last_hop(request: &Request) -> bool {
    hops_left(request) == Some(0)
}

fn add_validators(headers: &mut HeaderBlock, object: &Object) {
    if let Some(etag) = object.etag() {
        headers.push(HeaderId::IfNoneMatch, etag);
    }
    if let Some(modified) = object.last_modified() {
        headers.push(HeaderId::IfModifiedSince, HttpDate::new(modified).as_bytes());
    }
}

/// Returns true if the request has passed this proxy too often already.
pub(crate) fn loops(request: &Request, live: &Live) -> bool {
    passes(request, live) >= HOPS_MAX
}

/// Returns true if the request has passed this proxy before.
pub(crate) fn was_here(request: &Request, live: &Live) -> bool {
    passes(request, live) > 0
}

/// Returns the number of times that the request has passed this proxy, as its Via says.
fn passes(request: &Request, live: &Live) -> usize {
    let name = live.pseudonym.as_bytes();
    let mine = |via: &[u8]| via.split(|b| *b == b',').filter(|m| m.ends_with(name)).count();
    request.headers.values(HeaderId::Via).map(mine).sum()
}

/// Makes the origin's head fit to be kept for others. This cache's Via is not kept: it is the same
/// on all, and written when a head is sent.
pub(crate) fn keepable(response: &mut Response, site: &Site, unix_secs: u64) {
    strip_for_storage(&mut response.headers);
    hide_tags(response, site);
    response.headers.remove(HeaderId::Age);
    add_date(response, unix_secs);
}

/// Makes the origin's head fit to be passed on.
pub(crate) fn passable(response: &mut Response, site: &Site, live: &Live, unix_secs: u64) {
    strip_hop_by_hop(&mut response.headers);
    // No client of this proxy has to prove to it who it is (RFC 9110 11.7).
    response.headers.remove(HeaderId::ProxyAuthenticate);
    response.headers.remove(HeaderId::ProxyAuthenticationInfo);
    hide_tags(response, site);
    surrogate::hide(&mut response.headers, site);
    add_date(response, unix_secs);
    add_via(&mut response.headers, response.version, &live.pseudonym);
}

/// Surrogate keys are between origins and caches.
fn hide_tags(response: &mut Response, site: &Site) {
    if !site.shows_tags {
        tags::hide(&mut response.headers);
    }
}

fn add_date(response: &mut Response, unix_secs: u64) {
    if !response.headers.contains(HeaderId::Date) {
        response.headers.push(HeaderId::Date, HttpDate::new(unix_secs).as_bytes());
    }
}

/// Adds this proxy to a Via; `received` is the version the message came in (RFC 9110 7.6.3).
pub(crate) fn add_via(headers: &mut HeaderBlock, received: Version, pseudonym: &str) {
    let version: &[u8] = match received {
        Version::Http10 => b"1.0 ",
        Version::Http11 => b"1.1 ",
        Version::Http2 => b"2 ",
    };
    headers.push_with(HeaderId::Via, |out| {
        out.extend_from_slice(version);
        out.extend_from_slice(pseudonym.as_bytes());
    });
}

/// The request for `reference`, a Location or Content-Location of an answer to `request`; none when
/// it leads to another origin.
pub(crate) fn same_origin(request: &Request, reference: &[u8]) -> Option<Request> {
    let reference = reference.split(|b| *b == b'#').next()?;
    let rest = match reference.strip_prefix(b"/") {
        Some(rest) if !rest.starts_with(b"/") => reference,
        _ => absolute(request, reference)?,
    };
    let mut other = Request::new();
    other.scheme = request.scheme;
    other.host.clone_from(&request.host);
    other.port = request.port;
    other.headers = request.headers.clone();
    if rest.starts_with(b"/") {
        other.target.extend_from_slice(rest);
    } else {
        // Relative to the last segment of the target's path (RFC 3986 5.2.3).
        let path = request.path();
        let base = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
        other.target.extend_from_slice(&path[..base]);
        other.target.extend_from_slice(rest);
    }
    other.target.iter().all(u8::is_ascii_graphic).then_some(other)
}

/// Returns the part of an absolute reference after its authority, if the authority is the request's
/// own; a relative reference is returned as it is.
fn absolute<'a>(request: &Request, reference: &'a [u8]) -> Option<&'a [u8]> {
    let after_scheme = match memchr::memmem::find(reference, b"://") {
        Some(at) if reference[..at].eq_ignore_ascii_case(request.scheme.as_str().as_bytes()) => {
            &reference[at + 3..]
        }
        Some(_) => return None,
        None => match reference.strip_prefix(b"//") {
            Some(rest) => rest,
            None => return Some(reference),
        },
    };
    let end = after_scheme.iter().position(|b| *b == b'/').unwrap_or(after_scheme.len());
    let (authority, target) = after_scheme.split_at(end);
    let mut own = request.host.clone();
    if let Some(port) = request.port {
        own.extend_from_slice(format!(":{port}").as_bytes());
    }
    let same = authority.eq_ignore_ascii_case(&own);
    same.then_some(if target.is_empty() { b"/" } else { target })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(method: Method, values: &[&str]) -> Option<u64> {
        let mut request = Request::new();
        request.method = method;
        for value in values {
            request.headers.push(HeaderId::MaxForwards, value.as_bytes());
        }
        hops_left(&request)
    }

    #[test]
    fn via_names_the_version_a_message_came_in() {
        for (version, expected) in
            [(Version::Http10, "1.0 me"), (Version::Http11, "1.1 me"), (Version::Http2, "2 me")]
        {
            let mut headers = HeaderBlock::new();
            add_via(&mut headers, version, "me");
            assert_eq!(headers.value(HeaderId::Via), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn hops_are_counted_for_options_alone_and_only_where_they_are_a_number() {
        for (values, expected) in [
            (&["0"][..], Some(0)),
            (&["007"], Some(7)),
            (&["99999999999999999999999"], Some(u64::MAX)),
            (&[""], None),
            (&["-1"], None),
            (&["+1"], None),
            (&["1, 2"], None),
            (&["1", "2"], None),
            (&[], None),
        ] {
            assert_eq!(left(Method::Options, values), expected, "{values:?}");
            assert_eq!(left(Method::Get, values), None);
        }
    }
}
