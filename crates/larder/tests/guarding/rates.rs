//! Tests of limits on the rate and the concurrency of clients' requests (`rate`, `concurrent`):
//! under the declared policy and under a program, over HTTP/1 and HTTP/2.
//!
//! Limits permit a few requests in an hour, so that no test depends on the machine's speed.

use crate::support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::console::run;
use support::disked::{BOTH, Policy};
use support::explain::{fact, step};
use support::folder::Folder;
use support::h2::{Plain, client};
use support::{PATIENCE, Stage, eventually, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::h2::Request;
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

const UPGRADED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello";

/// The configuration of a site of either kind, with these keys of the file and the site.
fn file(policy: Policy, origin: &ScriptedOrigin, folder: &Folder, top: &str, site: &str) -> String {
    let addr = origin.addr();
    let head =
        format!("listen = \"127.0.0.1:0 h2c\"\nworkers = 2\n{top}\n[[site]]\nhost = \"*\"\n");
    if policy == Policy::Declared {
        return format!("{head}origin = \"http://{addr}\"\nupgrade = \"echo\"\n{site}\n");
    }
    let (host, port) = (addr.ip(), addr.port());
    folder.file(
        "site.vcl",
        format!(
            "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
             sub vcl_recv {{ if (req.http.upgrade) {{ return (pipe); }} }}\n\
             sub vcl_pipe {{ set bereq.http.upgrade = req.http.upgrade; \
             set bereq.http.connection = req.http.connection; }}\n"
        ),
    );
    let vcl = folder.path().join("site.vcl");
    format!("{head}vcl = \"{}\"\n{site}\n", vcl.display())
}

/// A site of either kind with these keys, whose `/page` is stored.
async fn stage(policy: Policy, top: &str, site: &str) -> (Stage, Folder) {
    let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
    origin.on("/page", Script::cacheable("page"));
    let daemon = Daemon::start(&file(policy, &origin, &folder, top, site)).expect("it starts");
    (Stage { origin, daemon }, folder)
}

/// A connection from this address of the loopback network.
async fn from(address: &str, to: SocketAddr) -> RawClient {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{address}:0").parse().expect("an address")).expect("a local address");
    RawClient::over(socket.connect(to).await.expect("a connection")).patience(PATIENCE)
}

/// The statuses of `count` GETs of `/page` from an address, with these fields.
async fn statuses(stage: &Stage, address: &str, fields: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        let mut raw = from(address, stage.daemon.addr()).await;
        raw.send(&request("GET", "/page", fields), WriteSplit::Whole).await.expect("sent");
        statuses.push(whole(raw.reply("GET").await, "/page").status);
    }
    statuses
}

/// The statuses of `count` GETs of a target over one HTTP/2 connection.
async fn over_http2(client: &mut Plain, target: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(client.get(target).await.answer(target).status);
    }
    statuses
}

/// Asserts a refusal with Retry-After.
fn assert_refused(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{}", reply.text());
    let after: u64 = reply.field("retry-after").expect("Retry-After").parse().expect("seconds");
    assert!((1..=3600).contains(&after), "{after}");
    assert_eq!(reply.field("cache-control").as_deref(), Some("no-store"));
}

