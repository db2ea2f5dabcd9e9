//! A handshake under way: the client's first message decides whose certificate is shown.

use std::io::{self, Write};
use std::sync::Arc;

use rustls::ServerConnection;
use rustls::server::{Accepted, AcceptedAlert, Acceptor};

use crate::challenge;
use crate::error::HandshakeError;
use crate::server::{Server, Shown};
use crate::session::{Secured, Session};

/// The alert unrecognized_name (RFC 6066 3), fatal, as a record of its own: before a configuration
/// is chosen there is no connection that could send one.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// A handshake under way. [`Handshake::feed`] what was received, [`Handshake::send`] what waits to
/// be sent, also after an error, until [`Handshake::finish`] gives the session.
pub struct Handshake {
    state: State,
    /// Received behind the handshake's end: the session's.
    rest: Vec<u8>,
}

enum State {
    /// Nothing has come yet.
    Start,
    Hello(Box<Acceptor>),
    /// What is shown; none to an authority, which has only a question.
    Agreeing(Box<ServerConnection>, Option<Arc<Shown>>),
    /// It failed; what the client is told.
    Failed(Vec<u8>),
}

impl Default for Handshake {
    fn default() -> Self {
        Self { state: State::Start, rest: Vec::new() }
    }
}

impl Handshake {
    /// Takes received bytes.
    ///
    /// # Errors
    /// When it cannot go on. An alert waits to be sent, except to a client that speaks plain HTTP.
    pub fn feed(&mut self, mut bytes: &[u8], server: &Server) -> Result<(), HandshakeError> {
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
                        // There may be more than a connection that nobody reads from takes.
                        self.rest.extend_from_slice(bytes);
                        return Ok(());
                    }
                }
                State::Failed(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn choose(&mut self, accepted: Accepted, server: &Server) -> Result<(), HandshakeError> {
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
        self.state = State::Failed(out);
        HandshakeError::Tls(error)
    }

    /// Whether nothing waits to be sent.
    pub fn is_sent(&self) -> bool {
        match &self.state {
            State::Start | State::Hello(_) => true,
            State::Agreeing(connection, _) => !connection.wants_write(),
            State::Failed(alert) => alert.is_empty(),
        }
    }

    /// Hands what waits to be sent to `out`; the result is how many bytes it took.
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

    /// Whether both sides have agreed.
    pub fn is_done(&self) -> bool {
        matches!(&self.state, State::Agreeing(connection, _) if !connection.is_handshaking())
    }

    /// Ends the handshake of an authority that had only a question (RFC 8737): that no more comes
    /// waits to be sent. Whether it was one; everyone else gets a session by [`Handshake::finish`].
    pub fn end_challenge(&mut self) -> bool {
        match &mut self.state {
            State::Agreeing(connection, None) => {
                connection.send_close_notify();
                true
            }
            _ => false,
        }
    }

    /// The session, once [`Handshake::is_done`]; none after a challenge.
    pub fn finish(self) -> Option<(Session, Secured)> {
        match self.state {
            State::Agreeing(connection, Some(shown)) if !connection.is_handshaking() => {
                let secured = Secured::new(&connection, shown);
                Some((Session::new(*connection, self.rest), secured))
            }
            _ => None,
        }
    }
}

/// More than fits is a client that floods its handshake.
fn read(mut read: impl FnMut() -> io::Result<usize>) -> Result<(), HandshakeError> {
    match read() {
        Ok(_) => Ok(()),
        Err(error) => Err(HandshakeError::Tls(rustls::Error::General(error.to_string()))),
    }
}
