//! Tests of requests that never become a tunnel: refused upgrades, responses that do not fit one,
//! and attempts to smuggle requests by them.

use super::ends::{ACCEPT, End, KEY, Next, Scene, agreed, opening};
use tokio::net::TcpStream;

const NEXT: &str = "GET /next HTTP/1.1\r\nHost: larder.test\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok";

/// Requests `/next` on the same connection, which is answered: everything before was well framed.
async fn goes_on(scene: &Scene, client: &mut End<TcpStream>, origin: &mut End<TcpStream>) {
    client.send(NEXT).await;
    // Over the kept connection to the origin, or a new one: that depends on the core.
    let mut new = None;
    let head = tokio::select! {
        head = origin.head() => head,
        mut other = scene.origin() => {
            let head = other.head().await;
            new = Some(other);
            head
        }
    };
    assert!(head.starts_with("GET /next HTTP/1.1\r\n"), "{head}");
    new.as_mut().unwrap_or(origin).send(OK).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 OK\r\n"));
    client.expect("ok").await;
    if let Some(new) = new {
        *origin = new;
    }
}

#[tokio::test]
async fn an_origin_that_does_not_agree_answers_as_ever() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    for (answer, status) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage", "200"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n0\r\n\r\n", "200"),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\npage", "403"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\npage", "404"),
        (
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nContent-Length: 4\r\n\r\npage",
            "426",
        ),
        ("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 4\r\n\r\npage", "302"),
        ("HTTP/1.1 503 Unavailable\r\nContent-Length: 4\r\n\r\npage", "503"),
    ] {
        client.send(opening("")).await;
        let mut origin = scene.origin().await;
        assert!(origin.head().await.contains("Upgrade: websocket\r\n"));
        origin.send(answer).await;
        let head = client.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(!head.contains("\r\nUpgrade:") && !head.contains("Connection: Upgrade"), "{head}");
        if head.contains("chunked") {
            client.expect("4\r\npage\r\n0\r\n\r\n").await;
        } else {
            client.expect("page").await;
        }
        goes_on(&scene, &mut client, &mut origin).await;
        drop(origin);
        // The kept connection is gone when the next request comes.
        crate::support::pause(50).await;
    }
    assert_eq!(scene.metric("larder_tunnels_total").await, 0);
}

#[tokio::test]
async fn what_was_pipelined_behind_a_refused_wish_is_a_request() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send(opening("") + NEXT).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    assert!(origin.is_silent().await && scene.origin_is_silent().await);
    origin.send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 426 "));
    assert!(origin.head().await.starts_with("GET /next HTTP/1.1\r\n"));
    origin.send(OK).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
}

