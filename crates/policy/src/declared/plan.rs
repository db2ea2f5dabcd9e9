//! Plan of a route: its compiled settings, and what depends on them alone.

use std::sync::Arc;

use message::query::{ParamSet, TRACKING};
use message::store::{StatusMatch, StoreRules};
use message::upgrade::Protocol;
use message::{HeaderBlock, Request, Status};

use super::storage_class::StorageClass;
use crate::acl::CidrSet;
use crate::answer::ConfiguredResponse;
use crate::decision_steps::SettingLocations;
use crate::header_changes::HeaderOps;
use crate::headers::FieldName;
use crate::pattern::{NamePattern, PathPattern};
use crate::peer::ConnectionPeer;
use crate::points::{ALLOW, PageCache, StorageChoice, Synthetic};
use crate::policy_files::{PolicyFiles, RedirectFile};
use crate::redirect_map::RedirectMap;
use crate::response_rules::ResponseRule;
use crate::rewrite::Rewrite;
use crate::rules::{self, BrowserCaching, Profile, ServeMode, Settings};
use crate::sticky::StickyCookie;
use crate::value::ValuePattern;
use crate::vary::VaryRules;

/// Rules of every site; the discriminant is the number in [`Notes::rule`](crate::Notes::rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Cache,
    Method,
    MethodRefused,
    RequestBody,
    PathForm,
    Access,
    Answer,
    CacheOff,
    Upgrade,
    Files,
    Rate,
    Concurrent,
    BasicAuth,
    ForwardAuth,
    Verify,
    Vcl,
    Observe,
}

/// The names of rules, in their order.
pub(super) const RULES: [(Rule, &str); 17] = [
    (Rule::Cache, "cache"),
    (Rule::Method, "method"),
    (Rule::MethodRefused, "method refused"),
    (Rule::RequestBody, "request body"),
    (Rule::PathForm, "ambiguous path"),
    (Rule::Access, "access"),
    (Rule::Answer, "answer"),
    (Rule::CacheOff, "cache = false"),
    (Rule::Upgrade, "upgrade"),
    (Rule::Files, "files"),
    (Rule::Rate, "rate"),
    (Rule::Concurrent, "concurrent"),
    (Rule::BasicAuth, "basic_auth"),
    (Rule::ForwardAuth, "forward_auth"),
    (Rule::Verify, "verify"),
    (Rule::Vcl, "vcl"),
    (Rule::Observe, "observe"),
];

/// The compiled settings of one route.
#[derive(Debug)]
pub(super) struct RoutePlan {
    /// The settings that have a say in what is stored.
    pub(super) class: StorageClass,
    /// Other requests for the same URL may belong to other routes.
    pub(super) is_divided: bool,
    pub(super) origin: u32,
    pub(super) files: Option<u32>,
    pub(super) page_cache: Option<PageCache>,
    pub(super) cache: bool,
    pub(super) serve: ServeMode,
    pub(super) honours_requests: bool,
    pub(super) store: StoreRules,
    /// `None`: every client is permitted.
    pub(super) access: Option<Access>,
    /// The access log has lines about its requests.
    pub(super) access_log: bool,
    /// Responses that the settings make.
    pub(super) answers: Option<OwnResponses>,
    pub(super) cookies: Cookies,
    /// The cookie that brings clients back to a server of the origin.
    pub(super) sticky: Option<Arc<StickyCookie>>,
    pub(super) cookie_key: Vec<Box<[u8]>>,
    pub(super) header_key: Vec<FieldName>,
    pub(super) drop_set_cookie: bool,
    /// The Use-As-Dictionary of stored responses.
    pub(super) dictionary: Option<Box<[u8]>>,
    pub(super) match_type: bool,
    pub(super) match_headers: Vec<FieldName>,
    pub(super) not_stored: Vec<StatusMatch>,
    pub(super) browsers: BrowserCaching,
    pub(super) intercepted: Vec<StatusMatch>,
    pub(super) store_in: StorageChoice,
    /// `None`: the query is unchanged.
    pub(super) query: Option<Query>,
    /// `None`: no field is brought into another form.
    pub(super) vary: Option<Box<VaryRules>>,
    pub(super) bypass: BypassRules,
    pub(super) first_byte_ms: Option<u64>,
    pub(super) upgrade: Vec<Protocol>,
    pub(super) rewrite: Option<Rewrite>,
    pub(super) request_headers: HeaderOps,
    pub(super) response_headers: HeaderOps,
    pub(super) response_rules: Vec<ResponseRule>,
    /// The highest number of a part of the path that changes of responses' fields have.
    pub(super) response_captures: usize,
    /// A rule for responses changes fields.
    pub(super) rules_change_heads: bool,
    /// Heads are changed on their way to clients.
    pub(super) shapes_delivery: bool,
    /// The locations of its settings.
    pub(super) places: SettingLocations,
}

