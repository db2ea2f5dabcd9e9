//! Tests of the one meaning of "hit": a scripted load is counted alike by `stat`, `top`, `logstat`,
//! metrics, the dashboard and the panels for Grafana.

use crate::support;

use base::Counter;
use base::counters;
use base::tally::{Outcome, hit_ratio};
use serde_json::Value;
use support::events::Events;
use support::folder::Folder;
use support::{Setup, Stage, console, eventually};
use testkit::client::WriteSplit;
use testkit::origin::Script;

/// Responses of each class, in the order of [`Outcome::ALL`]; all differ where a mix-up could hide.
const LOAD: [u64; Outcome::ALL.len()] = [7, 3, 2, 6, 4, 5, 8, 1, 0];

/// A stage with a page for each class, and a log of how each was served.
async fn stage(folder: &Folder) -> Stage {
    folder.file("a.txt", "a file");
    let at = folder.path().display();
    let top = format!(
        "access_log = {{ path = \"{at}/access.log\", format = \"json\" }}\n{}",
        console::LISTENS
    );
    let site = format!(
        "[[site.route]]\npath = \"*.txt\"\nfiles = {{ root = \"{at}\" }}\n\
         [[site.route]]\npath = \"/denied\"\nrespond = {{ status = 403 }}\n"
    );
    let stage = Setup { top: &top, site: &site, ..Setup::default() }.start().await;
    let stale = "Cache-Control: max-age=0, stale-while-revalidate=600\r\n";
    stage.origin.on("/page", Script::cacheable("page"));
    stage.origin.on("/stale", Script::ok(stale, "stale"));
    stage.origin.on("/sure", Script::ok("Cache-Control: no-cache\r\nETag: \"1\"\r\n", "sure"));
    stage.origin.on("/gone", Script::ok("Cache-Control: no-store\r\n", "gone"));
    stage.origin.on("/form", Script::ok("", "taken"));
    stage
}

/// Drives the load: each page comes from the origin first, and `/gone` is never stored.
async fn drive(stage: &Stage) {
    let [hits, stale, revalidated, misses, passes, files, synthetic, refused, _] = LOAD;
    let again = async |method: &str, target: &str, times: u64| {
        for _ in 0..times {
            stage.ask(method, target, "").await;
        }
    };
    again("GET", "/page", 1 + hits).await;
    again("GET", "/stale", 1 + stale).await;
    again("GET", "/sure", 1).await;
    let confirmed = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nCache-Control: no-cache\r\n\r\n";
    stage.origin.on("/sure", Script::respond(confirmed));
    again("GET", "/sure", revalidated).await;
    again("GET", "/gone", misses - 3).await;
    again("POST", "/form", passes).await;
    again("GET", "/a.txt", files).await;
    again("GET", "/denied", synthetic).await;
    for _ in 0..refused {
        let mut raw = stage.connect().await;
        raw.send(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", WriteSplit::Whole).await.expect("sent");
        assert_eq!(support::whole(raw.reply("GET").await, "refused").status, 400);
    }
}

/// The JSON output of a verb.
async fn told(stage: &Stage, arguments: &[&str]) -> Value {
    let (done, said, why) = console::run(&stage.daemon, arguments).await;
    assert!(done, "{arguments:?}: {why}");
    serde_json::from_str(&said).expect("JSON")
}

/// The numbers of a JSON object with one per class.
fn by_class(object: &Value) -> [Option<u64>; Outcome::ALL.len()] {
    Outcome::ALL.map(|outcome| object[outcome.word()].as_u64())
}

fn ratio() -> f64 {
    hit_ratio(|outcome| LOAD[outcome as usize] as f64).expect("a ratio")
}

/// The load as a site counts it: malformed requests belong to no site.
fn of_site() -> [u64; Outcome::ALL.len()] {
    let mut load = LOAD;
    load[Outcome::Refused as usize] = 0;
    load
}

#[track_caller]
fn assert_ratio(told: &Value) {
    let is = told.as_f64().unwrap_or_else(|| panic!("no ratio: {told}"));
    assert!((is - ratio()).abs() < 1e-9, "{is} is not {}", ratio());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_is_counted_alike_everywhere() {
    let folder = Folder::new();
    let stage = stage(&folder).await;
    let mut events = Events::open(&stage, "read").await;
    events.find("figures", |_| true).await;
    // Prometheus ignores the first value of a new counter.
    let page = stage.daemon.metrics().await.expect("metrics");
    let row = page.lines().find(|line| line.starts_with("larder_site_errors_total{site=\""));
    assert!(row.is_some_and(|row| row.ends_with("\"} 0")), "{row:?}");
    drive(&stage).await;
    counters_and_top(&stage).await;
    of_the_site(&stage).await;
    let seen = |data: &Value| by_class(&data["sites"][0]["cache_total"]) == of_site().map(Some);
    let figures = events.find("figures", seen).await;
    assert!(figures["rates"]["from_store"].is_f64() && figures["rates"]["judged"].is_f64());
    let rows = |data: &Value| {
        let all = data["ring"]["urls_by_time"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|row| row["key"] == "larder.test/stale")
    };
    let figures = events.find("figures", |data| rows(data).is_some()).await;
    assert!(rows(&figures).expect("a row")["hit_ratio"].as_f64().is_some_and(|r| r <= 1.0));
    let file = folder.path().join("access.log");
    let lines = LOAD.iter().sum::<u64>() as usize;
    eventually("all lines", async || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() == lines)
    })
    .await;
    let mut command = std::process::Command::new(testkit::larder::binary().expect("a binary"));
    let output = command.args(["logstat", "--json"]).arg(&file).output().expect("it ran");
    let logstat: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_ratio(&logstat["all"]["hit_ratio"]);
}

