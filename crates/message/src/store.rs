//! Storage decisions: is a response stored, and how long may it be used (RFC 9111 3 and 4.2).
//!
//! Must never read a clock or change a field: the input is two heads and the settings.

mod fields;
mod ignored;
mod permit;
mod reason;
mod rules;
#[cfg(test)]
mod tests;

pub use fields::{forbidden_field_names, strip_for_storage, strip_hop_by_hop, update_fields};
pub use ignored::{IgnoredField, IgnoredFieldError, IgnoredFields, IgnoredSet, JudgedHead};
pub use permit::{PartPermits, Permit, Ruling, StorageObjections};
pub use reason::{LifetimeSource, NotStored, evidence, lifetime_words};
pub use rules::{StatusMatch, StoreRules};

use crate::cache_control::{CacheControl, DirectiveScope, delta_secs};
use crate::date::parse_http_date;
use crate::header::{HeaderBlock, HeaderId};
use crate::list::{members, trim};
use crate::request::{Method, Request};
use crate::response::Status;
use crate::targeted_control;
use crate::vary;

/// The default of the limit `hit_for_miss_ttl`, which is also Varnish's.
const HIT_FOR_MISS_MS: u64 = 120_000;
/// Errors are short, and then requests should collapse again.
const HIT_FOR_MISS_ERROR_MS: u64 = 1_000;
/// 429 (RFC 6585 4): the origin is overloaded.
const TOO_MANY_REQUESTS: u16 = 429;

/// The decision about one response. Times are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorePlan {
    /// Permission to store the response, or the reason against it. Only the rules change it.
    store: Result<(), NotStored>,
    /// True if the origin declares the response shared (public, s-maxage or a targeted field): it
    /// may answer requests with cookies or Authorization.
    pub shared: bool,
    /// Corrected initial age (RFC 9111 4.2.3) when the head arrived.
    pub age_ms: u64,
    /// Freshness lifetime, counted from age 0.
    pub lifetime_ms: u64,
    /// The source of the lifetime.
    pub source: LifetimeSource,
    /// The time after its lifetime in which it is served while it is revalidated in the background.
    pub grace_ms: u64,
    /// The time after its lifetime in which it replaces an error of the origin.
    pub stale_if_error_ms: u64,
    /// The time after its lifetime in which it is served while the origin is unreachable.
    pub stale_if_unreachable_ms: u64,
    /// no-cache: every use validates first.
    pub must_validate: bool,
    /// Stale use is forbidden (RFC 9111 4.2.4); the three windows are 0 then.
    pub never_stale: bool,
    /// The time in which requests for the key do not wait for each other; 0 if the response is
    /// stored.
    pub hit_for_miss_ms: u64,
    /// The fields that the rules ignore, in further parts of the response too.
    ignored: IgnoredSet,
}

impl StorePlan {
    /// The verdict for reports; to store a response, use [`StorePlan::permit`].
    ///
    /// # Errors
    /// The reason why the response is not stored.
    pub fn verdict(&self) -> Result<(), NotStored> {
        self.store
    }

    /// Returns true if a response of `status` with this verdict removes the stored response that it
    /// was fetched to replace. Failures do not, since the stored one may be used stale (RFC 5861).
    /// Nor do responses about one request only: one that forbids storing, or a success for a client
    /// whose responses are private.
    pub fn supersedes_stored(&self, status: Status) -> bool {
        let failed = status.is_server_error() || status.code() == TOO_MANY_REQUESTS;
        let of_request = match self.store {
            Err(NotStored::Method | NotStored::NotFinal | NotStored::RequestNoStore) => true,
            Err(NotStored::Authorization | NotStored::Personal) => status.code() / 100 == 2,
            _ => false,
        };
        !failed && !of_request
    }

    /// Permits storing the response if Set-Cookie is the only reason against it, and its origin
    /// declared it shared and gave it a lifetime. Returns true if so; the caller must then remove
    /// Set-Cookie.
    pub fn admit_without_cookies(&mut self) -> bool {
        use LifetimeSource::{Expires, MaxAge, SMaxAge, Targeted};
        let explicit = matches!(self.source, SMaxAge | MaxAge | Expires | Targeted);
        let fresh = self.lifetime_ms > self.age_ms;
        let admit = self.store == Err(NotStored::SetCookie) && self.shared && explicit && fresh;
        if admit {
            self.store = Ok(());
            self.hit_for_miss_ms = 0;
        }
        admit
    }

    /// Forbids storing a response of `status`, for the reason `why`.
    pub fn refuse(&mut self, why: NotStored, status: Status) {
        self.store = Err(why);
        self.hit_for_miss_ms = hit_for_miss_ms(why, status);
    }
}

