//! Limits that a request must pass before it is answered, under both policies: those of its site.
//!
//! They are asked before the policy or the program is, so that a refusal costs little. A request
//! that is to wait for its turn enters its site when that has come: what it held before others
//! might wait for, or have purged meanwhile. Nothing here is asked for purges, fragments of pages,
//! health checks, challenges, and requests of other nodes.

use std::rc::Rc;
use std::sync::Arc;

use base::Now;
use message::Request;
use policy::Peer;

use crate::pass::{Pass, limited};
use crate::state::client::Client;
use crate::state::core::Core;
use crate::state::gate::visitor::Visitor;
use crate::state::live::{LiveRef, Site};
use crate::throttle::{Throttles, Word};
use crate::way::{Slow, Start, Way};

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
}
