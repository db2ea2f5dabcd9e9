//! Warming: what is fetched before a visitor asks, in which order, how much of the origin that
//! takes, and that no visitor's own response is among it.
//!
//! Requests to the origin are counted and put in order; nothing is timed.

use crate::support;

use std::io::Write;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::console::{self, Ask};
use support::folder::Folder;
use support::{Setup, Stage, eventually, is_hit, sent_field};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};
use tokio::net::TcpStream;

/// One fetch at the same time, each on a connection of its own, so that the origin's connections
/// are in the order of the queue.
const IN_ORDER: &str = "warm_fetches = 1\norigin_idle = 0";
const REWARM: &str = "[site.warm]\nrewarm = true\n";

/// Runs `larder warm` with these arguments.
async fn warm(daemon: &Daemon, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary().expect("the binary"));
    command.arg("warm").arg("--admin-socket").arg(daemon.admin_socket()).args(arguments);
    let run = tokio::task::spawn_blocking(move || command.output());
    run.await.expect("no panic").expect("it runs")
}

/// The standard output of a successful `larder warm`.
async fn warmed(stage: &Stage, arguments: &[&str]) -> String {
    let output = warm(&stage.daemon, arguments).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The state of warming.
async fn state(daemon: &Daemon) -> Value {
    let reply = Ask::get("/api/v1/warm").send_locally(daemon).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    console::json(&reply)
}

/// The last campaign.
async fn campaign(daemon: &Daemon) -> Value {
    let state = state(daemon).await;
    let campaigns = state["campaigns"].as_array().expect("campaigns");
    campaigns.last().cloned().unwrap_or_default()
}

/// The targets that the origin was asked for, in the order of its connections.
fn in_order(stage: &Stage) -> Vec<String> {
    stage.received().into_iter().map(|request| request.target).collect()
}

async fn until_over(daemon: &Daemon) -> Value {
    eventually("the campaign is over", async || campaign(daemon).await["over"] == true).await;
    campaign(daemon).await
}

/// A page of an hour, asked for so many times.
async fn visit(stage: &Stage, target: &str, times: usize) {
    for _ in 0..times {
        assert_eq!(stage.get(target).await.status, 200, "{target}");
    }
}

fn page(fields: &str, body: &str) -> Script {
    Script::ok(&format!("Cache-Control: max-age=3600\r\n{fields}"), body)
}

async fn purge(daemon: &Daemon, what: &Value) {
    let reply = Ask::post("/api/v1/purge", what).send_locally(daemon).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test]
async fn pages_are_fetched_once_and_visitors_hit_them() {
    let stage = Stage::new().await;
    stage.origin.otherwise(page("", "page"));
    stage.origin.on("/broken", Script::ok("Cache-Control: max-age=3600\r\n", "").close());
    let urls = ["http://larder.test/a", "http://larder.test/b?c=d"];
    let printed = warmed(&stage, &urls).await;
    assert!(printed.starts_with("2 fetched in "), "{printed}");
    assert_eq!(stage.origin.targets().len(), 2);
    for target in ["/a", "/b?c=d"] {
        let reply = stage.get(target).await;
        assert!(is_hit(&reply) && reply.text() == "page", "{target}");
    }
    let printed = warmed(&stage, &urls).await;
    assert!(printed.starts_with("0 fetched, 2 stored before in "), "{printed}");
    assert_eq!(stage.origin.targets().len(), 2);
    // Visitors are counted, tasks of warming are not.
    assert_eq!(stage.metric("larder_requests_total").await, 2);
    assert_eq!(stage.metric("larder_warm_fetched_total").await, 2);
    assert_eq!(stage.metric("larder_warm_fresh_total").await, 2);
}

#[tokio::test]
async fn a_task_is_anonymous_and_never_passes_the_store() {
    let site = "bypass = { path = \"/passed\" }\n[[site.route]]\npath = \"/secret/*\"\n\
                forward_auth = { origin = \"app\", path = \"/auth\" }\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.otherwise(page("", "page"));
    stage.origin.on("/private", Script::ok("Cache-Control: private\r\n", "mine"));
    stage.origin.on("/gone", Script::respond("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"));
    let paths = ["/page", "/passed", "/secret/page", "/private"];
    let urls = paths.map(|path| format!("http://larder.test{path}"));
    let printed = warmed(&stage, &urls.each_ref().map(String::as_str)).await;
    assert!(printed.starts_with("1 fetched, 3 not for the cache in "), "{printed}");
    let mut seen = stage.origin.targets();
    seen.sort();
    assert_eq!(seen, ["/page", "/private"]);
    let asked = stage.sole_request("/page");
    for name in ["cookie", "authorization"] {
        assert_eq!(sent_field(&asked, name), "", "{name}");
    }
    assert!(sent_field(&asked, "user-agent").contains("larder-warm"), "{asked:?}");
    let printed = warmed(&stage, &["http://larder.test/gone"]).await;
    assert!(printed.starts_with("0 fetched, 1 failed in "), "{printed}");
    assert!((1..=3).contains(&stage.origin.seen("/gone")));
}

#[tokio::test]
async fn sitemaps_are_followed_and_name_only_pages_of_their_site() {
    let site = "[[site]]\nhost = \"other.test\"\norigin = \"app\"\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.otherwise(page("", "page"));
    let index = "<sitemapindex><sitemap><loc>http://larder.test/1.xml.gz</loc></sitemap>\
                 <sitemap><loc>http://larder.test/none.xml</loc></sitemap></sitemapindex>";
    stage.origin.on("/sitemap.xml", page("", index));
    stage.origin.on("/none.xml", page("", "no sitemap"));
    let pages = "<urlset><url><loc>http://larder.test/a?b=1&amp;c=2</loc></url>\
                 <url><loc>http://other.test/foreign</loc></url>\
                 <url><loc>http://larder.test/z</loc></url></urlset>";
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(pages.as_bytes()).expect("memory");
    let body = gzip.finish().expect("memory");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stage.origin.on("/1.xml.gz", Script::respond([head.as_bytes(), &body].concat()));
    let arguments = ["--json", "--sitemap", "http://larder.test/sitemap.xml"];
    let output = warm(&stage.daemon, &arguments).await;
    let printed = String::from_utf8_lossy(&output.stdout);
    let campaign: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!((&campaign["found"], &campaign["fetched"]), (&json!(2), &json!(2)), "{campaign}");
    let faults = campaign["faults"].to_string();
    for words in ["a page of another site", "none.xml: line 1: no sitemap"] {
        assert!(faults.contains(words), "{faults}");
    }
    assert!(is_hit(&stage.get("/a?b=1&c=2").await) && is_hit(&stage.get("/z").await));
    assert_eq!(stage.origin.seen("/foreign"), 0);
}

#[tokio::test]
async fn an_access_log_is_warmed_by_popularity() {
    let stage = Setup { limits: IN_ORDER, one_core: true, ..Setup::default() }.start().await;
    stage.origin.otherwise(page("", "page"));
    let folder = Folder::new();
    let line = |path: &str, status: u16| {
        format!(
            "192.0.2.1 - - [30/Nov/2026:10:00:00 +0000] \"GET {path} HTTP/1.1\" {status} 5 \"-\" \
             \"A\"\n"
        )
    };
    let mut log = line("/once", 200) + &line("/gone", 404);
    (0..3).for_each(|_| log += &line("/often", 200));
    (0..2).for_each(|_| log += &line("/twice", 304));
    folder.file("access.log", log.as_bytes());
    let log = folder.path().join("access.log");
    let log = log.to_str().expect("a path");
    warmed(&stage, &["--log", log, "--base", "http://larder.test"]).await;
    assert_eq!(in_order(&stage), ["/often", "/twice", "/once"]);
}

#[tokio::test]
async fn what_a_purge_removes_comes_back_hottest_first_in_the_variants_that_were_used() {
    let stage =
        Setup { limits: IN_ORDER, site: REWARM, one_core: true, ..Setup::default() }.start().await;
    for (target, fields) in [
        ("/cold", "xkey: shop\r\n"),
        ("/warm", "xkey: shop\r\n"),
        ("/hot", "xkey: shop\r\n"),
        ("/else", "xkey: blog\r\n"),
        ("/never", "xkey: shop\r\n"),
    ] {
        stage.origin.on(target, page(fields, "page"));
    }
    let by_language = "xkey: shop\r\nVary: Accept-Language, Cookie\r\n";
    stage.origin.on("/vary", page(by_language, "page"));
    for (target, times) in [("/cold", 2), ("/warm", 4), ("/hot", 9), ("/else", 9), ("/never", 1)] {
        visit(&stage, target, times).await;
    }
    for _ in 0..7 {
        stage.ask("GET", "/vary", "Accept-Language: de\r\n").await;
    }
    stage.origin.forget();
    purge(&stage.daemon, &json!({ "tags": "shop" })).await;
    eventually("the pages", async || stage.origin.targets().len() == 4).await;
    until_over(&stage.daemon).await;
    assert_eq!(in_order(&stage), ["/hot", "/vary", "/warm", "/cold"]);
    assert_eq!(sent_field(&stage.sole_request("/vary"), "accept-language"), "de");
    assert!(is_hit(&stage.ask("GET", "/vary", "Accept-Language: de\r\n").await));
    assert!(is_hit(&stage.get("/hot").await) && is_hit(&stage.get("/else").await));
    // Nobody has asked since, and they are still hot.
    stage.origin.forget();
    purge(&stage.daemon, &json!({ "all": true })).await;
    eventually("the pages", async || stage.origin.targets().len() == 5).await;
    let seen = stage.origin.targets();
    assert!(!seen.contains(&"/never".to_owned()), "{seen:?}");
    until_over(&stage.daemon).await;
    // A soft purge makes them stale, and they are renewed.
    stage.origin.forget();
    purge(&stage.daemon, &json!({ "url": "http://larder.test/hot", "soft": true })).await;
    eventually("the page", async || stage.origin.seen("/hot") == 1).await;
}

#[tokio::test]
async fn warming_keeps_to_its_share_and_waits_for_visitors() {
    let limits = "warm_share = 50\nwarm_fetches = 100";
    let origin = "connections = 4\nclient_share = 100\n";
    // The fetch of a visitor who has left ends only if nothing is to be stored.
    let site = "bypass = { path = \"/held/*\" }\n";
    let stage = Setup { limits, origin, site, one_core: true, ..Setup::default() }.start().await;
    stage.origin.otherwise(page("", "page"));
    // The window grows with the answers, unless the machine delays them.
    let round = AtomicU32::new(0);
    eventually("the window is as wide as the share", async || {
        let round = round.fetch_add(1, Ordering::Relaxed);
        let url = |n: u32| format!("http://larder.test/quick/{n}?{round}");
        let urls: Vec<String> = (0..9).map(url).collect();
        warmed(&stage, &urls.iter().map(String::as_str).collect::<Vec<_>>()).await;
        state(&stage.daemon).await["origins"][0]["window"] == 2
    })
    .await;
    for n in 0..9 {
        stage.origin.on(&format!("/slow/{n}"), Script::default().hang());
        stage.origin.on(&format!("/held/{n}"), Script::default().hang());
    }
    let mut visitors = Vec::new();
    for n in 0..4 {
        let stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
        stream.set_zero_linger().expect("an open socket");
        let mut raw = RawClient::over(stream);
        raw.send(&request("GET", &format!("/held/{n}"), ""), WriteSplit::Whole)
            .await
            .expect("sent");
        visitors.push(raw);
    }
    let seen = |prefix: &'static str| {
        stage.origin.targets().iter().filter(|target| target.starts_with(prefix)).count()
    };
    eventually("all connections are in use", async || seen("/held") == 4).await;
    let urls: Vec<String> = (0..9).map(|n| format!("http://larder.test/slow/{n}")).collect();
    let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    arguments.push("--background");
    warmed(&stage, &arguments).await;
    for _ in 0..20 {
        assert_eq!(stage.get("/quick/1?0").await.status, 200);
    }
    assert_eq!(seen("/slow"), 0, "visitors have all connections");
    drop(visitors);
    eventually("its share is in use", async || seen("/slow") == 2).await;
    for n in 0..20 {
        assert_eq!(stage.get(&format!("/other/{n}")).await.status, 200);
    }
    assert_eq!(seen("/slow"), 2, "it is never more");
    // What waits is dropped by a stop; what is under way stays.
    let printed = warmed(&stage, &["--stop"]).await;
    assert!(printed.starts_with("stopped"), "{printed}");
    eventually("the others are dropped", async || {
        campaign(&stage.daemon).await["dropped"].as_u64() >= Some(7)
    })
    .await;
    assert_eq!(seen("/slow"), 2);
}

