//! The ways in which applications, their plugins and other caches say what to purge.
//!
//! Each is what the plugin sends, unchanged. What two of them would read differently is told apart
//! by the fields that only one of them has.

use ban::{Expression, Field, Term};
use message::cache_control::{CacheControl, Scope};
use message::{HeaderId, Method, Request, tags};

use super::carry_out::What;
use policy::{Dialect, Dialects};

use super::{Answers, Asked, Refusal, is_purge_method};

/// By what a request shows that it may be a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Its method.
    Method,
    /// Nginx Helper's path.
    NginxHelper,
    /// Souin's path.
    Souin,
    /// A field by which it wants a page to be made anew; readers send it, too.
    Refresh,
}

/// What is asked for.
#[derive(Debug)]
pub(crate) enum Order {
    /// Every variant of one target of the request's host.
    Url { target: Vec<u8>, soft: bool },
    /// What is described.
    Many { what: What, soft: bool },
    /// Say what is stored.
    List,
}

const NGINX_HELPER_PATH: &[u8] = b"/purge/";
const SOUIN_PATH: &[u8] = b"/souin-api/souin";
/// Dialects that have `PURGE url`.
const BY_URL: [Dialect; 5] =
    [Dialect::Purge, Dialect::Drupal, Dialect::FosHttpCache, Dialect::Fastly, Dialect::Squid];

/// Reads requests in some dialects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading(pub(super) Dialects);

impl Reading {
    /// Whether `request` may be a purge in one of these dialects.
    pub(super) fn calls(self, request: &Request) -> Option<Calls> {
        let target = &request.target;
        match request.method {
            Method::Get
                if self.0.has(Dialect::NginxHelper) && target.starts_with(NGINX_HELPER_PATH) =>
            {
                Some(Calls::NginxHelper)
            }
            _ if self.0.has(Dialect::Souin) && is_souin(request) => Some(Calls::Souin),
            Method::Get if self.0.has(Dialect::FosHttpCache) && wants_refresh(request) => {
                Some(Calls::Refresh)
            }
            Method::Get | Method::Head | Method::Post => None,
            _ => is_purge_method(&request.method).then_some(Calls::Method),
        }
    }

    /// Reads a request that [calls](Self::calls) for a purge.
    pub(super) fn read(self, request: &Request, calls: Calls) -> Result<Asked, Refusal> {
        let (order, answers) = match (calls, request.method.token()) {
            (Calls::Refresh, _) => return Ok(Asked::Refresh),
            (Calls::NginxHelper, _) => {
                let target = request.target[NGINX_HELPER_PATH.len() - 1..].to_vec();
                (Order::Url { target, soft: false }, Answers::OrMissing)
            }
            (Calls::Souin, token) => (souin(request, token)?, Answers::Empty),
            (Calls::Method, b"PURGE") => self.purge(request)?,
            (Calls::Method, b"BAN") => (self.ban(request)?, Answers::Always),
            (Calls::Method, b"PURGEKEYS") => (self.purge_keys(request)?, Answers::Always),
            (Calls::Method, b"URIBAN") if self.0.has(Dialect::Drupal) => {
                (Order::Url { target: request.target.clone(), soft: false }, Answers::Always)
            }
            (Calls::Method, b"REFRESH") if self.0.has(Dialect::Drupal) => {
                return Ok(Asked::Refresh);
            }
            _ => return Err(Refusal::Method),
        };
        Ok(Asked::Store(order, answers))
    }

