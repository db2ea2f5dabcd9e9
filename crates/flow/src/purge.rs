//! Purges by request and by operator. Crate `purge` parses the request, `purge_sites` finds its
//! sites, and `execution` passes the invalidation to the
//! [`Invalidator`](crate::state::invalidate::Invalidator).
//!
//! A refused purge reaches neither the store nor an origin.

mod execution;
mod listing;
mod purge_sites;

use base::{Counter, Counters};
use message::{Request, Status};
pub(crate) use purge::{Answers, PurgeOrder, PurgeRequest, Refusal, Share};

pub use execution::PurgeContext;
pub(crate) use execution::purge_shares;
pub use listing::{ListedResponse, Listing};
pub(crate) use purge_sites::find;

use crate::invalidate::InvalidationError;
use crate::pages;
use crate::state::invalidate::Outcome;
use crate::state::reply::Reply;

/// The answer to a purge that is refused.
pub(crate) fn refused(counters: &Counters, request: &Request, refusal: Refusal) -> Reply {
    counters.inc(match refusal {
        Refusal::Host => Counter::PurgesLost,
        _ => Counter::PurgesRefused,
    });
    let (code, text) = refusal.answer();
    let status = Status::new(code).unwrap_or(Status::OK);
    pages::purge_refused(request, status, &text)
}

/// The answer to a purge that did not take effect, with the reason.
pub(crate) fn not_done(request: &Request, why: &InvalidationError) -> Reply {
    let status = Status::new(503).unwrap_or(Status::OK);
    pages::purge_refused(request, status, &why.to_string())
}

/// The answer to a purge, with the number of selected responses.
pub(crate) fn done(
    counters: &Counters,
    request: &Request,
    outcome: Outcome,
    answers: Answers,
) -> Reply {
    counters.inc(Counter::Purges);
    counters.add(Counter::Invalidations, outcome.objects);
    let status = match answers {
        Answers::Empty => Status::NO_CONTENT,
        Answers::OrMissing if outcome.objects == 0 => Status::new(404).unwrap_or(Status::OK),
        Answers::Always | Answers::OrMissing => Status::OK,
    };
    pages::purged(request, status, outcome)
}
