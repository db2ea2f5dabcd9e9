//! Tests of large bodies among nodes that share: slices come from the node that owns them, and the
//! origin sends each byte once.

use crate::support;

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::process::Signal;
use support::nats::Nats;
use support::nodes::{Node, PLAIN, Wanted, all_joined};
use support::{PATIENCE, eventually};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::large_file::LargeFile;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const SLICE: u64 = 64 << 10;
const LENGTH: u64 = 20 * SLICE + 1000;
const FILMS: usize = 6;

/// An address for a node that no other test uses.
fn address() -> String {
    static NEXT: AtomicU8 = AtomicU8::new(101);
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{}.{high}.{low}:7800", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Three nodes that have fetched from each other, before `film`.
async fn nodes(nats: &Nats, film: &LargeFile, vcl: bool, patience: &str) -> [Node; 3] {
    let nodes = ["n1", "n2", "n3"].map(|name| {
        let limits = format!(
            "[limits]\nslices_from = \"256KiB\"\nslice_bytes = \"64KiB\"\nslice_ahead = 0\n\
             peer_timeout = \"{patience}\""
        );
        let cluster = format!("mode = \"share\"\npeer = \"{}\"\n{limits}\n", address());
        Node::before(film.addr(), name, nats, Wanted { cluster: &cluster, vcl, ..PLAIN })
    });
    all_joined(&nodes).await;
    for node in &nodes {
        let try_number = Cell::new(0);
        eventually("a node is answered by another", async || {
            try_number.set(try_number.get() + 1);
            part(node, &format!("/begin/{}", try_number.get()), 0..10).await;
            figure(node, "peers_found_total").await > 0
        })
        .await;
    }
    film.forget();
    nodes
}

async fn figure(node: &Node, name: &str) -> u64 {
    node.daemon().metric(&format!("larder_{name}"), "").await.expect("metrics") as u64
}

async fn sum(nodes: &[Node], name: &str) -> u64 {
    let mut sum = 0;
    for node in nodes {
        sum += figure(node, name).await;
    }
    sum
}

async fn part(node: &Node, target: &str, range: Range<u64>) {
    let fields = format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
    let reply = node.ask("GET", target, &fields).await;
    assert_eq!(reply.status, 206, "{target}");
    let told = format!("bytes {}-{}/{LENGTH}", range.start, range.end - 1);
    assert_eq!(reply.field("content-range"), Some(told), "{target}");
    assert!(reply.body == LargeFile::bytes(1, range), "{target}: other bytes");
}

async fn whole(node: &Node, target: &str) {
    let reply = node.ask("GET", target, "").await;
    assert_eq!(reply.status, 200, "{target}");
    assert!(reply.body == LargeFile::bytes(1, 0..LENGTH), "{target}: other bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_byte_of_a_large_body_is_fetched_once_for_all_nodes() {
    for vcl in [false, true] {
        let (nats, film) =
            (Nats::start(&[]).await, LargeFile::start(LENGTH).await.expect("a port"));
        let nodes = nodes(&nats, &film, vcl, "1m").await;
        for n in 0..FILMS {
            let target = format!("/whole/{n}");
            for node in &nodes {
                whole(node, &target).await;
                part(node, &target, 3 * SLICE - 5..3 * SLICE + 5).await;
            }
        }
        assert_eq!(film.sent(), FILMS as u64 * LENGTH, "vcl: {vcl}: {:?}", film.asked());
        assert_eq!(film.asked().len(), FILMS, "vcl: {vcl}");
        for node in &nodes {
            for n in 0..FILMS {
                assert!(node.hits(&format!("/whole/{n}")).await, "it is kept by who serves it");
            }
        }
    }
}

/// A request for a part goes through the owner, which fetches no more than its slices.
#[tokio::test(flavor = "multi_thread")]
async fn parts_are_asked_for_by_the_slice_and_further_ones_of_the_owner_too() {
    let (nats, film) = (Nats::start(&[]).await, LargeFile::start(LENGTH).await.expect("a port"));
    let nodes = nodes(&nats, &film, false, "1m").await;
    for n in 0..FILMS {
        let target = format!("/part/{n}");
        for node in &nodes {
            part(node, &target, 5 * SLICE + 7..5 * SLICE + 8).await;
        }
        for node in &nodes {
            part(node, &target, 9 * SLICE + 100..10 * SLICE + 100).await;
            part(node, &target, LENGTH - 10..LENGTH).await;
        }
    }
    let slices = 3 * SLICE + LENGTH % SLICE;
    assert_eq!(film.sent(), FILMS as u64 * slices, "{:?}", film.asked());
    // Each of the two nodes that do not own a film requests all slices but the first from the
    // owner.
    assert_eq!(sum(&nodes, "slices_of_nodes_total").await, FILMS as u64 * 2 * 3);
}

/// A film continues after the end of the node that it came from.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_large_body_loses_nothing_with_its_owner() {
    for vcl in [false, true] {
        let (nats, film) =
            (Nats::start(&[]).await, LargeFile::start(LENGTH).await.expect("a port"));
        let mut nodes = nodes(&nats, &film, vcl, "2s").await;
        for n in 0..FILMS {
            for node in &nodes[..2] {
                part(node, &format!("/gone/{n}"), 0..10).await;
            }
        }
        let asked = sum(&nodes[..2], "slices_of_nodes_total").await;
        nodes[2].end(Signal::KILL).await;
        for n in 0..FILMS {
            for node in &nodes[..2] {
                let target = format!("/gone/{n}");
                part(node, &target, 7 * SLICE..8 * SLICE).await;
                whole(node, &target).await;
            }
        }
        assert!(sum(&nodes[..2], "slices_of_nodes_total").await >= asked, "vcl: {vcl}");
    }
}

/// A client in the middle of a film gets the rest from the origin after its owner is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_being_read_does_not_break_off_with_its_owner() {
    // Longer than the sockets' buffers.
    const LONG: u64 = 24 << 20;
    for vcl in [false, true] {
        let (nats, film) =
            (Nats::start(&[]).await, LargeFile::start(LENGTH).await.expect("a port"));
        let mut nodes = nodes(&nats, &film, vcl, "2s").await;
        film.change(LONG);
        let mut readers = Vec::new();
        for n in 0..FILMS {
            for node in &nodes[..2] {
                let stream = TcpStream::connect(node.daemon().addr()).await.expect("a connection");
                let mut stream = BufReader::new(stream);
                let asked = request("GET", &format!("/read/{n}"), "Connection: close\r\n");
                stream.get_mut().write_all(&asked).await.expect("sent");
                let mut line = String::new();
                stream.read_line(&mut line).await.expect("a status line");
                assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
                readers.push(stream);
            }
        }
        nodes[2].end(Signal::KILL).await;
        for mut stream in readers {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.expect("the rest");
            let body = rest.len().checked_sub(LONG as usize).expect("all of it");
            assert!(rest[body..] == LargeFile::bytes(2, 0..LONG), "vcl: {vcl}: other bytes");
        }
    }
}

