//! Behaviours that the declared policy and a program in VCL share: one list, run against a site of
//! either kind.
//!
//! A bug that ends a fetch (`larder_panics_total`) is not in the list: no client, origin or program
//! can make a fetch panic, and `vtc.panic` fails a program without a panic.

use crate::support;

use std::time::Duration;

use serde_json::Value;
use support::collector::{CLIENT, Collector, attribute};
use support::console::printed;
use support::folder::Folder;
use support::{PATIENCE, Setup, Stage, eventually, sent_field, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener};
use tokio::time::timeout;

/// The kind of policy that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Declared,
    Vcl,
}

const BOTH: [Policy; 2] = [Policy::Declared, Policy::Vcl];

/// Settings of the declared site, written as a program.
const PROGRAM: &str = "sub vcl_recv {
    if (req.method == \"PURGE\") { return (purge); }
    if (req.url ~ \"^/pass\") { return (pass); }
}
sub vcl_backend_response { set beresp.grace = 0s; set beresp.keep = 1h; }
";

/// A site of either kind, with these keys at the top of the file.
async fn site(policy: Policy, top: &str) -> (Stage, Folder) {
    limited_site(policy, top, "").await
}

/// A site of either kind, with these keys of `[limits]`.
async fn limited_site(policy: Policy, top: &str, limits: &str) -> (Stage, Folder) {
    let folder = Folder::new();
    let keys = "bypass = { path = [\"/pass*\"] }\npurge = { dialects = [\"purge\"] }\n";
    let setup = Setup { top, site: keys, limits, ..Setup::default() };
    if policy == Policy::Declared {
        return (setup.start().await, folder);
    }
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    let backend = format!("backend app {{ .host = \"{host}\"; .port = \"{port}\"; }}");
    folder.file("site.vcl", format!("vcl 4.1;\n{backend}\n{PROGRAM}"));
    let vcl = folder.path().join("site.vcl").display().to_string();
    let file = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 2\n{top}\n[[site]]\nhost = \"*\"\nvcl = \"{vcl}\"\n\
         [limits]\n{limits}\n"
    );
    (Stage { origin, daemon: Daemon::start(&file).expect("larder starts") }, folder)
}

/// Waits until a target has `count` records, and returns them.
async fn records(stage: &Stage, target: &str, count: usize) -> Vec<Value> {
    let of_target = async || -> Vec<Value> {
        let text = printed(&stage.daemon, &["log", "--once", "--json"]).await;
        let all = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        all.filter(|record: &Value| record["target"] == target).collect()
    };
    eventually("the records", async || of_target().await.len() >= count).await;
    of_target().await
}

#[tokio::test]
async fn a_plain_page_is_stored_found_and_counted() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        stage.origin.on("/page", Script::cacheable("a page"));
        for _ in 0..2 {
            let reply = stage.get("/page").await;
            assert_eq!((reply.status, reply.text()), (200, "a page".to_owned()), "{policy:?}");
        }
        assert_eq!(stage.origin.seen("/page"), 1, "{policy:?}");
        stage.daemon.assert_metric("larder_stores_total", 1).await;
        let mut told: Vec<_> = records(&stage, "/page", 2).await;
        told.sort_by_key(|record| record["cache"].as_str().map(str::to_owned));
        let of = |at: usize, key: &str| told[at][key].to_string();
        assert_eq!([of(0, "cache"), of(1, "cache")], ["\"HIT\"", "\"MISS\""], "{policy:?}");
        assert_eq!([of(0, "stored"), of(1, "stored")], ["false", "true"], "{policy:?}");
    }
}

#[tokio::test]
async fn parts_and_conditions_are_answered_from_what_is_stored() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        stage
            .origin
            .on("/page", Script::ok("Cache-Control: max-age=60\r\nETag: \"e\"\r\n", "abcdef"));
        stage.get("/page").await;
        let part = stage.ask("GET", "/page", "Range: bytes=1-2\r\n").await;
        assert_eq!((part.status, part.text()), (206, "bc".to_owned()), "{policy:?}");
        let same = stage.ask("GET", "/page", "If-None-Match: \"e\"\r\n").await;
        assert_eq!(same.status, 304, "{policy:?}");
        let other = stage.ask("GET", "/page", "If-None-Match: \"f\"\r\n").await;
        assert_eq!(other.status, 200, "{policy:?}");
        assert_eq!(stage.origin.seen("/page"), 1, "{policy:?}");
    }
}

