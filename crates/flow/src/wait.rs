//! Waiting for another request's fetch, which both policies do alike.
//!
//! A fetch ends by the time limits of its origin, and tells those that wait however it ends. So
//! they wait as long as it may take: whoever gave up earlier could only ask the same origin once
//! more.

use std::time::Duration;

use base::Limit;
use cache::{Ticket, Waited};

use crate::core::Core;
use crate::trace::Trace;

/// Waits for another request's fetch; with a `patience` at most that long, and the result is `None`
/// when that is over.
pub(crate) async fn for_fetch(
    core: &Core,
    trace: Option<&Trace>,
    ticket: Ticket,
    patience: Option<Duration>,
) -> Option<Waited> {
    if let Some(trace) = trace {
        trace.wait_us.set(trace.wait_us.get().or_else(|| Some(core.micros())));
    }
    let Some(patience) = patience else { return Some(ticket.await) };
    let waited = rt::time::timeout(patience, ticket).await.ok();
    if waited.is_none() {
        core.counters.limit(Limit::WaitTimeout);
        if let Some(trace) = trace {
            trace.limit.set(Some(Limit::WaitTimeout));
        }
    }
    waited
}
