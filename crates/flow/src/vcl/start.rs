//! Start of a request in its site's program, and its continuation after a wait.

use std::rc::Rc;
use std::sync::Arc;

use cache::Reader;
use message::Request;
use vcl::counts::Count;
use vcl::program::Instance;
use vcl::rules::heads::has_body;

use super::call::{ActingCore, StepContext};
use super::step::RequestStep;
use crate::disposition::{RequestDisposition, Start, WaitingRequest};
use crate::stage::Entrant;
use crate::state::core::CoreState;
use crate::state::reply::Reply;
use crate::state::request_context::RequestConnection;
use crate::state::site_context::SiteContext;
use crate::state::trace::Trace;
use crate::state::vcl::halt::Halt;
use crate::state::vcl::halted_request::HaltedRequest;
use crate::state::vcl::{ProgramRequest, VclConnection};

/// Serves a request in the program `instance` as far as possible without waiting.
pub(crate) fn start(
    core: &Rc<CoreState>,
    instance: &Arc<Instance>,
    entrant: &Entrant<'_>,
    asked: &Request,
) -> Start {
    let Entrant { site_ctx: SiteContext { live, site }, client, now, downstream } = *entrant;
    let made = client.vcl_connection.is_none().then(|| VclConnection::of(client.peer));
    let vcl_connection = client.vcl_connection.or(made.as_ref()).expect("one of the two is there");
    let (connection, counts) = (RequestConnection::of(client.account), core.counts());
    let env = StepContext { live, site, asked, connection, now, host: ActingCore { core, counts } };
    let mut turn = ProgramRequest::take_up(&env, instance, vcl_connection);
    turn.downstream = downstream.clone();
    match downstream.page() {
        Some(context) => {
            env.count(Count::EsiReq);
            turn.state.esi_level = context.level;
        }
        None => env.count(Count::ClientReq),
    }
    let reads_body = has_body(asked) && instance.program().uses().body.is_some();
    let recorded = core.recorded();
    let halt = match reads_body {
        true => None,
        false => match turn.advance(&env, RequestStep::Start) {
            Halt::Reply(reply) if core.recorded() == recorded => {
                turn.end(core);
                return Start::Reply(reply);
            }
            Halt::Page(draft) if core.recorded() == recorded => {
                turn.end(core);
                return Start::page(entrant.site_ctx, draft).begin(core);
            }
            halt => Some(halt),
        },
    };
    Start::Slow(Box::new(WaitingRequest {
        downstream: downstream.clone(),
        ..WaitingRequest::on(
            entrant.site_ctx,
            RequestDisposition::Vcl(Box::new(HaltedRequest { turn, halt, recorded })),
        )
    }))
}

/// Continues a request that must wait.
pub(crate) async fn run(
    waiting: HaltedRequest,
    core: &Rc<CoreState>,
    SiteContext { live, site }: SiteContext<'_>,
    asked: &Request,
    connection: RequestConnection<'_>,
    body: Option<Reader>,
    trace: &Rc<Trace>,
) -> Reply {
    let host = ActingCore { core, counts: core.counts() };
    let mut env = StepContext { live, site, asked, connection, now: core.now(), host };
    waiting.run(&mut env, body, trace).await
}
