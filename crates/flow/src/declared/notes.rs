//! Notes of the declared policy for records: the reason for which a response is not stored, and its
//! evidence.

use message::Response;
use message::store::{self, JudgedHead, NotStored, StorePlan};

use super::fetch::PolicyJudge;
use crate::fetch::Fetch;
use crate::unstored_reason::UnstoredReason;

impl PolicyJudge {
    /// Notes the field that forbids storing a response.
    pub(super) fn note_evidence(&self, fetch: &Fetch, response: &Response, plan: &StorePlan) {
        let (Err(why), Some(_), Some(trace)) = (plan.verdict(), &fetch.lead, &fetch.trace) else {
            return;
        };
        let rules = self.site.policy.store_rules(&self.notes);
        let judged = self.site.policy.judged_head(&self.notes, response);
        let mut evidence = store::evidence(why, &self.request, &judged, rules);
        if why == NotStored::Tags {
            evidence = refused_tags(fetch, response);
        }
        if !evidence.is_empty() {
            *trace.evidence.borrow_mut() = Some(evidence.into());
        }
    }

    /// The reason for not storing a response.
    pub(super) fn why_passing(&self, fetch: &Fetch, plan: &StorePlan) -> UnstoredReason {
        match plan.verdict() {
            _ if self.beside => UnstoredReason::Beside,
            _ if fetch.lead.is_none() => UnstoredReason::Pass,
            Err(reason) => UnstoredReason::Rule(reason),
            // The body ends with its connection, so a cut cannot be detected.
            Ok(()) => UnstoredReason::Framing,
        }
    }
}

impl Fetch {
    /// Notes the ignored fields of a response that may be stored. If it is not, the evidence for
    /// that names them, too.
    pub(super) fn note_ignored(&self, judged: &JudgedHead<'_>) {
        if judged.lacks_something()
            && self.lead.is_some()
            && let Some(trace) = &self.trace
        {
            let words = format!("{} ignored", judged.left_out_words());
            *trace.evidence.borrow_mut() = Some(words.into());
        }
    }
}

/// The number of surrogate keys, if too many.
fn refused_tags(fetch: &Fetch, response: &Response) -> String {
    let limit = fetch.trace.as_ref().and_then(|trace| trace.limit.get());
    let mut tags = 0;
    message::tags::of_response(&response.headers, |_| tags += 1);
    limit.map_or_else(String::new, |limit| format!("{tags} tags, limit {}", limit.name()))
}