/// An opening of a WebSocket, changed by `from` and `to`.
fn changed(from: &str, to: &str) -> String {
    let text = opening("");
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[tokio::test]
async fn a_wish_that_is_not_granted_is_not_passed_on() {
    let key = format!("Sec-WebSocket-Key: {KEY}\r\n");
    let with_body =
        |head: String| head.replacen("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello", 1);
    let cases = [
        ("h2c", changed("Upgrade: websocket", "HTTP2-Settings: AAMAAABk\r\nUpgrade: h2c")),
        ("h2c in capitals", changed("Upgrade: websocket", "Upgrade: H2C")),
        (
            "h2c nominated",
            changed(
                "Connection: Upgrade\r\nUpgrade: websocket",
                "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\nUpgrade: h2c",
            ),
        ),
        ("TLS", changed("Upgrade: websocket", "Upgrade: TLS/1.0")),
        ("HTTP/2", changed("Upgrade: websocket", "Upgrade: HTTP/2.0")),
        ("not listed", changed("Upgrade: websocket", "Upgrade: mqtt")),
        ("a part of the name", changed("Upgrade: websocket", "Upgrade: web")),
        ("a version of it", changed("Upgrade: websocket", "Upgrade: websocket/13")),
        ("two words", changed("Upgrade: websocket", "Upgrade: websocket x")),
        ("quoted", changed("Upgrade: websocket", "Upgrade: \"websocket\"")),
        ("empty", changed("Upgrade: websocket", "Upgrade:")),
        ("not nominated", changed("Connection: Upgrade", "Connection: keep-alive")),
        ("nominated in part", changed("Connection: Upgrade", "Connection: Upgrade2")),
        ("no Connection", changed("Connection: Upgrade\r\n", "")),
        ("no Upgrade", changed("Upgrade: websocket\r\n", "")),
        ("no key", changed(&key, "")),
        ("two keys", changed(&key, &key.repeat(2))),
        ("a short key", changed(KEY, "AAAA")),
        ("a key that is none", changed(KEY, "!!!!!!!!!!!!!!!!!!!!!!==")),
        ("POST", changed("GET ", "POST ")),
        ("HEAD", changed("GET ", "HEAD ")),
        ("PUT with a body", with_body(changed("GET ", "PUT "))),
        ("GET with a body", with_body(opening(""))),
        ("GET with an empty body", changed("Connection", "Content-Length: 0\r\nConnection")),
    ];
    for (what, request) in cases {
        let scene = Scene::new().await;
        let mut client = scene.client().await;
        client.send(&request).await;
        let mut origin = scene.origin().await;
        let head = origin.head().await.to_ascii_lowercase();
        assert!(!head.contains("\nupgrade:") && !head.contains("\nconnection:"), "{what}: {head}");
        if request.ends_with("hello") {
            origin.expect("hello").await;
        }
        origin.send("HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\n\r\n").await;
        assert!(client.head().await.starts_with("HTTP/1.1 204 "), "{what}");
        goes_on(&scene, &mut client, &mut origin).await;
        assert_eq!(scene.metric("larder_tunnels_total").await, 0, "{what}");
    }
}

#[tokio::test]
async fn a_client_of_1_0_gets_no_tunnel() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send(changed("HTTP/1.1", "HTTP/1.0")).await;
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    assert!(!head.contains("Upgrade"), "{head}");
    origin.send(agreed()).await;
    assert!(client.head().await.starts_with("HTTP/1.1 502 "));
    assert_eq!(origin.next().await, Next::Closed);
}

#[tokio::test]
async fn connect_is_refused_and_nothing_behind_it_is_read() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client
        .send(format!("CONNECT larder.test:443 HTTP/1.1\r\nHost: larder.test\r\n\r\n{NEXT}"))
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 501 ") && head.contains("Connection: close"), "{head}");
    assert!(scene.origin_is_silent().await);
}

/// A 101 that does not fit the upgrade: the client gets a 502, and the origin's connection ends.
#[tokio::test]
async fn a_101_that_is_no_answer_is_an_error() {
    let agreed = agreed();
    let swap = |from: &str, to: &str| {
        assert!(agreed.contains(from), "{from}");
        agreed.replacen(from, to, 1)
    };
    let cases = [
        ("no Upgrade", swap("Upgrade: websocket\r\n", "")),
        ("no Connection", swap("Connection: Upgrade\r\n", "")),
        ("Connection: close", swap("Connection: Upgrade", "Connection: close")),
        ("another protocol", swap("Upgrade: websocket", "Upgrade: mqtt")),
        ("h2c", swap("Upgrade: websocket", "Upgrade: h2c")),
        ("two protocols", swap("Upgrade: websocket", "Upgrade: websocket, mqtt")),
        ("no proof", swap(&format!("Sec-WebSocket-Accept: {ACCEPT}\r\n"), "")),
        ("a wrong proof", swap(ACCEPT, "AAAAAAAAAAAAAAAAAAAAAAAAAAA=")),
        ("the key itself", swap(ACCEPT, KEY)),
        (
            "two proofs",
            swap("Connection", &format!("Sec-WebSocket-Accept: {ACCEPT}\r\nConnection")),
        ),
        ("HTTP/1.0", swap("HTTP/1.1", "HTTP/1.0")),
        ("a body", swap("Connection", "Content-Length: 5\r\nConnection")),
        ("chunks", swap("Connection", "Transfer-Encoding: chunked\r\nConnection")),
    ];
    let scene = Scene::new().await;
    for (number, (what, answer)) in cases.into_iter().enumerate() {
        let next = NEXT.replace("/next", &format!("/next/{number}"));
        let mut client = scene.client().await;
        client.send(opening("") + &next).await;
        let mut origin = scene.origin().await;
        origin.head().await;
        origin.send(answer + "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled").await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{what}: {head}");
        assert!(matches!(origin.next().await, Next::Closed | Next::Reset), "{what}");
        // The pipelined bytes are a request, answered by the origin and not by its earlier bytes.
        let mut origin = scene.origin().await;
        assert!(origin.head().await.starts_with(&format!("GET /next/{number} ")), "{what}");
    }
    assert_eq!(scene.metric("larder_tunnels_total").await, 0);
}

