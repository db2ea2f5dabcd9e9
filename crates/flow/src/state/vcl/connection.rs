//! VCL connection: the client's connection as programs see it.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use policy::ConnectionPeer;
use vcl::ctx::{Connection, PeerCredentials as Owner, Session, TlsFacts};

use super::SharedVcl;

/// A connection, made once for each if there are programs.
#[derive(Clone, Debug, Default)]
pub struct VclConnection {
    /// The client's address, from the PROXY header or the connection.
    pub client: Option<SocketAddr>,
    /// The address that it connected to, from the PROXY header or the connection.
    pub server: Option<SocketAddr>,
    /// The remote end of the connection.
    pub remote: Option<SocketAddr>,
    /// The local end of the connection.
    pub local: Option<SocketAddr>,
    /// The listener as configured.
    pub endpoint: Arc<str>,
    /// The listener's name.
    pub socket: Arc<str>,
    /// The facts of TLS; `None` on a plain connection.
    pub tls: Option<Arc<TlsFacts>>,
    /// The user and group at the other end of a unix socket.
    pub owner: Option<Owner>,
    /// The control of the connection by programs; `None` if only the peer is known.
    pub control: Option<Rc<dyn Connection>>,
    /// The session's number; 0 before its first request.
    pub xid: Cell<u64>,
}

impl VclConnection {
    /// Returns a connection with only its peer known.
    pub(crate) fn of(peer: ConnectionPeer) -> Self {
        let client = peer.address().map(|address| SocketAddr::new(address, 0));
        Self { client, remote: client, ..Self::default() }
    }

    /// The connection of `session`.
    pub(crate) fn of_session(session: &Session) -> Self {
        Self {
            client: session.client,
            server: session.server,
            remote: session.remote,
            local: session.local,
            endpoint: Arc::clone(&session.endpoint),
            socket: Arc::clone(&session.socket),
            tls: session.tls.clone(),
            owner: session.peer,
            control: session.control.clone(),
            xid: Cell::new(session.xid),
        }
    }

    /// The session's number, taken at first use.
    pub(crate) fn xid(&self, shared_vcl: &SharedVcl) -> u64 {
        if self.xid.get() == 0 {
            self.xid.set(shared_vcl.xids.next());
        }
        self.xid.get()
    }

    /// The client's address for X-Forwarded-For.
    pub(crate) fn address(&self) -> Box<str> {
        match self.client {
            Some(client) => client.ip().to_canonical().to_string().into(),
            None => "0.0.0.0".into(),
        }
    }

    /// The session of its next request.
    pub(crate) fn session(&self, xid: u64) -> Session {
        Session {
            client: self.client,
            server: self.server,
            remote: self.remote,
            local: self.local,
            identity: None,
            endpoint: Arc::clone(&self.endpoint),
            socket: Arc::clone(&self.socket),
            xid,
            tls: self.tls.clone(),
            peer: self.owner,
            control: self.control.clone(),
        }
    }
}
