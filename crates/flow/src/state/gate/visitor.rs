//! A request that waits before its site, for its turn or at a gate, and what is kept of its
//! connection meanwhile.

use std::rc::Rc;

use message::{Request, Upgrade};
use policy::Peer;
use tls::Secured;

use super::check::Check;
use crate::state::client::Client;
use crate::state::gate::Guest;
use crate::state::vcl::Line;

/// A request that waits before its site.
pub(crate) struct Visitor {
    /// The check that it waits for at a gate; `None` if it waits for its turn alone.
    pub(crate) check: Option<(Box<Check>, Guest)>,
    pub(crate) peer: Peer,
    pub(crate) near: bool,
    pub(crate) secured: Option<Rc<Secured>>,
    pub(crate) line: Option<Line>,
    wants_tunnel: bool,
}

impl Visitor {
    /// The request of `client`, which waits for `check`.
    pub(crate) fn new(
        check: Option<(Box<Check>, Guest)>,
        request: &Request,
        client: &Client<'_>,
    ) -> Box<Self> {
        Box::new(Self {
            check,
            peer: client.peer,
            near: client.near,
            secured: client.secured.cloned(),
            line: client.line.cloned(),
            wants_tunnel: request.upgrade != Upgrade::None,
        })
    }

    /// Returns true if the client asks for another protocol, and may be answered with a tunnel.
    pub(crate) fn wants_tunnel(&self) -> bool {
        self.wants_tunnel
    }
}
