//! Handshake in progress: the client's first message selects the certificate. Bytes of a failed
//! handshake must never reach a session.

use std::io::{self, Write};
use std::sync::Arc;

use rustls::ServerConnection;
use rustls::server::{Accepted, AcceptedAlert, Acceptor};

use crate::challenge;
use crate::error::HandshakeError;
use crate::server::{HandshakeDomain, ServerContext};
use crate::session::{Session, SessionTerms};

/// The fatal alert unrecognized_name (RFC 6066 3), as a record: before a configuration is chosen,
/// there is no connection that could send one.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// rustls' alert for a client without a common signature scheme, access_denied, and the correct one
/// (RFC 5246 7.2.2), handshake_failure.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// A handshake in progress. Pass received bytes to [`Handshake::feed`], and call
/// [`Handshake::send`] while bytes wait to be sent, also after an error, until
/// [`Handshake::finish`] returns the session.
pub struct Handshake {
    state: State,
    /// Bytes received behind the handshake's end, for the session.
    rest: Vec<u8>,
}

enum State {
    /// No byte received.
    Start,
    Hello(Box<Acceptor>),
    /// The domain of the client; `None` for an authority's challenge.
    Agreeing(Box<ServerConnection>, Option<Arc<HandshakeDomain>>),
    /// The handshake has failed; the alert for the client.
    Failed(Vec<u8>),
}

impl Default for Handshake {
    fn default() -> Self {
        Self { state: State::Start, rest: Vec::new() }
    }
}