/// The owner may have another version: the origin decides which is right.
#[tokio::test(flavor = "multi_thread")]
async fn a_slice_of_another_version_is_never_put_into_a_body() {
    for vcl in [false, true] {
        let (nats, film) =
            (Nats::start(&[]).await, LargeFile::start(LENGTH).await.expect("a port"));
        let nodes = nodes(&nats, &film, vcl, "1m").await;
        for n in 0..FILMS {
            for node in &nodes {
                part(node, &format!("/other/{n}"), 0..10).await;
            }
        }
        film.change(LENGTH);
        for n in 0..FILMS {
            for node in &nodes {
                let target = format!("/other/{n}");
                let raw = RawClient::connect(node.daemon().addr()).await.expect("a connection");
                let mut raw = raw.patience(PATIENCE);
                raw.send(&request("GET", &target, ""), WriteSplit::Whole).await.expect("sent");
                let seen = raw.reply("GET").await;
                // The response with the old version is truncated, or it has the new one.
                if let Some(reply) = seen.complete() {
                    let is = |version| reply.body == LargeFile::bytes(version, 0..LENGTH);
                    assert!(is(1) || is(2), "vcl: {vcl}: {target}: a mixture");
                }
            }
            for node in &nodes {
                let reply = node.ask("GET", &format!("/other/{n}"), "").await;
                assert!(reply.body == LargeFile::bytes(2, 0..LENGTH), "vcl: {vcl}: the old one");
            }
        }
    }
}

/// A large body purged on one node is purged on all.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_reaches_slices_that_came_from_another_node() {
    let (nats, film) = (Nats::start(&[]).await, LargeFile::start(LENGTH).await.expect("a port"));
    let nodes = nodes(&nats, &film, false, "1m").await;
    for n in 0..FILMS {
        let target = format!("/purged/{n}");
        for node in &nodes {
            whole(node, &target).await;
        }
    }
    film.change(LENGTH);
    for n in 0..FILMS {
        let target = format!("/purged/{n}");
        let reply = nodes[n % 3].ask("PURGE", &target, "Larder-Wait: all\r\n").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        for node in &nodes {
            let reply = node.ask("GET", &target, "").await;
            assert!(reply.body == LargeFile::bytes(2, 0..LENGTH), "{target}: the old one");
        }
    }
}
