//! Target servers: parsed from a URL, resolved to addresses.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// A server under load.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetServer {
    /// True for https.
    pub secure: bool,
    /// Name or address; an IPv6 address has brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Unix socket used instead of host and port.
    pub unix_socket: Option<PathBuf>,
}

impl TargetServer {
    /// Splits an absolute URL into the server and the path, which begins with `/`.
    pub fn parse(url: &str) -> Result<(Self, String), String> {
        let wrong = |what: &str| format!("{url}: {what}");
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| wrong("a URL begins with http:// or https://"))?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("the scheme is http or https")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return Err(wrong(
                "a URL with a user is not supported; send a field: -H 'Authorization: ...'",
            ));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().map_err(|_| wrong("the port is a number up to 65535"))?;
                (host, port)
            }
            _ => (authority, if secure { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err(wrong("a URL has a host"));
        }
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("a URL has no blanks or control characters"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok((Self { secure, host: host.to_owned(), port, unix_socket: None }, path))
    }

    /// The value of Host (RFC 9110 7.2): without the scheme's default port.
    pub fn authority(&self) -> String {
        match (self.secure, self.port) {
            (false, 80) | (true, 443) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// The scheme.
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// Resolves the host's name.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let found = (bare, self.port)
            .to_socket_addrs()
            .map_err(|error| format!("{self}: no address for {bare}: {error}"))?;
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return Err(format!("{self}: no address for {bare}"));
        }
        Ok(found)
    }
}

impl fmt::Display for TargetServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}", self.scheme(), self.authority())?;
        match &self.unix_socket {
            Some(path) => write!(out, " at {}", path.display()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_server_and_a_path() {
        for (url, authority, port, path) in [
            ("http://a", "a", 80, "/"),
            ("HTTP://a:80/x#y", "a", 80, "/x"),
            ("https://a?q=1", "a", 443, "/?q=1"),
            ("https://a:8443/x?q", "a:8443", 8443, "/x?q"),
            ("http://[::1]:81/", "[::1]:81", 81, "/"),
            ("http://[::1]/", "[::1]", 80, "/"),
        ] {
            let (target, rest) = TargetServer::parse(url).expect(url);
            assert_eq!(
                (target.authority().as_str(), target.port, rest.as_str()),
                (authority, port, path)
            );
        }
        for url in
            ["a", "ftp://a", "http://", "http://:80/", "http://a:x/", "http://u@a/", "http://a/ b"]
        {
            assert!(TargetServer::parse(url).is_err(), "{url}");
        }
    }
}
