//! Directives in a client's Cache-Control, applied to a stored response (RFC 9111 5.2.1) if the
//! site honours them.
//!
//! `no-transform` needs nothing, since the cache never transforms; `only-if-cached` is about
//! forwarding, which is decided elsewhere.

use message::HeaderId;
use message::cache_control::{CacheControl, DirectiveScope};

use crate::points::{HitCtx, HitVerdict};

/// Decides if the request's directives permit the stored response.
pub(super) fn apply_directives(ctx: &HitCtx<'_>) -> HitVerdict {
    let headers = &ctx.request.headers;
    let mut lines = headers.values(HeaderId::CacheControl).peekable();
    if lines.peek().is_some() {
        let (age_ms, ttl_ms) = (ctx.freshness.age_ms(ctx.now_ms), ctx.freshness.ttl_ms(ctx.now_ms));
        return by_control(&CacheControl::parse(lines), age_ms, ttl_ms);
    }
    // RFC 9111 5.4: Pragma counts without a Cache-Control.
    let no_cache = |v: &[u8]| v.eq_ignore_ascii_case(b"no-cache");
    match headers.values(HeaderId::Pragma).any(no_cache) {
        true => HitVerdict::Miss,
        false => HitVerdict::Deliver,
    }
}

fn by_control(control: &CacheControl, age_ms: u64, ttl_ms: i64) -> HitVerdict {
    let ms = |secs: u32| u64::from(secs) * 1000;
    let too_old = control.max_age.is_some_and(|secs| secs == 0 || age_ms > ms(secs));
    let ends_soon = control.min_fresh.is_some_and(|secs| ttl_ms < i64::from(secs) * 1000);
    if control.no_cache != DirectiveScope::Absent || control.no_store || too_old || ends_soon {
        return HitVerdict::Miss;
    }
    if ttl_ms > 0 {
        return HitVerdict::Deliver;
    }
    match control.max_stale {
        Some(secs) if ttl_ms.unsigned_abs() <= ms(secs) => HitVerdict::DeliverStale,
        Some(_) => HitVerdict::Miss,
        // A client that sends max-age wants no stale response, unless it sends max-stale (5.2.1.1).
        None if control.max_age.is_some() => HitVerdict::Miss,
        None => HitVerdict::Deliver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a response of `age` seconds with `ttl` seconds left.
    fn verdict(directives: &str, age: u64, ttl: i64) -> HitVerdict {
        let control = CacheControl::parse([directives.as_bytes()]);
        by_control(&control, age * 1000, ttl * 1000)
    }

    #[test]
    fn each_directive_asks_for_what_the_rfc_says() {
        use HitVerdict::{Deliver, DeliverStale, Miss};
        for (directives, age, ttl, expected) in [
            ("", 10, 50, Deliver),
            ("", 70, -10, Deliver),
            ("no-transform, only-if-cached", 10, 50, Deliver),
            ("no-cache", 10, 50, Miss),
            ("no-store", 10, 50, Miss),
            ("max-age=0", 0, 60, Miss),
            ("max-age=9", 10, 50, Miss),
            ("max-age=10", 10, 50, Deliver),
            ("max-age=100", 70, -10, Miss),
            ("max-age=100, max-stale", 70, -10, DeliverStale),
            ("max-age=60, max-stale", 70, -10, Miss),
            ("min-fresh=50", 10, 50, Deliver),
            ("min-fresh=51", 10, 50, Miss),
            ("min-fresh=0", 70, -10, Miss),
            ("max-stale", 70, -10, DeliverStale),
            ("max-stale=10", 70, -10, DeliverStale),
            ("max-stale=9", 70, -10, Miss),
            ("max-stale=9", 10, 50, Deliver),
            ("max-stale=0", 60, 0, DeliverStale),
            ("max-age=x", 10, 50, Miss),
            ("min-fresh=4294967295", 10, 50, Miss),
            ("max-stale=4294967295, max-age=4294967295", 70, -10, DeliverStale),
        ] {
            assert_eq!(verdict(directives, age, ttl), expected, "{directives}: {age}, {ttl}");
        }
    }

    #[test]
    fn no_number_overflows() {
        for (age, ttl) in [(0, i64::MIN), (u64::MAX, i64::MAX)] {
            for directives in ["max-stale", "min-fresh=2147483648", "max-age=1", ""] {
                by_control(&CacheControl::parse([directives.as_bytes()]), age, ttl);
            }
        }
    }
}
