//! Revalidation under the declared policy: a 304 is merged into the stored response, and the result
//! is judged as a whole.

use cache::{NewObject, Record};
use codec::Coding;
use files::accel::AccelDirectives;
use message::store;
use message::{HeaderId, Response, Status};
use origin::Exchange;

use super::beside::StoredResponse;
use super::fetch::{PolicyJudge, ResponseVerdict};
use super::object::{object_by, selector};
use crate::fetch::{Confirmation, Fetch, ResponseFate, RevalidationVerdict};
use crate::{form, origin_messages, surrogate};
use codec::CompressionScope;

impl PolicyJudge {
    /// Merges the fields of a 304 into the stored head (RFC 9111 4.3.4) and judges the result like
    /// a 200. A result that may not be stored answers this request only.
    pub(super) fn confirm(
        &mut self,
        fetch: &mut Fetch,
        exchange: Box<Exchange>,
        said: &AccelDirectives,
    ) -> ResponseFate<Self> {
        let Some(old) = fetch.old.clone() else {
            return self.refuse(fetch, Status::NOT_MODIFIED);
        };
        fetch.core.note_fetch(fetch.key_hash, None);
        let now = fetch.now();
        let mut merged = self.merge(fetch, &exchange.response, &old);
        let stored = StoredResponse::new(&old, &exchange.response.headers, &merged.headers);
        let plan = self.rule(fetch, &mut merged, said, Some(&stored));
        let ResponseVerdict::Use(mut plan) = plan else {
            return self.refuse(fetch, Status::NOT_MODIFIED);
        };
        // The plan has used Age, which is never stored.
        merged.headers.remove(HeaderId::Age);
        let tags = self.tags(fetch, &exchange.response, &mut plan);
        if plan.verdict().is_err() {
            let why = self.why_passing(fetch, &plan);
            fetch.note(|trace| trace.note_why(why));
            self.note_evidence(fetch, &merged, &plan);
        }
        let flags = old.flags();
        let varies =
            flags.gzip_page && form::varies_by_coding(&surrogate::whole_head(&old).headers);
        if flags.negotiated || varies {
            form::vary_by_coding(&mut merged.headers);
        }
        let is_one = self.site.compress != CompressionScope::Off
            && Coding::of_content(merged.headers.values(HeaderId::ContentEncoding)).is_some();
        let judged = self.site.policy.judged_head(&self.notes, &merged);
        let selector = selector(&judged, &self.request, is_one || flags.negotiated);
        let note = surrogate::set_aside(&mut merged.headers, &self.site);
        let tags = tags.unwrap_or_else(|| old.tags());
        let mut new = NewObject { tags, note, ..object_by(&merged, &plan, now) };
        (new.flags.coding, new.flags.negotiated) = (flags.coding, flags.negotiated);
        new.flags.coded_here = flags.coded_here;
        new.flags.dictionary = merged.headers.contains(HeaderId::UseAsDictionary);
        (new.flags.esi, new.flags.ssi) = (flags.esi, flags.ssi);
        new.flags.gzip_page = flags.gzip_page;
        let verdict = match plan.permit() {
            Ok(permit) => RevalidationVerdict::Stored { permit, selector, sinks: self.own_sinks() },
            Err(_) => {
                // Other clients would take the response for their dictionary.
                new.flags.dictionary = false;
                let hit_for_miss_until_ms = self.marked_until_ms(fetch, &plan);
                RevalidationVerdict::Once {
                    hit_for_miss_until_ms,
                    ends: plan.supersedes_stored(merged.status),
                }
            }
        };
        ResponseFate::Confirm(Some(exchange), Box::new(Confirmation { new, verdict }))
    }

    /// The head of `old` with the fields of `confirmation`, a 304, and the Age in it.
    fn merge(&self, fetch: &Fetch, confirmation: &Response, old: &Record) -> Response {
        let mut merged = surrogate::whole_head(old);
        let mut fields = confirmation.clone();
        origin_messages::keepable(&mut fields, &self.site, fetch.now().unix_secs());
        form::confirm(&mut fields.headers, old);
        store::update_fields(&mut merged.headers, &fields.headers);
        merged.version = confirmation.version;
        if let Some(age) = confirmation.headers.value(HeaderId::Age) {
            merged.headers.set(HeaderId::Age, age);
        }
        merged
    }
}
