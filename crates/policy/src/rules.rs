//! Rules of one site: its settings in `larder.toml`, parsed and checked, as plain data.
//!
//! Every value has the type that the request path uses, so that building a
//! [`Declared`](crate::Declared) cannot fail.

use std::fmt;
use std::sync::Arc;

use message::store::{IgnoredFields, StatusMatch, StoreRules};
use message::upgrade::Protocol;

use crate::acl::Net;
use crate::answer::{ConfiguredResponse, Redirect};
use crate::conditions::RouteScope;
use crate::crawlers::CrawlerRules;
use crate::decision_steps::SettingLocations;
use crate::forwarded::ClientField;
use crate::header_changes::HeaderOps;
use crate::headers::FieldName;
use crate::pattern::{NamePattern, PathPattern};
use crate::points::{PageCache, StorageChoice};
use crate::policy_files::RedirectFile;
use crate::response_rules::ResponseRule;
use crate::rewrite::Rewrite;
use crate::site_authentication::{BasicAuth, ForwardAuth};
use crate::sticky::StickyCookie;
use crate::throttle::{ConcurrencyRule, RateRule};
use crate::value::ValuePattern;
use crate::vary::VaryRules;

/// The defaults of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Safe with an origin that declares little: tracking parameters and cookies removed, cookies
    /// personal, Set-Cookie never stored, grace and stale use during outages.
    #[default]
    Safe,
    /// RFC 9111 to the letter.
    Rfc,
}

impl Profile {
    /// The profile's store rules.
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
    /// Peers whose forwarding fields are trusted.
    pub trusted_proxies: Vec<Net>,
    /// The field in which they name the client.
    pub client_field: ClientField,
    /// Origins get Forwarded (RFC 7239), too.
    pub forwarded: bool,
    /// The redirect of requests over plain HTTP, except those of certificate authorities.
    pub redirect_https: Option<Redirect>,
    /// Origins read paths literally: `;` starts no parameter, and an escaped `\` is not a slash.
    pub opaque_spellings: bool,
    /// Suffixes of scripts that the site's origins run, as their settings declare.
    pub scripts: Vec<String>,
    /// Routes in the order of the file; the first that matches counts.
    pub routes: Vec<RouteRules>,
    /// Settings of requests that match no route.
    pub settings: Settings,
    /// The rules for crawlers that are no routes.
    pub crawlers: CrawlerRules,
}

/// One route: its conditions, and its complete settings (missing ones come from its site: see
/// [`Settings::inherit`]).
#[derive(Clone, Debug)]
pub struct RouteRules {
    /// The name in logs and in the output of `explain`.
    pub name: String,
    /// The requests of the route.
    pub scope: RouteScope,
    /// Its settings.
    pub settings: Settings,
}

impl RouteRules {
    /// Returns true if `self` certainly matches every request that `other` matches.
    pub fn covers(&self, other: &Self) -> bool {
        self.scope.covers(&other.scope)
    }
}

