//! Request head in canonical form, the only form that key, route and forwarded bytes may be made
//! from.

use std::fmt;

use crate::client::ClassifiedClient;
use crate::header::{Field, HeaderBlock};

/// The known methods.
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
    /// PURGE, as caches define it
    Purge,
    /// BAN, as caches define it
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

    /// Returns true for a safe method (RFC 9110 9.2.1), which changes nothing.
    pub fn is_safe(&self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// Returns true for an idempotent method (RFC 9110 9.2.2), which may be retried.
    pub fn is_idempotent(&self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.token()))
    }
}

/// HTTP version of a message. Larger minor versions of HTTP/1 are treated as 1.1 (RFC 9112 2.3).
/// Ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2.
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

/// The framing of a message's body. The engine that parses the head decides it once; other code
/// never looks at the fields again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// No body.
    #[default]
    None,
    /// Exactly this many bytes.
    Length(u64),
    /// Chunked transfer coding; for HTTP/2, which frames every body, an unknown length.
    Chunked,
    /// Until the connection ends (responses only).
    UntilClose,
}

impl Framing {
    /// Returns the declared length; `None` if only the end shows it.
    pub fn length(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Length(length) => Some(length),
            Self::Chunked | Self::UntilClose => None,
        }
    }
}

/// A request in canonical form. Every decision about it (key, route, access, forwarded bytes) uses
/// these fields, never the received bytes.
///
/// Reused from request to request: [`Request::clear`] keeps the memory.
#[derive(Debug, Default)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Version of the received message.
    pub version: Version,
    /// Scheme of the listener, or of an absolute target if the peer is trusted.
    pub scheme: Scheme,
    /// Host in lower case, without port or trailing dot; an IPv6 literal keeps its brackets. Empty
    /// only for HTTP/1.0 without Host.
    pub host: Vec<u8>,
    /// Port, unless it is the scheme's default.
    pub port: Option<u16>,
    /// Path and query, byte for byte as they will be keyed and forwarded, in ASCII; begins with
    /// `/`, or is `*` for OPTIONS.
    pub target: Vec<u8>,
    /// The target as sent, if `target` differs from it: it was absolute or had bytes beyond ASCII,
    /// or [`canonical`](crate::target::canonical) has spelt its path otherwise. Empty if not. Only
    /// for what clients sign.
    pub respelt: Vec<u8>,
    /// Header fields as received, Host included.
    pub headers: HeaderBlock,
    /// The framing of the body.
    pub framing: Framing,
    /// True if the connection may carry another request after this one.
    pub keep_alive: bool,
    /// True if the client waits for a 100 before it sends the body.
    pub expect_continue: bool,
    /// The requested switch of protocols (Connection: upgrade and Upgrade).
    pub upgrade: Upgrade,
    /// True if trailers of the request and the response are forwarded. TE and Trailer are then for
    /// the next hop. Set for requests to origins only.
    pub passes_trailers: bool,
    /// Parameters removed from the query, as written and separated by `&`: the origin does not get
    /// them, so its redirects lack them.
    pub taken: Vec<u8>,
    /// The class of its client; `None` on sites that use no classes.
    pub client: Option<ClassifiedClient>,
    /// The time at which its head was read, in milliseconds since 1970: the one that every look at
    /// its conditions has. 0 until it is at its site.
    pub arrived_unix_ms: u64,
    /// For logs: fields as they were sent, where `headers` has another form of them in their place.
    /// A field that was not sent has an empty value.
    pub replaced: Option<Box<HeaderBlock>>,
}

/// The state of a requested switch of protocols on the connection (RFC 9110 7.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// No upgrade.
    #[default]
    None,
    /// The client has asked for it; nothing is forwarded.
    Asked,
    /// Forwarded: the request's Upgrade names the permitted protocols only.
    Granted,
}

impl Clone for Request {
    fn clone(&self) -> Self {
        let mut clone = Self::new();
        clone.clone_from(self);
        clone
    }

    /// Reuses the memory.
    fn clone_from(&mut self, other: &Self) {
        let Self { method, version, scheme, host, port, target, headers, framing, .. } = other;
        self.method.clone_from(method);
        (self.version, self.scheme, self.port, self.framing) = (*version, *scheme, *port, *framing);
        self.host.clone_from(host);
        self.target.clone_from(target);
        self.respelt.clone_from(&other.respelt);
        self.headers.clone_from(headers);
        self.keep_alive = other.keep_alive;
        self.expect_continue = other.expect_continue;
        self.upgrade = other.upgrade;
        self.passes_trailers = other.passes_trailers;
        self.taken.clone_from(&other.taken);
        self.client = other.client;
        self.arrived_unix_ms = other.arrived_unix_ms;
        self.replaced.clone_from(&other.replaced);
    }
}

impl Request {
    /// Bytes of memory after [`Request::fit`].
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.host.len()
            + self.target.len()
            + self.respelt.len()
            + self.taken.len()
            + self.headers.memory()
            + self.replaced.as_ref().map_or(0, |sent| size_of::<HeaderBlock>() + sent.memory())
    }

    /// Frees memory left over from larger requests, for a request that is kept.
    pub fn fit(&mut self) {
        self.headers.fit();
        if self.target.capacity() > 2 * self.target.len() {
            self.target.shrink_to_fit();
        }
        self.respelt.shrink_to_fit();
    }

    /// An empty request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.method = Method::Get;
        self.version = Version::Http11;
        self.scheme = Scheme::Http;
        self.host.clear();
        self.port = None;
        self.target.clear();
        self.respelt.clear();
        self.headers.clear();
        self.framing = Framing::None;
        self.keep_alive = false;
        self.expect_continue = false;
        self.upgrade = Upgrade::None;
        self.passes_trailers = false;
        self.taken.clear();
        self.client = None;
        self.arrived_unix_ms = 0;
        if let Some(replaced) = &mut self.replaced {
            replaced.clear();
        }
    }

    /// The header fields as the client sent them, where a policy has put another form in their
    /// place. Fields that a policy has removed are not among them.
    pub fn sent_fields(&self) -> impl Iterator<Item = Field<'_>> {
        let replaced = self.replaced.as_deref();
        let is_there = move |field: &Field<'_>| {
            replaced.is_none_or(|replaced| replaced.value_named(field.name).is_none())
        };
        let sent = replaced.into_iter().flat_map(HeaderBlock::iter);
        self.headers.iter().filter(is_there).chain(sent.filter(|field| !field.value.is_empty()))
    }

    /// The target as it was sent.
    pub fn sent_target(&self) -> &[u8] {
        if self.respelt.is_empty() { &self.target } else { &self.respelt }
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
