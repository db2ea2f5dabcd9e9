//! The way of a request that must wait: for another request's fetch, or for its own.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, KeyBuf, Limit};
use cache::{Begin, Lead, Object, Reader, Ticket, Waited};
use message::Request;
use policy::ReceiveVerdict;

use crate::ask::{Ask, Front};
use crate::core::Core;
use crate::decide::{Judgement, freshness, goes_alone, judge, refusal};
use crate::declared::{self, ByPolicy, Instead};
use crate::fetch::{self, Fetch, Fetched, Upload};
use crate::files as from_files;
use crate::key::select_by;
use crate::pages::{self, Problem};
use crate::purge::{Answers, Order, Share};
use crate::reply::{Forward, Reply, Served};
use crate::trace::Trace;
use crate::wait;
use crate::way::{Slow, Start, Way};

/// The number of fetches of others that a request waits for before it fetches for itself, if none
/// of them gave a response that it can use.
const WAITS_MAX: u32 = 3;

impl Slow {
    /// Waits for the reply. `body` is the request's body, which the connection feeds meanwhile.
    pub async fn run(
        self,
        core: &Rc<Core>,
        request: &Request,
        body: Option<Reader>,
        front: Front<'_>,
    ) -> Reply {
        let (live, site, notes) = (Rc::clone(&self.live), Arc::clone(&self.site), self.notes);
        let now = core.now();
        let trace = Rc::new(Trace::default());
        let way = Some(&trace);
        let ask = Ask { live: &live, site: &site, request, notes, now, front, trace: way };
        if let Way::Vcl(waiting) = self.way {
            let place = (&live, &site);
            let parts = (body, &trace);
            // Boxed: other requests that wait need not be as large.
            let run =
                Box::pin(crate::vcl::start::run(*waiting, core, place, request, front, parts));
            let mut reply = run.await;
            reply.about.trace = Some(trace);
            return reply;
        }
        let mut reply = self.answer(core, &ask, body).await;
        ask.sign(&mut reply);
        reply.about.key = trace.key.get();
        reply.about.trace = Some(trace);
        reply
    }

    async fn answer(self, core: &Rc<Core>, ask: &Ask<'_>, body: Option<Reader>) -> Reply {
        let request = ask.request;
        match self.way {
            Way::File(root) => {
                let look = from_files::look_on(core, ask, &root).await;
                from_files::answer(ask, &look)
            }
            Way::Beside(verdict) => match look_beside(core, ask, verdict).await {
                Start::Reply(reply) => reply,
                Start::Slow(slow) => Box::pin(slow.answer(core, ask, body)).await,
            },
            Way::Page(way) => match from_files::page_on(core, ask).await {
                Some(reply) => reply,
                None => Box::pin(Self { way: *way, ..self }.answer(core, ask, body)).await,
            },
            Way::Purge(order, answers) => purge(core, ask, *order, answers).await,
            // Taken out before.
            Way::Vcl(_) => pages::problem(request, Problem::Internal),
            _ if let Some(problem) = refusal(request, ask.live) => pages::problem(request, problem),
            Way::Pass(reason) => {
                fetch_own(core, ask, ByPolicy::pass(core, ask), reason, body).await
            }
            Way::Upgrade => {
                fetch_own(core, ask, ByPolicy::upgrade(core, ask), Forward::Bypass, body).await
            }
            Way::Alone { key, reason } => {
                ask.note(|trace| trace.key.set(key.hash()));
                alone(core, ask, &key, None, reason).await
            }
            Way::Fetch { key, old } => {
                ask.note(|trace| trace.key.set(key.hash()));
                shared(core, *ask, &key, old).await
            }
        }
    }
}

/// Carries a purge out, and says what it hit.
async fn purge(core: &Rc<Core>, ask: &Ask<'_>, order: Order, answers: Answers) -> Reply {
    let done = match order {
        Order::Url { target, soft } => core.purge_url(ask, &target, soft).await,
        Order::Many { what, soft } => {
            let sites = vec![ask.site.number];
            core.purge_shares(ask, vec![Share { what, soft, sites }]).await
        }
        Order::Shared(shares) => core.purge_shares(ask, shares).await,
        Order::List => {
            let names = core.shared.list(ask.live, ask.site).await;
            core.counters.inc(Counter::Purges);
            return pages::listed(ask.request, &names);
        }
    };
    match done {
        Ok(outcome) => core.purged(ask.request, outcome, answers),
        Err(why) => core.purge_not_done(ask.request, &why),
    }
}

