//! Forecast of a request in a site's program: the steps of [`steps`](super::steps) on a host that
//! only reports.
//!
//! The program's own subroutines run, so their results are real. Must never change state: nothing
//! is counted, fetched, banned, purged or waited for. A fetch is reported up to
//! `vcl_backend_fetch`, as the backend's response is unknown.

mod facts;
pub(crate) mod rehearsal;

use std::sync::Arc;

use cache::Object;
use message::Request;
use vcl::ctx::{ReqState, Task};
use vcl::program::Instance;
use vcl::rules::heads::Purpose;
use vcl::sub::Action;
use vcl::workspace::Workspace;

use super::call::{StepContext, seconds};
use super::job::{self, BackendRequest};
use super::pipe;
use super::step::{HostHalt, HostStep, RequestStep};
use super::stored_object::may_confirm;
use crate::forecast::disk_candidates;
use crate::forecast::outcome::{Ending, ForecastOutcome};
use crate::stage::Entrant;
use crate::state::duty::FetchPause;
use crate::state::reply::ForwardReason;
use crate::state::request_context::RequestConnection;
use crate::state::shared::SharedState;
use crate::state::site_context::SiteContext;
use crate::state::vcl::halt::FetchMiss;
use crate::state::vcl::{ProgramRequest, VclConnection};
use rehearsal::{Rehearsal, RehearsalContext};

/// The forecast of a request.
pub(crate) struct ProgramForecast {
    pub(crate) outcome: ForecastOutcome,
    pub(crate) summary: String,
    pub(crate) steps: Vec<policy::DecisionStep>,
    /// The request after the program's changes.
    pub(crate) request: Request,
    /// Hash of its key; 0 without a key.
    pub(crate) key: u64,
    /// The page that would be assembled.
    pub(crate) page: Option<Arc<Object>>,
}

type RehearsalHalt<'a> = HostHalt<Rehearsal<'a>>;

/// Forecasts the outcome of `asked` in its site's program.
pub(crate) fn foretell(
    shared: &Arc<SharedState>,
    instance: &Arc<Instance>,
    entrant: &Entrant<'_>,
    asked: &Request,
) -> ProgramForecast {
    let Entrant { site_ctx: SiteContext { live, site }, client, now, .. } = *entrant;
    let host = Rehearsal::new(shared, live, now);
    let env = StepContext {
        live,
        site,
        asked,
        connection: RequestConnection::of(client.account),
        now,
        host,
    };
    let vcl_connection = VclConnection::of(client.peer);
    let mut turn = ProgramRequest::new(instance, &vcl_connection);
    turn.address = vcl_connection.address();
    let limits = &live.limits;
    turn.task = Task::new(limits.vcl_steps, Workspace::of(limits.vcl_workspace_client));
    turn.state = ReqState { time: seconds(now), ..ReqState::default() };
    let (outcome, summary) = go(&mut turn, &env);
    let (outcome, summary) = match env.host.reads_disk.get() {
        true => (reading(outcome), disk_candidates::summary(&summary)),
        false => (outcome, summary),
    };
    let (outcome, summary) = match env.host.purges.get() {
        true => (ForecastOutcome::Purge, format!("would purge its URL, and {summary}")),
        false => (outcome, summary),
    };
    let key = if turn.key.bytes().is_empty() { 0 } else { turn.key.hash() };
    let Rehearsal { steps, last, is_page, .. } = env.host;
    let page = last.into_inner().filter(|object| is_page.get() && object.whole().is_some());
    ProgramForecast { outcome, summary, steps: steps.into_inner(), request: turn.req, key, page }
}

/// The outcome of a request that reads the disk first; `outcome` is that without a find there.
fn reading(outcome: ForecastOutcome) -> ForecastOutcome {
    match outcome {
        ForecastOutcome::Fetch { reason, stale, waits, .. } => {
            ForecastOutcome::Fetch { reason, stale, waits, reads_disk: true }
        }
        _ => ForecastOutcome::Fetch {
            reason: ForwardReason::UriMiss,
            stale: false,
            waits: false,
            reads_disk: true,
        },
    }
}

