//! The purge dialects of applications, their plugins and other caches.
//!
//! Requests are read as the plugins send them. A request that two dialects read differently is
//! assigned by the fields that only one of them has; it must never be read as a broader purge than
//! was meant.

use ban::{Expression, Field, Term};
use message::cache_control::{CacheControl, DirectiveScope};
use message::{HeaderId, Method, Request, percent, tags};

use policy::{Dialect, Dialects};

use crate::selector::{ResponseSelector, of_host};
use crate::{Answers, PurgeRequest, Refusal, is_purge_method};

/// The property by which a request may be a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PurgeSignal {
    /// Its method.
    Method,
    /// Nginx Helper's path.
    NginxHelper,
    /// Souin's path.
    Souin,
    /// A path of Fastly's API.
    FastlyApi,
    /// A field that asks for a fresh page, which browsers send too.
    Refresh,
}

/// The part of a purge for some sites.
#[derive(Debug)]
pub struct Share {
    /// The responses of these sites that it selects.
    pub what: ResponseSelector,
    /// True if they only become stale.
    pub soft: bool,
    /// The numbers of the sites.
    pub sites: Vec<u32>,
}

/// The order of a purge request.
#[derive(Debug)]
pub enum PurgeOrder {
    /// All variants of one target of the request's host.
    Url {
        /// The target.
        target: Vec<u8>,
        /// True if they only become stale.
        soft: bool,
    },
    /// The responses of the site that `what` selects.
    Many {
        /// The selected responses.
        what: ResponseSelector,
        /// True if they only become stale.
        soft: bool,
    },
    /// Parts for several sites, each in its own dialects.
    Shared(Vec<Share>),
    /// List what is stored.
    List,
}

const NGINX_HELPER_PATH: &[u8] = b"/purge/";
const SOUIN_PATH: &[u8] = b"/souin-api/souin";
/// Dialects with `PURGE url` that answer 200 whether or not a response was stored.
const BY_URL: [Dialect; 6] = [
    Dialect::Purge,
    Dialect::Drupal,
    Dialect::FosHttpCache,
    Dialect::Shopware,
    Dialect::Fastly,
    Dialect::Plone,
];

/// Fields of surrogate keys, and true if the responses only become stale.
const XKEY_FIELDS: [(&[u8], bool); 2] = [(b"xkey-purge", false), (b"xkey-softpurge", true)];

/// Fields that belong to these dialects only. A site with another dialect would take the rest of
/// the request for a different purge: often of its first page, or of everything.
const OWN_FIELDS: [(&[u8], &[Dialect]); 15] = [
    (b"x-magento-tags-pattern", &[Dialect::Magento]),
    (b"x-pool", &[Dialect::Magento]),
    (b"purge-cache-tags", &[Dialect::Drupal]),
    (b"cache-tags", &[Dialect::Drupal]),
    (b"x-cache-tags", &[Dialect::FosHttpCache]),
    (b"x-url", &[Dialect::FosHttpCache]),
    (b"x-content-type", &[Dialect::FosHttpCache]),
    (b"xkey-purge", &[Dialect::Typo3]),
    (b"xkey-softpurge", &[Dialect::Typo3]),
    (b"xkey", &[Dialect::Shopware, Dialect::ApiPlatform]),
    (b"surrogate-key", &[Dialect::Fastly, Dialect::Souin]),
    (b"apiplatform-ban-regex", &[Dialect::ApiPlatform]),
    (b"varnish-ban-all", &[Dialect::Typo3]),
    (b"varnish-ban-typo3-pid", &[Dialect::Typo3]),
    (b"varnish-ban-typo3-sitename", &[Dialect::Typo3]),
];

impl PurgeSignal {
    /// Returns true if a request that is not permitted to purge may be a browser's.
    pub(super) fn may_be_readers(self, request: &Request) -> bool {
        match self {
            Self::Refresh => true,
            Self::FastlyApi => request.headers.value_named(b"fastly-key").is_none(),
            Self::Method | Self::NginxHelper | Self::Souin => false,
        }
    }
}

/// Reads requests in some dialects.
#[derive(Clone, Copy, Debug)]
pub(super) struct DialectReader {
    pub(super) of: Dialects,
    /// True if the request's Host names the site.
    pub(super) named: bool,
}

