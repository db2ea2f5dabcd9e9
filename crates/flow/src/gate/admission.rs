//! The wait of a request at a stage before its site's policy, and its way on from there.

use std::rc::Rc;
use std::sync::Arc;

use base::Account;
use message::Request;

use super::gate_verdict::AuthVerdict;
use crate::pages;
use crate::problem::Problem;
use crate::state::core::CoreState;
use crate::state::gate::ClientIdentity;
use crate::state::gate::SiteAdmission;
use crate::state::gate::check::PendingAuthCheck;
use crate::state::reply::Reply;
use crate::state::site_context::SiteContext;

/// Checks that one request waits for at most: each gate has one, and a route that an origin may
/// take it for has its own.
const CHECKS_MAX: usize = 8;

/// Waits until the gates before a site know, from one check to the next.
///
/// # Errors
/// The answer to the request, which may not enter.
pub(crate) async fn admit(
    mut check: Box<PendingAuthCheck>,
    guest: ClientIdentity,
    core: &Rc<CoreState>,
    place: SiteContext<'_>,
    request: &Request,
    account: &Arc<Account>,
) -> Result<SiteAdmission, Box<Reply>> {
    let bug = || Box::new(pages::problem(request, Problem::Internal));
    let mut proofs = Vec::new();
    loop {
        proofs.push(Box::pin(check.run(core, place, request, guest, account)).await?);
        match core.gates.look(place, request, guest, &proofs, core.now()) {
            AuthVerdict::In(entering) => return Ok(entering),
            AuthVerdict::Refused(refusal) => return Err(refusal),
            AuthVerdict::Waits(_) if proofs.len() >= CHECKS_MAX => return Err(bug()),
            AuthVerdict::Waits(next) => check = next,
        }
    }
}
