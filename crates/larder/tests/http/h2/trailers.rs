//! Tests of trailers through every pair of protocols: forwarded ones, forbidden ones, and those of
//! truncated bodies.

use testkit::h2::{Exchange, FieldBlock, Frame, Request, RequestOutcome};
use testkit::larder::Daemon;
use tokio::net::TcpStream;

use super::ends::{End, Next, Scene};
use crate::support::eventually;
use crate::support::folder::Folder;
use crate::support::h2::{Plain, client};

/// A listener for both protocols.
const LISTEN: &str = "127.0.0.1:0 h2c";
const UNCACHED: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n";
/// Fields that a trailer section may contain, but that must not be forwarded.
const FORBIDDEN: &str = "Set-Cookie: a=1\r\nset_cookie: b\r\nCache-Control: no-store\r\n\
                         Authorization: x\r\nCookie: y\r\nContent-Type: text/html\r\n\
                         Content-Encoding: gzip\r\nExpires: 0\r\nVia: 1.1 x\r\nAge: 1\r\n\
                         Vary: *\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: for=x\r\n\
                         Surrogate-Key: k\r\nLocation: /\r\nIf-Match: *\r\nRange: bytes=0-0\r\n";
/// Fields that make a message malformed as trailers.
const MALFORMED: [&str; 8] = [
    "Transfer-Encoding: chunked",
    "Content-Length: 1",
    "content_length: 1",
    "Host: evil.test",
    "Connection: x",
    "TE: trailers",
    "Trailer: x",
    "Upgrade: h2c",
];

async fn scene() -> Scene {
    Scene::listening(LISTEN, "").await
}

/// A scene and a pending request of HTTP/1; `fields` are lines of its head.
async fn asked(scene: &Scene, fields: &str) -> (End<TcpStream>, End<TcpStream>, String) {
    let mut client = scene.client().await;
    client.send(format!("GET /page HTTP/1.1\r\nHost: larder.test\r\n{fields}\r\n")).await;
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    (client, origin, head)
}

/// A scene and a pending request of HTTP/2.
async fn asked_h2(scene: &Scene, request: &Request) -> (Plain, u32, End<TcpStream>, String) {
    let mut client = client(&scene.daemon).await;
    let stream = client.ask(request, true).await.expect("sent");
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    (client, stream, origin, head)
}

fn field(name: &str, value: &str) -> (String, Vec<u8>) {
    (name.to_owned(), value.as_bytes().to_vec())
}

fn has_line(head: &str, line: &str) -> bool {
    head.split("\r\n").any(|own| own.eq_ignore_ascii_case(line))
}

#[tokio::test]
async fn an_http1_client_that_takes_trailers_gets_them_written_anew() {
    let scene = scene().await;
    for te in ["TE: trailers\r\nConnection: TE\r\n", "te: gzip, Trailers\r\n"] {
        let (mut client, mut origin, head) = asked(&scene, te).await;
        assert!(!head.to_ascii_lowercase().contains("te: gzip"), "{head}");
        origin.send(format!("{UNCACHED}Trailer: X-Sum, Set-Cookie\r\n\r\n4\r\nbody\r\n")).await;
        let head = client.head().await;
        assert!(has_line(&head, "Trailer: X-Sum"), "{head}");
        client.expect("4\r\nbody\r\n").await;
        origin.send(format!("0\r\nX-Sum:   a b \t\r\n{FORBIDDEN}x-Last:\r\n\r\n")).await;
        client.expect("0\r\nX-Sum: a b\r\nx-Last: \r\n\r\n").await;
        // The connection goes on.
        client.send("GET /again HTTP/1.1\r\nHost: larder.test\r\n\r\n").await;
        origin.head().await;
        origin.send(format!("{UNCACHED}\r\n0\r\nX-Sum: 1\r\n\r\n")).await;
        client.head().await;
        client.expect("0\r\n\r\n").await;
    }
}

