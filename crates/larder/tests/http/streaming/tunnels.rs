//! Tests of tunnels from their first byte to their last.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::ends::{ACCEPT, KEY, Next, Scene, agreed, opening};
use crate::support::{eventually, is_full_run, pattern, pause, raise_descriptors};

/// Most memory of an idle tunnel in the daemon.
const TUNNEL_BYTES: u64 = 16 << 10;

#[tokio::test]
async fn heads_are_made_anew_on_both_sides() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    let more = "Origin: https://larder.test\r\nSec-WebSocket-Protocol: chat, superchat\r\n\
                Cookie: sid=1\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n\
                Keep-Alive: timeout=5\r\nUpgrade: h2c\r\n";
    client.send(opening(more)).await;
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    let mut lines: Vec<_> = head.trim_end().split("\r\n").collect();
    assert_eq!(lines.remove(0), "GET /chat HTTP/1.1");
    lines.sort_unstable();
    let key = format!("Sec-WebSocket-Key: {KEY}");
    assert_eq!(
        lines,
        [
            "Connection: Upgrade",
            "Cookie: sid=1",
            "Host: larder.test",
            "Origin: https://larder.test",
            key.as_str(),
            "Sec-WebSocket-Protocol: chat, superchat",
            "Sec-WebSocket-Version: 13",
            "Upgrade: websocket",
            "Via: 1.1 larder",
            "X-Forwarded-For: 127.0.0.1",
            "X-Forwarded-Host: larder.test",
            "X-Forwarded-Port: 80",
            "X-Forwarded-Proto: http",
            "X-Real-IP: 127.0.0.1",
        ]
    );
    let answer = agreed().replace(
        "\r\n\r\n",
        "\r\nSec-WebSocket-Protocol: chat\r\nKeep-Alive: x\r\nTransfer-Encoding: \r\n\r\n",
    );
    origin.send(answer.replace("Transfer-Encoding: \r\n", "Trailer: x\r\n")).await;
    let head = client.head().await;
    let has = |line: &str| head.split("\r\n").filter(|l| l.eq_ignore_ascii_case(line)).count();
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert_eq!(has("Connection: Upgrade"), 1, "{head}");
    assert_eq!(has("Upgrade: websocket"), 1, "{head}");
    assert_eq!(has(&format!("Sec-WebSocket-Accept: {ACCEPT}")), 1, "{head}");
    assert_eq!(has("Sec-WebSocket-Protocol: chat"), 1, "{head}");
    let lower = head.to_ascii_lowercase();
    for gone in ["keep-alive", "trailer", "content-length", "transfer-encoding"] {
        assert!(!lower.contains(gone), "{head}");
    }
}

#[tokio::test]
async fn bytes_go_both_ways_and_are_counted() {
    let scene = Scene::new().await;
    let (mut client, mut origin) = scene.tunnel().await;
    for round in 0..100 {
        let text = format!("GET /{round} HTTP/1.1\r\n\r\n\0\u{ff}");
        client.send(&text).await;
        origin.expect(&text).await;
        origin.send(text.as_bytes().repeat(2)).await;
        client.expect(text.as_bytes().repeat(2)).await;
    }
    scene.daemon.assert_metric("larder_tunnels_open", 1).await;
    // Nothing in it is a request.
    scene.daemon.assert_metric("larder_requests_total", 1).await;
    drop((client, origin));
    eventually("its end", async || scene.metric("larder_tunnels_open").await == 0).await;
    scene.daemon.assert_metric("larder_tunnels_total", 1).await;
    let (sent, got) = (
        scene.metric("larder_tunnel_bytes_in_total").await,
        scene.metric("larder_tunnel_bytes_out_total").await,
    );
    assert!(sent > 2_000 && got == 2 * sent, "{sent} {got}");
    let all = scene.metric("larder_client_bytes_in_total").await;
    assert_eq!(all, opening("").len() as u64 + sent, "each byte once");
    assert!(scene.metric("larder_client_bytes_out_total").await < got + 512, "and a head");
}

#[tokio::test]
async fn bytes_behind_either_head_are_the_tunnels() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: larder.test\r\n\r\n";
    client.send(opening("") + smuggled).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    assert!(origin.is_silent().await, "nothing goes on before both have agreed");
    client.send("and more").await;
    assert!(origin.is_silent().await);
    origin.send(agreed() + "from the origin").await;
    assert!(client.head().await.starts_with("HTTP/1.1 101 "));
    client.expect("from the origin").await;
    origin.expect(smuggled).await;
    origin.expect("and more").await;
    assert!(scene.origin_is_silent().await);
    scene.daemon.assert_metric("larder_requests_total", 1).await;
    let all = opening("").len() + smuggled.len() + "and more".len();
    scene.daemon.assert_metric("larder_client_bytes_in_total", all as u64).await;
}