/// Looks for a file beside the scripts, and goes on as policy said when there is none.
async fn look_beside(core: &Rc<Core>, ask: &Ask<'_>, verdict: ReceiveVerdict) -> Start {
    if let Some(root) = from_files::beside_scripts(ask) {
        let look = from_files::look_on(core, ask, root).await;
        if let Some(reply) = from_files::found(ask, &look) {
            return Start::Reply(reply);
        }
    }
    core.go_on(ask, verdict)
}

/// Takes part in the one fetch of this key: by doing it, or by waiting for who does.
async fn shared(
    core: &Rc<Core>,
    mut ask: Ask<'_>,
    key: &KeyBuf,
    mut old: Option<Arc<Object>>,
) -> Reply {
    let reason = if old.is_some() { Forward::Stale } else { Forward::UriMiss };
    if goes_alone(ask.request, ask.live) {
        return alone(core, &ask, key, old, reason).await;
    }
    for _ in 0..WAITS_MAX {
        match core.begin(&ask, key, true, old.as_ref()) {
            Begin::Lead(lead) => return lead_fetch(core, &ask, key, lead, old, reason).await,
            Begin::Alone(lead) => {
                return alone_with(core, &ask, key, lead, old, Forward::HitForMiss).await;
            }
            Begin::Object(object) => match judge(&ask, &object) {
                Judgement::Deliver(served) => match take(&ask, &object, served) {
                    Some(reply) => return reply,
                    None => break,
                },
                Judgement::Pass => {
                    return fetch_own(
                        core,
                        &ask,
                        ByPolicy::pass(core, &ask),
                        Forward::Bypass,
                        None,
                    )
                    .await;
                }
                Judgement::Private => break,
                Judgement::Fetch => old = Some(object),
            },
            Begin::Wait(ticket) => match wait_for(core, &ask, ticket, old.as_ref()).await {
                Some(Waited::Ready(object)) => {
                    ask.now = core.now();
                    // A ban may have come since that fetch began, and before this request.
                    if core.shared.cache.may_use(&object)
                        && object.matches(&mut select_by(&ask.request.headers))
                        && matches!(judge(&ask, &object), Judgement::Deliver(_))
                    {
                        let stored = object.is_live();
                        let served = Served::Fetched { reason, stored, collapsed: true };
                        match take(&ask, &object, served) {
                            Some(reply) => return reply,
                            None => break,
                        }
                    }
                }
                Some(Waited::Refused) => break,
                ended => {
                    if ended.is_none() {
                        // Until that fetch ends, others need not find out by waiting.
                        core.note_fetch(key.hash(), Some(true));
                    }
                    return match old.filter(|old| stands_in(core, old)) {
                        Some(object) => declared::stored(&ask, &object, Served::StaleOnError),
                        None => pages::problem(ask.request, Problem::SharedFetchFailed),
                    };
                }
            },
            Begin::Full => {
                core.counters.limit(Limit::Waiters);
                return pages::problem(ask.request, Problem::TooManyWaiters);
            }
        }
    }
    alone(core, &ask, key, old, reason).await
}

/// Returns true if `old` may answer for an origin that does not.
fn stands_in(core: &Core, old: &Object) -> bool {
    freshness(old).may_serve_unreachable(core.now().mono_ms)
}

/// Waits for another request's fetch: no longer than the limit says where `old` may answer instead,
/// or else as long as it takes.
async fn wait_for(
    core: &Core,
    ask: &Ask<'_>,
    ticket: Ticket,
    old: Option<&Arc<Object>>,
) -> Option<Waited> {
    let limit = Duration::from_millis(ask.live.limits.wait_timeout);
    let patience = old.filter(|old| stands_in(core, old)).map(|_| limit);
    wait::for_fetch(core, ask.trace.map(|trace| &**trace), ticket, patience).await
}

