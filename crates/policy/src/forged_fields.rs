//! Forged fields: those that only a proxy in front of Larder may send, but clients send, too.

use message::header::{Field, HeaderBlock, HeaderId};

/// The result of one scan of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadFindings {
    /// A Cookie is present.
    pub(crate) cookie: bool,
    /// An Authorization is present.
    pub(crate) authorization: bool,
    /// A field is present that clients must not send.
    pub(crate) forged: bool,
}

impl HeadFindings {
    pub(crate) fn of(headers: &HeaderBlock) -> Self {
        let unknown = || headers.iter().filter(|field| field.id == HeaderId::Other);
        Self {
            cookie: headers.contains(HeaderId::Cookie),
            authorization: headers.contains(HeaderId::Authorization),
            forged: headers.contains_any(&FORGED)
                || headers.contains(HeaderId::Other)
                    && unknown().any(|field| is_forged_name(field.name)),
        }
    }
}

/// Removes every field that only proxies may send: origins trust and reflect such fields, and they
/// are in no key, so one client's value would be served to all (web cache poisoning). `rewritten`:
/// X-Forwarded-For was written here and is kept. `placed`: fields about the client's place are
/// kept, since a trusted proxy has sent them or they are in the key.
pub(crate) fn remove(headers: &mut HeaderBlock, rewritten: bool, placed: bool) {
    headers.retain(|field| {
        rewritten && field.id == HeaderId::XForwardedFor
            || !is_forged(field)
            || placed && is_place(field.name)
    });
}

/// Returns true if a proxy has forwarded the request.
pub(crate) fn is_passed_on(headers: &HeaderBlock) -> bool {
    headers.contains_any(&[HeaderId::XForwardedFor, HeaderId::Forwarded, HeaderId::Via])
        || headers.iter().any(|field| PASSED_ON.iter().any(|name| is_name(field.name, name)))
}

/// Fields in which proxies describe clients, besides those that have an id.
const PASSED_ON: [&[u8]; 9] = [
    b"cf-connecting-ip",
    b"client-ip",
    b"fastly-client-ip",
    b"true-client-ip",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-envoy-external-address",
    b"x-forwarded",
    b"x-real-ip",
];

fn is_name(name: &[u8], known: &[u8]) -> bool {
    name.len() == known.len() && same(name, known)
}

/// Returns true if only a proxy may send the field.
pub(crate) fn is_forged(field: Field<'_>) -> bool {
    match field.id {
        HeaderId::Other => is_forged_name(field.name),
        id => FORGED.contains(&id),
    }
}

/// Known fields that only a proxy may send.
const FORGED: [HeaderId; 5] = [
    // For the first proxy that asked for it (RFC 9110 11.7.2), which is never behind Larder.
    HeaderId::ProxyAuthorization,
    HeaderId::XForwardedFor,
    HeaderId::XForwardedHost,
    HeaderId::XForwardedProto,
    HeaderId::Forwarded,
];

/// Prefixes of names that only a proxy may send. Client-Cert is RFC 9440's (2.4); the other fields
/// with client certificates are customs of nginx, HAProxy and IIS. X-Accel-Mapping: CVE-2025-61780.
/// X-Middleware-*: Next.js (CVE-2025-29927).
const PREFIXES: [&[u8]; 12] = [
    b"x-forward-",
    b"x-middleware-",
    b"x-forwarded-",
    b"x-original-",
    b"client-cert",
    b"x-client-cert",
    b"x-ssl",
    b"x-tls-client",
    b"x-arr-",
    b"x-accel-",
    b"ssl-client",
    b"forwarded-",
];

