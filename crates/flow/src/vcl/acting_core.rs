//! Acting core: the host of a program's steps that serves requests.

use std::sync::Arc;

use base::{Counter, Limit, Now};
use cache::{BeginOptions, CacheLookup, Object, Reader, Ticket};
use codec::Coding;
use message::Request;
use observe::DictionaryUse;
use vcl::counts::Count;
use vcl::sub::{Action, Sub};
use vcl::trace::SubroutineRun;

use super::call::{ActingCore, ClientVariables, StepContext, StepHost, seconds};
use super::job;
use super::world::{ProgramWorld, RunReason};
use crate::dictionary::{self, DictionaryAnswer, FormRequester};
use crate::invalidate::{Cause, InvalidationTarget, Sites};
use crate::key::select_by;
use crate::recode::{BodyDecoding, decode_limits};
use crate::state::body::ReplyBody;
use crate::state::invalidate::InvalidationMode;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::shared::SharedState;
use crate::state::tier::Lead;
use crate::state::vcl::ProgramRequest;
use crate::wait::FetchAssignment;

/// The server of a program's run for a client's request.
pub(super) struct ProgramServer<'a> {
    pub(super) shared: &'a Arc<SharedState>,
    pub(super) live: &'a LiveConfiguration,
    pub(super) reason: RunReason<'a>,
    pub(super) now: Now,
}

impl ProgramServer<'_> {
    /// Runs `sub` for the client's request `asked`, and notes that it ran.
    pub(super) fn run(
        self,
        turn: &mut ProgramRequest,
        asked: &Request,
        sub: Sub,
        variables: ClientVariables<'_>,
    ) -> Action {
        let Self { shared, live, reason, now } = self;
        let (loan, body, lines) = turn.lend(asked);
        let world = ProgramWorld::new(shared, live, reason, now, body, lines).asked_by(asked);
        let action = loan.run(sub, &world, seconds(now), variables);
        let lines = turn.lines.get_mut().len();
        turn.ran.push(SubroutineRun::new(sub, action.verb(), turn.task.at, lines));
        action
    }
}

impl StepHost for ActingCore<'_> {
    type Lead = Lead;
    type Ticket = Ticket;

    fn shared(&self) -> &SharedState {
        &self.core.shared
    }

    fn count(&self, count: Count) {
        self.counts.inc(count);
    }

    fn limit(&self, limit: Limit) {
        self.core.counters.limit(limit);
    }

    fn xid(&self) -> u64 {
        self.core.shared.vcl.xids.next()
    }

    fn run(
        turn: &mut ProgramRequest,
        env: &StepContext<'_, Self>,
        sub: Sub,
        variables: ClientVariables<'_>,
    ) -> Action {
        let ActingCore { core, counts } = &env.host;
        let (shared, reason) = (&core.shared, RunReason::Core(counts, &core.counters));
        let server = ProgramServer { shared, live: env.live, reason, now: env.now };
        server.run(turn, env.asked, sub, variables)
    }

    fn is_followed(&self) -> bool {
        self.core.log.is_asked()
    }

    fn find(turn: &ProgramRequest, env: &StepContext<'_, Self>) -> CacheLookup {
        let cache = &env.host.core.shared.cache;
        if turn.state.hash_always_miss {
            CacheLookup::Nothing
        } else if turn.state.hash_ignore_vary {
            cache.newest(&turn.key).map_or(CacheLookup::Nothing, CacheLookup::Object)
        } else {
            cache.lookup(&turn.key, &mut select_by(&turn.req.headers), env.now.mono_ms)
        }
    }

    fn begin(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        options: BeginOptions<'_>,
    ) -> FetchAssignment {
        let cache = &env.host.core.shared.cache;
        let mut select = select_by(&turn.req.headers);
        cache.begin(&turn.key, &mut select, options, env.now.mono_ms).into()
    }

    fn refuse(lead: Lead) {
        lead.refuse(None);
    }

    fn begin_refresh(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        object: &Arc<Object>,
    ) -> Option<Lead> {
        env.host.core.shared.cache.begin_refresh(&turn.key, object)
    }

    fn refresh(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        lead: Lead,
        stale: &Arc<Object>,
    ) {
        job::refresh(turn, env, lead, stale);
    }

    fn purge(turn: &ProgramRequest, env: &StepContext<'_, Self>) -> Result<(), String> {
        let ActingCore { core, counts } = &env.host;
        let target = InvalidationTarget::key(&turn.key);
        let stored = core.shared.invalidator.invalidation(target, false, Sites::Every, env.now);
        let stored = stored.by(Cause::purge(&turn.req));
        let done = core.shared.invalidator.invalidate_at_once(
            Some(env.live),
            [stored],
            env.now,
            InvalidationMode::Beside,
        );
        let outcome = done.map_err(|why| why.to_string())?;
        env.count(Count::NPurges);
        counts.add(Count::NObjPurged, outcome.objects);
        core.counters.inc(Counter::Purges);
        core.counters.add(Counter::InvalidationsRecorded, outcome.recorded.into());
        Ok(())
    }

    fn body(object: &Arc<Object>, reader: Option<Reader>) -> ReplyBody {
        ReplyBody::whole(object, reader)
    }

    fn decode(env: &StepContext<'_, Self>, body: &mut ReplyBody, length: Option<u64>) {
        env.count(Count::NGunzip);
        let decoding = BodyDecoding {
            coding: Coding::Gzip,
            limits: decode_limits(&env.live.limits),
            account: env.connection.account,
            counters: &env.host.core.counters,
        };
        decoding.decode_body(body, length);
    }

    fn seek(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        object: &Arc<Object>,
    ) -> DictionaryAnswer {
        let (core, dictionary_context) = (env.host.core, env.dictionary_context(turn));
        dictionary::note(core, dictionary_context, object);
        dictionary::seek(FormRequester::Request(core), dictionary_context, object)
    }

    fn note_dictionary(env: &StepContext<'_, Self>, used: DictionaryUse) {
        if used == DictionaryUse::Used {
            env.host.core.counters.inc(Counter::DeltasSent);
        }
    }
}
