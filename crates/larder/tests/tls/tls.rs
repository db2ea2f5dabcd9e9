//! Tests of TLS towards clients: certificates, records, closing, and failed handshakes.

use crate::support;

use std::process::{Command, Stdio};

use support::tls::{Authority, Kind, Served, certificate, get};
use support::{PATIENCE, eventually, is_hit, pattern, whole};
use testkit::client::RawClient;
use testkit::origin::Script;
use testkit::reference_reader::read_requests;
use testkit::reply::ConnectionEnd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TEXT: &str = "0123456789abcdefghij";

async fn one_site(authority: &Authority, more: &str) -> Served {
    authority.sign("site", &["larder.test", "*.larder.test"], Kind::Elliptic);
    let tls = authority.pair("site");
    let site = format!("[[site]]\nhost = \"*\"\norigin = \"app\"\ntls = {{ {tls} }}\n{more}");
    Served::start(&site).await
}

#[tokio::test]
async fn both_versions_of_tls_serve_misses_and_hits() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    served.origin.on("/page", Script::cacheable(TEXT));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = authority.client_of(&[version], None);
        let mut connection = client.connect(served.addr(), "larder.test").await;
        assert_eq!(connection.stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        for _ in 0..3 {
            assert_eq!(connection.get("larder.test", "/page").await.text(), TEXT);
        }
        assert!(is_hit(&connection.get("larder.test", "/page").await));
    }
    assert_eq!(served.origin.seen("/page"), 1);
    served.daemon.assert_metric("larder_tls_handshakes_total", 2).await;
    let requests = read_requests(&served.origin.recorded()[0].bytes).expect("requests");
    assert_eq!(requests[0].values("x-forwarded-proto"), [b"https"]);
}

#[tokio::test]
async fn http_and_https_are_kept_apart_in_the_store() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    served.origin.on("/page", Script::cacheable(TEXT));
    authority.client().get(served.addr(), "larder.test", "/page").await;
    let mut plain = RawClient::connect(served.plain()).await.expect("a connection");
    let reply = whole(plain.get("/page").await.expect("sent"), "plain");
    assert!(!is_hit(&reply));
    assert_eq!(served.origin.seen("/page"), 2);
}

#[tokio::test]
async fn bodies_of_any_size_arrive_whole_and_in_order_when_pipelined() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    let sizes = [0, 1, 2_000, 16_384, 16_385, 65_536, 300_000, 5_000_000];
    for size in sizes {
        let body = String::from_utf8(pattern(size)).expect("letters");
        served.origin.on(&format!("/{size}"), Script::cacheable(&body));
    }
    let mut connection = authority.client().connect(served.addr(), "larder.test").await;
    // Once from the origin, then from the store, all requests sent before the first answer is read.
    for _ in 0..2 {
        let requests: Vec<u8> =
            sizes.iter().flat_map(|size| get("larder.test", &format!("/{size}"))).collect();
        connection.send(&requests).await.expect("sent");
        for size in sizes {
            let reply = whole(connection.reply("GET").await, &size.to_string());
            assert!(reply.body == pattern(size), "{size}");
        }
    }
}

#[tokio::test]
async fn a_request_in_records_of_one_byte_is_a_request() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    served.origin.on("/page", Script::cacheable(TEXT));
    let mut connection = authority.client().connect(served.addr(), "larder.test").await;
    for byte in get("larder.test", "/page") {
        connection.send(&[byte]).await.expect("sent");
    }
    assert_eq!(whole(connection.reply("GET").await, "/page").text(), TEXT);
}

#[tokio::test]
async fn a_large_upload_reaches_the_origin_whole() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    served.origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "done"));
    let mut connection = authority.client().connect(served.addr(), "larder.test").await;
    let body = pattern(3 << 20);
    let head =
        format!("POST /up HTTP/1.1\r\nHost: larder.test\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.send(head.as_bytes()).await.expect("sent");
    connection.send(&body).await.expect("sent");
    assert_eq!(whole(connection.reply("POST").await, "/up").text(), "done");
    let requests = read_requests(&served.origin.recorded()[0].bytes).expect("requests");
    assert!(requests[0].body == body);
}

