//! The settings that decide about storing.

use crate::header::HeaderId;
use crate::response::Status;

pub(super) const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// A deployment changes pages without their URLs, and visitors are to see it. nginx guesses
/// nothing, and Varnish keeps what names no lifetime for two minutes.
const HTML_MS: u64 = 10 * 60 * 1000;

/// The statuses that a setting is for.
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
    /// Returns true if the setting is for `status`.
    pub const fn matches(self, status: Status) -> bool {
        match self {
            Self::Exact(one) => one.code() == status.code(),
            Self::Class(class) => status.code() / 100 == class as u16,
            Self::Any => true,
        }
    }
}

/// The settings that decide about storing. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRules {
    /// Targeted fields honoured, the most wanted first (RFC 9213 2.2).
    pub targets: Vec<HeaderId>,
    /// True if a lifetime may be guessed from Last-Modified (RFC 9111 4.2.2).
    pub heuristic: bool,
    /// Longest guessed lifetime.
    pub heuristic_max_ms: u64,
    /// Longest guessed lifetime of pages in HTML, where that is shorter.
    pub heuristic_html_max_ms: u64,
    /// Lifetime by status when the origin names none; the first match counts, and before a guess.
    pub default_lifetime_ms: Vec<(StatusMatch, u64)>,
    /// Grace when there is no stale-while-revalidate.
    pub grace_ms: u64,
    /// The time past its lifetime in which a response may stand in for an origin error (500, 502,
    /// 503, 504) when there is no stale-if-error.
    pub stale_if_error_ms: u64,
    /// The time past its lifetime in which a response may be used while the origin cannot be
    /// reached: refused, dropped or timed out ("disconnected", RFC 9111 4.2.4).
    pub stale_if_unreachable_ms: u64,
    /// True if responses with Set-Cookie may be stored; then only when the origin names a lifetime.
    pub store_set_cookie: bool,
    /// True if a request's no-store keeps its response from being stored.
    pub honour_request_no_store: bool,
    /// True if errors are stored like any other response: with a guessed lifetime where RFC 9111
    /// allows one, and also errors that judge one request's form (400, 413, 414, 431, 501). If
    /// false, such a judgement is never stored, so that nobody can poison a page with an odd
    /// request.
    pub trust_errors: bool,
    /// True if s-maxage forbids stale use as proxy-revalidate does (RFC 9111 5.2.2.10). CDNs and
    /// the frameworks that write `s-maxage=1, stale-while-revalidate=59` do not mean it so.
    pub s_maxage_forbids_stale: bool,
}

impl StoreRules {
    /// The letter of RFC 9111: nothing stale unless a directive allows it or the origin is out of
    /// reach.
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
        }
    }

    /// Rules for a site that sets little: ten seconds of grace, a day of service through errors and
    /// outages, and no response with Set-Cookie.
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
