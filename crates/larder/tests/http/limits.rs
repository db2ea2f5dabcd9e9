//! Tests of limits of client connections: each takes effect, is reported where possible, and is
//! counted.
//!
//! They are checked once a second, so each of these tests takes a few seconds.

use crate::support;

use std::time::Duration;

use support::{PATIENCE, Setup, Stage, eventually, pattern, pause, raise_descriptors, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{ConnectionEnd, ReplyOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

async fn with_limits(limits: &str) -> Stage {
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage
}

#[tokio::test]
async fn however_many_clients_wait_operators_have_descriptors_left() {
    raise_descriptors();
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.on("/page", Script::cacheable("page"));
    origin.on("/slow", Script::default().hang());
    let binary = testkit::larder::binary().expect("a binary");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$0\" \"$@\""]).arg(binary);
    let config = Setup::default().file(&origin);
    let daemon = Daemon::start_command(command, &config, &[]).expect("it starts");

    // Each takes two: its own, and the origin's. There is room for 153, and for 192 in all.
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut client = TcpStream::connect(daemon.addr()).await.expect("a connection");
        // A refused client may be gone before its request.
        _ = client.write_all(&request("GET", "/slow", "Cookie: id=1\r\n")).await;
        clients.push(client);
    }
    let reserve = "limit=\"descriptors_reserve\"";
    let refused = "larder_limit_hits_total";
    eventually("the end of descriptors", async || {
        let metrics = daemon.metrics().await.expect("operators are answered");
        metrics.lines().any(|line| {
            line.starts_with(refused) && line.contains(reserve) && !line.ends_with(" 0")
        })
    })
    .await;
    let open = || std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map(Iterator::count);
    assert!(open().expect("descriptors") >= 180, "they were nearly all taken");
    // Many operators at once.
    let asked: Vec<_> = (0..20).map(|_| daemon.ask_admin("GET", "/stats")).collect();
    for reply in futures_util::future::join_all(asked).await {
        assert_eq!(reply.expect("an answer").status, 200);
    }

    drop(clients);
    eventually("room again", async || {
        let Ok(mut client) = RawClient::connect(daemon.addr()).await else { return false };
        let outcome = client.get("/page").await;
        matches!(outcome, Ok(ReplyOutcome::Complete(reply)) if reply.status == 200)
    })
    .await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once_and_room_comes_back() {
    let stage = with_limits("connections = 3").await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut raw = stage.connect().await;
        assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").status, 200);
        held.push(raw);
    }
    let mut fourth = stage.connect().await;
    let (received, end) = fourth.rest().await;
    assert_eq!(received, [0; 0]);
    assert_ne!(end, ConnectionEnd::Open);
    stage.daemon.assert_limit_count("connections", 1).await;
    stage.daemon.assert_metric("larder_connections_refused_total", 1).await;
    for raw in &mut held {
        assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").status, 200);
    }
    drop(held);
    eventually("room", async || {
        let mut raw = stage.connect().await;
        // Refused while the others are still being removed.
        match raw.get("/page").await {
            Ok(seen) => seen.complete().is_some(),
            Err(_) => false,
        }
    })
    .await;
}

/// Limits that permit some seventy connections, and slow uploads.
const FEW: &str = "connection_memory = 1\nbody_timeout = \"10m\"\nbody_rate_leeway = \"10m\"\n\
                   [memory]\nsize = \"64MiB\"";

/// A daemon of one core with little memory for connections, and the number that it permits.
async fn with_room_for_few() -> (Stage, usize) {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.on("/page", Script::cacheable("page"));
    let file = Setup { limits: FEW, ..Setup::default() }.file(&origin);
    let file = file.replacen("workers = 2", "workers = 1", 1);
    let stage = Stage { origin, daemon: Daemon::start(&file).expect("larder starts") };
    stage.origin.on("/upload", Script::ok("", "taken"));
    let room = stage.metric("larder_memory_held_max_bytes").await / 100 / (4 * 1024);
    (stage, room as usize)
}

/// A connection in the middle of an upload.
async fn uploading(stage: &Stage) -> RawClient {
    let mut stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    let begun = request("POST", "/upload", "Expect: 100-continue\r\nContent-Length: 4\r\n");
    stream.write_all(&begun).await.expect("sent");
    let mut interim = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut interim).await.expect("it is being dealt with");
    RawClient::over(stream).patience(PATIENCE)
}

