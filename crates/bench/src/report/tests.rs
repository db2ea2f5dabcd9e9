//! Reports show what was measured, for any names and figures.

use hdrhistogram::Histogram;

use super::*;
use crate::latency::Latency;
use crate::result::{Point, Round, RunRemark, Usage, VERSION};

fn round(rate: u64, micros: u64) -> Round {
    let mut histogram = Histogram::<u64>::new(3).expect("bounds");
    for part in 1..=100 {
        histogram.record_n(micros * part / 50 + 1, rate / 100).expect("value");
    }
    Round {
        elapsed_us: 1_000_000,
        attempted: rate,
        completed: rate,
        statuses: [(200, rate)].into(),
        last_byte: Some(Latency::of(&histogram).expect("latency")),
        servers: [("larder 1".to_owned(), Usage { cpu_us: 400_000, resident_bytes: 50 << 20 })]
            .into(),
        ..Round::default()
    }
}

fn run(name: &str) -> RunResult {
    let points = [1.0, 2.0, 5.0, 10.0, 100.0, 400.0]
        .into_iter()
        .map(|x| Point {
            x,
            rounds: (0..3)
                .map(|nth| round(1000 + 100 * nth + x as u64, 100 + 10 * x as u64 + nth))
                .collect(),
        })
        .collect();
    RunResult {
        version: VERSION,
        settings: BTreeMap::new(),
        machine: [("cores".to_owned(), "2".to_owned())].into(),
        versions: BTreeMap::new(),
        command: "larder bench".to_owned(),
        began_s: 1_795_000_000,
        series: vec![Series { name: name.to_owned(), axis: Axis::Connections, points }],
        verdicts: vec![RunRemark { name: "noisy".to_owned(), text: "3% <steal>".to_owned() }],
    }
}

#[test]
fn a_page_is_self_contained() {
    let report = Report::new(
        "A & B",
        vec![("one".to_owned(), run("nginx")), ("two".to_owned(), run("larder"))],
    )
    .expect("a report");
    let html = report.html();
    for part in [
        "A &amp; B",
        "nginx",
        "larder",
        "3% &lt;steal&gt;",
        "p99.99",
        "50 MiB",
        "40%",
        "Nov 2026",
        "<svg",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !outside.contains("http://") && !outside.contains("https://") && !outside.contains("url(")
    );
    assert_eq!(report.charts().len(), 5);
    let markdown = report.markdown(Some("charts"));
    assert!(
        markdown.contains("charts/p99.svg") && markdown.contains("| nginx | 400 | 3 |"),
        "{markdown}"
    );
    assert!(!report.markdown(None).contains("svg"));
}

#[test]
fn equal_names_are_distinguished_by_their_run() {
    let runs = vec![("monday".to_owned(), run("larder")), ("tuesday".to_owned(), run("larder"))];
    let html = Report::new("x", runs).expect("a report").html();
    assert!(html.contains("monday: larder") && html.contains("tuesday: larder"));
}

#[test]
fn nothing_to_show_and_mixed_axes_are_refused() {
    assert!(Report::new("x", Vec::new()).is_err());
    let mut empty = run("a");
    empty.series[0].points = vec![Point { x: 1.0, rounds: vec![Round::default()] }];
    assert!(Report::new("x", vec![("a".to_owned(), empty)]).is_err());
    let mut rates = run("b");
    rates.series[0].axis = Axis::Rate;
    let mixed = vec![("a".to_owned(), run("a")), ("b".to_owned(), rates)];
    assert!(Report::new("x", mixed).is_err_and(|error| error.contains("different axes")));
}

#[test]
fn charts_are_well_formed_with_odd_names_and_few_figures() {
    for (name, points) in [("<&\"'\u{1}", 1), ("", 2), (&"long ".repeat(60)[..], 6)] {
        let mut one = run(name);
        one.series[0].points.truncate(points);
        let report = Report::new("x", vec![("a".to_owned(), one)]).expect("a report");
        for chart in report.charts() {
            let opened = chart.svg.matches("<text").count();
            assert_eq!(opened, chart.svg.matches("</text>").count(), "{name}");
            assert!(!chart.svg.contains("NaN") && !chart.svg.contains("inf"), "{}", chart.svg);
            assert!(chart.svg.ends_with("</svg>\n") && !chart.svg.contains('\u{1}'));
        }
    }
}
