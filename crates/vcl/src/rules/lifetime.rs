//! Lifetime of a response by the observed rules of Varnish's `cache_rfc2616.c`. It deviates from
//! RFC 9111 only where Varnish does.

use super::dates::POSTEL;
use crate::params::{Param, Params};
use crate::text::calendar;
use message::{HeaderBlock, HeaderId};

/// TTL, grace, keep and age of a response in seconds, as `vcl_backend_response` first sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lifetime {
    /// TTL, from now.
    pub ttl: f64,
    /// Grace after the TTL.
    pub grace: f64,
    /// Keep after grace.
    pub keep: f64,
    /// Age of the response on arrival.
    pub age: f64,
}

/// Lifetime of a response with `status` that arrived at `now` (seconds since 1970).
pub fn of(status: u16, headers: &HeaderBlock, now: f64, params: &Params) -> Lifetime {
    let age = age(headers);
    let mut lifetime = Lifetime {
        ttl: 0.0,
        grace: params.seconds(Param::DefaultGrace),
        keep: params.seconds(Param::DefaultKeep),
        age,
    };
    let default = match status {
        200 | 203 | 204 | 300 | 301 | 304 | 404 | 410 | 414 => params.seconds(Param::DefaultTtl),
        302 | 307 => -1.0,
        _ => return Lifetime { ttl: 0.0 - age, ..lifetime },
    };
    let ttl = directive(headers, b"s-maxage")
        .or_else(|| directive(headers, b"max-age"))
        .map(seconds)
        .or_else(|| by_expires(headers, now, params))
        .unwrap_or(default);
    if ttl >= 0.0
        && let Some(value) = directive(headers, b"stale-while-revalidate")
    {
        lifetime.grace = seconds(value);
    }
    lifetime.ttl = ttl.max(0.0) - age;
    lifetime
}

/// Age of a response on arrival.
pub fn age(headers: &HeaderBlock) -> f64 {
    headers.value(HeaderId::Age).map_or(0.0, seconds)
}

/// Describes the field or parameter that determines the TTL.
pub fn source(status: u16, headers: &HeaderBlock, now: f64, params: &Params) -> String {
    let default = match status {
        200 | 203 | 204 | 300 | 301 | 304 | 404 | 410 | 414 => "parameter `default_ttl`",
        302 | 307 => "a status without a lifetime of its own",
        _ => return "a status that is not stored unless the program says so".to_owned(),
    };
    for name in ["s-maxage", "max-age"] {
        if directive(headers, name.as_bytes()).is_some() {
            return format!("`{name}` of Cache-Control");
        }
    }
    match by_expires(headers, now, params) {
        Some(_) => "Expires".to_owned(),
        None => default.to_owned(),
    }
}

/// TTL by Expires; `None` without a valid Expires.
fn by_expires(headers: &HeaderBlock, now: f64, params: &Params) -> Option<f64> {
    let short_days = params.has_feature(POSTEL);
    let date = |id| headers.value(id).and_then(|value| calendar::read(value, short_days));
    let expires = date(HeaderId::Expires)?;
    Some(match date(HeaderId::Date) {
        Some(date) if expires < date => 0.0,
        // The origin's clock is close to ours or unknown: ours counts.
        Some(date) if (date - now).abs() >= params.seconds(Param::ClockSkew) => expires - date,
        _ => (expires - now).max(0.0),
    })
}

/// Value of a Cache-Control directive, the first of that name with a value.
fn directive<'h>(headers: &'h HeaderBlock, name: &[u8]) -> Option<&'h [u8]> {
    let members =
        headers.values(HeaderId::CacheControl).flat_map(|line| line.split(|b| *b == b','));
    let mut values = members.filter_map(|member| {
        let at = member.iter().position(|b| *b == b'=')?;
        let is_it = member[..at].trim_ascii().eq_ignore_ascii_case(name);
        is_it.then(|| member[at + 1..].trim_ascii())
    });
    values.next()
}