/// Asserts that the upload of a connection completes.
async fn finishes(mut raw: RawClient) {
    raw.send(b"body", WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(raw.reply("POST").await, "/upload").status, 200);
}

#[tokio::test]
async fn connections_that_wait_for_a_request_make_room_for_new_ones() {
    let (stage, room) = with_room_for_few().await;
    let busy = uploading(&stage).await;
    let mut idle = Vec::new();
    for _ in 0..3 * room {
        let mut raw = stage.connect().await;
        assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").status, 200);
        idle.push(raw);
    }
    assert_eq!(idle.remove(0).rest().await, (Vec::new(), ConnectionEnd::Closed));
    assert!(stage.limit_hits("connection_memory").await > 2 * room as u64);
    assert_eq!(stage.metric("larder_connections_refused_total").await, 0);
    finishes(busy).await;
    drop(idle);
    eventually("nothing held", async || {
        stage.metric("larder_memory_connections_bytes").await == 0
            && stage.metric("larder_memory_held_bytes").await == 0
    })
    .await;
}

#[tokio::test]
async fn where_all_connections_are_busy_new_ones_are_refused_and_those_stay() {
    let (stage, room) = with_room_for_few().await;
    let mut busy = Vec::new();
    for _ in 0..room {
        busy.push(uploading(&stage).await);
    }
    let (received, end) = stage.connect().await.rest().await;
    assert_eq!(received, [0; 0]);
    assert_ne!(end, ConnectionEnd::Open);
    stage.daemon.assert_limit_count("connection_memory", 1).await;
    stage.daemon.assert_metric("larder_connections_refused_total", 1).await;
    for raw in busy {
        finishes(raw).await;
    }
    eventually("room", async || {
        let mut raw = stage.connect().await;
        matches!(raw.get("/page").await, Ok(ReplyOutcome::Complete(reply)) if reply.status == 200)
    })
    .await;
}

#[tokio::test]
async fn loopback_has_no_limit_per_address() {
    let stage = with_limits("connections_per_ip = 1").await;
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut raw = stage.connect().await;
        assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").status, 200);
        held.push(raw);
    }
    assert_eq!(stage.limit_hits("connections_per_ip").await, 0);
}

#[tokio::test]
async fn a_head_that_takes_too_long_is_408() {
    let stage = with_limits("header_timeout = \"1s\"").await;
    let mut raw = stage.connect().await;
    raw.send(b"GET /page HTTP/1.1\r\nHost: lar", WriteSplit::Whole).await.expect("sent");
    let reply = whole(raw.reply("GET").await, "half a head");
    assert_eq!((reply.status, reply.closes()), (408, true));
    assert!(reply.text().contains("header_timeout"), "{}", reply.text());
    assert_eq!(raw.rest().await.1, ConnectionEnd::Closed);
    stage.daemon.assert_limit_count("header_timeout", 1).await;
    assert_eq!(stage.get("/page").await.status, 200);
}

#[tokio::test]
async fn a_head_in_small_pieces_gains_no_time() {
    let stage = with_limits("header_timeout = \"1s\"").await;
    let mut stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    stream.write_all(b"GET /page HTTP/1.1\r\nHost: larder.test\r\n").await.expect("sent");
    let (mut reader, mut writer) = stream.split();
    let trickle = async {
        // Ends with the connection.
        while writer.write_all(b"X: y\r\n").await.is_ok() {
            support::pause(100).await;
        }
    };
    let mut answer = [0; 12];
    let read = async {
        let read = tokio::time::timeout(PATIENCE, reader.read_exact(&mut answer)).await;
        read.expect("in time").expect("an answer");
    };
    tokio::select! {
        () = read => {}
        () = async { trickle.await; std::future::pending::<()>().await } => {}
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn an_upload_that_stalls_is_408() {
    let stage = with_limits("body_timeout = \"1s\"").await;
    stage.origin.on("/form", Script::ok("", "accepted"));
    let mut raw = stage.connect().await;
    raw.send(&request("POST", "/form", "Content-Length: 100\r\n"), WriteSplit::Whole)
        .await
        .expect("sent");
    raw.send(b"some of it", WriteSplit::Whole).await.expect("sent");
    let reply = whole(raw.reply("POST").await, "half a body");
    assert_eq!((reply.status, reply.closes()), (408, true));
    assert!(reply.text().contains("body_timeout"), "{}", reply.text());
    stage.daemon.assert_limit_count("body_timeout", 1).await;
    let complete = stage.origin.recorded().iter().any(|r| r.bytes.ends_with(b"some of it\r\n"));
    assert!(!complete);
    assert_eq!(stage.get("/page").await.status, 200);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    for control in ["max-age=300", "no-store"] {
        let stage = with_limits("send_timeout = \"1s\"").await;
        let body = String::from_utf8(pattern(16 << 20)).expect("letters");
        stage.origin.on("/large", Script::ok(&format!("Cache-Control: {control}\r\n"), &body));
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(8 * 1024).expect("a small buffer");
        let mut stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
        stream.write_all(&request("GET", "/large", "")).await.expect("sent");
        eventually("the limit", async || stage.limit_hits("send_timeout").await == 1).await;
        let mut received = Vec::new();
        // A reset is as good as an end here.
        _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut received))
            .await
            .expect("in time");
        assert!(received.len() < body.len(), "{control}: cut");
        assert_eq!(stage.get("/page").await.status, 200);
    }
}