impl DialectReader {
    /// The property by which `request` may be a purge in one of these dialects, if any.
    pub(super) fn calls(self, request: &Request) -> Option<PurgeSignal> {
        let target = &request.target;
        match request.method {
            Method::Get
                if self.of.has(Dialect::NginxHelper) && target.starts_with(NGINX_HELPER_PATH) =>
            {
                Some(PurgeSignal::NginxHelper)
            }
            _ if self.of.has(Dialect::Souin) && is_souin(request) => Some(PurgeSignal::Souin),
            Method::Get if self.of.has(Dialect::FosHttpCache) && wants_refresh(request) => {
                Some(PurgeSignal::Refresh)
            }
            Method::Post if self.of.has(Dialect::Fastly) && api_of_fastly(request).is_some() => {
                Some(PurgeSignal::FastlyApi)
            }
            Method::Get | Method::Head | Method::Post => None,
            _ => is_purge_method(&request.method).then_some(PurgeSignal::Method),
        }
    }

    /// Reads a request that may be a purge ([`DialectReader::calls`]).
    pub(super) fn read(
        self,
        request: &Request,
        calls: PurgeSignal,
    ) -> Result<PurgeRequest, Refusal> {
        let (order, answers) = match (calls, request.method.token()) {
            (PurgeSignal::Refresh, _) => return Ok(PurgeRequest::Refresh),
            (PurgeSignal::NginxHelper, _) => {
                let target = request.target[NGINX_HELPER_PATH.len() - 1..].to_vec();
                match self.below(request, &target)? {
                    Some(what) => (PurgeOrder::Many { what, soft: false }, Answers::Always),
                    None => (PurgeOrder::Url { target, soft: false }, Answers::OrMissing),
                }
            }
            (PurgeSignal::Souin, token) => (souin(request, token)?, Answers::Empty),
            (PurgeSignal::FastlyApi, _) => (self.fastly_api(request)?, Answers::Always),
            (PurgeSignal::Method, b"PURGE") => self.purge(request)?,
            (PurgeSignal::Method, b"BAN") => (self.ban(request)?, Answers::Always),
            (PurgeSignal::Method, b"PURGEKEYS") => (self.purge_keys(request)?, Answers::Always),
            (PurgeSignal::Method, b"URIBAN") if self.of.has(Dialect::Drupal) => {
                (PurgeOrder::Url { target: request.target.clone(), soft: false }, Answers::Always)
            }
            (PurgeSignal::Method, b"REFRESH") if self.of.has(Dialect::Drupal) => {
                return Ok(PurgeRequest::Refresh);
            }
            _ => return Err(Refusal::Method),
        };
        Ok(PurgeRequest::Store(order, answers))
    }

    /// Rejects a request in another dialect.
    fn refuse_foreign(self, request: &Request) -> Result<(), Refusal> {
        for (name, dialects) in &OWN_FIELDS {
            if !self.of.any(dialects) && request.headers.value_named(name).is_some() {
                return Err(dialects.first().map_or(Refusal::Method, |one| Refusal::Foreign(*one)));
            }
        }
        if !self.of.has(Dialect::Purge) && is_by_regex(request) {
            return Err(Refusal::Foreign(Dialect::Purge));
        }
        Ok(())
    }

    /// Returns true for Fastly's soft purge.
    fn is_soft(self, request: &Request) -> bool {
        self.of.has(Dialect::Fastly) && is_set(request.headers.value_named(b"fastly-soft-purge"))
    }

    fn fastly_api(self, request: &Request) -> Result<PurgeOrder, Refusal> {
        let soft = self.is_soft(request);
        let what = match api_of_fastly(request) {
            Some(FastlyApi::All) => ResponseSelector::Everything,
            Some(FastlyApi::Key(key)) => ResponseSelector::Tags(vec![key]),
            Some(FastlyApi::Keys) => {
                let keys = listed(request, b"surrogate-key");
                if keys.is_empty() {
                    return Err(Refusal::Missing("Surrogate-Key is missing."));
                }
                ResponseSelector::Tags(keys)
            }
            None => return Err(Refusal::Method),
        };
        Ok(PurgeOrder::Many { what, soft })
    }

