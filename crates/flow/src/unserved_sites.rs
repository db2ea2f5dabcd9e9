//! Unserved sites: sites whose origins are all down and whose stored responses may not answer.
//!
//! The search goes through the whole store, off the cores. It is for rare callers such as health
//! checks and figures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cache::Object;
use origin::Origin;
use vcl::backend::Backend;

use crate::invalidate::StoredUrl;
use crate::key::is_internal;
use crate::state::invalidate::Invalidator;
use crate::state::site::Site;
use crate::state::vcl::link::BackendOrigin;

/// The first hosts of the unserved sites. With records on a disk the list is empty: their sites are
/// not known without reading them.
pub async fn unserved_sites(invalidator: &Invalidator, now_ms: u64) -> Vec<String> {
    let live = invalidator.in_force.live();
    let cut_off = live.sites.listed.iter().filter(|site| is_cut_off(site));
    let without: BTreeMap<u32, String> =
        cut_off.map(|site| (site.number, site.name.to_string())).collect();
    let on_disk = invalidator.cache.lower().disk().map_or(0, |disk| disk.stats().records);
    if without.is_empty() || on_disk > 0 {
        return Vec::new();
    }
    let cache = Arc::clone(&invalidator.cache);
    let see = move |without: &mut BTreeMap<u32, String>, object: &Object| {
        let site = live.sites.by_host.find(StoredUrl::of(object).host);
        // A site that redirects nothing before its first certificate is in the table twice.
        let name = site.and_then(|site| without.get(&site.number));
        if let Some(name) = name
            && may_answer(object, now_ms)
            && cache.may_use(object)
        {
            let name = name.clone();
            without.retain(|_, own| *own != name);
        }
        !without.is_empty()
    };
    let names: BTreeSet<_> = invalidator.look_through(without, see).await.into_values().collect();
    names.into_iter().collect()
}

/// Returns true if the site has origins or backends, and all are out of service, or have no
/// address.
fn is_cut_off(site: &Site) -> bool {
    let is_down = |origin: &Origin| !origin.is_healthy() || origin.is_found() == Some(false);
    let Some(program) = &site.vcl else {
        return !site.origins.is_empty() && site.origins.iter().all(|own| is_down(&own.origin));
    };
    let backends = program.backends();
    let leaves = backends.iter().filter_map(|backend| match backend {
        Backend::Leaf(leaf) => BackendOrigin::of(leaf),
        _ => None,
    });
    let mut leaves = leaves.peekable();
    leaves.peek().is_some() && leaves.all(|own| is_down(&own.origin))
}

/// Returns true if a response may answer while its origin is unreachable.
fn may_answer(object: &Object, now_ms: u64) -> bool {
    let beyond_ms = match object.note().is_empty() {
        true => {
            let on_error = object.stale_if_error_ms().max(object.stale_if_unreachable_ms());
            on_error.max(object.grace_ms())
        }
        // Beyond grace a program keeps a response only for revalidation.
        false => object.grace_ms(),
    };
    !is_internal(object) && (object.is_fresh(now_ms) || object.stale_ms(now_ms) <= beyond_ms)
}
