//! Rules for storing: the settings of a site, with their defaults.

use std::fmt;

use super::ignored::IgnoredFields;
use crate::header::HeaderId;
use crate::response::Status;

pub(super) const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// A deployment changes pages without their URLs, and visitors should see it soon. nginx uses no
/// heuristic, and Varnish stores responses without a lifetime for two minutes.
const HTML_MS: u64 = 10 * 60 * 1000;

/// The statuses that a setting applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusMatch {
    /// One status.
    Exact(Status),
    /// All statuses of a class: 2 for 2xx.
    Class(u8),
    /// Every status.
    Any,
}

impl StatusMatch {
    /// Returns true if the setting applies to `status`.
    pub const fn matches(self, status: Status) -> bool {
        match self {
            Self::Exact(one) => one.code() == status.code(),
            Self::Class(class) => status.code() / 100 == class as u16,
            Self::Any => true,
        }
    }
}

impl fmt::Display for StatusMatch {
    /// As settings write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(status) => status.fmt(f),
            Self::Class(class) => write!(f, "{class}xx"),
            Self::Any => f.write_str("any"),
        }
    }
}

/// The settings that decide about storing. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRules {
    /// Targeted fields to honour, in order of preference (RFC 9213 2.2).
    pub targets: Vec<HeaderId>,
    /// True if a heuristic lifetime from Last-Modified is permitted (RFC 9111 4.2.2).
    pub heuristic: bool,
    /// Longest heuristic lifetime.
    pub heuristic_max_ms: u64,
    /// Longest heuristic lifetime of HTML pages, if shorter.
    pub heuristic_html_max_ms: u64,
    /// Lifetime by status if the origin sets none; the first match counts, and precedes the
    /// heuristic.
    pub default_lifetime_ms: Vec<(StatusMatch, u64)>,
    /// Grace without a stale-while-revalidate.
    pub grace_ms: u64,
    /// The time after its lifetime in which a response replaces an error of the origin (500, 502,
    /// 503, 504) without a stale-if-error.
    pub stale_if_error_ms: u64,
    /// The time after its lifetime in which a response is used while the origin is unreachable:
    /// refused, dropped or timed out ("disconnected", RFC 9111 4.2.4).
    pub stale_if_unreachable_ms: u64,
    /// True if responses with Set-Cookie may be stored, provided that the origin sets a lifetime.
    pub store_set_cookie: bool,
    /// True if a request's no-store prevents storing its response.
    pub honour_request_no_store: bool,
    /// True if errors are stored like other responses: with a heuristic lifetime where RFC 9111
    /// permits one, and even those about one request's form (400, 413, 414, 431, 501). If false,
    /// the latter are never stored, so that no client can poison a page by an odd request.
    pub trust_errors: bool,
    /// True if s-maxage forbids stale use as proxy-revalidate does (RFC 9111 5.2.2.10). CDNs, and
    /// frameworks that send `s-maxage=1, stale-while-revalidate=59`, do not mean that.
    pub s_maxage_forbids_stale: bool,
    /// Fields of responses that have no say.
    pub ignored: IgnoredFields,
}

impl StoreRules {
    /// RFC 9111 to the letter: no stale use unless a directive permits it or the origin is
    /// unreachable.
    pub fn rfc() -> Self {
        Self {
            targets: vec![HeaderId::CdnCacheControl, HeaderId::SurrogateControl],
            heuristic: true,
            heuristic_max_ms: DAY_MS,
            heuristic_html_max_ms: DAY_MS,
            default_lifetime_ms: Vec::new(),
            grace_ms: 0,
            stale_if_error_ms: 0,
            stale_if_unreachable_ms: DAY_MS,
            store_set_cookie: true,
            honour_request_no_store: true,
            trust_errors: true,
            s_maxage_forbids_stale: true,
            ignored: IgnoredFields::default(),
        }
    }

    /// Rules for a site with few settings: ten seconds of grace, a day of stale use during errors
    /// and outages, and no response with Set-Cookie.
    pub fn safe() -> Self {
        Self {
            heuristic_html_max_ms: HTML_MS,
            grace_ms: 10_000,
            stale_if_error_ms: DAY_MS,
            store_set_cookie: false,
            honour_request_no_store: false,
            trust_errors: false,
            s_maxage_forbids_stale: false,
            ..Self::rfc()
        }
    }
}
