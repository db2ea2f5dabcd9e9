//! Session: a connection after its handshake, which encrypts and decrypts. Plain bytes must never
//! leave it unencrypted.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::ServerConnection;

use crate::auth::ClientAuth;
use crate::identity::Identity;
use crate::server::HandshakeDomain;

/// An established session. It buffers encrypted bytes that wait to be sent, and at most one
/// incomplete received record.
///
/// Receiving: [`Session::open`]. Sending: [`Session::seal`], then [`Session::send`] until
/// [`Session::is_sent`].
#[derive(Debug)]
pub struct Session {
    connection: ServerConnection,
    /// Bytes received together with the handshake's end, not decrypted yet.
    rest: Vec<u8>,
}

impl Session {
    pub(crate) fn new(connection: ServerConnection, rest: Vec<u8>) -> Self {
        Self { connection, rest }
    }

    /// Decrypts the bytes received together with the end of the handshake. `out` needs the space
    /// that [`Session::open`] needs for them; returns 0 if there are none.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn take(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let taken = self.read(out);
        let rest = std::mem::take(&mut self.rest);
        Ok(taken + self.open(&rest, &mut out[taken..])?)
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        // "Would block" and the end of the stream both mean that no bytes are left.
        self.connection.reader().read(out).unwrap_or(0)
    }

    /// Decrypts all of `sealed` to `out`; returns the number of plain bytes.
    ///
    /// `out` must have space for `sealed` and one record (16 KiB) more: [`Session::OPEN_SPARE`].
    ///
    /// # Errors
    /// If the client violates the protocol. An alert waits to be sent then.
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

    /// Space that [`Session::open`] needs beyond the length of its input.
    pub const OPEN_SPARE: usize = 17 * 1024;

    /// Returns true if the client has sent a closure alert. Without it, the end of its bytes is a
    /// truncation.
    pub fn is_ended(&mut self) -> bool {
        // Only after a close_notify does an empty reader report an end.
        matches!(self.connection.reader().into_first_chunk(), Ok([]))
    }

    /// Encrypts a batch of `plain` (at most 64 KiB) in as few records as possible; returns the
    /// number of bytes taken. Call it after earlier bytes were sent.
    pub fn seal(&mut self, plain: &[IoSlice<'_>]) -> usize {
        // Writing to the session's own buffer cannot fail.
        self.connection.writer().write_vectored(plain).unwrap_or(0)
    }

    /// Queues a closure alert.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }

    /// Returns true if no encrypted bytes wait to be sent.
    pub fn is_sent(&self) -> bool {
        !self.connection.wants_write()
    }

    /// Writes encrypted bytes to `out`, in one vectored write; returns the number written.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn send(&mut self, out: &mut dyn Write) -> io::Result<usize> {
        self.connection.write_tls(out)
    }
}

/// The terms of a session, which decide about the requests that it may carry.
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
        // Kept in tickets, too.
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

    /// The verification of the client, if its site has one.
    pub fn auth(&self) -> Option<&ClientAuth> {
        self.shown.auth.as_ref()
    }

    /// The client's identity, if it has sent a certificate.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_deref()
    }

    /// Returns true if HTTP/2 was selected (RFC 9113 3.3).
    pub fn is_http2(&self) -> bool {
        self.alpn == Some("h2")
    }

    /// The protocol selected by ALPN (RFC 7301), if any.
    pub fn alpn(&self) -> Option<&'static str> {
        self.alpn
    }

    /// The client's SNI.
    pub fn sni(&self) -> Option<&str> {
        self.sni.as_deref()
    }

    /// Returns true if the session resumes an earlier one.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Returns true for TLS 1.2, false for TLS 1.3.
    pub fn is_tls12(&self) -> bool {
        self.tls12
    }

    /// The cipher suite, by its IANA number.
    pub fn suite(&self) -> u16 {
        self.suite
    }

    /// Returns true if the session may carry a request for `host`, in canonical form, as far as
    /// names go: `host` is the client's SNI, or the certificate is valid for it. A client without
    /// SNI may request any host, since it had no choice.
    pub fn speaks_for(&self, host: &[u8]) -> bool {
        let Some(sni) = &self.sni else { return true };
        sni.as_bytes() == host
            || std::str::from_utf8(host)
                .is_ok_and(|host| self.shown.pairs.iter().all(|pair| pair.covers(host)))
    }
}
