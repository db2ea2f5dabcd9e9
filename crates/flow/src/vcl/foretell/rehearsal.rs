//! Subroutines run without anything coming of it, and what they did put into words.

use std::sync::Arc;

use base::{KeyBuf, Now};
use message::{HeaderBlock, HeaderId, Request, Response};
use policy::{Peer, Step, told::shown};
use vcl::ctx::{Bereq, BereqState, Ctx, Obj, ReqState, RespState, Session, Task};
use vcl::program::{Instance, Program};
use vcl::source::At;
use vcl::sub::{Action, Said, Sub};
use vcl::workspace::Workspace;

use super::onlooker::Onlooker;
use crate::live::{Live, Shared};
use crate::vcl::call::{Loan, Seen, seconds};
use crate::vcl::line::Line;

/// A request in its rehearsal.
pub(super) struct Rehearsal<'a> {
    pub(super) instance: Arc<Instance>,
    pub(super) asked: &'a Request,
    pub(super) req: Request,
    pub(super) state: ReqState,
    pub(super) key: KeyBuf,
    pub(super) address: Box<str>,
    pub(super) steps: Vec<Step>,
    pub(super) now: Now,
    world: Onlooker<'a>,
    pub(super) session: Session,
    task: Task,
}

impl<'a> Rehearsal<'a> {
    pub(super) fn new(
        (shared, live): (&'a Shared, &'a Live),
        instance: &Arc<Instance>,
        asked: &'a Request,
        peer: Peer,
        now: Now,
    ) -> Self {
        let line = Line::of(peer);
        Self {
            instance: Arc::clone(instance),
            asked,
            req: asked.clone(),
            state: ReqState { time: seconds(now), ..ReqState::default() },
            key: KeyBuf::new(),
            address: line.address(),
            steps: Vec::new(),
            now,
            world: Onlooker::new(shared, live),
            session: line.session(0),
            task: Task::new(live.limits.vcl_steps, Workspace::of(live.limits.vcl_workspace_client)),
        }
    }

    /// Runs a subroutine of the client's side and tells what it did.
    pub(super) fn run(&mut self, sub: Sub, seen: Seen<'_>) -> Action {
        let before = self.req.clone();
        let loan = Loan {
            instance: &self.instance,
            session: &mut self.session,
            task: &mut self.task,
            req: &mut self.req,
            state: &mut self.state,
            key: &mut self.key,
            asked: self.asked,
        };
        let action = loan.run(sub, &self.world, seconds(self.now), seen);
        let changes = changes("req", &before, &self.req);
        self.tell(sub, &action, changes);
        action
    }

    /// Runs `vcl_deliver` or `vcl_synth` over `response`.
    pub(super) fn run_over(
        &mut self,
        sub: Sub,
        obj: Option<&Obj<'_>>,
        (response, state): (&mut Response, &mut RespState),
    ) -> Action {
        let before = response.headers.clone();
        let action = self.run(sub, Seen { obj, resp: Some((response, state)), bereq: None });
        let changes = field_changes("resp", &before, &response.headers);
        self.tell_more(changes);
        action
    }

    /// Runs `vcl_pipe`.
    pub(super) fn run_pipe(&mut self, bereq: &mut Request, state: &mut BereqState) -> Action {
        let (before, key) = (bereq.clone(), self.key.clone());
        let seen = Bereq { head: bereq, state, original: Some(&before), key: key.bytes() };
        let action = self.run(Sub::Pipe, Seen { bereq: Some(seen), ..Seen::default() });
        let changes = changes("bereq", &before, bereq);
        self.tell_more(changes);
        action
    }

    /// Runs `vcl_backend_fetch`.
    pub(super) fn run_fetch(&mut self, bereq: &mut Request, state: &mut BereqState) -> Action {
        let (sub, before) = (Sub::BackendFetch, bereq.clone());
        let instance = Arc::clone(&self.instance);
        let action = instance.run(&mut Ctx {
            sub,
            instance: &instance,
            world: &self.world,
            now: seconds(self.now),
            session: &mut self.session,
            task: &mut self.task,
            req: None,
            req_top: None,
            bereq: Some(Bereq {
                head: bereq,
                state,
                original: Some(&before),
                key: self.key.bytes(),
            }),
            beresp: None,
            obj: None,
            resp: None,
            key: None,
        });
        let changes = changes("bereq", &before, bereq);
        self.tell(sub, &action, changes);
        action
    }

