//! A run of one scenario on one server.

use std::thread;
use std::time::Duration;

use super::client::{Clients, ReceivedAnswer, ServerAddresses};
use super::comparison::{self, Event, Record};
use super::counters::{self, Counters};
use super::origin::Origin;
use super::peer::TestedServer;
use super::scenario::{
    Leeway, Scenario, ScenarioExpectation, ScenarioRequest, ScenarioStep, scenario_parser,
};
use crate::reference_reader::ParsedRequest;

/// Most polls, every 10 ms, for requests at an origin.
const LOOKS: usize = 1000;

/// Runs `scenario` on `peer`.
///
/// # Errors
/// The reason for which it could not be run: programs that do not load, commands that fail.
pub(super) fn play(peer: &mut TestedServer, scenario: &Scenario) -> Result<Record, String> {
    peer.prepare(scenario)?;
    let target = peer.target(scenario);
    let counts = scenario.steps.iter().any(|(_, step)| matches!(step, ScenarioStep::Counts(_)));
    let counted = if counts { settled(peer)? } else { Counters::default() };
    let mut stage = ScenarioRun {
        peer,
        target,
        clients: Clients::default(),
        last: None,
        record: Record::default(),
        parallel: scenario.allows.order,
        allows: scenario.allows,
        counted,
    };
    for (line, step) in &scenario.steps {
        stage.step(*line, step);
    }
    // A background fetch may still be on its way.
    thread::sleep(Duration::from_millis(40));
    for _ in 0..LOOKS {
        if !stage.peer.origins.iter().any(Origin::busy) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    stage.origins(scenario);
    let ScenarioRun { record, clients, .. } = stage;
    drop(clients);
    peer.restore(scenario)?;
    Ok(record)
}

struct ScenarioRun<'a> {
    peer: &'a mut TestedServer,
    target: ServerAddresses,
    clients: Clients,
    last: Option<(ScenarioRequest, ReceivedAnswer)>,
    record: Record,
    /// True if requests were simultaneous: their order at the origins is chance.
    parallel: bool,
    allows: Leeway,
    /// The counters at the beginning, if they are compared.
    counted: Counters,
}

/// The counters, once they include all earlier steps.
fn settled(peer: &mut TestedServer) -> Result<Counters, String> {
    let mut before = peer.counters()?;
    for _ in 0..LOOKS {
        thread::sleep(Duration::from_millis(100));
        let now = peer.counters()?;
        let same =
            |name: &str| counters::value(&now, "", name) == counters::value(&before, "", name);
        if ["client_req", "sess_closed", "sc_rem_close", "s_fetch"].into_iter().all(same) {
            return Ok(now);
        }
        before = now;
    }
    Err("the counters do not come to rest".to_owned())
}

