//! Steps of a client's request, as in Varnish's `cache_req_fsm.c`. Each returns the next step. Must
//! never wait: a request that must wait halts with the reason.

use std::sync::Arc;

use cache::{CacheLookup, Object};
use message::HeaderId;
use vcl::counts::Count;
use vcl::ctx::{ReqState, Session, Tag};
use vcl::params::Param;
use vcl::program::Instance;
use vcl::rules::heads;
use vcl::sub::{Action, Sub, SyntheticStatus};

use super::call::{ClientVariables, StepContext, StepHost};
use super::delivery;
use super::loop_detection;
use super::step::{DeliveredResponse, HostHalt, HostStep, RequestStep, said};
use super::stored_object::{self, Age};
use crate::decisions::freshness;
use crate::peers::{self, PeerRefusal};
use crate::state::duty::{Duty, FetchPause};
use crate::state::vcl::halt::{FetchMiss, Halt};
use crate::state::vcl::{LookupResult, ProgramRequest};
use crate::wait::{FetchPart, Role, Verdict};

/// The number of waits for other requests before a request fetches for itself.
const WAITS_MAX: u32 = 10;

impl ProgramRequest {
    /// Takes steps from `step` on until the request must wait or has its reply.
    pub(crate) fn advance<S: StepHost>(
        &mut self,
        env: &StepContext<'_, S>,
        step: HostStep<S>,
    ) -> HostHalt<S> {
        let mut step = step;
        loop {
            step = match step {
                RequestStep::Start => self.receive(env),
                RequestStep::Lookup => self.lookup(env),
                RequestStep::Pause(pause, stale) => return Halt::Pause(pause, stale),
                RequestStep::Hit(object, lead) => self.hit(env, object, lead),
                RequestStep::Miss(missing) => match self.miss(env) {
                    Ok(()) => return Halt::Fetch(missing),
                    Err(step) => {
                        // Waiters look up again.
                        S::refuse(missing.lead);
                        step
                    }
                },
                RequestStep::Pass | RequestStep::Pipe if self.downstream.is_node() => {
                    return Halt::Reply(peers::silent(PeerRefusal::Nothing));
                }
                RequestStep::Pass => match self.pass(env) {
                    Ok(()) => return Halt::Pass,
                    Err(step) => step,
                },
                RequestStep::Pipe => return Halt::Pipe,
                RequestStep::Purge => self.purge(env),
                RequestStep::Restart => {
                    if self.restart(env) {
                        RequestStep::Start
                    } else {
                        self.note_error("Too many restarts");
                        // The reason of an earlier `vcl_synth` stays.
                        let reason = std::mem::take(&mut self.said.reason);
                        RequestStep::Synth(SyntheticStatus { status: 503, reason })
                    }
                }
                RequestStep::Fail => {
                    self.roll_back(env);
                    self.close = true;
                    env.count(Count::VclFail);
                    env.count(Count::ScVclFailure);
                    RequestStep::Synth(said(503, "VCL failed"))
                }
                RequestStep::Synth(said) => {
                    self.said = said;
                    match delivery::synthesize(self, env) {
                        Ok(reply) => return Halt::Reply(reply),
                        Err(step) => step,
                    }
                }
                RequestStep::Deliver(delivered) => match delivery::deliver(self, env, delivered) {
                    Ok(reply) => return Halt::Reply(reply),
                    Err(step) => step,
                },
                RequestStep::Page(draft) => return Halt::Page(draft),
            };
        }
    }

    /// Logs an error of the request.
    pub(crate) fn note_error(&self, text: &str) {
        self.lines.borrow_mut().push((Tag::Error, text.as_bytes().into()));
    }

    /// Logs the reason for which a backend did not respond.
    pub(crate) fn note_fetch_error(&self, text: &str) {
        self.lines.borrow_mut().push((Tag::FetchError, text.as_bytes().into()));
    }

    /// Returns the step after an action that several subroutines may return.
    fn common<L, T>(action: Action) -> RequestStep<L, T> {
        match action {
            Action::Synth(said) => RequestStep::Synth(said),
            Action::Restart => RequestStep::Restart,
            Action::Pass(_) => RequestStep::Pass,
            // The program has logged the reason; the compiler permits no other action.
            _ => RequestStep::Fail,
        }
    }