impl Handshake {
    /// Processes received bytes.
    ///
    /// # Errors
    /// If the handshake fails. An alert waits to be sent, except for a client that speaks plain
    /// HTTP.
    pub fn feed(&mut self, mut bytes: &[u8], server: &ServerContext) -> Result<(), HandshakeError> {
        while let Some(first) = bytes.first() {
            match &mut self.state {
                // A method begins with a letter, a record with its type.
                State::Start if first.is_ascii_alphabetic() => {
                    self.state = State::Failed(Vec::new());
                    return Err(HandshakeError::PlainHttp);
                }
                State::Start => self.state = State::Hello(Box::default()),
                State::Hello(acceptor) => {
                    read(|| acceptor.read_tls(&mut bytes))?;
                    match acceptor.accept() {
                        Ok(None) => {}
                        Ok(Some(accepted)) => self.choose(accepted, server)?,
                        Err((error, alert)) => return Err(self.fail(error, alert)),
                    }
                }
                State::Agreeing(connection, _) => {
                    read(|| connection.read_tls(&mut bytes))?;
                    connection.process_new_packets().map_err(HandshakeError::Tls)?;
                    if !connection.is_handshaking() {
                        // These may be more bytes than an unread connection buffers.
                        self.rest.extend_from_slice(bytes);
                        return Ok(());
                    }
                }
                State::Failed(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn choose(&mut self, accepted: Accepted, server: &ServerContext) -> Result<(), HandshakeError> {
        let hello = accepted.client_hello();
        let asked = challenge::is_asked(&hello);
        let (config, shown) = match asked.then(|| server.challenge(hello.server_name())).flatten() {
            Some(config) => (config, None),
            None => {
                let Some(shown) = server.choose(hello.server_name()).cloned() else {
                    self.state = State::Failed(UNRECOGNIZED_NAME.to_vec());
                    return Err(HandshakeError::UnknownName);
                };
                (Arc::clone(&shown.config), Some(shown))
            }
        };
        match accepted.into_connection(config) {
            Ok(connection) => {
                self.state = State::Agreeing(Box::new(connection), shown);
                Ok(())
            }
            Err((error, alert)) => Err(self.fail(error, alert)),
        }
    }

    fn fail(&mut self, error: rustls::Error, mut alert: AcceptedAlert) -> HandshakeError {
        let mut out = Vec::new();
        // Writing to a Vec cannot fail.
        _ = alert.write_all(&mut out);
        // The client has not sent a certificate that could be rejected.
        if out == ACCESS_DENIED {
            out = HANDSHAKE_FAILURE.to_vec();
        }
        self.state = State::Failed(out);
        HandshakeError::Tls(error)
    }

    /// Returns true if no bytes wait to be sent.
    pub fn is_sent(&self) -> bool {
        match &self.state {
            State::Start | State::Hello(_) => true,
            State::Agreeing(connection, _) => !connection.wants_write(),
            State::Failed(alert) => alert.is_empty(),
        }
    }

    /// Writes waiting bytes to `out`; returns the number written.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn send(&mut self, out: &mut dyn Write) -> io::Result<usize> {
        match &mut self.state {
            State::Start | State::Hello(_) => Ok(0),
            State::Agreeing(connection, _) => connection.write_tls(out),
            State::Failed(alert) => {
                let sent = out.write(alert)?;
                alert.drain(..sent);
                Ok(sent)
            }
        }
    }

    /// Returns true if the handshake is complete.
    pub fn is_done(&self) -> bool {
        matches!(&self.state, State::Agreeing(connection, _) if !connection.is_handshaking())
    }

    /// Ends the handshake of an authority's challenge (RFC 8737), with a closure alert to be sent.
    /// False if it was none; other handshakes end by [`Handshake::finish`].
    pub fn end_challenge(&mut self) -> bool {
        match &mut self.state {
            State::Agreeing(connection, None) => {
                connection.send_close_notify();
                true
            }
            _ => false,
        }
    }

    /// The session, once [`Handshake::is_done`]; `None` after a challenge.
    pub fn finish(self) -> Option<(Session, SessionTerms)> {
        match self.state {
            State::Agreeing(connection, Some(shown)) if !connection.is_handshaking() => {
                let secured = SessionTerms::new(&connection, shown);
                Some((Session::new(*connection, self.rest), secured))
            }
            _ => None,
        }
    }
}

/// More bytes than fit are a flood.
fn read(mut read: impl FnMut() -> io::Result<usize>) -> Result<(), HandshakeError> {
    match read() {
        Ok(_) => Ok(()),
        Err(error) => Err(HandshakeError::Tls(rustls::Error::General(error.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;
    use crate::Domain;
    use crate::pair::CertificateKeyPair;
    use crate::server::tests::{keys, made};

    /// More than an unread connection buffers.
    const MUCH: usize = 100 * 1024;

    fn ends() -> (ClientConnection, ServerContext) {
        let (cert, key) = made(&["a.test"]);
        let pair = CertificateKeyPair::parse(cert.as_bytes(), key.as_bytes()).expect("a pair");
        let domain = Domain { pairs: vec![Arc::new(pair)], auth: None };
        let find = Box::new(|_: &[u8]| Some(0));
        let server = ServerContext::new(vec![domain], None, find, true, &keys()).expect("a server");
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(cert.as_bytes()).expect("a certificate");
        roots.add(root).expect("a root");
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from("a.test").expect("a name");
        (ClientConnection::new(Arc::new(config), name).expect("a client"), server)
    }

    fn sent_by(client: &mut ClientConnection) -> Vec<u8> {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).expect("a Vec takes it");
        }
        sent
    }

    #[test]
    fn what_comes_together_with_the_end_of_a_handshake_is_not_lost() {
        let (mut client, server) = ends();
        client.set_buffer_limit(None);
        let mut handshake = Handshake::default();
        handshake.feed(&sent_by(&mut client), &server).expect("a hello");
        let mut answer = Vec::new();
        while !handshake.is_sent() {
            handshake.send(&mut answer).expect("a Vec takes it");
        }
        client.read_tls(&mut answer.as_slice()).expect("all of it");
        client.process_new_packets().expect("an answer");
        let said: Vec<u8> = (0..MUCH).map(|n| (n % 251) as u8).collect();
        client.writer().write_all(&said).expect("room");
        let sealed = sent_by(&mut client);
        handshake.feed(&sealed, &server).expect("the end, and more");
        let (mut session, _) = handshake.finish().expect("it is done");
        let mut out = vec![0; sealed.len() + Session::OPEN_SPARE];
        let taken = session.take(&mut out).expect("it opens");
        assert_eq!(&out[..taken], said);
        assert_eq!(session.take(&mut out).expect("nothing is left"), 0);
    }
}