#[tokio::test]
async fn an_upload_cut_off_is_no_request() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    served.origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "done"));
    let mut connection = authority.client().connect(served.addr(), "larder.test").await;
    let head = "POST /up HTTP/1.1\r\nHost: larder.test\r\nContent-Length: 100\r\n\r\nhalf";
    connection.send(head.as_bytes()).await.expect("sent");
    // The TCP connection ends without the session's end.
    let (tcp, _) = connection.stream.into_inner();
    drop(tcp);
    eventually("the daemon notices", || async {
        served.metric("larder_connections_open").await == 0
    })
    .await;
    let recorded = served.origin.recorded();
    assert!(
        recorded.iter().all(|r| !matches!(read_requests(&r.bytes), Ok(all) if !all.is_empty()))
    );
}

#[tokio::test]
async fn the_end_is_announced_and_a_slow_reader_gets_everything() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    let body = String::from_utf8(pattern(4 << 20)).expect("letters");
    served.origin.on("/large", Script::cacheable(&body));
    for _ in 0..2 {
        let mut connection = authority.client().connect(served.addr(), "larder.test").await;
        let ask = "GET /large HTTP/1.1\r\nHost: larder.test\r\nConnection: close\r\n\r\n";
        connection.send(ask.as_bytes()).await.expect("sent");
        support::pause(300).await;
        let mut all = Vec::new();
        // Without a close_notify this is an error.
        connection.stream.read_to_end(&mut all).await.expect("an announced end");
        assert!(all.ends_with(body.as_bytes()));
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_end_in_order() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1000\r\n\r\nhalf";
    served.origin.on("/cut", Script::respond(head).delay_ms(100).close());
    let mut connection = authority.client().connect(served.addr(), "larder.test").await;
    connection.send(&get("larder.test", "/cut")).await.expect("sent");
    let mut all = Vec::new();
    connection.stream.read_to_end(&mut all).await.expect_err("no orderly end");
}

#[tokio::test]
async fn names_choose_their_certificates() {
    let authority = Authority::new();
    authority.sign("one", &["one.test"], Kind::Elliptic);
    authority.sign("wild", &["*.wild.test"], Kind::Elliptic);
    let (one, wild) = (authority.pair("one"), authority.pair("wild"));
    let served = Served::start(&format!(
        "[[site]]\nhost = \"one.test\"\norigin = \"app\"\ntls = {{ {one} }}\n\
         [[site]]\nhost = \"*.wild.test\"\norigin = \"app\"\ntls = {{ {wild} }}\n"
    ))
    .await;
    let client = authority.client();
    let file = |name: &str| certificate(&authority.folder.join(name));
    assert_eq!(client.connect(served.addr(), "one.test").await.shown(), file("one.crt"));
    assert_eq!(client.connect(served.addr(), "a.wild.test").await.shown(), file("wild.crt"));
    // Without a default, an unknown name is rejected.
    for name in ["stranger.test", "127.0.0.1"] {
        let refused = client.try_connect(served.addr(), name).await.err().expect("no handshake");
        assert!(refused.to_string().contains("UnrecognisedName"), "{refused}");
    }
    served.daemon.assert_metric("larder_tls_handshake_failures_total", 2).await;
}

#[tokio::test]
async fn strangers_and_sites_without_their_own_get_the_default_certificate() {
    let authority = Authority::new();
    authority.sign("default", &["default.test", "plain.test", "127.0.0.1"], Kind::Elliptic);
    let served = Served::start(&format!(
        "[tls]\n{}\n[[site]]\nhost = [\"plain.test\", \"127.0.0.1\"]\norigin = \"app\"\n",
        authority.pair("default").replace(", key", "\nkey"),
    ))
    .await;
    served.origin.on("/page", Script::cacheable(TEXT));
    let client = authority.client();
    let shown = certificate(&authority.folder.join("default.crt"));
    for name in ["default.test", "plain.test", "127.0.0.1"] {
        assert_eq!(client.connect(served.addr(), name).await.shown(), shown, "{name}");
    }
    for name in ["plain.test", "127.0.0.1"] {
        assert_eq!(client.get(served.addr(), name, "/page").await.text(), TEXT);
    }
}

