//! The answers of siblings that are used: stored responses for everybody, and nothing else that a
//! cache may say.

use message::cache_control::{CacheControl, DirectiveScope};
use message::{HeaderId, Response};

/// Seconds by which the age of a response may be too low: each cache on its way cuts it off.
const AGE_ERROR_SECS: u64 = 2;

/// Returns true if `response` is one that a sibling had stored, for everybody, and that did not
/// exist before `since_ms`. It was asked for at `asked_ms`; both are of the monotonic clock.
pub(super) fn is_usable(response: &Response, asked_ms: u64, since_ms: u64) -> bool {
    let headers = &response.headers;
    let age = headers.value(HeaderId::Age).and_then(seconds);
    let may_be = match response.status.code() {
        200 => true,
        // Without an age it may be the cache's own: who may not ask it is told so by 403.
        203 | 204 | 300..=303 | 307 | 308 | 404 | 405 | 410 | 414 | 451 => age.is_some(),
        _ => false,
    };
    // A 200 of the moment may have no age, as Squid's.
    let is_young = since_ms == 0
        || age.is_some_and(|age| {
            let age_ms = age.saturating_add(AGE_ERROR_SECS).saturating_mul(1000);
            asked_ms.checked_sub(age_ms).is_some_and(|born_ms| born_ms > since_ms)
        });
    let said = CacheControl::parse(headers.values(HeaderId::CacheControl));
    let is_for_all = said.private == DirectiveScope::Absent && !said.no_store;
    let is_order = |name: &[u8]| {
        let begins = |with: &[u8]| {
            name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        begins(b"x-accel-") || begins(b"x-sendfile") || begins(b"x-squid-error")
    };
    may_be
        && is_young
        && is_for_all
        && !headers.contains(HeaderId::SetCookie)
        && !headers.iter().any(|field| is_order(field.name))
}

/// Seconds as a field says them (RFC 9111 1.2.2).
fn seconds(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(value).ok()?.parse().ok().or(Some(u64::MAX)))?
}
