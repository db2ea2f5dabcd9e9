//! Host and port of a backend that a call asks for. The port of the client's Host is never used.

use crate::state::ctx::Ctx;

/// A port by number or by well-known name.
pub(super) fn port_of(port: &str) -> Option<&str> {
    match port {
        "http" => Some("80"),
        "https" => Some("443"),
        number => number.parse::<u16>().ok().filter(|n| *n > 0).map(|_| number),
    }
}

/// Host and port of a call; a missing port is empty. `None` if the host is invalid.
pub(super) fn host_port_of(ctx: &Ctx<'_>, host: &str, port: &str) -> Option<(Box<str>, Box<str>)> {
    if !host.is_empty() {
        return is_host(host).then(|| (host.to_ascii_lowercase().into(), port.into()));
    }
    let of_fetch = ctx.bereq.as_ref().map(|bereq| &bereq.head.headers);
    let headers = of_fetch.or_else(|| ctx.req.as_ref().map(|req| &req.head.headers))?;
    let value = std::str::from_utf8(headers.value(message::HeaderId::Host)?).ok()?;
    // The port in Host is the listener's, and says nothing about the backend.
    let host = match value.rsplit_once(':') {
        Some((host, after)) if after.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => value,
    };
    is_host(host).then(|| (host.to_ascii_lowercase().into(), port.into()))
}

/// Returns true for a host name or an IP address (IPv6 without brackets).
fn is_host(host: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let is_name = host.len() <= 253 && !host.is_empty() && host.bytes().all(is_name);
    is_name || host.parse::<std::net::IpAddr>().is_ok()
}