    fn purge(self, request: &Request) -> Result<(Order, Answers), Refusal> {
        let headers = &request.headers;
        let soft = self.0.has(Dialect::Fastly) && is_set(headers.value_named(b"fastly-soft-purge"));
        let many = |what| (Order::Many { what, soft }, Answers::Always);
        if self.0.has(Dialect::Magento) {
            if let Some(pattern) = headers.value_named(b"x-magento-tags-pattern") {
                return Ok(many(tag_pattern(pattern)?));
            }
            if let Some(pool) = headers.value_named(b"x-pool") {
                let of_pool = matches(Field::Header("x-pool".to_owned()), pool)?;
                return Ok(many(What::terms(vec![of_pool])));
            }
        }
        for (dialect, name) in
            [(Dialect::Shopware, &b"xkey"[..]), (Dialect::Fastly, b"surrogate-key")]
        {
            if self.0.has(dialect) && headers.value_named(name).is_some() {
                return Ok(many(What::Tags(listed(request, name))));
            }
        }
        if self.0.has(Dialect::NginxHelper) && request.target == b"/purgeall" {
            return Ok(many(What::Everything));
        }
        if !self.0.any(&BY_URL) {
            return Err(match self.0.has(Dialect::Magento) {
                true => Refusal::Missing("X-Magento-Tags-Pattern or X-Pool is missing."),
                false => Refusal::Method,
            });
        }
        let method = headers.value_named(b"x-purge-method");
        if self.0.has(Dialect::Purge) && method.is_some_and(|m| m.eq_ignore_ascii_case(b"regex")) {
            let of_host = of_host(&request.host).ok_or(Refusal::Pattern)?;
            return Ok(many(What::terms(vec![of_host, matches(Field::Url, &request.target)?])));
        }
        let answers = match self.0.has(Dialect::Squid) && !self.0.any(&BY_URL[..4]) {
            true => Answers::OrMissing,
            false => Answers::Always,
        };
        Ok((Order::Url { target: request.target.clone(), soft }, answers))
    }

    fn ban(self, request: &Request) -> Result<Order, Refusal> {
        let headers = &request.headers;
        let many = |what| Ok(Order::Many { what, soft: false });
        if self.0.has(Dialect::Drupal) {
            for name in [&b"purge-cache-tags"[..], b"cache-tags"] {
                if headers.value_named(name).is_some() {
                    return many(alternatives(request, name)?);
                }
            }
        }
        if self.0.has(Dialect::FosHttpCache)
            && let Some(what) = by_fields(request)?
        {
            return many(what);
        }
        if self.0.has(Dialect::Shopware) {
            return many(What::terms(vec![matches(Field::Url, &request.target)?]));
        }
        Err(match self.0.any(&[Dialect::Drupal, Dialect::FosHttpCache]) {
            true => Refusal::Missing("The field that says what to ban is missing."),
            false => Refusal::Method,
        })
    }

    fn purge_keys(self, request: &Request) -> Result<Order, Refusal> {
        if !self.0.has(Dialect::FosHttpCache) {
            return Err(Refusal::Method);
        }
        for (name, soft) in [(&b"xkey-purge"[..], false), (b"xkey-softpurge", true)] {
            if request.headers.value_named(name).is_some() {
                return Ok(Order::Many { what: What::Tags(listed(request, name)), soft });
            }
        }
        Err(Refusal::Missing("xkey-purge or xkey-softpurge is missing."))
    }
}

fn is_souin(request: &Request) -> bool {
    let after = request.path().strip_prefix(SOUIN_PATH);
    after.is_some_and(|after| after.is_empty() || after.starts_with(b"/"))
}

fn wants_refresh(request: &Request) -> bool {
    let headers = &request.headers;
    let no_cache = || {
        headers.contains(HeaderId::CacheControl)
            && CacheControl::parse(headers.values(HeaderId::CacheControl)).no_cache == Scope::Whole
    };
    is_set(headers.value_named(b"x-refresh")) || no_cache()
}

fn is_set(value: Option<&[u8]>) -> bool {
    value.is_some_and(|value| value == b"1")
}

