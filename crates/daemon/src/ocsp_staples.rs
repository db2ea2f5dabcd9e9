//! Staples: which certificates are shown with an authority's word, and how the daemon tells of it.
//!
//! The asking is in `acme`; what comes of it is in the pairs that handshakes use.

use std::sync::Arc;

use acme::{StapleBounds, StapleEvent, StaplePlan};
use base::{Counter, Counters};
use config::Config;

use crate::material::Material;

/// The certificates to ask about, if any are to be.
pub(crate) fn plan(config: &Config, material: &Material) -> Option<StaplePlan> {
    let limits = &config.limits;
    let bounds = StapleBounds {
        exchange_ms: limits.ocsp_timeout,
        answer_bytes: limits.ocsp_answer_bytes,
        retry_ms: limits.ocsp_retry_wait,
    };
    config.ocsp.then(|| StaplePlan { pairs: material.shown(), bounds })
}

/// Counts, and tells the operator.
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
