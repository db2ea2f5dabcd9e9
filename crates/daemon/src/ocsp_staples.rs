//! OCSP staples: which certificates are stapled, and the log of it.
//!
//! The requests are made in `acme`; their results are in the pairs that handshakes use.

use std::sync::Arc;

use acme::{StapleBounds, StapleEvent, StaplePlan};
use base::{Counter, Counters};
use config::Config;

use crate::material::Material;

/// The certificates to request staples for, if there are any.
pub(crate) fn plan(config: &Config, material: &Material) -> Option<StaplePlan> {
    let limits = &config.limits;
    let bounds = StapleBounds {
        exchange_ms: limits.ocsp_timeout,
        answer_bytes: limits.ocsp_answer_bytes,
        retry_ms: limits.ocsp_retry_wait,
    };
    config.ocsp.then(|| StaplePlan { pairs: material.shown(), bounds })
}

/// Counts and logs an event.
pub(crate) fn note(counters: &Arc<Counters>, event: &StapleEvent) {
    match event {
        StapleEvent::Asking => counters.inc(Counter::OcspFetches),
        StapleEvent::Stapled { .. } => base::tell!(Notice, "larder: {event}"),
        StapleEvent::Failed { limit, .. } => {
            counters.inc(Counter::OcspFailures);
            limit.iter().for_each(|limit| counters.limit(*limit));
            base::tell!(Warn, "larder: {event}");
        }
    }
}
