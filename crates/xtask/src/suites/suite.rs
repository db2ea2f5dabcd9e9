//! A suite: a test binary or one module of it, its run, and libtest's report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

/// Time limit of a suite, in seconds.
const SUITE_SECONDS: &str = "1200";
/// Lines of standard error that are shown of a suite without a report.
const LAST_LINES: usize = 20;

/// A test binary, or one of its modules.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    /// The package, the target's name if it differs, and the module's.
    pub(crate) name: String,
    executable: PathBuf,
    /// The package's folder, which Cargo would run it in.
    folder: PathBuf,
    /// True for an integration test.
    is_integration: bool,
    /// Names of the module's tests; empty for all tests of the binary.
    tests: Vec<String>,
}

/// A test that failed.
#[derive(Debug)]
pub(crate) struct TestFailure {
    pub(crate) test: String,
    /// Text that the test printed.
    pub(crate) output: String,
}

/// The result of a suite's run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) ignored: usize,
    pub(crate) failures: Vec<TestFailure>,
    /// Parts of passed tests that their output calls flaky.
    pub(crate) flaky: Vec<String>,
    /// Seconds that each test took.
    pub(crate) times: Vec<(f64, String)>,
    /// The reason for which the suite ended without a report.
    pub(crate) broken: Option<String>,
    seconds: f64,
}

