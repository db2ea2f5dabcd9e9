//! Origins that have manners of their own, behind the real binary: heads that others would write
//! otherwise, servers that fail, connections that are kept.

use crate::support;

use testkit::h2::Request;
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

use support::h2::{H2C, client};
use support::{Setup, Stage, is_hit};

const LINE_FEEDS: &str = "HTTP/1.1 200 OK\nCache-Control: max-age=60\nContent-Length: 2\n\nhi";

#[tokio::test]
async fn lines_that_end_without_cr_are_taken_from_lenient_origins_only() {
    let strict = Setup::default().start().await;
    strict.origin.on("/", Script::respond(LINE_FEEDS));
    assert_eq!(strict.get("/").await.status, 502);

    let stage = Setup { origin: "lenient_origin = true", ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::respond(LINE_FEEDS));
    for target in ["/a", "/b"] {
        let reply = stage.get(target).await;
        assert_eq!((reply.status, &reply.body[..]), (200, &b"hi"[..]));
        assert!(is_hit(&stage.get(target).await));
    }
    assert_eq!(stage.metric("larder_origin_line_feeds_total").await, 2);
    support::eventually("it is told", async || stage.daemon.log().contains("without CR")).await;
    assert_eq!(stage.daemon.log().matches("without CR").count(), 1);
}

#[tokio::test]
async fn a_length_that_an_origin_says_twice_is_one_if_both_agree() {
    let stage = Setup::default().start().await;
    let twice = |other| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: {other}\r\n\r\nhi")
    };
    stage.origin.on("/equal", Script::respond(twice("2")));
    stage.origin.on("/list", Script::respond("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nhi"));
    stage.origin.on("/unequal", Script::respond(twice("1")));
    for target in ["/equal", "/list"] {
        let reply = stage.get(target).await;
        assert_eq!((reply.status, &reply.body[..]), (200, &b"hi"[..]));
        assert_eq!(reply.field("content-length").as_deref(), Some("2"));
    }
    assert_eq!(stage.get("/unequal").await.status, 502);
}

/// Sends misses one after the other, and waits until the connection is kept.
async fn ask_in_a_row(stage: &Stage, kept: u64) {
    for kept in kept - 2..=kept {
        assert_eq!(stage.get("/passed").await.status, 200);
        stage.daemon.assert_metric("larder_origin_kept_total", kept).await;
    }
}

#[tokio::test]
async fn a_reload_keeps_connections_to_origins_whatever_bounds_it_changes() {
    let stage = Stage::new().await;
    stage.origin.on("/passed", Script::ok("Cache-Control: no-store\r\n", "passed"));
    ask_in_a_row(&stage, 3).await;
    let changes = [
        Setup { limits: "header_count = 90", ..Setup::default() },
        Setup { origin: "first_byte_timeout = \"20s\"", ..Setup::default() },
        Setup { origin: "balance = \"hash\"", limits: "retries = 1", ..Setup::default() },
    ];
    for (kept, change) in [6, 9, 12].into_iter().zip(changes) {
        std::fs::write(stage.daemon.config_file(), change.file(&stage.origin)).expect("written");
        let (done, _, said) = support::console::run(&stage.daemon, &["reload"]).await;
        assert!(done, "{said}");
        ask_in_a_row(&stage, kept).await;
    }
    assert_eq!(stage.origin.recorded().len(), 1, "on two cores");
}

#[tokio::test]
async fn one_client_does_not_get_the_last_connections_to_an_origin() {
    let stage = Setup { origin: "connections = 4", ..Setup::default() }.listening(H2C).await;
    stage.origin.otherwise(Script::default().hang());
    stage.origin.on("/well", Script::ok("Cache-Control: no-store\r\n", "well"));
    let mut hoarder = client(&stage.daemon).await;
    for number in 0..6 {
        hoarder.ask(&Request::get(&format!("/{number}")), true).await.expect("sent");
    }
    stage.daemon.assert_limit_count("origin_share", 3).await;
    support::eventually("three are asked for", async || stage.origin.targets().len() == 3).await;
    for _ in 0..3 {
        assert_eq!(stage.get("/well").await.text(), "well");
    }
    assert_eq!(stage.origin.targets().len(), 4);
}

