//! One core's side of the flow, and the part of a request's way that never waits: receive, key,
//! lookup, and the judgement of what was found.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::clock::System;
use base::{Account, Counter, Counters, KeyBuf, Limits, Now};
use cache::{Begin, BeginOptions, Found, Object, Passage};
use files::{Table, WouldBlock};
use message::{HeaderId, Method, Request, Scheme};
use origin::CorePool;
use policy::{Notes, Peer, ReceiveCtx, ReceiveVerdict};

use crate::client::Client;
use crate::decide::{self, Course, Entry, Next, freshness, select_by};
use crate::deliver;
use crate::fetch;
use crate::files as from_files;
use crate::finish::{CoreLog, Records};
use crate::interims::Interims;
use crate::live::{Live, Shared, Site};
use crate::pages::{self, Problem};
use crate::purge::{Answers, Asked, Outcome, Refusal};
use crate::reply::{Forward, Reply, Served};
use crate::slow::{Slow, Way};
use crate::trace::{Decided, Trace};
use crate::vcl::{self, Turn, counts::Counts};

/// The configuration a request began with, shared cheaply within its core.
pub type LiveRef = Rc<Arc<Live>>;

/// A request and what belongs to it while it is dealt with.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) live: &'a LiveRef,
    pub(crate) site: &'a Arc<Site>,
    pub(crate) request: &'a Request,
    pub(crate) notes: Notes,
    pub(crate) now: Now,
    /// What the connection is to it while it waits.
    pub(crate) front: Front<'a>,
    /// Where it is noted how a request that waits fares.
    pub(crate) trace: Option<&'a Rc<Trace>>,
}

/// What a request's connection is to it while it waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Front<'a> {
    /// Where the client waits for interim responses; none when it knows none (HTTP/1.0).
    pub interims: Option<&'a Rc<Interims>>,
    /// The client's address and ours on that connection.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Bytes of a passing body held for it, where the connection has to share with others; 0 for
    /// the limit `window_bytes`.
    pub window: u64,
    /// For whom it is held.
    pub account: Option<&'a Arc<Account>>,
}

impl Front<'_> {
    /// What a body that passes to the client may hold.
    pub(crate) fn passage(&self, limits: &Limits) -> Passage {
        let bytes = if self.window == 0 { limits.window_bytes } else { self.window };
        Passage { bytes, account: self.account.cloned() }
    }
}

impl Ask<'_> {
    /// Notes something of how the request fares, if it is one that waits.
    pub(crate) fn note(&self, note: impl FnOnce(&Trace)) {
        if let Some(trace) = self.trace {
            note(trace);
        }
    }

    /// Adds to the reply what goes with every one of the site: Strict-Transport-Security, and who
    /// decided.
    pub(crate) fn sign(&self, reply: &mut Reply) {
        sign(reply, self.site, self.notes.rule, self.request.scheme);
    }
}

/// Adds to the reply what goes with every one of `site`.
pub(crate) fn sign(reply: &mut Reply, site: &Site, rule: u32, scheme: Scheme) {
    reply.about.decided = Decided { site: site.number, rule };
    if scheme == Scheme::Https {
        reply.hsts = site.hsts;
    }
}

/// One core's state. Not shared between threads.
pub struct Core {
    /// What all cores share.
    pub shared: Arc<Shared>,
    /// This core's counters.
    pub counters: Arc<Counters>,
    counts: Arc<Counts>,
    /// The memory of a request that has been through a program.
    pub(crate) spare_turn: Cell<Option<Box<Turn>>>,
    pool: RefCell<CorePool>,
    live: RefCell<LiveRef>,
    version: Cell<u64>,
    key: RefCell<KeyBuf>,
    failing: RefCell<HashMap<u64, Failing>>,
    pub(crate) files: RefCell<Table>,
    /// This core's records and what goes with them.
    pub log: CoreLog,
    clock: System,
}

/// A key whose last fetch failed while something stale could stand in for it.
#[derive(Clone, Copy)]
struct Failing {
    /// The origin could not be reached; otherwise it answered with an error.
    unreachable: bool,
    /// When to try again.
    retry_ms: u64,
}

/// How long a failed fetch is not repeated while something stale stands in.
const RETRY_MS: u64 = 1_000;
/// Keys remembered as failing; beyond it they are tried anew by the next request.
const FAILING_MAX: usize = 100_000;