/// Names of fields about the client or its scheme, or that change the route, the method or the
/// environment (Proxy: CVE-2016-5385) at an origin.
const NAMES: [&[u8]; 60] = [
    b"base-url",
    b"cf-connecting-ip",
    b"cf-connecting-ipv6",
    b"cf-pseudo-ipv4",
    b"client-ip",
    b"cloudfront-forwarded-proto",
    b"fastly-client-ip",
    b"fastly-ff",
    b"fastly-ssl",
    b"fly-client-ip",
    b"front-end-https",
    b"http-host",
    b"proxy",
    b"proxy-client-ip",
    b"proxy-host",
    b"remote-user",
    b"request-uri",
    b"ssl-offloaded",
    b"true-client-ip",
    b"wl-proxy-client-ip",
    b"wl-proxy-ssl",
    b"x-appengine-user-ip",
    b"x-azure-clientip",
    b"x-backend-host",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-custom-ip-authorization",
    b"x-envoy-external-address",
    b"x-forwarded",
    b"x-forwarder-for",
    b"x-host",
    b"x-host-override",
    b"x-http-host-override",
    b"x-http-method",
    b"x-http-method-override",
    b"x-http-path-override",
    b"x-https",
    b"x-invoke-error",
    b"x-invoke-output",
    b"x-invoke-path",
    b"x-invoke-query",
    b"x-invoke-status",
    b"x-method-override",
    b"x-now-route-matches",
    b"x-originating-ip",
    b"x-override-url",
    b"x-proxyuser-ip",
    b"x-real-ip",
    b"x-remote-addr",
    b"x-remote-ip",
    b"x-remote-user",
    b"x-rewrite-uri",
    b"x-rewrite-url",
    b"x-scheme",
    b"x-script-name",
    b"x-sendfile",
    b"x-sendfile-type",
    b"x-true-client-ip",
    b"x-url",
    b"x-url-scheme",
];

/// Prefixes of CDNs' fields about the client's place.
const PLACE_PREFIXES: [&[u8]; 2] = [b"cloudfront-viewer-", b"x-vercel-ip-"];

/// CDNs' and balancers' fields about the client's place.
const PLACES: [&[u8]; 13] = [
    b"cf-ipcity",
    b"cf-ipcontinent",
    b"cf-ipcountry",
    b"cf-iplatitude",
    b"cf-iplongitude",
    b"x-appengine-city",
    b"x-appengine-country",
    b"x-appengine-region",
    b"x-client-geo-location",
    b"x-country",
    b"x-country-code",
    b"x-geo-country",
    b"x-geoip-country",
];

/// The first two bytes of the names in all lists.
const BEGINNINGS: [[u8; 2]; 15] = [
    *b"x-", *b"x_", *b"ba", *b"cf", *b"cl", *b"fa", *b"fl", *b"fo", *b"fr", *b"ht", *b"pr", *b"re",
    *b"ss", *b"tr", *b"wl",
];

/// Length of the longest name that is compared with `-` for `_`.
const NAME_BYTES: usize = 40;

/// Returns true if `name` is a known field's except for `_` in place of `-`. CGI and its successors
/// take such a field for the known one, which would bypass the handling of the known field here.
fn shadows_known(name: &[u8]) -> bool {
    let mut dashed = [0; NAME_BYTES];
    let Some(dashed) = dashed.get_mut(..name.len()) else { return false };
    for (to, from) in dashed.iter_mut().zip(name) {
        *to = if *from == b'_' { b'-' } else { *from };
    }
    HeaderId::of(dashed) != HeaderId::Other
}

fn is_forged_name(name: &[u8]) -> bool {
    if memchr::memchr(b'_', name).is_some() && shadows_known(name) {
        return true;
    }
    // Few names start like these: the lists are not searched for others.
    let begins_like_one = name.first_chunk().is_some_and(|[a, b]| {
        BEGINNINGS.contains(&[a.to_ascii_lowercase(), b.to_ascii_lowercase()])
    });
    if !begins_like_one {
        return false;
    }
    is_one_of(name, &PREFIXES, &NAMES) || is_place(name)
}

/// Returns true if a field with this name is a CDN's about the client's place.
pub(crate) fn is_place(name: &[u8]) -> bool {
    is_one_of(name, &PLACE_PREFIXES, &PLACES)
}

