//! Upgrade to another protocol (RFC 9110 7.8): the protocols that a request may ask for, and the
//! check of a 101, including WebSocket's handshake (RFC 6455 4).
//!
//! Must never permit a protocol that carries HTTP itself (`h2c`, `TLS/1.0`): its requests would
//! bypass every rule of this proxy.

use std::fmt;

use data_encoding::BASE64;
use sha1::{Digest, Sha1};

use crate::header::{HeaderBlock, HeaderId, is_token};
use crate::list::members;
use crate::request::{Framing, Method, Request, Upgrade, Version};
use crate::response::Response;

/// The text that a WebSocket server appends to the client's key (RFC 6455 1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Bytes of a WebSocket key, before Base64 (RFC 6455 4.1).
const KEY_BYTES: usize = 16;

/// The most protocols in one setting.
pub const PROTOCOLS_MAX: usize = 8;

/// A protocol that a connection may switch to: a name with an optional version. Compared without
/// regard to case (RFC 9110 7.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol(Box<str>);

/// The reason why a protocol was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// Not a token, or two with a slash between them.
    Form,
    /// It carries HTTP requests, which would bypass every rule of this proxy.
    CarriesHttp,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "a protocol is a name such as \"websocket\", or name/version",
            Self::CarriesHttp => "HTTP within it would go past every rule of this proxy",
        })
    }
}

impl std::error::Error for ProtocolError {}

impl Protocol {
    /// WebSocket.
    pub fn websocket() -> Self {
        Self("websocket".into())
    }