#[tokio::test]
async fn a_site_for_every_host_serves_clients_that_name_none() {
    let authority = Authority::new();
    authority.sign("site", &["127.0.0.1"], Kind::Elliptic);
    let tls = authority.pair("site");
    let site = format!("[[site]]\nhost = \"*\"\norigin = \"app\"\ntls = {{ {tls} }}\n");
    let served = Served::start(&site).await;
    served.origin.on("/page", Script::cacheable(TEXT));
    let reply = authority.client().get(served.addr(), "127.0.0.1", "/page").await;
    assert_eq!(reply.text(), TEXT);
}

#[tokio::test]
async fn an_elliptic_certificate_goes_before_rsa_to_those_who_can_check_it() {
    let authority = Authority::new();
    authority.sign("rsa", &["larder.test"], Kind::Rsa);
    authority.sign("ec", &["larder.test"], Kind::Elliptic);
    let path = |file: &str| authority.path(file);
    let served = Served::start(&format!(
        "[[site]]\nhost = \"larder.test\"\norigin = \"app\"\n\
         tls = {{ cert = [\"{}\", \"{}\"], key = [\"{}\", \"{}\"] }}\n",
        path("rsa.crt"),
        path("ec.crt"),
        path("rsa.key"),
        path("ec.key"),
    ))
    .await;
    let shown = authority.client().connect(served.addr(), "larder.test").await.shown();
    assert_eq!(shown, certificate(&authority.folder.join("ec.crt")));
    // A client of another make, which can only verify RSA.
    let said = s_client(&served, &["-sigalgs", "RSA-PSS+SHA256", "-tls1_3"]).await;
    assert!(said.contains("rsaEncryption") || said.contains("RSA-PSS"), "{said}");
    let said = s_client(&served, &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]).await;
    assert!(said.contains("Cipher is ECDHE-RSA-AES128-GCM-SHA256"), "{said}");
}

/// Output of OpenSSL's client about a handshake.
async fn s_client(served: &Served, arguments: &[&str]) -> String {
    let mut command = Command::new("openssl");
    let addr = served.addr().to_string();
    command.args(["s_client", "-connect", &addr, "-servername", "larder.test"]).args(arguments);
    let run = move || command.stdin(Stdio::null()).output().expect("openssl is installed");
    let output = tokio::task::spawn_blocking(run).await.expect("it ran");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[tokio::test]
async fn old_protocols_and_weak_suites_are_refused() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    for arguments in [
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"][..],
        &["-tls1_2", "-cipher", "AES128-SHA:AES256-SHA:ECDHE-ECDSA-AES128-SHA"],
        &["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
    ] {
        let said = s_client(&served, arguments).await;
        assert!(said.contains("Cipher is (NONE)"), "{arguments:?}: {said}");
        // The client's identity does not matter here.
        let is_old = arguments.contains(&"-tls1_1");
        assert!(is_old || said.contains("alert number 40"), "{arguments:?}: {said}");
    }
    let said = s_client(&served, &["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"]);
    assert!(said.await.contains("Cipher is TLS_CHACHA20_POLY1305_SHA256"));
}

#[tokio::test]
async fn plain_http_on_a_tls_port_gets_an_error() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    let mut raw = RawClient::connect(served.addr()).await.expect("a connection").patience(PATIENCE);
    let reply = whole(raw.get("/").await.expect("sent"), "plain HTTP");
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("The plain HTTP request was sent to an HTTPS port."));
    assert_eq!(raw.rest().await.1, ConnectionEnd::Closed);
}

#[tokio::test]
async fn half_handshakes_end_in_time_and_never_crowd_out_whole_ones() {
    let authority = Authority::new();
    let limits = "[limits]\nhandshake_timeout = \"1s\"\nhandshakes = 4\n";
    let served = one_site(&authority, limits).await;
    served.origin.on("/page", Script::cacheable(TEXT));
    let mut halves = Vec::new();
    for begin in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00", b"\x16\x03\x01\x02\x00\x01\x00"] {
        for _ in 0..10 {
            let mut half = TcpStream::connect(served.addr()).await.expect("a connection");
            half.write_all(begin).await.expect("sent");
            halves.push(half);
        }
    }
    // 40 unfinished handshakes on two cores that permit 4 each: a complete one still succeeds.
    let reply = authority.client().get(served.addr(), "larder.test", "/page").await;
    assert_eq!(reply.text(), TEXT);
    for half in &mut halves {
        let mut rest = Vec::new();
        _ = timeout(PATIENCE, half.read_to_end(&mut rest)).await.expect("closed in time");
    }
    let hits = |limit: &str| {
        let label = format!("limit=\"{limit}\"");
        let daemon = &served.daemon;
        async move { daemon.metric("larder_limit_hits_total", &label).await.expect("metrics") as u64 }
    };
    assert!(hits("handshakes").await >= 30);
    assert!(hits("handshake_timeout").await >= 1);
}

