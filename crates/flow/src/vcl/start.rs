//! The way of a request into its site's program, and on after it had to wait.

use std::rc::Rc;
use std::sync::Arc;

use base::Now;
use message::Request;
use vcl::counts::Count;
use vcl::program::Instance;
use vcl::rules::heads::has_body;

use super::call::{Acting, Env};
use super::step::Step;
use crate::assemble::assemble;
use crate::state::ask::Front;
use crate::state::assemble::Within;
use crate::state::client::Client;
use crate::state::core::Core;
use crate::state::live::{LiveRef, Site};
use crate::state::vcl::halt::Halt;
use crate::state::vcl::waiting::Waiting;
use crate::state::vcl::{Line, Turn};
use crate::way::{Slow, Start, Way};

/// Takes a request as far as it goes without waiting, in the program `instance`.
pub(crate) fn start(
    core: &Rc<Core>,
    (live, site, instance): (&LiveRef, &Arc<Site>, &Arc<Instance>),
    asked: &Request,
    client: &Client<'_>,
    (now, for_peer): (Now, bool),
) -> Start {
    let made = client.line.is_none().then(|| Line::of(client.peer));
    let line = client.line.or(made.as_ref()).expect("one of the two is there");
    let front = Front::of(client.account);
    begin(core, (live, site, instance), (asked, front), (line, None), (now, for_peer))
}

/// Takes a fragment of a page as far as it goes without waiting.
pub(crate) fn start_fragment(
    core: &Rc<Core>,
    place: (&LiveRef, &Arc<Site>, &Arc<Instance>),
    asked: &Request,
    within: &Rc<Within>,
    now: Now,
) -> Start {
    core.counts().inc(Count::EsiReq);
    let made = within.top.line.is_none().then(|| Line::of(within.top.peer));
    let line = within.top.line.as_ref().or(made.as_ref()).expect("one of the two is there");
    begin(core, place, (asked, Front::of(&within.top.account)), (line, Some(within)), (now, false))
}

fn begin(
    core: &Rc<Core>,
    (live, site, instance): (&LiveRef, &Arc<Site>, &Arc<Instance>),
    (asked, front): (&Request, Front<'_>),
    (line, within): (&Line, Option<&Rc<Within>>),
    (now, for_peer): (Now, bool),
) -> Start {
    let counts = core.counts();
    let env = Env { live, site, asked, front, now, stage: Acting { core, counts } };
    let mut turn = Turn::take_up(&env, instance, line);
    turn.for_peer = for_peer;
    match within {
        Some(within) => {
            turn.state.esi_level = within.level;
            turn.within = Some(Rc::clone(within));
        }
        None => env.count(Count::ClientReq),
    }
    let reads_body = has_body(asked) && instance.program().uses().body.is_some();
    let recorded = core.recorded();
    let halt = match reads_body {
        true => None,
        false => match turn.advance(&env, Step::Start) {
            Halt::Reply(reply) if core.recorded() == recorded => {
                turn.end(core);
                return match reply.page {
                    None => Start::Reply(reply),
                    Some(_) => assemble(core, reply, None),
                };
            }
            halt => Some(halt),
        },
    };
    Start::Slow(Box::new(Slow {
        live: Rc::clone(live),
        site: Arc::clone(site),
        notes: policy::Notes::default(),
        way: Way::Vcl(Box::new(Waiting { turn, halt, recorded })),
        within: None,
        cookies: None,
        for_peer,
        pass: None,
        user: None,
    }))
}

/// Goes on with a request that must wait.
pub(crate) async fn run(
    waiting: Waiting,
    core: &Rc<Core>,
    (live, site): (&LiveRef, &Arc<Site>),
    asked: &Request,
    front: Front<'_>,
    (body, trace): (Option<cache::Reader>, &Rc<crate::state::trace::Trace>),
) -> crate::state::reply::Reply {
    let stage = Acting { core, counts: core.counts() };
    let mut env = Env { live, site, asked, front, now: core.now(), stage };
    waiting.run(&mut env, body, trace).await
}