/// Asserts the counts of `stat`, `/metrics` and `top` for the whole daemon.
async fn counters_and_top(stage: &Stage) {
    let name = |counter: &Counter| {
        let spec = counters::TABLE.iter().find(|spec| spec.counter == *counter);
        spec.expect("a counter").name
    };
    eventually("all are counted", async || {
        let stats = told(stage, &["stat", "--json"]).await;
        let sum = |outcome: &Outcome| {
            outcome.counters().iter().filter_map(|one| stats[name(one)].as_u64()).sum::<u64>()
        };
        Outcome::ALL.iter().map(sum).eq(LOAD)
    })
    .await;
    for outcome in Outcome::ALL {
        let mut all = 0.0;
        for counter in outcome.counters() {
            let metric = format!("larder_{}", name(counter));
            all += stage.daemon.metric(&metric, "").await.expect("metrics");
        }
        assert_eq!(all as u64, LOAD[outcome as usize], "{outcome:?}");
    }
    let all = LOAD.iter().sum::<u64>();
    eventually("all records", async || {
        let top = told(stage, &["top", "--json", "--seconds", "0"]).await;
        top["all"]["requests"] == all
    })
    .await;
    let top = told(stage, &["top", "--json", "--seconds", "0", "--by", "status"]).await;
    assert_eq!(by_class(&top["all"]["cache"]), LOAD.map(Some));
    assert_ratio(&top["all"]["hit_ratio"]);
}

/// Asserts the counts of metrics, the API and Grafana's panels for the site and the times.
async fn of_the_site(stage: &Stage) {
    let metric = async |name: &str, outcome: Outcome| {
        let label = format!("cache=\"{}\"", outcome.word());
        stage.daemon.metric(name, &label).await.expect("metrics") as u64
    };
    for (name, load) in
        [("larder_request_seconds_count", LOAD), ("larder_site_requests_total", of_site())]
    {
        for outcome in Outcome::ALL {
            let wanted = load[outcome as usize];
            eventually("they are handed over", async || metric(name, outcome).await >= wanted)
                .await;
            assert_eq!(metric(name, outcome).await, wanted, "{name} {outcome:?}");
        }
    }
    let sites = console::look(&stage.daemon, "/api/v1/sites").await;
    assert_eq!(by_class(&sites["sites"][0]["requests"]), of_site().map(Some));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/larder.json");
    let text = std::fs::read_to_string(file).expect("the panels");
    let panels: Value = serde_json::from_str(&text).expect("JSON");
    let panels = panels["panels"].as_array().expect("panels");
    let ratios = panels.iter().filter(|panel| {
        panel["title"].as_str().is_some_and(|title| title.starts_with("Hit ratio"))
    });
    let mut seen = 0;
    for panel in ratios {
        let expression = panel["targets"][0]["expr"].as_str().expect("an expression");
        let (above, below) = expression.split_once(" / ").expect("a fraction");
        let part = async |of: &str| {
            let (_, words) = of.split_once("cache=~\"").expect("classes");
            let (words, _) = words.split_once('"').expect("classes");
            let mut sum = 0;
            for word in words.split('|') {
                let is = |outcome: &Outcome| outcome.word() == word;
                let outcome = Outcome::ALL.into_iter().find(is).expect("a class");
                sum += metric("larder_site_requests_total", outcome).await;
            }
            sum as f64
        };
        assert!(of_the_same(above) && of_the_same(below), "{expression}");
        assert_ratio(&(part(above).await / part(below).await).into());
        seen += 1;
    }
    assert_eq!(seen, 2);
}

/// Returns true if a part of a fraction sums requests of sites.
fn of_the_same(part: &str) -> bool {
    part.starts_with("sum") && part.contains("(rate(larder_site_requests_total{")
}