async fn reload(stage: &Stage, file: Option<String>) {
    if let Some(file) = file {
        std::fs::write(stage.daemon.config_file(), file).expect("written");
    }
    let reply = stage.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_comes_in_and_what_follows_is_refused() {
    for policy in BOTH {
        let (stage, _folder) = stage(policy, "", "rate = { requests = \"1/h\", burst = 2 }").await;
        assert_eq!(statuses(&stage, "127.0.0.2", "", 5).await, [200, 200, 200, 429, 429]);
        // Another client has a count of its own, over HTTP/2 on one connection.
        let mut client = client(&stage.daemon).await;
        assert_eq!(over_http2(&mut client, "/page", 5).await, [200, 200, 200, 429, 429]);
        assert_refused(&stage.get("/page").await, 429);
        stage.daemon.assert_metric("larder_rate_limited_total", 5).await;
        assert_eq!(stage.origin.seen("/page"), 1, "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_the_site_s_status_page_and_name_in_the_log() {
    for policy in BOTH {
        let log = Folder::new();
        let path = log.path().join("log");
        let top = format!("access_log = {{ path = \"{}\", format = \"json\" }}", path.display());
        let site = "rate = { requests = \"1/h\", status = 503 }\n";
        let (stage, _folder) = stage(policy, &top, site).await;
        assert_eq!(stage.get("/page").await.status, 200);
        assert_refused(&stage.get("/page").await, 503);
        eventually("the log", async || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.lines().any(|line| line.contains("(rate)") && line.contains("503"))
        })
        .await;
    }
    let pages = Folder::new();
    pages.file("slow.html", "slow down");
    let site = format!(
        "rate = {{ requests = \"1/h\" }}\nerror_pages = {{ 429 = \"{}/slow.html\" }}",
        pages.path().display()
    );
    let (stage, _folder) = stage(Policy::Declared, "", &site).await;
    stage.get("/page").await;
    let reply = stage.get("/page").await;
    assert_refused(&reply, 429);
    assert_eq!(reply.text(), "slow down");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_delays_and_answers_all() {
    for policy in BOTH {
        let site = "rate = { requests = \"2/s\", queue = 50 }";
        let (stage, _folder) = stage(policy, "", site).await;
        let mut client = client(&stage.daemon).await;
        let streams: Vec<u32> = (0..5).map(|_| client.new_stream()).collect();
        let get = Request::get("/page");
        let all: Vec<u8> = streams.iter().flat_map(|stream| get.bytes(*stream, true)).collect();
        client.send(&all).await.expect("sent");
        for stream in streams {
            assert_eq!(client.outcome(stream).await.answer("/page").status, 200, "{policy:?}");
        }
        let queued = stage.metric("larder_rate_queued_total").await;
        assert!((1..=4).contains(&queued), "{policy:?}: {queued}");
        stage.daemon.assert_metric("larder_rate_limited_total", 0).await;
    }
}

/// A purge may remove a page while requests wait.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_gets_nothing_that_was_purged_meanwhile() {
    // Less than the three seconds that it waits.
    let wait = Duration::from_secs(2);
    for policy in BOTH {
        // If the machine was too busy for the purge to come in time, it is repeated.
        let mut was_in_time = false;
        while !was_in_time {
            let site = "rate = { requests = \"20/m\", queue = 1 }";
            let (stage, _folder) = stage(policy, "", site).await;
            let begun = Instant::now();
            assert_eq!(stage.get("/page").await.text(), "page");
            let mut raw = stage.connect().await;
            raw.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("sent");
            stage.daemon.assert_metric("larder_rate_queued_total", 1).await;
            stage.origin.on("/page", Script::cacheable("another"));
            let (done, _, err) = run(&stage.daemon, &["purge", "--all"]).await;
            assert!(done, "{err}");
            was_in_time = begun.elapsed() < wait;
            let reply = whole(raw.reply("GET").await, "/page");
            assert!(!was_in_time || reply.text() == "another", "{policy:?}: {}", reply.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_waits_longer_than_the_limit_says() {
    let site = "rate = { requests = \"1/h\", queue = 5 }\n[limits]\nrate_wait = \"1s\"";
    let (stage, _folder) = stage(Policy::Declared, "", site).await;
    assert_eq!(statuses(&stage, "127.0.0.2", "", 2).await, [200, 429]);
    stage.daemon.assert_limit_count("rate_wait", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_tunnels_wait_for_their_turn_like_others() {
    for policy in BOTH {
        let site = "rate = { requests = \"2/s\", queue = 50 }";
        let (stage, _folder) = stage(policy, "", site).await;
        stage.origin.on("/form", Script::ok("", "taken"));
        stage.origin.on("/chat", Script::respond(UPGRADED).close());
        stage.get("/page").await;
        let mut stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
        let head = request("POST", "/form", "Content-Length: 5\r\nExpect: 100-continue\r\n");
        stream.write_all(&head).await.expect("sent");
        let mut told = vec![0; 25];
        timeout(PATIENCE, stream.read_exact(&mut told)).await.expect("in time").expect("read");
        assert_eq!(told, b"HTTP/1.1 100 Continue\r\n\r\n", "{policy:?}");
        stream.write_all(b"hello").await.expect("sent");
        let mut answer = [0; 15];
        timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("in time").expect("read");
        assert_eq!(&answer, b"HTTP/1.1 200 OK", "{policy:?}");
        assert_eq!(stage.sole_request("/form").body, b"hello", "{policy:?}");
        let mut raw = stage.connect().await;
        let upgrade = request("GET", "/chat", "Connection: Upgrade\r\nUpgrade: echo\r\n");
        raw.send(&upgrade, WriteSplit::Whole).await.expect("sent");
        assert!(raw.until("hello").await, "{policy:?}");
        assert!(raw.so_far().starts_with(b"HTTP/1.1 101 "), "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_count_apart_as_trusted_proxies_name_them_or_all_together() {
    for policy in BOTH {
        let site = "rate = { requests = \"1/h\" }";
        let (stage, _folder) = stage(policy, "trusted_proxies = \"127.0.0.9\"", site).await;
        for address in ["127.0.0.2", "127.0.0.3"] {
            assert_eq!(statuses(&stage, address, "", 2).await, [200, 429], "{policy:?}");
        }
        for told in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
            let field = format!("X-Forwarded-For: {told}\r\n");
            assert_eq!(statuses(&stage, "127.0.0.9", &field, 2).await, [200, 429], "{policy:?}");
        }
        // One IPv6 network; and an untrusted peer, which cannot name a client.
        for (address, told) in [("127.0.0.9", "2001:db8::2"), ("127.0.0.2", "192.0.2.3")] {
            let field = format!("X-Forwarded-For: {told}\r\n");
            assert_eq!(statuses(&stage, address, &field, 1).await, [429], "{policy:?}");
        }
    }
    let (stage, _folder) =
        stage(Policy::Declared, "", "rate = { requests = \"1/h\", per = \"site\" }").await;
    assert_eq!(statuses(&stage, "127.0.0.2", "", 1).await, [200]);
    assert_eq!(statuses(&stage, "127.0.0.3", "", 1).await, [429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_may_name_the_client_and_networks_may_be_exempt() {
    for policy in BOTH {
        let site = "rate = { requests = \"1/h\", per = { field = \"X-Api-Key\" }, \
                    exempt = [\"127.0.0.7\"] }";
        let (stage, _folder) = stage(policy, "", site).await;
        for key in ["one", "two"] {
            let field = format!("X-Api-Key: {key}\r\n");
            assert_eq!(statuses(&stage, "127.0.0.2", &field, 2).await, [200, 429], "{policy:?}");
            assert_eq!(statuses(&stage, "127.0.0.3", &field, 1).await, [429], "{policy:?}");
        }
        assert_eq!(statuses(&stage, "127.0.0.2", "", 2).await, [200, 429], "{policy:?}");
        assert_eq!(statuses(&stage, "127.0.0.7", "", 3).await, [200; 3], "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_has_its_site_s_count_or_its_own_or_none() {
    let site = "rate = { requests = \"1/h\", burst = 2 }\n\
                [[site.route]]\npath = \"/shared/*\"\ncache = false\n\
                [[site.route]]\npath = \"/login\"\nrate = { requests = \"1/h\" }\n\
                [[site.route]]\npath = \"/free\"\nrate = false\n";
    let (stage, _folder) = stage(Policy::Declared, "", site).await;
    for target in ["/shared/x", "/login", "/free", "/login;x"] {
        stage.origin.on(target, Script::cacheable("page"));
    }
    let mut client = client(&stage.daemon).await;
    assert_eq!(over_http2(&mut client, "/login", 2).await, [200, 429]);
    // A spelling that an origin may take for the route's path does not bypass it.
    assert_eq!(over_http2(&mut client, "/login;x", 1).await, [429]);
    assert_eq!(over_http2(&mut client, "/shared/x", 2).await, [200; 2]);
    assert_eq!(over_http2(&mut client, "/page", 2).await, [200, 429]);
    assert_eq!(over_http2(&mut client, "/free", 4).await, [200; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_may_be_for_some_paths_and_several_may_hold_at_once() {
    for policy in BOTH {
        let site = "rate = [{ requests = \"1/h\", burst = 3 }, \
                    { requests = \"1/h\", path = \"/login\" }]";
        let (stage, _folder) = stage(policy, "", site).await;
        stage.origin.on("/login", Script::ok("Cache-Control: no-store\r\n", "login"));
        let mut client = client(&stage.daemon).await;
        // A request that one limit refuses does not count for the other.
        assert_eq!(over_http2(&mut client, "/login", 4).await, [200, 429, 429, 429], "{policy:?}");
        assert_eq!(over_http2(&mut client, "/page", 4).await, [200, 200, 200, 429], "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_refuses_nothing_and_counts_what_it_would() {
    for policy in BOTH {
        let site = "rate = { requests = \"1/h\", dry_run = true, path = \"/page\" }\n\
                    concurrent = { requests = 1, dry_run = true, path = [\"/slow\", \"/other\"] }";
        let (stage, _folder) = stage(policy, "", site).await;
        stage.origin.on("/slow", Script::default().hang());
        stage.origin.on("/other", Script::cacheable("other"));
        assert_eq!(statuses(&stage, "127.0.0.2", "", 3).await, [200; 3], "{policy:?}");
        stage.daemon.assert_metric("larder_limits_dry_run_total", 2).await;
        let mut slow = stage.connect().await;
        slow.send(&request("GET", "/slow", ""), WriteSplit::Whole).await.expect("sent");
        eventually("the slow one", async || stage.origin.seen("/slow") == 1).await;
        assert_eq!(stage.get("/other").await.status, 200, "{policy:?}");
        stage.daemon.assert_metric("larder_limits_dry_run_total", 3).await;
        stage.daemon.assert_metric("larder_rate_limited_total", 0).await;
        stage.daemon.assert_metric("larder_concurrency_refused_total", 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_comes_back_when_its_client_vanishes() {
    for policy in BOTH {
        let (stage, _folder) = stage(policy, "", "concurrent = { requests = 2 }").await;
        for target in ["/slow", "/slower"] {
            stage.origin.on(target, Script::default().hang());
        }
        let mut first = stage.connect().await;
        first.send(&request("GET", "/slow", ""), WriteSplit::Whole).await.expect("sent");
        let mut second = client(&stage.daemon).await;
        second.ask(&Request::get("/slower"), true).await.expect("sent");
        for target in ["/slow", "/slower"] {
            eventually(target, async || stage.origin.seen(target) == 1).await;
        }
        assert_refused(&stage.get("/page").await, 429);
        assert_eq!(second.get("/page").await.answer("/page").status, 429, "{policy:?}");
        assert_eq!(statuses(&stage, "127.0.0.2", "", 1).await, [200], "{policy:?}");
        stage.daemon.assert_metric("larder_concurrency_refused_total", 2).await;
        drop(first);
        eventually("a place", async || stage.get("/page").await.status == 200).await;
        drop(second);
        none_under_way(&stage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_under_way_until_it_has_left_and_a_tunnel_until_it_ends() {
    for policy in BOTH {
        let (stage, _folder) = stage(policy, "", "concurrent = { requests = 1 }").await;
        let piece = "x".repeat(1 << 20);
        let head =
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 25165824\r\n\r\n";
        stage.origin.on("/large", Script::respond(head).repeat(piece, 24));
        stage.origin.on("/chat", Script::respond(UPGRADED).hang());
        assert_eq!(stage.get("/large").await.body.len(), 24 << 20, "{policy:?}");
        // It is stored now.
        none_under_way(&stage).await;
        let mut reader = stage.connect().await;
        reader.send(&request("GET", "/large", ""), WriteSplit::Whole).await.expect("sent");
        assert!(reader.until("200 OK").await);
        assert_refused(&stage.get("/page").await, 429);
        let whole = whole(reader.reply("GET").await, "/large");
        assert_eq!(whole.body.len(), 24 << 20, "{policy:?}");
        none_under_way(&stage).await;
        let mut tunnel = stage.connect().await;
        let upgrade = request("GET", "/chat", "Connection: Upgrade\r\nUpgrade: echo\r\n");
        tunnel.send(&upgrade, WriteSplit::Whole).await.expect("sent");
        assert!(tunnel.until("hello").await, "{policy:?}");
        assert_refused(&stage.get("/page").await, 429);
        drop(tunnel);
        none_under_way(&stage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_used_lasts_over_a_reload_unless_the_limit_changes() {
    for policy in BOTH {
        let site = "rate = { requests = \"1/h\", burst = 1 }\n\
                    concurrent = { requests = 1, exempt = [\"127.0.0.2\"] }";
        let (stage, folder) = stage(policy, "", site).await;
        stage.origin.on("/slow", Script::default().hang());
        let mut slow = from("127.0.0.5", stage.daemon.addr()).await;
        slow.send(&request("GET", "/slow", ""), WriteSplit::Whole).await.expect("sent");
        eventually("the slow one", async || stage.origin.seen("/slow") == 1).await;
        assert_eq!(statuses(&stage, "127.0.0.2", "", 3).await, [200, 200, 429], "{policy:?}");
        reload(&stage, None).await;
        assert_eq!(statuses(&stage, "127.0.0.2", "", 1).await, [429], "{policy:?}");
        assert_eq!(statuses(&stage, "127.0.0.5", "", 1).await, [429], "{policy:?}");
        let changed = site.replace("burst = 1", "burst = 2");
        reload(&stage, Some(file(policy, &stage.origin, &folder, "", &changed))).await;
        let after = statuses(&stage, "127.0.0.2", "", 4).await;
        assert_eq!(after, [200, 200, 200, 429], "{policy:?}");
        reload(&stage, Some(file(policy, &stage.origin, &folder, "", ""))).await;
        assert_eq!(statuses(&stage, "127.0.0.2", "", 4).await, [200; 4], "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_counts_once_whatever_it_is_put_together_of() {
    let site = "rate = { requests = \"1/h\", burst = 1 }\nincludes = { esi = \"html\" }";
    let (stage, _folder) = stage(Policy::Declared, "", site).await;
    let html = "<p><esi:include src=\"/a\"/><esi:include src=\"/b\"/><esi:include src=\"/c\"/></p>";
    stage.origin.on("/whole", Script::ok("Content-Type: text/html\r\n", html));
    for target in ["/a", "/b", "/c"] {
        stage.origin.on(target, Script::ok("Cache-Control: no-store\r\n", "x"));
    }
    let mut client = client(&stage.daemon).await;
    for _ in 0..2 {
        let reply = client.get("/whole").await.answer("/whole");
        assert_eq!((reply.status, reply.text().as_str()), (200, "<p>xxx</p>"));
    }
    assert_eq!(client.get("/whole").await.answer("/whole").status, 429);
}

/// Waits until no request of this client is in progress: its end may follow its response.
async fn none_under_way(stage: &Stage) {
    eventually("the end of all", async || {
        fact(step(&explain(stage, "/page").await, "concurrent"), "under way") == "0"
    })
    .await;
}

/// The explanation of a GET.
async fn explain(stage: &Stage, target: &str) -> Value {
    let question = json!({ "url": format!("http://a.test{target}"), "client": "127.0.0.1" });
    support::explain::explain(&stage.daemon, &question).await
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_remaining_allowance_and_uses_none() {
    for policy in BOTH {
        let site = "rate = { requests = \"1/h\", burst = 1 }\nconcurrent = { requests = 3 }";
        let (stage, _folder) = stage(policy, "", site).await;
        for _ in 0..3 {
            let told = explain(&stage, "/page").await;
            assert_eq!(fact(step(&told, "rate"), "left"), "2 at once", "{policy:?}: {told}");
            assert_eq!(fact(step(&told, "concurrent"), "under way"), "0", "{policy:?}: {told}");
        }
        stage.get("/page").await;
        assert_eq!(fact(step(&explain(&stage, "/page").await, "rate"), "left"), "1 at once");
        stage.get("/page").await;
        let told = explain(&stage, "/page").await;
        assert_eq!(fact(step(&told, "rate"), "left"), "0 at once", "{policy:?}: {told}");
        let summary = told["outcome"]["summary"].as_str().unwrap_or_default();
        assert!(summary.contains("429"), "{policy:?}: {summary}");
        assert_refused(&stage.get("/page").await, 429);
        stage.daemon.assert_metric("larder_rate_limited_total", 1).await;
    }
}