/// Responses that settings make, instead of the cache or the origin.
#[derive(Debug)]
pub(super) struct OwnResponses {
    /// The redirects of a file, which come first.
    pub(super) redirects: Option<FileRedirects>,
    /// The response to all requests without one.
    pub(super) other: Option<ConfiguredResponse>,
}

/// The redirects of a file.
#[derive(Debug)]
pub(super) struct FileRedirects {
    pub(super) file: RedirectFile,
    pub(super) map: Arc<RedirectMap>,
}

/// The permitted clients.
#[derive(Debug)]
pub(super) struct Access {
    /// `None`: all except `deny`.
    pub(super) allow: Option<CidrSet>,
    pub(super) deny: CidrSet,
}

/// Rules for cookies.
#[derive(Debug)]
pub(super) struct Cookies {
    pub(super) strip: Vec<NamePattern>,
    pub(super) strip_tracking: bool,
    /// If not empty, no other cookies count.
    pub(super) keep: Vec<NamePattern>,
}

/// The change to a query.
#[derive(Debug)]
pub(super) enum Query {
    Remove,
    Change { strip: ParamSet, sort: bool },
}

/// Conditions for passing the cache, by what they test, each with the number of its rule.
#[derive(Debug, Default)]
pub(super) struct BypassRules {
    pub(super) paths: Vec<(PathPattern, u32)>,
    pub(super) cookies: Vec<(NamePattern, u32)>,
    pub(super) headers: Vec<(FieldName, Option<Vec<u8>>, u32)>,
    pub(super) any_query: Option<u32>,
    /// With one of these fields, only the path counts.
    pub(super) unless: Vec<FieldName>,
    pub(super) queries: Vec<(NamePattern, Option<ValuePattern>, u32)>,
}

/// Responses to methods that no site permits, made once.
#[derive(Debug)]
pub(super) struct Refusals {
    /// CONNECT is for forward proxies.
    pub(super) connect: Arc<Synthetic>,
    /// TRACE would reveal the fields that proxies add; PURGE and BAN of a site without these purges
    /// get here, too.
    pub(super) method: Arc<Synthetic>,
    pub(super) access: Arc<Synthetic>,
    pub(super) path: Arc<Synthetic>,
}

impl RoutePlan {
    /// Returns true if `client` is denied.
    pub(super) fn keeps_out(&self, client: ConnectionPeer) -> bool {
        self.access.as_ref().is_some_and(|access| !access.admits(client))
    }

    /// Returns true if the values of a cookie with this name are part of the key.
    #[inline]
    pub(super) fn is_in_key(&self, name: &[u8]) -> bool {
        self.cookie_key.iter().any(|key| **key == *name)
    }

