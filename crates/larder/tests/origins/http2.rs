//! Tests of `http_version`: HTTP/2 towards nginx, in the clear and by ALPN, and gRPC's failures.

use std::net::SocketAddr;

use crate::support;

use support::folder::Folder;
use support::nginx::{self, Nginx};
use support::tls::{Authority, Kind};
use support::{is_hit, pattern, whole};
use testkit::client::{RawClient, WriteSplit, get, request};
use testkit::larder::Daemon;
use testkit::reply::Reply;

/// Bytes of the file that nginx serves: more than the windows of a stream and of a connection.
const FILE_BYTES: usize = 3 << 20;

/// nginx's answers: a file, what it was asked, and a page by an application over FastCGI's absence.
fn server(folder: &Folder) -> String {
    std::fs::write(folder.path().join("file"), pattern(FILE_BYTES)).expect("written");
    format!(
        "root {};\nadd_header X-Version $server_protocol always;\n\
         add_header X-Scheme $scheme always;\nadd_header X-Connection $connection always;\n\
         location /file {{ add_header Cache-Control max-age=60; \
         add_header X-Version $server_protocol; }}\n\
         location /said {{ return 200 \"$request_method $host $http_te $content_length\"; }}\n\
         location /gone {{ return 404; }}\n",
        folder.path().display()
    )
}

/// Larder before one server at `url`, spoken to in `version`.
fn daemon(url: &str, version: &str, more: &str) -> Daemon {
    let file = format!(
        r#"
listen = "127.0.0.1:0"
workers = 1
[[origin]]
name = "app"
servers = ["{url}"]
http_version = "{version}"
{more}
[[site]]
host = "*"
origin = "app"
"#
    );
    Daemon::start(&file).expect("larder starts")
}

async fn ask(daemon: &Daemon, target: &str) -> Reply {
    whole(get(daemon.addr(), target).await.expect("a connection"), target)
}

async fn send(daemon: &Daemon, bytes: &[u8]) -> Reply {
    let client = RawClient::connect(daemon.addr()).await.expect("a connection");
    whole(client.exchange(bytes).await, "a request")
}

fn text<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let field = reply.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    field.map_or("", |(_, value)| std::str::from_utf8(value).expect("a text"))
}

#[tokio::test]
async fn a_server_is_asked_over_one_connection_in_the_clear() {
    if !nginx::is_here() {
        return;
    }
    let folder = Folder::new();
    let nginx = Nginx::start(folder.path(), "", ("http2", &server(&folder))).await;
    let daemon = daemon(&format!("http://{}", nginx.address), "2", "");
    let first = ask(&daemon, "/file").await;
    assert_eq!((first.status, text(&first, "X-Version")), (200, "HTTP/2.0"));
    assert!(first.body == pattern(FILE_BYTES));
    let hit = ask(&daemon, "/file").await;
    assert!(is_hit(&hit) && hit.body == first.body);
    let mut connections = Vec::new();
    for _ in 0..5 {
        let missing = ask(&daemon, "/gone").await;
        assert_eq!((missing.status, text(&missing, "X-Version")), (404, "HTTP/2.0"));
        connections.push(text(&missing, "X-Connection").to_owned());
    }
    connections.dedup();
    assert_eq!(connections.len(), 1, "{connections:?}");
    daemon.assert_metric("larder_origin_connects_total", 1).await;
    // A body in one piece, and one of unknown length; HEAD has a length and no body.
    let body = "x".repeat(70_000);
    let post = request("POST", "/said", &format!("Content-Length: {}\r\n", body.len()));
    let said = send(&daemon, &[&post[..], body.as_bytes()].concat()).await;
    assert_eq!(said.body, b"POST larder.test  70000");
    let post = request("POST", "/said", "TE: trailers\r\nTransfer-Encoding: chunked\r\n");
    let said = send(&daemon, &[&post[..], b"3\r\nabc\r\n0\r\n\r\n"].concat()).await;
    assert!(said.body.starts_with(b"POST larder.test"), "{said:?}");
    let mut client = RawClient::connect(daemon.addr()).await.expect("a connection");
    client.send(&request("HEAD", "/said", ""), WriteSplit::Whole).await.expect("sent");
    let head = whole(client.reply("HEAD").await, "/said");
    assert_eq!((head.status, head.body.len()), (200, 0));
    daemon.assert_metric("larder_origin_connects_total", 1).await;
}