/// Takes steps until a fetch is needed.
fn go(turn: &mut ProgramRequest, env: &RehearsalContext<'_>) -> Ending {
    let mut step: HostStep<Rehearsal<'_>> = RequestStep::Start;
    loop {
        let halt: RehearsalHalt<'_> = turn.advance(env, step);
        let end = match halt {
            RehearsalHalt::Reply(reply) => Ok(env.host.answered(&reply)),
            RehearsalHalt::Page(mut draft) => {
                env.host.is_page.set(true);
                Ok(env.host.answered(draft.reply()))
            }
            RehearsalHalt::Pause(FetchPause::Fetch(()), _) => {
                let reason = ForwardReason::UriMiss;
                let outcome =
                    ForecastOutcome::Fetch { reason, stale: false, waits: true, reads_disk: false };
                let why = "would wait for another request's fetch of the same";
                Ok((outcome, why.to_owned()))
            }
            RehearsalHalt::Pause(FetchPause::Disk(_), stale) => {
                let ground = match &stale {
                    Some(_) => "what is in memory for it does not answer it",
                    None => "nothing is in memory for it",
                };
                env.host.report(
                    policy::DecisionStep::new("verdict", disk_candidates::verdict(ground))
                        .decisive(),
                );
                env.host.reads_disk.set(true);
                Err(RequestStep::Miss(FetchMiss { lead: (), stale }))
            }
            RehearsalHalt::Fetch(FetchMiss { stale, .. }) => {
                Ok(fetch(turn, env, turn.missed(), stale.as_ref()))
            }
            RehearsalHalt::Pass => Ok(fetch(turn, env, ForwardReason::Bypass, None)),
            RehearsalHalt::Pipe => self::pipe(turn, env),
        };
        match end {
            Ok(end) => return end,
            Err(next) => step = next,
        }
    }
}

/// Forecasts `vcl_pipe` and the following steps.
fn pipe<'a>(
    turn: &mut ProgramRequest,
    env: &RehearsalContext<'a>,
) -> Result<Ending, HostStep<Rehearsal<'a>>> {
    let BackendRequest { head: mut bereq, mut state } = pipe::bereq(turn, env);
    match env.host.run_pipe(turn, env, &mut bereq, &mut state) {
        Action::Pipe => {}
        Action::Synth(said) => return Err(RequestStep::Synth(said)),
        _ => return Err(RequestStep::Fail),
    }
    env.host.report(facts::backend(env.live, &state, "asked, and may change the protocol"));
    let why = "would be handed to the backend as it is (pipe)";
    Ok((ForecastOutcome::Tunnel, why.to_owned()))
}

/// Forecasts a fetch; `stale` is stored and may be confirmed.
fn fetch(
    turn: &mut ProgramRequest,
    env: &RehearsalContext<'_>,
    reason: ForwardReason,
    stale: Option<&Arc<Object>>,
) -> Ending {
    let private = reason == ForwardReason::Bypass;
    let purpose = if private { Purpose::Pass } else { Purpose::Fetch };
    let BackendRequest { head: mut bereq, mut state } = job::bereq(turn, env, purpose, stale);
    let confirms = stale.is_some_and(|old| may_confirm(old, env.now.mono_ms));
    let outcome =
        ForecastOutcome::Fetch { reason, stale: confirms, waits: false, reads_disk: false };
    match env.host.run_fetch(turn, env, &mut bereq, &mut state) {
        Action::Fetch => {}
        Action::Error(_) => {
            let why = "would be answered by vcl_backend_error, without a fetch";
            return (outcome, why.to_owned());
        }
        _ => {
            let why = "would be answered with status 503: the fetch is given up";
            return (outcome, why.to_owned());
        }
    }
    let how = match (private, confirms) {
        (true, _) => "asked for this client alone",
        (false, true) => "asked whether what is stored is still good",
        (false, false) => "asked, once for all waiting requests",
    };
    if !private && job::may_ask_node(turn) {
        env.host.report_sources(job::miss(turn, env, stale));
    }
    env.host.report(facts::backend(env.live, &state, how));
    env.host.report(facts::storing(env.live, private));
    let summary = match reason {
        ForwardReason::Bypass => "would be passed to the backend",
        ForwardReason::HitForMiss => "would be fetched, without waiting for others",
        ForwardReason::Stale => "would be fetched: what is stored is too old",
        _ if env.host.reads_disk.get() => "would be fetched",
        _ => "would be fetched: no stored response fits",
    };
    (outcome, summary.to_owned())
}
