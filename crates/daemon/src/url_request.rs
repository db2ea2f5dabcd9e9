//! URL request: the request that a client would send for a URL. Operators and sitemaps name URLs.

use base::Limits;
use h1::{HeadLimits, ReadProgress, RequestReader};
use message::{Request, Scheme};

/// The request of a client for a URL, parsed as a client's would be.
///
/// # Errors
/// A sentence that the text is no URL.
pub(crate) fn parse(url: &str) -> Result<Request, String> {
    let bad = || {
        let short: String = url.chars().take(100).collect();
        format!(
            "`{short}` is no URL: scheme, host and path are wanted, such as \
             https://example.org/page"
        )
    };
    let (scheme, rest) = match url.split_once("://") {
        Some((name, rest)) if name.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
        Some((name, rest)) if name.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
        _ => return Err(bad()),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let good = |c: char| c.is_ascii_graphic() && c != '@';
    if authority.is_empty() || !authority.chars().all(good) {
        return Err(bad());
    }
    let mut path = String::new();
    for byte in target.bytes() {
        match byte {
            // Encoded as browsers do.
            0x80.. => path.push_str(&format!("%{byte:02X}")),
            b'!'..=b'~' => path.push(char::from(byte)),
            _ => return Err(bad()),
        }
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let head = format!("GET {slash}{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let mut request = Request::new();
    let limits = HeadLimits::from(&Limits::default());
    match RequestReader::new().read(head.as_bytes(), &limits, scheme, &mut request) {
        Ok(ReadProgress::Complete(_)) => Ok(request),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Option<String> {
        let request = parse(url).ok()?;
        let port = request.port.map_or_else(String::new, |port| format!(":{port}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(format!("{}{port}{}", text(&request.host), text(&request.target)))
    }

    #[test]
    fn urls_are_read_as_requests_would_be() {
        for (url, read) in [
            ("http://Example.org", "example.org/"),
            ("https://example.org:443/a?b", "example.org/a?b"),
            ("https://example.org:8443/a", "example.org:8443/a"),
            ("http://[::1]:80/", "[::1]/"),
            ("http://example.org?a=b", "example.org/?a=b"),
            ("http://example.org/a#part", "example.org/a"),
            ("http://example.org/ä", "example.org/%C3%A4"),
        ] {
            assert_eq!(target(url).as_deref(), Some(read), "{url}");
        }
        for bad in [
            "",
            "/a",
            "example.org/a",
            "ftp://example.org/",
            "http://",
            "http:///a",
            "http://user@example.org/",
            "http://example.org/a b",
            "http://example.org/\r\nX: y",
            "http://example.org\r\nX: y/",
            "http://exa mple.org/",
            "http://example.org:port/",
        ] {
            assert_eq!(target(bad), None, "{bad}");
        }
    }
}