impl Suite {
    /// The suite in a message of Cargo's, if it has one.
    pub(crate) fn of_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["profile"]["test"] != true {
            return None;
        }
        let executable = PathBuf::from(message["executable"].as_str()?);
        let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_path_buf();
        let package = folder.file_name()?.to_string_lossy().into_owned();
        let target = message["target"]["name"].as_str()?;
        let is_integration = message["target"]["kind"] == serde_json::json!(["test"]);
        let name = if is_integration { format!("{package}::{target}") } else { package };
        Some(Self { name, executable, folder, is_integration, tests: Vec::new() })
    }

    /// The suites of an integration test: each of its top modules runs in a process of its own. So
    /// tests of a module may run in turns or change the process's state, without effect on other
    /// tests.
    pub(crate) fn modules(self) -> Result<Vec<Self>, String> {
        if !self.is_integration {
            return Ok(vec![self]);
        }
        let output = Command::new(&self.executable)
            .args(["--list", "--format", "terse"])
            .output()
            .map_err(|error| format!("{}: {error}", self.name))?;
        if !output.status.success() {
            return Err(format!("{}: its tests cannot be listed", self.name));
        }
        Ok(self.divided(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Divides the suite by libtest's list of tests.
    fn divided(self, list: &str) -> Vec<Self> {
        let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for test in list.lines().filter_map(|line| line.strip_suffix(": test")) {
            let module = test.split_once("::").map_or("", |(module, _)| module);
            modules.entry(module).or_default().push(test.to_owned());
        }
        if modules.keys().all(|module| module.is_empty()) {
            return vec![self];
        }
        let suite = |(module, tests): (&str, Vec<String>)| {
            let more = if module.is_empty() { "" } else { "::" };
            Self { name: format!("{}{more}{module}", self.name), tests, ..self.clone() }
        };
        modules.into_iter().map(suite).collect()
    }

    /// Runs all tests, or one.
    pub(crate) fn run(&self, only: Option<&str>) -> Outcome {
        let begin = Instant::now();
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", SUITE_SECONDS]).arg(&self.executable);
        // Only nightly compilers permit libtest's JSON and times; the variable permits them in
        // others.
        command.args(["-Z", "unstable-options", "--format", "json", "--report-time"]);
        command.arg("--show-output");
        command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_MANIFEST_DIR", &self.folder);
        match only {
            Some(test) => _ = command.args(["--exact", test]),
            None if self.tests.is_empty() => {}
            None => _ = command.arg("--exact").args(&self.tests),
        }
        let mut outcome = match command.current_dir(&self.folder).output() {
            Ok(output) => {
                let mut outcome = Outcome::read(&String::from_utf8_lossy(&output.stdout));
                if !output.status.success() && outcome.failures.is_empty() {
                    let said = String::from_utf8_lossy(&output.stderr);
                    outcome.broken = Some(format!("{}\n{}", output.status, last_lines(&said)));
                }
                outcome
            }
            Err(error) => Outcome { broken: Some(error.to_string()), ..Outcome::default() },
        };
        outcome.seconds = begin.elapsed().as_secs_f64();
        outcome
    }
}

impl TestFailure {
    /// The location and message of the panic, in one line.
    pub(crate) fn reason(&self) -> String {
        let mut lines = self.output.lines().skip_while(|line| !line.contains(" panicked at "));
        let place = lines.next().and_then(|line| line.split_once(" panicked at "));
        match place {
            Some((_, place)) => format!("{place} {}", lines.next().unwrap_or_default()),
            None => self.output.lines().last().unwrap_or_default().to_owned(),
        }
    }
}

impl Outcome {
    /// Parses libtest's report, one JSON event per line, and skips other lines.
    fn read(report: &str) -> Self {
        let mut outcome = Self::default();
        for line in report.lines() {
            // A process of a test may have written on the same line before the event.
            let Some(at) = line.find("{ \"type\": \"test\"") else { continue };
            let Ok(event) = serde_json::from_str::<Value>(&line[at..]) else { continue };
            let name = event["name"].as_str().unwrap_or_default().to_owned();
            if let Some(seconds) = event["exec_time"].as_f64() {
                outcome.times.push((seconds, name.clone()));
            }
            match event["event"].as_str() {
                Some("ok") => {
                    outcome.passed += 1;
                    let output = event["stdout"].as_str().unwrap_or_default();
                    let flaky = output.lines().filter_map(|line| line.strip_prefix("flaky: "));
                    outcome.flaky.extend(flaky.map(|part| format!("{name}: {part}")));
                }
                Some("ignored") => outcome.ignored += 1,
                Some("failed") => {
                    let output = event["stdout"].as_str().unwrap_or_default().to_owned();
                    outcome.failures.push(TestFailure { test: name, output });
                }
                _ => {}
            }
        }
        outcome
    }

    /// Returns true if a run of one test passed.
    pub(crate) fn passes(&self) -> bool {
        self.failures.is_empty() && self.broken.is_none() && self.passed == 1
    }

    /// The report's line about it.
    pub(crate) fn line(&self, name: &str) -> String {
        let Self { passed, seconds, .. } = self;
        let mut line = format!("{name}: {passed} passed in {seconds:.1} s");
        if !self.failures.is_empty() {
            line += &format!(", {} failed", self.failures.len());
        }
        if self.broken.is_some() {
            line += ", ended without a report";
        }
        line
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_event_by_event_and_strange_lines_are_passed_over() {
        let report = concat!(
            "{ \"type\": \"suite\", \"event\": \"started\", \"test_count\": 3 }\n",
            "{ \"type\": \"test\", \"event\": \"started\", \"name\": \"a\" }\n",
            "larder: listening{ \"type\": \"test\", \"name\": \"a\", \"event\": \"ok\", \"exec_time\": 0.5, \"stdout\": \"flaky: x\" }\n",
            "{ \"type\": \"test\", \"name\": \"b\", \"event\": \"failed\", \"exec_time\": 1.5, \"stdout\": \"no\\n\" }\n",
            "{ \"type\": \"test\", \"name\": \"c\", \"event\": \"ignored\" }\n",
            // Reports only that the test is slow.
            "{ \"type\": \"test\", \"event\": \"timeout\", \"name\": \"d\" }\n",
            "{ \"type\": \"suite\", \"event\": \"failed\", \"passed\": 1 }\n",
        );
        let outcome = Outcome::read(report);
        assert_eq!(outcome.flaky, ["a: x"]);
        assert_eq!((outcome.passed, outcome.ignored, outcome.failures.len()), (1, 1, 1));
        assert_eq!((&*outcome.failures[0].test, &*outcome.failures[0].output), ("b", "no\n"));
        assert_eq!(outcome.times, [(0.5, "a".to_owned()), (1.5, "b".to_owned())]);
        assert!(!outcome.passes());
    }

    #[test]
    fn a_failure_is_reported_by_the_location_and_message_of_its_panic() {
        let reason =
            |output: &str| TestFailure { test: "a".to_owned(), output: output.to_owned() }.reason();
        let output =
            "started\n\nthread 'a' (7) panicked at tests/a.rs:3:5:\nnever: it holds\nnote: run\n";
        assert_eq!(reason(output), "tests/a.rs:3:5: never: it holds");
        assert_eq!(reason("Error: refused\n"), "Error: refused");
        assert_eq!(reason(""), "");
    }

    #[test]
    fn cargo_names_the_binaries_of_tests_and_their_packages() {
        let message = |test: bool, kind: &str| {
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": "/w/crates/larder/Cargo.toml",
                "target": { "name": "purge", "kind": [kind] }, "profile": { "test": test },
                "executable": "/t/debug/deps/purge-1",
            })
            .to_string()
        };
        let name = |line: &str| Suite::of_message(line).map(|suite| suite.name);
        assert_eq!(name(&message(true, "test")).as_deref(), Some("larder::purge"));
        assert_eq!(name(&message(true, "bin")).as_deref(), Some("larder"));
        assert_eq!(name(&message(false, "bin")), None);
        assert_eq!(name("not json"), None);
    }

    #[test]
    fn each_module_of_an_integration_test_is_a_suite_and_no_test_is_lost() {
        let suite = |is_integration| Suite {
            name: "larder::http".to_owned(),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
            is_integration,
            tests: Vec::new(),
        };
        let parts = |list: &str| {
            let parts = suite(true).divided(list).into_iter();
            parts.map(|part| (part.name, part.tests.join(" "))).collect::<Vec<_>>()
        };
        let part = |name: &str, tests: &str| (name.to_owned(), tests.to_owned());
        assert_eq!(
            parts("urls::a: test\nh2::errors::b: test\nalone: test\nurls::c: test\nx: benchmark\n"),
            [
                part("larder::http", "alone"),
                part("larder::http::h2", "h2::errors::b"),
                part("larder::http::urls", "urls::a urls::c"),
            ]
        );
        // Without modules it stays whole; unit tests always do.
        assert_eq!(parts("a: test\nb: test\n"), [part("larder::http", "")]);
        assert_eq!(suite(false).modules().expect("not run").len(), 1);
    }
}
