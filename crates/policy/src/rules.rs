//! A site's settings as plain data: what `larder.toml` says about one site, read and checked.
//!
//! Every value here is already of the type that the request path uses, so that building a
//! [`Declared`](crate::Declared) from it cannot fail.

use std::fmt;
use std::sync::Arc;

use message::Method;
use message::store::{StatusMatch, StoreRules};
use message::upgrade::Protocol;

use crate::acl::Net;
use crate::answer::{ConfiguredResponse, Redirect};
use crate::decision_steps::SettingLocations;
use crate::forwarded::ClientField;
use crate::headers::{FieldName, HeaderOps};
use crate::pattern::{NamePattern, PathPattern};
use crate::points::{PageCache, StorageChoice};
use crate::site_authentication::{BasicAuth, ForwardAuth};
use crate::throttle::{ConcurrencyRule, RateRule};
use crate::value::ValuePattern;

/// The defaults that a site starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Safe behind an origin that says little: tracking parameters and cookies removed, cookies
    /// personal, Set-Cookie never stored, grace and service through outages.
    #[default]
    Safe,
    /// RFC 9111 to the letter.
    Rfc,
}

impl Profile {
    /// The store rules it starts from.
    pub fn store_rules(self) -> StoreRules {
        match self {
            Self::Safe => StoreRules::safe(),
            Self::Rfc => StoreRules::rfc(),
        }
    }
}

/// One site.
#[derive(Clone, Debug, Default)]
pub struct SiteRules {
    /// The defaults that apply.
    pub profile: Profile,
    /// Peers whose forwarding fields are believed.
    pub trusted_proxies: Vec<Net>,
    /// Where they say who the client is.
    pub client_field: ClientField,
    /// Origins get Forwarded (RFC 7239), too.
    pub forwarded: bool,
    /// Where requests over plain HTTP are sent, those of certificate authorities apart.
    pub redirect_https: Option<Redirect>,
    /// Paths mean what their bytes say, and nothing else: `;` begins no parameters, and an escaped
    /// `\` is no slash.
    pub opaque_spellings: bool,
    /// Ends of the names of scripts that the site's origins run as Larder says itself.
    pub scripts: Vec<String>,
    /// Routes in the order of the file; the first that matches counts.
    pub routes: Vec<RouteRules>,
    /// Settings of requests no route matches.
    pub settings: Settings,
}

/// One route: which requests it is for, and its settings in full (what it does not say itself it
/// has from its site: see [`Settings::inherit`]).
#[derive(Clone, Debug)]
pub struct RouteRules {
    /// The name in logs and in the output of `explain`.
    pub name: String,
    /// Paths; any of them. Empty: every path.
    pub paths: Vec<PathPattern>,
    /// Methods; any of them. Empty: every method.
    pub methods: Vec<Method>,
    /// Its settings.
    pub settings: Settings,
}

impl RouteRules {
    /// Returns true if `self` surely matches every request that `other` matches.
    pub fn covers(&self, other: &Self) -> bool {
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty()
                && other.methods.iter().all(|m| self.methods.contains(m)));
        let paths = self.paths.is_empty()
            || (!other.paths.is_empty()
                && other.paths.iter().all(|path| self.paths.iter().any(|wide| wide.covers(path))));
        methods && paths
    }
}

