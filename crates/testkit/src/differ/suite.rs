//! A suite: many scenarios on two servers, several at a time, and the report.

use std::cmp::Reverse;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;

use parking_lot::Mutex;

use super::comparison::{self, Record};
use super::peer::{ServerProgram, TestedServer};
use super::scenario::{self, Scenario};
use super::scenario_run::play;

/// Number of repetitions without a difference that make a scenario flaky instead of failed.
const CHANCES: usize = 2;

/// The scenarios to run, and how.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The oracle, and the server under test.
    pub peers: (ServerProgram, ServerProgram),
    /// Number of pairs of peers that run at once.
    pub pairs: usize,
    /// Selects scenarios whose file or name contains this.
    pub only: String,
    /// True for random programs. A program that crashes the oracle, or makes it send garbage to an
    /// origin, is left out. One that differs is run again, because the machine may be busy. Both
    /// are reported.
    pub random: bool,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Scenarios that were run.
    pub run: usize,
    /// Reports on the scenarios that failed.
    pub failed: Vec<String>,
    /// Reports on the scenarios that differed in parallel but not when repeated alone.
    pub flaky: Vec<String>,
    /// Reports on random scenarios without a verdict: the oracle failed, or the repetition showed
    /// no difference.
    pub left_out: Vec<String>,
    /// Records of the oracle, for writing scenarios.
    pub oracle: Vec<String>,
}

/// Reads the scenarios of a folder's `*.scenario` files, the longest file first; templates are in
/// its folder `templates`.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn read(folder: &Path) -> io::Result<Vec<Vec<Scenario>>> {
    let template = |name: &str| fs::read_to_string(folder.join("templates").join(name)).ok();
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.filter_map(Result::ok).map(|e| e.path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "scenario")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(path)?;
        all.push(scenario::scenarios(&name, &text, &template).map_err(io::Error::other)?);
    }
    all.sort_by_key(|file| Reverse(file.len()));
    Ok(all)
}

/// Runs scenarios; those of a file one after the other. Pairs of servers are started as needed.
///
/// # Errors
/// A server that does not start.
/// A server that does not start.
pub fn run<F>(suite: &Suite, files: F) -> io::Result<Outcome>
where
    F: IntoIterator<Item = Vec<Scenario>, IntoIter: Send>,
{
    let wanted = |scenario: &Scenario| {
        scenario.file.contains(&suite.only) || scenario.name.contains(&suite.only)
    };
    let queue = files
        .into_iter()
        .map(|file| file.into_iter().filter(wanted).collect::<Vec<_>>())
        .filter(|file| !file.is_empty());
    let (queue, outcome) = (Mutex::new(queue), Mutex::new(Outcome::default()));
    let differed = Mutex::new(Vec::new());
    let worker = || -> io::Result<()> {
        let mut peers = None;
        loop {
            let Some(file) = queue.lock().next() else { return Ok(()) };
            let (one, other) = match &mut peers {
                Some(peers) => peers,
                none => none.insert((
                    TestedServer::start(&suite.peers.0)?,
                    TestedServer::start(&suite.peers.1)?,
                )),
            };
            for scenario in &file {
                let ScenarioComparison { differences, oracle, garbled } =
                    both(one, other, scenario);
                let says_nothing = suite.random
                    && !differences.is_empty()
                    && (one.has_crashed()
                        || garbled
                        || both(one, other, scenario).differences.is_empty());
                let Scenario { file, line, name, .. } = scenario;
                let title = format!("{file}.scenario:{line}: {name}");
                let mut outcome = outcome.lock();
                outcome.run += 1;
                outcome.oracle.push(format!("{title}\n{oracle}"));
                if says_nothing {
                    outcome.left_out.push(format!("{title}\n{differences}"));
                } else if !differences.is_empty() {
                    differed.lock().push((scenario.clone(), format!("{title}\n{differences}")));
                }
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..suite.pairs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => Err(io::Error::other("a worker panicked")),
        })
    })?;
    let mut outcome = outcome.into_inner();
    again(suite, differed.into_inner(), &mut outcome)?;
    outcome.failed.sort();
    Ok(outcome)
}

/// Repeats scenarios that differed, alone, to rule out a busy machine. One that differs again has
/// failed.
fn again(
    suite: &Suite,
    differed: Vec<(Scenario, String)>,
    outcome: &mut Outcome,
) -> io::Result<()> {
    if differed.is_empty() {
        return Ok(());
    }
    let (mut one, mut other) =
        (TestedServer::start(&suite.peers.0)?, TestedServer::start(&suite.peers.1)?);
    for (scenario, differences) in differed {
        let same =
            (0..CHANCES).all(|_| both(&mut one, &mut other, &scenario).differences.is_empty());
        if same { &mut outcome.flaky } else { &mut outcome.failed }.push(differences);
    }
    Ok(())
}

/// One scenario on both servers.
struct ScenarioComparison {
    /// The differences; empty if there are none.
    differences: String,
    /// Record of the oracle.
    oracle: String,
    /// True if the oracle sent garbage to an origin.
    garbled: bool,
}

fn both(
    one: &mut TestedServer,
    other: &mut TestedServer,
    scenario: &Scenario,
) -> ScenarioComparison {
    let heard = [one.said().len(), other.said().len()];
    let (names, results) = (
        [one.name().to_owned(), other.name().to_owned()],
        thread::scope(|scope| {
            let running = scope.spawn(|| play(one, scenario));
            let second = play(other, scenario);
            [running.join().unwrap_or_else(|_| Err("it panicked".to_owned())), second]
        }),
    );
    let mut differences = String::new();
    for (name, result) in names.iter().zip(&results) {
        match result {
            Err(why) => _ = writeln!(differences, "  {name}: {why}"),
            // If Larder differs on purpose, Varnish need not meet the expectations.
            Ok(_) if scenario.differs.is_some() && name == "varnishd" => {}
            Ok(record) => {
                for what in &record.failed {
                    _ = writeln!(differences, "  {name}: {what}");
                }
            }
        }
    }
    if let [Ok(one), Ok(other)] = &results
        && scenario.differs.is_none()
    {
        differences.push_str(&comparison::differences(one, other));
    }
    for ((name, peer), heard) in names.iter().zip([&*one, &*other]).zip(heard) {
        let said = peer.said();
        let new = said.get(heard..).unwrap_or_default();
        for line in new.lines().filter(|line| line.contains("anic")) {
            _ = writeln!(differences, "  {name}: {line}");
        }
    }
    let oracle = results[0].as_ref().map(Record::to_string).unwrap_or_default();
    let garbled = results[0].as_ref().is_ok_and(|record| record.garbled);
    ScenarioComparison { differences, oracle, garbled }
}
