//! Origin request: sends the request of a fetch, with its notes for records and traces.

use std::sync::Arc;

use base::Limit;
use origin::{Exchange, RequestBody};

use super::{Fetch, FetchTarget, mirror};
use crate::interims::Announcer;
use crate::state::evidence::{FetchHeads, NotedEvidence};

/// Sends `fetch.request` with its upload and returns the response once its head has arrived.
///
/// # Errors
/// The reason for which there is no response.
pub(crate) async fn send(
    fetch: &mut Fetch,
    target: FetchTarget,
) -> Result<Box<Exchange>, origin::Error> {
    // Further tries are not copied.
    if let Some(mirror) = target.mirror.filter(|_| fetch.asked.is_none()) {
        mirror::send_copy(fetch, mirror);
    }
    if let Some(tracing) = &fetch.live.tracing {
        let sent = tracing.pass_on(&mut fetch.request.headers);
        fetch.note(|trace| trace.sent.set(sent));
    }
    let mut source = match target.with_body {
        true => fetch.upload.take(&mut fetch.request, fetch.interims.as_ref()),
        false => None,
    };
    let core = &fetch.core;
    core.log.note_bereq(fetch.trace.as_deref(), &fetch.request, &target.origin);
    let started_us = core.micros();
    fetch.note(|trace| trace.note_begun(started_us));
    (fetch.caller.timeouts, fetch.caller.once) = (target.timeouts, target.once);
    fetch.asked = Some(Arc::clone(&target.origin));
    let (core, caller) = (&fetch.core, &fetch.caller);
    let told = &mut Announcer(fetch.interims.as_deref());
    let body = match &mut source {
        Some(source) => RequestBody::Stream(Box::new(source)),
        None => RequestBody::None,
    };
    let pool = core.pool();
    let sent = pool.send(&target.origin, &fetch.request, body, fetch.key_hash, caller, told).await;
    let mut exchange = match sent {
        Ok(exchange) => Box::new(exchange),
        Err(error) => {
            source.into_iter().for_each(|source| fetch.upload.put_back(source));
            return Err(error);
        }
    };
    // The response may have come before the end of the request, which goes on beside it.
    source.into_iter().for_each(|source| exchange.continue_upload(source));
    let answered_us = core.micros();
    core.log.note_beresp(fetch.trace.as_deref(), &exchange.response);
    fetch.note(|trace| trace.note_answered(&exchange, answered_us));
    if let (Some(rules), Some(trace)) = (core.log.evidence(), &fetch.trace) {
        let heads = FetchHeads { request: &fetch.request, response: &exchange.response };
        let (seed, unix_ms) = (&core.shared.seed, core.now().unix_ms);
        let noted = NotedEvidence::of(heads, rules, seed, &fetch.live.limits, unix_ms);
        if noted.is_cut() {
            core.counters.limit(Limit::LogEvidence);
        }
        *trace.fetched.borrow_mut() = Some(Box::new(noted));
    }
    Ok(exchange)
}
