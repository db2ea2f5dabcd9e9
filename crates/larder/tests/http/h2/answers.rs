//! Answers of every kind over HTTP/2.

use testkit::h2::{Exchange, Manners, Request, RequestOutcome, kind, setting};
use testkit::origin::Script;

use crate::support::h2::{client, greeted, limited, stage};
use crate::support::pattern;

const TEXT: &str = "0123456789abcdefghij";
const UNCACHED: &str = "Cache-Control: no-store\r\n";

fn is_hit(answer: &Exchange) -> bool {
    answer.field("cache-status").is_some_and(|status| status.contains("; hit"))
}

#[tokio::test]
async fn a_miss_and_hits_are_the_same_answer_to_either_protocol() {
    let stage = stage().await;
    stage.origin.on("/page", Script::ok("Cache-Control: max-age=60\r\nX-Own: Yes\r\n", TEXT));
    let mut client = client(&stage.daemon).await;
    for round in 0..3 {
        let answer = client.get("/page").await.answer("/page");
        assert_eq!((answer.status, answer.text().as_str()), (200, TEXT));
        assert_eq!(answer.field("x-own").as_deref(), Some("Yes"));
        assert_eq!(answer.field("content-length").as_deref(), Some("20"));
        assert_eq!(is_hit(&answer), round > 0);
    }
    assert!(crate::support::is_hit(&stage.get("/page").await), "over HTTP/1.1 too");
    assert_eq!(stage.origin.seen("/page"), 1);
    // The other way round.
    stage.origin.on("/other", Script::cacheable(TEXT));
    stage.get("/other").await;
    assert!(is_hit(&client.get("/other").await.answer("/other")));
}

#[tokio::test]
async fn head_has_a_length_and_no_body() {
    let stage = stage().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let mut client = client(&stage.daemon).await;
    for _ in 0..2 {
        let answer = client.fetch(&Request::new("HEAD", "/page")).await.answer("/page");
        assert_eq!((answer.status, answer.body.len()), (200, 0));
        assert_eq!(answer.field("content-length").as_deref(), Some("20"));
        client.get("/page").await.answer("/page");
    }
}

