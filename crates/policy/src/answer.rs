//! Answers that settings configure: redirects and fixed responses.

use std::fmt;
use std::sync::Arc;

use message::{Request, Status, header};

use crate::points::Synthetic;

/// A response that a route gives instead of the cache or the origin.
#[derive(Clone, Debug)]
pub enum ConfiguredResponse {
    /// A redirect to a target made from the request.
    Redirect(Redirect),
    /// A fixed response for every request.
    Fixed(Arc<Synthetic>),
}

/// The reason why a redirect is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectError {
    /// The status is not one of 301, 302, 303, 307, 308.
    Status,
    /// The target is empty or has a byte that is invalid in Location.
    Target,
    /// `$` is followed by neither `host`, `path`, `query` nor `$`.
    Variable(String),
}

impl fmt::Display for RedirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status => f.write_str("a redirect's status is 301, 302, 303, 307 or 308"),
            Self::Target => {
                f.write_str("a target has no spaces, line breaks or other control characters")
            }
            Self::Variable(name) => {
                write!(
                    f,
                    "unknown variable `${name}` (there are $host, $path, $query, and $$ for a dollar)"
                )
            }
        }
    }
}

impl std::error::Error for RedirectError {}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    status: Status,
    pieces: Vec<RedirectPiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RedirectPiece {
    Text(String),
    Host,
    /// The host without its port.
    Name,
    Path,
    Query,
}

const VARIABLES: [(&str, RedirectPiece); 3] =
    [("host", RedirectPiece::Host), ("path", RedirectPiece::Path), ("query", RedirectPiece::Query)];

impl fmt::Display for Redirect {
    /// Status and target, as written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to ", self.status)?;
        for piece in &self.pieces {
            match piece {
                RedirectPiece::Text(text) => f.write_str(&text.replace('$', "$$"))?,
                RedirectPiece::Host => f.write_str("$host")?,
                RedirectPiece::Name => f.write_str("(host)")?,
                RedirectPiece::Path => f.write_str("$path")?,
                RedirectPiece::Query => f.write_str("$query")?,
            }
        }
        Ok(())
    }
}

impl Redirect {
    /// Status and target, as written, without the user and password of a URL.
    pub fn without_credentials(&self) -> String {
        let text = self.to_string();
        let Some(begin) = text.find("://").map(|at| at + 3) else { return text };
        let end = text[begin..].find(['/', '?', '#']).map_or(text.len(), |at| begin + at);
        match text[begin..end].rfind('@') {
            Some(at) => format!("{}(secret){}", &text[..begin], &text[begin + at..]),
            None => text,
        }
    }

