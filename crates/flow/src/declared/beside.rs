//! Beside the judge: `vcl_backend_fetch` and `vcl_backend_response` of the VCL beside a site's
//! settings, the latter after the policy has judged a response.
//!
//! It may always keep a response from the store, or shorten its time. It gives a time to what the
//! rules would store if it had one, and a longer time to what they store; it never stores what they
//! refuse for another reason, and says so in the log.

use cache::Record;
use files::accel::AccelDirectives;
use message::list::members;
use message::store::{self, ExchangeTimes, LifetimeSource, NotStored, StorePlan};
use message::{HeaderBlock, HeaderId, Response};
use policy::{BackendResponse, ResponseCtx};
use vcl::ctx::BerespState;
use vcl::sub::Sub;

use super::fetch::{PolicyJudge, ResponseVerdict};
use super::substitute::FetchFailure;
use crate::fetch::{Fetch, ResponseFate};
use crate::problem::Problem;
use crate::vcl::extra_fetch::ExtraFetch;
use crate::verdict::hear;

/// A rule's words for a lifetime that the subroutine sets.
const BY_VCL: &str = "`beresp.ttl` of the site's VCL";
/// The longest lifetime, in seconds: what is longer is forever.
const LONGEST_S: f64 = 100.0 * 365.0 * 86_400.0;

impl PolicyJudge {
    /// Runs `vcl_backend_fetch` on the request of `fetch`. Returns the fate if it must not be sent.
    pub(super) fn ask_beside(&mut self, fetch: &mut Fetch) -> Option<ResponseFate<Self>> {
        let extra = self.extra.as_mut()?;
        let asked = extra.ask(fetch, self.tries);
        if let Some(change) = asked {
            // A response to a cookie that it has set is as personal as one to a client's.
            self.notes.personal |= change.sets_cookie;
            return None;
        }
        let (problem, stale) = (Problem::Program, None);
        Some(self.fail(fetch, FetchFailure { problem, stale, unreachable: false }))
    }

    /// Runs `vcl_backend_response` on a response with `plan`. Returns the verdict with its changes.
    pub(super) fn respond_beside(
        &mut self,
        fetch: &Fetch,
        response: &mut Response,
        said: &AccelDirectives,
        times: ExchangeTimes,
        mut plan: StorePlan,
        stored: Option<&StoredResponse<'_>>,
    ) -> ResponseVerdict {
        let Some(mut extra) = self.extra.take() else { return ResponseVerdict::Use(plan) };
        if let Some(stored) = stored {
            stored.restrict(&mut plan);
        }
        let varied = varying(&response.headers);
        let mut is_sound = true;
        if extra.has(Sub::BackendResponse) {
            let came = (plan.verdict() == Err(NotStored::NoLifetime)).then(|| response.clone());
            let before = shown(&plan, response, times);
            let mut state = before.clone();
            is_sound = extra.respond(fetch, response, &mut state);
            if is_sound {
                let wish = Wish::of(&before, &state);
                // The head as it came says who may have the response, and if it may be stale.
                if let Some(mut came) = came.filter(|_| wish.is_for_time()) {
                    plan = self.plan_anew(fetch, &came, said, times, wish.ttl_ms);
                    self.judge_by_policy(fetch, &mut came, &mut plan);
                    if let Some(stored) = stored {
                        stored.restrict(&mut plan);
                    }
                    if plan.verdict().is_ok() {
                        let mut anew = self.plan_anew(fetch, response, said, times, wish.ttl_ms);
                        self.judge_by_policy(fetch, response, &mut anew);
                    }
                }
                if let Some(why) = self.grant(fetch, response, said, times, wish, &mut plan) {
                    extra.note(&why);
                }
            }
        }
        if plan.verdict().is_ok() && is_of_another_request(&extra, &varied, &response.headers) {
            plan.refuse(NotStored::VaryAny, response.status);
        }
        self.extra = Some(extra);
        if is_sound { ResponseVerdict::Use(plan) } else { ResponseVerdict::Fail }
    }