/// The reply from a stored response; none when its body is one that passes through to others, and
/// began before this request came.
fn take(ask: &Ask<'_>, object: &Arc<Object>, served: Served) -> Option<Reply> {
    let reply = declared::stored(ask, object, served);
    (!reply.is_behind()).then_some(reply)
}

/// Fetches for this request; `old` may stand in for the answer.
async fn alone(
    core: &Rc<Core>,
    ask: &Ask<'_>,
    key: &KeyBuf,
    old: Option<Arc<Object>>,
    reason: Forward,
) -> Reply {
    let begun = core.begin(ask, key, false, None);
    if let Begin::Object(object) = &begun
        && matches!(judge(ask, object), Judgement::Deliver(_))
        && let Some(reply) = take(ask, object, Served::Hit)
    {
        return reply;
    }
    match begun {
        Begin::Alone(lead) | Begin::Lead(lead) => {
            alone_with(core, ask, key, lead, old, reason).await
        }
        // What is stored is not for this request, and stays.
        _ => fetch_own(core, ask, ByPolicy::beside(core, ask, old), reason, None).await,
    }
}

async fn alone_with(
    core: &Rc<Core>,
    ask: &Ask<'_>,
    key: &KeyBuf,
    lead: Lead,
    old: Option<Arc<Object>>,
    reason: Forward,
) -> Reply {
    fetch_own(core, ask, ByPolicy::alone(core, ask, key, lead, old), reason, None).await
}

async fn lead_fetch(
    core: &Rc<Core>,
    ask: &Ask<'_>,
    key: &KeyBuf,
    lead: Lead,
    old: Option<Arc<Object>>,
    reason: Forward,
) -> Reply {
    fetch_own(core, ask, ByPolicy::store(core, ask, key, lead, old), reason, None).await
}

/// Starts a fetch and makes the reply of what comes.
async fn fetch_own(
    core: &Rc<Core>,
    ask: &Ask<'_>,
    (mut fetch, judge): (Fetch, ByPolicy),
    reason: Forward,
    body: Option<Reader>,
) -> Reply {
    fetch.upload = Upload::of(body);
    let fetched = fetch::start(fetch, judge).await;
    let served = |stored| Served::Fetched { reason, stored, collapsed: false };
    let ask = &Ask { now: core.now(), ..*ask };
    let Ok((fetched, ())) = fetched else {
        // The fetch ended by a bug, which ends only the fetch.
        core.counters.inc(Counter::Panics);
        return pages::problem(ask.request, Problem::Internal);
    };
    let instead = match fetched {
        Fetched::Object { object, stored, reader } => {
            return declared::fetched(ask, &object, served(stored), reader);
        }
        Fetched::Confirmed(object) => return declared::stored(ask, &object, Served::Revalidated),
        Fetched::Passing(passing) => return declared::passing(ask, *passing, served(false)),
        Fetched::Instead(instead) => instead,
    };
    match instead {
        Instead::Switched(switched) => declared::switched(ask, *switched, served(false)),
        Instead::File(name) => beside_scripts(core, ask, &name).await,
        Instead::Named(named) => from_files::named(core, ask, &named).await,
        Instead::Synthetic(synthetic) => pages::synthetic(ask.request, &synthetic),
        Instead::Failed(failure) => match failure.stale {
            Some(object) => {
                let mut reply = declared::stored(ask, &object, Served::StaleOnError);
                failure.problem.note(&mut reply.about);
                reply
            }
            None => pages::problem(ask.request, failure.problem),
        },
    }
}

/// The answer from a file that the origin's rules found instead of a script.
async fn beside_scripts(core: &Rc<Core>, ask: &Ask<'_>, name: &[u8]) -> Reply {
    match from_files::beside_scripts(ask) {
        Some(root) => {
            let look = from_files::look_on_at(core, ask, root, name).await;
            from_files::answer(ask, &look)
        }
        None => pages::problem(ask.request, Problem::NoFile),
    }
}