#[tokio::test]
async fn an_unrequested_101_is_an_error() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send(NEXT).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send(agreed()).await;
    assert!(client.head().await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn a_server_that_ends_or_breaks_before_it_agrees_is_a_502() {
    for reset in [false, true] {
        let scene = Scene::new().await;
        let mut client = scene.client().await;
        client.send(opening("")).await;
        let mut origin = scene.origin().await;
        origin.head().await;
        if reset {
            origin.stream.set_zero_linger().expect("an option");
        } else {
            origin.send("HTTP/1.1 101 Switching Proto").await;
        }
        drop(origin);
        assert!(client.head().await.starts_with("HTTP/1.1 502 "));
    }
}

#[tokio::test]
async fn who_leaves_before_the_101_leaves_no_tunnel() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send(opening("")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    client.stream.set_zero_linger().expect("an option");
    drop(client);
    assert_eq!(origin.next().await, Next::Closed);
    assert_eq!(scene.metric("larder_tunnels_total").await, 0);
}

#[tokio::test]
async fn settings_say_which_protocols_may_pass() {
    for (site, asked, sent) in [
        ("upgrade = []", "websocket", None),
        ("upgrade = \"mqtt\"", "websocket", None),
        ("upgrade = [\"mqtt\", \"WebSocket\"]", "websocket", Some("WebSocket")),
        ("upgrade = [\"mqtt\"]", "h2c, MQTT", Some("mqtt")),
        ("cache = false", "websocket", Some("websocket")),
        ("bypass = { path = \"/*\" }", "websocket", Some("websocket")),
        (
            "upgrade = []\n[[site.route]]\npath = \"/chat\"\nupgrade = \"websocket\"",
            "websocket",
            Some("websocket"),
        ),
    ] {
        let scene = Scene::with("", site).await;
        let mut client = scene.client().await;
        client.send(changed("Upgrade: websocket", &format!("Upgrade: {asked}"))).await;
        let head = scene.origin().await.head().await;
        let line = head.split("\r\n").find_map(|line| line.strip_prefix("Upgrade: "));
        assert_eq!(line, sent, "{site}");
    }
}

#[tokio::test]
async fn who_is_kept_out_is_kept_out_of_tunnels() {
    let scene = Scene::with("", "deny = \"127.0.0.0/8\"").await;
    let mut client = scene.client().await;
    client.send(opening("")).await;
    assert!(client.head().await.starts_with("HTTP/1.1 403 "));
    assert!(scene.origin_is_silent().await);
}

#[tokio::test]
async fn a_stored_page_answers_no_wish_and_an_answer_to_one_is_not_stored() {
    let scene = Scene::new().await;
    let stored = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 6\r\n\r\nstored";
    let page = "GET /chat HTTP/1.1\r\nHost: larder.test\r\n\r\n";
    let mut client = scene.client().await;
    client.send(opening("")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send(stored.replace("stored", "secret")).await;
    client.head().await;
    client.expect("secret").await;
    drop(origin);
    client.send(page).await;
    let mut origin = scene.origin().await;
    assert!(!origin.head().await.contains("Upgrade"));
    origin.send(stored).await;
    client.head().await;
    client.expect("stored").await;
    drop(origin);
    // Stored now, but no response to an upgrade.
    client.send(opening("")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send(agreed()).await;
    assert!(client.head().await.starts_with("HTTP/1.1 101 "));
}
