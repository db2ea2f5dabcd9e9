//! Addresses with ports in strings, as the C library parses them. No name is resolved here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Address of a constant: `192.0.2.1`, `192.0.2.1:81`, a host name. The default port is 80.
/// `resolve` resolves host names.
///
/// # Errors
/// The reason why the text is no address.
pub(crate) fn constant(
    text: &str,
    resolve: impl Fn(&str) -> Result<Vec<IpAddr>, String>,
) -> Result<SocketAddr, String> {
    const PORT: &str = "80";
    let nothing = || "it has no address".to_string();
    let named = parse(text).ok_or_else(nothing)?;
    if let Some(addr) = socket(&named, PORT) {
        return Ok(addr);
    }
    let port = number(named.port.unwrap_or(PORT)).ok_or("its port is no number")?;
    let found = resolve(named.host)?;
    found.first().map(|addr| SocketAddr::new(*addr, port)).ok_or_else(nothing)
}

/// Host and port of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort<'t> {
    /// Address or host name.
    pub host: &'t str,
    /// The port, if given: a number or the name of a service.
    pub port: Option<&'t str>,
}

/// Splits `host`, `host:port`, `host port`, `[host]`, `[host]:port` or `[host] port`. Several
/// colons without brackets are an IPv6 address.
pub(crate) fn parse(text: &str) -> Option<HostPort<'_>> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        let port = match after.strip_prefix([':', ' ']) {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return None,
        };
        return Some(HostPort { host, port });
    }
    let parts = match text.split_once(' ') {
        Some(parts) => Some(parts),
        None => text.split_once(':').filter(|(_, port)| !port.contains(':')),
    };
    let (host, port) = parts.map_or((text, None), |(host, port)| (host, Some(port)));
    (!host.is_empty()).then_some(HostPort { host, port })
}

/// A numeric address: IPv6, or IPv4 in any form of inet_aton(3).
pub(crate) fn numeric(host: &str) -> Option<IpAddr> {
    match host.parse::<Ipv6Addr>() {
        Ok(addr) => Some(IpAddr::V6(addr)),
        Err(_) => aton(host).map(IpAddr::V4),
    }
}

/// `a.b.c.d`, `a.b.c`, `a.b` or `a`, each decimal, octal or hexadecimal; the last number fills the
/// remaining bytes.
fn aton(host: &str) -> Option<Ipv4Addr> {
    let parts: Option<Vec<u32>> = host.split('.').map(c_number).collect();
    let parts = parts?;
    let (last, others) = parts.split_last()?;
    if others.len() > 3 || others.iter().any(|part| *part > 255) {
        return None;
    }
    let left = 32 - 8 * others.len() as u32;
    let high = others.iter().fold(0_u64, |sum, part| sum << 8 | u64::from(*part)) << left;
    let fits = u64::from(*last) < 1 << left;
    fits.then(|| Ipv4Addr::from_bits((high | u64::from(*last)) as u32))
}

fn c_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    // C accepts no sign here.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

/// The address of `named` if host and port are numeric. `port` is the default.
pub(crate) fn socket(named: &HostPort<'_>, port: &str) -> Option<SocketAddr> {
    let port = number(named.port.unwrap_or(port))?;
    Some(SocketAddr::new(numeric(named.host)?, port))
}

/// A port by number; as in C, an empty one is 0.
fn number(port: &str) -> Option<u16> {
    match port.bytes().all(|b| b.is_ascii_digit()) {
        true if port.is_empty() => Some(0),
        true => port.parse().ok(),
        false => None,
    }
}
