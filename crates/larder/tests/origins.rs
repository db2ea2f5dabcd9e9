//! What is made of origins that have manners of their own, by the real binary: heads that others
//! would write otherwise, servers that fail, connections that are kept.

mod support;

use testkit::h2::Request;
use testkit::origin::Script;

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

/// Asks for what is not stored, one after the other, and waits until its connection is kept.
async fn ask_in_a_row(stage: &Stage, kept: u64) {
    for kept in kept - 2..=kept {
        assert_eq!(stage.get("/passed").await.status, 200);
        stage.daemon.counted("larder_origin_kept_total", kept).await;
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
    stage.daemon.limit_counted("origin_share", 3).await;
    support::eventually("three are asked for", async || stage.origin.targets().len() == 3).await;
    for _ in 0..3 {
        assert_eq!(stage.get("/well").await.text(), "well");
    }
    assert_eq!(stage.origin.targets().len(), 4);
}