/// What became of a request without waiting.
#[expect(clippy::large_enum_variant, reason = "a hit's reply is moved, never allocated")]
pub enum Start {
    /// Its reply.
    Reply(Reply),
    /// It must wait for an origin: hand the request to [`Slow::run`].
    Slow(Box<Slow>),
}

impl Core {
    /// A core over `shared` that nobody wants records of.
    pub fn new(shared: Arc<Shared>) -> Rc<Self> {
        Self::with_records(shared, &Records::default(), 0)
    }

    /// Core number `index` over `shared`, whose records go to `records`.
    pub fn with_records(shared: Arc<Shared>, records: &Records, index: usize) -> Rc<Self> {
        let counters = shared.counters.register();
        let log = CoreLog::new(records, index, &shared, &counters);
        let version = shared.version.load(Ordering::Acquire);
        let live = shared.live.load_full();
        log.want(shared.wanted());
        Rc::new(Self {
            pool: RefCell::new(pool(&shared, &counters, &live)),
            log,
            clock: System,
            live: RefCell::new(Rc::new(live)),
            version: Cell::new(version),
            key: RefCell::new(KeyBuf::new()),
            failing: RefCell::default(),
            files: RefCell::default(),
            counts: shared.vcl.counts.register(),
            spare_turn: Cell::new(None),
            shared,
            counters,
        })
    }

    /// The configuration in force.
    pub fn live(&self) -> LiveRef {
        let version = self.shared.version.load(Ordering::Acquire);
        if version != self.version.get() {
            let next = self.shared.live.load_full();
            if next.limits != self.live.borrow().limits {
                let pool = self.pool().with_limits(&next.limits);
                *self.pool.borrow_mut() = pool;
            }
            *self.live.borrow_mut() = Rc::new(next);
            self.version.set(version);
            self.log.want(self.shared.wanted());
        }
        Rc::clone(&self.live.borrow())
    }

    /// Grows with every change of [`Core::live`].
    pub fn version(&self) -> u64 {
        self.version.get()
    }

    /// This core's origin connections.
    pub(crate) fn pool(&self) -> CorePool {
        self.pool.borrow().clone()
    }

    /// This core's counters under Varnish's names.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Microseconds of the monotonic clock, for measuring.
    pub fn micros(&self) -> u64 {
        self.clock.micros()
    }

    /// Chores of once a second.
    pub fn sweep(&self, now: Now) {
        // A configuration that was replaced ends here too where no request comes.
        self.live();
        self.sweep_bans(now.mono_ms);
        self.drop_over(now.mono_ms);
        self.log.forget(now.mono_ms);
        // It keeps its program, which may have been discarded.
        drop(self.spare_turn.take());
        self.pool().sweep(now.mono_ms);
        self.files.borrow_mut().sweep(now.mono_ms);
        // Nobody has asked for these for a while: the next who does may well find the origin back.
        let recent = |failure: &Failing| now.mono_ms < failure.retry_ms + 60 * RETRY_MS;
        self.failing.borrow_mut().retain(|_, failure| recent(failure));
    }

    /// Takes a request as far as it goes without waiting, and says on whose behalf it is made.
    pub fn start(
        self: &Rc<Self>,
        live: &LiveRef,
        request: &mut Request,
        client: &Client<'_>,
        now: Now,
    ) -> (Start, Peer) {
        self.counters.inc(Counter::Requests);
        let site = match decide::enter(&self.shared, live, request, client) {
            Entry::Site(site) => site,
            Entry::Challenge(answer) => {
                self.counters.inc(Counter::AcmeChallenges);
                return (Start::Reply(pages::challenge(request, answer)), client.peer);
            }
            Entry::Health => return (Start::Reply(pages::health(request)), client.peer),
            Entry::Refused(problem) => {
                return (Start::Reply(pages::problem(request, problem)), client.peer);
            }
            Entry::Purge(site, read) => {
                return self.start_purge(live, site, request, client.peer, now, read);
            }
        };
        if let Some(instance) = &site.vcl {
            let place = (live, site, instance);
            return (vcl::start(self, place, request, client, now), client.peer);
        }
        let mut notes = Notes::default();
        let mut ctx = ReceiveCtx { request, client: client.peer, now, notes: &mut notes };
        let verdict = site.policy.receive(&mut ctx);
        // Only now is nothing left in its place that the client has sent itself.
        if site.client_auth.is_some() {
            notes.personal |= client.tell(&mut request.headers, site.certificate_fields);
        }
        let ask = Ask { live, site, request, notes, now, front: Front::default(), trace: None };
        let mut start = self.follow(&ask, verdict);
        if let Start::Reply(reply) = &mut start {
            ask.sign(reply);
        }
        (start, notes.client.unwrap_or(client.peer))
    }