/// Three servers and a daemon that balances over them, with further keys for the origin. The first
/// server always answers 500.
async fn one_bad_of_three(origin: &str) -> (Vec<ScriptedOrigin>, Daemon) {
    let mut servers = Vec::new();
    for _ in 0..3 {
        let server = ScriptedOrigin::start().await.expect("a port");
        server.otherwise(Script::ok("Cache-Control: no-store\r\n", "well"));
        servers.push(server);
    }
    let bad = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad";
    servers[0].otherwise(Script::respond(bad));
    let urls: Vec<_> =
        servers.iter().map(|server| format!("\"http://{}\"", server.addr())).collect();
    let file = format!(
        r#"
listen = "127.0.0.1:0"
workers = 1
[[origin]]
name = "app"
servers = [{}]
{origin}
[[site]]
host = "*"
origin = "app"
"#,
        urls.join(", ")
    );
    (servers, Daemon::start(&file).expect("larder starts"))
}

async fn statuses(daemon: &Daemon, method: &str, requests: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for number in 0..requests {
        let bytes = testkit::client::request(method, &format!("/{number}"), "");
        let seen = testkit::client::RawClient::connect(daemon.addr()).await.expect("a connection");
        statuses.push(support::whole(seen.exchange(&bytes).await, "an answer").status);
    }
    statuses
}

#[tokio::test]
async fn a_bad_server_of_three_costs_no_reader_an_answer() {
    let settings =
        "retry_on = [\"connect\", \"500\"]\neject = { statuses = [\"500\"], time = \"1h\" }";
    let (servers, daemon) = one_bad_of_three(settings).await;
    assert_eq!(statuses(&daemon, "GET", 60).await, [200; 60]);
    assert_eq!(servers[0].targets().len(), 3, "then it is left alone");
    daemon.assert_metric("larder_origin_retries_total", 3).await;
    let connections = servers.iter().map(|server| server.recorded().len());
    assert_eq!(connections.sum::<usize>(), 3, "those that answered 500 are kept, too");
}

#[tokio::test]
async fn what_is_tried_again_is_within_the_budget_and_idempotent() {
    let settings = "retry_on = [\"500\"]\nretry_budget = 0";
    let (_servers, daemon) = one_bad_of_three(settings).await;
    assert_eq!(statuses(&daemon, "GET", 3).await.iter().filter(|code| **code == 500).count(), 1);
    daemon.assert_limit_count("retry_budget", 1).await;
    let (_servers, daemon) = one_bad_of_three("retry_on = [\"500\"]").await;
    assert_eq!(statuses(&daemon, "POST", 3).await.iter().filter(|code| **code == 500).count(), 1);
}

#[tokio::test]
async fn less_than_a_whole_page_is_an_error_unless_it_was_asked_for() {
    let site = "[[site.route]]\npath = \"/passed/*\"\ncache = false";
    let stage = Setup { site, ..Setup::default() }.start().await;
    let unchanged = || Script::respond("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n");
    let part =
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nab";
    for target in ["/304", "/passed/304"] {
        stage.origin.on(target, unchanged());
        assert_eq!(stage.get(target).await.status, 502, "{target}");
    }
    for target in ["/206", "/passed/206"] {
        stage.origin.on(target, Script::respond(part));
        assert_eq!(stage.get(target).await.status, 502, "{target}");
    }
    let asked = stage.ask("GET", "/passed/304", "If-None-Match: \"a\"\r\n").await;
    assert_eq!(asked.status, 304);
    assert_eq!(stage.ask("GET", "/passed/206", "Range: bytes=0-1\r\n").await.status, 206);
}

#[tokio::test]
async fn bodies_that_end_with_their_connection_are_stored_where_that_is_allowed() {
    let head = "HTTP/1.0 200 OK\r\nCache-Control: max-age=60\r\n\r\n";
    let page = || Script::respond(format!("{head}a page")).close();
    let usual = Setup::default().start().await;
    usual.origin.on("/page", page());
    for _ in 0..2 {
        let reply = usual.get("/page").await;
        assert_eq!((reply.text().as_str(), is_hit(&reply)), ("a page", false));
    }
    let stage = Setup { origin: "store_close_delimited = true", ..Setup::default() }.start().await;
    stage.origin.on("/page", page());
    stage.origin.on("/reset", Script::respond(format!("{head}a pa")).delay_ms(100).reset());
    for hit in [false, true] {
        let reply = stage.get("/page").await;
        assert_eq!((reply.text().as_str(), is_hit(&reply)), ("a page", hit));
    }
    for seen in 1..3 {
        let bytes = testkit::client::request("GET", "/reset", "");
        let reply = stage.connect().await.exchange(&bytes).await;
        assert!(reply.complete().is_none_or(|reply| reply.status == 502), "{reply:?}");
        assert_eq!(stage.origin.seen("/reset"), seen);
    }
}