/// Settings for the requests of one route. `None` means the profile's default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Index of the origin, in the site's list.
    pub origin: u32,
    /// The origin as it is written: a name or a URL. It is the same after a reload that gives the
    /// origin another index.
    pub origin_name: Arc<str>,
    /// The cookie that brings clients back to a server of the origin.
    pub sticky: Option<Arc<StickyCookie>>,
    /// The origin that gets copies of requests, as an index into all origins.
    pub mirror: Option<usize>,
    /// Index, in the site's list, of the root whose files are served; `None` for the origin.
    pub files: Option<u32>,
    /// The plugin whose pages on the disk are used before the origin.
    pub page_cache: Option<PageCache>,
    /// The cache is used.
    pub cache: bool,
    /// Fields of responses that have no say in storing.
    pub ignored: IgnoredFields,
    /// The clients for whom responses are fetched at once.
    pub serve: ServeMode,
    /// Lifetimes in milliseconds for responses without one.
    pub ttl: Vec<(StatusMatch, u64)>,
    /// Longest heuristic lifetime from Last-Modified, in milliseconds; 0 for none.
    pub heuristic_ms: Option<u64>,
    /// Longest heuristic lifetime of HTML pages, in milliseconds.
    pub heuristic_html_ms: Option<u64>,
    /// Grace (stale-while-revalidate) in milliseconds for responses without one.
    pub grace_ms: Option<u64>,
    /// The time after its lifetime, in milliseconds, in which a response replaces an error of the
    /// origin.
    pub stale_if_error_ms: Option<u64>,
    /// The time after its lifetime, in milliseconds, in which a response is used while the origin
    /// is unreachable.
    pub stale_if_unreachable_ms: Option<u64>,
    /// A client's Cache-Control is honoured (nginx, Varnish and most others ignore it).
    pub honour_request_directives: Option<bool>,
    /// Request fields whose values are part of the key.
    pub key_headers: Vec<FieldName>,
    /// Set-Cookie is removed from responses that the origin declares shared, with a lifetime.
    pub drop_set_cookie: bool,
    /// The pattern of requests for which stored responses without a Use-As-Dictionary may be
    /// dictionaries (RFC 9842).
    pub dictionary: Option<Box<str>>,
    /// A response is stored only if its Content-Type matches the suffix of its path.
    pub match_type: bool,
    /// Request fields: the response to a request with such a field is stored only if it has the
    /// field, too, with an equal value.
    pub match_headers: Vec<FieldName>,
    /// Statuses of responses that are never stored.
    pub not_stored: Vec<StatusMatch>,
    /// The use of shared responses by browsers.
    pub browsers: BrowserCaching,
    /// The tiers that store responses.
    pub store: StorageChoice,
    /// One of so many hits is compared with the origin; 0 for none.
    pub verify_one_in: Option<u32>,
    /// Requests that pass the cache.
    pub bypass: Vec<Bypass>,
    /// Fields of requests that pass the cache for their path only.
    pub bypass_unless: Vec<FieldName>,
    /// Cookies.
    pub cookies: CookieRules,
    /// Query parameters.
    pub query: QueryRules,
    /// Fields that are brought into few forms.
    pub vary: VaryRules,
    /// The URL that the origin is asked for; `None` for the client's.
    pub rewrite: Option<Rewrite>,
    /// Changes to the request on its way to the origin.
    pub request_headers: HeaderOps,
    /// Changes to the response on its way to the client.
    pub response_headers: HeaderOps,
    /// The file of redirects, whose lines answer before the cache and the origin.
    pub redirects: Option<RedirectFile>,
    /// Statuses of origins' errors that the site's error pages replace.
    pub intercepted: Vec<StatusMatch>,
    /// Rules for responses of origins; all that match apply, in their order.
    pub response_rules: Vec<ResponseRule>,
    /// The configured response, instead of the cache's or the origin's.
    pub answer: Option<ConfiguredResponse>,
    /// The access log has lines about the requests.
    pub access_log: bool,
    /// Milliseconds until the head of the origin's response; `None` for the origin's own timeout.
    pub first_byte_ms: Option<u64>,
    /// Protocols that a connection may switch to (RFC 9110 7.8); at most
    /// [`PROTOCOLS_MAX`](message::upgrade::PROTOCOLS_MAX).
    pub upgrade: Vec<Protocol>,
    /// Permitted clients; empty for all.
    pub allow: Vec<Net>,
    /// Denied clients, which take precedence over `allow`.
    pub deny: Vec<Net>,
    /// Rate limits. A route that inherits them shares their counts.
    pub rate: Option<Arc<[RateRule]>>,
    /// Limits of concurrent requests. A route that inherits them shares their counts.
    pub concurrent: Option<Arc<[ConcurrencyRule]>>,
    /// The permitted users with their passwords.
    pub basic_auth: Option<Arc<BasicAuth>>,
    /// The server that decides about access.
    pub forward_auth: Option<Arc<ForwardAuth>>,
    /// The locations of the settings.
    pub places: SettingLocations,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            origin: 0,
            origin_name: Arc::default(),
            sticky: None,
            mirror: None,
            files: None,
            page_cache: None,
            cache: true,
            ignored: IgnoredFields::default(),
            serve: ServeMode::default(),
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
            verify_one_in: None,
            bypass: Vec::new(),
            bypass_unless: Vec::new(),
            cookies: CookieRules::default(),
            query: QueryRules::default(),
            vary: VaryRules::default(),
            rewrite: None,
            request_headers: HeaderOps::default(),
            response_headers: HeaderOps::default(),
            redirects: None,
            intercepted: Vec::new(),
            response_rules: Vec::new(),
            answer: None,
            access_log: true,
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
    /// The settings that a route starts from: those of its site, without the site's own response.
    pub fn inherit(&self) -> Self {
        Self { answer: None, ..self.clone() }
    }

    /// The highest number of a part of the path that changes of responses' fields have.
    pub fn response_captures(&self) -> usize {
        let rules = self.response_rules.iter().map(|rule| &rule.headers);
        let all = rules.chain([&self.response_headers]);
        all.map(HeaderOps::captures).max().unwrap_or(0)
    }

    /// Sets the lifetime of one match, replacing an inherited one.
    pub fn set_ttl(&mut self, status: StatusMatch, ttl_ms: u64) {
        self.ttl.retain(|(s, _)| *s != status);
        self.ttl.push((status, ttl_ms));
    }
}

/// The way in which requests are served that the store cannot answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServeMode {
    /// By a fetch.
    #[default]
    All,
    /// From the store also with what is stale, and else by a fetch that waits in the queue for
    /// crawlers.
    Stored,
}

/// The use of shared responses by browsers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrowserCaching {
    /// As the response declares.
    #[default]
    AsSaid,
    /// Browsers may not store them, since purges do not reach browsers.
    NeverStore,
}

/// One condition for passing the cache.
#[derive(Clone, Debug)]
pub enum Bypass {
    /// The path matches.
    Path(PathPattern),
    /// A cookie has this name.
    Cookie(NamePattern),
    /// The field is present, with exactly this value if one is given.
    Header(FieldName, Option<Vec<u8>>),
    /// There is a query.
    AnyQuery,
    /// A query parameter has this name, and this value if one is given.
    Query(NamePattern, Option<ValuePattern>),
}

impl Bypass {
    /// The condition in words. A required value may be a secret; it is shown only if it is a
    /// regular expression.
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
    /// The complete condition, with a required value.
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
    /// Removed cookies, besides tracking ones.
    pub strip: Vec<NamePattern>,
    /// Tracking cookies are removed.
    pub strip_tracking: Option<bool>,
    /// Names of cookies whose values are part of the key; they do not make a request personal.
    pub key: Vec<String>,
    /// If not empty: only these cookies count, and others are removed from requests that are looked
    /// up.
    pub keep: Vec<NamePattern>,
}

/// Rules for query parameters. No rule changes the key without changing the forwarded request in
/// the same way.
#[derive(Clone, Debug, Default)]
pub struct QueryRules {
    /// Removed parameters, besides tracking ones.
    pub strip: Vec<NamePattern>,
    /// Tracking parameters are removed.
    pub strip_tracking: Option<bool>,
    /// Parameters are sorted by name.
    pub sort: bool,
    /// The whole query is removed.
    pub ignore: bool,
}