#[tokio::test]
async fn over_tls_a_server_chooses_the_version() {
    if !nginx::is_here() {
        return;
    }
    let authority = Authority::new();
    authority.sign("app", &["app.test"], Kind::Elliptic);
    let pair = format!(
        "ssl_certificate {};\nssl_certificate_key {};\n",
        authority.path("app.crt"),
        authority.path("app.key")
    );
    let tls = format!("tls = {{ ca = \"{}\", sni = \"app.test\" }}", authority.path("ca.pem"));
    for (how, version, expected) in [
        ("ssl http2", "2", Some("HTTP/2.0")),
        ("ssl http2", "auto", Some("HTTP/2.0")),
        ("ssl http2", "1.1", Some("HTTP/1.1")),
        ("ssl", "auto", Some("HTTP/1.1")),
        ("ssl", "2", None),
    ] {
        let folder = Folder::new();
        let lines = format!("{pair}{}", server(&folder));
        let nginx = Nginx::start(folder.path(), "", (how, &lines)).await;
        let daemon = daemon(&format!("https://{}", nginx.address), version, &tls);
        for _ in 0..3 {
            let reply = ask(&daemon, "/gone").await;
            match expected {
                Some(expected) => {
                    assert_eq!(text(&reply, "X-Version"), expected, "{how}, {version}");
                    assert_eq!(text(&reply, "X-Scheme"), "https");
                }
                None => assert_eq!(reply.status, 502, "{how}, {version}"),
            }
        }
        if expected.is_some() {
            daemon.assert_metric("larder_origin_connects_total", 1).await;
        } else {
            daemon.assert_logged("no version of HTTP that was asked for").await;
        }
    }
}

#[tokio::test]
async fn a_probe_speaks_the_version_of_the_requests() {
    if !nginx::is_here() {
        return;
    }
    let folder = Folder::new();
    let lines = "location /up { if ($server_protocol != HTTP/2.0) { return 500; } return 200; }\n\
                 location / { return 204; }";
    let log = folder.path().join("access.log");
    let http = format!("access_log {};", log.display());
    let nginx = Nginx::start(folder.path(), &http, ("http2", lines)).await;
    let url = format!("http://{}", nginx.address);
    let probe = "probe = { path = \"/up\", interval = \"100ms\", window = 1, threshold = 1 }";
    let healthy = daemon(&url, "2", probe);
    support::eventually("a good probe", async || {
        let lines = std::fs::read_to_string(&log).unwrap_or_default();
        lines.contains("GET /up HTTP/2.0\" 200")
    })
    .await;
    assert_eq!(ask(&healthy, "/").await.status, 204);
    // nginx answers a health check like any other request: it serves no gRPC.
    let probe = "probe = { grpc = \"shop.Cart\", interval = \"100ms\", window = 1, threshold = 1 }";
    let sick = daemon(&url, "2", probe);
    support::eventually("a sick server", async || ask(&sick, "/").await.status == 503).await;
}

#[tokio::test]
async fn a_failed_grpc_call_has_a_status_of_its_own() {
    // Nothing listens there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody: SocketAddr = listener.local_addr().expect("an address");
    drop(listener);
    let daemon = daemon(&format!("http://{nobody}"), "2", "");
    let call = request(
        "POST",
        "/shop.Cart/Add",
        "Content-Type: application/grpc+proto\r\nTE: trailers\r\nContent-Length: 5\r\n",
    );
    let failed = send(&daemon, &[&call[..], &[0; 5]].concat()).await;
    assert_eq!((failed.status, failed.body.len()), (200, 0));
    assert_eq!(text(&failed, "grpc-status"), "14");
    assert!(text(&failed, "grpc-message").contains("cannot be reached"), "{failed:?}");
    assert_eq!(text(&failed, "Content-Type"), "application/grpc");
    assert_eq!(text(&failed, "Cache-Control"), "no-store");
    // Others may share the response to a GET, whatever it says about itself.
    let typed = "Content-Type: application/grpc\r\ngrpc-timeout: 1n\r\n";
    let get = send(&daemon, &request("GET", "/shop.Cart/Add", typed)).await;
    assert_eq!((get.status, text(&get, "grpc-status")), (502, ""));
    let plain = send(&daemon, &request("POST", "/", "Content-Length: 0\r\n")).await;
    assert_eq!((plain.status, text(&plain, "grpc-status")), (502, ""));
}

#[tokio::test]
async fn a_version_that_a_server_cannot_have_is_refused() {
    for (origin, said) in [
        (
            "servers = [\"fastcgi://127.0.0.1:9000\"]\nroot = \"/srv\"\nhttp_version = \"2\"",
            "a FastCGI server has no version of HTTP",
        ),
        (
            "servers = [\"http://127.0.0.1:1\"]\nprobe = { grpc = true }",
            "a gRPC health check needs HTTP/2",
        ),
        ("servers = [\"http://127.0.0.1:1\"]\nhttp_version = \"3\"", "http_version"),
    ] {
        let file = format!(
            "listen = \"127.0.0.1:0\"\n[[origin]]\nname = \"app\"\n{origin}\n\
             [[site]]\nhost = \"*\"\norigin = \"app\"\n"
        );
        let error = Daemon::start(&file).expect_err("it does not start").to_string();
        assert!(error.contains(said), "{error}");
    }
}
