//! Rehearsal: the host of steps that runs subroutines without effects and reports what they did.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use base::{Limit, Now, key_fields};
use cache::{BeginOptions, CacheLookup, KeyInspection, Object, Reader};
use message::Request;
use observe::DictionaryUse;
use policy::{DecisionStep, Notes, decision_steps::shown};
use vcl::counts::Count;
use vcl::ctx::{Bereq, BereqState, Ctx};
use vcl::explanation::{changes, describe_action, field_changes, place, text};
use vcl::parse::BUILTIN_NAME;
use vcl::program::{Program, ProgramRole};
use vcl::source::{SourceFile, StatementNumber};
use vcl::sub::{Action, Sub};
use vcl::trace::LogLine;

use super::facts;
use crate::dictionary::{self, DictionaryAnswer, FormRequester};
use crate::forecast::outcome::{Ending, ForecastOutcome};
use crate::forecast::variants;
use crate::forecast::variants::variants;
use crate::key::select_by;
use crate::sources;
use crate::state::body::ReplyBody;
use crate::state::duty::Duty;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::miss::Miss;
use crate::state::reply::{CacheOutcome, Reply};
use crate::state::request_context::RequestContext;
use crate::state::shared::SharedState;
use crate::state::site_context::SiteContext;
use crate::state::vcl::ProgramRequest;
use crate::vcl::call::{ClientVariables, StepContext, StepHost};
use crate::vcl::stored_object::{Age, age};
use crate::vcl::world::{Forecast, ProgramWorld, RunReason};
use crate::wait::FetchAssignment;

/// The host of a rehearsal.
pub(crate) struct Rehearsal<'a> {
    shared: &'a Arc<SharedState>,
    live: &'a LiveConfiguration,
    now: Now,
    forecast: Forecast,
    /// Lines logged since the last step.
    log: RefCell<Vec<LogLine>>,
    pub(crate) steps: RefCell<Vec<DecisionStep>>,
    /// Another request fetches the key of the last lookup.
    is_fetched: Cell<bool>,
    /// The disk may have the key of the last lookup.
    may_be_below: Cell<bool>,
    /// The request would read the disk.
    pub(crate) reads_disk: Cell<bool>,
    /// The response is a page that would be assembled.
    pub(crate) is_page: Cell<bool>,
    /// The object of the last lookup.
    pub(crate) last: RefCell<Option<Arc<Object>>>,
    /// The responses stored under the request's key would be purged.
    pub(crate) purges: Cell<bool>,
    /// Even `vcl_synth` made no response.
    unanswered: Cell<bool>,
}

impl<'a> Rehearsal<'a> {
    pub(crate) fn new(shared: &'a Arc<SharedState>, live: &'a LiveConfiguration, now: Now) -> Self {
        Self {
            shared,
            live,
            now,
            forecast: Forecast::new(live),
            log: RefCell::default(),
            steps: RefCell::default(),
            is_fetched: Cell::new(false),
            may_be_below: Cell::new(false),
            reads_disk: Cell::new(false),
            is_page: Cell::new(false),
            last: RefCell::default(),
            purges: Cell::new(false),
            unanswered: Cell::new(false),
        }
    }

