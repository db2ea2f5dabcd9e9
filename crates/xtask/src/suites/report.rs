//! The report of a run, and the repetition of failed tests.

use super::suite::{Outcome, Suite};

/// Number of repetitions that a failed test must pass to count as flaky.
const CHANCES: usize = 2;
/// Number of slow tests in the report.
const SLOWEST: usize = 10;

/// All outcomes so far.
#[derive(Debug, Default)]
pub(crate) struct TestTally {
    passed: usize,
    ignored: usize,
    failed: Vec<String>,
    /// Tests, and parts of tests, that failed first and then passed alone.
    flaky: Vec<String>,
    /// Number of flaky tests; their failed runs did not count as passed.
    recovered: usize,
    times: Vec<(f64, String)>,
}

impl TestTally {
    /// Adds a suite's outcome, and repeats its failed tests.
    pub(crate) fn add(&mut self, suite: &Suite, outcome: Outcome) {
        self.passed += outcome.passed;
        self.ignored += outcome.ignored;
        let named = |(seconds, test): (f64, String)| (seconds, format!("{} {test}", suite.name));
        self.times.extend(outcome.times.into_iter().map(named));
        self.flaky.extend(outcome.flaky.iter().map(|part| format!("{} {part}", suite.name)));
        if let Some(why) = outcome.broken {
            println!("---- {} ended without a report: {why}", suite.name);
            self.failed.push(suite.name.clone());
        }
        for failure in outcome.failures {
            let name = format!("{} {}", suite.name, failure.test);
            println!("---- {name}\n{}", failure.output);
            let flaky = (0..CHANCES).all(|_| suite.run(Some(&failure.test)).passes());
            self.recovered += usize::from(flaky);
            if flaky {
                self.flaky.push(format!("{name}: {}", failure.reason()));
            } else {
                self.failed.push(name);
            }
        }
    }

    /// Prints the report. Returns the last line, as an error if a test failed.
    pub(crate) fn conclude(mut self, seconds: u64) -> Result<String, String> {
        self.times.sort_by(|a, b| b.0.total_cmp(&a.0));
        println!("\nslowest:");
        for (seconds, name) in self.times.iter().take(SLOWEST) {
            println!("{seconds:8.1} s  {name}");
        }
        for name in &self.flaky {
            println!("flaky: {name}");
        }
        for name in &self.failed {
            println!("test {name} ... FAILED");
        }
        // In libtest's form, which the summary of all steps parses. A flaky test counts as passed.
        let (passed, failed) = (self.passed + self.recovered, self.failed.len());
        let word = if failed == 0 { "ok" } else { "FAILED" };
        let ignored = self.ignored;
        let line = format!(
            "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; finished in {seconds} s"
        );
        if failed == 0 { Ok(line) } else { Err(line) }
    }
}
