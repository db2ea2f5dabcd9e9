//! A request's head in canonical form.

use std::fmt;

use crate::header::HeaderBlock;

/// The methods this program tells apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// PATCH
    Patch,
    /// OPTIONS
    Options,
    /// TRACE
    Trace,
    /// CONNECT
    Connect,
    /// PURGE, as caches understand it
    Purge,
    /// BAN, as caches understand it
    Ban,
    /// Any other token.
    Other(Box<[u8]>),
}

impl Method {
    /// The method spelt `token`; methods are case-sensitive (RFC 9110 9.1).
    pub fn from_token(token: &[u8]) -> Self {
        match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"PATCH" => Self::Patch,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"CONNECT" => Self::Connect,
            b"PURGE" => Self::Purge,
            b"BAN" => Self::Ban,
            other => Self::Other(other.into()),
        }
    }

    /// The method as sent.
    pub fn token(&self) -> &[u8] {
        match self {
            Self::Get => b"GET",
            Self::Head => b"HEAD",
            Self::Post => b"POST",
            Self::Put => b"PUT",
            Self::Delete => b"DELETE",
            Self::Patch => b"PATCH",
            Self::Options => b"OPTIONS",
            Self::Trace => b"TRACE",
            Self::Connect => b"CONNECT",
            Self::Purge => b"PURGE",
            Self::Ban => b"BAN",
            Self::Other(token) => token,
        }
    }

    /// Safe (RFC 9110 9.2.1): asks for nothing to change.
    pub fn is_safe(&self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// Idempotent (RFC 9110 9.2.2): may be sent again.
    pub fn is_idempotent(&self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.token()))
    }
}

/// HTTP version of a message. Larger minor versions of HTTP/1 are read as 1.1 (RFC 9112 2.3). Later
/// ones can do what earlier ones can, and are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2: of requests only; origins are spoken to in HTTP/1.1.
    Http2,
}

/// The way in which the request reached the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Scheme {
    /// Plain text.
    #[default]
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// 80 or 443.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The length of a message's body. The engine that reads the head decides it once; nothing looks at
/// the fields again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// No body.
    #[default]
    None,
    /// Exactly so many bytes.
    Length(u64),
    /// Chunked transfer coding; over HTTP/2, which frames every body, one of unknown length.
    Chunked,
    /// Until the connection ends (responses only).
    UntilClose,
}

impl Framing {
    /// Returns the length that the framing declares; `None` where only the end tells.
    pub fn length(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Length(length) => Some(length),
            Self::Chunked | Self::UntilClose => None,
        }
    }
}

/// A request in canonical form. Everything that decides about it (key, route, access, forwarded
/// bytes) reads these fields, never the received bytes.
///
/// Reused from request to request: [`Request::clear`] keeps the memory.
#[derive(Debug, Default)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Version the client spoke.
    pub version: Version,
    /// Scheme of the listener, or of the target when it was in absolute form and the peer is
    /// trusted.
    pub scheme: Scheme,
    /// Host in lower case, without port or trailing dot; an IPv6 literal keeps its brackets. Empty
    /// only for HTTP/1.0 without Host.
    pub host: Vec<u8>,
    /// Port, unless it is the scheme's default.
    pub port: Option<u16>,
    /// Path and query, byte for byte as they will be keyed and forwarded, in ASCII; begins with
    /// `/`, or is `*` for OPTIONS.
    pub target: Vec<u8>,
    /// Header fields as received, Host included.
    pub headers: HeaderBlock,
    /// The framing of the body.
    pub framing: Framing,
    /// True if the connection may carry another request after this one.
    pub keep_alive: bool,
    /// True if the client waits for a 100 before it sends the body.
    pub expect_continue: bool,
    /// The wish for another protocol (Connection: upgrade and Upgrade).
    pub upgrade: Upgrade,
    /// True if its trailers and those of the answer pass. TE and Trailer, if they are there, are
    /// then for the next hop. Set for requests to origins alone.
    pub passes_trailers: bool,
    /// Parameters that were taken out of the query, as written, with `&` between them: the origin
    /// does not see them, and its redirects lack them.
    pub taken: Vec<u8>,
}

/// The state of a wish to speak another protocol on the connection (RFC 9110 7.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// No upgrade.
    #[default]
    None,
    /// The client has it. Nothing of it is forwarded.
    Asked,
    /// It is passed on: the request's Upgrade names the protocols, and nothing else.
    Granted,
}

impl Clone for Request {
    fn clone(&self) -> Self {
        let mut clone = Self::new();
        clone.clone_from(self);
        clone
    }

    /// Keeps the memory.
    fn clone_from(&mut self, other: &Self) {
        let Self { method, version, scheme, host, port, target, headers, framing, .. } = other;
        self.method.clone_from(method);
        (self.version, self.scheme, self.port, self.framing) = (*version, *scheme, *port, *framing);
        self.host.clone_from(host);
        self.target.clone_from(target);
        self.headers.clone_from(headers);
        self.keep_alive = other.keep_alive;
        self.expect_continue = other.expect_continue;
        self.upgrade = other.upgrade;
        self.passes_trailers = other.passes_trailers;
        self.taken.clone_from(&other.taken);
    }
}

impl Request {
    /// Bytes of memory that it takes once it fits.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.host.len()
            + self.target.len()
            + self.taken.len()
            + self.headers.memory()
    }

    /// Gives back memory that larger requests before it needed: for one that stays.
    pub fn fit(&mut self) {
        self.headers.fit();
        if self.target.capacity() > 2 * self.target.len() {
            self.target.shrink_to_fit();
        }
    }

    /// An empty request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.method = Method::Get;
        self.version = Version::Http11;
        self.scheme = Scheme::Http;
        self.host.clear();
        self.port = None;
        self.target.clear();
        self.headers.clear();
        self.framing = Framing::None;
        self.keep_alive = false;
        self.expect_continue = false;
        self.upgrade = Upgrade::None;
        self.passes_trailers = false;
        self.taken.clear();
    }

    /// The target up to the first `?`.
    pub fn path(&self) -> &[u8] {
        self.split().0
    }

    /// The target after the first `?`, if there is one.
    pub fn query(&self) -> Option<&[u8]> {
        self.split().1
    }

    fn split(&self) -> (&[u8], Option<&[u8]>) {
        match memchr::memchr(b'?', &self.target) {
            Some(at) => (&self.target[..at], Some(&self.target[at + 1..])),
            None => (&self.target, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_splits_at_the_first_question_mark() {
        let mut request = Request::new();
        request.target.extend_from_slice(b"/a?b?c");
        assert_eq!(request.path(), b"/a");
        assert_eq!(request.query(), Some(&b"b?c"[..]));
        request.clear();
        request.target.extend_from_slice(b"/a");
        assert_eq!((request.path(), request.query()), (&b"/a"[..], None));
    }

    #[test]
    fn methods_are_case_sensitive() {
        assert_eq!(Method::from_token(b"GET"), Method::Get);
        assert_eq!(Method::from_token(b"get").token(), b"get");
        assert!(!Method::from_token(b"get").is_safe());
    }
}
