//! Test suites of the workspace, several in parallel, each in a process of its own. A test that
//! fails is repeated alone, twice; one that then passes twice is reported as flaky and does not
//! fail the run.
//!
//! Most end-to-end tests wait for sockets, so this is faster than Cargo. The verdict on each test
//! must stay libtest's: the module only parses its report.

mod report;
mod suite;

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use report::TestTally;
use suite::Suite;

/// The longest suites, which start first, so that none runs alone at the end.
const LONG: &[&str] = &[
    "larder::vcl::vcl_differential",
    "larder::guide::presets",
    "larder::tls::acme",
    "larder::http::streaming",
    "vcl::verdicts",
    "larder::guarding::memory_attacks",
    "larder::guarding::h2_attacks",
    "vcl",
    "larder::vcl::vcl_generated",
];

/// The plan of a run.
#[derive(Debug)]
struct TestPlan {
    /// Number of runs of each suite.
    rounds: usize,
    /// True if other processes keep every core busy.
    busy: bool,
    /// The package under test; `None` for all.
    package: Option<String>,
}

impl TestPlan {
    fn read(words: &[&str]) -> Result<Self, String> {
        let mut plan = Self { rounds: 1, busy: false, package: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--busy" => plan.busy = true,
                "--rounds" => {
                    let number = words.next().and_then(|word| word.parse().ok());
                    plan.rounds =
                        number.filter(|n| *n > 0).ok_or("--rounds takes a number from 1 up")?;
                }
                "--package" => {
                    let name = words.next().ok_or("--package takes a package's name")?;
                    plan.package = Some((*name).to_owned());
                }
                other => return Err(format!("test: unknown word {other:?}")),
            }
        }
        Ok(plan)
    }
}

/// Builds and runs the tests of the workspace at `root`; the last line has the counts.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<String, String> {
    let plan = TestPlan::read(words)?;
    let suites = build(root, plan.package.as_deref())?;
    let begin = Instant::now();
    let done = AtomicBool::new(false);
    let tally = std::thread::scope(|scope| {
        for _ in 0..if plan.busy { cores() } else { 0 } {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut tally = TestTally::default();
        for round in 1..=plan.rounds {
            if plan.rounds > 1 {
                println!("round {round} of {}", plan.rounds);
            }
            side_by_side(&suites, &mut tally);
        }
        done.store(true, Ordering::Relaxed);
        tally
    });
    tally.conclude(begin.elapsed().as_secs())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Runs every suite once, and then repeats failed tests.
fn side_by_side(suites: &[Suite], tally: &mut TestTally) {
    let queue: Mutex<VecDeque<&Suite>> = Mutex::new(suites.iter().collect());
    let next = || queue.lock().pop_front();
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        // One more than there are cores, because suites wait.
        for _ in 0..=cores() {
            scope.spawn(|| {
                while let Some(suite) = next() {
                    let outcome = suite.run(None);
                    println!("{}", outcome.line(&suite.name));
                    outcomes.lock().push((suite, outcome));
                }
            });
        }
    });
    for (suite, outcome) in outcomes.into_inner() {
        tally.add(suite, outcome);
    }
}

/// Builds the test binaries, and returns them in the order of their start.
fn build(root: &Path, package: Option<&str>) -> Result<Vec<Suite>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    match package {
        Some(name) => command.args(["--package", name]),
        None => command.arg("--workspace"),
    };
    let output = command
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".to_owned());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut suites = Vec::new();
    for binary in messages.lines().filter_map(Suite::of_message) {
        suites.extend(binary.modules()?);
    }
    let place = |suite: &Suite| LONG.iter().position(|name| *name == suite.name);
    suites.sort_by_key(|suite| place(suite).unwrap_or(LONG.len()));
    Ok(suites)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_from_its_words_and_unknown_ones_are_refused() {
        let plan =
            TestPlan::read(&["--rounds", "20", "--busy", "--package", "larder"]).expect("a plan");
        assert_eq!((plan.rounds, plan.busy, plan.package.as_deref()), (20, true, Some("larder")));
        assert!(TestPlan::read(&["--rounds", "0"]).is_err());
        assert!(TestPlan::read(&["--rounds"]).is_err());
        assert!(TestPlan::read(&["--slow"]).expect_err("unknown").contains("--slow"));
    }
}