    /// The world of a program that changes nothing.
    fn world(&self) -> ProgramWorld<'_> {
        let runner = RunReason::Forecast(&self.forecast);
        ProgramWorld::new(self.shared, self.live, runner, self.now, None, &self.log)
    }

    /// Adds a step.
    pub(crate) fn report(&self, step: DecisionStep) {
        self.steps.borrow_mut().push(step);
    }

    /// Adds the sources that would be asked before the backend.
    pub(crate) fn report_sources(&self, miss: Miss<'_>) {
        self.steps.borrow_mut().extend(sources::foretell(self.shared, miss));
    }

    /// Returns the outcome of the reply.
    pub(crate) fn answered(&self, reply: &Reply) -> Ending {
        let (served, status) = (reply.served, reply.status);
        let summary = match served {
            _ if self.unanswered.get() => "vcl_synth failed, too".to_owned(),
            CacheOutcome::Stale => "from the cache, stale, while one fetch refreshes it".to_owned(),
            CacheOutcome::Synthetic => "by vcl_synth".to_owned(),
            _ => "from the cache".to_owned(),
        };
        let summary = match self.unanswered.get() {
            true => format!("would be answered with status {status}: {summary}"),
            false => format!("would be answered {summary}, with status {status}"),
        };
        (ForecastOutcome::Answer { served, status: Some(status) }, summary)
    }

    /// Runs `vcl_pipe`.
    pub(crate) fn run_pipe(
        &self,
        turn: &mut ProgramRequest,
        env: &RehearsalContext<'_>,
        bereq: &mut Request,
        state: &mut BereqState,
    ) -> Action {
        let (before, key) = (bereq.clone(), turn.key.clone());
        let variables = Bereq { head: bereq, state, original: Some(&before), key: key.bytes() };
        let action = turn.run(
            env,
            Sub::Pipe,
            ClientVariables { bereq: Some(variables), ..ClientVariables::default() },
        );
        self.report_changes(changes("bereq", &before, bereq));
        action
    }

    /// Runs `vcl_backend_fetch`.
    pub(crate) fn run_fetch(
        &self,
        turn: &mut ProgramRequest,
        env: &RehearsalContext<'_>,
        bereq: &mut Request,
        state: &mut BereqState,
    ) -> Action {
        let (sub, before) = (Sub::BackendFetch, bereq.clone());
        let instance = Arc::clone(&turn.instance);
        let action = instance.run(&mut Ctx {
            sub,
            instance: &instance,
            environment: &self.world(),
            now: env.time(),
            session: &mut turn.session,
            task: &mut turn.task,
            req: None,
            req_top: None,
            bereq: Some(Bereq {
                head: bereq,
                state,
                original: Some(&before),
                key: turn.key.bytes(),
            }),
            beresp: None,
            obj: None,
            resp: None,
            key: None,
        });
        self.report_run(turn, sub, &action, changes("bereq", &before, bereq));
        action
    }

    /// Reports a subroutine that ran.
    fn report_run(&self, turn: &ProgramRequest, sub: Sub, action: &Action, changes: Vec<String>) {
        let program = turn.instance.program();
        let at = turn.task.at.filter(|at| !is_behind_extra(program, *at));
        let why = match at.is_none() && turn.task.at.is_some() {
            true => format!("{} goes on to the site's settings", sub.name()),
            false => format!("{} {}", sub.name(), describe_action(action)),
        };
        let mut step = DecisionStep::new(&sub.name()["vcl_".len()..], why);
        if let Some(at) = at {
            step = step.at(place(program, at).as_ref()).fact("line", text(program, at));
        }
        for (tag, line) in self.log.take() {
            step = step.fact(tag.name(), shown(&line));
        }
        for what in self.forecast.would.take() {
            step = step.fact("would", what);
        }
        step.decided = decides(sub, action);
        self.report(step);
        self.report_changes(changes);
    }

    /// Adds changes to the last step.
    fn report_changes(&self, changes: Vec<String>) {
        if let Some(last) = self.steps.borrow_mut().last_mut() {
            last.facts.extend(changes.into_iter().map(|change| ("changes", change)));
        }
    }

    /// Returns the object that a lookup would find.
    fn found(&self, turn: &ProgramRequest, peek: &KeyInspection) -> Option<Arc<Object>> {
        if turn.state.hash_always_miss {
            let why = "req.hash_always_miss is set: what is stored does not count";
            self.report(DecisionStep::new("lookup", why).decisive());
            return None;
        }
        if turn.state.hash_ignore_vary {
            let usable = peek.variants.iter().filter(|variables| !variables.is_banned);
            return usable.map(|variables| &variables.object).max_by_key(|o| o.born_ms()).cloned();
        }
        peek.found.map(|at| Arc::clone(&peek.variants[at].object))
    }
}