    fn purge(self, request: &Request) -> Result<(PurgeOrder, Answers), Refusal> {
        self.refuse_foreign(request)?;
        let headers = &request.headers;
        let soft = self.is_soft(request);
        let many = |what| (PurgeOrder::Many { what, soft }, Answers::Always);
        if self.of.has(Dialect::Magento) {
            if let Some(pattern) = headers.value_named(b"x-magento-tags-pattern") {
                return Ok(many(tag_pattern(pattern)?));
            }
            if let Some(pool) = headers.value_named(b"x-pool") {
                let of_pool = matches(Field::Header("x-pool".to_owned()), pool)?;
                return Ok(many(ResponseSelector::terms(vec![of_pool])));
            }
        }
        for name in [&b"xkey"[..], b"surrogate-key"] {
            if headers.value_named(name).is_some() {
                return Ok(many(ResponseSelector::Tags(listed(request, name))));
            }
        }
        let mut target = request.target.as_slice();
        let mut answers = Answers::Always;
        if self.of.has(Dialect::NginxHelper) {
            if target == b"/purgeall" {
                return Ok(many(ResponseSelector::Everything));
            }
            if target.starts_with(NGINX_HELPER_PATH) {
                target = &target[NGINX_HELPER_PATH.len() - 1..];
                answers = Answers::OrMissing;
            } else if !self.of.any(&BY_URL) && !self.of.has(Dialect::Squid) {
                return Err(Refusal::Method);
            }
        } else if !self.of.any(&BY_URL) {
            if !self.of.has(Dialect::Squid) {
                return Err(match self.of.has(Dialect::Magento) {
                    true => Refusal::Missing("X-Magento-Tags-Pattern or X-Pool is missing."),
                    false => Refusal::Method,
                });
            }
            answers = Answers::OrMissing;
        }
        if self.of.has(Dialect::Purge) && (is_by_regex(request) || target.ends_with(b".*")) {
            return Ok(many(ResponseSelector::terms(
                self.of_site(request, matches(Field::Url, target)?)?,
            )));
        }
        // `.*` is an expression of another dialect here, not a star.
        if self.of.any(&[Dialect::Purge, Dialect::NginxHelper])
            && !target.ends_with(b".*")
            && let Some(what) = self.below(request, target)?
        {
            return Ok(many(what));
        }
        if self.of.has(Dialect::Plone)
            && let Some(what) = self.plone(request)?
        {
            return Ok(many(what));
        }
        Ok((PurgeOrder::Url { target: target.to_vec(), soft }, answers))
    }

    /// `term`, and the request's host if it names one.
    fn of_site(self, request: &Request, term: Term) -> Result<Vec<Term>, Refusal> {
        let mut terms = Vec::new();
        if self.named {
            terms.push(of_host(&request.host).ok_or(Refusal::Pattern)?);
        }
        terms.push(term);
        Ok(terms)
    }

    /// Reads a request of plone.cachepurging whose Host does not name the page's host: the host is
    /// in the path for Zope, or absent.
    fn plone(self, request: &Request) -> Result<Option<ResponseSelector>, Refusal> {
        let url = |path: &[u8]| Term::equal(Field::Url, false, &String::from_utf8_lossy(path));
        if let Some((host, path)) = virtual_host(&request.target) {
            let host = of_host(&host).ok_or(Refusal::Pattern)?;
            return Ok(Some(ResponseSelector::terms(vec![host, url(&path)])));
        }
        Ok((!self.named).then(|| ResponseSelector::terms(vec![url(&request.target)])))
    }

    fn ban(self, request: &Request) -> Result<PurgeOrder, Refusal> {
        self.refuse_foreign(request)?;
        let headers = &request.headers;
        let many = |what| Ok(PurgeOrder::Many { what, soft: false });
        if self.of.has(Dialect::Drupal) {
            for name in [&b"purge-cache-tags"[..], b"cache-tags"] {
                if headers.value_named(name).is_some() {
                    return many(alternatives(request, name)?);
                }
            }
        }
        if self.of.has(Dialect::FosHttpCache)
            && let Some(what) = by_fields(request)?
        {
            return many(what);
        }
        if let Some(pattern) = headers.value_named(b"apiplatform-ban-regex") {
            return many(tag_pattern(pattern)?);
        }
        if self.of.has(Dialect::Typo3)
            && let Some((what, soft)) = typo3(request)
        {
            return Ok(PurgeOrder::Many { what, soft });
        }
        if self.of.has(Dialect::Drupal)
            && let Some(what) = self.below(request, &request.target)?
        {
            return many(what);
        }
        let says_more = OWN_FIELDS.iter().any(|(name, _)| headers.value_named(name).is_some());
        if self.of.has(Dialect::Shopware) && !says_more {
            return many(ResponseSelector::terms(vec![matches(Field::Url, &request.target)?]));
        }
        let by_field =
            [Dialect::Drupal, Dialect::FosHttpCache, Dialect::ApiPlatform, Dialect::Typo3];
        Err(match self.of.any(&by_field) {
            true => Refusal::Missing("The field that says what to ban is missing."),
            false => Refusal::Method,
        })
    }