    /// Has the policy judge a response with `plan`, and change its head if it is stored.
    fn judge_by_policy(&self, fetch: &Fetch, response: &mut Response, plan: &mut StorePlan) {
        let (status, request, notes) = (response.status, &fetch.request, &self.notes);
        let mut policy_ctx = ResponseCtx { request, response, plan: &mut *plan, notes };
        if self.site.policy.response(&mut policy_ctx) != BackendResponse::Deliver {
            plan.refuse(NotStored::Program, status);
        }
    }

    /// Changes `plan` as the subroutine wishes, as far as the rules permit. Returns what is not
    /// granted, in words for the log.
    fn grant(
        &self,
        fetch: &Fetch,
        response: &Response,
        said: &AccelDirectives,
        times: ExchangeTimes,
        wish: Wish,
        plan: &mut StorePlan,
    ) -> Option<String> {
        let status = response.status;
        if let Err(why) = plan.verdict() {
            let wants_store = wish.ttl_ms.is_some_and(|ttl_ms| ttl_ms > 0);
            return wants_store.then(|| refused(why));
        }
        if wish.uncacheable || wish.ttl_ms == Some(0) {
            plan.refuse(NotStored::Program, status);
            return None;
        }
        // What it has added to the head may keep others from it.
        let anew = self.plan_anew(fetch, response, said, times, wish.ttl_ms);
        if let Err(
            why @ (NotStored::SetCookie
            | NotStored::Private
            | NotStored::NoStore
            | NotStored::VaryAny),
        ) = anew.verdict()
        {
            plan.refuse(why, status);
            return None;
        }
        if let Some(ttl_ms) = wish.ttl_ms {
            plan.lifetime_ms = plan.age_ms.saturating_add(ttl_ms);
            plan.source = LifetimeSource::Rule;
        }
        self.set_grace(wish, plan);
        None
    }

    fn set_grace(&self, wish: Wish, plan: &mut StorePlan) {
        if let Some(grace_ms) = wish.grace_ms.filter(|_| !plan.never_stale) {
            plan.grace_ms = grace_ms;
        }
    }

    /// The plan for the head as it is now, with this lifetime if it states none.
    fn plan_anew(
        &self,
        fetch: &Fetch,
        response: &Response,
        said: &AccelDirectives,
        times: ExchangeTimes,
        ttl_ms: Option<u64>,
    ) -> StorePlan {
        let mut judged = self.site.policy.judged_head(&self.notes, response);
        hear(&mut judged, said);
        judged.ruled_ttl = ttl_ms.map(|ttl_ms| (ttl_ms, BY_VCL)).or(judged.ruled_ttl);
        let rules = self.site.policy.store_rules(&self.notes);
        store::plan(&fetch.request, self.notes.personal, &judged, times, rules)
    }
}

/// The names in Vary, in lower case.
fn varying(headers: &HeaderBlock) -> Vec<Vec<u8>> {
    members(headers.values(HeaderId::Vary)).map(<[u8]>::to_ascii_lowercase).collect()
}

/// Returns true if variants of a response cannot be told apart by clients' requests: its Vary names
/// a field that `vcl_backend_fetch` has changed, or has lost a name that it came with.
fn is_of_another_request(extra: &ExtraFetch, came: &[Vec<u8>], headers: &HeaderBlock) -> bool {
    let left = varying(headers);
    let is_lost = |name: &Vec<u8>| !left.contains(name) && name != b"accept-encoding";
    came.iter().any(is_lost) || came.iter().chain(&left).any(|name| extra.has_changed(name))
}

/// Fields with directives for caches.
const DIRECTIVES: [HeaderId; 3] =
    [HeaderId::CacheControl, HeaderId::CdnCacheControl, HeaderId::SurrogateControl];