#[tokio::test]
async fn what_is_purged_is_fetched_anew() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        stage.origin.on("/page", Script::cacheable("a page"));
        stage.get("/page").await;
        assert_eq!(stage.ask("PURGE", "/page", "").await.status, 200, "{policy:?}");
        stage.get("/page").await;
        assert_eq!(stage.origin.seen("/page"), 2, "{policy:?}");
    }
}

#[tokio::test]
async fn a_trace_goes_on_to_the_origin_with_a_span_of_its_own() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";
    for policy in BOTH {
        let collector = Collector::start().await;
        let top = format!(
            "tracing = {{ endpoint = \"http://127.0.0.1:{}/otlp\", sample = 0 }}\n",
            collector.port
        );
        let (stage, _folder) = site(policy, &top).await;
        stage.origin.on("/page", Script::cacheable("a page"));
        stage.ask("GET", "/page", &format!("traceparent: 00-{TRACE}-{SPAN}-01\r\n")).await;
        let spans = collector.spans(2).await;
        let client = spans.iter().find(|span| span.kind == CLIENT).expect("a CLIENT span");
        let sent = sent_field(&stage.sole_request("/page"), "traceparent");
        let id = client.id();
        assert_eq!(sent, format!("00-{TRACE}-{id}-01"), "{policy:?}");
        for (key, value) in [("http.request.method", "GET"), ("http.response.status_code", "200")] {
            assert_eq!(attribute(client, key), value, "{policy:?} {key}");
        }
    }
}

#[tokio::test]
async fn what_is_confirmed_is_counted() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        let fresh = "Cache-Control: max-age=1\r\nETag: \"e\"\r\n";
        stage.origin.on("/page", Script::ok(fresh, "a page"));
        stage.get("/page").await;
        let confirmed = format!("HTTP/1.1 304 Not Modified\r\n{fresh}\r\n");
        stage.origin.on("/page", Script::respond(confirmed));
        eventually("it is over", async || {
            assert_eq!(stage.get("/page").await.text(), "a page", "{policy:?}");
            stage.metric("larder_revalidated_total").await > 0
        })
        .await;
    }
}

#[tokio::test]
async fn log_and_explain_say_why_an_answer_is_not_stored() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        stage.origin.on("/own", Script::ok("Cache-Control: private\r\n", "mine"));
        stage.origin.on("/pass", Script::cacheable("a page"));
        for target in ["/own", "/pass"] {
            stage.get(target).await;
        }
        let told = &records(&stage, "/own", 1).await[0];
        // The builtin program reports this reason as far as a program can.
        let why = if policy == Policy::Declared { "private" } else { "uncacheable" };
        assert_eq!(told["not_stored"], why, "{policy:?}: {told}");
        assert_eq!(records(&stage, "/pass", 1).await[0]["not_stored"], "pass", "{policy:?}");
        let text = printed(&stage.daemon, &["explain", "http://larder.test/own", "--json"]).await;
        let told: Value = serde_json::from_str(&text).expect("JSON");
        let past = told["past"].to_string();
        assert!(past.contains("not stored") && past.contains("MISS"), "{policy:?}: {past}");
        assert_eq!(stage.metric("larder_stores_total").await, 0, "{policy:?}");
    }
}

#[tokio::test]
async fn what_the_store_cannot_take_is_whole_and_counted_as_refused() {
    for policy in BOTH {
        let (stage, _folder) = limited_site(policy, "", "object_bytes = \"64KiB\"").await;
        let large = "x".repeat(100_000);
        stage.origin.on("/large", Script::cacheable(&large));
        assert_eq!(stage.get("/large").await.text(), large, "{policy:?}");
        stage.daemon.assert_metric("larder_store_refused_total", 1).await;
        assert_eq!(stage.metric("larder_stores_total").await, 0, "{policy:?}");
        stage.get("/large").await;
        assert_eq!(stage.origin.seen("/large"), 2, "{policy:?}");
    }
}

/// The kind of renewal for a stale page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewal {
    /// The client waits for it.
    Waited,
    /// The client gets the stale page meanwhile.
    Behind,
}

