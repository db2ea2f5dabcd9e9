//! Tests of `larder bench`, run as a user runs it, against a Larder.

use crate::support;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::folder::Folder;
use support::tls::{Authority, Kind, Served};
use support::{Setup, Stage, eventually};
use testkit::larder::binary;
use testkit::origin::Script;

/// Runs the binary to its end without blocking the origin.
async fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary().expect("a binary"));
    command.arg("bench").args(arguments).stdin(Stdio::null());
    let waited = tokio::task::spawn_blocking(move || command.output()).await;
    waited.expect("no panic").expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A short load: 200 requests on two connections.
const SHORT: [&str; 6] = ["-c", "2", "-n", "200", "--warm-up", "0"];

async fn stage() -> Stage {
    let stage = Setup::default().start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.origin.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    stage
}

fn url(stage: &Stage, path: &str) -> String {
    format!("http://{}{path}", stage.daemon.addr())
}

/// The first round of a result.
fn round(json: &Value) -> &Value {
    &json["series"][0]["points"][0]["rounds"][0]
}

fn read(folder: &Folder, name: &str) -> Value {
    let text = std::fs::read_to_string(folder.path().join(name)).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn a_cached_page_is_measured_and_written() {
    let stage = stage().await;
    let folder = Folder::new();
    let (json, html) = (folder.path().join("run.json"), folder.path().join("run.html"));
    let (json, html) = (json.display().to_string(), html.display().to_string());
    let pid = stage.daemon.pid().to_string();
    let page = url(&stage, "/page");
    let files = ["--json", &json, "--html", &html, "--pid", &pid, "--name", "Larder"];
    let output = bench(&[&SHORT[..], &files[..], &[&page]].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("responses   200 (200 x 200)"), "{shown}");
    assert!(!shown.contains("not-cached"), "{shown}");
    let result = read(&folder, "run.json");
    let round = round(&result);
    assert_eq!(round["completed"], 200);
    assert!(round["hits"]["cache-status"].as_u64().is_some_and(|hits| hits >= 198), "{round}");
    assert_eq!(round["servers"].as_object().map(serde_json::Map::len), Some(1));
    let report = bench(&["report", &json]).await;
    assert!(text(&report.stdout).contains("| Larder | 2 | 1 |"), "{}", text(&report.stdout));
    assert!(std::fs::read_to_string(&html).is_ok_and(|html| html.contains("<svg")));
}

#[tokio::test]
async fn a_page_that_is_not_stored_is_remarked_with_larders_reasons() {
    let stage = stage().await;
    let socket = stage.daemon.admin_socket().display().to_string();
    let own = url(&stage, "/own");
    let output = bench(&[&SHORT[..], &["--admin-socket", &socket, &own]].concat()).await;
    let shown = text(&output.stdout);
    assert!(shown.contains("mostly not caching"), "{shown}");
    assert!(shown.contains("no-store"), "{shown}");
}

#[tokio::test]
async fn a_cold_round_begins_with_an_empty_cache() {
    let stage = stage().await;
    let socket = stage.daemon.admin_socket().display().to_string();
    let page = url(&stage, "/page");
    let cold = ["--admin-socket", &socket, "--cold", "--rounds", "3", &page];
    let output = bench(&[&SHORT[..], &cold].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // The first request only checks that there is a server.
    assert_eq!(stage.origin.seen("/page"), 4);
}

#[tokio::test]
async fn conditions_decide_the_exit_code() {
    let stage = stage().await;
    let page = url(&stage, "/page");
    let with = async |condition: &str| {
        bench(&[&SHORT[..], &["--fail-if", condition, &page]].concat()).await
    };
    assert_eq!(with("errors > 0 or 5xx > 0").await.status.code(), Some(0));
    let failed = with("hits > 10%").await;
    assert_eq!(failed.status.code(), Some(3));
    assert!(text(&failed.stderr).contains("--fail-if held at 2"), "{}", text(&failed.stderr));
    let wrong = with("p99 > 5").await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("column 7: `5`: a time has a unit"),
        "{}",
        text(&wrong.stderr)
    );
}

#[tokio::test]
async fn tls_and_http2_are_spoken_and_certificates_verified() {
    let authority = Authority::new();
    authority.sign("site", &["localhost"], Kind::Elliptic);
    let tls = authority.pair("site");
    let site = format!("[[site]]\nhost = \"*\"\norigin = \"app\"\ntls = {{ {tls} }}\n");
    let served = Served::start(&site).await;
    served.origin.on("/page", Script::cacheable("page"));
    let page = format!("https://localhost:{}/page", served.addr().port());
    let refused = bench(&[&SHORT[..], &[&page]].concat()).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("not signed by a trusted authority; -k"),
        "{}",
        text(&refused.stderr)
    );
    let folder = Folder::new();
    let json = folder.path().join("run.json").display().to_string();
    let ways: [&[&str]; 4] =
        [&[], &["--http2", "8"], &["--no-keep-alive"], &["--no-keep-alive", "--no-resume"]];
    for (way, nth) in ways.into_iter().zip(0..) {
        let output = bench(&[&SHORT[..], way, &["-k", "--json", &json, &page]].concat()).await;
        assert_eq!(output.status.code(), Some(0), "{way:?}: {}", text(&output.stderr));
        let result = read(&folder, "run.json");
        let round = round(&result);
        assert_eq!(round["completed"], 200, "{way:?}");
        let (connections, resumed) = (round["connections"].as_u64(), round["resumed"].as_u64());
        match nth {
            0 | 1 => assert!(connections.is_some_and(|count| count <= 2), "{way:?}: {round}"),
            2 => assert!(resumed.is_some_and(|count| count > 150), "{way:?}: {round}"),
            _ => assert_eq!((connections, resumed), (Some(200), Some(0)), "{way:?}"),
        }
    }
}

