//! What is made of origins that have manners of their own, by the real binary: heads that others
//! would write otherwise, servers that fail, connections that are kept.

mod support;

use testkit::origin::Script;

use support::{Setup, is_hit};

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