/// A site of either kind whose pages are stale as soon as they are stored. The declared one gets
/// fields from the origin for that; a program sets the times itself.
async fn stale_site(policy: Policy, renewal: Renewal) -> (Stage, Folder, &'static str) {
    let folder = Folder::new();
    if policy == Policy::Declared {
        let fields = match renewal {
            Renewal::Waited => "Cache-Control: public, max-age=0\r\n",
            Renewal::Behind => {
                "Cache-Control: public, max-age=1, stale-while-revalidate=600\r\nAge: 1\r\n"
            }
        };
        return (Setup::default().start().await, folder, fields);
    }
    let grace = if renewal == Renewal::Waited { "0s" } else { "10m" };
    let program = format!(
        "sub vcl_recv {{ return (hash); }}
        sub vcl_backend_response {{
            set beresp.ttl = 1ms; set beresp.grace = {grace}; set beresp.keep = 1h;
        }}"
    );
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    let backend = format!("backend app {{ .host = \"{host}\"; .port = \"{port}\"; }}");
    folder.file("site.vcl", format!("vcl 4.1;\n{backend}\n{program}\n"));
    let vcl = folder.path().join("site.vcl").display().to_string();
    let file =
        format!("listen = \"127.0.0.1:0\"\nworkers = 2\n[[site]]\nhost = \"*\"\nvcl = \"{vcl}\"\n");
    let stage = Stage { origin, daemon: Daemon::start(&file).expect("larder starts") };
    (stage, folder, "Cache-Control: public, max-age=600\r\n")
}

const RENEWALS: [Renewal; 2] = [Renewal::Waited, Renewal::Behind];

/// Fields that forbid to store a response.
const FORBIDDING: [&str; 4] = [
    "Cache-Control: public, max-age=600\r\nSet-Cookie: session=of-alice\r\n",
    "Cache-Control: private, max-age=600\r\n",
    "Cache-Control: no-store\r\n",
    "Cache-Control: public, max-age=600\r\nVary: *\r\n",
];

/// Requests the stale page `target`, and returns the reply once the origin is asked to renew it.
async fn renew(stage: &Stage, (method, target): (&str, &str), fields: &str) -> Reply {
    // Programs keep pages fresh for a millisecond.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let reply = stage.ask(method, target, fields).await;
    eventually("it is renewed", async || stage.origin.seen(target) > 1).await;
    reply
}

/// Requests the page as other clients until they get the new version. No reply may show a cookie,
/// nor fields that a 304 forbids to share.
async fn others_get_the_new_page(stage: &Stage, target: &str, case: &str) {
    stage.origin.on(target, Script::ok("Cache-Control: private\r\n", "new"));
    eventually("the new page", async || {
        let told = stage.ask("GET", target, "If-None-Match: \"e\"\r\n").await;
        let reply = stage.get(target).await;
        for reply in [&told, &reply] {
            assert_eq!(reply.field("set-cookie"), None, "{case}");
        }
        reply.text() == "new"
    })
    .await;
}