#[tokio::test]
async fn a_client_that_goes_on_slowly_is_not_cut() {
    let stage = &with_limits("send_timeout = \"6s\"").await;
    let body = &String::from_utf8(pattern(8 << 20)).expect("letters");
    let fetch = async |control: &str| {
        let target = format!("/{control}");
        stage.origin.on(&target, Script::ok(&format!("Cache-Control: {control}\r\n"), body));
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(64 * 1024).expect("a small buffer");
        let mut stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
        let wanted = request("GET", &target, "Connection: close\r\n");
        stream.write_all(&wanted).await.expect("sent");
        let mut received = Vec::new();
        // Longer than the limit, and far less than the kernel's buffers.
        for _ in 0..100 {
            (&mut stream).take(16 * 1024).read_to_end(&mut received).await.expect("16 KiB");
            support::pause(125).await;
        }
        stream.read_to_end(&mut received).await.expect("the rest");
        assert!(received.ends_with(body.as_bytes()), "{control}: {} bytes", received.len());
    };
    tokio::join!(fetch("max-age=300"), fetch("no-store"));
}

#[tokio::test]
async fn a_small_answer_frees_its_origin_before_its_client_reads_it() {
    let stage = with_limits("").await;
    let body = pattern(200_000);
    let text = String::from_utf8(body.clone()).expect("letters");
    stage.origin.on("/small", Script::ok("Cache-Control: no-store\r\n", &text));
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(2 * 1024).expect("a small buffer");
    let mut stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
    stream.write_all(&request("GET", "/small", "Connection: close\r\n")).await.expect("sent");
    eventually("it is asked for", async || stage.origin.seen("/small") == 1).await;
    eventually("the origin's connection is free", async || {
        stage.metric("larder_server_in_flight").await == 0
    })
    .await;
    let mut received = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut received)).await;
    read.expect("in time").expect("read");
    assert!(received.ends_with(&body), "{} bytes", received.len());
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let stage = with_limits("idle_timeout = \"1s\"").await;
    let mut unused = stage.connect().await;
    let mut used = stage.connect().await;
    assert_eq!(whole(used.get("/page").await.expect("sent"), "/page").status, 200);
    for raw in [&mut unused, &mut used] {
        assert_eq!(raw.rest().await, (Vec::new(), ConnectionEnd::Closed));
    }
    stage.daemon.assert_limit_count("idle_timeout", 2).await;
    eventually("their leaving", async || stage.metric("larder_connections_open").await == 0).await;
}

#[tokio::test]
async fn who_ends_its_side_with_the_request_is_answered_if_that_is_soon() {
    let stage = with_limits("half_close_timeout = \"1s\"").await;
    stage.origin.on("/soon", Script::ok("Cache-Control: no-store\r\n", "here"));
    stage.origin.on("/never", Script::default().hang());
    let asks = async |target| {
        let mut client = stage.connect().await;
        client.send(&request("GET", target, ""), WriteSplit::Whole).await.expect("sent");
        client.finish().await.expect("its side ends");
        client
    };
    let seen = asks("/soon").await.reply("GET").await;
    assert_eq!(whole(seen, "/soon").text(), "here");
    // A client whose end is noticed late has left: that is not this limit, and another comes.
    eventually("the limit", async || {
        assert_eq!(asks("/never").await.rest().await, (Vec::new(), ConnectionEnd::Closed));
        stage.limit_hits("half_close_timeout").await > 0
    })
    .await;
}

