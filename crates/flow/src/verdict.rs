//! Verdict on a response that was stored before, by another node or a former process, and so
//! perhaps by other rules. It judges by the response's fields and the settings in force.

use base::Now;
use cache::Record;
use files::accel::AccelDirectives;
use message::store::{self, JudgedHead, NotStored, Permit, Ruling};
use message::{HeaderId, Request, Response};
use policy::{Notes, ResponseCtx};

use crate::key::is_internal;
use crate::state::request_context::RequestContext;
use crate::state::site::Site;
use crate::surrogate;

/// The side that judges.
#[derive(Clone, Copy)]
pub(crate) enum RevalidationJudge<'a> {
    /// A site's settings, for this request.
    Declared(&'a Site, &'a Request, &'a Notes),
    /// A program. It judged the response on arrival, and is not run again.
    Program,
}

impl<'a> RevalidationJudge<'a> {
    /// The side that judges for `ctx`.
    pub(crate) fn of(ctx: &'a RequestContext<'_>) -> Self {
        Self::Declared(ctx.site, ctx.request, &ctx.notes)
    }

    /// Judges `record`.
    ///
    /// # Errors
    /// The reason for which the record would not be stored now, and so must not answer.
    pub(crate) fn judge(self, record: &Record, now: Now) -> Result<Permit, NotStored> {
        let is_response = !record.flags().is_mark() && !is_internal(record);
        let head = is_response.then(|| surrogate::whole_head(record));
        let head = head.unwrap_or_else(|| Response::new(record.status()));
        match self {
            Self::Declared(site, request, notes) if is_response => {
                judge_by(site, request, notes, head, now)
            }
            _ => {
                let ruling = Ruling { passed: false, uncacheable: false, findable: true };
                Permit::by_program(ruling, &head.headers).ok_or(NotStored::VaryAny)
            }
        }
    }
}

fn judge_by(
    site: &Site,
    request: &Request,
    notes: &Notes,
    mut head: Response,
    now: Now,
) -> Result<Permit, NotStored> {
    let rules = site.policy.store_rules(notes);
    let times = store::ExchangeTimes { request_ms: now.unix_ms, response_ms: now.unix_ms };
    // X-Accel-Expires is not stored. Where it applies it may have overruled Cache-Control.
    let mut accels = site.origins.iter().filter_map(|own| own.accel.as_ref());
    let expires = accels.any(|accel| accel.expires);
    let said = AccelDirectives { lifetime_s: expires.then_some(1), file: None };
    let mut judged = site.policy.judged_head(notes, &head);
    hear(&mut judged, &said);
    let mut plan = store::plan(&Request::new(), false, &judged, times, rules);
    let sets_cookie = head.headers.contains(HeaderId::SetCookie);
    let mut policy_ctx = ResponseCtx { request, response: &mut head, plan: &mut plan, notes };
    _ = site.policy.response(&mut policy_ctx);
    // The policy would have removed the cookie before, and the record has it.
    if sets_cookie && !head.headers.contains(HeaderId::SetCookie) {
        return Err(NotStored::SetCookie);
    }
    plan.renewed_permit()
}

/// The permit to store what no rule forbids.
#[cfg(test)]
pub(crate) fn permit() -> Permit {
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    Permit::by_program(ruling, &message::HeaderBlock::new()).expect("nothing forbids it")
}

/// Has X-Accel-Expires precede all other fields, as in nginx. It is neither stored nor sent.
pub(crate) fn hear(judged: &mut JudgedHead<'_>, said: &AccelDirectives) {
    if let Some(seconds) = said.lifetime_s {
        judged.state_lifetime(seconds);
    }
}
