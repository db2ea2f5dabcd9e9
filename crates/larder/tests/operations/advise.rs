//! Tests of `larder advise`: what it predicts is held against the counters of real daemons.

use crate::support;

use serde_json::Value;
use support::console::{larder, text};
use support::folder::Folder;
use support::{Setup, Stage, eventually};
use testkit::origin::Script;

/// A verb's output as JSON, if it succeeded.
async fn json(arguments: &[&str]) -> Value {
    let output = larder(arguments).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Targets of a fixed draw: popular pages with campaigns, some that are not stored, some missing.
fn draw() -> Vec<String> {
    let mut number: u64 = 7;
    let mut next = |most: u64| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % most
    };
    let target = |_| match next(10) {
        0 => "/own".to_owned(),
        1 => format!("/none/{}", next(4)),
        2..5 => format!("/page/{}?cid={}", next(6), next(1000)),
        _ => format!("/page/{}", next(12)),
    };
    (0..400).map(target).collect()
}

/// A daemon with an origin for these targets.
async fn stage(site: &str) -> Stage {
    let top = "log_ring = { size = \"32MiB\", fingerprints = \"100%\" }\n";
    let stage = Setup { one_core: true, top, site, ..Setup::default() }.start().await;
    for target in draw() {
        let path = target.split('?').next().unwrap_or_default();
        let script = match path {
            "/own" => Script::ok("Cache-Control: no-store\r\n", "own"),
            path if path.starts_with("/none") => Script::respond(
                "HTTP/1.1 404 Not Found\r\nCache-Control: max-age=600\r\nContent-Length: 0\r\n\r\n",
            ),
            path => Script::ok("Cache-Control: max-age=600\r\n", path),
        };
        stage.origin.on(path, script.clone());
        stage.origin.on(&target, script);
    }
    stage
}

/// The hit ratio in hundredths that a daemon's log shows for the draw.
async fn visit(stage: &Stage) -> f64 {
    let mut connection = stage.connect().await;
    let mut hits = 0;
    let targets = draw();
    for target in &targets {
        let request = testkit::client::request("GET", target, "User-Agent: one/1\r\n");
        connection.send(&request, testkit::client::WriteSplit::Whole).await.expect("taken");
        let reply = support::whole(connection.reply("GET").await, target);
        hits += usize::from(support::is_hit(&reply));
    }
    hits as f64 * 100.0 / targets.len() as f64
}

#[tokio::test]
async fn a_replay_agrees_with_the_daemon_and_its_prediction_with_the_changed_one() {
    let former = stage("").await;
    let ratio = visit(&former).await;
    let socket = former.daemon.admin_socket().display().to_string();
    let config = former.daemon.config_file().display().to_string();
    let asked = ["advise", "--json", "--admin-socket", &socket, "--config", &config];
    // Records are written in batches.
    eventually("all records", async || {
        json(&asked).await["requests"] == u64::try_from(draw().len()).expect("few")
    })
    .await;
    let advice = json(&asked).await;
    let replayed = advice["replayed"]["ratio"].as_f64().expect("a ratio");
    assert!((replayed - ratio).abs() <= 2.0, "replayed {replayed}, measured {ratio}");

    let findings = advice["findings"].as_array().expect("a list");
    let found: Vec<_> = findings.iter().map(|own| (own["kind"].as_str(), &own["about"])).collect();
    assert_eq!(found, [(Some("query-parameter-unused"), &Value::from("cid"))], "{advice:#}");
    assert_eq!(findings[0]["proof"]["kind"], "bodies");
    let predicted = findings[0]["predicted"]["ratio"].as_f64().expect("a ratio");
    assert!(predicted > replayed + 5.0, "{advice:#}");
    let measured = visit(&stage("query.strip = \"cid\"\n").await).await;
    assert!((predicted - measured).abs() <= 2.0, "predicted {predicted}, measured {measured}");
}

/// A line of an access log.
fn line(n: usize, target: &str, cache: &str) -> String {
    format!(
        "192.0.2.{} - - [10/Oct/2026:13:55:{:02} +0000] \"GET {target} HTTP/1.1\" 200 {} \"-\" \"M\" \
         {cache}\n",
        n % 40,
        n % 60,
        100 + n % 5
    )
}