#[tokio::test]
async fn an_http1_client_that_takes_none_gets_none() {
    let scene = scene().await;
    for te in ["", "TE: gzip\r\n", "TE: trailers;q=0.5\r\n"] {
        let (mut client, mut origin, head) = asked(&scene, te).await;
        assert!(!has_line(&head, "TE: trailers"), "{head}");
        origin
            .send(format!("{UNCACHED}Trailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n"))
            .await;
        let head = client.head().await;
        assert!(!head.to_ascii_lowercase().contains("trailer"), "{head}");
        client.expect("4\r\nbody\r\n0\r\n\r\n").await;
        assert!(client.is_silent().await);
    }
    let mut client = scene.client().await;
    client.send("GET /old HTTP/1.0\r\nHost: larder.test\r\nTE: trailers\r\n\r\n").await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin
        .send(format!("{UNCACHED}Trailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n"))
        .await;
    let head = client.head().await;
    assert!(!head.to_ascii_lowercase().contains("trailer"), "{head}");
    client.expect("body").await;
    assert_eq!(client.next().await, Next::Closed);
}

#[tokio::test]
async fn an_http2_client_gets_trailers_behind_the_body() {
    let scene = scene().await;
    for body in ["", "4\r\nbody\r\n"] {
        let (mut client, stream, mut origin, _) = asked_h2(&scene, &Request::get("/page")).await;
        origin.send(format!("{UNCACHED}Trailer: X-Sum\r\n\r\n{body}")).await;
        let headed =
            |judge: &testkit::h2::Judge| judge.exchange(stream).is_some_and(|e| e.status == 200);
        assert!(client.until(headed).await);
        origin.send(format!("0\r\nX-Sum: 1\r\n{FORBIDDEN}grpc-status: 0\r\n\r\n")).await;
        let answer = client.outcome(stream).await.answer("/page");
        assert_eq!(answer.field("trailer").as_deref(), Some("X-Sum"));
        assert_eq!(answer.trailers, [field("x-sum", "1"), field("grpc-status", "0")]);
        assert_eq!(answer.text(), if body.is_empty() { "" } else { "body" });
        assert!(client.ping().await);
    }
}

#[tokio::test]
async fn trailers_wait_for_a_body_that_the_clients_window_holds_back() {
    let scene = scene().await;
    let (mut client, stream, mut origin, _) = asked_h2(&scene, &Request::get("/page")).await;
    let body = "x".repeat(300_000);
    origin.send(format!("{UNCACHED}\r\n{:x}\r\n{body}\r\n0\r\nX-Sum: 1\r\n\r\n", body.len())).await;
    let answer: Exchange = client.outcome(stream).await.answer("/page");
    assert_eq!((answer.body.len(), &answer.trailers[..]), (body.len(), &[field("x-sum", "1")][..]));
}

#[tokio::test]
async fn an_origin_gets_te_trailers_where_the_response_is_for_this_client() {
    let scene = Scene::listening_with(LISTEN, "", "cache = false").await;
    let (_client, _origin, head) = asked(&scene, "TE: trailers\r\n").await;
    assert!(has_line(&head, "TE: trailers") && has_line(&head, "Connection: TE"), "{head}");
    let request = Request::get("/page").field("te", "trailers");
    let (_client, _, _origin, head) = asked_h2(&scene, &request).await;
    assert!(has_line(&head, "TE: trailers") && has_line(&head, "Connection: TE"), "{head}");
    let (_client, _origin, head) = asked(&scene, "").await;
    assert!(!has_line(&head, "TE: trailers") && !has_line(&head, "Connection: TE"), "{head}");
}

