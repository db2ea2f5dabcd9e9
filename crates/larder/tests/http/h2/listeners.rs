//! Tests of a connection's protocol: chosen by ALPN on TLS (RFC 7301), by the first bytes on a
//! plain listener with both (RFC 9113 3.3), and HTTP/1.1 on all others.

use testkit::client::{RawClient, WriteSplit, request};
use testkit::h2::{Client, Frame, PREFACE, Request};
use testkit::origin::Script;
use testkit::reply::{ConnectionEnd, ReplyOutcome};

use crate::support::console::printed;
use crate::support::h2::{client, over_tls, stage};
use crate::support::tls::{Authority, Kind, Served};
use crate::support::{PATIENCE, Stage, eventually, pattern, whole};

const TEXT: &str = "0123456789abcdefghij";

async fn served(authority: &Authority, top: &str) -> Served {
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let tls = authority.pair("site");
    let site = format!("{top}\n[[site]]\nhost = \"*\"\norigin = \"app\"\ntls = {{ {tls} }}\n");
    let served = Served::start(&site).await;
    served.origin.on("/page", Script::cacheable(TEXT));
    served
}

#[tokio::test]
async fn alpn_decides_and_http1_is_there_for_all_others() {
    let authority = Authority::new();
    let served = served(&authority, "").await;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = authority.client_of(&[version], None);
        for (offered, chosen) in [
            (&["h2", "http/1.1"][..], Some("h2")),
            (&["http/1.1", "h2"], Some("h2")),
            (&["h2"], Some("h2")),
            (&["http/1.1"], Some("http/1.1")),
            (&[], None),
        ] {
            let offering = client.offering(offered);
            let mut connection = offering.connect(served.addr(), "larder.test").await;
            let agreed = connection.stream.get_ref().1.alpn_protocol();
            assert_eq!(agreed, chosen.map(str::as_bytes), "{offered:?}");
            let text = if chosen == Some("h2") {
                over_tls(connection).await.get("/page").await.answer("/page").text()
            } else {
                connection.get("larder.test", "/page").await.text()
            };
            assert_eq!(text, TEXT);
        }
    }
    assert_eq!(served.origin.seen("/page"), 1, "one object for both");
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let authority = Authority::new();
    let served = served(&authority, "http2 = false").await;
    let both = authority.client().offering(&["h2", "http/1.1"]);
    let mut connection = both.connect(served.addr(), "larder.test").await;
    assert_eq!(connection.stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(connection.get("larder.test", "/page").await.text(), TEXT);
    let only = authority.client().offering(&["h2"]);
    assert!(only.try_connect(served.addr(), "larder.test").await.is_err(), "no protocol in common");
}

#[tokio::test]
async fn a_request_over_tls_is_logged_as_such() {
    let authority = Authority::new();
    let served = served(&authority, "").await;
    served.origin.otherwise(Script::mirror("Cache-Control: no-store\r\n"));
    let h2 = authority.client().offering(&["h2"]);
    let mut client = over_tls(h2.connect(served.addr(), "larder.test").await).await;
    let text = client.get("/mirror").await.answer("/mirror").text().to_lowercase();
    assert!(text.contains("x-forwarded-proto: https\n"), "{text}");
    // Bodies in both directions, through TLS records of every size.
    let body = pattern(1 << 20);
    let request = Request::post("/mirror").set(":scheme", "https");
    let stream = client.ask(&request, false).await.expect("sent");
    client.upload(stream, &body).await.expect("taken");
    assert!(client.outcome(stream).await.answer("/mirror").body.ends_with(&body));
    // As in the log.
    let arguments = ["log", "--once", "-F", "$server_protocol $https $ssl_protocol"];
    let log = async || printed(&served.daemon, &arguments).await;
    eventually("two lines", async || log().await.lines().count() == 2).await;
    assert_eq!(log().await, "HTTP/2.0 on TLSv1.3\n".repeat(2));
}