#[tokio::test]
async fn conditions_and_ranges_are_answered_from_the_store() {
    let stage = stage().await;
    let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
    stage.origin.on("/page", Script::ok(fields, TEXT));
    let mut client = client(&stage.daemon).await;
    client.get("/page").await.answer("/page");
    let conditional = Request::get("/page").field("if-none-match", "\"v1\"");
    let answer = client.fetch(&conditional).await.answer("304");
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    assert_eq!(answer.field("etag").as_deref(), Some("\"v1\""));
    let range = Request::get("/page").field("range", "bytes=5-9");
    let answer = client.fetch(&range).await.answer("206");
    assert_eq!((answer.status, answer.text().as_str()), (206, "56789"));
    assert_eq!(answer.field("content-range").as_deref(), Some("bytes 5-9/20"));
    let several = Request::get("/page").field("range", "bytes=0-1,18-19");
    let answer = client.fetch(&several).await.answer("206 of two");
    assert!(answer.field("content-type").is_some_and(|t| t.starts_with("multipart/byteranges")));
    assert!(answer.text().contains("\r\n\r\n01\r\n") && answer.text().contains("\r\n\r\nij\r\n"));
    let beyond = Request::get("/page").field("range", "bytes=50-");
    assert_eq!(client.fetch(&beyond).await.answer("416").status, 416);
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn statuses_without_body_and_errors_arrive_as_they_are() {
    let stage = stage().await;
    let empty = format!("HTTP/1.1 204 No Content\r\n{UNCACHED}\r\n");
    stage.origin.on("/none", Script::respond(empty));
    let own = format!("HTTP/1.1 503 Busy\r\n{UNCACHED}Content-Length: 4\r\n\r\nbusy");
    stage.origin.on("/busy", Script::respond(own));
    stage.origin.on("/broken", Script::respond("HTTP/1.1 200 OK\r\nbroken\r\n\r\n").close());
    stage.origin.on("/empty", Script::ok(UNCACHED, ""));
    let mut client = client(&stage.daemon).await;
    let answer = client.get("/none").await.answer("/none");
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let answer = client.get("/busy").await.answer("/busy");
    assert_eq!((answer.status, answer.text().as_str()), (503, "busy"));
    let answer = client.get("/broken").await.answer("/broken");
    assert_eq!(answer.status, 502);
    let answer = client.get("/empty").await.answer("/empty");
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let answer = client.get("/missing").await.answer("/missing");
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn no_origin_is_an_error_page_on_its_stream() {
    let stage = stage().await;
    let (origin, daemon) = (stage.origin, stage.daemon);
    drop(origin);
    let mut client = client(&daemon).await;
    for _ in 0..2 {
        let answer = client.get("/page").await.answer("/page");
        assert!((500..600).contains(&answer.status) && !answer.body.is_empty(), "{answer:?}");
    }
}

#[tokio::test]
async fn nothing_about_the_origins_connection_reaches_the_client() {
    let stage = stage().await;
    let head = "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
                Proxy-Connection: close\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\
                X-MiXeD: Case\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n";
    let script =
        Script::respond(format!("{head}4\r\nbody\r\n0\r\nX-Sum: 1\r\nx-hop: 2\r\n\r\n")).close();
    stage.origin.on("/page", script);
    let mut client = client(&stage.daemon).await;
    let answer = client.get("/page").await.answer("/page");
    assert_eq!(answer.text(), "body");
    assert_eq!(answer.field("x-hop"), None);
    assert_eq!(answer.field("x-mixed").as_deref(), Some("Case"));
    assert_eq!(answer.field("set-cookie").as_deref(), Some("a=1, b=2"));
    let cookies = answer.fields.iter().filter(|(name, _)| name == "set-cookie").count();
    assert_eq!(cookies, 2, "two lines stay two");
    assert_eq!(answer.trailers, [("x-sum".to_owned(), b"1".to_vec())]);
}

#[tokio::test]
async fn hints_come_before_the_answer() {
    let stage = stage().await;
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x\r\n\r\n";
    let page = format!("HTTP/1.1 200 OK\r\n{UNCACHED}Content-Length: 2\r\n\r\nok");
    let script = Script::respond(format!("{hint}HTTP/1.1 100 Continue\r\n\r\n{hint}{page}"));
    stage.origin.on("/page", script);
    let mut client = client(&stage.daemon).await;
    let answer = client.get("/page").await.answer("/page");
    assert_eq!(answer.text(), "ok");
    let statuses: Vec<_> = answer.interim.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [103, 103], "100 is between proxy and origin");
    let link = ("link".to_owned(), b"</a.css>; rel=preload".to_vec());
    assert!(answer.interim.iter().all(|(_, fields)| fields.contains(&link)));
}

#[tokio::test]
async fn who_expects_100_gets_it_before_the_body_is_sent() {
    let stage = stage().await;
    stage.origin.on("/form", Script::mirror(UNCACHED));
    let mut client = client(&stage.daemon).await;
    let request = Request::post("/form").field("expect", "100-continue");
    for request in [request.clone(), request.field("content-length", "5")] {
        let stream = client.ask(&request, false).await.expect("sent");
        let invited = client
            .until(|judge| judge.exchange(stream).is_some_and(|e| !e.interim.is_empty()))
            .await;
        assert!(invited, "no 100");
        client.upload(stream, b"hello").await.expect("sent");
        let answer = client.outcome(stream).await.answer("/form");
        assert_eq!(answer.interim, [(100, Vec::new())]);
        assert!(answer.text().ends_with("hello"), "{}", answer.text());
        assert!(!answer.text().to_lowercase().contains("expect:"), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_head_of_many_fields_takes_several_frames() {
    let stage = stage().await;
    let long = String::from_utf8(pattern(7_000)).expect("letters");
    let fields: String = (0..4).map(|n| format!("X-Long-{n}: {n}{long}\r\n")).collect();
    stage.origin.on("/page", Script::ok(&format!("Cache-Control: max-age=60\r\n{fields}"), TEXT));
    for (settings, several) in [(vec![], true), (vec![(setting::MAX_FRAME_SIZE, 1 << 20)], false)] {
        let mut client = greeted(&stage.daemon, Manners::GOOD, &settings).await;
        for _ in 0..2 {
            let answer = client.get("/page").await.answer("/page");
            for n in 0..4 {
                let whole = answer.field(&format!("x-long-{n}"));
                assert_eq!(whole, Some(format!("{n}{long}")));
            }
            assert_eq!(answer.text(), TEXT);
        }
        let continued = client.judge().count(kind::CONTINUATION) >= 2;
        assert!(continued || !several, "{:?}", client.judge().seen());
    }
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn a_request_of_many_fields_comes_in_several_frames() {
    let stage = stage().await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    let long = String::from_utf8(pattern(6_000)).expect("letters");
    let mut client = client(&stage.daemon).await;
    let request = (0..4).fold(Request::get("/page"), |request, n| {
        request.field(format!("x-long-{n}"), format!("{n}{long}"))
    });
    let answer = client.fetch(&request).await.answer("/page");
    for n in 0..4 {
        assert!(answer.text().contains(&format!("x-long-{n}: {n}{long}\n")));
    }
}

#[tokio::test]
async fn too_much_of_a_head_is_refused_and_the_connection_goes_on() {
    let stage = limited("header_bytes = \"4KiB\"\nheader_count = 20").await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    let mut client = client(&stage.daemon).await;
    let many = (0..25).fold(Request::get("/many"), |r, n| r.field(format!("x-{n}"), "1"));
    let large = Request::get("/large").field("x-large", "1".repeat(6_000));
    for request in [many, large] {
        match client.fetch(&request).await {
            RequestOutcome::Answered(answer) => assert_eq!(answer.status, 431),
            other => assert!(other.reset().is_some(), "{other:?}"),
        }
        let answer = client.get("/next").await.answer("/next");
        assert!(answer.text().contains("GET /next"));
    }
    assert_eq!(stage.origin.seen("/many") + stage.origin.seen("/large"), 0);
    let announced = client.judge().setting(setting::MAX_HEADER_LIST_SIZE);
    assert_eq!(announced, Some(4_096), "clients are told the limit");
}