fn souin(request: &Request, token: &[u8]) -> Result<Order, Refusal> {
    let rest = &request.path()[SOUIN_PATH.len()..];
    let many = |what| Ok(Order::Many { what, soft: false });
    match (token, rest) {
        (b"GET", b"" | b"/") => Ok(Order::List),
        (b"PURGE", b"/flush") => many(What::Everything),
        (b"PURGE", b"" | b"/") if request.headers.value_named(b"surrogate-key").is_some() => {
            many(What::Tags(listed(request, b"surrogate-key")))
        }
        (b"PURGE", b"" | b"/") => Err(Refusal::Missing("Surrogate-Key is missing.")),
        (b"PURGE", [b'/', pattern @ ..]) => {
            let text = std::str::from_utf8(pattern).map_err(|_| Refusal::Pattern)?;
            many(What::Listed(ban::regex(text).map_err(|_| Refusal::Pattern)?))
        }
        _ => Err(Refusal::Method),
    }
}

/// The tags in a request's field, parted by blanks and commas.
fn listed(request: &Request, name: &[u8]) -> Vec<Vec<u8>> {
    request.headers.values_named(name).flat_map(tags::plain).map(<[u8]>::to_vec).collect()
}

/// The same, or alternatives of a pattern (`a|b`).
fn alternatives(request: &Request, name: &[u8]) -> Result<What, Refusal> {
    let is_pattern = |value: &[u8]| value.iter().any(|b| b"()\\^$*".contains(b));
    let mut all = Vec::new();
    for value in request.headers.values_named(name) {
        if is_pattern(value) {
            return tag_pattern(value);
        }
        all.extend(value.split(|b| *b == b'|').flat_map(tags::plain).map(<[u8]>::to_vec));
    }
    Ok(What::Tags(all))
}

/// What a pattern of tags means; `.*` is everything.
fn tag_pattern(pattern: &[u8]) -> Result<What, Refusal> {
    if pattern == b".*" {
        return Ok(What::Everything);
    }
    let text = std::str::from_utf8(pattern).map_err(|_| Refusal::TagPattern)?;
    let tags = tags::of_pattern(text, false).ok_or(Refusal::TagPattern)?;
    Ok(What::Tags(tags.into_iter().map(String::into_bytes).collect()))
}

/// What FOSHttpCache's fields describe; what is `.*` is not looked at.
fn by_fields(request: &Request) -> Result<Option<What>, Refusal> {
    let value = |name: &[u8]| request.headers.value_named(name);
    let mut terms = Vec::new();
    let mut any = false;
    for (name, field) in [
        (&b"x-host"[..], Field::Host),
        (b"x-url", Field::Url),
        (b"x-content-type", Field::Header("content-type".to_owned())),
    ] {
        let Some(pattern) = value(name) else { continue };
        any = true;
        if pattern != b".*" {
            terms.push(matches(field, pattern)?);
        }
    }
    let tags = match value(b"x-cache-tags") {
        Some(pattern) => {
            any = true;
            match tag_pattern(pattern)? {
                What::Tags(tags) => Some(tags),
                _ => None,
            }
        }
        None => None,
    };
    Ok(any.then(|| match (tags, terms.is_empty()) {
        (None, true) => What::Everything,
        (Some(tags), true) => What::Tags(tags),
        (tags, false) => What::Ban { expression: Expression::all(terms), tags },
    }))
}

/// The condition that a response is of `host`, on any port: plugins seldom know the one that
/// readers use. `None` for a host that would make an expression too large.
pub(super) fn of_host(host: &[u8]) -> Option<Term> {
    let host = linear::escape(&String::from_utf8_lossy(host));
    let regex = ban::regex(&format!("^{host}(:[0-9]+)?$")).ok()?;
    Some(Term::matches(Field::Host, false, regex))
}

fn matches(field: Field, pattern: &[u8]) -> Result<Term, Refusal> {
    let text = std::str::from_utf8(pattern).map_err(|_| Refusal::Pattern)?;
    if text.is_empty() {
        return Err(Refusal::Pattern);
    }
    Ok(Term::matches(field, false, ban::regex(text).map_err(|_| Refusal::Pattern)?))
}
