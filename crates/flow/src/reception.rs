//! Reception of a request by its site's declared policy, with the fields that the stages before it
//! add.

use message::Request;
use policy::{Notes, Policy, ReceiveCtx, StoreUse};

use crate::stage::Entrant;
use crate::state::gate::SiteAdmission;
use crate::state::site_context::SiteContext;

/// Has the site's policy receive a request through `receive`, which may be a dry run, and adds the
/// fields of the stages before. `store` was decided before.
#[inline(always)]
pub(crate) fn received<R>(
    entrant: &Entrant<'_>,
    request: &mut Request,
    admission: Option<&SiteAdmission>,
    store: StoreUse,
    notes: &mut Notes,
    receive: impl FnOnce(&dyn Policy, &mut ReceiveCtx<'_>) -> R,
) -> R {
    let Entrant { site_ctx: SiteContext { site, .. }, client, now, downstream } = *entrant;
    notes.client = downstream.page().map(|context| context.top.peer);
    let mut policy_ctx = ReceiveCtx { request, client: client.peer, now, store, notes };
    let received = receive(&*site.policy, &mut policy_ctx);
    // The client's own fields of these names are removed by now.
    notes.personal |= tell_certificate(entrant, request);
    if let Some(admission) = admission {
        notes.personal |= admission.tell(request);
    }
    received
}

/// Adds the fields of the client's certificate. Returns true if they make responses personal.
#[inline(always)]
fn tell_certificate(entrant: &Entrant<'_>, request: &mut Request) -> bool {
    let Entrant { site_ctx: SiteContext { site, .. }, client, downstream, .. } = *entrant;
    match (downstream.page(), &site.client_check) {
        (Some(context), _) => context.top.personal,
        (None, Some(check)) => client.tell(&mut request.headers, check.fields),
        (None, None) => false,
    }
}

/// Brings client, scheme and the fields of proxies and certificates into the form in which the VCL
/// beside the site's settings sees them. Returns the notes for [`received_beside`].
pub(crate) fn identified(entrant: &Entrant<'_>, request: &mut Request) -> Notes {
    let Entrant { site_ctx: SiteContext { site, .. }, client, now, downstream } = *entrant;
    let known = downstream.page().map(|context| context.top.peer);
    let mut notes = Notes { client: known, ..Notes::default() };
    let peer = client.peer;
    site.policy.identify(&mut ReceiveCtx {
        request,
        client: peer,
        now,
        store: StoreUse::ByRules,
        notes: &mut notes,
    });
    notes.client = notes.client.or(Some(peer));
    notes.personal = tell_certificate(entrant, request);
    notes
}

/// Does what [`received`] does for a request with the notes of [`identified`], which the VCL may
/// have changed since: neither its client nor its scheme is looked for again.
pub(crate) fn received_beside<R>(
    entrant: &Entrant<'_>,
    request: &mut Request,
    admission: Option<&SiteAdmission>,
    store: StoreUse,
    notes: &mut Notes,
    receive: impl FnOnce(&dyn Policy, &mut ReceiveCtx<'_>) -> R,
) -> R {
    let Entrant { site_ctx: SiteContext { site, .. }, client, now, .. } = *entrant;
    let is_personal = notes.personal;
    let mut policy_ctx = ReceiveCtx { request, client: client.peer, now, store, notes };
    let received = receive(&*site.policy, &mut policy_ctx);
    notes.personal |= is_personal;
    if let Some(admission) = admission {
        notes.personal |= admission.tell(request);
    }
    received
}