    /// Returns true if the values of the field with this name are part of the key.
    pub(super) fn has_in_key(&self, name: &[u8]) -> bool {
        self.header_key.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Removes insignificant cookies from a request that is looked up, so that they select no
    /// variant.
    #[inline(never)]
    pub(super) fn remove_ignored_cookies(&self, headers: &mut HeaderBlock, personal: bool) {
        let goes = |name: &[u8]| !self.is_in_key(name) && self.cookies.goes(name, personal);
        message::cookie::remove(headers, goes, &mut Vec::new());
    }

    /// Returns true if the route protects something: an access rule or `respond` keeps requests
    /// from the origin, and `cache = false` keeps responses from other clients.
    pub(super) fn is_guard(&self) -> bool {
        let answers = self.answers.as_ref().is_some_and(|own| own.other.is_some());
        self.access.is_some() || answers || !self.cache
    }

    pub(super) fn new(
        profile: Profile,
        mut settings: Settings,
        class: StorageClass,
        files: &PolicyFiles,
        rule_names: &mut Vec<String>,
    ) -> Self {
        let safe = profile == Profile::Safe;
        let mut strip = settings.cookies.strip.clone();
        // It is between the client and this proxy.
        let sticky = settings.sticky.iter().filter_map(|own| NamePattern::cookie(&own.name).ok());
        strip.extend(sticky);
        let store = store_rules(profile, &settings);
        let response_captures = settings.response_captures();
        let vary = std::mem::take(&mut settings.vary);
        let of_vary = vary.cookies.iter().map(|cookie| &cookie.name);
        let of_vary = of_vary.filter(|name| !settings.cookies.key.contains(name));
        let rules_change_heads =
            settings.response_rules.iter().any(|rule| !rule.headers.is_empty());
        let key: Vec<Box<[u8]>> =
            settings.cookies.key.iter().chain(of_vary).map(|n| n.as_bytes().into()).collect();
        Self {
            class,
            is_divided: false,
            origin: settings.origin,
            files: settings.files,
            page_cache: settings.page_cache,
            cache: settings.cache,
            serve: settings.serve,
            honours_requests: settings.honour_request_directives.unwrap_or(!safe),
            store,
            access: Access::new(&settings),
            access_log: settings.access_log,
            answers: OwnResponses::new(settings.redirects, settings.answer, files),
            cookies: Cookies {
                strip,
                keep: settings.cookies.keep,
                strip_tracking: settings.cookies.strip_tracking.unwrap_or(safe),
            },
            sticky: settings.sticky,
            cookie_key: key,
            header_key: settings.key_headers,
            drop_set_cookie: settings.drop_set_cookie,
            dictionary: settings.dictionary.as_deref().map(use_as_dictionary),
            match_type: settings.match_type,
            match_headers: settings.match_headers,
            not_stored: settings.not_stored,
            browsers: settings.browsers,
            store_in: settings.store,
            intercepted: settings.intercepted,
            query: Query::new(&settings.query, safe),
            vary: (!vary.is_empty()).then(|| Box::new(vary)),
            bypass: BypassRules {
                unless: settings.bypass_unless,
                ..BypassRules::new(settings.bypass, rule_names)
            },
            first_byte_ms: settings.first_byte_ms,
            upgrade: settings.upgrade,
            rewrite: settings.rewrite,
            request_headers: settings.request_headers,
            response_captures,
            shapes_delivery: rules_change_heads
                || !settings.response_headers.is_empty()
                || settings.browsers != BrowserCaching::AsSaid,
            response_headers: settings.response_headers,
            rules_change_heads,
            response_rules: settings.response_rules,
            places: settings.places,
        }
    }
}

impl OwnResponses {
    /// The responses that there are.
    fn new(
        redirects: Option<RedirectFile>,
        other: Option<ConfiguredResponse>,
        files: &PolicyFiles,
    ) -> Option<Self> {
        let redirects = redirects.and_then(|file| {
            let map = Arc::clone(files.redirects.get(&file.path)?);
            Some(FileRedirects { file, map })
        });
        (redirects.is_some() || other.is_some()).then_some(Self { redirects, other })
    }
}

/// The Use-As-Dictionary for requests that match `pattern` (RFC 9842 2.1).
fn use_as_dictionary(pattern: &str) -> Box<[u8]> {
    let escaped = pattern.replace('\\', "\\\\").replace('"', "\\\"");
    format!("match=\"{escaped}\"").into_bytes().into()
}

fn store_rules(profile: Profile, settings: &Settings) -> StoreRules {
    let mut store = profile.store_rules();
    store.ignored = settings.ignored.clone();
    store.default_lifetime_ms.splice(0..0, settings.ttl.iter().copied());
    if let Some(ms) = settings.heuristic_ms {
        store.heuristic = ms > 0;
        store.heuristic_max_ms = ms;
    }
    for (slot, setting) in [
        (&mut store.heuristic_html_max_ms, settings.heuristic_html_ms),
        (&mut store.grace_ms, settings.grace_ms),
        (&mut store.stale_if_error_ms, settings.stale_if_error_ms),
        (&mut store.stale_if_unreachable_ms, settings.stale_if_unreachable_ms),
    ] {
        *slot = setting.unwrap_or(*slot);
    }
    if let Some(honour) = settings.honour_request_directives {
        store.honour_request_no_store = honour;
    }
    store
}

impl Access {
    fn new(settings: &Settings) -> Option<Self> {
        let Settings { allow, deny, .. } = settings;
        if allow.is_empty() && deny.is_empty() {
            return None;
        }
        let allow = (!allow.is_empty()).then(|| CidrSet::new(allow));
        Some(Self { allow, deny: CidrSet::new(deny) })
    }

