//! A request that waits before its site, for its turn or at a gate, and what is kept of its
//! connection meanwhile.

use std::rc::Rc;
use std::sync::Arc;

use base::Account;
use cache::Reader;
use message::{Request, Upgrade};
use policy::Peer;
use tls::Secured;

use super::{Check, Entering, Guest, Looked};
use crate::ask::{Front, LiveRef};
use crate::client::Client;
use crate::core::Core;
use crate::live::Site;
use crate::pages;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::vcl::line::Line;
use crate::way::Start;

/// Checks that one request waits for at most: each gate has one, and a route that an origin may
/// take it for has its own.
const CHECKS_MAX: usize = 8;

/// A request that waits before its site.
pub(crate) struct Visitor {
    /// The check that it waits for at a gate; `None` if it waits for its turn alone.
    check: Option<(Box<Check>, Guest)>,
    peer: Peer,
    near: bool,
    secured: Option<Rc<Secured>>,
    line: Option<Line>,
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

    /// Waits until the gates know, and then for the reply.
    pub(crate) async fn run(
        self: Box<Self>,
        core: &Rc<Core>,
        place: (&LiveRef, &Arc<Site>),
        request: &Request,
        (body, front): (Option<Reader>, Front<'_>),
    ) -> Reply {
        let Self { check, peer, near, secured, line, .. } = *self;
        let entering = match check {
            None => None,
            Some(check) => match pass(check, core, place, (request, front.account)).await {
                Ok(entering) => Some(entering),
                Err(refusal) => return *refusal,
            },
        };
        let mut request = request.clone();
        let (secured, line) = (secured.as_ref(), line.as_ref());
        let client = Client { peer, near, secured, line, account: front.account };
        let now = core.now();
        let (start, _) = match entering {
            None => core.enter_site(place, &mut request, &client, (now, false)),
            Some(entering) => core.enter_as(place, &mut request, &client, now, entering),
        };
        match start {
            Start::Reply(reply) => reply,
            Start::Slow(slow) => Box::pin(slow.run(core, &request, body, front)).await,
        }
    }
}

/// Waits until the gates before `site` know, from one check to the next.
///
/// # Errors
/// The answer to the request, which may not enter.
async fn pass(
    (mut check, guest): (Box<Check>, Guest),
    core: &Rc<Core>,
    (live, site): (&LiveRef, &Arc<Site>),
    (request, account): (&Request, &Arc<Account>),
) -> Result<Entering, Box<Reply>> {
    let bug = || Box::new(pages::problem(request, Problem::Internal));
    let gates = site.gates.as_ref().ok_or_else(bug)?;
    let mut proofs = Vec::new();
    loop {
        let shown = (guest, account);
        proofs.push(Box::pin(check.run(core, (gates, site), live, request, shown)).await?);
        match core.look((gates, site), request, guest, (&proofs, core.now())) {
            Looked::In(entering) => return Ok(entering),
            Looked::Refused(refusal) => return Err(refusal),
            Looked::Waits(_) if proofs.len() >= CHECKS_MAX => return Err(bug()),
            Looked::Waits(next) => check = next,
        }
    }
}