    /// Parses a target: an absolute URL or a path, with `$host` (name and port), `$path`, `$query`
    /// (with its question mark; empty if the request has none), and `$$` for a dollar sign.
    ///
    /// # Errors
    /// If the status is not a redirect's, or the target is malformed or has an unknown variable.
    pub fn parse(status: Status, target: &str) -> Result<Self, RedirectError> {
        if !matches!(status.code(), 301 | 302 | 303 | 307 | 308) {
            return Err(RedirectError::Status);
        }
        if target.is_empty() || !target.bytes().all(|b| b.is_ascii_graphic() || b >= 0x80) {
            return Err(RedirectError::Target);
        }
        let mut pieces = Vec::new();
        let mut rest = target;
        while let Some(at) = rest.find('$') {
            pieces.push(RedirectPiece::Text(rest[..at].to_owned()));
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                pieces.push(RedirectPiece::Text("$".to_owned()));
                rest = after;
                continue;
            }
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let known = VARIABLES.iter().find(|(n, _)| *n == name);
            let (_, piece) = known.ok_or_else(|| RedirectError::Variable(name.to_owned()))?;
            pieces.push(piece.clone());
            rest = after;
        }
        pieces.push(RedirectPiece::Text(rest.to_owned()));
        pieces.retain(|p| !matches!(p, RedirectPiece::Text(t) if t.is_empty()));
        Ok(Self { status, pieces })
    }

    /// A redirect to the requested page over HTTPS, at `port` if that is not 443.
    ///
    /// # Errors
    /// If the status is not a redirect's.
    pub fn to_https(status: Status, port: Option<u16>) -> Result<Self, RedirectError> {
        let mut redirect = Self::parse(status, "$path$query")?;
        let port = port.map(|port| RedirectPiece::Text(format!(":{port}")));
        let before = [RedirectPiece::Text("https://".to_owned()), RedirectPiece::Name];
        redirect.pieces.splice(0..0, before.into_iter().chain(port));
        Ok(redirect)
    }

    /// The response to `request`; `None` if the target needs a host and the request has none, or
    /// the target would be an invalid field value.
    pub(crate) fn answer(&self, request: &Request) -> Option<Synthetic> {
        let mut location = Vec::with_capacity(request.target.len() + request.host.len() + 16);
        for piece in &self.pieces {
            match piece {
                RedirectPiece::Text(text) => location.extend_from_slice(text.as_bytes()),
                RedirectPiece::Host | RedirectPiece::Name if request.host.is_empty() => {
                    return None;
                }
                RedirectPiece::Name => location.extend_from_slice(&request.host),
                RedirectPiece::Host => {
                    location.extend_from_slice(&request.host);
                    if let Some(port) = request.port {
                        location.extend_from_slice(format!(":{port}").as_bytes());
                    }
                }
                // `//elsewhere` at the start of a Location is another host (RFC 3986 4.2), and
                // browsers treat `/\` like it.
                RedirectPiece::Path if location.is_empty() || location == b"/" => {
                    let path = request.path();
                    let begin = path.iter().position(|b| !matches!(b, b'/' | b'\\'));
                    location.clear();
                    location.push(b'/');
                    location.extend_from_slice(&path[begin.unwrap_or(path.len())..]);
                }
                RedirectPiece::Path => location.extend_from_slice(request.path()),
                RedirectPiece::Query => {
                    if let Some(query) = request.query() {
                        location.push(b'?');
                        location.extend_from_slice(query);
                    }
                }
            }
        }
        header::is_value(&location).then(|| Synthetic {
            status: self.status,
            fields: vec![(b"Location".to_vec(), location)],
            body: Vec::new(),
            close: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(target: &str, request: &str) -> Option<String> {
        let redirect = Redirect::parse(Status::new(301)?, target).expect("a redirect");
        let mut head = Request::new();
        head.host.extend_from_slice(b"example.com");
        head.target.extend_from_slice(request.as_bytes());
        let answer = redirect.answer(&head)?;
        assert_eq!(answer.fields[0].0, b"Location");
        String::from_utf8(answer.fields[0].1.clone()).ok()
    }

    #[test]
    fn variables_stand_for_parts_of_the_request() {
        for (target, request, expected) in [
            ("https://$host$path$query", "/a?b=c", "https://example.com/a?b=c"),
            ("https://$host$path$query", "/a", "https://example.com/a"),
            ("/new$path", "/a", "/new/a"),
            ("https://example.org/?cost=$$5", "/", "https://example.org/?cost=$5"),
        ] {
            assert_eq!(location(target, request).as_deref(), Some(expected), "{target}");
        }
    }

    #[test]
    fn a_path_never_becomes_another_host() {
        for request in ["//evil.example/x", "/\\evil.example/x", "///evil.example/x"] {
            assert_eq!(location("$path", request).as_deref(), Some("/evil.example/x"));
            assert_eq!(location("/$path", request).as_deref(), Some("/evil.example/x"));
        }
        assert_eq!(
            location("https://$host$path", "//x").as_deref(),
            Some("https://example.com//x")
        );
    }

    #[test]
    fn a_request_without_host_gets_no_redirect_to_it() {
        let redirect = Redirect::parse(Status::OK, "/");
        assert_eq!(redirect, Err(RedirectError::Status));
        let found = Status::new(302).expect("three digits");
        let redirect = Redirect::parse(found, "https://$host/").expect("a redirect");
        assert_eq!(redirect.answer(&Request::new()), None);
    }

    #[test]
    fn https_keeps_page_and_host_and_takes_its_own_port() {
        let status = Status::new(308).expect("a status");
        let mut request = Request::new();
        request.host.extend_from_slice(b"a.test");
        request.port = Some(8080);
        request.target.extend_from_slice(b"/x/y?z=1");
        let location = |port| {
            let redirect = Redirect::to_https(status, port).expect("a redirect");
            let (_, value) = redirect.answer(&request).expect("an answer").fields.remove(0);
            String::from_utf8(value).expect("text")
        };
        assert_eq!(location(None), "https://a.test/x/y?z=1");
        assert_eq!(location(Some(8443)), "https://a.test:8443/x/y?z=1");
    }

    #[test]
    fn malformed_targets_are_refused() {
        let parse = |target| Redirect::parse(Status::new(308).expect("three digits"), target);
        assert_eq!(parse("/$uri"), Err(RedirectError::Variable("uri".to_owned())));
        assert_eq!(parse("/$"), Err(RedirectError::Variable(String::new())));
        for bad in ["", "/a b", "/a\r\nSet-Cookie: x"] {
            assert_eq!(parse(bad), Err(RedirectError::Target), "{bad:?}");
        }
    }
}
