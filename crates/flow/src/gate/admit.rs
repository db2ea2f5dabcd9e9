//! The wait of a request before its site, and its way on from there.

use std::rc::Rc;
use std::sync::Arc;

use base::Account;
use cache::Reader;
use message::Request;

use super::entering::Entering;
use super::look::Looked;
use crate::pages;
use crate::problem::Problem;
use crate::state::ask::Front;
use crate::state::client::Client;
use crate::state::core::Core;
use crate::state::gate::Guest;
use crate::state::gate::check::Check;
use crate::state::gate::visitor::Visitor;
use crate::state::live::{LiveRef, Site};
use crate::state::reply::Reply;
use crate::way::Start;

/// Checks that one request waits for at most: each gate has one, and a route that an origin may
/// take it for has its own.
const CHECKS_MAX: usize = 8;

impl Visitor {
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
