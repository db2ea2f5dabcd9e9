//! Store step of a program's fetch: from the program's verdict to the stored and delivered
//! response.

use std::sync::Arc;

use cache::{DerivedData, Flags, NewObject, Object, Tags};
use codec::Coding;
use message::store::{NotStored, Permit, Ruling};
use message::vary::Vary;
use message::{HeaderId, Method, Version};
use vcl::counts::Count;
use vcl::ctx::BerespState;
use vcl::params::Param;
use vcl::rules::dates;
use vcl::rules::heads;
use vcl::rules::lifetime::Lifetime;
use vcl::rules::status::sent_status;

use super::fetch::{BackendResponseHead, PassingFacts, ProgramJudge};
use super::storages;
use crate::body_transfer::VariantSelector;
use crate::fetch::{
    Confirmation, Fetch, InsertionPlan, Mark, ObjectTimes, ResponseBodySource, ResponseFate,
    RevalidationVerdict, UnstoredEffects, UnstoredResponse, mark_flags, new_object,
};
use crate::state::vcl::note;
use crate::tags;
use crate::unstored_reason::UnstoredReason;

impl ProgramJudge {
    /// Stores `answer` if it is storable; otherwise passes it.
    pub(super) fn conclude(
        &self,
        fetch: &Fetch,
        mut answer: BackendResponseHead,
        body: ResponseBodySource,
    ) -> ResponseFate<Self> {
        let private = self.is_private(fetch);
        let mut why = if private { UnstoredReason::Pass } else { UnstoredReason::Uncacheable };
        let vary = Vary::of(&answer.response.headers);
        if vary == Vary::Never && !private {
            why = UnstoredReason::Rule(NotStored::VaryAny);
            self.note_error("Illegal 'Vary' header from backend, making this a pass.");
            answer.state.uncacheable = true;
        }
        answer.response.status = sent_status(answer.state.status);
        let head_length = answer.response.content_length();
        let disposition = disposition(private, answer.state.uncacheable);
        heads::beresp(&mut answer.response.headers, disposition);
        let tags = match read_tags(fetch, &answer) {
            Ok(tags) => tags,
            Err(limit) => {
                fetch.core.counters.limit(limit);
                self.note_error(&format!("not stored: too many keys (limit: {})", limit.name()));
                answer.state.uncacheable = true;
                why = UnstoredReason::Rule(NotStored::Tags);
                Tags::default()
            }
        };
        let selector = selector(fetch, vary);
        let state = &answer.state;
        if private || state.uncacheable {
            self.count(Count::BerespUncacheable);
        } else if storages::is_short(&fetch.live.vcl, state) {
            self.count(Count::BerespShortlived);
        }
        let (uncacheable, findable) = (state.uncacheable, is_ever_fresh(state));
        let ruling = Ruling { passed: private, uncacheable, findable };
        let Some(permit) = Permit::by_program(ruling, &answer.response.headers) else {
            let why = if private || uncacheable { why } else { UnstoredReason::NoLifetime };
            fetch.note(|trace| trace.note_why(why));
            let effects = self.leave(fetch, &answer, selector);
            return self.pass_on(fetch, answer, body, effects, head_length);
        };
        // A confirmed object keeps its properties.
        let confirmed = fetch.old.as_ref().filter(|_| answer.state.was_304);
        let is_page = confirmed.map_or_else(|| answer.page.is_some(), |old| old.flags().esi);
        let gzips = || answer.page.as_ref().is_some_and(|page| page.is_gzipped);
        let flags = Flags {
            http10: answer.response.version == Version::Http10,
            coding: answer.coding,
            negotiated: answer.coding != Coding::Identity,
            coded_here: answer.recoded,
            esi: is_page,
            gzip_page: confirmed.map_or_else(gzips, |old| old.flags().gzip_page),
            dictionary: !is_page && answer.response.headers.contains(HeaderId::UseAsDictionary),
            ..Flags::default()
        };
        let new = NewObject { tags, ..self.object(fetch, &answer, flags) };
        let settings = &fetch.live.vcl;
        let sinks = storages::sinks(settings, storages::place(settings, &answer.state));
        if confirmed.is_some() {
            let verdict = RevalidationVerdict::Stored { permit, selector, sinks };
            return ResponseFate::Confirm(None, Box::new(Confirmation { new, verdict }));
        }
        let (recode, page) = (std::mem::take(&mut answer.recode), answer.page.take());
        let attached = page.map(|page| page as Arc<dyn DerivedData>);
        let (filter, over) = (None, over(fetch, &answer.state));
        let plan = InsertionPlan { permit, over, new, selector, recode, filter, attached, sinks };
        ResponseFate::Store(body, Box::new(plan))
    }

