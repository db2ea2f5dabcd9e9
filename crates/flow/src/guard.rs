//! Limits that a request must pass before it is answered, under both policies: those of its site.
//!
//! They are asked before the policy or the program is, so that a refusal costs little. A request
//! that is to wait for its turn enters its site when that has come: what it held before others
//! might wait for, or have purged meanwhile. Nothing here is asked for purges, fragments of pages,
//! health checks, challenges, and requests of other nodes.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::rate::Stay;
use base::{Counters, Now};
use message::Request;
use policy::{Declared, Notes, Peer};

use crate::ask::{LiveRef, complete, sign};
use crate::client::Client;
use crate::core::Core;
use crate::gate::Visitor;
use crate::live::Site;
use crate::pages;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::throttle::{Throttles, Visit, Word};
use crate::way::{Slow, Start, Way};

/// The word of the limits about a request that goes on.
pub(crate) struct Pass {
    /// The client as limits count it, and its routes.
    visitor: (Peer, (u32, Option<u32>)),
    /// The wait until its turn, after which it is asked how much is under way.
    turn: Option<Duration>,
    stay: Option<Stay>,
    /// The refusal that a dry run has spared it.
    spared: Option<Problem>,
}

impl Core {
    /// Takes a request for a site with limits as far as it goes without waiting.
    #[inline(never)]
    pub(crate) fn start_limited(
        self: &Rc<Self>,
        throttles: &Throttles,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> (Start, Peer) {
        let who = site.policy.client(request, client.peer);
        let visitor = (who, site.policy.routes(request));
        let visit = self.visit(visitor, request, now);
        let mut pass = match throttles.come(&visit, &self.counters) {
            Word::On(turn) => Pass { visitor, turn, stay: None, spared: None },
            Word::Spared(turn, problem) => {
                Pass { visitor, turn, stay: None, spared: Some(problem) }
            }
            Word::Refused(problem) => {
                return (Start::Reply(limited(site, request, problem)), who);
            }
        };
        if pass.turn.is_some() {
            let way = Way::Gate(Visitor::new(None, request, client));
            let slow = Slow::of_page(Rc::clone(live), Arc::clone(site), way);
            let slow = Slow { pass: Some(Box::new(pass)), ..slow };
            return (Start::Slow(Box::new(slow)), who);
        }
        if let Err(problem) = pass.enter(throttles, &visit, &self.counters) {
            return (Start::Reply(limited(site, request, problem)), who);
        }
        let (start, client) = self.enter_site((live, site), request, client, (now, false));
        let start = match start {
            Start::Reply(mut reply) => {
                pass.mark(&mut reply);
                Start::Reply(reply)
            }
            Start::Slow(mut slow) => {
                if pass.stay.is_some() || pass.spared.is_some() {
                    slow.pass = Some(Box::new(pass));
                }
                Start::Slow(slow)
            }
        };
        (start, client)
    }

    fn visit<'a>(
        &'a self,
        (client, routes): (Peer, (u32, Option<u32>)),
        request: &'a Request,
        now: Now,
    ) -> Visit<'a> {
        Visit { seed: &self.shared.seed, request, client, routes, now_ms: now.mono_ms }
    }
}

impl Pass {
    /// Waits for the request's turn.
    ///
    /// # Errors
    /// Too many are under way then.
    pub(crate) async fn wait(
        mut self: Box<Self>,
        core: &Rc<Core>,
        site: &Site,
        request: &Request,
    ) -> Result<Box<Self>, Reply> {
        if let (Some(turn), Some(throttles)) = (self.turn, &site.throttles) {
            rt::time::sleep(turn).await;
            let visit = core.visit(self.visitor, request, core.now());
            self.enter(throttles, &visit, &core.counters)
                .map_err(|problem| limited(site, request, problem))?;
        }
        Ok(self)
    }

    /// Has the request be under way.
    fn enter(
        &mut self,
        throttles: &Throttles,
        visit: &Visit<'_>,
        counters: &Counters,
    ) -> Result<(), Problem> {
        match throttles.enter(visit, counters) {
            Word::On(stay) => self.stay = stay,
            Word::Spared(stay, problem) => {
                (self.stay, self.spared) = (stay, Some(problem));
            }
            Word::Refused(problem) => return Err(problem),
        }
        Ok(())
    }

    /// Has the request be under way until its reply ends, and the log tell what it was spared.
    pub(crate) fn mark(self, reply: &mut Reply) {
        if let Some(stay) = self.stay {
            reply.about.guarded.note_stay(stay);
        }
        if let Some(problem) = self.spared
            && reply.about.trouble.is_none()
        {
            let mut trouble = problem.trouble();
            trouble.error = format!("dry run: {}", trouble.error).into();
            reply.about.trouble = Some(Box::new(trouble));
        }
    }
}

/// The page that refuses a request of `site` that meets a limit.
fn limited(site: &Site, request: &Request, problem: Problem) -> Reply {
    let rule = match problem {
        Problem::TooManyAtOnce { .. } => Declared::CONCURRENT,
        _ => Declared::RATE,
    };
    refusal(site, request, problem, rule)
}

/// The page that refuses a request of `site` by a rule.
pub(crate) fn refusal(site: &Site, request: &Request, problem: Problem, rule: u32) -> Reply {
    let mut reply = pages::problem(request, problem);
    // Its route is not known yet.
    complete(&mut reply, site, request, &Notes::default());
    sign(&mut reply, site, rule, request.scheme);
    reply
}