impl ScenarioRun<'_> {
    fn step(&mut self, line: usize, step: &ScenarioStep) {
        match step {
            ScenarioStep::Ask(asks) => self.ask(line, asks),
            ScenarioStep::Wait(ms) => thread::sleep(Duration::from_millis(*ms)),
            ScenarioStep::Await(name, count) => {
                let arrived = (0..LOOKS).any(|_| {
                    thread::sleep(Duration::from_millis(10));
                    self.seen(name) >= *count
                });
                if !arrived {
                    self.fails(line, &format!("{name} saw only {}", self.seen(name)));
                }
            }
            ScenarioStep::Cli { line: command, text } => self.cli(line, command, *text),
            ScenarioStep::Say(text) => {
                let back = match &self.last {
                    Some((ask, _)) => self.clients.say(ask, text),
                    None => "nothing was asked".to_owned(),
                };
                self.event(format!("{line}: say {text}"), vec![back]);
            }
            ScenarioStep::Expect(expect) => self.expect(line, expect),
            ScenarioStep::Counts(wanted) => self.counts(line, wanted),
        }
    }

    fn counts(&mut self, line: usize, wanted: &[(String, i64)]) {
        let (program, mut wrong) = (self.peer.program(""), Vec::new());
        for _ in 0..LOOKS / 10 {
            let now = match self.peer.counters() {
                Ok(now) => now,
                Err(why) => return self.fails(line, &why),
            };
            wrong.clear();
            for (name, wanted) in wanted {
                let before = counters::value(&self.counted, &program, name).unwrap_or(0);
                let grown = counters::value(&now, &program, name).map(|now| now - before);
                if grown != Some(*wanted) {
                    wrong.push(format!("{name} is {grown:?}, not {wanted}"));
                }
            }
            if wrong.is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        self.fails(line, &wrong.join("; "));
    }

    fn ask(&mut self, line: usize, asks: &[ScenarioRequest]) {
        let values = self.peer.values();
        let fill = |ask: &ScenarioRequest| {
            let mut ask = ask.clone();
            for value in ask.fields.iter_mut().filter_map(|(_, value)| value.as_mut()) {
                *value = scenario_parser::filled(value, &values);
            }
            ask
        };
        let asks: Vec<ScenarioRequest> = asks.iter().map(fill).collect();
        let got: Vec<ReceivedAnswer> = match asks.as_slice() {
            [one] => vec![self.clients.ask(&self.target, one)],
            several => {
                self.parallel = true;
                let target = &self.target;
                let alone = |ask: &ScenarioRequest| Clients::default().ask(target, ask);
                thread::scope(|scope| {
                    let running: Vec<_> =
                        several.iter().map(|ask| scope.spawn(move || alone(ask))).collect();
                    running.into_iter().filter_map(|thread| thread.join().ok()).collect()
                })
            }
        };
        let mut events: Vec<Event> = asks
            .iter()
            .zip(&got)
            .map(|(ask, got)| Event {
                head: format!("{line}: {} {}", ask.method, ask.target),
                lines: {
                    let seen = comparison::without(&got.seen, self.allows, ask);
                    comparison::answer(&got.line, &seen, ask.old)
                },
            })
            .collect();
        events.sort();
        self.record.events.append(&mut events);
        self.last = asks.last().cloned().zip(got.last().cloned());
    }

    fn cli(&mut self, line: usize, command: &str, text: bool) {
        let command = scenario_parser::filled(command, &self.peer.values());
        let lines = match self.peer.cli.ask(&command) {
            Ok((status, said)) if text => vec![status.to_string(), said],
            Ok((status, _)) => vec![status.to_string()],
            Err(error) => vec![error.to_string()],
        };
        self.event(format!("{line}: cli {command}"), lines);
    }

    fn expect(&mut self, line: usize, expect: &ScenarioExpectation) {
        let reply = self.last.as_ref().and_then(|(_, got)| got.seen.complete());
        let field = |name: &str| reply.and_then(|reply| reply.field(name));
        let (met, has) = match expect {
            ScenarioExpectation::Status(status) => {
                let has = reply.map(|reply| reply.status);
                (has == Some(*status), format!("{has:?}"))
            }
            ScenarioExpectation::Field(name, value) => {
                let has = field(name);
                (has.as_ref() == Some(value), format!("{has:?}"))
            }
            ScenarioExpectation::NoField(name) => {
                (field(name).is_none(), format!("{:?}", field(name)))
            }
            ScenarioExpectation::Body(text) => {
                let has = reply.map(|reply| reply.text().trim_end().to_owned());
                (has.as_ref() == Some(text), format!("{has:?}"))
            }
            ScenarioExpectation::Seen(name, count) => {
                let has = self.seen(name);
                (has == *count, has.to_string())
            }
        };
        if !met {
            self.fails(line, &format!("not {expect:?} but {has}"));
        }
    }

    fn seen(&self, name: &str) -> usize {
        let origin = self.peer.origins.iter().find(|origin| origin.name() == name);
        origin.map_or(0, |origin| origin.seen().len())
    }

    fn origins(&mut self, scenario: &Scenario) {
        let mut programs = scenario.labels.values().chain([&scenario.vcl]);
        let has_probes = programs.any(|program| program.contains("probe"));
        for origin in &self.peer.origins {
            let seen = origin.seen();
            self.record.garbled |= seen.iter().any(Result::is_err);
            let mut events: Vec<Event> = seen
                .iter()
                // A late probe of the last scenario.
                .filter(|seen| has_probes || !seen.as_ref().is_ok_and(is_probe))
                .map(|seen| Event {
                    head: format!("{} was asked", origin.name()),
                    lines: comparison::request(seen),
                })
                .collect();
            if self.parallel {
                events.sort();
            }
            self.record.events.append(&mut events);
        }
    }

    fn event(&mut self, head: String, lines: Vec<String>) {
        // Values that two servers of one machine cannot share.
        let port = self.target.plain.port().to_string();
        let origins = self.peer.origins.iter().map(|o| (o.name(), o.port().to_string()));
        let names: Vec<_> = origins.chain([("PORT", port)]).collect();
        let plain = |line: String| {
            names.iter().fold(line, |line, (name, port)| line.replace(port.as_str(), name))
        };
        let lines = lines.into_iter().map(plain).collect();
        self.record.events.push(Event { head: plain(head), lines });
    }

    fn fails(&mut self, line: usize, what: &str) {
        self.record.failed.push(format!("{line}: {what}"));
    }
}

/// Returns true if a request is a backend's probe. Varnish's has only two fields; a forwarded
/// request has more.
fn is_probe(request: &ParsedRequest) -> bool {
    let agents = request.values("user-agent");
    let close = request.values("connection") == [&b"close"[..]];
    agents.iter().any(|agent| agent.ends_with(b"Health Probe"))
        || close && request.fields.len() == 2 && !request.values("host").is_empty()
}
