//! Sites that nothing can be served for: their origins are all down, and nothing that is stored of
//! them may answer.
//!
//! It is found by looking through all that is stored, beside the cores: for whoever asks seldom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cache::Object;
use origin::Origin;
use vcl::backend::Backend;

use crate::invalidate::Under;
use crate::key::is_internal;
use crate::state::invalidate::Door;
use crate::state::site::Site;
use crate::state::vcl::link::Connected;

/// Responses looked at between two pauses, and such a pause, as for lists of what is stored.
const PIECE: usize = 1024;
const PAUSE: Duration = Duration::from_micros(100);

/// The sites that nothing can be served for, by their first hosts. Where a disk has something,
/// nobody knows of what sites it is without reading it: then there are none.
pub async fn unserved_sites(door: &Door, now_ms: u64) -> Vec<String> {
    let live = door.in_force.live();
    let cut_off = live.sites.listed.iter().filter(|site| is_cut_off(site));
    let mut without: BTreeMap<u32, String> =
        cut_off.map(|site| (site.number, site.name.to_string())).collect();
    let on_disk = door.cache.lower().disk().map_or(0, |disk| disk.stats().records);
    if without.is_empty() || on_disk > 0 {
        return Vec::new();
    }
    let cache = Arc::clone(&door.cache);
    // One look at everything at a time.
    let turn = Arc::clone(&door.listing).lock_owned().await;
    let found = rt::blocking(move || {
        let _turn = turn;
        let mut looked_at = 0;
        cache.walk(&mut |object| {
            looked_at += 1;
            if looked_at % PIECE == 0 {
                rt::pause(PAUSE);
            }
            let site = live.sites.by_host.find(Under::of(object).host);
            // One that redirects nothing before its first certificate is there twice.
            let name = site.and_then(|site| without.get(&site.number));
            if let Some(name) = name
                && may_answer(object, now_ms)
                && cache.may_use(object)
            {
                let name = name.clone();
                without.retain(|_, own| *own != name);
            }
            !without.is_empty()
        });
        without
    });
    match found.await {
        Ok(without) => {
            let names: BTreeSet<_> = without.into_values().collect();
            names.into_iter().collect()
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Returns true if it has origins or backends, and none of them gets requests, or none has an
/// address.
fn is_cut_off(site: &Site) -> bool {
    let is_down = |origin: &Origin| !origin.is_healthy() || origin.is_found() == Some(false);
    let Some(program) = &site.vcl else {
        return !site.origins.is_empty() && site.origins.iter().all(|own| is_down(&own.origin));
    };
    let backends = program.backends();
    let leaves = backends.iter().filter_map(|backend| match backend {
        Backend::Leaf(leaf) => Connected::of(leaf),
        _ => None,
    });
    let mut leaves = leaves.peekable();
    leaves.peek().is_some() && leaves.all(|own| is_down(&own.origin))
}

/// Returns true if a response may answer while its origin is out of reach.
fn may_answer(object: &Object, now_ms: u64) -> bool {
    let beyond_ms = match object.note().is_empty() {
        true => {
            let on_error = object.stale_if_error_ms().max(object.stale_if_unreachable_ms());
            on_error.max(object.grace_ms())
        }
        // What a program keeps for longer it keeps for its origin to confirm.
        false => object.grace_ms(),
    };
    !is_internal(object) && (object.is_fresh(now_ms) || object.stale_ms(now_ms) <= beyond_ms)
}
