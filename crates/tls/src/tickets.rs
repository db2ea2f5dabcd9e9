//! Tickets for clients that open many connections to one server at once.
//!
//! rustls' own store keeps eight per server. If fifty connections start together, each takes one,
//! since a ticket must never be used twice (RFC 8446 C.4), and most would find none.

use std::collections::HashMap;

use parking_lot::Mutex;
use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

/// The most tickets of one server.
const KEPT: usize = 4096;
/// The most servers with other session state.
const SERVERS: usize = 256;

/// Sessions that can be resumed.
#[derive(Debug)]
pub(crate) struct Tickets {
    /// Everything but the tickets of TLS 1.3.
    other: ClientSessionMemoryCache,
    tickets: Mutex<HashMap<ServerName<'static>, Vec<Tls13ClientSessionValue>>>,
}

impl Tickets {
    pub(crate) fn new() -> Self {
        Self { other: ClientSessionMemoryCache::new(SERVERS), tickets: Mutex::default() }
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.other.set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.other.kx_hint(server_name)
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.other.set_tls12_session(server_name, value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.other.tls12_session(server_name)
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        self.other.remove_tls12_session(server_name);
    }

    fn insert_tls13_ticket(
        &self,
        server_name: ServerName<'static>,
        value: Tls13ClientSessionValue,
    ) {
        let mut all = self.tickets.lock();
        if all.len() < SERVERS || all.contains_key(&server_name) {
            let own = all.entry(server_name).or_default();
            if own.len() < KEPT {
                own.push(value);
            }
        }
    }

    fn take_tls13_ticket(
        &self,
        server_name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        self.tickets.lock().get_mut(server_name)?.pop()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConnection, HandshakeKind};

    use crate::server::tests::{keys, made};
    use crate::{CertificateKeyPair, Domain, Handshake, ServerContext, Upstream};

    /// A handshake with the messages that the server sends behind it; returns its kind.
    fn shake(mut client: ClientConnection, server: &ServerContext) -> Option<HandshakeKind> {
        let mut handshake = Handshake::default();
        let mut message = Vec::new();
        while client.is_handshaking() || !handshake.is_done() {
            message.clear();
            while client.wants_write() {
                client.write_tls(&mut message).expect("a Vec takes it");
            }
            handshake.feed(&message, server).expect("a message");
            message.clear();
            while !handshake.is_sent() {
                handshake.send(&mut message).expect("a Vec takes it");
            }
            client.read_tls(&mut message.as_slice()).expect("all of it");
            client.process_new_packets().expect("a message");
        }
        client.handshake_kind()
    }

    #[test]
    fn connections_that_begin_together_each_find_a_ticket() {
        let (cert, key) = made(&["a.test"]);
        let pair = CertificateKeyPair::parse(cert.as_bytes(), key.as_bytes()).expect("a pair");
        let shown = Domain { pairs: vec![Arc::new(pair)], auth: None };
        let server =
            ServerContext::new(Vec::new(), Some(shown), Box::new(|_| None), false, &keys())
                .expect("a server");
        let upstream = Upstream::new(None, None).expect("nothing to verify by");
        let peer = upstream.offering(&["http/1.1"], true).peer("a.test").expect("a name");
        let begin = || -> Vec<_> {
            let new = |_| ClientConnection::new(peer.config(), peer.name()).expect("a client");
            (0..40).map(new).collect()
        };
        // The ClientHello with a ticket is made together with the connection.
        let first = begin();
        let kinds = |clients: Vec<_>| {
            clients.into_iter().map(|client| shake(client, &server)).collect::<Vec<_>>()
        };
        assert!(!kinds(first).contains(&Some(HandshakeKind::Resumed)));
        let second = kinds(begin());
        assert!(second.iter().all(|kind| *kind == Some(HandshakeKind::Resumed)), "{second:?}");
    }
}