#[tokio::test]
async fn who_sends_on_after_the_last_answer_is_read_off_for_a_while_only() {
    // Each time one of the two timeouts is far away.
    let stage = with_limits("linger_time = \"10m\"\nlinger_timeout = \"1s\"").await;
    let mut silent = stage.connect().await;
    silent.send(b"nonsense\r\n\r\n", WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(silent.reply("GET").await, "nonsense").status, 400);
    // The response ends at once, though the connection stays for a while.
    assert_eq!(silent.rest().await, (Vec::new(), ConnectionEnd::Closed));
    eventually("the limit", async || stage.limit_hits("linger_timeout").await == 1).await;
    eventually("its leaving", async || stage.metric("larder_connections_open").await == 0).await;
    assert_eq!(stage.metric("larder_lingers_total").await, 0);

    let stage = with_limits("linger_time = \"2s\"\nlinger_timeout = \"10m\"").await;
    let mut busy = stage.connect().await;
    busy.send(b"nonsense\r\n\r\n", WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(busy.reply("GET").await, "nonsense").status, 400);
    let sends_on = async {
        while busy.send(b"more", WriteSplit::Whole).await.is_ok() {
            support::pause(50).await;
        }
    };
    tokio::time::timeout(PATIENCE, sends_on).await.expect("in time");
    stage.daemon.assert_limit_count("linger_time", 1).await;
    stage.daemon.assert_metric("larder_lingers_total", 1).await;
    eventually("its leaving", async || stage.metric("larder_connections_open").await == 0).await;
}

#[tokio::test]
async fn the_last_response_of_a_connection_says_close() {
    let stage = with_limits("keepalive_requests = 3").await;
    stage.get("/page").await;
    let mut raw = stage.connect().await;
    for count in 1..=3 {
        let reply = whole(raw.get("/page").await.expect("sent"), "/page");
        assert_eq!((reply.text().as_str(), reply.closes()), ("page", count == 3));
    }
    assert_eq!(raw.rest().await, (Vec::new(), ConnectionEnd::Closed));
    let mut pipelined = stage.connect().await;
    let asked = request("GET", "/page", "").repeat(5);
    pipelined.send(&asked, WriteSplit::Whole).await.expect("sent");
    for _ in 0..3 {
        assert_eq!(whole(pipelined.reply("GET").await, "/page").text(), "page");
    }
    assert_eq!(pipelined.reply("GET").await, ReplyOutcome::Nothing);
    stage.daemon.assert_limit_count("keepalive_requests", 2).await;
}

#[tokio::test]
async fn a_connection_that_has_lived_long_enough_ends_with_its_next_answer() {
    let stage = with_limits("connection_lifetime = \"1ms\"").await;
    let mut raw = stage.connect().await;
    eventually("it is open", async || stage.metric("larder_connections_open").await == 1).await;
    // Metrics use a connection of their own, which takes a millisecond and more.
    pause(2).await;
    assert!(whole(raw.get("/page").await.expect("sent"), "/page").closes());
    stage.daemon.assert_limit_count("connection_lifetime", 1).await;
}

#[tokio::test]
async fn limits_of_the_store_are_counted_where_they_are_reached() {
    let limits = "object_bytes = \"1KiB\"\nvariants = 2\nbans = 2\nranges = 2";
    let site = "purge = { dialects = [\"purge\"] }";
    let stage = Setup { limits, site, ..Setup::default() }.start().await;
    let body = "x".repeat(2_000);
    stage.origin.on("/told", Script::ok("Cache-Control: max-age=600\r\n", &body));
    let head =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunked = format!("{head}7d0\r\n{body}\r\n0\r\n\r\n");
    stage.origin.on("/untold", Script::respond(chunked));
    for target in ["/told", "/untold"] {
        assert_eq!(stage.get(target).await.body.len(), 2_000);
    }
    stage.daemon.assert_limit_count("object_bytes", 2).await;

    stage.origin.on("/v", Script::ok("Cache-Control: max-age=600\r\nVary: X-V\r\n", "0123456789"));
    for variant in 0..4 {
        stage.ask("GET", "/v", &format!("X-V: {variant}\r\n")).await;
    }
    stage.daemon.assert_limit_count("variants", 2).await;

    let ranges = "X-V: 3\r\nRange: bytes=0-0,2-2,4-4\r\n";
    assert_eq!(stage.ask("GET", "/v", ranges).await.status, 200);
    stage.daemon.assert_limit_count("ranges", 1).await;

    for n in 0..3 {
        stage.ask("PURGE", &format!("/{n}/.*"), "").await;
    }
    stage.daemon.assert_limit_count("bans", 1).await;
}

