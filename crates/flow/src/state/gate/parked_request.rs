//! Parked request: a request that waits at a stage, for its turn or a check, with the facts of its
//! connection.

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

/// The facts of a client that are needed after the wait.
pub(crate) struct KeptClient {
    peer: ConnectionPeer,
    near: bool,
    secured: Option<Rc<SessionTerms>>,
    vcl_connection: Option<VclConnection>,
    wants_tunnel: bool,
}

/// The event that a parked request waits for.
pub(crate) enum StageWait {
    /// Its turn, by its site's limits.
    Turn(Duration),
    /// An authentication check.
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
                vcl_connection: client.vcl_connection.cloned(),
                wants_tunnel: request.upgrade != Upgrade::None,
            },
        })
    }

    /// Returns true if the client asks for another protocol, so that a tunnel may answer.
    pub(crate) fn wants_tunnel(&self) -> bool {
        self.kept.wants_tunnel
    }
}

impl KeptClient {
    /// The client, with memory of `account`.
    pub(crate) fn client<'a>(&'a self, account: &'a Arc<Account>) -> Client<'a> {
        let (secured, vcl_connection) = (self.secured.as_ref(), self.vcl_connection.as_ref());
        Client { peer: self.peer, near: self.near, secured, vcl_connection, account }
    }
}