#[tokio::test]
async fn a_reload_and_a_purge_in_the_middle_change_nothing_for_the_rest() {
    let stage = Setup { limits: IN_ORDER, one_core: true, ..Setup::default() }.start().await;
    stage.origin.otherwise(page("xkey: all\r\n", "page"));
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 8\r\n\r\n";
    let first = Script::respond(format!("{head}page")).delay_ms(300).send("tail");
    stage.origin.on("/first", first);
    let urls = ["first", "second", "third"].map(|name| format!("http://larder.test/{name}"));
    let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    arguments.push("--background");
    warmed(&stage, &arguments).await;
    eventually("it has begun", async || stage.origin.seen("/first") == 1).await;
    purge(&stage.daemon, &json!({ "url": "http://larder.test/first" })).await;
    let reply = Ask::post("/api/v1/config/reload", &json!(null)).send_locally(&stage.daemon).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let campaign = until_over(&stage.daemon).await;
    assert_eq!(campaign["found"], 3, "{campaign}");
    assert_eq!(in_order(&stage), ["/first", "/second", "/third"]);
    // A response whose fetch began before its purge is not stored.
    assert!(!is_hit(&stage.get("/first").await));
    assert!(is_hit(&stage.get("/second").await) && is_hit(&stage.get("/third").await));
}