#[tokio::test]
async fn an_upload_that_streams_before_it_is_whole_is_counted() {
    let stage = with_limits("body_buffer_bytes = \"1KiB\"").await;
    stage.origin.on("/form", Script::ok("", "taken"));
    let body = "x".repeat(8_000);
    let head = "POST /form HTTP/1.1\r\nHost: larder.test\r\nContent-Length: 8000\r\n\r\n";
    let mut raw = stage.connect().await;
    raw.send(head.as_bytes(), WriteSplit::Whole).await.expect("sent");
    raw.send(&body.as_bytes()[..4_000], WriteSplit::Whole).await.expect("sent");
    // Half of it has arrived, and is at the origin.
    stage.daemon.assert_limit_count("body_buffer_bytes", 1).await;
    raw.send(&body.as_bytes()[4_000..], WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(raw.reply("POST").await, "/form").text(), "taken");
}

#[tokio::test]
async fn files_forgotten_for_want_of_room_are_counted() {
    let folder = support::folder::Folder::new();
    folder.file("0.txt", "a file");
    folder.file("1.txt", "a file");
    let root = folder.path().display();
    let site = format!("[[site.route]]\npath = \"*.txt\"\nfiles = {{ root = \"{root}\" }}\n");
    let setup = Setup { limits: "open_files = 1", site: &site, ..Setup::default() };
    let stage = setup.start().await;
    let mut raw = stage.connect().await;
    for target in ["/0.txt", "/1.txt"] {
        assert_eq!(whole(raw.get(target).await.expect("sent"), target).text(), "a file");
    }
    stage.daemon.assert_limit_count("open_files", 1).await;
}

/// Every row of the table is named by code that enforces it, or is exempt with a reason.
#[test]
fn every_limit_is_counted_or_exempt() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut code = String::new();
    read_code(&crates, &mut code);
    for spec in base::limits::TABLE {
        let named = format!("Limit::{:?}", spec.limit);
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        let is_counted = code.match_indices(&named).any(|(at, _)| ends(&code[at + named.len()..]));
        let reason = base::limits::UNCOUNTED.iter().find(|(limit, _)| *limit == spec.limit);
        match reason {
            None => assert!(is_counted, "nothing counts {}", spec.name),
            Some((_, reason)) => {
                assert!(!is_counted && !reason.is_empty(), "{} is counted after all", spec.name);
            }
        }
    }
}

/// Appends to `code` the code of the daemon's crates, without tests and tables of limits.
fn read_code(folder: &std::path::Path, code: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_table = path.ends_with("limits.rs");
        if path.is_dir() && !["tests", "testkit", "counts", "xtask", "benches"].contains(&name) {
            read_code(&path, code);
        } else if name.ends_with(".rs") && name != "tests.rs" && !is_table {
            let text = std::fs::read_to_string(&path).expect("a file");
            code.push_str(text.split("\n#[cfg(test)]").next().unwrap_or_default());
        }
    }
}

#[tokio::test]
async fn an_origin_that_does_not_take_an_upload_is_no_reason_to_close_the_client() {
    let stage = with_limits("body_timeout = \"1s\"").await;
    let late = Script::default().without_reading_body().delay_ms(4_000);
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate";
    stage.origin.on("/late", late.send(answer.to_vec()));
    let stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    let (mut read, mut write) = stream.into_split();
    let mut bytes = request("POST", "/late", "Content-Length: 33554432\r\n");
    bytes.extend(pattern(32 << 20));
    let sending = tokio::spawn(async move { write.write_all(&bytes).await });
    let mut first = [0; b"HTTP/1.1 200".len()];
    read.read_exact(&mut first).await.expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(stage.limit_hits("body_timeout").await, 0);
    sending.abort();
}