#[tokio::test]
async fn a_101_may_come_byte_by_byte_and_after_hints() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send(opening("")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").await;
    for byte in agreed().bytes() {
        origin.send([byte]).await;
        tokio::task::yield_now().await;
    }
    origin.send("x").await;
    assert!(client.head().await.starts_with("HTTP/1.1 103 "));
    assert!(client.head().await.starts_with("HTTP/1.1 101 "));
    client.expect("x").await;
}

#[tokio::test]
async fn one_side_may_end_while_the_other_goes_on() {
    let scene = Scene::new().await;
    let (mut client, mut origin) = scene.tunnel().await;
    client.send("last words").await;
    client.finish().await;
    origin.expect("last words").await;
    assert_eq!(origin.next().await, Next::Closed);
    let body = pattern(1 << 20);
    let (sent, ()) = tokio::join!(origin.stream.write_all(&body), client.expect(&body));
    sent.expect("sent");
    origin.finish().await;
    assert_eq!(client.next().await, Next::Closed);

    let (mut client, mut origin) = scene.tunnel().await;
    origin.send("bye").await;
    origin.finish().await;
    client.expect("bye").await;
    assert_eq!(client.next().await, Next::Closed);
    client.send("still here").await;
    origin.expect("still here").await;
    client.finish().await;
    assert_eq!(origin.next().await, Next::Closed);
    eventually("their end", async || scene.metric("larder_tunnels_open").await == 0).await;
}

#[tokio::test]
async fn a_side_that_breaks_breaks_the_other() {
    let scene = Scene::new().await;
    let (client, mut origin) = scene.tunnel().await;
    client.stream.set_zero_linger().expect("an option");
    drop(client);
    assert_eq!(origin.next().await, Next::Reset);
    let (mut client, origin) = scene.tunnel().await;
    origin.stream.set_zero_linger().expect("an option");
    drop(origin);
    assert_eq!(client.next().await, Next::Reset);
    eventually("their end", async || scene.metric("larder_tunnels_open").await == 0).await;
}

#[tokio::test]
async fn a_slow_reader_holds_its_writer_back_and_loses_nothing() {
    let scene = Scene::new().await;
    let (mut client, mut origin) = scene.tunnel().await;
    let body = pattern(32 << 20);
    for up in [true, false] {
        let (from, to) = match up {
            true => (&mut client, &mut origin),
            false => (&mut origin, &mut client),
        };
        let mut sent = 0;
        // Without reading, only the kernel's and one buffer fill.
        while let Ok(wrote) =
            timeout(Duration::from_millis(500), from.stream.write(&body[sent..])).await
        {
            sent += wrote.expect("a connection");
        }
        assert!(sent < body.len(), "all {sent} bytes were taken");
        let (rest, ()) = tokio::join!(from.stream.write_all(&body[sent..]), to.expect(&body));
        rest.expect("sent");
    }
}

#[tokio::test]
async fn idle_and_half_ended_tunnels_end_at_their_limits() {
    let limits = "tunnel_idle_timeout = \"1500ms\"\ntunnel_end_timeout = \"200ms\"";
    let scene = Scene::with(limits, "").await;
    let (mut client, mut origin) = scene.tunnel().await;
    for _ in 0..3 {
        pause(800).await;
        origin.send("ping").await;
        client.expect("ping").await;
    }
    assert_eq!(client.next().await, Next::Closed);
    assert_eq!(origin.next().await, Next::Closed);
    scene.daemon.assert_limit_count("tunnel_idle_timeout", 1).await;

    let (mut client, mut origin) = scene.tunnel().await;
    client.finish().await;
    assert_eq!(origin.next().await, Next::Closed);
    assert_eq!(client.next().await, Next::Closed);
    scene.daemon.assert_limit_count("tunnel_end_timeout", 1).await;
}

#[tokio::test]
async fn there_are_only_so_many() {
    let scene = Scene::with("tunnels = 1", "").await;
    let tunnel = scene.tunnel().await;
    let mut client = scene.client().await;
    client.send(opening("")).await;
    assert!(client.head().await.starts_with("HTTP/1.1 503 "));
    scene.daemon.assert_limit_count("tunnels", 1).await;
    drop(tunnel);
    eventually("its end", async || scene.metric("larder_tunnels_open").await == 0).await;
    scene.tunnel().await;
}

