//! Cross-site checks: keep pages of other web sites out, by a request's Host, Origin,
//! Sec-Fetch-Site and Content-Type.

use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;

/// Hosts that every listener accepts: no foreign DNS record leads a browser here by them.
const LOCAL_NAMES: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Hosts that a listener accepts; `None` for every host, and requests without one.
#[derive(Debug)]
pub(crate) struct HostAllowlist(Option<Vec<String>>);

impl HostAllowlist {
    /// The local names and `more`, without ports.
    pub(crate) fn new(more: impl IntoIterator<Item = String>) -> Self {
        let usual = LOCAL_NAMES.into_iter().map(str::to_owned);
        Self(Some(usual.chain(more).map(|name| name.to_ascii_lowercase()).collect()))
    }

    /// All hosts: for a listener that tells another site's page nothing. Kubelets send an address,
    /// some balancers no Host field.
    pub(crate) fn any() -> Self {
        Self(None)
    }

    /// Returns true if `authority`, a name with or without a port, is accepted.
    fn has(&self, authority: &str) -> bool {
        let mut own = self.0.iter().flatten();
        host_of(authority).is_some_and(|host| own.any(|name| name.eq_ignore_ascii_case(host)))
    }

    /// Returns true if a request's host is accepted: that of its only Host field, and that of its
    /// target if there is one (RFC 9112 3.2.2).
    pub(crate) fn admit(&self, request: &Parts) -> bool {
        if self.0.is_none() {
            return true;
        }
        let by_target = request.uri.authority().is_none_or(|name| self.has(name.as_str()));
        by_target && sole(&request.headers, &header::HOST).is_some_and(|name| self.has(name))
    }
}

/// The host of an authority; `None` if malformed.
fn host_of(authority: &str) -> Option<&str> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let good = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (good && !host.is_empty()).then_some(host)
}

/// The value of a field that occurs exactly once.
fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok();
    value.filter(|_| values.next().is_none())
}

/// Returns true if a page of another site may have sent the request. Browsers say so in Origin and
/// Sec-Fetch-Site, which pages cannot set.
pub(crate) fn is_cross_site(request: &Parts) -> bool {
    let headers = &request.headers;
    if headers.contains_key(header::ORIGIN) {
        let origin = sole(headers, &header::ORIGIN);
        let own = origin.and_then(|text| {
            text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))
        });
        let host = sole(headers, &header::HOST);
        if !own.zip(host).is_some_and(|(own, host)| own.eq_ignore_ascii_case(host)) {
            return true;
        }
    }
    headers.contains_key(SEC_FETCH_SITE)
        && !matches!(sole(headers, &SEC_FETCH_SITE), Some("same-origin" | "none"))
}

/// The type of a request's body, by its Content-Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// There is no Content-Type.
    Absent,
    /// JSON.
    Json,
    /// Another type, such as a form's.
    Other,
}

/// The type of a request's body.
pub(crate) fn type_of(headers: &HeaderMap) -> Type {
    if !headers.contains_key(header::CONTENT_TYPE) {
        return Type::Absent;
    }
    let Some(text) = sole(headers, &header::CONTENT_TYPE) else { return Type::Other };
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") { Type::Json } else { Type::Other }
}

/// The token of `Authorization: Bearer` (RFC 6750 2.1); no other place is read.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    let alone = values.next().is_none() && scheme.eq_ignore_ascii_case(b"bearer ");
    alone.then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::Request;
    use proptest::prelude::*;

    use super::*;

    fn parts(uri: &str, fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::post(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn only_local_and_named_hosts_are_admitted() {
        let names = HostAllowlist::new(["cache.example".to_owned(), "127.0.0.5".to_owned()]);
        for (host, admitted) in [
            ("localhost", true),
            ("LOCALHOST:6080", true),
            ("127.0.0.1:6080", true),
            ("[::1]:6080", true),
            ("[::1]", true),
            ("Cache.Example:1", true),
            ("127.0.0.5", true),
            ("127.0.0.2", false),
            ("evil.test:6080", false),
            ("localhost.evil.test", false),
            ("localhost:6080.evil.test", false),
            ("localhost@evil.test", false),
            ("evil.test@localhost", false),
            ("[::1", false),
            ("[::1]x", false),
            ("", false),
        ] {
            assert_eq!(names.admit(&parts("/", &[("host", host)])), admitted, "{host}");
        }
        assert!(!names.admit(&parts("/", &[])));
        assert!(!names.admit(&parts("/", &[("host", "localhost"), ("host", "localhost")])));
        assert!(!names.admit(&parts("http://evil.test/", &[("host", "localhost")])));
        assert!(names.admit(&parts("http://localhost/", &[("host", "localhost")])));
    }

    proptest! {
        #[test]
        fn what_is_admitted_is_one_of_the_names_and_a_port(
            text in "(localhost|127\\.0\\.0\\.1|\\[::1\\]|evil)?[.:@/\\[\\]a-z0-9 ]{0,8}"
        ) {
            let names = HostAllowlist::new([]);
            let name = LOCAL_NAMES.iter().find_map(|name| text.strip_prefix(name));
            let digits = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
            let good = name.is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix(':').is_some_and(digits)
            });
            prop_assert_eq!(names.has(&text), good);
        }
    }

    #[test]
    fn pages_of_other_sites_are_known_by_what_browsers_say() {
        let host = ("host", "localhost:6080");
        for (fields, elsewhere) in [
            (&[host][..], false),
            (&[host, ("origin", "http://localhost:6080")], false),
            (&[host, ("origin", "http://localhost:6081")], true),
            (&[host, ("origin", "http://evil.test")], true),
            (&[host, ("origin", "null")], true),
            (&[host, ("origin", "")], true),
            (&[host, ("origin", "http://localhost:6080"), ("origin", "http://evil.test")], true),
            (&[host, ("sec-fetch-site", "same-origin")], false),
            (&[host, ("sec-fetch-site", "none")], false),
            (&[host, ("sec-fetch-site", "same-site")], true),
            (&[host, ("sec-fetch-site", "cross-site")], true),
        ] {
            assert_eq!(is_cross_site(&parts("/", fields)), elsewhere, "{fields:?}");
        }
    }

    #[test]
    fn a_token_stands_in_one_field_alone() {
        let of = |fields: &[(&str, &str)]| {
            bearer(&parts("/", fields).headers).map(|token| token.to_vec())
        };
        assert_eq!(of(&[("authorization", "bearer abc ")]).as_deref(), Some(&b"abc"[..]));
        assert_eq!(of(&[("authorization", "Basic abc")]), None);
        assert_eq!(of(&[("authorization", "Bearer")]), None);
        assert_eq!(of(&[("authorization", "Bearer a"), ("authorization", "Bearer b")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn json_is_told_from_what_forms_send() {
        let of = |value| type_of(&parts("/", &[("content-type", value)]).headers);
        assert_eq!(of("application/json"), Type::Json);
        assert_eq!(of("Application/JSON; charset=utf-8"), Type::Json);
        assert_eq!(of("text/plain"), Type::Other);
        assert_eq!(of("application/jsonx"), Type::Other);
        assert_eq!(of("application/x-www-form-urlencoded"), Type::Other);
        assert_eq!(type_of(&HeaderMap::new()), Type::Absent);
    }
}