    fn receive<S: StepHost>(&mut self, env: &StepContext<'_, S>) -> HostStep<S> {
        (self.state.is_hitmiss, self.state.is_hitpass) = (false, false);
        self.found = LookupResult::Nothing;
        self.has_read_disk = false;
        if self.state.restarts == 0 {
            self.prepare(env);
            if loop_detection::loops(env) {
                self.note_error("The request has passed this proxy too often");
                return RequestStep::Synth(said(508, ""));
            }
        }
        let mut action = self.run(env, Sub::Recv, ClientVariables::default());
        if let Action::Vcl(label) = &action {
            if self.state.restarts > 0 {
                self.note_error("Illegal return(vcl): Not after restarts");
                return RequestStep::Synth(said(503, ""));
            }
            let Some(instance) = env.live.vcl.labels.get(label) else { return RequestStep::Fail };
            self.instance = Arc::clone(instance);
            self.switched = Some(u16::try_from(self.ran.len()).unwrap_or(u16::MAX));
            self.prepare(env);
            action = self.run(env, Sub::Recv, ClientVariables::default());
        }
        if let Action::Fail(_) = action {
            return Self::common(action);
        }
        if !matches!(action, Action::Pipe | Action::Pass(_)) {
            self.wash_codings(env);
        }
        // Before key, route and backend request are made, which depend on Host.
        if self.req.headers.value(HeaderId::Host) != env.asked.headers.value(HeaderId::Host) {
            heads::follow_host(&mut self.req);
        }
        if let Err(step) = self.hash(env) {
            return step;
        }
        match action {
            Action::Hash => RequestStep::Lookup,
            Action::Pipe => RequestStep::Pipe,
            Action::Purge => RequestStep::Purge,
            action => Self::common(action),
        }
    }

    /// Prepares `req` for `vcl_recv`.
    fn prepare<S: StepHost>(&mut self, env: &StepContext<'_, S>) {
        self.req.clone_from(env.asked);
        begin_program(&mut self.state, &mut self.session, &self.instance);
        heads::prepare_received(&mut self.req.headers, self.address.as_bytes());
    }

    /// Reduces Accept-Encoding to gzip or none: the only distinction of variants.
    fn wash_codings<S: StepHost>(&mut self, env: &StepContext<'_, S>) {
        if env.live.vcl.params.is_on(Param::HttpGzipSupport) {
            heads::normalize_accept_encoding(&mut self.req.headers);
        }
    }

    fn hash<S: StepHost>(&mut self, env: &StepContext<'_, S>) -> Result<(), HostStep<S>> {
        self.key.clear();
        // Other keys begin with an empty field or `s`.
        self.key.field(vcl::vars::KEY_MARK);
        match self.run(env, Sub::Hash, ClientVariables::default()) {
            Action::Lookup => {
                self.key.finish(&env.host.shared().seed);
                env.host.note_key(self);
                Ok(())
            }
            action => Err(Self::common(action)),
        }
    }

    fn lookup<S: StepHost>(&mut self, env: &StepContext<'_, S>) -> HostStep<S> {
        let found = match self.lent.take() {
            Some(lent) => CacheLookup::Object(lent),
            None => S::find(self, env),
        };
        let CacheLookup::Object(object) = found else { return self.begin(env, None) };
        match stored_object::age(self, env, &object) {
            Age::Fresh if object.flags().hit_for_pass => {
                env.count(Count::CacheHitpass);
                self.state.is_hitpass = true;
                RequestStep::Pass
            }
            Age::Fresh if object.flags().hit_for_miss => self.miss_marked(env, &object),
            Age::Fresh => {
                env.count(Count::CacheHit);
                let is_due = self.is_due(env, &object);
                let lead = is_due.then(|| S::begin_refresh(self, env, &object)).flatten();
                RequestStep::Hit(object, lead)
            }
            _ if object.flags().hit_for_pass => self.begin(env, Some(object)),
            // Though expired, the mark shows that waiting would be in vain.
            Age::Grace if object.flags().hit_for_miss => self.miss_marked(env, &object),
            Age::Grace => {
                env.count(Count::CacheHit);
                env.count(Count::CacheHitGrace);
                let lead = S::begin_refresh(self, env, &object);
                RequestStep::Hit(object, lead)
            }
            Age::Over => self.begin(env, Some(object)),
        }
    }

    /// Returns true if a fresh object is renewed before its end.
    fn is_due<S: StepHost>(&self, env: &StepContext<'_, S>, object: &Object) -> bool {
        let (warmth, now_ms) = (&env.site.warmth, env.now.mono_ms);
        warmth.refresh_ahead.is_some() && {
            let times = freshness(env.live, object, now_ms);
            warmth.is_due(self.key.hash(), object.hits(), &times, now_ms)
        }
    }

    fn miss_marked<S: StepHost>(
        &mut self,
        env: &StepContext<'_, S>,
        mark: &Arc<Object>,
    ) -> HostStep<S> {
        env.count(Count::CacheHitmiss);
        self.state.is_hitmiss = true;
        self.take_on(env, Some(mark), false)
    }

