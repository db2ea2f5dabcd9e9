//! The counting of outcomes, and the second and third chance of tests that failed.

use super::suite::{Outcome, Suite};

/// Times that a failed test must pass alone to count as flaky.
const CHANCES: usize = 2;
/// Slow tests that are named.
const SLOWEST: usize = 10;

/// All outcomes so far.
#[derive(Debug, Default)]
pub(crate) struct TestTally {
    passed: usize,
    ignored: usize,
    failed: Vec<String>,
    /// Tests, and parts of tests, that failed first and then passed alone.
    flaky: Vec<String>,
    /// Tests of these; their failed run was not counted as passed.
    recovered: usize,
    times: Vec<(f64, String)>,
}

impl TestTally {
    /// Adds a suite's outcome; runs its failed tests again.
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

    /// Prints what is to be known; the closing line, which fails when a test did.
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
        // In libtest's form, which the table of all steps reads. A flaky test passed in the end.
        let (passed, failed) = (self.passed + self.recovered, self.failed.len());
        let word = if failed == 0 { "ok" } else { "FAILED" };
        let ignored = self.ignored;
        let line = format!(
            "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; finished in {seconds} s"
        );
        if failed == 0 { Ok(line) } else { Err(line) }
    }
}
