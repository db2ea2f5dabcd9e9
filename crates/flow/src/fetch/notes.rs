//! What a fetch notes of how it fares, for the records of those that wait for it.

use message::store::{self, NotStored, StorePlan};
use message::{Request, Response};
use origin::{Exchange, Origin};

use super::Job;
use crate::core::Core;
use crate::trace::Trace;
use crate::why::Why;

impl Job {
    pub(super) fn note(&self, note: impl FnOnce(&Trace)) {
        if let Some(trace) = &self.trace {
            note(trace);
        }
    }

    /// Notes why an answer is not stored.
    pub(super) fn note_why(&self, why: Why) {
        self.note(|trace| trace.note_why(why));
    }

    pub(super) fn note_begun(&self, core: &Core, request: &Request, origin: &Origin) {
        let now_us = core.micros();
        core.log.note_bereq(self.trace.as_deref(), request, origin);
        self.note(|trace| {
            trace.note_begun(now_us);
            trace.origin.set(Some(self.notes.origin));
        });
    }

    pub(super) fn note_answered(&self, core: &Core, exchange: &Exchange) {
        let now_us = core.micros();
        core.log.note_beresp(self.trace.as_deref(), &exchange.response);
        self.note(|trace| trace.note_answered(exchange, now_us));
    }

    /// Notes which field keeps an answer from being stored.
    pub(super) fn note_evidence(&self, response: &Response, plan: &StorePlan) {
        let (Err(why), Some(_), Some(trace)) = (plan.store, &self.lead, &self.trace) else {
            return;
        };
        let rules = self.site.policy.store_rules(&self.notes);
        let mut evidence = store::evidence(why, &self.request, response, rules);
        if why == NotStored::Tags {
            evidence = self.refused_tags(response);
        }
        if !evidence.is_empty() {
            *trace.evidence.borrow_mut() = Some(evidence.into());
        }
    }

    /// How many surrogate keys were too many.
    fn refused_tags(&self, response: &Response) -> String {
        let limit = self.trace.as_ref().and_then(|trace| trace.limit.get());
        let mut tags = 0;
        message::tags::of_response(&response.headers, |_| tags += 1);
        limit.map_or_else(String::new, |limit| format!("{tags} tags, limit {}", limit.name()))
    }

    /// Why an answer is not stored.
    pub(super) fn why_passing(&self, plan: &StorePlan) -> Why {
        match plan.store {
            _ if self.beside => Why::Beside,
            _ if self.lead.is_none() => Why::Pass,
            Err(reason) => Why::Rule(reason),
            // It ends with its connection, so nobody knows whether it is whole.
            Ok(()) => Why::Framing,
        }
    }
}