#[tokio::test]
async fn a_304_by_which_a_page_may_not_be_stored_is_for_its_client_alone() {
    for policy in BOTH {
        for renewal in RENEWALS {
            let (stage, _folder, fields) = stale_site(policy, renewal).await;
            for (at, forbidding) in FORBIDDING.into_iter().enumerate() {
                for method in ["GET", "HEAD"] {
                    let case = format!("{policy:?} {renewal:?} {method} {forbidding:?}");
                    let target = format!("/{method}/{at}");
                    let page = format!("{fields}ETag: \"e\"\r\n");
                    stage.origin.on(&target, Script::ok(&page, "old"));
                    stage.get(&target).await;
                    let answer =
                        format!("HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n{forbidding}\r\n");
                    stage.origin.on(&target, Script::respond(answer));
                    let alice = renew(&stage, (method, &target), "Cookie: user=alice\r\n").await;
                    let body = if method == "GET" { "old" } else { "" };
                    assert_eq!((alice.status, alice.text()), (200, body.to_owned()), "{case}");
                    let gets = renewal == Renewal::Waited && forbidding.contains("Set-Cookie");
                    assert_eq!(alice.field("set-cookie").is_some(), gets, "{case}");
                    others_get_the_new_page(&stage, &target, &case).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_definite_answer_ends_the_old_page() {
    let answers = [
        ("404 Not Found", ""),
        ("410 Gone", ""),
        ("403 Forbidden", ""),
        ("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n"),
        ("302 Found", "Location: /login\r\n"),
        ("404 Not Found", "Cache-Control: no-store\r\n"),
        ("200 OK", ""),
        ("200 OK", FORBIDDING[0]),
        ("200 OK", FORBIDDING[1]),
        ("200 OK", FORBIDDING[2]),
        ("200 OK", FORBIDDING[3]),
    ];
    for policy in BOTH {
        let (stage, _folder, fields) = stale_site(policy, Renewal::Behind).await;
        for (at, (status, with)) in answers.into_iter().enumerate() {
            for validator in ["", "ETag: \"e\"\r\n"] {
                let case = format!("{policy:?} {status} {with:?} {validator:?}");
                let target = format!("/{at}{}", validator.len());
                stage.origin.on(&target, Script::ok(&format!("{fields}{validator}"), "old"));
                assert_eq!(stage.get(&target).await.text(), "old", "{case}");
                let answer = format!("HTTP/1.1 {status}\r\n{with}Content-Length: 3\r\n\r\nnew");
                stage.origin.on(&target, Script::respond(answer));
                renew(&stage, ("GET", &target), "").await;
                eventually("the old page is over", async || {
                    stage.get(&target).await.text() == "new"
                })
                .await;
            }
        }
    }
}

/// A program handles failures by its own rules.
#[tokio::test]
async fn a_failure_leaves_the_old_page_where_it_is() {
    let (stage, _folder, fields) = stale_site(Policy::Declared, Renewal::Behind).await;
    for status in ["500 Oh", "503 Busy", "504 Late", "507 Full", "429 Too Many Requests"] {
        let target = format!("/{}", &status[..3]);
        stage.origin.on(&target, Script::ok(fields, "old"));
        stage.get(&target).await;
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\nnew");
        stage.origin.on(&target, Script::respond(answer));
        eventually("three answers", async || {
            assert_eq!(stage.get(&target).await.text(), "old", "{status}");
            stage.origin.seen(&target) > 3
        })
        .await;
    }
}

/// A daemon with a site of either kind whose requests all go to `backend`, a unix socket, and pass
/// if they are for `/pass`; it also listens on `listen`.
fn towards(policy: Policy, backend: &str, listen: &str, folder: &Folder) -> Daemon {
    let patience = ".first_byte_timeout = 600s;";
    let own = format!("backend own {{ .path = \"{backend}\"; {patience} }}");
    folder.file("site.vcl", format!("vcl 4.1;\n{own}\n{PROGRAM}"));
    let site = match policy {
        Policy::Declared => "origin = \"own\"\nbypass = { path = [\"/pass*\"] }".to_owned(),
        Policy::Vcl => format!("vcl = \"{}\"", folder.path().join("site.vcl").display()),
    };
    let origin = match policy {
        Policy::Declared => format!("[[origin]]\nname = \"own\"\nservers = \"unix:{backend}\"\n"),
        Policy::Vcl => String::new(),
    };
    let limits = "[limits]\nfirst_byte_timeout = \"10m\"\nhalf_close_timeout = \"1s\"";
    let file = format!("listen = [{listen}]\n{limits}\n{origin}[[site]]\nhost = \"*\"\n{site}\n");
    Daemon::start(&file).expect("larder starts")
}

/// A daemon whose origin is the test itself.
fn by_hand(policy: Policy) -> (Daemon, UnixListener, Folder) {
    let folder = Folder::new();
    let socket = folder.path().join("origin.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let socket = socket.display().to_string();
    let daemon = towards(policy, &socket, "\"127.0.0.1:0\"", &folder);
    (daemon, listener, folder)
}

#[tokio::test]
async fn a_client_that_leaves_ends_a_safe_pass() {
    for policy in BOTH {
        let (daemon, listener, _folder) = by_hand(policy);
        let mut client = RawClient::connect(daemon.addr()).await.expect("a connection");
        client.send(&request("GET", "/pass", ""), WriteSplit::Whole).await.expect("sent");
        let (mut origin, _) = listener.accept().await.expect("it is asked");
        let mut head = [0; 4096];
        assert!(origin.read(&mut head).await.expect("a head") > 0);
        drop(client);
        // The body has no end: only an abandoned fetch ends this.
        let sending = async {
            let mut sent = origin.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while sent.is_ok() {
                sent = origin.write_all(&[b'x'; 4096]).await;
            }
        };
        assert!(timeout(PATIENCE, sending).await.is_ok(), "{policy:?} goes on");
    }
}

#[tokio::test]
async fn a_client_that_ends_its_side_at_once_is_not_waited_for_long() {
    for policy in BOTH {
        let (daemon, listener, _folder) = by_hand(policy);
        let mut client = TcpStream::connect(daemon.addr()).await.expect("a connection");
        client.write_all(&request("GET", "/pass", "")).await.expect("sent");
        client.shutdown().await.expect("its side ends");
        let (mut origin, _) = listener.accept().await.expect("it is asked");
        // It never answers: only an abandoned fetch ends this.
        let mut seen = Vec::new();
        let read = timeout(PATIENCE, origin.read_to_end(&mut seen)).await;
        assert!(read.is_ok() && !seen.is_empty(), "{policy:?} goes on");
        let mut answer = Vec::new();
        let read = timeout(PATIENCE, client.read_to_end(&mut answer)).await;
        assert!(read.is_ok() && answer.is_empty(), "{policy:?}: the connection ends");
    }
}

#[tokio::test]
async fn requests_during_a_fetch_wait_for_it() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";
        stage.origin.on("/slow", Script::default().delay_ms(500).send(answer));
        let all = tokio::join!(stage.get("/slow"), stage.get("/slow"), stage.get("/slow"));
        for reply in [all.0, all.1, all.2] {
            assert_eq!(reply.text(), "ok", "{policy:?}");
        }
        assert_eq!(stage.origin.seen("/slow"), 1, "{policy:?}");
    }
}

#[tokio::test]
async fn a_request_that_comes_round_is_answered_508() {
    for policy in BOTH {
        let folder = Folder::new();
        let socket = folder.path().join("http.sock").display().to_string();
        let listen = format!("\"127.0.0.1:0\", \"unix:{socket}\"");
        let daemon = towards(policy, &socket, &listen, &folder);
        for target in ["/page", "/pass"] {
            let client = RawClient::connect(daemon.addr()).await.expect("a connection");
            let seen = client.patience(PATIENCE).get(target).await.expect("sent");
            assert_eq!(whole(seen, target).status, 508, "{policy:?} {target}");
        }
    }
}

/// A behaviour of the declared policy only: in VCL the program decides, as in Varnish.
#[tokio::test]
async fn only_if_cached_is_the_declared_policys() {
    for (policy, status) in [(Policy::Declared, 504), (Policy::Vcl, 200)] {
        let (stage, _folder) = site(policy, "").await;
        stage.origin.on("/page", Script::cacheable("a page"));
        let reply = stage.ask("GET", "/page", "Cache-Control: only-if-cached\r\n").await;
        assert_eq!(reply.status, status, "{policy:?}");
    }
}

/// RFC 9111 4.1: of several stored responses that match, the one with the latest Date.
#[tokio::test]
async fn a_response_without_vary_answers_where_none_that_matches_is_newer() {
    for policy in BOTH {
        for (age_s, expected) in [(30, ["de", "all"]), (5, ["all", "all"])] {
            let (stage, _folder) = site(policy, "").await;
            let answer = |fields: &str, age_s: u64, body: &str| {
                let date = support::http_date(age_s);
                Script::respond(format!(
                    "HTTP/1.1 200 OK\r\nDate: {date}\r\nCache-Control: max-age=600\r\n{fields}\
                     Content-Length: {}\r\n\r\n{body}",
                    body.len()
                ))
            };
            let ask = async |kind: &str| {
                let reply = stage.ask("GET", "/v", &format!("X-Kind: {kind}\r\n")).await;
                reply.text()
            };
            stage.origin.on("/v", answer("Vary: X-Kind\r\n", 20, "de"));
            assert_eq!(ask("de").await, "de");
            stage.origin.on("/v", answer("", age_s, "all"));
            assert_eq!(ask("en").await, "all");
            for (kind, expected) in ["de", "en"].into_iter().zip(expected) {
                assert_eq!(ask(kind).await, expected, "{policy:?} {kind} {age_s}");
            }
            assert_eq!(stage.origin.seen("/v"), 2, "{policy:?}");
        }
    }
}