#[tokio::test]
async fn trailers_are_stored_with_a_response_and_delivered_to_all_clients_that_accept_them() {
    let scene = scene().await;
    let (mut first, mut origin, head) = asked(&scene, "TE: trailers\r\n").await;
    assert!(has_line(&head, "TE: trailers") && has_line(&head, "Connection: TE"), "{head}");
    let head = UNCACHED.replace("no-store", "max-age=60");
    origin.send(format!("{head}Trailer: X-Sum\r\n\r\n4\r\nbody\r\n")).await;
    first.head().await;
    origin.send(format!("0\r\nX-Sum: 1\r\n{FORBIDDEN}ETag: \"a\"\r\nx-sum: 2\r\n\r\n")).await;
    let tail = "0\r\nX-Sum: 1\r\nETag: \"a\"\r\nx-sum: 2\r\n\r\n";
    first.expect(format!("4\r\nbody\r\n{tail}")).await;
    for te in ["TE: trailers", "TE: gzip, trailers"] {
        first.send(format!("GET /page HTTP/1.1\r\nHost: larder.test\r\n{te}\r\n\r\n")).await;
        let told = first.head().await;
        assert!(has_line(&told, "Trailer: X-Sum, ETag"), "{told}");
        assert!(!told.contains("Content-Length") && !has_line(&told, "ETag: \"a\""), "{told}");
        first.expect(format!("4\r\nbody\r\n{tail}")).await;
    }
    let answer = client(&scene.daemon).await.get("/page").await.answer("/page");
    assert_eq!(answer.text(), "body");
    assert_eq!(answer.field("trailer").as_deref(), Some("X-Sum, ETag"));
    assert_eq!(answer.field("etag"), None, "it is behind the body");
    let behind = [field("x-sum", "1"), field("etag", "\"a\""), field("x-sum", "2")];
    assert_eq!(answer.trailers, behind);
}

#[tokio::test]
async fn a_stored_response_has_a_length_and_no_trailers_for_other_clients() {
    let scene = scene().await;
    // They are stored, though the first client did not ask for any.
    let (mut first, mut origin, head) = asked(&scene, "").await;
    assert!(!has_line(&head, "TE: trailers"), "{head}");
    let head = UNCACHED.replace("no-store", "max-age=60");
    let head = format!("{head}ETag: \"head\"\r\n");
    origin.send(format!("{head}\r\n4\r\nbody\r\n")).await;
    first.head().await;
    origin.send("0\r\nX-Sum: 1\r\n\r\n").await;
    first.expect("4\r\nbody\r\n0\r\n\r\n").await;
    for (method, fields, status, body) in [
        ("GET", "", "200", "body"),
        ("GET", "TE: trailers;q=0\r\n", "200", "body"),
        ("GET", "TE: trailers\r\nRange: bytes=1-2\r\n", "206", "od"),
        ("GET", "TE: trailers\r\nIf-None-Match: \"head\"\r\n", "304", ""),
        ("HEAD", "TE: trailers\r\n", "200", ""),
        ("GET", "", "200", "body"),
    ] {
        first.send(format!("{method} /page HTTP/1.1\r\nHost: larder.test\r\n{fields}\r\n")).await;
        let told = first.head().await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status}")), "{method} {fields}{told}");
        assert!(!told.contains("Trailer") && !told.contains("chunked"), "{method} {fields}{told}");
        first.expect(body).await;
    }
    first.send("GET /page HTTP/1.1\r\nHost: larder.test\r\nTE: trailers\r\n\r\n").await;
    assert!(has_line(&first.head().await, "Trailer: X-Sum"));
    first.expect("4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n").await;
    first.send("GET /page HTTP/1.0\r\nHost: larder.test\r\nTE: trailers\r\n\r\n").await;
    assert!(has_line(&first.head().await, "Content-Length: 4"));
    first.expect("body").await;
}