/// RFC 9113 9.1.2 and RFC 9110 7.4: a site with its own certificate is not served on a connection
/// that was made for another.
#[tokio::test]
async fn a_connection_made_for_one_site_does_not_speak_for_another() {
    let authority = Authority::new();
    authority.sign("one", &["one.test"], Kind::Elliptic);
    authority.sign("two", &["two.test"], Kind::Elliptic);
    let (one, two) = (authority.pair("one"), authority.pair("two"));
    let served = Served::start(&format!(
        "[[site]]\nhost = \"one.test\"\norigin = \"app\"\ntls = {{ {one} }}\n\
         [[site]]\nhost = \"two.test\"\norigin = \"app\"\ntls = {{ {two} }}\n"
    ))
    .await;
    served.origin.otherwise(Script::mirror("Cache-Control: no-store\r\n"));
    let h2 = authority.client().offering(&["h2"]);
    let mut client = over_tls(h2.connect(served.addr(), "one.test").await).await;
    let to = |host: &str| Request::get("/page").set(":scheme", "https").set(":authority", host);
    assert_eq!(client.fetch(&to("one.test")).await.answer("one").status, 200);
    assert_eq!(client.fetch(&to("two.test")).await.answer("two").status, 421);
    assert_eq!(client.fetch(&to("one.test")).await.answer("one").status, 200);
}

#[tokio::test]
async fn a_plain_listener_for_both_serves_both() {
    let stage = stage().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let mut raw = stage.connect().await;
    for _ in 0..3 {
        let reply = whole(raw.get("/page").await.expect("sent"), "/page");
        assert_eq!((reply.status, reply.text().as_str()), (200, TEXT));
    }
    assert_eq!(client(&stage.daemon).await.get("/page").await.answer("/page").text(), TEXT);
    // Requests that begin like a preface, byte by byte.
    stage.origin.otherwise(Script::mirror("Cache-Control: no-store\r\n"));
    for method in ["PUT", "P", "PR", "PRI", "PRIX", "PATCH", "POST"] {
        let mut raw = stage.connect().await;
        let body = if method.starts_with("PRI") || method.len() < 3 { "" } else { "X" };
        let length = format!("Content-Length: {}\r\n", body.len());
        let bytes = [&request(method, "/odd", &length)[..], body.as_bytes()].concat();
        raw.send(&bytes, WriteSplit::Bytes).await.expect("sent");
        let reply = whole(raw.reply(method).await, method);
        assert!(reply.text().contains(&format!("{method} /odd\n")), "{method}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_preface_where_only_http1_is_spoken_is_refused() {
    let stage = Stage::new().await;
    let greeting = [PREFACE, &Frame::settings(&[]).bytes()].concat();
    let requests = Request::get("/page").bytes(1, true);
    let mut raw =
        RawClient::connect(stage.daemon.addr()).await.expect("a connection").patience(PATIENCE);
    raw.send(&[greeting, requests].concat(), WriteSplit::Whole).await.expect("sent");
    match raw.reply("PRI").await {
        ReplyOutcome::Complete(reply) => assert!(reply.status >= 400, "{reply:?}"),
        ReplyOutcome::Nothing => {}
        other => panic!("{other:?}"),
    }
    let (rest, end) = raw.rest().await;
    assert_ne!(end, ConnectionEnd::Open);
    assert!(rest.is_empty(), "{}", rest.escape_ascii());
    assert_eq!(stage.origin.targets(), Vec::<String>::new());
}

/// RFC 7540 had an upgrade from HTTP/1.1 to HTTP/2; RFC 9113 3.1 has none.
#[tokio::test]
async fn an_upgrade_to_h2c_is_not_taken() {
    let stage = stage().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    let fields = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                  HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n";
    let reply = stage.ask("GET", "/page", fields).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, TEXT));
    assert_eq!(reply.field("upgrade"), None);
}

/// TLS on a plain listener, and the reverse, are no requests.
#[tokio::test]
async fn a_plain_client_on_a_tls_listener_gets_nothing() {
    let authority = Authority::new();
    let served = served(&authority, "").await;
    let client = Client::connect(served.addr()).await.expect("a connection");
    let mut client = client.patience(PATIENCE);
    client.greet(&[]).await.expect("sent");
    let ended = client.rest().await;
    assert!(ended.is_err() || ended.is_ok_and(|e| e.end != ConnectionEnd::Open));
    assert_eq!(served.origin.targets(), Vec::<String>::new());
}
