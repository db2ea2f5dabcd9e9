//! Rules of programs for the client's connection: its timeouts, its socket, when a 100 is sent.

use crate::support;

use support::folder::Folder;
use support::{PATIENCE, eventually, pattern, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::h2::{Client, Judge, Request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{ConnectionEnd, Reply};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::timeout;

/// A daemon whose limits end nothing within a test, with a listener on a unix socket, too.
struct Stage {
    folder: Folder,
    origin: ScriptedOrigin,
    daemon: Daemon,
}

const LIMITS: &str =
    "[limits]\nidle_timeout = \"10m\"\nsend_timeout = \"10m\"\nsend_min_rate = \"0\"\n";

impl Stage {
    /// Starts one with this `vcl_recv`; `dead` is a backend on which no server listens.
    async fn start(imports: &str, recv: &str) -> Self {
        let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
        let (host, port) = (origin.addr().ip(), origin.addr().port());
        let vcl = format!(
            "vcl 4.1;\n{imports}\n\
             backend default {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
             backend dead none;\n\
             sub vcl_recv {{\n    if (req.http.dead) {{ set req.backend_hint = dead; }}\n{recv}\n\
             return (pass);\n}}\n\
             sub vcl_synth {{ set resp.http.said = resp.reason; }}\n"
        );
        folder.file("all.vcl", vcl);
        let at = |file: &str| folder.path().join(file).display().to_string();
        let config = format!(
            "listen = [\"127.0.0.1:0 h2c\", \"unix:{}\"]\nvcl = \"{}\"\n\n[[site]]\nhost = \"*\"\n\n{LIMITS}",
            at("socket"),
            at("all.vcl")
        );
        let daemon = Daemon::start(&config).expect("it starts");
        Self { folder, origin, daemon }
    }

    async fn connect(&self) -> RawClient {
        RawClient::connect(self.daemon.addr()).await.expect("a connection")
    }

    /// The answer to a GET on `client`.
    async fn get(&self, client: &mut RawClient, target: &str, fields: &str) -> Reply {
        client.send(&asked("GET", target, fields), WriteSplit::Whole).await.expect("sent");
        whole(client.reply("GET").await, target)
    }

    async fn limit_hits(&self, limit: &str) -> u64 {
        let label = format!("limit=\"{limit}\"");
        self.daemon.metric("larder_limit_hits_total", &label).await.expect("metrics") as u64
    }
}

fn asked(method: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n").into_bytes()
}

/// The field `said` of a synthetic response.
fn said(reply: &Reply) -> String {
    reply.field("said").unwrap_or_default()
}

/// Reads until `part` has come; everything that has.
async fn until(stream: &mut (impl AsyncRead + Unpin), part: &str) -> String {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if text.contains(part) {
            return text;
        }
        let read = timeout(PATIENCE, stream.read_buf(&mut received)).await;
        assert!(read.expect("in time").expect("read") > 0, "the end instead of `{part}`: {text}");
    }
}

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

#[tokio::test]
async fn a_late_100_comes_when_the_body_is_asked_for() {
    let recv = "if (req.http.late) { std.late_100_continue(true); }";
    let stage = Stage::start("import std;", recv).await;
    stage.origin.on("/post", Script::ok("", "taken"));
    for late in ["", "Late: 1\r\n"] {
        let fields = format!("{late}Expect: 100-continue\r\nContent-Length: 5\r\n");
        let mut client = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
        client.write_all(&asked("POST", "/post", &fields)).await.expect("sent");
        assert_eq!(until(&mut client, CONTINUE).await, CONTINUE);
        client.write_all(b"hello").await.expect("sent");
        let answer = until(&mut client, "taken").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    for connection in stage.origin.recorded() {
        assert!(connection.bytes.windows(5).any(|part| part == b"hello"));
    }
    // A fetch to a backend that does not listen asks for no body.
    let fields = "Late: 1\r\nDead: 1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n";
    let mut client = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    client.write_all(&asked("POST", "/post", fields)).await.expect("sent");
    let answer = until(&mut client, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
}

#[tokio::test]
async fn a_late_100_comes_over_http2_too() {
    let recv = "if (req.http.late) { std.late_100_continue(true); }";
    let stage = Stage::start("import std;", recv).await;
    stage.origin.on("/post", Script::ok("", "taken"));
    let mut client = Client::connect(stage.daemon.addr()).await.expect("a connection");
    client.greet(&[]).await.expect("a greeting is taken");
    let expecting = Request::post("/post").field("expect", "100-continue");
    let late = expecting.clone().field("late", "1");
    for (request, status) in [
        (late.clone(), 200),
        (expecting.clone(), 200),
        // Before the program has looked at it, one that is not late has come.
        (expecting.field("dead", "1"), 503),
    ] {
        let stream = client.ask(&request, false).await.expect("sent");
        let is_invited = |judge: &Judge| {
            judge.exchange(stream).is_some_and(|exchange| !exchange.interim.is_empty())
        };
        assert!(client.until(is_invited).await, "no 100");
        client.upload(stream, b"hello").await.expect("sent");
        let answer = client.outcome(stream).await.answer("/post");
        assert_eq!((answer.status, answer.interim), (status, vec![(100, Vec::new())]));
    }
    // A fetch to a backend that does not listen asks for no body.
    let stream = client.ask(&late.field("dead", "1"), false).await.expect("sent");
    let answer = client.outcome(stream).await.answer("/post");
    assert_eq!((answer.status, answer.interim), (503, Vec::new()));
    let sent: Vec<u8> = stage.origin.recorded().into_iter().flat_map(|one| one.bytes).collect();
    let bodies = sent.windows(5).filter(|part| part == b"hello").count();
    assert_eq!((bodies, stage.origin.seen("/post")), (2, 2));
}

#[tokio::test]
async fn a_program_says_how_long_an_idle_connection_is_kept() {
    let recv = "if (req.http.idle) { set sess.timeout_idle = 0.1s; }\n    \
                return (synth(200, \"\" + sess.timeout_idle));";
    let stage = Stage::start("", recv).await;
    let (mut other, mut client) = (stage.connect().await, stage.connect().await);
    assert_eq!(said(&stage.get(&mut other, "/", "").await), "5.000");
    assert_eq!(said(&stage.get(&mut client, "/", "Idle: 1\r\n").await), "0.100");
    assert_eq!(client.rest().await.1, ConnectionEnd::Closed);
    stage.daemon.assert_limit_count("idle_timeout", 1).await;
    assert_eq!(said(&stage.get(&mut other, "/", "").await), "5.000", "it is another session");
}

#[tokio::test]
async fn a_program_says_how_long_a_client_may_take() {
    let recv = "if (req.url == \"/stall\") { set sess.idle_send_timeout = 0.2s; }\n    \
                if (req.url == \"/whole\") { set sess.send_timeout = 0.2s; \
                set sess.idle_send_timeout = 0s; }";
    let stage = Stage::start("", recv).await;
    let body = pattern(32 << 20);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    stage.origin.otherwise(Script::respond([head.into_bytes(), body].concat()));
    for (target, limit) in [("/stall", "send_timeout"), ("/whole", "response_time")] {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("set");
        let mut client = socket.connect(stage.daemon.addr()).await.expect("a connection");
        client.write_all(&asked("GET", target, "")).await.expect("sent");
        eventually(limit, async || stage.limit_hits(limit).await == 1).await;
    }
}

#[tokio::test]
async fn a_response_that_drips_ends_when_its_time_is_over() {
    let recv = "set sess.send_timeout = 0.5s; return (pass);";
    let stage = Stage::start("", recv).await;
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
    stage.origin.otherwise(Script::respond(head).trickle("x".repeat(100), 100));
    let mut client = stage.connect().await;
    client.send(&asked("GET", "/", ""), WriteSplit::Whole).await.expect("sent");
    let (received, end) = client.rest().await;
    assert!(
        end != ConnectionEnd::Open && !received.ends_with(&[b'x'; 100]),
        "{end:?}: {received:?}"
    );
    stage.daemon.assert_limit_count("response_time", 1).await;
}

#[tokio::test]
async fn a_program_knows_the_socket() {
    let recv = "set req.http.said = tcp.congestion_algorithm(\"reno\") + \"/\" \
                + tcp.congestion_algorithm(\"nope\") + \"/\" + unix.uid() + \"/\" \
                + (tcp.get_estimated_rtt() >= 0.0) + \"/\" + local.socket;\n    \
                std.set_ip_tos(8);\n    tcp.dump_info();\n    \
                return (synth(200, req.http.said));";
    let stage = Stage::start("import std; import tcp; import unix;", recv).await;
    let mut client = stage.connect().await;
    for _ in 0..2 {
        assert_eq!(said(&stage.get(&mut client, "/", "").await), "0/-1/-1/true/a0");
    }
    let mut client =
        UnixStream::connect(stage.folder.path().join("socket")).await.expect("a connection");
    client.write_all(&asked("GET", "/", "")).await.expect("sent");
    let own = format!("HTTP/1.1 200 -1/-1/{}/false/a1\r\n", rustix::process::getuid().as_raw());
    until(&mut client, &own).await;
}

#[tokio::test]
async fn a_paced_response_comes_whole_and_its_connection_ends_with_it() {
    let stage = Stage::start("import tcp;", "tcp.set_socket_pace(400);").await;
    let body = pattern(300_000);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    stage.origin.on("/big", Script::respond([head.into_bytes(), body.clone()].concat()));
    let mut client = stage.connect().await;
    let reply = stage.get(&mut client, "/big", "Connection: close\r\n").await;
    assert!(reply.body == body);
    assert_eq!(client.rest().await, (Vec::new(), ConnectionEnd::Closed));
}