#[tokio::test]
async fn behind_a_form_that_was_made_here_comes_what_is_true_of_it() {
    let scene = scene().await;
    let digest = "Content-Digest: sha-256=:AAAA:\r\nRepr-Digest: sha-256=:AAAA:\r\n";
    let (text, etag) = ("text ".repeat(500), "ETag: \"a\"\r\n");
    let (mut first, mut origin, _) = asked(&scene, "TE: trailers\r\n").await;
    let head = UNCACHED.replace("no-store", "max-age=60\r\nContent-Type: text/plain");
    let tail = format!("0\r\n{digest}{etag}X-Sum: 1\r\n\r\n");
    origin.send(format!("{head}\r\n{:x}\r\n{text}\r\n{tail}", text.len())).await;
    // It is stored as it came, and sent to this client unchanged.
    assert!(first.head().await.contains("Vary: Accept-Encoding"));
    let mut body = String::new();
    while !body.ends_with("\r\n\r\n") {
        body.push_str(&String::from_utf8(first.some().await).expect("text"));
    }
    assert!(body.ends_with(&format!("\r\n{tail}")), "{body}");
    let ask = async |coding: &str| {
        let request = Request::get("/page").field("accept-encoding", coding);
        let mut client = client(&scene.daemon).await;
        let stream = client.ask(&request, true).await.expect("sent");
        client.outcome(stream).await.answer("/page")
    };
    eventually("gzip", async || ask("gzip").await.body != text.as_bytes()).await;
    assert_eq!(ask("gzip").await.trailers, [field("x-sum", "1")]);
    let plain = ask("identity").await;
    assert_eq!(plain.body, text.as_bytes());
    assert_eq!(plain.trailers.len(), 4, "{:?}", plain.trailers);
}

#[tokio::test]
async fn trailers_stay_when_the_origin_confirms_what_is_stored() {
    let scene = scene().await;
    let (mut first, mut origin, _) = asked(&scene, "").await;
    let head = UNCACHED.replace("no-store", "max-age=0");
    let head = format!("{head}ETag: \"head\"\r\n");
    origin.send(format!("{head}\r\n4\r\nbody\r\n")).await;
    first.head().await;
    origin.send("0\r\nX-Sum: 1\r\n\r\n").await;
    first.expect("4\r\nbody\r\n0\r\n\r\n").await;
    first.send("GET /page HTTP/1.1\r\nHost: larder.test\r\nTE: trailers\r\n\r\n").await;
    let asked = origin.head().await;
    assert!(has_line(&asked, "If-None-Match: \"head\""), "{asked}");
    origin.send("HTTP/1.1 304 Not Modified\r\nETag: \"head\"\r\n\r\n").await;
    assert!(has_line(&first.head().await, "Trailer: X-Sum"));
    first.expect("4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n").await;
}

