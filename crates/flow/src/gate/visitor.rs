//! A request that waits at a gate, and what is kept of its connection meanwhile.

use std::rc::Rc;
use std::sync::Arc;

use cache::Reader;
use message::{Request, Upgrade};
use policy::Peer;
use tls::Secured;

use super::{Check, Guest, Looked};
use crate::ask::{Front, LiveRef};
use crate::client::Client;
use crate::core::Core;
use crate::live::Site;
use crate::pages::{self, Problem};
use crate::reply::Reply;
use crate::vcl::line::Line;
use crate::way::Start;

/// Checks that one request waits for at most: each gate has one, and a route that an origin may
/// take it for has its own.
const CHECKS_MAX: usize = 8;

/// A request that waits at a gate.
pub(crate) struct Visitor {
    check: Box<Check>,
    guest: Guest,
    peer: Peer,
    near: bool,
    secured: Option<Rc<Secured>>,
    line: Option<Line>,
    wants_tunnel: bool,
}

impl Visitor {
    /// The request of `client`, who is `guest`, and waits for `check`.
    pub(crate) fn new(
        check: Box<Check>,
        request: &Request,
        client: &Client<'_>,
        guest: Guest,
    ) -> Box<Self> {
        Box::new(Self {
            check,
            guest,
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

    /// Waits until the gates know, and then for the reply.
    pub(crate) async fn run(
        self: Box<Self>,
        core: &Rc<Core>,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &Request,
        (body, front): (Option<Reader>, Front<'_>),
    ) -> Reply {
        let Self { mut check, guest, peer, near, secured, line, .. } = *self;
        let Some(gates) = &site.gates else { return pages::problem(request, Problem::Internal) };
        let place = (&**gates, &**site);
        let mut proofs = Vec::new();
        let entering = loop {
            match Box::pin(check.run(core, place, live, request, guest)).await {
                Ok(proof) => proofs.push(proof),
                Err(refusal) => return *refusal,
            }
            match core.look(place, request, guest, (&proofs, core.now())) {
                Looked::In(entering) => break entering,
                Looked::Refused(refusal) => return *refusal,
                Looked::Waits(_) if proofs.len() >= CHECKS_MAX => {
                    return pages::problem(request, Problem::Internal);
                }
                Looked::Waits(next) => check = next,
            }
        };
        let mut request = request.clone();
        let client = Client { peer, near, secured: secured.as_ref(), line: line.as_ref() };
        let when = (core.now(), false);
        let (start, _) = core.enter_as((live, site), &mut request, &client, when, entering);
        match start {
            Start::Reply(reply) => reply,
            Start::Slow(slow) => Box::pin(slow.run(core, &request, body, front)).await,
        }
    }
}