/// Parses seconds: a fraction is cut off, text that is no number is 0, and the maximum is that of
/// 32 bits.
fn seconds(text: &[u8]) -> f64 {
    let digits = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    if !matches!(text.get(digits), None | Some(b'.' | b' ' | b'\t' | b',' | b';')) {
        return 0.0;
    }
    let number = text[..digits]
        .iter()
        .fold(0_u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    number.min(1 << 32) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_795_359_383.0;

    fn of_fields(status: u16, fields: &[(&[u8], &[u8])]) -> Lifetime {
        let mut headers = HeaderBlock::new();
        for (name, value) in fields {
            headers.push_named(name, value);
        }
        of(status, &headers, NOW, &Params::default())
    }

    #[test]
    fn relative_times_come_before_absolute_ones_and_the_shared_one_first() {
        let expires: (&[u8], &[u8]) = (b"Expires", b"Sun, 22 Nov 2026 14:57:23 GMT");
        for (cache_control, ttl) in [
            (&b"stale-while-revalidate=5,s-maxage=3.5,max-age=7"[..], 3.0),
            (b"max-age=7", 7.0),
            (b"max-age=-5", 0.0),
            (b"max-age=\"5\"", 0.0),
            (b"max-age=5x", 0.0),
            (b"max-age=99999999999", 4_294_967_296.0),
        ] {
            let lifetime = of_fields(200, &[(b"Cache-Control", cache_control), expires]);
            assert_eq!(lifetime.ttl, ttl, "{}", cache_control.escape_ascii());
        }
        assert_eq!(of_fields(200, &[(b"Cache-Control", b"max-age")]).ttl, 120.0);
    }

    #[test]
    fn only_some_statuses_have_a_lifetime_without_fields() {
        assert_eq!(of_fields(200, &[]).ttl, 120.0);
        assert_eq!(of_fields(404, &[]).ttl, 120.0);
        for status in [302, 307, 500, 206] {
            assert_eq!(of_fields(status, &[]).ttl, 0.0);
        }
        assert_eq!(of_fields(302, &[(b"Cache-Control", b"max-age=5")]).ttl, 5.0);
        assert_eq!(of_fields(500, &[(b"Cache-Control", b"max-age=5")]).ttl, 0.0);
    }

    #[test]
    fn age_is_subtracted_and_grace_may_be_set_by_a_field() {
        let old = of_fields(200, &[(b"Age", b"200")]);
        assert_eq!((old.ttl, old.age), (-80.0, 200.0));
        assert!(of_fields(500, &[]).ttl.is_sign_positive(), "a program shows it as 0.000");
        assert_eq!(of_fields(200, &[(b"Age", b"abc")]).age, 0.0);
        let lifetime = of_fields(200, &[(b"Cache-Control", b"stale-while-revalidate=9")]);
        assert_eq!((lifetime.grace, lifetime.keep), (9.0, 0.0));
        assert_eq!(of_fields(500, &[(b"Cache-Control", b"stale-while-revalidate=9")]).grace, 10.0);
    }

    #[test]
    fn expires_counts_by_our_clock_or_by_the_origins_where_they_differ() {
        let expires = |date: &[u8], expires: &[u8]| {
            of_fields(200, &[(b"Date", date), (b"Expires", expires)]).ttl
        };
        let now = b"Sun, 22 Nov 2026 14:56:23 GMT";
        assert_eq!(expires(now, b"Sun, 22 Nov 2026 14:57:23 GMT"), 60.0);
        assert_eq!(expires(now, b"Sun, 22 Nov 2026 14:55:23 GMT"), 0.0);
        assert_eq!(expires(now, b"0"), 120.0);
        let off = expires(b"Sun, 22 Nov 2026 10:00:00 GMT", b"Sun, 22 Nov 2026 10:00:30 GMT");
        assert_eq!(off, 30.0);
    }
}
