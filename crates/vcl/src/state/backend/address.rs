//! Address of a backend: host and port as Varnish reads them, and the resolved addresses. It never
//! makes a DNS lookup: the caller passes a resolver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Default port of a backend.
const PORT: u16 = 80;

/// Splits host and port of a backend. Without `.port`, the port may follow in `.host` after a colon
/// or a space (`app:8080`, `[::1]:8080`).
///
/// # Errors
/// The reason why host or port is invalid.
pub fn split<'a>(host: &'a str, port: &'a str) -> Result<(&'a str, u16), String> {
    if !port.is_empty() {
        return Ok((host, number(port)?));
    }
    if let Some(bracketed) = host.strip_prefix('[') {
        let (literal, rest) =
            bracketed.split_once(']').ok_or_else(|| format!("`{host}` has no closing bracket"))?;
        return match rest.strip_prefix([':', ' ']) {
            Some(port) => Ok((literal, number(port)?)),
            None if rest.is_empty() => Ok((literal, PORT)),
            None => Err(format!("expected `:` and a port after `[{literal}]`")),
        };
    }
    if let Some((host, port)) = host.split_once(' ') {
        return Ok((host, number(port)?));
    }
    match host.split_once(':') {
        // Several colons: an IPv6 address.
        Some((_, rest)) if rest.contains(':') => Ok((host, PORT)),
        Some((host, port)) => Ok((host, number(port)?)),
        None => Ok((host, PORT)),
    }
}

/// A port by number or by well-known name.
fn number(port: &str) -> Result<u16, String> {
    match port {
        "http" => Ok(80),
        "https" => Ok(443),
        "http-alt" => Ok(8080),
        digits if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_err(|_| format!("port {digits} is above 65535"))
        }
        other => Err(format!("`{other}` is no port: expected a number up to 65535, or `http`")),
    }
}

/// Addresses of a backend in the order of attempts: an IPv4 address, then an IPv6 address. Either
/// may be missing. `resolve` resolves a name.
///
/// # Errors
/// The reason why host or port is invalid, or why the name cannot be used. As in Varnish, a name
/// may have at most one address of each family.
pub fn locate(
    host: &str,
    port: &str,
    resolve: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
) -> Result<Vec<SocketAddr>, String> {
    let (port_text, (name, port)) = (port, split(host, port)?);
    if name.is_empty() {
        // With a port, getaddrinfo(3) does not accept an empty host.
        return match host.is_empty() && port_text.is_empty() {
            true => Err("no host".to_owned()),
            false => {
                Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()])
            }
        };
    }
    let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let mut found = match literal.parse::<IpAddr>() {
        Ok(ip) => vec![ip],
        Err(_) => resolve(name)?,
    };
    found.sort_unstable();
    found.dedup();
    for is_family in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        let all: Vec<_> = found.iter().filter(|ip| is_family(ip)).collect();
        if let [first, second, ..] = all[..] {
            return Err(format!(
                "`{name}` has more than one address of a kind ({first}, {second}): write one of \
                 them, or a name of one address; the VMOD `dynamic` takes names of many"
            ));
        }
    }
    if found.is_empty() {
        return Err(format!("`{name}` has no address"));
    }
    Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(host: &str, port: &str) -> Result<String, String> {
        let resolve = |name: &str| match name {
            "app" => Ok(vec![IpAddr::from([10, 0, 0, 1])]),
            "both" => {
                Ok(["::1", "127.0.0.1", "127.0.0.1"].map(|ip| ip.parse().expect("one")).into())
            }
            "many" => Ok(vec![IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])]),
            "none" => Ok(Vec::new()),
            _ => Err("Name or service not known".to_owned()),
        };
        let found = locate(host, port, &resolve)?;
        Ok(found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_host_may_have_its_port_in_it() {
        for (host, port, expected) in [
            ("127.0.0.1", "", "127.0.0.1:80"),
            ("127.0.0.1", "8080", "127.0.0.1:8080"),
            ("127.0.0.1:8080", "", "127.0.0.1:8080"),
            ("127.0.0.1 8080", "", "127.0.0.1:8080"),
            ("127.0.0.1:http", "", "127.0.0.1:80"),
            ("::1", "", "[::1]:80"),
            ("[::1]", "", "[::1]:80"),
            ("[::1]:8080", "", "[::1]:8080"),
            ("[::1]", "https", "[::1]:443"),
            ("app:81", "", "10.0.0.1:81"),
            ("both", "1", "127.0.0.1:1 [::1]:1"),
        ] {
            assert_eq!(located(host, port).as_deref(), Ok(expected), "{host} {port}");
        }
    }

    #[test]
    fn what_leads_nowhere_says_why() {
        for (host, port, expected) in [
            ("", "", "no host"),
            ("127.0.0.1:81", "80", "not known"),
            ("127.0.0.1", "nosuch", "no port"),
            ("127.0.0.1", "65536", "above 65535"),
            ("app:", "", "no port"),
            ("[::1", "", "bracket"),
            ("[::1]80", "", "expected `:`"),
            ("many", "", "10.0.0.1, 10.0.0.2"),
            ("none", "", "no address"),
            ("other", "", "not known"),
        ] {
            let error = located(host, port).expect_err(host);
            assert!(error.contains(expected), "{host} {port}: {error}");
        }
    }
}