    /// Goes the way of a purge, and says who asked.
    fn start_purge(
        self: &Rc<Self>,
        live: &LiveRef,
        site: &Arc<Site>,
        request: &mut Request,
        peer: Peer,
        now: Now,
        read: Result<Asked, Refusal>,
    ) -> (Start, Peer) {
        let asker = site.policy.asker(request, peer);
        let mut notes = Notes::default();
        let start = match read {
            Err(refusal) => Start::Reply(self.refuse_purge(request, refusal)),
            Ok(Asked::Refresh) => {
                self.counters.inc(Counter::Purges);
                make_reader(request);
                let mut ctx = ReceiveCtx { request, client: peer, now, notes: &mut notes };
                let verdict = site.policy.receive(&mut ctx);
                let ask =
                    Ask { live, site, request, notes, now, front: Front::default(), trace: None };
                match verdict {
                    ReceiveVerdict::Lookup if !notes.personal => self.fetch_anew(&ask),
                    verdict => self.follow(&ask, verdict),
                }
            }
            Ok(Asked::Store(order, answers)) => {
                notes.client = Some(asker);
                let ask =
                    Ask { live, site, request, notes, now, front: Front::default(), trace: None };
                Self::slow(&ask, Way::Purge(Box::new(order), answers))
            }
        };
        (start, asker)
    }

    /// Fetches what is asked for, whatever is stored.
    fn fetch_anew(self: &Rc<Self>, ask: &Ask<'_>) -> Start {
        let mut key = KeyBuf::new();
        self.make_key(ask.site, ask.request, &ask.notes, &mut key);
        // What is under way began before.
        self.shared.cache.soft_invalidate(&key, ask.now.mono_ms);
        let old = match self.find(&key, ask.request, ask.now) {
            Found::Object(object) => Some(object),
            Found::HitForMiss | Found::Nothing => None,
        };
        Self::slow(ask, Way::Fetch { key, old })
    }

    /// Does what policy says; files that lie beside the scripts come before both, as nginx's
    /// `try_files` comes before its cache.
    fn follow(self: &Rc<Self>, ask: &Ask<'_>, verdict: ReceiveVerdict) -> Start {
        match &verdict {
            ReceiveVerdict::Files(root) => return self.file(ask, *root),
            ReceiveVerdict::Lookup | ReceiveVerdict::Pass => match from_files::likely(self, ask) {
                Ok(None) => {}
                Ok(Some(reply)) => return Start::Reply(reply),
                Err(WouldBlock) => return Self::slow(ask, Way::Beside(verdict)),
            },
            ReceiveVerdict::Upgrade | ReceiveVerdict::Synth(_) | ReceiveVerdict::Purge => {}
        }
        self.go_on(ask, verdict)
    }

    fn file(&self, ask: &Ask<'_>, root: u32) -> Start {
        let Some(root) = ask.site.files.get(root as usize) else {
            return Start::Reply(pages::problem(ask.request, Problem::NoFile));
        };
        match from_files::look(self, ask, root) {
            Ok(look) => Start::Reply(from_files::answer(ask, &look)),
            Err(WouldBlock) => Self::slow(ask, Way::File(Arc::clone(root))),
        }
    }

    /// What comes after it is known that no file answers.
    pub(crate) fn go_on(self: &Rc<Self>, ask: &Ask<'_>, verdict: ReceiveVerdict) -> Start {
        let request = ask.request;
        match decide::course(ask, verdict) {
            Course::Files(root) => self.file(ask, root),
            Course::Lookup => self.lookup(ask),
            Course::LastHop => Start::Reply(pages::options(request)),
            Course::Pass(reason) => Self::slow(ask, Way::Pass(reason)),
            Course::Upgrade => Self::slow(ask, Way::Upgrade),
            Course::Answer(synthetic) => Start::Reply(pages::synthetic(request, &synthetic)),
            Course::Purge => {
                let objects = self.invalidate(ask.site, request, &ask.notes) as u64;
                let outcome = Outcome { objects, pending: false };
                Start::Reply(self.purged(request, outcome, Answers::Always))
            }
        }
    }

