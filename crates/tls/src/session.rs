//! A connection after its handshake: sealed bytes in, plain bytes out, and the reverse.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::ServerConnection;

use crate::auth::ClientAuth;
use crate::identity::Identity;
use crate::server::HandshakeDomain;

/// An established session. It holds sealed bytes that wait to be sent, and of what was received at
/// most one record that is not whole.
///
/// Receiving: [`Session::open`] until it says there is no more. Sending: [`Session::seal`], then
/// [`Session::send`] until [`Session::is_sent`].
#[derive(Debug)]
pub struct Session {
    connection: ServerConnection,
    /// Received together with the handshake's end, and not opened yet.
    rest: Vec<u8>,
}

impl Session {
    pub(crate) fn new(connection: ServerConnection, rest: Vec<u8>) -> Self {
        Self { connection, rest }
    }

    /// Takes what came together with the end of the handshake, into as much room as
    /// [`Session::open`] needs for all that was received then; 0 when there is nothing.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn take(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let taken = self.read(out);
        let rest = std::mem::take(&mut self.rest);
        Ok(taken + self.open(&rest, &mut out[taken..])?)
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        // "Would block" and the end of the stream both mean that nothing is there.
        self.connection.reader().read(out).unwrap_or(0)
    }

    /// Opens `sealed`, all of it, as received, and writes what was in it to `out`; the result is
    /// how many plain bytes that were.
    ///
    /// `out` must have room for `sealed` and one record (16 KiB) more: [`Session::OPEN_SPARE`].
    ///
    /// # Errors
    /// When the client breaks the protocol. An alert that says so waits to be sent.
    pub fn open(&mut self, mut sealed: &[u8], out: &mut [u8]) -> io::Result<usize> {
        let mut opened = 0;
        while !sealed.is_empty() && !self.is_ended() {
            self.connection.read_tls(&mut sealed)?;
            self.connection
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            opened += self.read(&mut out[opened..]);
        }
        Ok(opened)
    }

    /// Room that [`Session::open`] may need beyond the length of what it is given.
    pub const OPEN_SPARE: usize = 17 * 1024;

    /// Returns true if the client has said that it sends no more. Without this the end of its bytes
    /// is a truncation.
    pub fn is_ended(&mut self) -> bool {
        // Only after a close_notify does an empty reader tell of an end.
        matches!(self.connection.reader().into_first_chunk(), Ok([]))
    }

    /// Seals as much of `plain` as a batch takes (64 KiB), as few records as possible; the result
    /// is how many bytes that was. Call it when what was sealed before is sent.
    pub fn seal(&mut self, plain: &[IoSlice<'_>]) -> usize {
        // Writing to the session's own buffer cannot fail.
        self.connection.writer().write_vectored(plain).unwrap_or(0)
    }

    /// Says that no more will be sent.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }

    /// Returns true if nothing sealed waits to be sent.
    pub fn is_sent(&self) -> bool {
        !self.connection.wants_write()
    }

    /// Hands sealed bytes to `out`, in one vectored write; the result is how many it took.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn send(&mut self, out: &mut dyn Write) -> io::Result<usize> {
        self.connection.write_tls(out)
    }
}

/// The terms of a session: they tell which requests may come over it.
#[derive(Debug)]
pub struct SessionTerms {
    sni: Option<Box<str>>,
    shown: Arc<HandshakeDomain>,
    identity: Option<Box<Identity>>,
    resumed: bool,
    tls12: bool,
    suite: u16,
    alpn: Option<&'static str>,
}

impl SessionTerms {
    pub(crate) fn new(connection: &ServerConnection, shown: Arc<HandshakeDomain>) -> Self {
        // Kept in tickets too.
        let identity = connection.peer_certificates().and_then(<[_]>::first);
        Self {
            sni: connection.server_name().map(Into::into),
            shown,
            identity: identity.and_then(Identity::of).map(Box::new),
            alpn: match connection.alpn_protocol() {
                Some(b"h2") => Some("h2"),
                Some(b"http/1.1") => Some("http/1.1"),
                _ => None,
            },
            resumed: connection.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
            tls12: connection.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_2),
            suite: connection.negotiated_cipher_suite().map_or(0, |suite| suite.suite().into()),
        }
    }

    /// The check of the client, if its site has one.
    pub fn auth(&self) -> Option<&ClientAuth> {
        self.shown.auth.as_ref()
    }

    /// The client's identity by its certificate, if it has shown one.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_deref()
    }

    /// Returns true if HTTP/2 was agreed on (RFC 9113 3.3).
    pub fn is_http2(&self) -> bool {
        self.alpn == Some("h2")
    }

    /// The protocol that was agreed on by ALPN (RFC 7301), if one was.
    pub fn alpn(&self) -> Option<&'static str> {
        self.alpn
    }

    /// The name that the client asked for (SNI).
    pub fn sni(&self) -> Option<&str> {
        self.sni.as_deref()
    }

    /// Returns true if the session resumes an earlier one.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Returns true if it is of TLS 1.2; otherwise it is of 1.3.
    pub fn is_tls12(&self) -> bool {
        self.tls12
    }

    /// The cipher suite that was agreed on, by its number at IANA.
    pub fn suite(&self) -> u16 {
        self.suite
    }

    /// Returns true if a request for `host`, in canonical form, may come over the session, as far
    /// as names go. `host` is then the name that the client asked for in the handshake, or one that
    /// the certificate shown is good for. A client that named no host could not have chosen better.
    pub fn speaks_for(&self, host: &[u8]) -> bool {
        let Some(sni) = &self.sni else { return true };
        sni.as_bytes() == host
            || std::str::from_utf8(host)
                .is_ok_and(|host| self.shown.pairs.iter().all(|pair| pair.covers(host)))
    }
}