#[tokio::test]
async fn garbage_in_a_handshake_ends_the_connection() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    for garbage in [
        &b"\x16\x03\x01\x00\x05\xff\x00\x00\x01\x00"[..],
        b"\x17\x03\x03\x00\x01\x00",
        b"\x16\x03\x01\xff\xff",
    ] {
        let mut tcp = TcpStream::connect(served.addr()).await.expect("a connection");
        tcp.write_all(garbage).await.expect("sent");
        let mut rest = Vec::new();
        _ = timeout(PATIENCE, tcp.read_to_end(&mut rest)).await.expect("closed in time");
        // Nothing, or an alert; bytes that are no handshake message get none.
        assert!(rest.is_empty() || rest[0] == 21, "{garbage:?}: {rest:?}");
    }
    served.origin.on("/page", Script::cacheable(TEXT));
    let reply = authority.client().get(served.addr(), "larder.test", "/page").await;
    assert_eq!(reply.text(), TEXT);
    served.daemon.assert_metric("larder_tls_handshake_failures_total", 3).await;
}

#[tokio::test]
async fn plain_requests_are_redirected_and_https_is_pinned_where_a_site_says_so() {
    let authority = Authority::new();
    let served = one_site(&authority, "redirect_https = true\nhsts = true\n").await;
    served.origin.on("/page?a=1", Script::cacheable(TEXT));
    served
        .origin
        .on("/.well-known/acme-challenge/x", Script::ok("Cache-Control: no-store\r\n", "y"));
    let ask = |target: &'static str| {
        let addr = served.plain();
        async move {
            let mut raw = RawClient::connect(addr).await.expect("a connection");
            whole(raw.get(target).await.expect("sent"), target)
        }
    };
    let reply = ask("/page?a=1").await;
    let location = reply.field("location");
    let location = location.as_deref();
    assert_eq!((reply.status, location), (308, Some("https://larder.test/page?a=1")));
    assert_eq!(reply.field("strict-transport-security"), None);
    assert_eq!(ask("/.well-known/acme-challenge/x").await.text(), "y");
    // Only a token's path is exempt, not a path that is spelled to look like one.
    for path in [
        "/.well-known/acme-challenge/../page",
        "/.well-known/acme-challenge/%2e%2e/page",
        "/.well-known/acme-challenge/x/y",
    ] {
        assert_eq!(ask(path).await.status, 308, "{path}");
    }
    let mut connection = authority.client().connect(served.addr(), "larder.test").await;
    for _ in 0..2 {
        let reply = connection.get("larder.test", "/page?a=1").await;
        assert_eq!(reply.field("strict-transport-security").as_deref(), Some("max-age=63072000"));
    }
}

#[tokio::test]
async fn early_hints_leave_at_once() {
    let authority = Authority::new();
    let served = one_site(&authority, "").await;
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";
    served.origin.on("/hints", Script::respond(hints).delay_ms(2_000).send(last));
    let mut connection = authority.client().connect(served.addr(), "larder.test").await;
    connection.send(&get("larder.test", "/hints")).await.expect("sent");
    let mut first = Vec::new();
    while !first.ends_with(b"\r\n\r\n") {
        let read = timeout(PATIENCE, connection.stream.read_buf(&mut first)).await;
        assert!(matches!(read, Ok(Ok(1..))), "the connection stays open");
    }
    let first = String::from_utf8_lossy(&first);
    assert!(first.starts_with("HTTP/1.1 103"), "{first}");
    assert!(!first.contains("200 OK"), "they came together: {first}");
    assert_eq!(whole(connection.reply("GET").await, "/hints").text(), "ok");
}
