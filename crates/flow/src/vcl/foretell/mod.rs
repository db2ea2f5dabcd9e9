//! What would come of a request in a site's program, without its happening: the steps of
//! [`steps`](super::steps) once more, over a world that only looks on.
//!
//! The subroutines that run are the program's own, so what they return is what they would return.
//! Must never change anything: nothing is counted, fetched, banned, purged or waited for. What an
//! origin would answer is not known, so a fetch is told of as far as `vcl_backend_fetch`.

mod facts;
mod onlooker;
mod rehearsal;

use std::sync::Arc;

use base::{Now, key_fields};
use cache::{Object, Peek};
use message::{HeaderId, Method, Request, Response, Status};
use policy::{Notes, Peer, Step, told::shown};
use vcl::ctx::{BereqState, RespState};
use vcl::params::Param;
use vcl::program::Instance;
use vcl::sub::{Action, Said, Sub};

use super::call::{Seen, seconds};
use super::delivery::{age_at, may_confirm, obj_of, sent_status, usual_reason};
use super::heads::{self, Purpose};
use super::steps::{Age, arrive, begin_program, follow_host, said, wash_codings};
use crate::ask::{Ask, Front, LiveRef};
use crate::explain::{Foreseen, variants};
use crate::key::select_by;
use crate::live::{Shared, Site};
use crate::reply::{Forward, Served};
use rehearsal::Rehearsal;

/// What would come of a request.
pub(crate) struct Foretold {
    pub(crate) foreseen: Foreseen,
    pub(crate) summary: String,
    pub(crate) steps: Vec<Step>,
    /// The request as the program leaves it.
    pub(crate) request: Request,
    /// Hash of its key; 0 when none was made.
    pub(crate) key: u64,
}

/// What it comes to, and that in words; or it begins again.
enum End {
    Told(Foreseen, String),
    Again,
}

/// What would come of `asked`, from `peer`, in the program of `site`.
pub(crate) fn foretell(
    shared: &Shared,
    live: &LiveRef,
    (site, instance): (&Arc<Site>, &Arc<Instance>),
    asked: &Request,
    peer: Peer,
    now: Now,
) -> Foretold {
    let on = Rehearsal::new((shared, live), instance, asked, peer, now);
    let mut teller = Teller { shared, live, site, on };
    let (foreseen, summary) = teller.tell();
    let Rehearsal { steps, req: request, key, .. } = teller.on;
    let key = if key.bytes().is_empty() { 0 } else { key.hash() };
    Foretold { foreseen, summary, steps, request, key }
}

struct Teller<'a> {
    shared: &'a Shared,
    live: &'a LiveRef,
    site: &'a Arc<Site>,
    on: Rehearsal<'a>,
}