#[tokio::test]
async fn what_was_hot_is_fetched_after_a_restart() {
    let folder = Folder::new();
    let place = folder.path().to_str().expect("a path");
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(page("", "page"));
    let file =
        Setup { limits: IN_ORDER, site: REWARM, one_core: true, ..Setup::default() }.file(&origin);
    let start = || {
        let mut command = Command::new("env");
        command.arg(format!("STATE_DIRECTORY={place}")).arg(binary().expect("the binary"));
        Daemon::start_command(command, &file, &[]).expect("larder starts")
    };
    let mut stage = Stage { origin, daemon: start() };
    for (target, times) in [("/warm", 3), ("/once", 1), ("/hot", 5)] {
        visit(&stage, target, times).await;
    }
    let pid = Pid::from_raw(stage.daemon.pid() as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("it runs");
    assert!(stage.daemon.wait().expect("it ends").success(), "{}", stage.daemon.log());
    stage.origin.forget();
    stage.daemon = start();
    eventually("the hot pages", async || stage.origin.targets().len() == 2).await;
    until_over(&stage.daemon).await;
    assert_eq!(in_order(&stage), ["/hot", "/warm"]);
    assert!(is_hit(&stage.get("/hot").await));
}

#[tokio::test]
async fn what_is_popular_is_renewed_before_its_end() {
    let site = "[site.warm]\nrefresh_ahead = 3\n";
    let stage = Setup { site, one_core: true, ..Setup::default() }.start().await;
    // Five seconds of a hundred are left.
    stage.origin.on("/page", Script::ok("Cache-Control: max-age=100\r\nAge: 95\r\n", "page"));
    stage.origin.on("/young", Script::ok("Cache-Control: max-age=100\r\n", "page"));
    visit(&stage, "/young", 9).await;
    visit(&stage, "/page", 4).await;
    assert_eq!(stage.metric("larder_refreshed_ahead_total").await, 0);
    let reply = stage.get("/page").await;
    assert!(is_hit(&reply), "nobody waits for it");
    eventually("it is renewed", async || stage.origin.seen("/page") == 2).await;
    assert_eq!(stage.origin.seen("/young"), 1);
    assert_eq!(stage.metric("larder_refreshed_ahead_total").await, 1);
}

#[tokio::test]
async fn a_site_with_a_program_is_warmed_and_comes_back() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let program = format!(
        "vcl 4.1;\nbackend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }}\n\
         sub vcl_recv {{ if (req.url ~ \"^/pass\") {{ return (pass); }} return (hash); }}\n",
        origin.addr().port()
    );
    folder.file("site.vcl", program.as_bytes());
    let file = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\n[limits]\n{IN_ORDER}\n[[site]]\nhost = \"*\"\n\
         vcl = \"{}\"\n{REWARM}",
        folder.path().join("site.vcl").display()
    );
    origin.otherwise(page("", "page"));
    let stage = Stage { origin, daemon: Daemon::start(&file).expect("larder starts") };
    let urls = ["http://larder.test/a", "http://larder.test/b", "http://larder.test/pass"];
    let printed = warmed(&stage, &urls).await;
    assert!(printed.starts_with("2 fetched, 1 not for the cache in "), "{printed}");
    assert_eq!(in_order(&stage), ["/a", "/b"]);
    visit(&stage, "/a", 1).await;
    visit(&stage, "/b", 3).await;
    assert_eq!(stage.origin.targets().len(), 2, "visitors hit");
    stage.origin.forget();
    purge(&stage.daemon, &json!({ "all": true })).await;
    eventually("the pages", async || stage.origin.targets().len() == 2).await;
    assert_eq!(in_order(&stage), ["/b", "/a"]);
}

#[tokio::test]
async fn orders_that_make_no_sense_are_refused() {
    let stage = Stage::new().await;
    for (body, status) in [
        (json!({}), 400),
        (json!({ "stop": true, "site": "*" }), 400),
        (json!({ "stop": true }), 404),
        (json!({ "site": "unknown" }), 404),
        (json!({ "pages": [], "campaign": 7 }), 404),
        (json!({ "urls": [] }), 400),
    ] {
        let reply = Ask::post("/api/v1/warm", &body).send_locally(&stage.daemon).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
    let output = warm(&stage.daemon, &["https://larder.test/ü", "ftp://larder.test/"]).await;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("`ftp://larder.test/` is no URL"), "{error}");
    let output = warm(&stage.daemon, &["--list", "/nonexistent/list"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stage.metric("larder_warm_dropped_total").await, 0);
}
