//! Purges by an operator, and by clients of a program.

use std::rc::Rc;
use std::time::Duration;

use ban::Expression;
use base::Account;
use flow::invalidate::{InvalidationTarget, ResponseSelector, Sites, Url};
use policy::ConnectionPeer;
use rt::simulation::random;
use tokio::time::sleep;

use crate::direct_core::{read_request, reply_to};
use crate::oracle::PurgeScope;
use crate::simulation::Simulation;

/// Longest time that an operator waits for the count of selected objects, in milliseconds.
const COUNT_MS: u64 = 200;

/// Purges at random times.
pub(crate) async fn live(simulation: Rc<Simulation>) {
    let span_ms =
        simulation.plan.pause_ms * simulation.plan.requests / (simulation.plan.purges + 1) + 2;
    for _ in 0..simulation.plan.purges {
        sleep(Duration::from_millis(random(span_ms))).await;
        let number = random(simulation.plan.resources.len() as u64) as usize;
        let site = simulation.plan.resources[number].site;
        match random(4) {
            0 => {
                by_operator(
                    &simulation,
                    PurgeScope::All,
                    InvalidationTarget::Many(ResponseSelector::Everything),
                )
                .await;
            }
            1 if site == 0 => {
                let tag = random(2);
                let tags = vec![format!("t{tag}").into_bytes()];
                by_operator(
                    &simulation,
                    PurgeScope::Tag(tag),
                    InvalidationTarget::Many(ResponseSelector::Tags(tags)),
                )
                .await;
            }
            _ if site == 0 => one(&simulation, number).await,
            turn => by_program(&simulation, number, if turn == 1 { "BAN" } else { "PURGE" }).await,
        }
    }
}

/// Purges a resource of the declared site, by its URL or by an expression.
async fn one(simulation: &Simulation, number: usize) {
    let path = &simulation.plan.resources[number].path;
    let what = if random(2) == 0 {
        InvalidationTarget::Url(Url {
            host: b"d.example".to_vec(),
            port: None,
            target: path.clone().into_bytes(),
            client: ConnectionPeer::Local,
        })
    } else {
        let text = format!("req.url == {path} && req.http.host ~ ^d");
        let expression = Expression::parse(&text).expect("an expression");
        InvalidationTarget::Many(
            ResponseSelector::of_expression(expression).expect("no surrogate keys"),
        )
    };
    by_operator(simulation, PurgeScope::Resource(number), what).await;
}

async fn by_operator(simulation: &Simulation, scope: PurgeScope, what: InvalidationTarget) {
    let purge = simulation.oracle.purge_began(scope);
    let (shared, now) = (&simulation.core.shared, simulation.core.now());
    let one = shared.invalidator.invalidation(what, false, Sites::Every, now);
    match shared.invalidator.invalidate(None, [one], now, COUNT_MS).await {
        Ok(_) => simulation.oracle.purge_answered(purge),
        Err(why) => simulation.oracle.fail(|| format!("a purge was refused: {why}")),
    }
}

async fn by_program(simulation: &Simulation, number: usize, method: &str) {
    let path = &simulation.plan.resources[number].path;
    let text = format!("{method} {path} HTTP/1.1\r\nHost: v.example\r\n\r\n");
    let account = Account::open(simulation.core.shared.cache.memory(), u64::MAX);
    let purge = simulation.oracle.purge_began(PurgeScope::Resource(number));
    let (_, reply) = reply_to(simulation, &mut read_request(&text), &account).await;
    match reply.status.code() {
        200 => simulation.oracle.purge_answered(purge),
        status => simulation.oracle.fail(|| format!("{method} was answered by {status}")),
    }
}