#[tokio::test]
async fn conditional_requests_get_304() {
    let authority = Authority::new();
    authority.sign("site", &["localhost"], Kind::Elliptic);
    let tls = authority.pair("site");
    let site = format!("[[site]]\nhost = \"*\"\norigin = \"app\"\ntls = {{ {tls} }}\n");
    let served = Served::start(&site).await;
    served.origin.on("/page", Script::ok("Cache-Control: max-age=60\r\nETag: \"a\"\r\n", "page"));
    let page = format!("https://localhost:{}/page", served.addr().port());
    for way in [&["--pipeline", "2"][..], &["--http2", "2"]] {
        let output = bench(&[&SHORT[..], way, &["-k", "--conditional", &page]].concat()).await;
        let shown = text(&output.stdout);
        // Requests that were sent before the first response have no validator.
        let found = shown.lines().find_map(|line| line.strip_prefix("responses   200 ("));
        let modified = found.and_then(|line| line.split(' ').next()?.parse::<u32>().ok());
        assert!(modified.is_some_and(|count| count <= 8), "{way:?}: {shown}");
        assert!(shown.contains("x 304)"), "{way:?}: {shown}");
    }
}

#[tokio::test]
async fn a_server_exports_its_own_figures() {
    let stage = stage().await;
    let folder = Folder::new();
    let json = folder.path().join("run.json").display().to_string();
    let socket = stage.daemon.admin_socket().display().to_string();
    let own = url(&stage, "/own");
    let metrics = ["--admin-socket", &socket, "--json", &json, &own];
    let output = bench(&[&SHORT[..], &metrics].concat()).await;
    assert!(text(&output.stdout).contains("origin      "), "{}", text(&output.stdout));
    let result = read(&folder, "run.json");
    // The cores' counts may be summed a moment later.
    let origin = round(&result)["origin_requests"].as_u64();
    assert!(origin.is_some_and(|count| (100..=201).contains(&count)), "{result}");
    let servers = round(&result)["servers"].as_object().cloned().unwrap_or_default();
    let resident = servers.values().next().and_then(|usage| usage["resident_bytes"].as_u64());
    assert!(resident.is_some_and(|bytes| bytes > 1 << 20), "{servers:?}");
    let nothing = bench(&["--metrics", &own, &own]).await;
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("no known metric"), "{}", text(&nothing.stderr));
}