#[tokio::test]
async fn an_origin_that_is_asked_gives_proof_and_lifetimes() {
    let stage = stage("").await;
    let pages = || draw().into_iter().filter(|target| target.starts_with("/page"));
    let log: String = pages().enumerate().map(|(n, target)| line(n, &target, "")).collect();
    let folder = Folder::new();
    folder.file("access.log", log);
    let log = folder.path().join("access.log").display().to_string();
    let config = stage.daemon.config_file().display().to_string();
    let origin = format!("http://{}", stage.origin.addr());
    let asked = ["advise", "--json", "--log", &log, "--config", &config, "--origin", &origin];
    let advice =
        json(&[&asked[..], &["--origin-rate", "1000", "--origin-requests", "150"]].concat()).await;
    assert!(advice["replayed"]["ratio"].as_f64() > Some(20.0), "{advice:#}");
    assert_eq!(advice["findings"][0]["about"], "cid", "{advice:#}");
    assert_eq!(advice["findings"][0]["proof"]["kind"], "bodies", "{advice:#}");
    assert!(stage.received().len() <= 150);
}

#[tokio::test]
async fn advice_that_is_applied_is_checked_kept_and_told_of_later() {
    let folder = Folder::new();
    let log: String = (0..100).map(|n| line(n, &format!("/{}?cid={n}", n % 5), "MISS")).collect();
    folder.file("access.log", log);
    let config = "listen = \"127.0.0.1:0\"\n\n[[site]]\nhost = \"*\"\n\
                  origin = \"http://127.0.0.1:9\"\ncache.ttl = \"1h\"\n";
    folder.file("larder.toml", config);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (log, file) = (path("access.log"), path("larder.toml"));
    let asked = ["advise", "--log", &log, "--config", &file, "--admin-socket", &path("none")];
    let shown = larder(&asked).await;
    let shown = text(&shown.stdout);
    assert!(shown.contains("1. query-parameter-unused: cid (*)"), "{shown}");
    assert!(shown.contains("The requests come from few networks"), "{shown}");
    assert!(
        shown.contains("larder.toml:8\n       [site.query]\n       strip = [\"cid\"]"),
        "{shown}"
    );

    let refused = larder(&[&asked[..], &["--apply", "1"]].concat()).await;
    assert!(text(&refused.stderr).contains("--unproved"), "{}", text(&refused.stderr));
    let named = ["--apply", "query-parameter-unused:cid", "--unproved"];
    let applied = larder(&[&asked[..], &named].concat()).await;
    assert!(applied.status.success(), "{}", text(&applied.stderr));
    assert!(text(&applied.stdout).contains("strip = [\"cid\"]"), "{}", text(&applied.stdout));
    let read = |name| std::fs::read_to_string(path(name)).expect("a file");
    assert_eq!(read("larder.toml"), format!("{config}\n[site.query]\nstrip = [\"cid\"]\n"));
    assert_eq!(read("larder.toml.former"), config);

    let later: String = (0..200)
        .map(|n| line(n, "/", if n < 10 { "MISS" } else { "HIT" }).replace("/2026:", "/2099:"))
        .collect();
    folder.file("access.log", later);
    let shown = text(&larder(&asked).await.stdout);
    assert!(shown.contains("it is 95.0% over 200 requests"), "{shown}");
    let missing = larder(&[&asked[..], &["--apply", "7"]].concat()).await;
    assert!(text(&missing.stderr).contains("there is no finding 7"), "{}", text(&missing.stderr));
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_named_with_its_line() {
    let folder = Folder::new();
    folder.file("error.log", "one\ntwo\n");
    let log = folder.path().join("error.log").display().to_string();
    let refused = larder(&["advise", "--preset", "wordpress", "--log", &log]).await;
    assert!(!refused.status.success());
    let said = text(&refused.stderr);
    assert!(said.contains("2 lines are of no known format, the first is line 1: one"), "{said}");
    let refused = larder(&["advise", "--preset", "wordpres", "--log", &log]).await;
    assert!(text(&refused.stderr).contains("wordpress"), "{}", text(&refused.stderr));
}