#[tokio::test]
async fn trailers_of_an_http1_request_pass_to_the_origin() {
    let scene = scene().await;
    let mut client = scene.client().await;
    client
        .send(
            "POST /form HTTP/1.1\r\nHost: larder.test\r\nTransfer-Encoding: chunked\r\n\
             Trailer: X-Sum, Cookie\r\nConnection: X-Hop\r\n\r\n4\r\nbody\r\n",
        )
        .await;
    client
        .send(format!(
            "0\r\nX-Sum:\t1\r\n{FORBIDDEN}x-hop: 1\r\nX_Real_IP: 6.6.6.6\r\nX-SSL: y\r\n\r\n"
        ))
        .await;
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    assert!(has_line(&head, "Trailer: X-Sum"), "{head}");
    origin.expect("4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n").await;
    assert!(origin.is_silent().await);
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn trailers_of_an_http2_request_pass_to_the_origin() {
    let scene = scene().await;
    for body in [&b""[..], b"body"] {
        let mut client = client(&scene.daemon).await;
        let request = Request::post("/form").field("trailer", "x-sum");
        let stream = client.ask(&request, false).await.expect("sent");
        if !body.is_empty() {
            client.send_frame(&Frame::data(stream, body, false)).await.expect("sent");
        }
        let block = FieldBlock::new()
            .literal("x-sum", "1")
            .literal("set-cookie", "a=1")
            .literal("x-forwarded-host", "evil")
            .literal("content-digest", "sha-256=:x:");
        client.send_frame(&Frame::headers(stream, block.bytes(), true)).await.expect("sent");
        let mut origin = scene.origin().await;
        let head = origin.head().await;
        assert!(has_line(&head, "Trailer: x-sum"), "{head}");
        let chunk = if body.is_empty() { "" } else { "4\r\nbody\r\n" };
        let tail = "x-sum: 1\r\ncontent-digest: sha-256=:x:\r\n\r\n";
        origin.expect(format!("{chunk}0\r\n{tail}")).await;
        origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        assert_eq!(client.outcome(stream).await.answer("/form").status, 200);
    }
}

#[tokio::test]
async fn a_body_of_known_length_has_no_trailers_towards_the_origin() {
    let scene = scene().await;
    let mut client = client(&scene.daemon).await;
    let request = Request::post("/form").field("content-length", "4").field("trailer", "x-sum");
    let stream = client.ask(&request, false).await.expect("sent");
    client.send_frame(&Frame::data(stream, b"body", false)).await.expect("sent");
    let block = FieldBlock::new().literal("x-sum", "1");
    client.send_frame(&Frame::headers(stream, block.bytes(), true)).await.expect("sent");
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    assert!(has_line(&head, "Content-Length: 4"), "{head}");
    assert!(!head.to_ascii_lowercase().contains("trailer"), "{head}");
    origin.expect("body").await;
    assert!(origin.is_silent().await);
}

#[tokio::test]
async fn fields_that_the_site_changes_do_not_come_behind_the_body() {
    let site = "request_headers = { unset = [\"X-Secret\"], set = { X-Set = \"1\" } }\n\
                response_headers = { unset = [\"X-Inner\"] }\n";
    let scene = Scene::listening_with(LISTEN, "", site).await;
    let mut client = scene.client().await;
    client
        .send(
            "POST /form HTTP/1.1\r\nHost: larder.test\r\nTransfer-Encoding: chunked\r\n\
             TE: trailers\r\n\r\n0\r\nx_secret: 1\r\nX-SET: 2\r\nX-Free: 3\r\n\r\n",
        )
        .await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.expect("0\r\nX-Free: 3\r\n\r\n").await;
    origin
        .send(format!(
            "{UNCACHED}Trailer: X-Inner, X-Sum\r\n\r\n0\r\nX-INNER: 1\r\nX-Sum: 2\r\n\r\n"
        ))
        .await;
    let head = client.head().await;
    assert!(has_line(&head, "Trailer: X-Sum"), "{head}");
    client.expect("0\r\nX-Sum: 2\r\n\r\n").await;
}

#[tokio::test]
async fn a_program_lets_no_trailers_pass_as_it_could_not_see_them() {
    let folder = Folder::new();
    let program = "vcl 4.1;\nbackend app { .host = \"127.0.0.1\"; .port = \"PORT\"; }\n\
                   sub vcl_deliver { set resp.http.Trailer = \"X-Sum\"; }\n";
    let origin = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = origin.local_addr().expect("an address").port().to_string();
    folder.file("site.vcl", program.replace("PORT", &port));
    let site = format!("vcl = \"{}\"", folder.path().join("site.vcl").display());
    let config = format!("listen = \"{LISTEN}\"\n[[site]]\nhost = \"*\"\n{site}\n");
    let daemon = Daemon::start(&config).expect("it starts");
    let stream = TcpStream::connect(daemon.addr()).await.expect("a connection");
    let mut client = End::new(stream);
    client
        .send(
            "POST /form HTTP/1.1\r\nHost: larder.test\r\nTransfer-Encoding: chunked\r\n\
             TE: trailers\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n",
        )
        .await;
    let mut origin = End::new(origin.accept().await.expect("a connection").0);
    let head = origin.head().await;
    assert!(!has_line(&head, "TE: trailers") && !has_line(&head, "Trailer: X-Sum"), "{head}");
    origin.expect("4\r\nbody\r\n0\r\n\r\n").await;
    origin
        .send(format!("{UNCACHED}Trailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n"))
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200") && !head.contains("Trailer:"), "{head}");
    client.expect("4\r\nbody\r\n0\r\n\r\n").await;
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn a_response_whose_trailers_are_malformed_too_large_or_cut_is_never_whole() {
    let scene = Scene::listening_with(LISTEN, "trailer_bytes = \"200B\"", "").await;
    let mut tails: Vec<_> = MALFORMED.iter().map(|line| format!("0\r\n{line}\r\n\r\n")).collect();
    tails.push(format!("0\r\nX: {}\r\n\r\n", "x".repeat(300)));
    tails.push("0\r\nX-Sum: 1\r\n".to_owned());
    for tail in tails {
        let (mut client, mut origin, _) = asked(&scene, "TE: trailers\r\n").await;
        origin.send(format!("{UNCACHED}\r\n4\r\nbody\r\n")).await;
        client.head().await;
        client.expect("4\r\nbody\r\n").await;
        origin.send(&tail).await;
        drop(origin);
        match client.next().await {
            Next::Closed | Next::Reset => {}
            other => panic!("{tail:?}: {other:?}"),
        }
        let (mut client, stream, mut origin, _) = asked_h2(&scene, &Request::get("/page")).await;
        origin.send(format!("{UNCACHED}\r\n4\r\nbody\r\n")).await;
        let came =
            |judge: &testkit::h2::Judge| judge.exchange(stream).is_some_and(|e| e.body == b"body");
        assert!(client.until(came).await);
        origin.send(&tail).await;
        drop(origin);
        let outcome = client.outcome(stream).await;
        assert!(matches!(&outcome, RequestOutcome::Reset(..)), "{tail:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_request_whose_trailers_are_malformed_too_large_or_cut_is_never_whole() {
    let limits = "trailer_bytes = \"200B\"\nbody_buffer_bytes = 0";
    let scene = Scene::listening_with(LISTEN, limits, "").await;
    let mut tails: Vec<_> = MALFORMED.iter().map(|line| format!("0\r\n{line}\r\n\r\n")).collect();
    tails.push(format!("0\r\nX: {}\r\n\r\n", "x".repeat(300)));
    tails.push("0\r\nX-Sum: 1\r\n".to_owned());
    for tail in tails {
        let mut client = scene.client().await;
        client
            .send(
                "POST /form HTTP/1.1\r\nHost: larder.test\r\nTransfer-Encoding: chunked\r\n\r\n\
                 4\r\nbody\r\n",
            )
            .await;
        let mut origin = scene.origin().await;
        origin.head().await;
        origin.expect("4\r\nbody\r\n").await;
        client.send(&tail).await;
        client.finish().await;
        match origin.next().await {
            Next::Closed | Next::Reset => {}
            other => panic!("{tail:?}: {other:?}"),
        }
    }
    assert!(scene.limit_hits("trailer_bytes").await > 0, "counted");
}

#[tokio::test]
async fn malformed_trailers_of_an_http2_request_end_its_stream() {
    let scene = scene().await;
    let lines = MALFORMED.iter().filter_map(|line| line.to_owned().split_once(": "));
    let pseudo = [(":status", "200"), (":path", "/x"), ("X-Upper", "1")];
    for (name, value) in lines.chain(pseudo) {
        let name =
            if pseudo.contains(&(name, value)) { name.to_owned() } else { name.to_lowercase() };
        let mut client = client(&scene.daemon).await;
        let stream = client.ask(&Request::post("/form"), false).await.expect("sent");
        client.send_frame(&Frame::data(stream, b"body", false)).await.expect("sent");
        let block = FieldBlock::new().literal(&name, value);
        client.send_frame(&Frame::headers(stream, block.bytes(), true)).await.expect("sent");
        let outcome = client.outcome(stream).await;
        let refused = matches!(&outcome, RequestOutcome::Reset(..))
            || matches!(&outcome, RequestOutcome::Answered(answer) if answer.status == 400);
        assert!(refused, "{name}: {outcome:?}");
    }
}
