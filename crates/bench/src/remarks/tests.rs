//! Each remark appears in a case made for it, and never in a clean one.

use hdrhistogram::Histogram;

use super::*;
use crate::latency::Latency;

/// A round without remarks: 10,000 responses in a second, all hits.
fn clean() -> Round {
    Round {
        elapsed_us: 1_000_000,
        attempted: 10_000,
        completed: 10_000,
        statuses: [(200, 10_000)].into(),
        hits: [("age".to_owned(), 9_990)].into(),
        encodings: [("gzip".to_owned(), 10_000)].into(),
        body_lengths: [(1024, 10_000)].into(),
        connections: 10,
        generator_cpu_us: 300_000,
        generator_threads: 1,
        last_byte: Some(latency(100)),
        lateness: Some(latency(20)),
        ..Round::default()
    }
}

/// Latencies that all equal `micros`.
fn latency(micros: u64) -> Latency {
    let mut histogram = Histogram::<u64>::new(3).expect("bounds");
    histogram.record_n(micros, 10_000).expect("value");
    Latency::of(&histogram).expect("latency")
}

fn series(axis: Axis, x: f64, rounds: Vec<Round>) -> Series {
    Series { name: "one".to_owned(), axis, points: vec![Point { x, rounds }] }
}

/// Names of the remarks on an open loop at 10,000 requests per second.
fn names(rounds: Vec<Round>) -> Vec<String> {
    let series = series(Axis::Rate, 10_000.0, rounds);
    of_series(&series, 0).into_iter().map(|verdict| verdict.name).collect()
}

/// Remarks on a clean round after `change`.
fn after(change: impl Fn(&mut Round)) -> Vec<String> {
    let mut round = clean();
    change(&mut round);
    names(vec![round])
}

#[test]
fn a_clean_run_has_no_remarks() {
    assert_eq!(names(vec![clean(), clean(), clean()]), Vec::<String>::new());
    let closed = series(Axis::Connections, 10.0, vec![clean()]);
    assert_eq!(of_series(&closed, 0), []);
    // A target without cache results does not count as one that does not cache.
    assert_eq!(
        after(|round| {
            round.hits.clear();
            round.source_unknown = round.completed;
        }),
        Vec::<String>::new()
    );
}

#[test]
fn a_generator_at_its_limit_is_remarked() {
    let busy = |axis| {
        let round = Round { generator_cpu_us: 960_000, ..clean() };
        of_series(&series(axis, 10_000.0, vec![round]), 0)
    };
    assert_eq!(
        busy(Axis::Connections).first().map(|remark| remark.name.as_str()),
        Some("generator-limit")
    );
    // An open loop polls for responses while idle.
    assert_eq!(busy(Axis::Rate), []);
    assert_eq!(after(|round| round.lateness = Some(latency(1500))), ["generator-limit"]);
    let slow = |round: &mut Round| {
        round.attempted = 9_000;
        round.completed = 9_000;
    };
    assert_eq!(after(slow), ["generator-limit"]);
}

#[test]
fn a_target_that_does_not_cache_is_remarked_with_its_reason() {
    let mut round = clean();
    round.hits = [("cache-status".to_owned(), 100)].into();
    round.miss_reasons =
        [("fwd=bypass; detail=cookie".to_owned(), 9_000), ("fwd=miss".to_owned(), 3)].into();
    let verdicts = of_series(&series(Axis::Rate, 10_000.0, vec![round]), 0);
    let [verdict] = verdicts.as_slice() else {
        panic!("{verdicts:?}");
    };
    assert_eq!(verdict.name, "not-cached");
    assert!(verdict.text.contains("detail=cookie"), "{}", verdict.text);
}

#[test]
fn responses_that_are_no_pages_are_remarked() {
    assert_eq!(after(|round| round.statuses = [(301, 10_000)].into()), ["redirects"]);
    assert_eq!(
        after(|round| round.statuses = [(200, 1), (503, 9_999)].into()),
        ["error-responses"]
    );
    assert_eq!(
        after(|round| round.statuses = [(200, 1), (304, 9_999)].into()),
        Vec::<String>::new()
    );
    assert_eq!(after(|round| round.lengths_differ = 1), ["lengths-differ"]);
    let failed = |round: &mut Round| {
        round.attempted += 3;
        round.errors = [("closed".to_owned(), 3)].into();
    };
    assert_eq!(after(failed), ["failures"]);
}

#[test]
fn a_run_that_is_too_short_is_remarked() {
    let few = |round: &mut Round| {
        (round.attempted, round.completed) = (999, 999);
        round.statuses = [(200, 999)].into();
        round.hits = [("age".to_owned(), 999)].into();
    };
    let mut round = clean();
    few(&mut round);
    let closed = series(Axis::Connections, 10.0, vec![round]);
    assert_eq!(
        of_series(&closed, 0).first().map(|verdict| verdict.name.as_str()),
        Some("too-short")
    );
    assert_eq!(after(|round| round.last_byte = Some(latency(300_000))), ["too-short"]);
}

#[test]
fn a_noisy_machine_is_remarked() {
    assert_eq!(after(|round| round.steal = 0.05), ["noisy"]);
    let mut slower = clean();
    slower.elapsed_us = 1_250_000;
    slower.generator_cpu_us = 0;
    let closed = series(Axis::Connections, 10.0, vec![clean(), slower, clean()]);
    assert_eq!(of_series(&closed, 0).first().map(|verdict| verdict.name.as_str()), Some("noisy"));
}

#[test]
fn lost_connections_are_remarked() {
    let series = series(Axis::Rate, 10_000.0, vec![clean()]);
    assert_eq!(
        of_series(&series, 100).first().map(|verdict| verdict.name.as_str()),
        Some("background-lost")
    );
}

#[test]
fn sides_with_different_responses_are_remarked() {
    let sides = |change: &dyn Fn(&mut Round)| {
        let mut other = clean();
        change(&mut other);
        of_sides(&[("a".to_owned(), vec![clean()]), ("b".to_owned(), vec![other])])
    };
    assert_eq!(sides(&|_| ()), []);
    let assert_remark = |change: &dyn Fn(&mut Round), word: &str| {
        let verdicts = sides(change);
        assert!(
            verdicts.first().is_some_and(|verdict| verdict.text.contains(word)),
            "{word}: {verdicts:?}"
        );
    };
    assert_remark(
        &|round| round.encodings = [(String::new(), 10_000)].into(),
        "encodings (gzip and none)",
    );
    assert_remark(
        &|round| round.body_lengths = [(2048, 10_000)].into(),
        "mean lengths (1024 and 2048 bytes)",
    );
    assert_remark(
        &|round| round.connections = 10_000,
        "connections (0.00 and 1.00 new ones a request)",
    );
    assert_remark(&|round| round.statuses = [(301, 10_000)].into(), "statuses (200 and 301)");
}