/// The times of an exchange with the origin, in unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// The time at which the request was sent.
    pub request_ms: u64,
    /// The time at which the response's head arrived.
    pub response_ms: u64,
}

/// Decides about the response to `request` with the head `response`. `personal`: the request has
/// significant cookies.
pub fn plan(
    request: &Request,
    personal: bool,
    response: &JudgedHead<'_>,
    exchange: ExchangeTimes,
    rules: &StoreRules,
) -> StorePlan {
    let facts = StorageFacts::gather(response, exchange, rules);
    let control = &facts.control;
    let may_be_stale = !facts.never_stale;
    let window = |directive: Option<u32>, default: u64| match directive {
        _ if !may_be_stale => 0,
        Some(secs) => secs_ms(secs),
        None => default,
    };
    // A response without a lifetime gets no default grace: max-age=0 must not be served stale by
    // default.
    let default_grace_ms = if facts.is_fresh() { rules.grace_ms } else { 0 };
    let unreachable_ms = rules.stale_if_unreachable_ms;
    let store = storable(request, personal, response, &facts, rules);
    StorePlan {
        store,
        shared: facts.is_shared(),
        age_ms: facts.age_ms,
        lifetime_ms: facts.lifetime_ms,
        source: facts.source,
        grace_ms: window(control.stale_while_revalidate, default_grace_ms),
        stale_if_error_ms: window(control.stale_if_error, rules.stale_if_error_ms),
        stale_if_unreachable_ms: window(control.stale_if_error, unreachable_ms),
        must_validate: control.no_cache == DirectiveScope::Whole,
        never_stale: facts.never_stale,
        hit_for_miss_ms: store.err().map_or(0, |why| hit_for_miss_ms(why, response.status)),
        ignored: rules.ignored.set(),
    }
}

/// The facts of a response that decide about storing, parsed once.
struct StorageFacts {
    control: CacheControl,
    /// `control` comes from a targeted field.
    targeted: bool,
    age_ms: u64,
    /// Only the Date makes it so old.
    aged_by_date: bool,
    lifetime_ms: u64,
    source: LifetimeSource,
    has_validator: bool,
    never_stale: bool,
    /// An ignored name in Vary may tell of a visitor.
    may_be_of_visitor: bool,
}

impl StorageFacts {
    fn gather(response: &JudgedHead<'_>, exchange: ExchangeTimes, rules: &StoreRules) -> Self {
        let headers = &*response.headers;
        let targeted = targeted_control::effective(headers, &rules.targets);
        let control =
            targeted.unwrap_or_else(|| CacheControl::parse(headers.values(HeaderId::CacheControl)));
        let now_secs = exchange.response_ms / 1000;
        let date_secs = single_date(headers, HeaderId::Date, now_secs).unwrap_or(now_secs);
        let (age_ms, aged_by_date) = initial_age_ms(headers, date_secs, exchange);
        let mut facts = Self {
            control,
            targeted: targeted.is_some(),
            age_ms,
            aged_by_date,
            lifetime_ms: 0,
            source: LifetimeSource::None,
            has_validator: headers.contains(HeaderId::Etag)
                || single_date(headers, HeaderId::LastModified, now_secs).is_some(),
            never_stale: control.forbids_stale()
                || (rules.s_maxage_forbids_stale && control.s_maxage.is_some()),
            may_be_of_visitor: response.visitors_fields().next().is_some(),
        };
        if let Some((lifetime_ms, source)) = facts
            .explicit_lifetime(headers, date_secs, now_secs)
            // A setting is about this cache's own copy: its time runs from the copy's arrival.
            .or_else(|| {
                let (ms, source) = ruled(response).or_else(|| setting(response.status, rules))?;
                Some((ms.saturating_add(facts.age_ms), source))
            })
            .or_else(|| facts.heuristic(response, date_secs, rules))
        {
            (facts.lifetime_ms, facts.source) = (lifetime_ms, source);
        }
        facts
    }

    /// RFC 9111 4.2.1: the first of s-maxage, max-age and Expires counts, even if it is in the
    /// past.
    fn explicit_lifetime(
        &self,
        headers: &HeaderBlock,
        date_secs: u64,
        now_secs: u64,
    ) -> Option<(u64, LifetimeSource)> {
        let control = &self.control;
        if self.targeted {
            let secs = control.s_maxage.or(control.max_age)?;
            return Some((secs_ms(secs), LifetimeSource::Targeted));
        }
        if let Some(secs) = control.s_maxage {
            return Some((secs_ms(secs), LifetimeSource::SMaxAge));
        }
        if let Some(secs) = control.max_age {
            return Some((secs_ms(secs), LifetimeSource::MaxAge));
        }
        if !headers.contains(HeaderId::Expires) {
            return None;
        }
        // An invalid or repeated value is in the past (RFC 9111 4.2.1 and 5.3).
        let expires_secs = single_date(headers, HeaderId::Expires, now_secs).unwrap_or(0);
        let lifetime_ms = expires_secs.saturating_sub(date_secs).saturating_mul(1000);
        Some((lifetime_ms, LifetimeSource::Expires))
    }