#[tokio::test]
async fn a_slow_origin_is_no_reason_to_close_the_client() {
    let limits = "idle_timeout = \"1s\"\nheader_timeout = \"1s\"\nbody_timeout = \"1s\"\n\
                  send_timeout = \"1s\"";
    let stage = with_limits(limits).await;
    let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 8\r\n\r\n";
    let slow = Script::default().delay_ms(3_000).send(format!("{head}slow")).delay_ms(3_000);
    stage.origin.on("/slow", slow.send("page"));
    let mut raw = stage.connect().await.patience(Duration::from_secs(60));
    assert_eq!(whole(raw.get("/slow").await.expect("sent"), "/slow").text(), "slowpage");
    let mut raw = stage.connect().await.patience(Duration::from_secs(60));
    let form = request("POST", "/slow", "Content-Length: 2\r\n");
    raw.send(&[form, b"ok".to_vec()].concat(), WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(raw.reply("POST").await, "POST /slow").text(), "slowpage");
}

#[tokio::test]
async fn a_long_unread_body_ends_its_connection_and_is_counted() {
    let stage = with_limits("").await;
    let early = Script::ok("Cache-Control: no-store\r\n", "early").without_reading_body();
    stage.origin.on("/early", early);
    let mut raw = stage.connect().await;
    let form = request("POST", "/early", "Content-Length: 200000\r\n");
    raw.send(&[form, vec![b'x'; 20_000]].concat(), WriteSplit::Whole).await.expect("sent");
    let reply = whole(raw.reply("POST").await, "/early");
    assert_eq!((reply.text().as_str(), reply.closes()), ("early", true));
    stage.daemon.assert_limit_count("drain_bytes", 1).await;
}

#[tokio::test]
async fn who_waits_for_a_connection_to_an_origin_is_counted() {
    let origin = "connections = 1\nqueue_timeout = \"100ms\"";
    let stage = Setup { origin, ..Setup::default() }.start().await;
    stage.origin.on("/held", Script::default().hang());
    let mut held = stage.connect().await;
    held.send(&request("GET", "/held", ""), WriteSplit::Whole).await.expect("sent");
    support::eventually("it is asked for", async || stage.origin.seen("/held") == 1).await;
    assert_eq!(stage.get("/other").await.status, 503);
    stage.daemon.assert_limit_count("origin_connections", 1).await;
    stage.daemon.assert_limit_count("origin_queue_timeout", 1).await;
}

#[tokio::test]
async fn an_upload_goes_on_where_memory_is_too_scarce_to_gather_it() {
    let limits = "[memory]\nsize = \"8MiB\"\n";
    let stage = with_limits(&format!("client_memory = 5\n{limits}")).await;
    stage.origin.on("/form", Script::ok("", "taken"));
    let mut raw = stage.connect().await;
    let head = "POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 15000\r\n\r\n";
    raw.send(head.as_bytes(), WriteSplit::Whole).await.expect("sent");
    for _ in 0..15 {
        // Less than the gathering buffer, and more than the window.
        raw.send(&[b'x'; 1_000], WriteSplit::Whole).await.expect("sent");
        pause(5).await;
    }
    let reply = whole(raw.reply("POST").await, "/form");
    assert_eq!((reply.status, reply.text().as_str()), (200, "taken"));
}

#[tokio::test]
async fn idle_connections_of_every_core_make_room_for_new_ones() {
    // Memory for four connections.
    let limits = "client_memory = 5\nconnection_memory = 5\nhalf_close_timeout = \"1ms\"\n\
                  [memory]\nsize = \"8MiB\"\n";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.origin.otherwise(Script::default().hang());
    for round in 0..8 {
        let mut open = Vec::new();
        for n in 0..3 {
            let mut busy = stage.connect().await;
            let target = format!("/{round}/{n}");
            busy.send(&request("GET", &target, ""), WriteSplit::Whole).await.expect("sent");
            eventually("it is asked for", async || stage.origin.seen(&target) == 1).await;
            open.push(busy);
        }
        // The fourth waits for a request, on one core or the other.
        for _ in 0..2 {
            let mut raw = stage.connect().await;
            let reply = raw.get("/page").await.expect("sent");
            assert_eq!(
                whole(reply, &format!("/page of round {round}, beside {}", open.len())).status,
                200
            );
            open.push(raw);
        }
        drop(open);
        eventually("all have left", async || stage.metric("larder_connections_open").await == 0)
            .await;
    }
    assert_eq!(stage.limit_hits("connection_memory").await, 8);
    assert_eq!(stage.metric("larder_connections_refused_total").await, 0);
}