    /// Parses a protocol in a setting.
    ///
    /// # Errors
    /// If it is malformed or carries HTTP.
    pub fn parse(text: &str) -> Result<Self, ProtocolError> {
        let (name, version) = match text.split_once('/') {
            Some((name, version)) => (name, Some(version)),
            None => (text, None),
        };
        if !is_token(name.as_bytes()) || version.is_some_and(|v| !is_token(v.as_bytes())) {
            return Err(ProtocolError::Form);
        }
        let carries_http = ["h2c", "h2", "h3", "http", "https", "tls", "ssl", "spdy"];
        if carries_http.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return Err(ProtocolError::CarriesHttp);
        }
        Ok(Self(text.into()))
    }

    /// The protocol as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().eq_ignore_ascii_case(other)
    }

    fn is_websocket(&self) -> bool {
        self.is(b"websocket")
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The protocols that a request may ask the origin for: those of `allowed` that its Upgrade names,
/// in its order, as one value. `None` if the request is to be answered without an upgrade: it names
/// no permitted protocol, is not a GET, has a body, or its WebSocket handshake lacks a key.
pub fn admitted(request: &Request, allowed: &[Protocol]) -> Option<Vec<u8>> {
    let bare = request.method == Method::Get && request.framing == Framing::None;
    if request.upgrade != Upgrade::Asked || !bare {
        return None;
    }
    let mut value = Vec::new();
    let mut taken = [false; PROTOCOLS_MAX];
    for asked in members(request.headers.values(HeaderId::Upgrade)) {
        let known = allowed.iter().zip(&mut taken).find(|(known, _)| known.is(asked));
        let Some((known, taken)) = known else { continue };
        let lacks_key = known.is_websocket() && websocket_key(&request.headers).is_none();
        if lacks_key || std::mem::replace(taken, true) {
            continue;
        }
        if !value.is_empty() {
            value.extend_from_slice(b", ");
        }
        value.extend_from_slice(known.0.as_bytes());
    }
    (!value.is_empty()).then_some(value)
}

/// The protocol that `response`, a 101, switches to, spelt as in `request`. `nominated`: its
/// Connection names Upgrade.
///
/// `None` if the 101 is invalid: it names no protocol, several, or one that was not requested,
/// comes from HTTP/1.0, or lacks the proof of a WebSocket server (RFC 6455 4.1, where a client must
/// fail, too).
pub fn switched(request: &Request, response: &Response, nominated: bool) -> Option<Vec<u8>> {
    if request.upgrade != Upgrade::Granted || !nominated || response.version == Version::Http10 {
        return None;
    }
    let mut chosen = members(response.headers.values(HeaderId::Upgrade));
    let (Some(chosen), None) = (chosen.next(), chosen.next()) else { return None };
    let mut asked = members(request.headers.values(HeaderId::Upgrade));
    let asked = asked.find(|asked| asked.eq_ignore_ascii_case(chosen))?;
    if asked.eq_ignore_ascii_case(b"websocket") {
        let key = websocket_key(&request.headers)?;
        let accept = only(&response.headers, b"Sec-WebSocket-Accept")?;
        if accept != accept_of(key).as_bytes() {
            return None;
        }
    }
    Some(asked.to_vec())
}

/// The key of a WebSocket handshake: one field, with 16 bytes in Base64 (RFC 6455 4.1).
fn websocket_key(headers: &HeaderBlock) -> Option<&[u8]> {
    let key = only(headers, b"Sec-WebSocket-Key")?;
    let bytes = BASE64.decode(key).ok()?;
    (bytes.len() == KEY_BYTES).then_some(key)
}

/// A WebSocket server's answer to `key` (RFC 6455 4.2.2).
fn accept_of(key: &[u8]) -> String {
    BASE64.encode(&Sha1::new().chain_update(key).chain_update(WEBSOCKET_GUID).finalize())
}

/// The value of a field that occurs exactly once.
fn only<'a>(headers: &'a HeaderBlock, name: &[u8]) -> Option<&'a [u8]> {
    let mut found = headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    match (found.next(), found.next()) {
        (Some(field), None) => Some(field.value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Status;

    /// The example of RFC 6455 1.3.
    const KEY: &[u8] = b"dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &[u8] = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn request(upgrades: &[&str], key: &[&[u8]]) -> Request {
        let mut request = Request::new();
        request.upgrade = Upgrade::Asked;
        for value in upgrades {
            request.headers.push(HeaderId::Upgrade, value.as_bytes());
        }
        for key in key {
            request.headers.push_named(b"sec-websocket-key", key);
        }
        request
    }

    fn admit(request: &Request, allowed: &[&str]) -> Option<String> {
        let parse = |text: &&str| Protocol::parse(text).expect("a protocol");
        let allowed: Vec<_> = allowed.iter().map(parse).collect();
        admitted(request, &allowed).map(|value| String::from_utf8(value).expect("ASCII"))
    }

    #[test]
    fn only_what_is_allowed_goes_on_in_its_own_spelling() {
        let all = &["websocket", "foo/2"][..];
        for (asked, allowed, admitted) in [
            (&["WebSocket"][..], all, Some("websocket")),
            (&["h2c, websocket"], all, Some("websocket")),
            (&["h2c"], all, None),
            (&["FOO/2", "websocket, websocket"], all, Some("foo/2, websocket")),
            (&["foo"], all, None),
            (&["foo/1"], all, None),
            (&["websocket"], &["foo/2"], None),
            (&["websocket"], &[], None),
            (&["web socket", "\"websocket\"", ""], all, None),
        ] {
            assert_eq!(admit(&request(asked, &[KEY]), allowed).as_deref(), admitted, "{asked:?}");
        }
    }

    #[test]
    fn a_handshake_that_no_server_could_answer_is_no_upgrade() {
        let admit = |request: &Request| admit(request, &["websocket"]);
        for key in [&[][..], &[KEY, KEY], &[b"short"], &[b"AAAA"], &[b""]] {
            assert_eq!(admit(&request(&["websocket"], key)), None, "{key:?}");
        }
        let mut posted = request(&["websocket"], &[KEY]);
        posted.method = Method::Post;
        assert_eq!(admit(&posted), None);
        let mut with_body = request(&["websocket"], &[KEY]);
        with_body.framing = Framing::Length(0);
        assert_eq!(admit(&with_body), None);
        let mut not_nominated = request(&["websocket"], &[KEY]);
        not_nominated.upgrade = Upgrade::None;
        assert_eq!(admit(&not_nominated), None);
    }

    #[test]
    fn what_carries_http_is_never_a_protocol() {
        for text in ["h2c", "H2C", "HTTP/2.0", "TLS/1.0", "tls", "h2"] {
            assert_eq!(Protocol::parse(text), Err(ProtocolError::CarriesHttp), "{text}");
        }
        for text in ["", "a b", "a/", "/1", "a/b/c", "a,b", "é"] {
            assert_eq!(Protocol::parse(text), Err(ProtocolError::Form), "{text}");
        }
        assert_eq!(Protocol::parse("connect-udp").map(|p| p.to_string()), Ok("connect-udp".into()));
    }

    fn switch(fields: &[(&[u8], &[u8])], version: Version) -> Option<Vec<u8>> {
        let mut response = Response::new(Status::new(101).expect("three digits"));
        response.version = version;
        for (name, value) in fields {
            response.headers.push_named(name, value);
        }
        let mut asked = request(&["websocket, foo"], &[KEY]);
        assert_eq!(switched(&asked, &response, true), None, "it was not passed on");
        asked.upgrade = Upgrade::Granted;
        assert_eq!(switched(&asked, &response, false), None, "Connection must name it");
        switched(&asked, &response, true)
    }

    #[test]
    fn a_101_counts_when_it_answers_what_was_asked() {
        const UPGRADE: &[u8] = b"Upgrade";
        const PROOF: &[u8] = b"Sec-WebSocket-Accept";
        let new = Version::Http11;
        let good = [(UPGRADE, &b"WebSocket"[..]), (PROOF, ACCEPT)];
        assert_eq!(switch(&good, new).as_deref(), Some(&b"websocket"[..]));
        assert_eq!(switch(&good, Version::Http10), None);
        assert_eq!(switch(&[(UPGRADE, b"foo")], new).as_deref(), Some(&b"foo"[..]));
        for wrong in [
            &[][..],
            &[(PROOF, ACCEPT)],
            &[(UPGRADE, b"websocket")],
            &[(UPGRADE, b"websocket"), (PROOF, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOO=")],
            &[(UPGRADE, b"websocket"), (PROOF, ACCEPT), (PROOF, ACCEPT)],
            &[(UPGRADE, b"h2c")],
            &[(UPGRADE, b"foo"), (UPGRADE, b"websocket"), (PROOF, ACCEPT)],
        ] {
            assert_eq!(switch(wrong, new), None, "{wrong:?}");
        }
    }
}
