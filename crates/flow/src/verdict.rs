//! Verdict on a response that was stored before, by another node or a former process, and so
//! perhaps by other rules. It judges by the response's fields and the settings in force.

use base::Now;
use cache::Record;
use files::accel::AccelDirectives;
use message::store::{self, NotStored, Permit, Ruling, StorePlan};
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
    let neutral = Request::new();
    let mut plan =
        plan_by(&said, &mut head, |head| store::plan(&neutral, false, head, times, rules));
    let mut policy_ctx = ResponseCtx { request, response: &mut head, plan: &mut plan, notes };
    _ = site.policy.response(&mut policy_ctx);
    plan.renewed_permit()
}

/// The permit to store what no rule forbids.
#[cfg(test)]
pub(crate) fn permit() -> Permit {
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    Permit::by_program(ruling, &message::HeaderBlock::new()).expect("nothing forbids it")
}

/// Makes a plan in which X-Accel-Expires precedes all other fields, as in nginx; it counts like
/// CDN-Cache-Control (RFC 9213), and is neither stored nor sent.
pub(crate) fn plan_by(
    said: &AccelDirectives,
    response: &mut Response,
    plan: impl FnOnce(&Response) -> StorePlan,
) -> StorePlan {
    let Some(lifetime_s) = said.lifetime_s else { return plan(response) };
    let headers = response.headers.clone();
    let value = match lifetime_s {
        0 => "no-store".to_owned(),
        seconds => format!("max-age={seconds}"),
    };
    response.headers.set(HeaderId::CdnCacheControl, value.as_bytes());
    let planned = plan(response);
    response.headers = headers;
    planned
}
