//! The question: a request that an operator describes, to be explained.

use std::fmt;

use h1::{HeadLimits, ReadProgress, RequestError, RequestReader};
use message::{Request, Scheme};

/// A request as the operator types it.
#[derive(Clone, Debug)]
pub(crate) struct ExplainQuestion<'a> {
    /// An absolute URL, `http` or `https`. The fragment is dropped, as clients do.
    pub(crate) url: &'a str,
    /// Method.
    pub(crate) method: &'a str,
    /// Lines of fields: `Name: value`.
    pub(crate) fields: &'a [String],
}

/// The reason why it is no request.
#[derive(Debug)]
pub(crate) enum QuestionError {
    /// The URL is no absolute one of `http` or `https`.
    Url,
    /// A line that is no `Name: value`.
    Field(String),
    /// A method, URL or field that no client could send.
    Byte,
    /// The listener would reject it.
    Request(RequestError),
}

impl fmt::Display for QuestionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("a URL begins with http:// or https:// and has a host"),
            Self::Field(line) => {
                write!(f, "a header field is written `Name: value`, not `{}`", line.escape_debug())
            }
            Self::Byte => f.write_str("a space or control character where none can be sent"),
            Self::Request(error) => write!(f, "the listener would refuse it: {error}"),
        }
    }
}

impl std::error::Error for QuestionError {}

impl ExplainQuestion<'_> {
    /// Parses the request with a listener's parser.
    ///
    /// # Errors
    /// It is no valid request.
    pub(crate) fn request(&self, limits: &HeadLimits) -> Result<Request, QuestionError> {
        let (scheme, rest) = if let Some(rest) = after(self.url, "http://") {
            (Scheme::Http, rest)
        } else if let Some(rest) = after(self.url, "https://") {
            (Scheme::Https, rest)
        } else {
            return Err(QuestionError::Url);
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, target) = rest.split_at(end);
        if host.is_empty() || host.contains('@') {
            return Err(QuestionError::Url);
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        let is_word = |text: &str| !text.contains(|c: char| c.is_whitespace() || c.is_control());
        if ![self.method, host, target].into_iter().all(is_word) {
            return Err(QuestionError::Byte);
        }
        let mut head = format!("{} {slash}{target} HTTP/1.1\r\nHost: {host}\r\n", self.method);
        for line in self.fields {
            if !line.contains(':') {
                return Err(QuestionError::Field(line.clone()));
            }
            if line.contains(|c: char| c.is_control() && c != '\t') {
                return Err(QuestionError::Byte);
            }
            head.push_str(line);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let mut request = Request::new();
        let read = RequestReader::new().read(head.as_bytes(), limits, scheme, &mut request);
        match read.map_err(QuestionError::Request)? {
            ReadProgress::Complete(_) => Ok(request),
            // The head is complete: what is missing is a byte that ends a line.
            ReadProgress::Partial => Err(QuestionError::Byte),
        }
    }
}

/// `url`, or its most likely meaning if it has no scheme, as in lists of URLs: HTTPS where it is
/// spoken here, since plain requests are often only redirected there.
pub(super) fn with_scheme(url: &str, is_tls_here: bool) -> String {
    let scheme = if is_tls_here { "https" } else { "http" };
    let host = url.split(['/', '?', '#']).next().unwrap_or_default();
    // `http:` would be a host otherwise.
    let has_scheme = url.get(host.len()..).is_some_and(|rest| rest.starts_with("//"));
    if host.is_empty() || has_scheme { url.to_owned() } else { format!("{scheme}://{url}") }
}

/// Returns the rest of `url` after `scheme`, which may be in any case.
fn after<'u>(url: &'u str, scheme: &str) -> Option<&'u str> {
    let (first, rest) = url.split_at_checked(scheme.len())?;
    first.eq_ignore_ascii_case(scheme).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str, method: &str, fields: &[&str]) -> Result<Request, QuestionError> {
        let fields: Vec<String> = fields.iter().map(|line| (*line).to_owned()).collect();
        let limits = HeadLimits::from(&base::Limits::default());
        ExplainQuestion { url, method, fields: &fields }.request(&limits)
    }

    #[test]
    fn a_url_is_read_as_a_client_would_send_it() {
        for (url, expected) in [
            ("http://Example.COM", "http example.com None /"),
            ("HTTPS://example.com:443/a?b=c#d", "https example.com None /a?b=c"),
            ("http://example.com:8080?x", "http example.com Some(8080) /?x"),
            ("http://[::1]:81/", "http [::1] Some(81) /"),
        ] {
            let request = read(url, "GET", &[]).expect(url);
            let Request { scheme, host, port, target, .. } = request;
            let text = |bytes| String::from_utf8(bytes).expect("text");
            let found = format!("{} {} {port:?} {}", scheme.as_str(), text(host), text(target));
            assert_eq!(found, expected);
        }
        let post = read("http://a/", "POST", &["Content-Length: 3", "Cookie: a=b"]).expect("one");
        assert_eq!(post.framing, message::Framing::Length(3));
        assert_eq!(post.headers.value(message::HeaderId::Cookie), Some(&b"a=b"[..]));
    }

    #[test]
    fn a_url_without_a_scheme_has_the_one_that_is_spoken_here() {
        for (url, plain, secure) in [
            ("a.test/x", "http://a.test/x", "https://a.test/x"),
            ("127.0.0.1:80?b", "http://127.0.0.1:80?b", "https://127.0.0.1:80?b"),
            ("a.test/x?u=http://b/", "http://a.test/x?u=http://b/", "https://a.test/x?u=http://b/"),
            ("http://a.test/", "http://a.test/", "http://a.test/"),
            ("ftp://a/", "ftp://a/", "ftp://a/"),
            ("/x", "/x", "/x"),
            ("", "", ""),
        ] {
            assert_eq!(with_scheme(url, false), plain);
            assert_eq!(with_scheme(url, true), secure);
        }
    }

    #[test]
    fn what_no_client_could_send_is_refused_in_words() {
        for (url, method, fields, expected) in [
            ("example.com/", "GET", &[][..], "a URL begins with"),
            ("ftp://a/", "GET", &[], "a URL begins with"),
            ("http:///a", "GET", &[], "a URL begins with"),
            ("http://a@b/", "GET", &[], "a URL begins with"),
            ("http://a/b c", "GET", &[], "a space or control"),
            ("http://a/", "GET / HTTP/1.1\r\nX:", &[], "a space or control"),
            ("http://a/", "GET", &["X: a\r\nY: b"], "a space or control"),
            ("http://a/", "GET", &["nothing"], "a header field is written"),
            ("http://a/", "GET", &["Host: b"], "the listener would refuse it"),
            ("http://a\u{e9}/", "GET", &[], "the listener would refuse it"),
            ("http://a/", "GET", &["X Y: z"], "the listener would refuse it"),
        ] {
            let error = read(url, method, fields).expect_err(url).to_string();
            assert!(error.starts_with(expected), "{url} {fields:?}: {error}");
        }
    }
}