    /// Reads a path that ends in `*`, in the meaning of Drupal's zero-configuration purger and
    /// nginx's `proxy_cache_purge`.
    fn below(self, request: &Request, target: &[u8]) -> Result<Option<ResponseSelector>, Refusal> {
        let Some(prefix) = target.strip_suffix(b"*") else { return Ok(None) };
        let prefix = prefix.strip_suffix(b"/.").map_or(prefix, |_| &prefix[..prefix.len() - 1]);
        if prefix == b"/" {
            return Ok(Some(ResponseSelector::Everything));
        }
        let host = self.named.then_some(request.host.as_slice());
        ResponseSelector::beginning(host, Some(prefix)).map(Some).map_err(|_| Refusal::Pattern)
    }

    fn purge_keys(self, request: &Request) -> Result<PurgeOrder, Refusal> {
        if !self.of.has(Dialect::FosHttpCache) {
            return Err(Refusal::Method);
        }
        for (name, soft) in XKEY_FIELDS {
            if request.headers.value_named(name).is_some() {
                return Ok(PurgeOrder::Many {
                    what: ResponseSelector::Tags(listed(request, name)),
                    soft,
                });
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
            && CacheControl::parse(headers.values(HeaderId::CacheControl)).no_cache
                == DirectiveScope::Whole
    };
    is_set(headers.value_named(b"x-refresh")) || no_cache()
}

/// Returns true if a field of Proxy Cache Purge, or of a similar plugin, declares the target a
/// regular expression.
fn is_by_regex(request: &Request) -> bool {
    let method = request.headers.value_named(b"x-purge-method");
    method.is_some_and(|method| method.eq_ignore_ascii_case(b"regex"))
}

fn is_set(value: Option<&[u8]>) -> bool {
    value.is_some_and(|value| value == b"1")
}

fn souin(request: &Request, token: &[u8]) -> Result<PurgeOrder, Refusal> {
    let rest = &request.path()[SOUIN_PATH.len()..];
    let many = |what| Ok(PurgeOrder::Many { what, soft: false });
    match (token, rest) {
        (b"GET", b"" | b"/") => Ok(PurgeOrder::List),
        (b"PURGE", b"/flush") => many(ResponseSelector::Everything),
        (b"PURGE", b"" | b"/") if request.headers.value_named(b"surrogate-key").is_some() => {
            many(ResponseSelector::Tags(listed(request, b"surrogate-key")))
        }
        (b"PURGE", b"" | b"/") => Err(Refusal::Missing("Surrogate-Key is missing.")),
        (b"PURGE", [b'/', pattern @ ..]) => {
            let pattern = percent::decode(pattern);
            let text = std::str::from_utf8(&pattern).map_err(|_| Refusal::Pattern)?;
            many(ResponseSelector::Listed(ban::regex(text).map_err(|_| Refusal::Pattern)?))
        }
        _ => Err(Refusal::Method),
    }
}

/// A purge of a service by a path of Fastly's API.
enum FastlyApi {
    All,
    Key(Vec<u8>),
    /// The keys in Surrogate-Key.
    Keys,
}

/// `/service/ID/purge_all`, `/service/ID/purge` or `/service/ID/purge/KEY`.
fn api_of_fastly(request: &Request) -> Option<FastlyApi> {
    let rest = request.path().strip_prefix(b"/service/")?;
    let end = rest.iter().position(|b| *b == b'/').filter(|end| *end > 0)?;
    match &rest[end + 1..] {
        b"purge_all" => Some(FastlyApi::All),
        b"purge" => Some(FastlyApi::Keys),
        purge => match purge.strip_prefix(b"purge/")? {
            b"" => None,
            key => Some(FastlyApi::Key(percent::decode(key))),
        },
    }
}

/// The host, without a port, and the path in a path of Zope's VirtualHostMonster:
/// `/VirtualHostBase/http/host:port/root/VirtualHostRoot/_vh_prefix/path`.
pub(super) fn virtual_host(target: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = std::str::from_utf8(target).ok()?;
    let (_, rest) = text.strip_prefix("/VirtualHostBase/")?.split_once('/')?;
    let (host, rest) = rest.split_once('/')?;
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let (_, mut path) = format!("/{rest}")
        .split_once("/VirtualHostRoot")
        .map(|(root, path)| (root.len(), path.to_owned()))?;
    let mut shown = String::new();
    while let Some(rest) = path.strip_prefix("/_vh_") {
        let end = rest.find('/').unwrap_or(rest.len());
        shown.push('/');
        shown.push_str(&rest[..end]);
        path = rest[end..].to_owned();
    }
    shown.push_str(&path);
    if shown.is_empty() {
        shown.push('/');
    }
    let is_path = shown.starts_with('/') && !host.is_empty();
    is_path.then(|| (host.to_ascii_lowercase().into_bytes(), shown.into_bytes()))
}

/// The tags in a request's field, separated by blanks and commas.
fn listed(request: &Request, name: &[u8]) -> Vec<Vec<u8>> {
    request.headers.values_named(name).flat_map(tags::plain).map(<[u8]>::to_vec).collect()
}

/// The tags in a field, or alternatives of a pattern (`a|b`).
fn alternatives(request: &Request, name: &[u8]) -> Result<ResponseSelector, Refusal> {
    let is_pattern = |value: &[u8]| value.iter().any(|b| b"()\\^$*".contains(b));
    let mut all = Vec::new();
    for value in request.headers.values_named(name) {
        if is_pattern(value) {
            return tag_pattern(value);
        }
        all.extend(value.split(|b| *b == b'|').flat_map(tags::plain).map(<[u8]>::to_vec));
    }
    Ok(ResponseSelector::Tags(all))
}

/// Reads a pattern of tags; `.*` selects everything.
fn tag_pattern(pattern: &[u8]) -> Result<ResponseSelector, Refusal> {
    if pattern == b".*" {
        return Ok(ResponseSelector::Everything);
    }
    let text = std::str::from_utf8(pattern).map_err(|_| Refusal::TagPattern)?;
    let tags = tags::of_pattern(text, false).ok_or(Refusal::TagPattern)?;
    Ok(ResponseSelector::Tags(tags.into_iter().map(String::into_bytes).collect()))
}

/// Reads the fields of TYPO3: the selected responses, and true if they only become stale.
fn typo3(request: &Request) -> Option<(ResponseSelector, bool)> {
    let headers = &request.headers;
    for (name, soft) in XKEY_FIELDS {
        if headers.value_named(name).is_some() {
            return Some((ResponseSelector::Tags(listed(request, name)), soft));
        }
    }
    let is = |field: &str, name: &[u8]| {
        let value = String::from_utf8_lossy(headers.value_named(name)?);
        Some(Term::equal(Field::Header(field.to_owned()), false, &value))
    };
    let all = headers.value_named(b"varnish-ban-all").is_some();
    let pid = is("typo3-pid", b"varnish-ban-typo3-pid").filter(|_| !all);
    let site = is("typo3-sitename", b"varnish-ban-typo3-sitename");
    let terms: Vec<_> = pid.into_iter().chain(site).collect();
    match terms.is_empty() {
        true => all.then_some((ResponseSelector::Everything, false)),
        false => Some((ResponseSelector::terms(terms), false)),
    }
}

/// Reads the fields of FOSHttpCache. A field with `.*` adds no condition.
fn by_fields(request: &Request) -> Result<Option<ResponseSelector>, Refusal> {
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
                ResponseSelector::Tags(tags) => Some(tags),
                _ => None,
            }
        }
        None => None,
    };
    Ok(any.then(|| match (tags, terms.is_empty()) {
        (None, true) => ResponseSelector::Everything,
        (Some(tags), true) => ResponseSelector::Tags(tags),
        (tags, false) => ResponseSelector::Ban { expression: Expression::all(terms), tags },
    }))
}

fn matches(field: Field, pattern: &[u8]) -> Result<Term, Refusal> {
    let text = std::str::from_utf8(pattern).map_err(|_| Refusal::Pattern)?;
    if text.is_empty() {
        return Err(Refusal::Pattern);
    }
    Ok(Term::matches(field, false, ban::regex(text).map_err(|_| Refusal::Pattern)?))
}