#[tokio::test]
async fn each_client_has_only_so_many() {
    let scene = Scene::with("tunnels_per_ip = 1", "").await;
    // Loopback is exempt.
    let _tunnels = (scene.tunnel().await, scene.tunnel().await);
    let scene = Scene::with_top("trusted_proxies = \"127.0.0.1\"", "tunnels_per_ip = 1", "").await;
    let mut held = Vec::new();
    for (client, refused) in [("192.0.2.1", false), ("192.0.2.2", false), ("192.0.2.1", true)] {
        let mut end = scene.client().await;
        end.send(opening(&format!("X-Forwarded-For: {client}\r\n"))).await;
        if refused {
            assert!(end.head().await.starts_with("HTTP/1.1 503 "));
            scene.daemon.assert_limit_count("tunnels_per_ip", 1).await;
            continue;
        }
        let mut origin = scene.origin().await;
        origin.head().await;
        origin.send(agreed()).await;
        assert!(end.head().await.starts_with("HTTP/1.1 101 "));
        held.push((end, origin));
    }
}

#[tokio::test]
async fn tunnels_take_no_place_of_ordinary_requests() {
    let scene = Scene::with("origin_connections = 1", "").await;
    let _tunnels = (scene.tunnel().await, scene.tunnel().await);
    let mut client = scene.client().await;
    client.send("GET /page HTTP/1.1\r\nHost: larder.test\r\n\r\n").await;
    let mut origin = scene.origin().await;
    assert!(origin.head().await.starts_with("GET /page "));
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_reload_leaves_them_alone() {
    let scene = Scene::new().await;
    let (mut client, mut origin) = scene.tunnel().await;
    let file = scene.daemon.config_file();
    let text = std::fs::read_to_string(&file).expect("the file");
    let text = text.replace("[limits]", "[limits]\nidle_timeout = \"7s\"");
    std::fs::write(&file, text.replace("host = \"*\"", "host = \"*\"\nupgrade = []"))
        .expect("written");
    signal(&scene, Signal::HUP);
    let reloaded = async || scene.daemon.log().contains("configuration reloaded");
    eventually("the reload", reloaded).await;
    client.send("ping").await;
    origin.expect("ping").await;
    origin.send("pong").await;
    client.expect("pong").await;
    // New bytes are not forwarded any more.
    let mut late = scene.client().await;
    late.send(opening("")).await;
    let head = scene.origin().await.head().await;
    assert!(!head.contains("Upgrade"), "{head}");
}

fn signal(scene: &Scene, signal: Signal) {
    let pid = Pid::from_raw(scene.daemon.pid().cast_signed()).expect("a process");
    kill_process(pid, signal).expect("signalled");
}

#[tokio::test]
async fn a_drain_lets_them_go_on_and_ends_with_them() {
    let mut scene = Scene::new().await;
    let (mut client, mut origin) = scene.tunnel().await;
    signal(&scene, Signal::TERM);
    let told = async || scene.daemon.log().contains("finishing requests");
    eventually("the drain", told).await;
    client.send("ping").await;
    origin.expect("ping").await;
    origin.send("pong").await;
    client.expect("pong").await;
    client.finish().await;
    assert_eq!(origin.next().await, Next::Closed);
    origin.finish().await;
    assert_eq!(client.next().await, Next::Closed);
    assert!(scene.daemon.wait().expect("in time").success());
}

/// Resident memory of the daemon, in bytes.
fn resident(scene: &Scene) -> u64 {
    let file = format!("/proc/{}/smaps_rollup", scene.daemon.pid());
    let rollup = std::fs::read_to_string(file).expect("the daemon's memory");
    let line = rollup.lines().find(|line| line.starts_with("Rss:")).expect("Rss");
    let kilobytes = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    kilobytes.expect("a number") * 1024
}

#[tokio::test]
async fn an_idle_tunnel_holds_little_memory() {
    raise_descriptors();
    let scene = Scene::new().await;
    let count = if is_full_run() { 5_000 } else { 500 };
    let mut tunnels = Vec::new();
    for _ in 0..100 {
        tunnels.push(scene.tunnel().await);
    }
    let before = resident(&scene);
    for _ in 0..count {
        tunnels.push(scene.tunnel().await);
    }
    // Each was used: otherwise its buffers would only be unused.
    let text = pattern(20_000);
    for (client, origin) in &mut tunnels {
        client.send(&text).await;
        origin.expect(&text).await;
        origin.send(&text).await;
        client.expect(&text).await;
    }
    // The allocator returns memory after an idle time.
    let is_little = async || {
        let each = resident(&scene).saturating_sub(before) / count;
        println!("an idle tunnel: {each} bytes");
        each < TUNNEL_BYTES
    };
    eventually("an idle tunnel holds little memory", is_little).await;
}