    pub(super) fn admits(&self, client: ConnectionPeer) -> bool {
        !self.deny.has(client) && self.allow.as_ref().is_none_or(|allow| allow.has(client))
    }
}

impl Cookies {
    /// Returns true if a cookie with this name is removed.
    pub(super) fn strips(&self, name: &[u8]) -> bool {
        (self.strip_tracking && message::cookie::is_tracking(name))
            || self.strip.iter().any(|pattern| pattern.matches(name))
    }

    /// Returns true if a cookie with this name, which is neither removed nor part of the key, makes
    /// a request personal.
    #[inline]
    pub(super) fn counts(&self, name: &[u8]) -> bool {
        self.keeps(name) && !self.is_of_way(name)
    }

    /// Returns true if an insignificant cookie is removed from a request that is looked up. In a
    /// personal request, a balancer behind this cache may need its own cookie.
    pub(super) fn goes(&self, name: &[u8], personal: bool) -> bool {
        match self.is_of_way(name) {
            true => !personal,
            false => !self.keeps(name),
        }
    }

    fn keeps(&self, name: &[u8]) -> bool {
        self.keep.is_empty() || self.keep.iter().any(|pattern| pattern.matches(name))
    }

    fn is_of_way(&self, name: &[u8]) -> bool {
        self.strip_tracking && message::cookie::is_of_way(name)
    }
}

impl Query {
    fn new(rules: &rules::QueryRules, safe: bool) -> Option<Self> {
        if rules.ignore {
            return Some(Self::Remove);
        }
        let tracking = if rules.strip_tracking.unwrap_or(safe) { TRACKING } else { &[] };
        let names = rules.strip.iter().map(NamePattern::as_str).chain(tracking.iter().copied());
        let change = !tracking.is_empty() || !rules.strip.is_empty() || rules.sort;
        change.then(|| Self::Change { strip: ParamSet::new(names), sort: rules.sort })
    }

    /// Brings the query of `request`, if it has one, into canonical form.
    pub(super) fn apply(&self, request: &mut Request) {
        match self {
            Self::Remove => {
                message::query::take_params(&mut request.target, &mut request.taken, |_| true);
            }
            Self::Change { strip, sort } => {
                let Request { target, taken, .. } = request;
                message::query::take_params(target, taken, |name| strip.contains(name));
                if *sort {
                    message::query::sort_params(&mut request.target);
                }
            }
        }
    }
}

impl BypassRules {
    fn new(reasons: Vec<rules::Bypass>, rule_names: &mut Vec<String>) -> Self {
        let mut bypass = Self::default();
        for reason in reasons {
            let rule = rule_names.len() as u32;
            rule_names.push(format!("bypass {}", reason.told()));
            match reason {
                rules::Bypass::Path(pattern) => bypass.paths.push((pattern, rule)),
                rules::Bypass::Cookie(name) => bypass.cookies.push((name, rule)),
                rules::Bypass::Query(name, value) => bypass.queries.push((name, value, rule)),
                rules::Bypass::AnyQuery => bypass.any_query = Some(rule),
                rules::Bypass::Header(name, value) => bypass.headers.push((name, value, rule)),
            }
        }
        bypass
    }
}

impl BypassRules {
    /// The numbers of its rules, in the order of their tests.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let paths = self.paths.iter().map(|(_, rule)| *rule);
        let cookies = self.cookies.iter().map(|(_, rule)| *rule);
        let headers = self.headers.iter().map(|(_, _, rule)| *rule);
        let queries = self.queries.iter().map(|(_, _, rule)| *rule);
        paths.chain(cookies).chain(headers).chain(self.any_query).chain(queries).collect()
    }
}

impl Refusals {
    pub(super) fn new() -> Self {
        let refusal = |code, fields, close| {
            let status = Status::new(code).expect("three digits");
            Arc::new(Synthetic { status, fields, body: Vec::new(), close })
        };
        Self {
            // The bytes behind a CONNECT are not HTTP.
            connect: refusal(501, Vec::new(), true),
            method: refusal(405, vec![(b"Allow".to_vec(), ALLOW.to_vec())], false),
            access: refusal(403, Vec::new(), false),
            path: refusal(400, Vec::new(), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_stands_at_its_number() {
        for (at, (rule, _)) in RULES.iter().enumerate() {
            assert_eq!(*rule as usize, at);
        }
    }
}
