//! Reception of a request by its site's declared policy, with the fields that the stages before it
//! add.

use message::Request;
use policy::{Notes, Policy, ReceiveCtx};

use crate::stage::Entrant;
use crate::state::gate::SiteAdmission;
use crate::state::site_context::SiteContext;

/// Has the site's policy receive a request through `receive`, which may be a dry run, and adds the
/// fields of the stages before. With `pass` the request goes past the store.
#[inline(always)]
pub(crate) fn received<R>(
    entrant: &Entrant<'_>,
    request: &mut Request,
    admission: Option<&SiteAdmission>,
    pass: bool,
    notes: &mut Notes,
    receive: impl FnOnce(&dyn Policy, &mut ReceiveCtx<'_>) -> R,
) -> R {
    let Entrant { site_ctx: SiteContext { site, .. }, client, now, downstream } = *entrant;
    let page = downstream.page();
    notes.client = page.map(|context| context.top.peer);
    let mut policy_ctx = ReceiveCtx { request, client: client.peer, now, pass, notes };
    let received = receive(&*site.policy, &mut policy_ctx);
    // The client's own fields of these names are removed by now.
    match page {
        Some(context) => notes.personal |= context.top.personal,
        None => {
            if let Some(check) = &site.client_check {
                notes.personal |= client.tell(&mut request.headers, check.fields);
            }
        }
    }
    if let Some(admission) = admission {
        notes.personal |= admission.tell(request);
    }
    received
}
