//! Admitted requests: those that were authenticated before, as fragments of pages and requests of
//! other nodes. A fragment needs no check if its page passed the same ones; it keeps the page's
//! user.

use message::Request;
use policy::headers::FieldName;
use policy::{ConnectionPeer, Routes};

use crate::state::gate::RouteAuthChecks;
use crate::state::gate::SiteAdmission;
use crate::state::site::Site;

/// A request's site and routes.
#[derive(Clone, Copy)]
pub(crate) struct ArrivingRequest<'a> {
    pub(crate) site: &'a Site,
    /// The routes that it belongs to. For a page they were found when it came: its request has
    /// lost what the site's policy removes, and may seem to belong to others.
    pub(crate) routes: Routes,
}

/// The checks that apply to a request.
fn gates(
    ArrivingRequest { site, routes }: ArrivingRequest<'_>,
) -> impl Iterator<Item = &RouteAuthChecks> {
    site.gates.iter().flat_map(move |gates| gates.of(routes))
}

/// Returns true if `page` passed all checks that apply to `fragment`.
pub(crate) fn may_include(page: ArrivingRequest<'_>, fragment: ArrivingRequest<'_>) -> bool {
    gates(fragment).all(|own| {
        let password = own.password.as_ref().is_none_or(|own| {
            gates(page).filter_map(|gate| gate.password.as_ref()).any(|gate| gate.rule == own.rule)
        });
        // The grant of another site's server does not count.
        let forward_auth = own.forward_auth.as_ref().is_none_or(|own| {
            let others = gates(page).filter_map(|gate| gate.forward_auth.as_ref());
            page.site.name == fragment.site.name
                && others.into_iter().any(|gate| gate.rule == own.rule)
        });
        password && forward_auth
    })
}

/// Removes from `request`, for `fragment` of `page`, the user fields of the page's gates that the
/// fragment's gates would not set.
pub(crate) fn remove_page_user_fields(
    page: ArrivingRequest<'_>,
    fragment: ArrivingRequest<'_>,
    request: &mut Request,
) {
    if page.site.gates.is_none() {
        return;
    }
    let own: Vec<_> = gates(fragment).flat_map(RouteAuthChecks::fields).collect();
    let page_fields: Vec<_> = gates(page).flat_map(RouteAuthChecks::fields).collect();
    request.headers.retain(|field| {
        let is_of = |name: &&FieldName| name.is_spelt(field.name);
        !page_fields.iter().any(is_of) || own.iter().any(is_of)
    });
}

/// Returns true if a check applies to the request of `client`.
pub(crate) fn is_gated(site: &Site, request: &Request, client: ConnectionPeer) -> bool {
    let routes = site.policy.routes(request, client);
    gates(ArrivingRequest { site, routes })
        .any(|gate| gate.password.is_some() || gate.forward_auth.is_some())
}

/// The admission of a request that was checked before: a fragment with its page, another node's
/// request with its client, or a forecast. `request` has the fields set then.
/// `client` is the one it is made for.
pub(crate) fn inherit(
    site: &Site,
    request: &Request,
    client: ConnectionPeer,
) -> Option<SiteAdmission> {
    site.gates.as_ref()?;
    let routes = site.policy.routes(request, client);
    let mut admission = SiteAdmission::default();
    for gate in gates(ArrivingRequest { site, routes }) {
        for field in gate.fields() {
            admission.add(field, field.values(&request.headers));
        }
        admission.is_personal |= gate.is_personal();
        admission.keeps_password |= gate.password.as_ref().is_some_and(|gate| !gate.rule.forward);
    }
    admission.is_personal |= routes.also.is_some();
    (!admission.own.is_empty() || admission.keeps_password).then_some(admission)
}