    /// RFC 9111 4.2.2: a tenth of the time since the last change. Browsers use no heuristic with
    /// `Pragma: no-cache`, by which an origin forbids storing.
    fn heuristic(
        &self,
        response: &JudgedHead<'_>,
        date_secs: u64,
        rules: &StoreRules,
    ) -> Option<(u64, LifetimeSource)> {
        let allowed = self.control.public || is_heuristically_cacheable(response.status);
        let distrusted = is_error(response.status) && !rules.trust_errors;
        if !rules.heuristic || !allowed || distrusted || says_pragma(&response.headers) {
            return None;
        }
        let modified_secs = single_date(&response.headers, HeaderId::LastModified, date_secs)?;
        let tenth_ms = date_secs.saturating_sub(modified_secs).saturating_mul(100);
        let most_ms = match is_html(&response.headers) {
            true => rules.heuristic_max_ms.min(rules.heuristic_html_max_ms),
            false => rules.heuristic_max_ms,
        };
        Some((tenth_ms.min(most_ms), LifetimeSource::Heuristic))
    }

    fn is_fresh(&self) -> bool {
        self.lifetime_ms > self.age_ms && self.control.no_cache != DirectiveScope::Whole
    }

    /// The origin has set a lifetime.
    fn is_explicit(&self) -> bool {
        use LifetimeSource::{Expires, MaxAge, SMaxAge, Targeted};
        matches!(self.source, SMaxAge | MaxAge | Expires | Targeted)
    }

    fn is_shared(&self) -> bool {
        let control = &self.control;
        let open = control.public
            || control.s_maxage.is_some()
            || (self.targeted && control.max_age.is_some());
        open && control.private != DirectiveScope::Whole && !self.may_be_of_visitor
    }

    /// A directive permits stale use.
    fn has_stale_window(&self) -> bool {
        let control = &self.control;
        let has = |secs: Option<u32>| secs.is_some_and(|s| s > 0);
        !self.never_stale && (has(control.stale_while_revalidate) || has(control.stale_if_error))
    }
}

/// RFC 9111 3, in its order, with additional rules for the safety of a shared cache.
fn storable(
    request: &Request,
    personal: bool,
    response: &JudgedHead<'_>,
    facts: &StorageFacts,
    rules: &StoreRules,
) -> Result<(), NotStored> {
    let (control, status) = (&facts.control, response.status);
    if request.method != Method::Get {
        return Err(NotStored::Method);
    }
    if status.is_interim() {
        return Err(NotStored::NotFinal);
    }
    if matches!(status.code(), 206 | 304 | 416) || (judges_form(status) && !rules.trust_errors) {
        return Err(NotStored::Status);
    }
    if control.must_understand && !is_understood(status) {
        return Err(NotStored::NotUnderstood);
    }
    // must-understand overrides no-store, which is for caches that do not know it (5.2.2.3).
    if control.no_store && !control.must_understand {
        return Err(NotStored::NoStore);
    }
    if control.private == DirectiveScope::Whole {
        return Err(NotStored::Private);
    }
    if rules.honour_request_no_store
        && CacheControl::parse(request.headers.values(HeaderId::CacheControl)).no_store
    {
        return Err(NotStored::RequestNoStore);
    }
    if is_endless(&response.headers) {
        return Err(NotStored::Endless);
    }
    let open = facts.is_shared();
    let may_answer_others = open || (control.must_revalidate && !facts.may_be_of_visitor);
    if request.headers.contains(HeaderId::Authorization) && !may_answer_others {
        return Err(NotStored::Authorization);
    }
    if personal && !open {
        return Err(NotStored::Personal);
    }
    if response.refused_by.is_some() {
        return Err(NotStored::ResponseRule);
    }
    if vary::is_never(&response.headers) {
        return Err(NotStored::VaryAny);
    }
    if keeps_set_cookie(&response.headers) && !(rules.store_set_cookie && facts.is_explicit()) {
        return Err(NotStored::SetCookie);
    }
    useful(status, facts)
}