impl StepHost for Rehearsal<'_> {
    type Lead = ();
    type Ticket = ();

    fn shared(&self) -> &SharedState {
        self.shared
    }

    /// Nothing is counted.
    fn count(&self, _: Count) {}

    fn limit(&self, _: Limit) {}

    fn xid(&self) -> u64 {
        0
    }

    fn run(
        turn: &mut ProgramRequest,
        env: &StepContext<'_, Self>,
        sub: Sub,
        mut variables: ClientVariables<'_>,
    ) -> Action {
        let host = &env.host;
        for (_, line) in turn.lines.take() {
            host.report(DecisionStep::new("error", shown(&line)));
        }
        let before = turn.req.clone();
        let resp_before = variables.resp.as_ref().map(|(response, _)| response.headers.clone());
        let resp = variables.resp.as_mut().map(|(response, state)| (&mut **response, &mut **state));
        let (loan, ..) = turn.lend(env.asked);
        let lent = ClientVariables { obj: variables.obj, resp, bereq: variables.bereq };
        let action = loan.run(sub, &host.world(), env.time(), lent);
        host.report_run(turn, sub, &action, changes("req", &before, &turn.req));
        if let Some((before, (response, _))) = resp_before.zip(variables.resp) {
            host.report_changes(field_changes("resp", &before, &response.headers));
        }
        action
    }

    /// Reports the parts of the key.
    fn note_key(&self, turn: &ProgramRequest) {
        let parts: Vec<String> =
            key_fields(turn.key.bytes()).skip(1).map(|part| format!("`{}`", shown(part))).collect();
        let why = match parts.is_empty() {
            true => "hash_data was given nothing".to_owned(),
            false => format!("hash_data: {}", parts.join(", ")),
        };
        self.report(
            DecisionStep::new("key", why).fact("hash", format!("{:016x}", turn.key.hash())),
        );
    }

    fn find(turn: &ProgramRequest, env: &StepContext<'_, Self>) -> CacheLookup {
        let host = &env.host;
        let peek = host.shared.cache.peek(&turn.key, &mut select_by(&turn.req.headers));
        let place = SiteContext { live: env.live, site: env.site };
        let ctx = RequestContext::new(
            place,
            &turn.req,
            Notes::default(),
            env.now,
            env.connection.account,
        );
        host.steps.borrow_mut().extend(variants(&ctx, &peek));
        host.is_fetched.set(peek.is_fetched);
        host.may_be_below.set(peek.below > 0);
        let Some(object) = host.found(turn, &peek) else {
            if let Some(advice) = variants::advice(&ctx, &peek) {
                let why = "nothing that is stored is for this request";
                host.report(DecisionStep::new("verdict", why).decisive().advise(advice));
            }
            return CacheLookup::Nothing;
        };
        let flags = object.flags();
        host.report(match age(turn, env, &object) {
            Age::Fresh if flags.hit_for_pass => {
                let why = "hit-for-pass: a former answer said that requests go past the cache";
                DecisionStep::new("mark", why).decisive()
            }
            Age::Fresh | Age::Grace if flags.hit_for_miss => {
                let why = "hit-for-miss: a former answer was uncacheable, so no request waits";
                DecisionStep::new("mark", why).decisive()
            }
            _ => facts::freshness(turn, env, &object),
        });
        *host.last.borrow_mut() = Some(Arc::clone(&object));
        CacheLookup::Object(object)
    }

    fn begin(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        options: BeginOptions<'_>,
    ) -> FetchAssignment<(), ()> {
        let host = &env.host;
        if !options.coalesce || !host.is_fetched.get() {
            // A promoted object counts only if objects in memory do.
            let reads = host.may_be_below.get() && !turn.state.hash_always_miss;
            let duty = Duty { lead: (), is_alone: false };
            return if reads { FetchAssignment::Below(duty) } else { FetchAssignment::Fetch(duty) };
        }
        let why = "another request fetches it: it would wait for that fetch";
        host.report(DecisionStep::new("verdict", why).decisive());
        FetchAssignment::Wait(())
    }

    fn refuse((): ()) {}

    fn begin_refresh(_: &ProgramRequest, _: &StepContext<'_, Self>, _: &Arc<Object>) -> Option<()> {
        None
    }

    fn refresh(_: &ProgramRequest, _: &StepContext<'_, Self>, (): (), _: &Arc<Object>) {}

    fn purge(_: &ProgramRequest, env: &StepContext<'_, Self>) -> Result<(), String> {
        let why = "what is stored under its key would be purged";
        env.host.report(DecisionStep::new("purge", why).decisive());
        env.host.purges.set(true);
        Ok(())
    }

    /// Only the length: a body that still arrives would register a reader.
    fn body(object: &Arc<Object>, _: Option<Reader>) -> ReplyBody {
        ReplyBody::Head(object.length())
    }

    /// The decoded length.
    fn decode(_: &StepContext<'_, Self>, body: &mut ReplyBody, length: Option<u64>) {
        if let ReplyBody::Head(told) = body {
            *told = length;
        }
    }

    fn seek(
        turn: &ProgramRequest,
        env: &StepContext<'_, Self>,
        object: &Arc<Object>,
    ) -> DictionaryAnswer {
        dictionary::seek(
            FormRequester::Forecast(&env.host.shared.dictionaries),
            env.dictionary_context(turn),
            object,
        )
    }

    fn note_dictionary(env: &StepContext<'_, Self>, used: DictionaryUse) {
        env.host.report(DecisionStep::new("dictionary", used.to_string()));
    }

    fn note_unanswered(&self) {
        self.unanswered.set(true);
    }
}

/// Returns true if the statement stands behind an extra, whose own subroutine has returned nothing.
fn is_behind_extra(program: &Program, at: StatementNumber) -> bool {
    let is_behind = |(file, _): (&SourceFile, u32)| &*file.name == BUILTIN_NAME;
    program.role() == ProgramRole::Extra && program.place(at).is_some_and(is_behind)
}

/// Returns true if `action` of `sub` decides the outcome.
fn decides(sub: Sub, action: &Action) -> bool {
    match (sub, action) {
        (Sub::Synth, _) => false,
        (_, Action::Synth(_) | Action::Fail(_)) => true,
        (Sub::Recv, action) => !matches!(action, Action::Hash | Action::Vcl(_)),
        (Sub::BackendFetch, action) => !matches!(action, Action::Fetch),
        (Sub::Hit, action) => matches!(action, Action::Deliver),
        (Sub::Miss, action) => matches!(action, Action::Fetch),
        _ => false,
    }
}

/// The context of a rehearsal's steps.
pub(crate) type RehearsalContext<'a> = StepContext<'a, Rehearsal<'a>>;
