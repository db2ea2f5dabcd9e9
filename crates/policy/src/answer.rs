//! Answers that settings configure: redirects and fixed responses.

use std::fmt;
use std::sync::Arc;

use message::{Request, Status, header};

use crate::points::Synthetic;
use crate::template::{
    Template, TemplateError, TemplatePiece, TemplateValues, Variable, VariableSet,
};

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
    /// A variable is unknown.
    Template(TemplateError),
    /// A part of the path would be the host.
    Host,
}

impl fmt::Display for RedirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status => f.write_str("a redirect's status is 301, 302, 303, 307 or 308"),
            Self::Target => {
                f.write_str("a target has no spaces, line breaks or other control characters")
            }
            Self::Template(why) => why.fmt(f),
            Self::Host => {
                f.write_str("the host may not come from the path: name it, or use `$host`")
            }
        }
    }
}

impl std::error::Error for RedirectError {}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    status: Status,
    to: RedirectTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RedirectTarget {
    Template(Template),
    /// The requested page over HTTPS, at this port if it is not the usual one.
    Https(Option<u16>),
}

impl fmt::Display for Redirect {
    /// Status and target, as written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to ", self.status)?;
        match &self.to {
            RedirectTarget::Template(template) => template.fmt(f),
            RedirectTarget::Https(None) => f.write_str("https://(host)$path$query"),
            RedirectTarget::Https(Some(port)) => write!(f, "https://(host):{port}$path$query"),
        }
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
    /// (with its question mark; empty if the request has none), `$1` to `$9` for what stars or
    /// groups of the route's path stand for, and `$$` for a dollar sign.
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
        let template =
            Template::parse(target, VariableSet::Url).map_err(RedirectError::Template)?;
        let mut before = String::new();
        for piece in template.pieces() {
            match piece {
                TemplatePiece::Text(text) => before.push_str(text),
                TemplatePiece::Variable(Variable::Capture(_) | Variable::Args)
                    if before.ends_with("://") =>
                {
                    return Err(RedirectError::Host);
                }
                TemplatePiece::Variable(_) => before.push('$'),
            }
        }
        Ok(Self { status, to: RedirectTarget::Template(template) })
    }

    /// A redirect to the requested page over HTTPS, at `port` if that is not 443.
    ///
    /// # Errors
    /// If the status is not a redirect's.
    pub fn to_https(status: Status, port: Option<u16>) -> Result<Self, RedirectError> {
        let redirect = Self::parse(status, "$path")?;
        Ok(Self { to: RedirectTarget::Https(port), ..redirect })
    }

    /// The highest number of a capture that it needs; 0 if it needs none.
    pub fn captures(&self) -> usize {
        match &self.to {
            RedirectTarget::Template(template) => template.captures(),
            RedirectTarget::Https(_) => 0,
        }
    }

    /// The response to `request`, whose route's path stands for `captures`; `None` if the target
    /// needs a host and the request has none, or the target would be an invalid field value.
    pub(crate) fn answer(&self, request: &Request, captures: &[&[u8]]) -> Option<Synthetic> {
        let mut location = Vec::with_capacity(request.target.len() + request.host.len() + 16);
        let values = TemplateValues { request, client: None, captures };
        match &self.to {
            RedirectTarget::Https(port) => {
                if request.host.is_empty() {
                    return None;
                }
                location.extend_from_slice(b"https://");
                location.extend_from_slice(&request.host);
                if let Some(port) = port {
                    location.extend_from_slice(format!(":{port}").as_bytes());
                }
                location.extend_from_slice(&request.target);
            }
            RedirectTarget::Template(template) => {
                for piece in template.pieces() {
                    write_piece(piece, values, &mut location)?;
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

/// Appends a piece of a target to the location so far. Nothing that a client sends makes it lead to
/// another host. `None` if it needs a host, and the request names none.
fn write_piece(
    piece: &TemplatePiece,
    values: TemplateValues<'_>,
    location: &mut Vec<u8>,
) -> Option<()> {
    let variable = match piece {
        TemplatePiece::Text(text) => {
            location.extend_from_slice(text.as_bytes());
            return Some(());
        }
        TemplatePiece::Variable(variable) => variable,
    };
    match variable {
        Variable::Host if values.request.host.is_empty() => return None,
        Variable::Path | Variable::Args | Variable::Capture(_) => {
            let mut part = Vec::new();
            variable.write(values, &mut part);
            // `//elsewhere` at the beginning of a Location is another host (RFC 3986 4.2), and
            // browsers read `/\` like it.
            if location.is_empty() || location == b"/" {
                let begin = part.iter().position(|b| !matches!(b, b'/' | b'\\'));
                location.clear();
                location.push(b'/');
                location.extend_from_slice(&part[begin.unwrap_or(part.len())..]);
                return Some(());
            }
            // Right behind a host, anything but a slash would be a part of that.
            if ends_in_host(location) && !part.starts_with(b"/") {
                location.push(b'/');
            }
            location.extend_from_slice(&part);
        }
        _ => variable.write(values, location),
    }
    Some(())
}

/// Returns true if what follows would be a part of the host.
fn ends_in_host(location: &[u8]) -> bool {
    let begin = memchr::memmem::find(location, b"://").map(|at| at + 3);
    begin.is_some_and(|begin| !location[begin..].iter().any(|b| matches!(b, b'/' | b'?' | b'#')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(target: &str, request: &str) -> Option<String> {
        location_of(target, request, &[])
    }

    fn location_of(target: &str, request: &str, captures: &[&[u8]]) -> Option<String> {
        let redirect = Redirect::parse(Status::new(301)?, target).expect("a redirect");
        let mut head = Request::new();
        head.host.extend_from_slice(b"example.com");
        head.target.extend_from_slice(request.as_bytes());
        let answer = redirect.answer(&head, captures)?;
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
    fn captures_stand_in_a_target_and_never_become_a_host() {
        for (target, capture, expected) in [
            ("/new/$1", "a/b", "/new/a/b"),
            ("https://a.test/$1.html", "b", "https://a.test/b.html"),
            ("/$1", "/evil.example", "/evil.example"),
            ("$1", "//evil.example", "/evil.example"),
            ("https://a.test$1", ".evil.example", "https://a.test/.evil.example"),
            ("https://a.test$1", "@evil.example", "https://a.test/@evil.example"),
            ("https://a.test$1", "/b", "https://a.test/b"),
            ("https://$host$1", ":1@evil.example", "https://example.com/:1@evil.example"),
            ("/a?b=$1", "c", "/a?b=c"),
            ("/a?$args", "c", "/a?q=//evil.example"),
            ("/$args", "c", "/q=//evil.example"),
        ] {
            let found = location_of(target, "/x?q=//evil.example", &[capture.as_bytes()]);
            assert_eq!(found.as_deref(), Some(expected), "{target} {capture}");
        }
        for target in ["/$args", "$args", "https://a.test$args"] {
            let found = location_of(target, "/x?//evil.example", &[]).expect("a location");
            assert!(found == "/evil.example" || found == "https://a.test//evil.example", "{found}");
        }
    }

    #[test]
    fn a_request_without_host_gets_no_redirect_to_it() {
        let redirect = Redirect::parse(Status::OK, "/");
        assert_eq!(redirect, Err(RedirectError::Status));
        let found = Status::new(302).expect("three digits");
        let redirect = Redirect::parse(found, "https://$host/").expect("a redirect");
        assert_eq!(redirect.answer(&Request::new(), &[]), None);
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
            let (_, value) = redirect.answer(&request, &[]).expect("an answer").fields.remove(0);
            String::from_utf8(value).expect("text")
        };
        assert_eq!(location(None), "https://a.test/x/y?z=1");
        assert_eq!(location(Some(8443)), "https://a.test:8443/x/y?z=1");
    }

    #[test]
    fn malformed_targets_are_refused() {
        let parse = |target| Redirect::parse(Status::new(308).expect("three digits"), target);
        for bad in ["/$uri", "/$", "/$client"] {
            assert!(matches!(parse(bad), Err(RedirectError::Template(_))), "{bad}");
        }
        assert_eq!(parse("https://$1.example.com/"), Err(RedirectError::Host));
        for bad in ["", "/a b", "/a\r\nSet-Cookie: x"] {
            assert_eq!(parse(bad), Err(RedirectError::Target), "{bad:?}");
        }
    }
}