/// Checks that a stored copy would be usable: it is fresh, can be validated, or may be served
/// stale.
fn useful(status: Status, facts: &StorageFacts) -> Result<(), NotStored> {
    let named = facts.source != LifetimeSource::None
        || facts.control.public
        || facts.control.no_cache == DirectiveScope::Whole;
    if !named && (is_error(status) || !is_heuristically_cacheable(status)) {
        return Err(NotStored::NoLifetime);
    }
    if facts.is_fresh() || facts.has_validator || facts.has_stale_window() {
        return Ok(());
    }
    Err(match named {
        false => NotStored::NoLifetime,
        true if facts.lifetime_ms == 0 || facts.control.no_cache == DirectiveScope::Whole => {
            NotStored::NoValidator
        }
        true if facts.aged_by_date => NotStored::OldDate,
        true => NotStored::OldAge,
    })
}

fn hit_for_miss_ms(why: NotStored, status: Status) -> u64 {
    match why {
        // These are about one request, not about the next one for the key.
        NotStored::Method
        | NotStored::NotFinal
        | NotStored::RequestNoStore
        | NotStored::Authorization
        | NotStored::Personal => 0,
        _ if status.is_server_error() => HIT_FOR_MISS_ERROR_MS,
        _ => HIT_FOR_MISS_MS,
    }
}

fn ruled(response: &JudgedHead<'_>) -> Option<(u64, LifetimeSource)> {
    response.ruled_ttl.map(|(ms, _)| (ms, LifetimeSource::Rule))
}

fn setting(status: Status, rules: &StoreRules) -> Option<(u64, LifetimeSource)> {
    let (_, ms) = rules.default_lifetime_ms.iter().find(|(of, _)| of.matches(status))?;
    Some((*ms, LifetimeSource::Setting))
}

/// RFC 9111 4.2.3; true if Date determines it. A Date has a resolution of a second, and so has the
/// apparent age.
fn initial_age_ms(headers: &HeaderBlock, date_secs: u64, exchange: ExchangeTimes) -> (u64, bool) {
    let apparent_ms = (exchange.response_ms / 1000).saturating_sub(date_secs).saturating_mul(1000);
    let delay_ms = exchange.response_ms.saturating_sub(exchange.request_ms);
    let corrected_ms = secs_ms(age_secs(headers)).saturating_add(delay_ms);
    (apparent_ms.max(corrected_ms), apparent_ms > corrected_ms)
}

/// The Age of a response. The first member of a list counts; an invalid value is ignored (RFC 9111
/// 5.1).
fn age_secs(headers: &HeaderBlock) -> u32 {
    members(headers.values(HeaderId::Age)).next().and_then(delta_secs).unwrap_or(0)
}

/// The date in a field that may occur only once.
fn single_date(headers: &HeaderBlock, id: HeaderId, now_secs: u64) -> Option<u64> {
    let mut values = headers.values(id);
    match (values.next(), values.next()) {
        (Some(value), None) => parse_http_date(value, now_secs),
        _ => None,
    }
}

/// Returns true if the Content-Type is one of endless responses.
fn is_endless(headers: &HeaderBlock) -> bool {
    is_of(headers, &[b"text/event-stream", b"multipart/x-mixed-replace"])
}

fn is_html(headers: &HeaderBlock) -> bool {
    is_of(headers, &[b"text/html", b"application/xhtml+xml"])
}

/// Returns true if the Content-Type is one of `kinds`, without regard to parameters.
fn is_of(headers: &HeaderBlock, kinds: &[&[u8]]) -> bool {
    let Some(kind) = headers.value(HeaderId::ContentType) else { return false };
    let kind = trim(kind.split(|b| *b == b';').next().unwrap_or_default());
    kinds.iter().any(|other| kind.eq_ignore_ascii_case(other))
}

fn says_pragma(headers: &HeaderBlock) -> bool {
    members(headers.values(HeaderId::Pragma)).any(|word| word.eq_ignore_ascii_case(b"no-cache"))
}

/// Returns true if Set-Cookie would be stored, too: it is present, and not among the dropped
/// fields.
fn keeps_set_cookie(headers: &HeaderBlock) -> bool {
    headers.contains(HeaderId::SetCookie)
        && !forbidden_field_names(headers).any(|f| f.eq_ignore_ascii_case(b"Set-Cookie"))
}

/// RFC 9110 15.1, without 206.
const fn is_heuristically_cacheable(status: Status) -> bool {
    matches!(status.code(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Statuses whose meaning for caching is known here; any other is treated like the first of its
/// class (RFC 9110 15), except with must-understand.
const fn is_understood(status: Status) -> bool {
    !status.reason().is_empty()
}

const fn is_error(status: Status) -> bool {
    status.code() >= 400
}

/// Returns true if a status rejects the form of one request, and need not reject others for the
/// same URL.
const fn judges_form(status: Status) -> bool {
    matches!(status.code(), 400 | 413 | 414 | 431 | 501)
}

const fn secs_ms(secs: u32) -> u64 {
    secs as u64 * 1000
}
