//! Mirror: a copy of a request goes to another origin, and its response is dropped. Nothing that
//! happens to the copy may change or delay the request.

use std::sync::Arc;

use base::{Counter, Limit};
use origin::{Origin, OriginRequestContext, RequestBody};

use super::Fetch;
use crate::body_transfer::drain;

/// Sends a copy of the request of `fetch`, which has no body, to `mirror`.
pub(super) fn send_copy(fetch: &Fetch, mirror: Arc<Origin>) {
    let core = &fetch.core;
    let limits = &fetch.live.limits;
    let Some(permit) = core.mirrors.take(limits.mirrors) else {
        return core.counters.limit(Limit::Mirrors);
    };
    let bytes = fetch.request.headers.memory() + fetch.request.target.len();
    let Ok(held) = core.background.hold(bytes as u64) else {
        return core.counters.limit(Limit::ClientMemory);
    };
    core.counters.inc(Counter::Mirrored);
    let (core, request, hash) = (core.clone(), fetch.request.clone(), fetch.key_hash);
    let caller =
        OriginRequestContext { client: fetch.caller.client, ..OriginRequestContext::default() };
    rt::spawn_local(Box::pin(async move {
        let _held = (permit, held);
        let pool = core.pool();
        let sent = pool.send(&mirror, &request, RequestBody::None, hash, &caller, &mut ()).await;
        match sent {
            Ok(exchange) => drain(exchange).await,
            Err(_) => core.counters.inc(Counter::MirrorFailures),
        }
    }));
}