    /// Asks the store which request fetches.
    fn begin<S: StepHost>(
        &mut self,
        env: &StepContext<'_, S>,
        stale: Option<Arc<Object>>,
    ) -> HostStep<S> {
        let coalesce = !self.state.hash_always_miss && !self.state.hash_ignore_busy;
        self.found = match &stale {
            Some(stale) if !stale.flags().is_mark() => LookupResult::Stale,
            _ => LookupResult::Nothing,
        };
        self.take_on(env, stale.as_ref(), coalesce)
    }

    fn take_on<S: StepHost>(
        &mut self,
        env: &StepContext<'_, S>,
        stale: Option<&Arc<Object>>,
        coalesce: bool,
    ) -> HostStep<S> {
        // A request of that very fetch would wait for itself.
        let coalesce = coalesce && !loop_detection::is_awaited_by(env, self.key.hash());
        let rounds = WAITS_MAX.saturating_sub(self.waits);
        // A promoted object is unwanted, or was promoted already.
        let reads_nothing = self.has_read_disk || self.state.hash_always_miss;
        let mut part = FetchPart::new(coalesce, stale.cloned(), rounds).having_read(reads_nothing);
        let role = part.take(
            |options| S::begin(self, env, options),
            // It arrived meanwhile, unless this request refuses stored objects.
            |_, coalesces| {
                if coalesces { Verdict::End(RequestStep::Lookup) } else { Verdict::Replace }
            },
        );
        match role {
            Role::Fetch(Duty { lead, .. }) => {
                env.count(Count::CacheMiss);
                RequestStep::Miss(FetchMiss { lead, stale: stale.cloned() })
            }
            Role::Pause(pause) => {
                match &pause {
                    FetchPause::Disk(_) => self.has_read_disk = true,
                    FetchPause::Fetch(_) => {
                        self.waits += 1;
                        env.count(Count::BusySleep);
                    }
                }
                RequestStep::Pause(pause, stale.cloned())
            }
            Role::End(step) => {
                self.waits += 1;
                step
            }
            Role::Full => {
                env.host.limit(base::Limit::Waiters);
                self.note_error("Too many requests wait for this page (limit: waiters)");
                RequestStep::Synth(said(503, ""))
            }
        }
    }

    fn hit<S: StepHost>(
        &mut self,
        env: &StepContext<'_, S>,
        object: Arc<Object>,
        lead: Option<S::Lead>,
    ) -> HostStep<S> {
        self.found = LookupResult::Hit;
        let action = stored_object::with_obj(env, &object, |obj| {
            self.run(
                env,
                Sub::Hit,
                ClientVariables { obj: Some(obj), ..ClientVariables::default() },
            )
        });
        match action {
            Action::Deliver => {
                if let Some(lead) = lead {
                    env.count(Count::SBgfetch);
                    S::refresh(self, env, lead, &object);
                }
                RequestStep::Deliver(DeliveredResponse::Object { object, reader: None })
            }
            action => {
                if let Some(lead) = lead {
                    S::refuse(lead);
                }
                Self::common(action)
            }
        }
    }

    fn miss<S: StepHost>(&mut self, env: &StepContext<'_, S>) -> Result<(), HostStep<S>> {
        match self.run(env, Sub::Miss, ClientVariables::default()) {
            Action::Fetch => Ok(()),
            action => Err(Self::common(action)),
        }
    }

    fn pass<S: StepHost>(&mut self, env: &StepContext<'_, S>) -> Result<(), HostStep<S>> {
        match self.run(env, Sub::Pass, ClientVariables::default()) {
            Action::Fetch => Ok(()),
            action => Err(Self::common(action)),
        }
    }

    fn purge<S: StepHost>(&mut self, env: &StepContext<'_, S>) -> HostStep<S> {
        if let Err(why) = S::purge(self, env) {
            self.note_error(&why);
            return RequestStep::Fail;
        }
        // A restart fetches anew, even after `vcl_synth`.
        self.state.hash_always_miss = true;
        let action = self.run(env, Sub::Purge, ClientVariables::default());
        Self::common(action)
    }
}

/// Resets the state that another program has set.
pub(super) fn begin_program(state: &mut ReqState, session: &mut Session, instance: &Instance) {
    state.backend_hint = instance.default_backend().clone();
    (state.grace, state.ttl, state.storage) = (None, None, None);
    (state.hash_always_miss, state.hash_ignore_busy) = (false, false);
    (state.hash_ignore_vary, state.no_esi) = (false, false);
    session.identity = None;
}
