//! Usable answers of siblings: stored responses for all clients. No other response of a cache may
//! be used.

use message::cache_control::{CacheControl, DirectiveScope};
use message::{HeaderId, Response};

/// Seconds by which an Age may be too low, as each cache on the way rounds it down.
const AGE_ERROR_SECS: u64 = 2;

/// Returns true if `response` was stored by a sibling, is for all clients, and was created after
/// `since_ms`. It was requested at `asked_ms`; both times are of the monotonic clock.
pub(super) fn is_usable(response: &Response, asked_ms: u64, since_ms: u64) -> bool {
    let headers = &response.headers;
    let age = headers.value(HeaderId::Age).and_then(seconds);
    let may_be = match response.status.code() {
        200 => true,
        // Without Age the response may be the cache's own: a refusal is a 403.
        203 | 204 | 300..=303 | 307 | 308 | 404 | 405 | 410 | 414 | 451 => age.is_some(),
        _ => false,
    };
    // A new 200 may have no Age, such as Squid's.
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

/// Seconds in a field (RFC 9111 1.2.2).
fn seconds(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(value).ok()?.parse().ok().or(Some(u64::MAX)))?
}
