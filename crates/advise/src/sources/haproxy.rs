//! HAProxy's HTTP format (`option httplog`), behind syslog's own prefix.

use super::words::{ncsa_ms, set_request};
use crate::visit::Visit;

pub(super) fn parse(line: &str) -> Option<Visit> {
    let (before, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once("] ")?;
    let client = before.rsplit(' ').next()?;
    let (client, _) = client.rsplit_once(':')?;
    let (values, request) = rest.split_once('"')?;
    let mut words = values.split_whitespace();
    let (frontend, _backend, times) = (words.next()?, words.next()?, words.next()?);
    let times: Vec<i64> = times
        .split('/')
        .map(|t| t.trim_start_matches('+').parse())
        .collect::<Result<_, _>>()
        .ok()?;
    let [_, _, connect_ms, response_ms, _] = times[..] else { return None };
    let status = words.next()?.parse().ok()?;
    let bytes = words.next()?.trim_start_matches('+').parse().ok()?;
    let asked = u64::try_from(response_ms).ok();
    let mut visit = Visit {
        at_ms: ncsa_ms(time)?,
        client: client.trim_start_matches("::ffff:").parse().ok(),
        // HAProxy marks a frontend with TLS.
        is_tls: frontend.ends_with('~'),
        status,
        body_bytes: bytes,
        fetch_us: asked.map(|ms| (ms + u64::try_from(connect_ms).unwrap_or(0)) * 1000),
        ..Visit::default()
    };
    set_request(&mut visit, request.split('"').next()?);
    // The first captured value of the request that can be a host is taken for it.
    let captured = values.split('{').nth(1).and_then(|text| text.split('}').next());
    let host = captured.and_then(|text| text.split('|').find(|value| is_host(value)));
    host.into_iter().for_each(|host| visit.set_host(host));
    Some(visit)
}

fn is_host(text: &str) -> bool {
    text.contains('.') && !text.contains([' ', '/', '='])
}
