//! Admission: waits for the checks of a parked request, one after the other, and returns the
//! result.

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

/// Checks for one request at most: one for each gate, and those of another route that the origin
/// may select.
const CHECKS_MAX: usize = 8;

/// Waits until all checks of a request are complete.
///
/// # Errors
/// The answer to a request that is refused.
pub(crate) async fn admit(
    mut check: Box<PendingAuthCheck>,
    identity: ClientIdentity,
    core: &Rc<CoreState>,
    site_ctx: SiteContext<'_>,
    request: &Request,
    account: &Arc<Account>,
) -> Result<SiteAdmission, Box<Reply>> {
    let bug = || Box::new(pages::problem(request, Problem::Internal));
    let mut results = Vec::new();
    loop {
        results.push(Box::pin(check.run(core, site_ctx, request, identity, account)).await?);
        match core.auth_memory.look(site_ctx, request, identity, &results, core.now()) {
            AuthVerdict::In(admission) => return Ok(admission),
            AuthVerdict::Refused(refusal) => return Err(refusal),
            AuthVerdict::Waits(_) if results.len() >= CHECKS_MAX => return Err(bug()),
            AuthVerdict::Waits(next) => check = next,
        }
    }
}