/// Settings for the requests of one route. `None` stands for the profile's default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Index of the origin, in the site's list.
    pub origin: u32,
    /// Index, in the site's list, of the root whose files answer; `None` where the origin does.
    pub files: Option<u32>,
    /// Whose pages on the disk are looked for before the origin is asked.
    pub page_cache: Option<PageCache>,
    /// The cache is used.
    pub cache: bool,
    /// Lifetimes in milliseconds for responses that name none.
    pub ttl: Vec<(StatusMatch, u64)>,
    /// Longest lifetime guessed from Last-Modified, in milliseconds; 0 for no guess.
    pub heuristic_ms: Option<u64>,
    /// Longest lifetime of pages in HTML guessed so, in milliseconds.
    pub heuristic_html_ms: Option<u64>,
    /// Grace (stale-while-revalidate) in milliseconds, where the response names none.
    pub grace_ms: Option<u64>,
    /// Time past its lifetime, in milliseconds, that a response stands in for an origin error.
    pub stale_if_error_ms: Option<u64>,
    /// Time past its lifetime, in milliseconds, that a response is used while the origin is out of
    /// reach.
    pub stale_if_unreachable_ms: Option<u64>,
    /// A client's Cache-Control counts (nginx, Varnish and most others ignore it).
    pub honour_request_directives: Option<bool>,
    /// Fields of requests whose values are part of the key.
    pub key_headers: Vec<FieldName>,
    /// Set-Cookie is removed from responses that the origin marked as shared and gave a lifetime.
    pub drop_set_cookie: bool,
    /// The pattern of requests for which stored responses that do not say so may serve as
    /// dictionaries (RFC 9842).
    pub dictionary: Option<Box<str>>,
    /// A response is stored only if it has the Content-Type that its path's suffix stands for.
    pub match_type: bool,
    /// Fields of requests: a response to one that has such a field is stored only if it has the
    /// field too, with the same value.
    pub match_headers: Vec<FieldName>,
    /// Statuses of responses that are never stored.
    pub not_stored: Vec<StatusMatch>,
    /// The use that clients may make of responses that are for all.
    pub browsers: BrowserCaching,
    /// Where responses are kept.
    pub store: StorageChoice,
    /// Requests that go past the cache.
    pub bypass: Vec<Bypass>,
    /// Fields of requests that go past the cache for their path alone.
    pub bypass_unless: Vec<FieldName>,
    /// Cookies.
    pub cookies: CookieRules,
    /// Query parameters.
    pub query: QueryRules,
    /// Changes to the request on its way to the origin.
    pub request_headers: HeaderOps,
    /// Changes to the response on its way to the client.
    pub response_headers: HeaderOps,
    /// The answer, instead of the cache's or the origin's.
    pub answer: Option<ConfiguredResponse>,
    /// Milliseconds that the origin may take for the head of its response; otherwise it says so
    /// itself.
    pub first_byte_ms: Option<u64>,
    /// Protocols that a connection may change to (RFC 9110 7.8); at most
    /// [`PROTOCOLS_MAX`](message::upgrade::PROTOCOLS_MAX).
    pub upgrade: Vec<Protocol>,
    /// Clients let in; empty for all.
    pub allow: Vec<Net>,
    /// Clients kept out, even when `allow` lets them in.
    pub deny: Vec<Net>,
    /// Limits on how often clients may ask. Who inherits them counts together with whom they are
    /// from.
    pub rate: Option<Arc<[RateRule]>>,
    /// Limits on the requests that are under way at once, inherited alike.
    pub concurrent: Option<Arc<[ConcurrencyRule]>>,
    /// The users that are let in, by their passwords.
    pub basic_auth: Option<Arc<BasicAuth>>,
    /// Another server that is asked who may enter.
    pub forward_auth: Option<Arc<ForwardAuth>>,
    /// Where all this is written.
    pub places: SettingLocations,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            origin: 0,
            files: None,
            page_cache: None,
            cache: true,
            ttl: Vec::new(),
            heuristic_ms: None,
            heuristic_html_ms: None,
            grace_ms: None,
            stale_if_error_ms: None,
            stale_if_unreachable_ms: None,
            honour_request_directives: None,
            key_headers: Vec::new(),
            drop_set_cookie: false,
            dictionary: None,
            match_type: false,
            match_headers: Vec::new(),
            not_stored: Vec::new(),
            browsers: BrowserCaching::default(),
            store: StorageChoice::Both,
            bypass: Vec::new(),
            bypass_unless: Vec::new(),
            cookies: CookieRules::default(),
            query: QueryRules::default(),
            request_headers: HeaderOps::default(),
            response_headers: HeaderOps::default(),
            answer: None,
            first_byte_ms: None,
            upgrade: vec![Protocol::websocket()],
            allow: Vec::new(),
            deny: Vec::new(),
            rate: None,
            concurrent: None,
            basic_auth: None,
            forward_auth: None,
            places: SettingLocations::default(),
        }
    }
}

impl Settings {
    /// The settings that a route starts from: those of its site, but not the site's own answer.
    pub fn inherit(&self) -> Self {
        Self { answer: None, ..self.clone() }
    }

    /// Sets the lifetime of one match, replacing an inherited one.
    pub fn set_ttl(&mut self, status: StatusMatch, ttl_ms: u64) {
        self.ttl.retain(|(s, _)| *s != status);
        self.ttl.push((status, ttl_ms));
    }
}

/// The use that clients may make of responses that are for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrowserCaching {
    /// The use that the response allows.
    #[default]
    AsSaid,
    /// They may not store them: this cache is told of changes, and they are not.
    NeverStore,
}

/// One reason to go past the cache.
#[derive(Clone, Debug)]
pub enum Bypass {
    /// The path matches.
    Path(PathPattern),
    /// A cookie has such a name.
    Cookie(NamePattern),
    /// The field is there, with exactly this value if one is given.
    Header(FieldName, Option<Vec<u8>>),
    /// There is a query.
    AnyQuery,
    /// A query parameter has such a name, and such a value if one is given.
    Query(NamePattern, Option<ValuePattern>),
}

impl Bypass {
    /// The condition in words that anybody may read. A value that must be there may be a secret; it
    /// is shown only if it is a regular expression.
    pub fn told(&self) -> String {
        match self {
            Self::Header(name, Some(_)) => format!("header {name}: (value)"),
            Self::Query(name, Some(value)) if !value.to_string().starts_with('~') => {
                format!("query {name}=(value)")
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Bypass {
    /// The condition in full, with the value that must be there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(pattern) => write!(f, "path {pattern}"),
            Self::Cookie(name) => write!(f, "cookie {name}"),
            Self::Header(name, None) => write!(f, "header {name}"),
            Self::Header(name, Some(value)) => {
                write!(f, "header {name}: {}", String::from_utf8_lossy(value))
            }
            Self::AnyQuery => f.write_str("query"),
            Self::Query(name, None) => write!(f, "query {name}"),
            Self::Query(name, Some(value)) => write!(f, "query {name}={value}"),
        }
    }
}

/// Rules for cookies.
#[derive(Clone, Debug, Default)]
pub struct CookieRules {
    /// Removed, besides the tracking ones.
    pub strip: Vec<NamePattern>,
    /// Tracking cookies are removed.
    pub strip_tracking: Option<bool>,
    /// Names of cookies whose values are part of the key; they do not make a request personal.
    pub key: Vec<String>,
    /// If there are any: no other cookies count, and those are removed from requests that are
    /// looked up.
    pub keep: Vec<NamePattern>,
}

/// Rules for query parameters. Nothing here changes a key without changing the forwarded request in
/// the same way.
#[derive(Clone, Debug, Default)]
pub struct QueryRules {
    /// Removed, besides the tracking ones.
    pub strip: Vec<NamePattern>,
    /// Tracking parameters are removed.
    pub strip_tracking: Option<bool>,
    /// Parameters are put in order of their names.
    pub sort: bool,
    /// The whole query is removed.
    pub ignore: bool,
}
