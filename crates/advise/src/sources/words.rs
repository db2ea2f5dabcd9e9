//! Words of access logs: names and values that servers use for one thing.

use message::date::parse_http_date;
use observe::record::Served;

use crate::visit::Visit;

/// The cache result that a word stands for: nginx's `$upstream_cache_status`, Varnish's
/// `%{Varnish:handling}x`, Larder's own.
pub(super) fn served(word: &str) -> Option<Served> {
    let upper = word.to_ascii_uppercase();
    let own = Served::ALL.iter().copied().find(|served| served.word() == upper);
    own.or(match &upper[..] {
        "UPDATING" => Some(Served::Stale),
        "EXPIRED" => Some(Served::Miss),
        "BYPASS" | "PIPE" => Some(Served::Pass),
        _ => None,
    })
}

/// Seconds with a fraction, in microseconds; the last of several, as nginx writes the times of
/// several upstreams (`0.1, 0.2`).
pub(super) fn seconds_us(text: &str) -> Option<u64> {
    let last = text.rsplit([',', ':', ' ']).find(|part| !part.is_empty())?;
    let seconds: f64 = last.parse().ok()?;
    (0.0..1e9).contains(&seconds).then_some((seconds * 1e6) as u64)
}

/// A time in unix milliseconds: seconds or milliseconds since 1970, ISO 8601, or as in NCSA logs.
pub(super) fn unix_ms(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse::<f64>() {
        // Numbers beyond the year 5000 in seconds are milliseconds.
        let ms = if number < 1e11 { number * 1000.0 } else { number };
        return (0.0..1e15).contains(&ms).then_some(ms.round() as u64);
    }
    iso_ms(text).or_else(|| ncsa_ms(text))
}

/// `2026-12-01T00:38:00.123+01:00`, with any offset or `Z`.
fn iso_ms(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(at);
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let [hour, minute, second] = numbers(clock, ':')?;
    let name = MONTHS.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    let http = format!("Mon, {day:02} {name} {year:04} {hour:02}:{minute:02}:{second:02} GMT");
    let unix_s = i64::try_from(parse_http_date(http.as_bytes(), 0)?).ok()?;
    let unix_s = u64::try_from(unix_s.checked_sub(zone_s(zone)?)?).ok()?;
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    unix_s.checked_mul(1000)?.checked_add(digits.parse().ok()?)
}

/// `10/Oct/2000:13:55:36 -0700`, or with milliseconds and without a zone, as HAProxy has it.
pub(super) fn ncsa_ms(text: &str) -> Option<u64> {
    let (date, zone) = text.split_once(' ').unwrap_or((text, ""));
    let (day, clock) = date.split_once(':')?;
    let mut parts = day.split('/');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let http = format!("Mon, {day} {month} {year} {clock} GMT");
    let unix_s = i64::try_from(parse_http_date(http.as_bytes(), 0)?).ok()?;
    let unix_s = u64::try_from(unix_s.checked_sub(zone_s(zone)?)?).ok()?;
    unix_s.checked_mul(1000)?.checked_add(fraction.parse::<u64>().ok().filter(|ms| *ms < 1000)?)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn numbers(text: &str, separator: char) -> Option<[u32; 3]> {
    let parts: Result<Vec<u32>, _> = text.split(separator).map(str::parse).collect();
    <[u32; 3]>::try_from(parts.ok()?).ok()
}

/// Seconds of an offset such as `+01:00`, `-0700` or `Z`; no offset is UTC.
fn zone_s(zone: &str) -> Option<i64> {
    let (sign, offset) = match zone.chars().next() {
        None | Some('Z' | 'z') => return Some(0),
        Some('-') => (-1, zone.strip_prefix('-')?),
        Some(_) => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let digits: String = offset.chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = digits.split_at_checked(2).filter(|(_, minutes)| minutes.len() <= 2)?;
    let minutes: i64 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes * 60))
}

/// Splits a request line into the visit's method and target.
pub(super) fn set_request(visit: &mut Visit, line: &str) {
    let mut words = line.split(' ');
    if let (Some(method), Some(target)) = (words.next(), words.next()) {
        visit.method = method.to_owned();
        visit.target = target.as_bytes().to_vec();
    }
}

/// Sets what a named value of a log says. Unknown names are left out.
pub(super) fn set(visit: &mut Visit, name: &str, value: &str) {
    if value.is_empty() || value == "-" {
        return;
    }
    let lower = name.trim_start_matches('$').to_ascii_lowercase();
    match &lower[..] {
        "remote_addr" | "client" | "client_ip" | "remote_ip" | "ip" | "clientip" => {
            visit.client = value.parse().ok();
        }
        "time_iso8601" | "time_local" | "time" | "timestamp" | "@timestamp" | "msec" | "ts"
        | "date" | "start" => visit.at_ms = unix_ms(value).unwrap_or(visit.at_ms),
        "request" => set_request(visit, value),
        "method" | "request_method" | "verb" => value.clone_into(&mut visit.method),
        "uri" | "request_uri" | "target" | "path" | "url" => {
            visit.target = value.as_bytes().to_vec();
        }
        "query" | "args" | "query_string" => {
            if !visit.target.contains(&b'?') && !visit.target.is_empty() {
                visit.target.push(b'?');
                visit.target.extend_from_slice(value.trim_start_matches('?').as_bytes());
            }
        }
        "host" | "http_host" | "server_name" | "vhost" => visit.set_host(value),
        "scheme" => visit.is_tls = value.eq_ignore_ascii_case("https"),
        "ssl_protocol" | "tls" => visit.is_tls = value != "false",
        "status" => visit.status = value.parse().unwrap_or(0),
        "body_bytes_sent" | "bytes_sent" | "bytes" | "size" | "body_bytes" | "body_out" => {
            visit.body_bytes = value.parse().unwrap_or(0);
        }
        "upstream_response_time" | "urt" | "uht" | "upstream_header_time" => {
            visit.fetch_us = seconds_us(value).or(visit.fetch_us);
        }
        "request_time" | "rt" | "duration" => {
            visit.fetch_us = visit.fetch_us.or_else(|| seconds_us(value));
        }
        "upstream_cache_status" | "cache" | "cs" | "ucs" | "served" | "cache_status" => {
            visit.served = served(value);
        }
        "agent" | "user_agent" | "http_user_agent" => visit.set_field("user-agent", value),
        "cookie" | "cookies" => visit.set_field("cookie", value),
        "referer" | "referrer" => visit.set_field("referer", value),
        "class" => value.clone_into(&mut visit.class),
        "limit" => value.clone_into(&mut visit.limit),
        "not_stored" => value.clone_into(&mut visit.not_stored),
        "evidence" | "not_stored_by" | "stored_by" => value.clone_into(&mut visit.evidence),
        "site" => value.clone_into(&mut visit.site),
        _ => set_by_prefix(visit, &lower, value),
    }
}

/// Sets a field of the request or the response, as nginx names them: `http_cookie`,
/// `upstream_http_etag`, `sent_http_vary`.
fn set_by_prefix(visit: &mut Visit, name: &str, value: &str) {
    if let Some(field) = name.strip_prefix("http_") {
        return visit.set_field(&field.replace('_', "-"), value);
    }
    let sent = name.strip_prefix("upstream_http_").or_else(|| name.strip_prefix("sent_http_"));
    if let Some(field) = sent {
        visit.set_response_field(&field.replace('_', "-"), value);
    }
}
