//! Tests of the dashboard as a browser gets it: public files, and figures for clients with a token.

use crate::support;

use serde_json::Value;
use support::console::{Ask, run};
use support::events::{Events, bearer};
use support::explain::explain;
use support::folder::Folder;
use support::nats::Nats;
use support::{PATIENCE, Setup, Stage, eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::io::AsyncReadExt;

const TOP: &str = "[admin]\nlisten = \"127.0.0.1:0\"";

/// Asks the admin listener for the whole of something.
async fn ask(stage: &Stage, target: &str, fields: &str) -> Reply {
    let at = stage.daemon.admin().expect("an admin listener");
    let mut raw = RawClient::connect(at).await.expect("a connection").patience(PATIENCE);
    let asked =
        format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
    raw.send(asked.as_bytes(), WriteSplit::Whole).await.expect("sent");
    whole(raw.reply("GET").await, target)
}

#[tokio::test]
async fn the_page_is_for_everyone_and_runs_nothing_but_its_own_files() {
    let stage = Setup { top: TOP, ..Setup::default() }.start().await;
    let page = ask(&stage, "/", "").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.field("content-type").as_deref(), Some("text/html; charset=utf-8"));
    let policy = page.field("content-security-policy").expect("a policy");
    for part in ["default-src 'self'", "script-src 'self'", "style-src 'self'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    let text = page.text();
    // Paths are quoted, and nothing else in quotes starts with a slash.
    let files = text.split('"').skip(1).step_by(2).filter(|part| part.starts_with('/'));
    let files = files.filter(|file| !file.starts_with("/docs/"));
    for file in files {
        assert_eq!(ask(&stage, file, "").await.status, 200, "{file}");
    }
    // And the scripts' imports.
    for script in ["/app.js", "/board.js", "/charts.js"] {
        let text = ask(&stage, script, "").await.text();
        let names = text.split("from './").skip(1).filter_map(|rest| rest.split('\'').next());
        for name in names {
            assert_eq!(ask(&stage, &format!("/{name}"), "").await.status, 200, "{name}");
        }
    }
    assert_eq!(ask(&stage, "/api/v1/live", "").await.status, 401);
    let wrong = "Authorization: Bearer none-of-this-daemon\r\n";
    assert_eq!(ask(&stage, "/api/v1/live", wrong).await.status, 401);
}

#[tokio::test]
async fn the_documentation_is_served_from_its_folder_and_nothing_else_is() {
    let (folder, long) = (Folder::new(), "x".repeat(200_000));
    folder.file("html/index.html", "<h1>Larder</h1>");
    folder.file("html/docs/guide/purging.html", "<h1>Purging</h1>");
    folder.file("html/search.js", &long);
    folder.file("secret.html", "a secret");
    folder.link("../secret.html", "html/link.html");
    let top = format!("{TOP}\ndocs = \"{}/html\"", folder.path().display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let page = ask(&stage, "/docs/docs/guide/purging.html?h=purge", "").await;
    assert_eq!((page.status, page.text().as_str()), (200, "<h1>Purging</h1>"));
    assert_eq!(page.field("content-type").as_deref(), Some("text/html; charset=utf-8"));
    let policy = page.field("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'self'"), "{policy}");
    assert_eq!(ask(&stage, "/docs/", "").await.text(), "<h1>Larder</h1>");
    assert_eq!(ask(&stage, "/docs/search.js", "").await.text(), long);
    for outside in
        ["/docs/link.html", "/docs/../secret.html", "/docs/%2e%2e/secret.html", "/docs/x"]
    {
        let refused = ask(&stage, outside, "").await;
        assert_ne!(refused.status, 200, "{outside}");
        assert!(!refused.text().contains("a secret"), "{outside}");
    }
    let mut events = Events::open(&stage, "read").await;
    assert_eq!(events.find("hello", |_| true).await["docs"], true);
}

#[tokio::test]
async fn a_daemon_without_documentation_says_so_and_has_no_links() {
    for (docs, words) in [("\"/nowhere\"", "see `[admin] docs`"), ("false", "is false")] {
        let top = format!("{TOP}\ndocs = {docs}");
        let stage = Setup { top: &top, ..Setup::default() }.start().await;
        let page = ask(&stage, "/docs/index.html", "").await;
        assert_eq!(page.status, 404);
        assert!(page.text().contains(words), "{}", page.text());
        let mut events = Events::open(&stage, "read").await;
        assert_eq!(events.find("hello", |_| true).await["docs"], false);
    }
}

#[tokio::test]
async fn a_viewer_sees_the_past_and_the_present() {
    let top = "[admin]\nlisten = \"127.0.0.1:0\"\nhistory = \"2h\"";
    let stage = Setup { top, ..Setup::default() }.start().await;
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    stage.origin.on("/early", Script::respond(busy));
    stage.origin.on("/kept", Script::cacheable("a page"));
    assert_eq!(stage.get("/early").await.status, 503);
    let mut events = Events::open(&stage, "read").await;
    let hello = events.find("hello", |_| true).await;
    assert_eq!(hello["role"], "read");
    assert!(hello["host"].as_str().is_some_and(|host| !host.is_empty()));
    let history = events.find("history", |_| true).await;
    assert_eq!(history["columns"][0], "time_ms");
    assert_eq!(history["reach_s"], 7_200);
    assert!(history["minutes"].is_array());
    let failed = |data: &Value| data["ring"]["errors"][0]["url"] == "larder.test/early";
    let first = events.find("figures", failed).await;
    assert_eq!(first["ring"]["errors"][0]["status"], 503);
    let server = &first["servers"][0];
    assert_eq!((&server["origin"], &server["answers"]), (&"app".into(), &1.into()));
    assert!(server["answers_us"].as_u64() > Some(0) && server["last_error"].is_null(), "{server}");
    assert_eq!(first["certificates"], serde_json::json!([]));
    for _ in 0..3 {
        assert_eq!(stage.get("/kept").await.status, 200);
    }
    let hits = |data: &Value| data["rates"]["hits"].as_f64().is_some_and(|rate| rate > 0.0);
    let figures = events.find("figures", hits).await;
    assert_eq!(figures["now"]["objects"], 1);
    assert_eq!(figures["now"]["purges_lost"], 0);
    assert_eq!(figures["cluster"], Value::Null, "the daemon is alone");
    let missed = |data: &Value| data["ring"]["urls_by_misses"][0]["key"] == "larder.test/kept";
    let figures = events.find("figures", missed).await;
    let columns = figures["ring"]["latency"]["hits"].as_array().expect("columns");
    assert!(columns.iter().any(|rate| rate.as_f64().is_some_and(|rate| rate > 0.0)));
}

/// A browser's request for `target` through the daemon's own port; its host and port.
async fn by_port(stage: &Stage, target: &str) -> String {
    let authority = format!("larder.test:{}", stage.daemon.addr().port());
    let asked = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    stage.exchange("GET", asked.as_bytes()).await;
    authority
}

#[tokio::test]
async fn what_the_tables_name_can_be_explained_and_purged() {
    let stage = Setup { top: TOP, ..Setup::default() }.start().await;
    stage.origin.on("/kept", Script::cacheable("a page"));
    stage.origin.on("/cut", Script::default().close());
    let mut events = Events::open(&stage, "read").await;
    events.find("figures", |data| data["ring"].is_object()).await;
    by_port(&stage, "/kept").await;
    let authority = by_port(&stage, "/cut").await;
    let (kept, cut) = (format!("{authority}/kept"), format!("{authority}/cut"));
    let named = |data: &Value| {
        let rows = data["ring"]["urls_by_misses"].as_array().into_iter().flatten();
        let is_kept = |row: &&Value| row["key"] == *kept && row["secure"] == false;
        let has_kept = rows.filter(is_kept).count() == 1;
        has_kept && data["ring"]["errors"][0]["url"] == *cut
    };
    events.find("figures", named).await;
    let url = format!("http://{kept}");
    let told = explain(&stage.daemon, &serde_json::json!({ "url": url })).await;
    assert_eq!(told["outcome"]["served"], "HIT", "{told:#}");
    let purge = Ask::post("/api/v1/purge", &serde_json::json!({ "url": url }));
    let reply = purge.send_locally(&stage.daemon).await;
    assert!(reply.text().contains("\"purged\":1"), "{}", reply.text());
}

#[tokio::test]
async fn reasons_for_not_caching_are_summed_up_with_their_urls() {
    let stage = Setup { top: TOP, site: "bypass = { path = [\"/admin*\"] }", ..Setup::default() };
    let stage = stage.start().await;
    stage.origin.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    stage.origin.on("/admin", Script::cacheable("admin"));
    stage.origin.on("/kept", Script::cacheable("a page"));
    let mut events = Events::open(&stage, "read").await;
    events.find("figures", |data| data["ring"].is_object()).await;
    for target in ["/own", "/own", "/own", "/admin", "/kept", "/kept"] {
        stage.get(target).await;
    }
    let all =
        |data: &Value| data["ring"]["not_cached"].as_array().is_some_and(|all| all.len() == 2);
    let figures = events.find("figures", all).await;
    let [first, second] = &figures["ring"]["not_cached"].as_array().expect("rows")[..] else {
        panic!("two reasons")
    };
    assert_eq!(
        (&first["reason"], &first["rule"]),
        (&"no-store".into(), &"RFC 9111 5.2.2.5".into())
    );
    assert_eq!(first["about"], "The response says no-store.");
    assert!(first["share"].as_f64().is_some_and(|share| share > 0.5), "{first}");
    let urls = first["urls"].as_array().expect("rows");
    assert_eq!((urls.len(), &urls[0]["key"]), (1, &"larder.test/own".into()));
    assert!(second["reason"].as_str().is_some_and(|it| it.starts_with("pass bypass")), "{second}");
    assert_eq!(second["urls"][0]["key"], "larder.test/admin");
}

/// Two sites of one origin besides the one for all hosts; one of the two has a secret.
fn two_sites(origin: &ScriptedOrigin) -> String {
    let setup =
        Setup { top: "[admin]\nlisten = \"127.0.0.1:0\"\nhistory = \"1h\"", ..Setup::default() };
    format!(
        "{}\n[[site]]\nhost = \"shop.test\"\norigin = \"app\"\npreset = \"wordpress\"\n\
         request_headers = {{ set = {{ X-Key = \"word-of-the-shop\" }} }}\n\
         [[site.route]]\npath = \"/old\"\nredirect = {{ to = \"/new\", status = 301 }}\n\
         [[site]]\nhost = \"blog.test\"\norigin = \"app\"\n",
        setup.file(origin)
    )
}

#[tokio::test]
async fn one_site_alone_has_figures_a_time_before_and_tables_of_its_own() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let daemon = Daemon::start(&two_sites(&origin)).expect("larder starts");
    let stage = Stage { daemon, origin };
    stage.origin.on("/kept", Script::cacheable("a page"));
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    stage.origin.on("/early", Script::respond(busy));
    let get = async |host: &str, target: &str| {
        let asked = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stage.exchange("GET", asked.as_bytes()).await
    };
    get("shop.test", "/early").await;
    get("blog.test", "/early").await;
    let mut all = Events::open(&stage, "read").await;
    let mut shop = Events::open_at(&stage, "read", "/api/v1/live?site=shop.test").await;
    for target in ["/kept", "/kept", "/kept", "/old"] {
        get("shop.test", target).await;
    }
    for _ in 0..6 {
        get("blog.test", "/kept").await;
    }
    // The figures of one site's visitors only.
    let told = |data: &Value| {
        data["now"]["spared_requests"] == 2
            && data["ring"]["urls_by_time"].as_array().is_some_and(|rows| rows.len() == 2)
    };
    let figures = shop.find("figures", told).await;
    assert_eq!(figures["site"], serde_json::json!({ "name": "shop.test", "origins": ["app"] }));
    let errors = figures["ring"]["errors"].as_array().expect("rows");
    assert_eq!((errors.len(), &errors[0]["url"]), (1, &"shop.test/early".into()), "of before, too");
    let urls = figures["ring"]["urls_by_time"].as_array().expect("rows");
    assert!(
        urls.iter().all(|row| row["key"].as_str().is_some_and(|key| key.starts_with("shop.test/")))
    );
    assert_eq!(figures["sites"].as_array().map(Vec::len), Some(2), "one may choose another");
    let figures = all.find("figures", |data| data["now"]["spared_requests"] == 7).await;
    assert_eq!(figures["site"], Value::Null);
    // The history: equal columns, of the site alone.
    let mut later = Events::open_at(&stage, "read", "/api/v1/live?site=shop.test").await;
    let history = later.find("history", |_| true).await;
    let columns: Vec<&str> =
        history["columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let sum = |name: &str| -> f64 {
        let at = columns.iter().position(|own| *own == name).expect(name);
        let rows = history["rows"].as_array().into_iter().flatten();
        rows.filter_map(|row| row[at].as_f64()).sum()
    };
    for name in [
        "hits",
        "successes",
        "redirects",
        "errors",
        "from_store",
        "judged",
        "hits_p50_us",
        "others_p99_us",
    ] {
        assert!(sum(name) > 0.0, "{name}: {history}");
    }
    assert!(
        sum("hits") < 4.0 && sum("client_errors") == 0.0,
        "blog.test's are not among them: {history}"
    );
    let unknown = ask(&stage, "/api/v1/live?site=nobody.test", &bearer(&stage, "read")).await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test]
