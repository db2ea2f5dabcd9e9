//! Wait of a program's request: for its fetch, for another request's fetch, or for its own body.

use std::rc::Rc;

use base::Counter;
use bytes::BytesMut;
use cache::Reader;
use tokio::sync::oneshot;
use vcl::counts::Count;

use super::call::StepContext;
use super::fetch::{FetchAbort, ProgramJudge};
use super::job::job;
use super::step::{DeliveredResponse, RequestStep, said};
use crate::fetch::{self, FetchNews, FetchResult, Upload};
use crate::state::duty::Duty;
use crate::state::reply::Reply;
use crate::state::trace::Trace;
use crate::state::vcl::ProgramRequest;
use crate::state::vcl::halt::{FetchMiss, Halt};
use crate::state::vcl::halted_request::HaltedRequest;
use crate::verdict::RevalidationJudge;
use crate::wait::{PauseContext, PauseEnd};

impl HaltedRequest {
    /// Waits for the reply.
    pub(crate) async fn run(
        self,
        env: &mut StepContext<'_>,
        body: Option<Reader>,
        trace: &Rc<Trace>,
    ) -> Reply {
        let late = env.asked.expect_continue && self.continues_late();
        let Self { mut turn, halt, recorded } = self;
        let stream = |reader| Upload::Stream { reader, expects: late, filter: None };
        let mut upload = body.map_or(Upload::None, stream);
        let mut halt = match halt {
            Some(halt) => halt,
            None => {
                keep_body(&mut turn, env, &mut upload).await;
                env.now = env.host.core.now();
                turn.advance(env, RequestStep::Start)
            }
        };
        loop {
            if let Halt::Reply(_) | Halt::Page(_) = halt
                && env.host.core.recorded() != recorded
            {
                env.host.core.shared.invalidator.wait_for_records().await;
            }
            let step = match halt {
                Halt::Reply(reply) => return reply,
                Halt::Page(mut draft) => {
                    draft.reply().about.trace = Some(Rc::clone(trace));
                    return draft.run(env.host.core, env.connection);
                }
                Halt::Pause(pause, stale) => {
                    let (core, trace) = (env.host.core, Some(&**trace));
                    let judge = RevalidationJudge::Program;
                    let request = &turn.req;
                    let context = PauseContext { core, request, judge, trace, patience: None };
                    match context.wait(pause).await {
                        PauseEnd::Read(lent) => {
                            turn.lent = lent;
                            RequestStep::Lookup
                        }
                        PauseEnd::Fetch(Duty { lead, .. }) => {
                            env.count(Count::CacheMiss);
                            RequestStep::Miss(FetchMiss { lead, stale })
                        }
                        // The lookup shows the result.
                        PauseEnd::Waited(_) => {
                            env.count(Count::BusyWakeup);
                            RequestStep::Lookup
                        }
                    }
                }
                Halt::Fetch(missing) => {
                    let job = job(&turn, env, Some(missing), &mut upload, trace);
                    fetched(&mut turn, fetch::start(job).await)
                }
                Halt::Pass => {
                    let job = job(&turn, env, None, &mut upload, trace);
                    fetched(&mut turn, fetch::start(job).await)
                }
                Halt::Pipe => match super::pipe::pipe(&mut turn, env, &mut upload, trace).await {
                    Ok(reply) => return reply,
                    Err(step) => step,
                },
            };
            env.now = env.host.core.now();
            halt = turn.advance(env, step);
        }
    }
}

/// Returns the step that follows a fetch.
fn fetched(
    turn: &mut ProgramRequest,
    news: Result<FetchNews<ProgramJudge>, oneshot::error::RecvError>,
) -> RequestStep {
    let Ok((fetched, report)) = news else {
        // A panic ended it, and is counted there.
        turn.note_error("the fetch ended by a fault of this proxy");
        return RequestStep::Synth(said(503, ""));
    };
    turn.take_report(report);
    RequestStep::Deliver(match fetched {
        FetchResult::Object { object, reader, .. } => {
            DeliveredResponse::Object { object, reader: Some(reader) }
        }
        FetchResult::Confirmed { object, .. } => DeliveredResponse::Object { object, reader: None },
        FetchResult::Passing(passing) => DeliveredResponse::Passing(passing),
        FetchResult::Instead(FetchAbort) => return RequestStep::Synth(said(503, "")),
    })
}

/// Reads the request's body before its program runs, which may use it.
async fn keep_body(turn: &mut ProgramRequest, env: &StepContext<'_>, upload: &mut Upload) {
    let Some(most) = turn.instance.program().uses().body else { return };
    let Upload::Stream { reader, .. } = upload else { return };
    let mut whole = BytesMut::new();
    while let Ok(Some(piece)) = reader.next().await {
        whole.extend_from_slice(&piece);
        if whole.len() as u64 > most {
            env.host.core.counters.inc(Counter::Aborted);
            turn.close = true;
            *upload = Upload::Spent;
            return;
        }
    }
    let body = whole.freeze();
    turn.body = Some(body.clone());
    *upload = Upload::Kept(body);
}