fn is_one_of(name: &[u8], prefixes: &[&[u8]], names: &[&[u8]]) -> bool {
    let begins = |prefix: &[u8]| name.len() >= prefix.len() && same(&name[..prefix.len()], prefix);
    prefixes.iter().any(|prefix| begins(prefix)) || names.iter().any(|known| is_name(name, known))
}

/// Equal without regard to case and to `_` and `-`, which CGI and its successors do not
/// distinguish.
fn same(name: &[u8], known: &[u8]) -> bool {
    name.iter().zip(known).all(|(a, b)| a.to_ascii_lowercase() == *b || (*a == b'_' && *b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_begins_like_one() {
        for name in PREFIXES.iter().chain(&NAMES).chain(&PLACE_PREFIXES).chain(&PLACES) {
            assert!(is_forged_name(name), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn p1_fields_that_speak_for_a_proxy_are_removed_however_spelt() {
        let forged = [
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "x-forwarded-proto",
            "X-Forwarded-Server",
            "X-Forwarded-Scheme",
            "X-Forwarded-Port",
            "X-Forwarded-Prefix",
            "Forwarded",
            "X-Host",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-HTTP-Method-Override",
            "X-HTTP-Method",
            "X-Method-Override",
            "Client-Cert",
            "Client-Cert-Chain",
            "Proxy",
            "PROXY",
            "X_Forwarded_Host",
            "x_original-url",
            "X-Real-IP",
            "X-Client-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "Fastly-Client-IP",
            "Fly-Client-IP",
            "Client-IP",
            "WL-Proxy-Client-IP",
            "Front-End-Https",
            "X-URL-Scheme",
            "X-SSL-Client-Verify",
            "X-SSL-Cert",
            "SSL_CLIENT_S_DN",
            "X-ARR-ClientCert",
            "X-Accel-Mapping",
            "X-Sendfile-Type",
            "Forwarded-For",
            "X-Middleware-Rewrite",
            "x-middleware-subrequest",
            "X-Invoke-Path",
            "X-Now-Route-Matches",
            "X-Http-Path-Override",
            "X-Rewrite-Uri",
            "X-Url",
            "X-Forward-Host",
            "X-Forward-For",
            "SSL-Offloaded",
            "Fastly-SSL",
            "Proxy-Host",
            "Http-Host",
            "HTTP_HOST",
            "Base-Url",
            "Request-Uri",
            "REQUEST_URI",
            "Remote-User",
            "X-Remote-User",
            "if_none_match",
            "If_Range",
            "Content_Length",
            "transfer_encoding",
            "Proxy-Authorization",
            "CF-IPCountry",
            "CloudFront-Viewer-Country",
            "X-Country",
            "X-Geo-Country",
            "Fastly-FF",
            "X-Sendfile",
            "X-Custom-IP-Authorization",
            "X-Invoke-Status",
            "X-Invoke-Query",
            "X-Vercel-IP-Country",
        ];
        let innocent = [
            "Accept",
            "X-Hosts",
            "X-Requested-With",
            "Proxies",
            "X",
            "Client",
            "X-Forward",
            "X-Urls",
            "Remote-Users",
            "some_field",
            "X-Real",
        ];
        let mut headers = HeaderBlock::new();
        for name in forged.iter().chain(&innocent) {
            headers.push_named(name.as_bytes(), b"evil");
        }
        assert!(HeadFindings::of(&headers).forged);
        remove(&mut headers, false, false);
        assert_eq!(HeadFindings::of(&headers), HeadFindings::default());
        let left: Vec<_> = headers.iter().map(|f| f.name).collect();
        assert_eq!(left, innocent.map(str::as_bytes));
    }

    #[test]
    fn where_a_client_is_may_be_said_by_those_who_are_believed() {
        let mut headers = HeaderBlock::new();
        for name in ["CF-IPCountry", "X-Real-IP", "CloudFront-Viewer-Country"] {
            headers.push_named(name.as_bytes(), b"DE");
        }
        remove(&mut headers, false, true);
        let left: Vec<_> = headers.iter().map(|f| f.name).collect();
        assert_eq!(left, [&b"CF-IPCountry"[..], b"CloudFront-Viewer-Country"]);
    }
}