    fn slow(ask: &Ask<'_>, way: Way) -> Start {
        Start::Slow(Box::new(Slow {
            live: Rc::clone(ask.live),
            site: Arc::clone(ask.site),
            notes: ask.notes,
            way,
        }))
    }

    /// The key of a request: scheme, host, port and target of its canonical form, and what policy
    /// adds.
    pub(crate) fn make_key(&self, site: &Site, request: &Request, notes: &Notes, key: &mut KeyBuf) {
        decide::make_key(&self.shared.seed, site, request, notes, key);
    }

    /// Removes what is stored for a request; the result is how many responses that were.
    pub(crate) fn invalidate(&self, site: &Site, request: &Request, notes: &Notes) -> usize {
        let mut key = self.key.borrow_mut();
        self.make_key(site, request, notes, &mut key);
        self.shared.cache.invalidate(&key)
    }

    fn find(&self, key: &KeyBuf, request: &Request, now: Now) -> Found {
        self.shared.cache.lookup(key, &mut select_by(&request.headers), now.mono_ms)
    }

    /// Asks the store who fetches this key now.
    pub(crate) fn begin(
        &self,
        ask: &Ask<'_>,
        key: &KeyBuf,
        coalesce: bool,
        rejected: Option<&Arc<Object>>,
    ) -> Begin {
        let options = BeginOptions { coalesce, rejected };
        let mut select = select_by(&ask.request.headers);
        self.shared.cache.begin(key, &mut select, options, self.now().mono_ms)
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
        let way = match decide::next(ask, found, freshness) {
            Next::Deliver(object, served) => {
                let mut cause = None;
                if served == Served::Stale {
                    cause = self.refresh(ask, &key, &object);
                }
                let mut reply = deliver::stored(ask, &object, served);
                reply.about.key = key.hash();
                reply.about.trace = cause;
                if !reply.is_behind() {
                    return Start::Reply(reply);
                }
                Way::Alone { key: key.clone(), reason: Forward::UriMiss }
            }
            Next::Fetch(Some(object)) => match self.stands_in(ask, &key, &object) {
                Some(cause) => {
                    let mut reply = deliver::stored(ask, &object, Served::StaleOnError);
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
            return Self::slow(ask, way);
        }
        match from_files::page(self, ask) {
            Ok(None) => Self::slow(ask, way),
            Ok(Some(reply)) => Start::Reply(reply),
            Err(WouldBlock) => Self::slow(ask, Way::Page(Box::new(way))),
        }
    }

    /// Whether a stale object answers at once because the origin has just failed; it is tried again
    /// behind the answer, once a second, and the request has a trace then.
    fn stands_in(
        self: &Rc<Self>,
        ask: &Ask<'_>,
        key: &KeyBuf,
        object: &Arc<Object>,
    ) -> Option<Option<Rc<Trace>>> {
        let now_ms = ask.now.mono_ms;
        let mut failing = self.failing.borrow_mut();
        let failure = failing.get_mut(&key.hash())?;
        let freshness = freshness(object);
        let may = match failure.unreachable {
            true => freshness.may_serve_unreachable(now_ms),
            false => freshness.may_serve_on_error(now_ms),
        };
        let due = may && now_ms >= failure.retry_ms;
        if due {
            failure.retry_ms = now_ms + RETRY_MS;
        }
        drop(failing);
        let tried = if due { self.refresh(ask, key, object) } else { None };
        may.then_some(tried)
    }

    /// Notes what a fetch for the store came to: `Some(unreachable)` when it failed.
    pub(crate) fn note_fetch(&self, key_hash: u64, failed: Option<bool>) {
        let mut failing = self.failing.borrow_mut();
        match failed {
            Some(unreachable) if failing.len() < FAILING_MAX => {
                let retry_ms = self.now().mono_ms + RETRY_MS;
                failing.insert(key_hash, Failing { unreachable, retry_ms });
            }
            Some(_) => {}
            None => _ = failing.remove(&key_hash),
        }
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
        fetch::refresh(self, ask, key, (lead, object), cause);
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

/// A core's connections to origins.
fn pool(shared: &Shared, counters: &Arc<Counters>, live: &Live) -> CorePool {
    let (depot, journal) = (Arc::clone(&shared.depot), shared.journal.clone());
    CorePool::with_journal(Arc::clone(counters), &live.limits, depot, journal)
}
