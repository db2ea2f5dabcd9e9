//! Admitted requests: those that were authenticated before, as fragments of pages and requests of
//! other nodes. A fragment needs no check if its page passed the same ones; it keeps the page's
//! user.

use message::Request;
use policy::headers::FieldName;

use crate::state::gate::RouteAuthChecks;
use crate::state::gate::SiteAdmission;
use crate::state::site::Site;

/// A request and its site.
#[derive(Clone, Copy)]
pub(crate) struct ArrivingRequest<'a> {
    pub(crate) site: &'a Site,
    pub(crate) request: &'a Request,
}

/// The checks that apply to a request.
fn gates<'a>(
    ArrivingRequest { site, request }: ArrivingRequest<'a>,
) -> impl Iterator<Item = &'a RouteAuthChecks> {
    let gates = site.gates.iter();
    gates.flat_map(move |gates| gates.of(site.policy.routes(request)))
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

/// Removes from `request`, for a fragment of `page` in `site`, the user fields of the page's gates
/// that the fragment's gates would not set.
pub(crate) fn remove_page_user_fields(
    page: ArrivingRequest<'_>,
    site: &Site,
    request: &mut Request,
) {
    if page.site.gates.is_none() {
        return;
    }
    let own: Vec<_> = gates(ArrivingRequest { site, request: &*request })
        .flat_map(RouteAuthChecks::fields)
        .cloned()
        .collect();
    let page_fields: Vec<_> = gates(page).flat_map(RouteAuthChecks::fields).collect();
    request.headers.retain(|field| {
        let is_of = |name: &FieldName| name.is_spelt(field.name);
        !page_fields.iter().any(|name| is_of(name)) || own.iter().any(is_of)
    });
}

/// The admission of a request that was checked before: a fragment with its page, another node's
/// request with its client, or a forecast. `request` has the fields set then.
pub(crate) fn inherit(site: &Site, request: &Request) -> Option<SiteAdmission> {
    site.gates.as_ref()?;
    let mut admission = SiteAdmission::default();
    for gate in gates(ArrivingRequest { site, request }) {
        for field in gate.fields() {
            admission.add(field, field.values(&request.headers));
        }
        admission.is_personal |= gate.is_personal();
        admission.keeps_password |= gate.password.as_ref().is_some_and(|gate| !gate.rule.forward);
    }
    admission.is_personal |= site.policy.routes(request).also.is_some();
    (!admission.own.is_empty() || admission.keeps_password).then_some(admission)
}