    fn tell(&mut self, sub: Sub, action: &Action, changes: Vec<String>) {
        let why = format!("{} {}", sub.name(), in_words(action));
        let mut step = Step::new(&sub.name()["vcl_".len()..], why);
        if let Some(at) = self.task.at {
            let program = self.instance.program();
            step = step.at(place(program, at).as_ref()).fact("line", text(program, at));
        }
        for (tag, line) in self.world.log.take() {
            step = step.fact(tag.name(), shown(&line));
        }
        for what in self.world.would.take() {
            step = step.fact("would", what);
        }
        self.steps.push(step);
        self.tell_more(changes);
    }

    /// Adds to the last step what it changed.
    fn tell_more(&mut self, changes: Vec<String>) {
        if let Some(last) = self.steps.last_mut() {
            last.facts.extend(changes.into_iter().map(|change| ("changes", change)));
        }
    }

    /// The last step settles what happens.
    pub(super) fn decided(&mut self) {
        if let Some(step) = self.steps.last_mut() {
            step.decided = true;
        }
    }

    /// Counts a restart; whether there may be so many.
    pub(super) fn begins_again(&mut self, most: u64) -> bool {
        self.state.restarts += 1;
        (self.state.is_hitmiss, self.state.is_hitpass) = (false, false);
        u64::from(self.state.restarts) <= most
    }
}

/// Where a statement stands, as people read it.
fn place(program: &Program, at: At) -> Option<policy::Place> {
    let (file, line) = program.place(at)?;
    Some(format!("{}:{line}", file.name).into())
}

/// The line that it begins in.
fn text(program: &Program, at: At) -> String {
    let Some((file, line)) = program.place(at) else { return String::new() };
    let mut lines = file.text.split(|byte| *byte == b'\n');
    let line = lines.nth(line as usize - 1).unwrap_or_default();
    String::from_utf8_lossy(line.trim_ascii()).into_owned()
}

/// What a subroutine came to.
fn in_words(action: &Action) -> String {
    let with = |said: &Said| {
        let reason = said.reason.as_ref().map(|reason| format!(", \"{}\"", shown(reason)));
        format!("({}{})", said.status, reason.unwrap_or_default())
    };
    match action {
        Action::Fail(reason) if reason.is_empty() => "failed".to_owned(),
        Action::Fail(reason) => format!("failed: {reason}"),
        Action::Synth(said) => format!("returned synth{}", with(said)),
        Action::Error(said) => format!("returned error{}", with(said)),
        Action::Pass(Some(seconds)) => format!("returned pass({seconds}s)"),
        Action::Vcl(label) => format!("returned vcl({label})"),
        action => format!("returned {}", action.verb()),
    }
}

/// What of a request is not as it was.
fn changes(name: &str, before: &Request, after: &Request) -> Vec<String> {
    let mut found = Vec::new();
    if before.method.token() != after.method.token() {
        found.push(format!("{name}.method to {}", shown(after.method.token())));
    }
    if before.target != after.target {
        found.push(format!("{name}.url to {}", shown(&after.target)));
    }
    found.extend(field_changes(name, &before.headers, &after.headers));
    found
}

fn field_changes(name: &str, before: &HeaderBlock, after: &HeaderBlock) -> Vec<String> {
    let gone = before.iter().filter(|field| after.value_named(field.name).is_none());
    let gone = gone.map(|field| format!("{name}.http.{} is unset", shown(field.name)));
    let set = after.iter().filter(|field| before.value_named(field.name) != Some(field.value));
    let set = set.map(|field| {
        let (of, id) = (shown(field.name), field.id);
        match matches!(id, HeaderId::Cookie | HeaderId::SetCookie | HeaderId::Authorization) {
            // What tells people apart is not shown.
            true => format!("{name}.http.{of} to another value"),
            false => format!("{name}.http.{of} to {}", shown(field.value)),
        }
    });
    gone.chain(set).collect()
}
