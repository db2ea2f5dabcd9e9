//! A request that waits at a stage before its site's policy, for its turn or at a gate, and what is
//! kept of its connection meanwhile.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Account;
use message::{Request, Upgrade};
use policy::ConnectionPeer;
use tls::SessionTerms;

use super::check::PendingAuthCheck;
use crate::state::client::Client;
use crate::state::gate::ClientIdentity;
use crate::state::vcl::VclConnection;

/// A request that waits at a stage.
pub(crate) struct ParkedRequest {
    pub(crate) wait: StageWait,
    pub(crate) kept: KeptClient,
}

/// The parts of a client that outlast the look at its request.
pub(crate) struct KeptClient {
    peer: ConnectionPeer,
    near: bool,
    secured: Option<Rc<SessionTerms>>,
    line: Option<VclConnection>,
    wants_tunnel: bool,
}

/// The event that a request waits for at a stage.
pub(crate) enum StageWait {
    /// Its turn, as its site's limits have it.
    Turn(Duration),
    /// A check at a gate.
    Check(Box<PendingAuthCheck>, ClientIdentity),
}

impl ParkedRequest {
    /// The request of `client`, which waits.
    pub(crate) fn new(wait: StageWait, request: &Request, client: &Client<'_>) -> Box<Self> {
        Box::new(Self {
            wait,
            kept: KeptClient {
                peer: client.peer,
                near: client.near,
                secured: client.secured.cloned(),
                line: client.line.cloned(),
                wants_tunnel: request.upgrade != Upgrade::None,
            },
        })
    }

    /// Returns true if the client asks for another protocol, and may be answered with a tunnel.
    pub(crate) fn wants_tunnel(&self) -> bool {
        self.kept.wants_tunnel
    }
}

impl KeptClient {
    /// The client, for which bytes are held on `account`.
    pub(crate) fn client<'a>(&'a self, account: &'a Arc<Account>) -> Client<'a> {
        let (secured, line) = (self.secured.as_ref(), self.line.as_ref());
        Client { peer: self.peer, near: self.near, secured, line, account }
    }
}
