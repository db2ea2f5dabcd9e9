//! The part of a declared request's way that never waits: receive, key, lookup, and the judgement
//! of what was found. A request of a site with a program turns off to `vcl` at the site.

use std::rc::Rc;
use std::sync::Arc;

use base::{Counter, KeyBuf, Now};
use cache::{Found, Object};
use files::WouldBlock;
use message::{HeaderId, Method, Request};
use policy::{Notes, Peer, ReceiveCtx, ReceiveVerdict};

use crate::assemble::assemble;
use crate::decide::{self, Course, Entry, Next, freshness};
use crate::gate::{Entering, Looked};
use crate::invalidate::{Sites, Target};
use crate::peers::{self, Silence};
use crate::problem::Problem;
use crate::purge::{Answers, Asked, Refusal};
use crate::state::ask::Ask;
use crate::state::assemble::Within;
use crate::state::client::Client;
use crate::state::core::Core;
use crate::state::gate::visitor::Visitor;
use crate::state::gate::{Gates, Guest};
use crate::state::live::{LiveRef, Site};
use crate::state::reply::{Forward, Served};
use crate::state::trace::Trace;
use crate::vcl::start as program;
use crate::way::{Slow, Start, Way};
use crate::{declared, files as from_files, gate, pages};

impl Core {
    /// Takes a request as far as it goes without waiting, and says on whose behalf it is made.
    pub fn start(
        self: &Rc<Self>,
        live: &LiveRef,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> (Start, Peer) {
        if client.secured.is_some_and(|secured| secured.auth().is_some())
            && let Some(begun) = peers::begin(self, request, client)
        {
            return match begun {
                Ok(client) => self.start_for_peer(live, request, &client, now),
                Err(reply) => (Start::Reply(reply), client.peer),
            };
        }
        self.counters.inc(Counter::Requests);
        let site = match decide::enter(&self.shared, live, request, client) {
            Entry::Site(site) => site,
            Entry::Challenge(answer) => {
                self.counters.inc(Counter::AcmeChallenges);
                return (Start::Reply(pages::challenge(request, answer)), client.peer);
            }
            Entry::Health => {
                return (
                    Start::Reply(pages::health(request, live.trust.readiness(now.mono_ms))),
                    client.peer,
                );
            }
            Entry::Refused(problem) => {
                return (Start::Reply(pages::problem(request, problem)), client.peer);
            }
            Entry::Purge(site, read) => {
                return self.start_purge(live, site, request, client, now, read);
            }
        };
        match &site.throttles {
            None => self.enter_site((live, site), request, client, (now, false)),
            Some(limits) => self.start_limited(limits, (live, site), request, client, now),
        }
    }

    /// The same for another node's request, which is answered with what is stored or not at all.
    #[cold]
    fn start_for_peer(
        self: &Rc<Self>,
        live: &LiveRef,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> (Start, Peer) {
        let silent = || Start::Reply(peers::silent(Silence::Nothing));
        let start = match decide::enter(&self.shared, live, request, client) {
            Entry::Site(site) if site.client_auth.is_none() => {
                self.enter_site((live, site), request, client, (now, true)).0
            }
            _ => silent(),
        };
        let start = match start {
            Start::Reply(reply) => Start::Reply(peers::told_only(reply)),
            Start::Slow(slow) if slow.is_past_the_store() => silent(),
            slow @ Start::Slow(_) => slow,
        };
        (start, client.peer)
    }

    /// Goes on with a request for `site`.
    #[inline(always)]
    pub(crate) fn enter_site(
        self: &Rc<Self>,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        client: &Client<'_>,
        (now, for_peer): (Now, bool),
    ) -> (Start, Peer) {
        match &site.gates {
            Some(gates) if !for_peer => self.enter_by(gates, (live, site), request, client, now),
            Some(_) => self.enter_from_peer((live, site), request, client, now),
            None => self.enter_open((live, site), request, client, (now, for_peer), None),
        }
    }

    /// The same with another node's request, which has passed the gates there.
    #[cold]
    fn enter_from_peer(
        self: &Rc<Self>,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> (Start, Peer) {
        let entering = gate::inherit(site, request);
        if let Some(entering) = &entering {
            entering.take_off(request);
        }
        self.enter_open((live, site), request, client, (now, true), entering.as_ref())
    }

    /// The same where not everybody may enter.
    #[inline(never)]
    fn enter_by(
        self: &Rc<Self>,
        gates: &Gates,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> (Start, Peer) {
        let guest = Guest::of(&*site.policy, request, client.peer);
        if site.policy.wants_https(request, guest.scheme) {
            // A password would travel in the clear.
            return (self.answer_outside((live, site), request, client, now), guest.who);
        }
        match self.look((gates, site), request, guest, (&[], now)) {
            Looked::In(entering) => self.enter_as((live, site), request, client, now, entering),
            Looked::Refused(refusal) => (Start::Reply(*refusal), guest.who),
            Looked::Waits(check) => {
                let way = Way::Gate(Visitor::new(Some((check, guest)), request, client));
                let slow = Slow::of_page(Rc::clone(live), Arc::clone(site), way);
                (Start::Slow(Box::new(slow)), guest.who)
            }
        }
    }

    /// Answers a request that goes no further than its site's gates, with what policy itself says
    /// to it: nothing else is in reach here.
    #[cold]
    fn answer_outside(
        self: &Rc<Self>,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> Start {
        let mut notes = Notes::default();
        let mut ctx = ReceiveCtx { request, client: client.peer, now, notes: &mut notes };
        let ReceiveVerdict::Synth(synthetic) = site.policy.receive(&mut ctx) else {
            return Start::Reply(pages::problem(request, Problem::Internal));
        };
        let ask = Ask::new(live, site, (request, notes), now, client.account);
        let mut reply = pages::synthetic(request, &synthetic);
        ask.sign(&mut reply);
        Start::Reply(reply)
    }

    /// Goes on with a request that may enter.
    pub(crate) fn enter_as(
        self: &Rc<Self>,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
        entering: Entering,
    ) -> (Start, Peer) {
        entering.take_off(request);
        let place = (live, site);
        let (mut start, who) =
            self.enter_open(place, request, client, (now, false), Some(&entering));
        if let Some(user) = entering.user {
            match &mut start {
                Start::Reply(reply) => reply.about.guarded.note_user(user),
                Start::Slow(slow) => slow.user = Some(user),
            }
        }
        (start, who)
    }

    /// Goes on with a request, which has passed the gates if there are any.
    #[inline(always)]
    fn enter_open(
        self: &Rc<Self>,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        client: &Client<'_>,
        (now, for_peer): (Now, bool),
        entering: Option<&Entering>,
    ) -> (Start, Peer) {
        if let Some(instance) = &site.vcl {
            let place = (live, site, instance);
            let when = (now, for_peer);
            return (program::start(self, place, request, client, when), client.peer);
        }
        let mut notes = Notes::default();
        self.keep_cookies(site, request);
        let mut ctx = ReceiveCtx { request, client: client.peer, now, notes: &mut notes };
        let verdict = site.policy.receive(&mut ctx);
        // Only now is nothing left in its place that the client has sent itself.
        if site.client_auth.is_some() {
            notes.personal |= client.tell(&mut request.headers, site.certificate_fields);
        }
        if let Some(entering) = entering {
            notes.personal |= entering.tell(request);
        }
        let ask = Ask::new(live, site, (request, notes), now, client.account);
        let ask = Ask { for_peer, ..ask };
        let who = notes.client.unwrap_or(client.peer);
        (self.judged(&ask, verdict), who)
    }

    /// Takes a fragment of a page as far as it goes without waiting.
    pub(crate) fn start_fragment(
        self: &Rc<Self>,
        (live, site): (&LiveRef, &Arc<Site>),
        request: &mut Request,
        (within, now): (&Rc<Within>, Now),
    ) -> Start {
        let client = within.top.peer;
        if let Some(instance) = &site.vcl {
            return program::start_fragment(self, (live, site, instance), request, within, now);
        }
        let mut notes = Notes { client: Some(client), ..Notes::default() };
        self.keep_cookies(site, request);
        let entering = gate::inherit(site, request);
        if let Some(entering) = &entering {
            entering.take_off(request);
        }
        let mut ctx = ReceiveCtx { request, client, now, notes: &mut notes };
        let verdict = site.policy.receive(&mut ctx);
        notes.personal |= within.top.personal;
        if let Some(entering) = &entering {
            notes.personal |= entering.tell(request);
        }
        let ask = Ask::new(live, site, (request, notes), now, &within.top.account);
        let ask = Ask { within: Some(within), ..ask };
        self.judged(&ask, verdict)
    }

    /// Keeps the cookies of a request whose answer may have fragments: policy may take out for the
    /// page what a fragment needs.
    #[inline(always)]
    fn keep_cookies(&self, site: &Site, request: &Request) {
        if site.includes.any() {
            let mut kept = self.cookies.borrow_mut();
            kept.clear();
            kept.extend_from_slice(request.headers.value(HeaderId::Cookie).unwrap_or_default());
        }
    }

    /// Does what policy says, as far as it goes without waiting.
    #[inline(always)]
    fn judged(self: &Rc<Self>, ask: &Ask<'_>, verdict: ReceiveVerdict) -> Start {
        let mut start = self.follow(ask, verdict);
        let mut is_page = false;
        if let Start::Reply(reply) = &mut start {
            ask.sign(reply);
            is_page = reply.page.is_some();
        }
        if is_page {
            start = self.assembled(start);
        }
        start
    }

    /// The page that a reply is put together of.
    #[inline(never)]
    fn assembled(self: &Rc<Self>, start: Start) -> Start {
        let Start::Reply(reply) = start else { return start };
        let cookies = self.cookies.take();
        let start = assemble(self, reply, Some(&cookies));
        // The room is kept for the next request.
        self.cookies.replace(cookies);
        start
    }

    /// Goes the way of a purge, and says who asked.
    fn start_purge(
        self: &Rc<Self>,
        live: &LiveRef,
        site: &Arc<Site>,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
        read: Result<Asked, Refusal>,
    ) -> (Start, Peer) {
        let (peer, account) = (client.peer, client.account);
        let asker = site.policy.asker(request, peer);
        self.keep_cookies(site, request);
        let mut notes = Notes::default();
        let start = match read {
            Err(refusal) => Start::Reply(self.refuse_purge(request, refusal)),
            Ok(Asked::Refresh) => {
                self.counters.inc(Counter::Purges);
                make_reader(request);
                let mut ctx = ReceiveCtx { request, client: peer, now, notes: &mut notes };
                let verdict = site.policy.receive(&mut ctx);
                let ask = Ask::new(live, site, (request, notes), now, account);
                match verdict {
                    ReceiveVerdict::Lookup if !notes.personal => self.fetch_anew(&ask),
                    verdict => self.follow(&ask, verdict),
                }
            }
            Ok(Asked::Store(order, answers)) => {
                notes.client = Some(asker);
                let ask = Ask::new(live, site, (request, notes), now, account);
                self.slow(&ask, Way::Purge(Box::new(order), answers))
            }
        };
        (start, asker)
    }

    /// Fetches what is asked for, whatever is stored.
    fn fetch_anew(self: &Rc<Self>, ask: &Ask<'_>) -> Start {
        let mut key = KeyBuf::new();
        self.make_key(ask.site, ask.request, &ask.notes, &mut key);
        // A fetch under way began before.
        let under_way = self.shared.invalidation(Target::key(&key), true, Sites::Every, ask.now);
        if let Err(why) = self.invalidate(ask, [under_way]) {
            return Start::Reply(self.purge_not_done(ask.request, &why));
        }
        let old = match self.find(&key, ask.request, ask.now) {
            Found::Object(object) => Some(object),
            Found::HitForMiss | Found::Nothing => None,
        };
        self.slow(ask, Way::Fetch { key, old })
    }

    /// Does what policy says; files that lie beside the scripts come before both, as nginx's
    /// `try_files` comes before its cache.
    fn follow(self: &Rc<Self>, ask: &Ask<'_>, verdict: ReceiveVerdict) -> Start {
        match &verdict {
            ReceiveVerdict::Files(root) => return self.file(ask, *root),
            ReceiveVerdict::Lookup | ReceiveVerdict::Pass => match from_files::likely(self, ask) {
                Ok(None) => {}
                Ok(Some(reply)) => return Start::Reply(reply),
                Err(WouldBlock) => return self.slow(ask, Way::Beside(verdict)),
            },
            ReceiveVerdict::Upgrade | ReceiveVerdict::Synth(_) | ReceiveVerdict::Purge => {}
        }
        self.go_on(ask, verdict)
    }

    fn file(self: &Rc<Self>, ask: &Ask<'_>, root: u32) -> Start {
        let Some(root) = ask.site.files.get(root as usize) else {
            return Start::Reply(pages::problem(ask.request, Problem::NoFile));
        };
        match from_files::look(self, ask, root) {
            Ok(look) => Start::Reply(from_files::answer(Some(self), ask, &look)),
            Err(WouldBlock) => self.slow(ask, Way::File(Arc::clone(root))),
        }
    }

    /// Takes the step that follows `verdict`, once it is known that no file answers.
    pub(crate) fn go_on(self: &Rc<Self>, ask: &Ask<'_>, verdict: ReceiveVerdict) -> Start {
        let request = ask.request;
        match decide::course(ask, verdict) {
            Course::Files(root) => self.file(ask, root),
            Course::Lookup => self.lookup(ask),
            Course::LastHop => Start::Reply(pages::options(request)),
            Course::Pass(reason) => self.slow(ask, Way::Pass(reason)),
            Course::Upgrade => self.slow(ask, Way::Upgrade),
            Course::Answer(synthetic) => Start::Reply(pages::synthetic(request, &synthetic)),
            Course::Purge => {
                let stored = self.removal(ask.site, request, &ask.notes, ask.now);
                match self.invalidate(ask, [stored]) {
                    Ok(outcome) => {
                        let reply = self.purged(request, outcome, Answers::Always);
                        match outcome.recorded {
                            true => self.slow(ask, Way::Recorded(Box::new(reply))),
                            false => Start::Reply(reply),
                        }
                    }
                    Err(why) => Start::Reply(self.purge_not_done(request, &why)),
                }
            }
        }
    }

    fn slow(&self, ask: &Ask<'_>, way: Way) -> Start {
        Start::Slow(Box::new(Slow {
            live: Rc::clone(ask.live),
            site: Arc::clone(ask.site),
            notes: ask.notes,
            way,
            within: ask.within.cloned(),
            cookies: ask.site.includes.any().then(|| self.cookies.borrow().as_slice().into()),
            for_peer: ask.for_peer,
            pass: None,
            user: None,
        }))
    }

    fn lookup(self: &Rc<Self>, ask: &Ask<'_>) -> Start {
        let mut key = self.key.borrow_mut();
        self.make_key(ask.site, ask.request, &ask.notes, &mut key);
        let found = self.find(&key, ask.request, ask.now);
        // Of what has no suffix it shows only here that it is a file.
        if !matches!(found, Found::Object(_))
            && let Some(reply) = from_files::known(self, ask)
        {
            return Start::Reply(reply);
        }
        let way =
            match decide::next(ask, found, |object| freshness(ask.live, object, ask.now.mono_ms)) {
                Next::Deliver(object, served) => {
                    let mut cause = None;
                    if served == Served::Stale {
                        cause = self.refresh(ask, &key, &object);
                    }
                    let mut reply = declared::stored(Some(self), ask, &object, served);
                    reply.about.key = key.hash();
                    reply.about.trace = cause;
                    if !reply.is_to_be_fetched(ask.request) {
                        return Start::Reply(reply);
                    }
                    match object.is_live() {
                        true => Way::Alone { key: key.clone(), reason: Forward::UriMiss },
                        // The disk has it no more, and nobody finds it.
                        false => Way::Fetch { key: key.clone(), old: None },
                    }
                }
                Next::Fetch(Some(object)) => match self.stands_in(ask, &key, &object) {
                    Some(cause) => {
                        let mut reply =
                            declared::stored(Some(self), ask, &object, Served::StaleOnError);
                        reply.about.key = key.hash();
                        reply.about.trace = cause;
                        return Start::Reply(reply);
                    }
                    None => Way::Fetch { key: key.clone(), old: Some(object) },
                },
                Next::Fetch(None) => Way::Fetch { key: key.clone(), old: None },
                Next::Pass => Way::Pass(Forward::Bypass),
                Next::Alone(reason) => Way::Alone { key: key.clone(), reason },
            };
        drop(key);
        if matches!(way, Way::Pass(_)) {
            return self.slow(ask, way);
        }
        match from_files::page(self, ask) {
            Ok(None) => self.slow(ask, way),
            Ok(Some(reply)) => Start::Reply(reply),
            Err(WouldBlock) => self.slow(ask, Way::Page(Box::new(way))),
        }
    }

    /// Returns `Some` if a stale object answers at once because the origin has just failed. The
    /// object is fetched again behind the answer, once a second; the inner value is the request's
    /// trace then.
    fn stands_in(
        self: &Rc<Self>,
        ask: &Ask<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Option<Rc<Trace>>> {
        let due = self.shared.failing.stands_in(
            key.hash(),
            &freshness(ask.live, object, ask.now.mono_ms),
            ask.now.mono_ms,
        )?;
        Some(if due { self.refresh(ask, key, object) } else { None })
    }

    /// Starts the one background fetch of a stale object, unless it runs already; the result is
    /// the trace of the request that caused it, which knows its number.
    fn refresh(
        self: &Rc<Self>,
        ask: &Ask<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Rc<Trace>> {
        let lead = self.shared.cache.begin_refresh(key, object)?;
        let cause = self.log.number();
        declared::refresh(self, ask, key, (lead, object), cause);
        Some(Trace::numbered(cause))
    }
}

/// Makes a request by which a page is to be made anew that of a reader who asks for the page.
fn make_reader(request: &mut Request) {
    request.method = Method::Get;
    for id in [HeaderId::CacheControl, HeaderId::Pragma, HeaderId::Authorization] {
        request.headers.remove(id);
    }
}
