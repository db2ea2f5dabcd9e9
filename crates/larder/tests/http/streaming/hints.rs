//! Hints: interim responses such as Early Hints (RFC 8297), on every path to a client.

use tokio::io::{AsyncRead, AsyncWrite};

use super::ends::{End, Scene};
use crate::support::tls::{Authority, Kind};

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
const OTHER: &str = "HTTP/1.1 103 Early Hints\r\nLink: </b.js>; rel=preload\r\n\r\n";
const PROCESSING: &str = "HTTP/1.1 102 Processing\r\n\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Asserts that interim responses of the origin leave at once, except for a 100: that is between
/// the client and this proxy.
async fn are_passed_on<S: AsyncRead + AsyncWrite + Unpin>(scene: &Scene, client: &mut End<S>) {
    for (number, fields) in
        ["", "Cookie: sid=1\r\n", "Authorization: Basic eA==\r\n"].iter().enumerate()
    {
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: larder.test\r\n{fields}\r\n")).await;
        let mut origin = scene.origin().await;
        origin.head().await;
        for interim in [HINT, CONTINUE, PROCESSING, OTHER] {
            origin.send(interim).await;
            if interim != CONTINUE {
                client.expect(interim).await;
            }
        }
        origin.send(PAGE.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await;
        assert!(client.head().await.starts_with("HTTP/1.1 200 "));
        client.expect("ok").await;
    }
}

#[tokio::test]
async fn several_are_passed_on_as_they_come() {
    let scene = Scene::new().await;
    are_passed_on(&scene, &mut scene.client().await).await;
}

#[tokio::test]
async fn over_tls_too() {
    let authority = Authority::new();
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let top = format!("tls = {{ {} }}", authority.pair("site"));
    let scene = Scene::listening("127.0.0.1:0 tls", &top).await;
    let connection = authority.client().connect(scene.daemon.addr(), "larder.test").await;
    are_passed_on(&scene, &mut End::new(connection.stream)).await;
}

#[tokio::test]
async fn a_client_that_expects_100_gets_it_once_and_hints_after_it() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client
        .send(
            "POST /form HTTP/1.1\r\nHost: larder.test\r\nContent-Length: 5\r\n\
             Expect: 100-continue\r\n\r\n",
        )
        .await;
    client.expect(CONTINUE).await;
    client.send("hello").await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.expect("hello").await;
    origin.send(CONTINUE.to_owned() + HINT + CONTINUE).await;
    client.expect(HINT).await;
    origin.send(PAGE).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_client_of_1_0_gets_none() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send("GET /page HTTP/1.0\r\nHost: larder.test\r\n\r\n").await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send(HINT.to_owned() + PROCESSING + PAGE).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    client.expect("ok").await;
}

#[tokio::test]
async fn of_requests_that_share_a_fetch_only_the_first_gets_them() {
    let scene = Scene::new().await;
    let (mut first, mut second) = (scene.client().await, scene.client().await);
    let ask = "GET /page HTTP/1.1\r\nHost: larder.test\r\n\r\n";
    first.send(ask).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    second.send(ask).await;
    origin.send(HINT).await;
    first.expect(HINT).await;
    assert!(second.is_silent().await);
    origin.send(PAGE.replace("\r\n\r\n", "\r\nCache-Control: max-age=60\r\n\r\n")).await;
    for client in [&mut first, &mut second] {
        assert!(client.head().await.starts_with("HTTP/1.1 200 "));
        client.expect("ok").await;
    }
    assert!(scene.origin_is_silent().await);
}
