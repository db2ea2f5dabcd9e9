//! Requests of sites that have a VCL: Varnish's request and fetch state machines over our store and
//! our origins.
//!
//! Each step runs a subroutine and returns what comes next. Nothing here waits but where a fetch, a
//! waiting list or a request's body does; a hit does not.

mod collect;
pub mod counts;
mod delivery;
mod fetch;
pub(crate) mod foretell;
mod heads;
mod lifetime;
mod line;
pub mod link;
pub(crate) mod note;
mod outside;
mod pipe;
mod random;
mod send;
mod steps;
mod storages;
mod store;
#[cfg(test)]
mod tests;
mod told;
mod turn;
mod wait;
mod world;
mod xids;

use std::rc::Rc;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base::counters::Registry;
use base::{Counters, Limit, Now};
use message::Request;
use parking_lot::Mutex;
use vcl::program::Instance;

pub use line::Line;
pub use outside::Outside;
pub use told::{Ran, Switched, Told};
pub use vcl::ctx::{Connection, Measured, Peer as Owner, Times};
pub use world::{Line as Logged, Sight};
pub use xids::Xids;

use crate::client::Client;
use crate::core::{Core, Front, LiveRef, Start};
use crate::live::Site;
use crate::slow::{Slow, Way};
use steps::{Halt, Step, has_body};
use turn::Env;
pub(crate) use turn::Turn;
pub(crate) use wait::Waiting;

/// What all programs of the daemon share.
#[derive(Default)]
pub struct Common {
    /// The numbers of transactions.
    pub xids: Xids,
    /// Counters under Varnish's names.
    pub counts: counts::Registry,
    /// What VMODs keep for as long as the daemon runs.
    pub memory: vcl::vmod::Shared,
    pub(crate) random: random::Random,
    pub(crate) storages: storages::Turns,
    outside: ArcSwapOption<Box<dyn Outside>>,
    /// Counters of programs that no core runs. Who holds them writes.
    housekeeping: Mutex<Option<Arc<Counters>>>,
}

impl Common {
    /// Has `outside` answer for the world beyond requests.
    pub fn set_outside(&self, outside: Box<dyn Outside>) {
        self.outside.store(Some(Arc::new(outside)));
    }

    /// Counts that a program that no core runs (`vcl_init`) has reached `limit`.
    pub(crate) fn limit(&self, registry: &Registry, limit: Limit) {
        let mut counters = self.housekeeping.lock();
        counters.get_or_insert_with(|| registry.register()).limit(limit);
    }

    pub(crate) fn outside(&self) -> Option<Arc<Box<dyn Outside>>> {
        self.outside.load_full()
    }
}

/// Takes a request as far as it goes without waiting, in the program `instance`.
pub(crate) fn start(
    core: &Rc<Core>,
    (live, site, instance): (&LiveRef, &Arc<Site>, &Arc<Instance>),
    asked: &Request,
    client: &Client<'_>,
    now: Now,
) -> Start {
    let made = client.line.is_none().then(|| Line::of(client.peer));
    let line = client.line.or(made.as_ref()).expect("one of the two is there");
    let counts = core.counts();
    let front = Front::default();
    let env = Env { core, live, site, asked, front, now, counts };
    env.count(counts::Count::ClientReq);
    let mut turn = Turn::take_up(&env, instance, line);
    let reads_body = has_body(asked) && instance.program().uses().body.is_some();
    let halt = match reads_body {
        true => None,
        false => match turn.advance(&env, Step::Start) {
            Halt::Reply(reply) => {
                turn.end(core);
                return Start::Reply(reply);
            }
            halt => Some(halt),
        },
    };
    Start::Slow(Box::new(Slow {
        live: Rc::clone(live),
        site: Arc::clone(site),
        notes: policy::Notes::default(),
        way: Way::Vcl(Box::new(Waiting { turn, halt })),
    }))
}

/// Goes on with a request that must wait.
pub(crate) async fn run(
    waiting: Waiting,
    core: &Rc<Core>,
    (live, site): (&LiveRef, &Arc<Site>),
    asked: &Request,
    front: Front<'_>,
    (body, trace): (Option<cache::Reader>, &Rc<crate::trace::Trace>),
) -> crate::reply::Reply {
    let mut env = Env { core, live, site, asked, front, now: core.now(), counts: core.counts() };
    waiting.run(&mut env, body, trace).await
}
