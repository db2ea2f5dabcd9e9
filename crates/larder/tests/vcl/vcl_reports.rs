//! Tests of accounts of requests under VCL, by the log and by `explain`: the reported line is the
//! line that returned.

use crate::support;

use serde_json::{Value, json};
use support::console::printed;
use support::folder::Folder;
use support::{Stage, eventually};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

const DEFAULT: &str = r#"vcl 4.1;
import std;
backend b { .host = "HOST"; .port = "PORT"; }
include "./more.vcl";
sub vcl_recv {
  call normalise;
  if (req.url == "/no") { return (synth(403, "no")); }
  if (req.url == "/boom") {
    return (fail("on purpose"));
  }
}
"#;

const MORE: &str = r#"sub normalise {
  if (req.url ~ "^/pass") {
    std.log("class:pass");
    return (pass);
  }
}
sub vcl_backend_response {
  set beresp.ttl = 1h;
  return (deliver);
}
"#;

/// A daemon with the program above; the folder is its program's.
async fn start() -> (Stage, Folder) {
    start_with(DEFAULT, "").await
}

/// A daemon with this program and these keys of `[limits]`.
async fn start_with(program: &str, limits: &str) -> (Stage, Folder) {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    for path in ["/page", "/pass"] {
        origin.on(path, Script::cacheable("body"));
    }
    let folder = Folder::new();
    let (host, port) = (origin.addr().ip().to_string(), origin.addr().port().to_string());
    folder.file("default.vcl", program.replace("HOST", &host).replace("PORT", &port));
    folder.file("more.vcl", MORE);
    let vcl = folder.path().join("default.vcl");
    let site = format!("[[site]]\nhost = \"*\"\nvcl = \"{}\"\n", vcl.display());
    let file = format!("listen = \"127.0.0.1:0\"\nworkers = 2\n{site}[limits]\n{limits}");
    let daemon = Daemon::start(&file).expect("larder starts");
    (Stage { origin, daemon }, folder)
}

/// The first `count` records, by their numbers.
async fn records(stage: &Stage, count: usize) -> Vec<Value> {
    let all = async || printed(&stage.daemon, &["log", "--once", "--json"]).await;
    eventually("records", async || all().await.lines().count() == count).await;
    let text = all().await;
    let mut all: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    all.sort_by_key(|record| record["xid"].as_u64());
    all
}

/// The steps of a record: subroutine, file and line, and the returned action. The builtin VCL's are
/// without lines.
fn steps(record: &Value) -> Vec<String> {
    let word = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    let one = |step: &Value| {
        let at = word(step, "at");
        let at = if at.starts_with("<builtin>:") { "builtin" } else { &at };
        format!("{} {at} {}", word(step, "sub"), word(step, "return"))
    };
    let all = record["vcl"].as_array().into_iter().flatten();
    all.filter(|step| step["sub"].is_string()).map(one).collect()
}