    /// The effects of a response that is for one request only.
    fn leave(
        &self,
        fetch: &Fetch,
        answer: &BackendResponseHead,
        selector: Option<VariantSelector>,
    ) -> UnstoredEffects {
        let state = &answer.state;
        let kept = match answer.pass_s {
            Some(seconds) => seconds > 0.0,
            None => state.uncacheable && is_ever_fresh(state),
        };
        let now_ms = fetch.now().mono_ms;
        if !kept {
            return UnstoredEffects { mark: Mark::None, over: over(fetch, state) };
        }
        let mut new = self.object(fetch, answer, mark_flags(answer.pass_s.is_some()));
        if let Some(seconds) = answer.pass_s {
            new.born_ms = now_ms as i64;
            (new.lifetime_ms, new.grace_ms, new.stale_if_error_ms) = (ms(seconds), 0, 0);
        }
        UnstoredEffects { mark: Mark::Object(Box::new(new), selector), over: over(fetch, state) }
    }

    /// Delivers a response past the store.
    fn pass_on(
        &self,
        fetch: &Fetch,
        answer: BackendResponseHead,
        body: ResponseBodySource,
        effects: UnstoredEffects,
        head_length: Option<u64>,
    ) -> ResponseFate<Self> {
        let BackendResponseHead { response, state, recode, coding, page, .. } = answer;
        let is_head = fetch.request.method == Method::Head;
        let facts = PassingFacts {
            times: Lifetime {
                ttl: state.ttl,
                grace: state.grace,
                keep: state.keep,
                age: state.age,
            },
            came_ms: fetch.now().mono_ms,
            uncacheable: state.uncacheable,
            xid: self.state.xid,
            private: self.is_private(fetch),
            page,
        };
        let head_length = head_length.filter(|_| is_head || state.uncacheable);
        ResponseFate::Pass(
            body,
            effects,
            Box::new(UnstoredResponse {
                response,
                head_length,
                recode,
                coding,
                filter: None,
                facts,
            }),
        )
    }

    /// The object to be stored, without its surrogate keys.
    fn object(&self, fetch: &Fetch, answer: &BackendResponseHead, flags: Flags) -> NewObject {
        let BackendResponseHead { response, state, .. } = answer;
        // A negative lifetime shortens the following windows.
        let (fresh, over) = (state.ttl.max(0.0), (-state.ttl).max(0.0));
        let times = ObjectTimes {
            age_ms: ms(state.age),
            lifetime_ms: ms(fresh + state.age),
            grace_ms: ms(state.grace - over),
            stale_if_error_ms: ms(state.keep),
            stale_if_unreachable_ms: 0,
        };
        let now_s = fetch.now().unix_secs();
        let date = |value: &[u8]| dates::read(value, now_s, &fetch.live.vcl.params);
        let place = storages::place(&fetch.live.vcl, state);
        NewObject {
            note: note::of(self.state.xid, place, &self.asked),
            ..new_object(response, fetch.now(), &times, flags, &date)
        }
    }
}

/// The stored object that a response replaces. One made by `vcl_backend_error` replaces none.
fn over(fetch: &Fetch, state: &BerespState) -> Option<Arc<Object>> {
    let now_ms = fetch.now().mono_ms;
    let is_over = |old: &&Arc<Object>| !old.is_fresh(now_ms) && !old.flags().is_mark();
    fetch.old.as_ref().filter(is_over).filter(|_| state.backend.is_some()).cloned()
}

/// Returns true if a lookup would find it: Varnish ignores an object that was never fresh, whatever
/// its grace and keep. Lifetimes count from the response's creation.
fn is_ever_fresh(state: &BerespState) -> bool {
    state.ttl + state.age > 0.0
}

/// The surrogate keys of a response: those in its fields, and those added by the program.
fn read_tags(fetch: &Fetch, answer: &BackendResponseHead) -> Result<Tags, base::Limit> {
    let read = tags::read(&answer.response.headers, &fetch.live.limits)?;
    if answer.state.keys.is_empty() {
        return Ok(read.unwrap_or_default());
    }
    let own = answer.state.keys.iter().map(|key| tags::hash(key));
    let all: Vec<u64> = read.iter().flat_map(Tags::iter).chain(own).collect();
    match all.len() as u64 > fetch.live.limits.tags {
        true => Err(base::Limit::Tags),
        false => Ok(Tags::new(all)),
    }
}

/// The variant of the response beside its key.
fn selector(fetch: &Fetch, vary: Vary) -> Option<VariantSelector> {
    let Vary::Names(names) = vary else { return None };
    let gzip = fetch.live.vcl.params.is_on(Param::HttpGzipSupport);
    // A gzip object then serves all clients.
    let names = if gzip { names.without(HeaderId::AcceptEncoding)? } else { names };
    Some(VariantSelector::of(names, &fetch.request))
}

fn ms(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1000.0) as u64
}

/// The disposition of a response by the program.
fn disposition(private: bool, uncacheable: bool) -> heads::ResponseDisposition {
    match (private, uncacheable) {
        (true, _) => heads::ResponseDisposition::Passed,
        (false, true) => heads::ResponseDisposition::Uncacheable,
        (false, false) => heads::ResponseDisposition::Stored,
    }
}