async fn readers_see_the_configuration_in_force_without_its_secrets() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let daemon = Daemon::start(&two_sites(&origin)).expect("larder starts");
    let stage = Stage { daemon, origin };
    let reply = ask(&stage, "/api/v1/sites", &bearer(&stage, "read")).await;
    let text = reply.text();
    assert!(!text.contains("word-of-the-shop"), "{text}");
    let told: Value = serde_json::from_str(&text).expect("JSON");
    let rules = told["sites"][1]["rules"].as_str().expect("rules");
    for line in
        ["site               shop.test", "  presets            wordpress", "/old", "X-Key is set"]
    {
        assert!(rules.contains(line), "{line}: {rules}");
    }
    assert_eq!(told["sites"][1]["origins"], serde_json::json!(["app"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_shown_with_its_nodes_and_problems() {
    let mut nats = Nats::start(&[]).await;
    let top = format!("{TOP}\n[cluster]\nservers = [\"{}\"]\nname = \"n1\"\n", nats.url());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let mut events = Events::open(&stage, "read").await;
    let is_ready = |data: &Value| data["cluster"]["members"][0]["state"] == "ready";
    let figures = events.find("figures", is_ready).await;
    let cluster = &figures["cluster"];
    assert_eq!((&cluster["name"], &cluster["nodes"]), (&"n1".into(), &1.into()));
    assert_eq!((&cluster["connected"], &cluster["trusted"]), (&true.into(), &true.into()));
    assert_eq!(cluster["members"][0]["name"], "n1");
    assert_eq!(cluster["configuration"], Value::Null, "it has its own alone");
    nats.kill();
    let is_out = |data: &Value| data["cluster"]["problem"].is_string();
    let figures = events.find("figures", is_out).await;
    assert_eq!(figures["cluster"]["connected"], false);
}

#[tokio::test]
async fn a_link_signs_in_by_itself_and_may_what_its_role_may() {
    let stage = Setup { top: TOP, ..Setup::default() }.start().await;
    for (role, may_purge) in [("read", 403), ("purge", 200), ("config", 200)] {
        let (is_ok, link, why) = run(&stage.daemon, &["dashboard", "--role", role]).await;
        assert!(is_ok, "{why}");
        let at = stage.daemon.admin().expect("an admin listener");
        let token = link.trim().strip_prefix(&format!("http://{at}/#token=")).expect("a link");
        let fields = format!("Authorization: Bearer {token}\r\n");
        assert_eq!(ask(&stage, "/api/v1/status", &fields).await.status, 200);
        let body = r#"{"all":true}"#;
        let purge = format!(
            "POST /api/v1/purge HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut raw = RawClient::connect(at).await.expect("a connection").patience(PATIENCE);
        raw.send(purge.as_bytes(), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(raw.reply("POST").await, role).status, may_purge, "{role}");
    }
    let stage = Setup::default().start().await;
    let (is_ok, said, why) = run(&stage.daemon, &["dashboard"]).await;
    assert!(!is_ok && said.is_empty() && why.contains("listen = \"127.0.0.1:6080\""), "{why}");
}

#[tokio::test]
async fn a_purge_that_found_no_site_is_shown() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let site = "preset = \"wordpress\"";
    let file = Setup { top: TOP, site, ..Setup::default() }.file(&origin);
    let file = file.replacen("host = \"*\"", "host = \"shop.test\"", 1);
    let stage = Stage { origin, daemon: Daemon::start(&file).expect("larder starts") };
    let mut events = Events::open(&stage, "read").await;
    let lost = |count: u64| move |data: &Value| data["now"]["purges_lost"] == count;
    events.find("figures", lost(0)).await;
    let purge = b"PURGE /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    assert_eq!(stage.exchange("PURGE", purge).await.status, 421);
    events.find("figures", lost(1)).await;
}

#[tokio::test]
async fn no_more_look_than_may_and_a_place_is_free_again_once_one_leaves() {
    let limits = "dashboard_viewers = 1";
    let stage = Setup { top: TOP, limits, ..Setup::default() }.start().await;
    let mut first = Events::open(&stage, "config").await;
    first.find("figures", |_| true).await;
    let token = bearer(&stage, "purge");
    let refused = ask(&stage, "/api/v1/live", &token).await;
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("dashboard_viewers"), "{}", refused.text());
    drop(first);
    eventually("a place is free", async || {
        let mut next = Events::open(&stage, "purge").await;
        let mut head = [0; 12];
        next.stream.read_exact(&mut head).await.expect("an answer");
        &head == b"HTTP/1.1 200"
    })
    .await;
}

#[tokio::test]
async fn without_a_ring_there_are_figures_once_a_second_all_the_same() {
    let top = "log_ring = \"off\"\n[admin]\nlisten = \"127.0.0.1:0\"";
    let stage = Setup { top, ..Setup::default() }.start().await;
    let mut events = Events::open(&stage, "read").await;
    let figures = events.find("figures", |_| true).await;
    assert_eq!(figures["ring"], Value::Null);
    assert_eq!(figures["now"]["connections"], 0);
    let uptime = |at: &Value| at["uptime_s"].as_u64().unwrap_or_default();
    let later = uptime(&figures) + 3;
    events.find("figures", |data| uptime(data) >= later).await;
    let told = events.text.matches("event: figures").count();
    assert!(told < 10, "{told} in some three seconds");
}