#[tokio::test]
async fn a_quick_look_says_what_to_do_next() {
    let stage = stage().await;
    let folder = Folder::new();
    let place = folder.path().display().to_string();
    let quick =
        async |page: &str| bench(&["quick", "--time", "50ms", "--folder", &place, page]).await;
    let cached = quick(&url(&stage, "/page")).await;
    let shown = text(&cached.stdout);
    assert_eq!(cached.status.code(), Some(0), "{}", text(&cached.stderr));
    for part in ["machine ", "memory ", "disk ", "handshakes ", "made anew ", "limit "] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = text(&quick(&url(&stage, "/own")).await.stdout);
    assert!(shown.contains("0% from a cache"), "{shown}");
    assert!(shown.contains("does not come from a cache"), "{shown}");
    let nobody = quick("http://127.0.0.1:1/").await;
    assert_eq!(nobody.status.code(), Some(1));
    // Nothing is left in the folder.
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[tokio::test]
async fn a_reader_that_has_enough_is_no_error() {
    let stage = stage().await;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(binary().expect("a binary"));
    command.arg("bench").args(SHORT).arg(url(&stage, "/page"));
    command.stdin(Stdio::null()).stdout(writer);
    let waited = tokio::task::spawn_blocking(move || command.output()).await;
    let output = waited.expect("no panic").expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn bad_input_is_reported_and_nothing_panics() {
    let cases: [(&[&str], i32, &str); 12] = [
        (&[], 2, "no requests"),
        (&["example.org"], 2, "a URL begins with http://"),
        (&["http://127.0.0.1:1/"], 1, "http://127.0.0.1:1/: Connection refused"),
        (&["--urls", "/nowhere", "http://127.0.0.1:1"], 2, "/nowhere: No such file"),
        (&["--urls", "/dev/null", "http://127.0.0.1:1"], 2, "the list of URLs is empty"),
        (&["-c", "0", "http://127.0.0.1:1"], 2, "a value is a number above 0"),
        (&["--replay", "1", "http://127.0.0.1:1"], 2, "a list with times"),
        (&["--pid", "0", "http://127.0.0.1:1"], 2, "no such process"),
        (&["--metrics", "http://127.0.0.1:1/", "http://127.0.0.1:1"], 2, "Connection refused"),
        (&["--idle", "5", "--http2", "1", "http://127.0.0.1:1"], 2, "cannot be used with"),
        (&["quick", "--folder", "/", "nowhere"], 2, "a URL begins with http://"),
        (&["report", "/dev/null"], 2, "/dev/null: this is no result"),
    ];
    for (arguments, code, words) in cases {
        let output = bench(arguments).await;
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(words) && !told.contains("panicked"), "{arguments:?}: {told}");
    }
}

#[tokio::test]
async fn lists_come_from_logs_and_sitemaps() {
    let stage = stage().await;
    let folder = Folder::new();
    let sitemap = format!(
        "<urlset><url><loc>{}</loc></url><url><loc>{}</loc></url></urlset>",
        url(&stage, "/page"),
        url(&stage, "/own")
    );
    let index = format!(
        "<sitemapindex><sitemap><loc>{}</loc></sitemap></sitemapindex>",
        url(&stage, "/moved.xml")
    );
    stage.origin.on("/index.xml", Script::ok("Cache-Control: no-store\r\n", &index));
    let moved = "HTTP/1.1 301 Moved Permanently\r\nLocation: /map.xml\r\nContent-Length: 0\r\n\r\n";
    stage.origin.on("/moved.xml", Script::respond(moved));
    stage.origin.on("/map.xml", Script::ok("Cache-Control: no-store\r\n", &sitemap));
    let map = url(&stage, "/index.xml");
    let listed = bench(&["urls", "sitemap", &map]).await;
    assert_eq!(
        text(&listed.stdout),
        format!("{}\n{}\n", url(&stage, "/page"), url(&stage, "/own"))
    );
    let output = bench(&[&SHORT[..], &["--sitemap", &map]].concat()).await;
    assert!(text(&output.stdout).contains("responses   200"), "{}", text(&output.stderr));

    let mut log = std::fs::File::create(folder.path().join("access.log")).expect("a log");
    for (second, path) in [(0, "/page"), (0, "/own"), (0, "/page"), (1, "/page")] {
        writeln!(log, "::1 - - [25/Nov/2026:10:00:0{second} +0000] \"GET {path} HTTP/1.1\" 200 4")
            .expect("written");
    }
    writeln!(log, "nonsense").expect("written");
    let log = folder.path().join("access.log").display().to_string();
    let before = stage.origin.seen("/own");
    let json = folder.path().join("run.json").display().to_string();
    let replay = [
        "--log",
        &log,
        "--replay",
        "10",
        "-d",
        "1s",
        "--warm-up",
        "0",
        "--json",
        &json,
        &url(&stage, "/"),
    ];
    let output = bench(&replay).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("access.log:5: no line of"), "{}", text(&output.stderr));
    assert_eq!(round(&read(&folder, "run.json"))["completed"], 4);
    assert_eq!(stage.origin.seen("/own") - before, 1);
}

#[tokio::test]
async fn a_comparison_has_ratios_and_remarks_on_unequal_sides() {
    let stage = stage().await;
    stage.origin.on("/long", Script::cacheable(&"long".repeat(100)));
    let (page, long) = (url(&stage, "/page"), url(&stage, "/long"));
    let output =
        bench(&["compare", "-n", "300", "--rounds", "3", "--warm-up", "0", &page, &long]).await;
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // Three rounds are too few to show a difference.
    assert!(shown.starts_with("requests/s") && shown.contains("75.0% sure"), "{shown}");
    assert!(shown.contains("mean lengths (4 and 400 bytes)"), "{shown}");
    let alone = bench(&["compare", &page]).await;
    assert_eq!(alone.status.code(), Some(2));
}

#[tokio::test]
async fn an_interrupt_ends_a_run_and_prints_what_was_measured() {
    let stage = stage().await;
    let page = url(&stage, "/page");
    let mut command = Command::new(binary().expect("a binary"));
    command.args(["bench", "-d", "10m", "--warm-up", "0", "-c", "1", &page]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    eventually("requests", async || stage.metric("larder_requests_total").await > 100).await;
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("signalled");
    let output = tokio::task::spawn_blocking(move || child.wait_with_output())
        .await
        .expect("no panic")
        .expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("x 200)"), "{}", text(&output.stdout));
}