/// A stored response that a 304 confirms. Its head may have directives and dates of the VCL, which
/// are for clients: they lengthen no time, and lift no restriction, of the response as it came.
pub(super) struct StoredResponse<'a> {
    old: &'a Record,
    /// The fields of the 304.
    fields: &'a HeaderBlock,
    /// All directives of the merged head are the 304's own.
    directs: bool,
}

impl<'a> StoredResponse<'a> {
    /// The response `old`, whose head and the `fields` of a 304 are `merged`.
    pub(super) fn new(old: &'a Record, fields: &'a HeaderBlock, merged: &HeaderBlock) -> Self {
        let mut left = DIRECTIVES.iter().filter(|id| merged.contains(**id)).peekable();
        let directs = left.peek().is_some() && left.all(|id| fields.contains(*id));
        Self { old, fields, directs }
    }

    /// Keeps the `plan` for the merged head within times and restrictions of the stored response,
    /// as far as neither the 304 nor a rule says otherwise.
    fn restrict(&self, plan: &mut StorePlan) {
        let is_said = match plan.source {
            LifetimeSource::Rule | LifetimeSource::Setting => true,
            LifetimeSource::Expires => self.fields.contains(HeaderId::Expires),
            LifetimeSource::Heuristic => self.fields.contains(HeaderId::LastModified),
            _ => self.directs,
        };
        if !is_said {
            plan.lifetime_ms = plan.lifetime_ms.min(self.old.lifetime_ms());
        }
        if self.directs {
            return;
        }
        let flags = self.old.flags();
        plan.shared &= flags.shared;
        plan.must_validate |= flags.must_validate;
        plan.never_stale |= flags.never_stale;
        for (span_ms, old_ms) in [
            (&mut plan.grace_ms, self.old.grace_ms()),
            (&mut plan.stale_if_error_ms, self.old.stale_if_error_ms()),
            (&mut plan.stale_if_unreachable_ms, self.old.stale_if_unreachable_ms()),
        ] {
            *span_ms = if flags.never_stale { 0 } else { old_ms.min(*span_ms) };
        }
    }
}

/// Changes that the subroutine wishes.
#[derive(Clone, Copy)]
struct Wish {
    /// The lifetime from now on, if it was set; 0 if the response is not to be used again.
    ttl_ms: Option<u64>,
    grace_ms: Option<u64>,
    uncacheable: bool,
}

impl Wish {
    /// It gives a time to a response that may be stored.
    fn is_for_time(&self) -> bool {
        !self.uncacheable && self.ttl_ms.is_some_and(|ttl_ms| ttl_ms > 0)
    }

    fn of(before: &BerespState, after: &BerespState) -> Self {
        let changed = |before: f64, after: f64| (before != after).then(|| milliseconds(after));
        Self {
            ttl_ms: changed(before.ttl, after.ttl),
            grace_ms: changed(before.grace, after.grace),
            uncacheable: after.uncacheable && !before.uncacheable,
        }
    }
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.0, LONGEST_S) * 1000.0) as u64
}

/// The response as the subroutine first sees it.
fn shown(plan: &StorePlan, response: &Response, times: ExchangeTimes) -> BerespState {
    let seconds = |ms: u64| ms as f64 / 1000.0;
    // It may be stored if it gets a time.
    let uncacheable = plan.verdict().is_err_and(|why| why != NotStored::NoLifetime);
    BerespState {
        status: response.status.code(),
        ttl: seconds(plan.lifetime_ms) - seconds(plan.age_ms),
        grace: seconds(plan.grace_ms),
        keep: seconds(plan.stale_if_error_ms),
        age: seconds(plan.age_ms),
        uncacheable,
        time: seconds(times.response_ms),
        was_304: false,
        ..BerespState::default()
    }
}

fn refused(why: NotStored) -> String {
    format!("beresp.ttl has no effect, the response is not stored ({why}): {}", why.rule())
}