impl Teller<'_> {
    fn tell(&mut self) -> (Foreseen, String) {
        let most = self.live.params.number(Param::MaxRestarts);
        loop {
            match self.attempt() {
                End::Told(foreseen, summary) => return (foreseen, summary),
                End::Again if self.on.begins_again(most) => {}
                End::Again => {
                    let why = format!("Too many restarts: parameter `max_restarts` is {most}");
                    self.on.steps.push(Step::new("restart", why));
                    match self.synth(said(503, "")) {
                        End::Told(foreseen, summary) => return (foreseen, summary),
                        // There are none left for `vcl_synth` either.
                        End::Again => return self.unanswered(),
                    }
                }
            }
        }
    }

    fn ask(&self) -> Ask<'_> {
        Ask {
            live: self.live,
            site: self.site,
            request: &self.on.req,
            notes: Notes::default(),
            now: self.on.now,
            front: Front::default(),
            trace: None,
        }
    }

    /// `vcl_recv`, `vcl_hash`, and what follows.
    fn attempt(&mut self) -> End {
        if self.on.state.restarts == 0 {
            self.prepare();
        }
        let mut action = self.on.run(Sub::Recv, Seen::default());
        if let Action::Vcl(label) = &action {
            if self.on.state.restarts > 0 {
                return self.synth(said(503, ""));
            }
            let Some(next) = self.live.labels.get(label) else {
                return self.common(Action::Fail("no such label".into()));
            };
            self.on.instance = Arc::clone(next);
            self.prepare();
            action = self.on.run(Sub::Recv, Seen::default());
        }
        if let Action::Fail(_) = action {
            return self.common(action);
        }
        let plain = !matches!(action, Action::Pipe | Action::Pass(_));
        if plain && self.live.params.is_on(Param::HttpGzipSupport) {
            wash_codings(&mut self.on.req.headers);
        }
        let (host, asked) = (&self.on.req.headers, &self.on.asked.headers);
        if host.value(HeaderId::Host) != asked.value(HeaderId::Host) {
            follow_host(&mut self.on.req);
        }
        if !matches!(action, Action::Hash) {
            self.on.decided();
        }
        self.on.key.clear();
        self.on.key.field(vcl::vars::KEY_MARK);
        match self.on.run(Sub::Hash, Seen::default()) {
            Action::Lookup => self.on.key.finish(&self.shared.seed),
            other => return self.common(other),
        }
        self.tell_key();
        match action {
            Action::Hash => self.lookup(),
            Action::Pipe => self.pipe(),
            Action::Purge => {
                let why = "what is stored under its key would be purged";
                self.on.steps.push(Step::new("purge", why).decisive());
                self.on.state.hash_always_miss = true;
                let action = self.on.run(Sub::Purge, Seen::default());
                match self.common(action) {
                    End::Again => End::Told(Foreseen::Purge, "would purge its URL".to_owned()),
                    End::Told(_, summary) => {
                        End::Told(Foreseen::Purge, format!("would purge its URL, and {summary}"))
                    }
                }
            }
            action => self.common(action),
        }
    }

    fn prepare(&mut self) {
        let on = &mut self.on;
        on.req.clone_from(on.asked);
        begin_program(&mut on.state, &mut on.session, &on.instance);
        arrive(&mut on.req.headers, on.address.as_bytes());
    }

    /// The parts of the key, in a step of their own behind that of `vcl_hash`.
    fn tell_key(&mut self) {
        let parts: Vec<String> = key_fields(self.on.key.bytes())
            .skip(1)
            .map(|part| format!("`{}`", shown(part)))
            .collect();
        let why = match parts.is_empty() {
            true => "hash_data was given nothing".to_owned(),
            false => format!("hash_data: {}", parts.join(", ")),
        };
        let hash = format!("{:016x}", self.on.key.hash());
        self.on.steps.push(Step::new("key", why).fact("hash", hash));
    }

    /// What comes of an action that several subroutines may return.
    fn common(&mut self, action: Action) -> End {
        match action {
            Action::Synth(said) => {
                self.on.decided();
                self.synth(said)
            }
            Action::Restart => End::Again,
            Action::Pass(_) => self.pass(Forward::Bypass),
            _ => {
                self.on.decided();
                self.on.req.clone_from(self.on.asked);
                self.synth(said(503, "VCL failed"))
            }
        }
    }

    fn unanswered(&self) -> (Foreseen, String) {
        let status = Some(Status::INTERNAL_SERVER_ERROR);
        let foreseen = Foreseen::Answer { served: Served::Synthetic, status };
        (foreseen, "would be answered with status 500: vcl_synth failed, too".to_owned())
    }

    fn synth(&mut self, said: Said) -> End {
        let code = if said.status < 100 { 501 } else { said.status };
        let mut response = Response::new(sent_status(code));
        response.reason = match &said.reason {
            Some(reason) => reason.to_vec(),
            None => usual_reason(response.status).to_vec(),
        };
        let most = self.live.params.number(Param::MaxRestarts);
        let time = seconds(self.on.now);
        let mut state = RespState { status: code, time, ..RespState::default() };
        match self.on.run_over(Sub::Synth, None, (&mut response, &mut state)) {
            Action::Restart if u64::from(self.on.state.restarts) <= most => return End::Again,
            Action::Fail(_) => {
                let (foreseen, summary) = self.unanswered();
                return End::Told(foreseen, summary);
            }
            _ => {}
        }
        let status = sent_status(state.status);
        let foreseen = Foreseen::Answer { served: Served::Synthetic, status: Some(status) };
        End::Told(foreseen, format!("would be answered by vcl_synth, with status {status}"))
    }

    fn lookup(&mut self) -> End {
        let peek = self.shared.cache.peek(&self.on.key, &mut select_by(&self.on.req.headers));
        let told = variants(&self.ask(), &peek);
        self.on.steps.extend(told);
        let found = self.found(&peek);
        let Some(object) = found else { return self.begin(&peek, None) };
        let flags = object.flags();
        match age_at(&self.on.state, self.on.now, &object) {
            Age::Fresh if flags.hit_for_pass => {
                let why = "hit-for-pass: a former answer said that requests go past the cache";
                self.on.steps.push(Step::new("mark", why).decisive());
                self.on.state.is_hitpass = true;
                self.pass(Forward::Bypass)
            }
            Age::Fresh | Age::Grace if flags.hit_for_miss => {
                let why = "hit-for-miss: a former answer was uncacheable, so nobody waits for it";
                self.on.steps.push(Step::new("mark", why).decisive());
                self.on.state.is_hitmiss = true;
                self.miss(Forward::HitForMiss, None)
            }
            Age::Fresh => self.hit(&object, Served::Hit),
            Age::Grace if !flags.is_mark() => self.hit(&object, Served::Stale),
            Age::Grace | Age::Over => self.begin(&peek, Some(&object)),
        }
    }

    /// What a lookup would find.
    fn found(&mut self, peek: &Peek) -> Option<Arc<Object>> {
        let state = &self.on.state;
        if state.hash_always_miss {
            let why = "req.hash_always_miss is set: what is stored does not count";
            self.on.steps.push(Step::new("lookup", why).decisive());
            return None;
        }
        if state.hash_ignore_vary {
            let usable = peek.variants.iter().filter(|seen| !seen.is_banned);
            return usable.map(|seen| &seen.object).max_by_key(|o| o.born_ms()).cloned();
        }
        peek.found.map(|at| Arc::clone(&peek.variants[at].object))
    }

    /// Nothing usable is there.
    fn begin(&mut self, peek: &Peek, stale: Option<&Arc<Object>>) -> End {
        if let Some(stale) = stale {
            let step = facts::freshness(self.live, &self.on, stale);
            self.on.steps.push(step);
        }
        let waits = !self.on.state.hash_always_miss && !self.on.state.hash_ignore_busy;
        if peek.is_fetched && waits {
            let foreseen = Foreseen::Fetch { reason: Forward::UriMiss, stale: false, waits: true };
            let why = "somebody fetches it: it would wait for that";
            self.on.steps.push(Step::new("verdict", why).decisive());
            return End::Told(
                foreseen,
                "would wait for another request's fetch of the same".to_owned(),
            );
        }
        let reason = if stale.is_some() { Forward::Stale } else { Forward::UriMiss };
        self.miss(reason, stale)
    }

    fn hit(&mut self, object: &Arc<Object>, served: Served) -> End {
        let step = facts::freshness(self.live, &self.on, object);
        self.on.steps.push(step);
        let obj = obj_of(self.live, self.on.now, object);
        match self.on.run(Sub::Hit, Seen { obj: Some(&obj), ..Seen::default() }) {
            Action::Deliver => {
                self.on.decided();
                self.deliver(object, served)
            }
            action => self.common(action),
        }
    }

    fn deliver(&mut self, object: &Arc<Object>, served: Served) -> End {
        let mut response = facts::head_of(object);
        let mut state = RespState {
            status: response.status.code(),
            time: seconds(self.on.now),
            is_streaming: object.whole().is_none(),
            ..RespState::default()
        };
        let obj = obj_of(self.live, self.on.now, object);
        let action = self.on.run_over(Sub::Deliver, Some(&obj), (&mut response, &mut state));
        if !matches!(action, Action::Deliver) {
            return self.common(action);
        }
        let status = sent_status(state.status);
        let from = match served {
            Served::Stale => "from the cache, stale, while one fetch refreshes it",
            _ => "from the cache",
        };
        let foreseen = Foreseen::Answer { served, status: Some(status) };
        End::Told(foreseen, format!("would be answered {from}, with status {status}"))
    }

    fn miss(&mut self, reason: Forward, stale: Option<&Arc<Object>>) -> End {
        match self.on.run(Sub::Miss, Seen::default()) {
            Action::Fetch => {
                self.on.decided();
                let confirms = stale.is_some_and(|old| may_confirm(old, self.on.now.mono_ms));
                self.fetch(reason, confirms)
            }
            action => self.common(action),
        }
    }

    fn pass(&mut self, reason: Forward) -> End {
        match self.on.run(Sub::Pass, Seen::default()) {
            Action::Fetch => self.fetch(reason, false),
            action => self.common(action),
        }
    }

    fn pipe(&mut self) -> End {
        let (mut bereq, mut state) = self.bereq(Purpose::Pipe);
        match self.on.run_pipe(&mut bereq, &mut state) {
            Action::Pipe => {}
            action => return self.common(action),
        }
        let step = facts::backend(self.live, &state, "asked, and may change the protocol");
        self.on.steps.push(step);
        let why = "would be handed to the backend as it is (pipe)";
        End::Told(Foreseen::Tunnel, why.to_owned())
    }

    fn bereq(&self, purpose: Purpose) -> (Request, BereqState) {
        let mut bereq = self.on.req.clone();
        let gzip = self.live.params.is_on(Param::HttpGzipSupport);
        heads::bereq(&mut bereq, self.on.asked, purpose, gzip);
        if purpose == Purpose::Fetch {
            bereq.method = Method::Get;
        }
        let state = BereqState {
            backend: self.on.state.backend_hint.clone(),
            is_hitmiss: self.on.state.is_hitmiss,
            is_hitpass: self.on.state.is_hitpass,
            time: seconds(self.on.now),
            uncacheable: purpose != Purpose::Fetch,
            ..BereqState::default()
        };
        (bereq, state)
    }

    fn fetch(&mut self, reason: Forward, confirms: bool) -> End {
        let private = matches!(reason, Forward::Bypass);
        let purpose = if private { Purpose::Pass } else { Purpose::Fetch };
        let (mut bereq, mut state) = self.bereq(purpose);
        let foreseen = Foreseen::Fetch { reason, stale: confirms, waits: false };
        match self.on.run_fetch(&mut bereq, &mut state) {
            Action::Fetch => {}
            Action::Error(_) => {
                self.on.decided();
                let why = "would be answered by vcl_backend_error, without a fetch";
                return End::Told(foreseen, why.to_owned());
            }
            _ => {
                self.on.decided();
                let why = "would be answered with status 503: the fetch is given up";
                return End::Told(foreseen, why.to_owned());
            }
        }
        let how = match (private, confirms) {
            (true, _) => "asked for this client alone",
            (false, true) => "asked whether what is stored is still good",
            (false, false) => "asked, once for everybody who waits",
        };
        let step = facts::backend(self.live, &state, how);
        self.on.steps.push(step);
        self.on.steps.push(facts::storing(self.live, private));
        let summary = match reason {
            Forward::Bypass => "would be passed to the backend",
            Forward::HitForMiss => "would be fetched, without waiting for others",
            Forward::Stale => "would be fetched: what is stored is too old",
            _ => "would be fetched: nothing that fits is stored",
        };
        End::Told(foreseen, summary.to_owned())
    }
}