#[tokio::test]
async fn the_log_has_the_lines_that_returned_and_finds_requests_by_them() {
    let (stage, _folder) = start().await;
    let mut xids = Vec::new();
    for target in ["/page", "/page", "/pass", "/no", "/boom"] {
        let reply = stage.get(target).await;
        let xid = reply.field("X-Varnish").unwrap_or_default();
        xids.push(xid.split(' ').next().unwrap_or_default().parse::<u64>().expect("a number"));
    }
    let all = records(&stage, 5).await;
    let own: Vec<_> = all.iter().map(|record| record["xid"].as_u64().unwrap_or(0)).collect();
    assert_eq!(own, xids);
    assert_eq!(
        steps(&all[0]),
        [
            "recv builtin hash",
            "hash builtin lookup",
            "miss builtin fetch",
            "backend_fetch builtin fetch",
            "backend_response more.vcl:9 deliver",
            "deliver builtin deliver",
        ]
    );
    assert_eq!(steps(&all[1])[2..], ["hit builtin deliver", "deliver builtin deliver"]);
    assert_eq!(steps(&all[2])[0], "recv more.vcl:4 pass");
    assert_eq!(all[2]["vcl"][0], json!({ "tag": "VCL_Log", "text": "class:pass" }));
    assert_eq!((&all[2]["vcl_log"], &all[2]["origin"]), (&json!(["class:pass"]), &json!("b")));
    assert_eq!(
        steps(&all[3]),
        ["recv default.vcl:7 synth", "hash builtin lookup", "synth builtin deliver"]
    );
    assert_eq!(steps(&all[4]), ["recv default.vcl:9 fail", "synth builtin deliver"]);
    let error = all[4]["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("on purpose (") && error.ends_with("default.vcl line 9)"), "{error}");
    for (query, count) in [
        (r#"vcl == "recv default.vcl:9 fail""#, 1),
        (r#"vcl ~ "^recv more.vcl:""#, 1),
        (r#"vcl ~ "^VCL_Log class:pass$""#, 1),
        (r#"vcl !~ "^(miss|hit) ""#, 3),
        (&format!("xid == {}", xids[3]), 1),
        ("error", 1),
    ] {
        let found = printed(&stage.daemon, &["log", "--once", "-q", query]).await;
        assert_eq!(found.lines().count(), count, "{query}: {found}");
    }
    let detail =
        printed(&stage.daemon, &["log", "--once", "--detail", "-q", "req.url == \"/pass\""]).await;
    let lines = "-   VCL_Log    class:pass\n-   vcl        recv  more.vcl:4  pass\n";
    assert!(detail.contains(lines), "{detail}");
}

#[tokio::test]
async fn explain_names_the_lines_by_which_it_then_goes() {
    let (stage, folder) = start().await;
    let explain = async |target: &str| -> Value {
        let url = format!("http://larder.test{target}");
        let told = printed(&stage.daemon, &["explain", &url, "--json"]).await;
        serde_json::from_str(&told).expect("JSON")
    };
    let step = |told: &Value, what: &str| {
        let all = told["steps"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|step| step["what"] == what);
        found.unwrap_or_else(|| panic!("no {what} in {told}"))
    };
    let place = |file: &str| json!(folder.path().join(file).display().to_string());
    let named = |name: &str, line: u32| {
        json!(format!("{}:{line}", place(name).as_str().unwrap_or_default().trim_matches('"')))
    };
    let told = explain("/pass").await;
    let recv = step(&told, "recv");
    assert_eq!(
        (&recv["where"], &recv["why"]),
        (&named("more.vcl", 4), &json!("vcl_recv returned pass"))
    );
    assert_eq!(recv["facts"][0], json!({ "name": "line", "value": "return (pass);" }));
    assert_eq!((&recv["decided"], &told["outcome"]["served"]), (&json!(true), &json!("PASS")));
    let place_of = |line| named("more.vcl", line).as_str().unwrap_or_default().to_owned();
    let advice = format!("The setting at {} decides: change it there.", place_of(4));
    assert_eq!(told["advice"], json!([advice]));
    let told = explain("/no").await;
    assert_eq!(step(&told, "recv")["where"], named("default.vcl", 7));
    assert_eq!(told["outcome"]["summary"], "would be answered by vcl_synth, with status 403");
    let told = explain("/page").await;
    assert_eq!(told["outcome"]["served"], "MISS");
    let next = "Nothing: the next request finds it stored, unless the answer forbids that.";
    assert_eq!(told["advice"], json!([next]));
    assert!(stage.received().is_empty(), "nothing was asked");
    stage.get("/page").await;
    records(&stage, 1).await;
    let told = explain("/page").await;
    assert_eq!(told["outcome"]["served"], "HIT");
    assert_eq!(told["advice"], json!(["Nothing: the cache answers."]));
    let freshness = step(&told, "freshness");
    let from = json!(format!(
        "{}: set beresp.ttl = 1h;",
        named("more.vcl", 8).as_str().unwrap_or_default()
    ));
    assert_eq!(freshness["facts"][0], json!({ "name": "may be from", "value": from }));
    let past = told["past"][0]["facts"].to_string();
    assert!(past.contains("backend_response more.vcl:9 deliver"), "{past}");
    // For people, too.
    let page = printed(&stage.daemon, &["explain", "http://larder.test/boom"]).await;
    assert!(page.contains("vcl_recv failed: on purpose"), "{page}");
}

#[tokio::test]
async fn a_limit_that_ends_a_program_is_reported() {
    let many = "set bereq.http.x = \"1\"; ".repeat(100);
    let twice = "set bereq.http.x = regsuball(bereq.http.x, \".\", \"ab\"); ";
    let grow = format!("set bereq.http.x = \"0123456789\"; {}", twice.repeat(30));
    let program = format!(
        "vcl 4.1;\nbackend b {{ .host = \"HOST\"; .port = \"PORT\"; }}\n\
         sub vcl_recv {{ if (req.url == \"/recv\") {{ {} }} \
         if (req.url == \"/build\") {{ {} }} }}\n\
         sub vcl_backend_fetch {{ if (bereq.url == \"/fetch\") {{ {many} }} \
         if (bereq.url == \"/grow\") {{ {grow} }} }}\n",
        many.replace("bereq", "req"),
        grow.replace("bereq", "req")
    );
    let limits =
        "vcl_steps = 90\nvcl_workspace_client = \"4KiB\"\nvcl_workspace_backend = \"4KiB\"\n";
    let (stage, _folder) = start_with(&program, limits).await;
    let answers =
        [("/page", 200), ("/recv", 500), ("/fetch", 503), ("/build", 503), ("/grow", 503)];
    for (target, status) in answers {
        assert_eq!(stage.get(target).await.status, status, "{target}");
    }
    let all = records(&stage, 5).await;
    let limits: Vec<_> = all.iter().map(|record| record["limit"].as_str()).collect();
    let steps = Some("vcl_steps");
    let strings = [Some("vcl_workspace_client"), Some("vcl_workspace_backend")];
    assert_eq!(limits, [&[None, steps, steps][..], &strings].concat());
    let found = printed(&stage.daemon, &["log", "--once", "-q", "limit == vcl_steps"]).await;
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[tokio::test]
async fn a_background_fetch_reports_its_program_and_its_cause() {
    let program = r#"vcl 4.1;
import std;
backend b { .host = "HOST"; .port = "PORT"; }
sub vcl_backend_response {
  set beresp.ttl = 100ms;
  set beresp.grace = 1h;
  if (bereq.is_bgfetch) {
    std.log("behind it");
    if (beresp.status == 500) { return (abandon); }
  }
  return (deliver);
}
"#;
    let (stage, _folder) = start_with(program, "").await;
    let xid = |reply: &testkit::reply::Reply| {
        let field = reply.field("X-Varnish").unwrap_or_default();
        field.split(' ').next().unwrap_or_default().parse::<u64>().expect("a number")
    };
    let both = async |filter: &str, count: usize| {
        let arguments = ["log", "--once", "--json", "-q", filter];
        eventually(filter, async || {
            printed(&stage.daemon, &arguments).await.lines().count() == count
        })
        .await;
        let text = printed(&stage.daemon, &arguments).await;
        let all: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        all
    };
    stage.get("/page").await;
    support::pause(300).await;
    let stale = xid(&stage.get("/page").await);
    let fetch = &both(&format!("parent == {stale}"), 1).await[0];
    assert_eq!(fetch["parent"], stale.to_string());
    assert_ne!(fetch["xid"], stale);
    let told = ["kind", "cache", "status", "origin_status", "stored", "origin"];
    assert_eq!(
        told.map(|name| fetch[name].clone()),
        [json!("background"), json!("REFRESH"), json!(200), json!(200), json!(true), json!("b")]
    );
    assert_eq!(fetch["vcl_log"], json!(["behind it"]));
    let names: Vec<_> = steps(fetch).iter().map(|step| step.replace("default.vcl", "")).collect();
    assert_eq!(names, ["backend_fetch builtin fetch", "backend_response :11 deliver"]);

    let failed = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
    stage.origin.on("/page", Script::respond(failed));
    support::pause(300).await;
    let stale = xid(&stage.get("/page").await);
    let fetch = &both(&format!("parent == {stale}"), 1).await[0];
    assert_eq!((&fetch["origin_status"], &fetch["stored"]), (&json!(500), &json!(false)));
    assert!(steps(fetch)[1].ends_with(" abandon"), "{fetch}");
}
