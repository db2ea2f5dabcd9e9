//! Forecast of a stale response that answers for a failing origin.

use std::sync::Arc;

use base::KeyBuf;
use cache::Object;
use origin::ServerStatus;
use policy::DecisionStep;

use super::builder::ForecastBuilder;
use super::lookup::deliver_stored;
use crate::decisions::freshness;
use crate::forecast::outcome::Ending;
use crate::forecast::words::duration;
use crate::state::reply::CacheOutcome;
use crate::state::request_context::RequestContext;

impl ForecastBuilder<'_> {
    /// Forecasts the answer of a stale response whose origin fails: its last fetch has just failed,
    /// or no server is in service. `None` if the request would wait for the origin, or the response
    /// may not answer.
    pub(super) fn failing(
        &mut self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Ending> {
        let now_ms = ctx.now.mono_ms;
        let times = freshness(ctx.live, object, now_ms);
        let failed_ms = self.forecast.shared.failing.foresee(key.hash(), &times, now_ms);
        let failed_for = failed_ms.map(|since_ms| now_ms.saturating_sub(since_ms));
        let origin = &ctx.site.origin(&ctx.notes)?.origin;
        let servers = origin.servers();
        let down_for = down_ms(&servers).map(|since_ms| ctx.now.unix_ms.saturating_sub(since_ms));
        let down_for = down_for.filter(|_| times.may_serve_unreachable(now_ms));
        let for_ms = failed_for.max(down_for)?;
        let last = servers.iter().filter_map(|server| Some((server.last_error.as_ref()?, server)));
        let last = last.max_by_key(|((at_ms, _), _)| *at_ms);
        let last = last.map(|((_, error), server)| format!("{}: {error}", server.name));
        let (name, long) = (origin.name(), duration(for_ms / 1000 * 1000));
        let why = format!(
            "origin `{name}` has failed for {long}: the stored response answers instead, stale"
        );
        let error = last.as_ref().map_or(String::new(), |last| format!(" ({last})"));
        let advice = format!(
            "Mend origin `{name}`, which has failed for {long}{error}. It is tried again behind the \
             answers, and the first that succeeds is stored."
        );
        let in_service = servers.iter().filter(|server| server.down_since_ms.is_none()).count();
        self.forecast.steps.retain(|step| !(step.what == "verdict" && step.decided));
        self.forecast.steps.push(
            DecisionStep::new("verdict", why)
                .decisive()
                .advise(advice)
                .fact("last error", last.unwrap_or_default())
                .fact("servers in service", format!("{in_service} of {}", servers.len())),
        );
        Some(deliver_stored(ctx, object, CacheOutcome::StaleOnError))
    }
}

/// Milliseconds since 1970 when the last server went out of service.
fn down_ms(servers: &[ServerStatus]) -> Option<u64> {
    let since: Option<Vec<u64>> = servers.iter().map(|server| server.down_since_ms).collect();
    since?.into_iter().max()
}
