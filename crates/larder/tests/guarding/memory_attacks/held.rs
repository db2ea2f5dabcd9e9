//! Held memory besides unread bodies: heads and uploads.

use std::net::SocketAddr;
use std::path::Path;

use testkit::client::request;
use testkit::h2::{Frame, PREFACE, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::bodies;
use super::fortress::{ATTACKER, ATTACKS, Fortress, site};
use crate::support::eventually;
use crate::support::folder::Folder;

/// Bytes of each upload: less than the limit `spool_bytes`.
const SPOOLED: usize = 900_000;

/// Connections that upload.
const UPLOADERS: u32 = 6;

/// A site whose scripts below `root` are FastCGI's, beside one that is not.
fn with_scripts(origin: SocketAddr, root: &Path) -> String {
    let root = root.display();
    format!(
        "[[origin]]\nname = \"app\"\nservers = \"http://{origin}\"\n\
         [[origin]]\nname = \"php\"\nservers = \"fastcgi://{origin}\"\nroot = \"{root}\"\n\
         [[site]]\nhost = \"scripts.test\"\norigin = \"php\"\n\
         [[site]]\nhost = \"*\"\norigin = \"app\"\n"
    )
}

/// A hundred uploads of unknown length over one connection, until it ends.
async fn upload_to(addr: SocketAddr) {
    let Ok(mut stream) = TcpStream::connect(addr).await else { return };
    let mut bytes = PREFACE.to_vec();
    bytes.extend(Frame::settings(&[]).bytes());
    let post = Request::post("/upload").set(":authority", "scripts.test").block();
    for stream in 0..100 {
        bytes.extend(Frame::headers(2 * stream + 1, post.bytes().to_vec(), false).bytes());
    }
    let piece = vec![b'x'; 8 * 1024];
    let mut sent = stream.write_all(&bytes).await;
    for _ in 0..SPOOLED / piece.len() {
        for number in 0..100 {
            if sent.is_err() {
                return;
            }
            sent = stream.write_all(&Frame::data(2 * number + 1, &piece, false).bytes()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spooled_uploads_take_what_is_allowed() {
    let root = Folder::new();
    root.file("index.php", "<?php");
    let fortress = Fortress::with(|origin| with_scripts(origin, root.path())).await;
    let mut open = Vec::new();
    for n in 0..UPLOADERS {
        let addr = fortress.daemon.addr();
        open.push(tokio::spawn(async move {
            // It heeds no window, which may end a connection before much of it is held: it comes
            // again, as often as attackers do.
            for _ in 0..100 {
                upload_to(addr).await;
            }
        }));
        fortress.stands(&format!("{} connections", n + 1)).await;
    }
    fortress.reached("client_memory").await;
    fortress.stands("a while later").await;
    for task in open {
        task.abort();
    }
}

/// Connections over HTTP/1 that upload to an origin that does not read.
const UNREAD: usize = 300;

/// An upload of a known length. As much of it is sent as is taken.
async fn upload_unread(addr: SocketAddr, number: usize) {
    let Ok(mut stream) = TcpStream::connect(addr).await else { return };
    let length = "Content-Length: 100000000\r\n";
    let head = request("POST", &format!("/never/{number}"), &format!("{ATTACKS}{length}"));
    let mut sent = stream.write_all(&head).await;
    let piece = vec![b'x'; 64 * 1024];
    while sent.is_ok() {
        sent = stream.write_all(&piece).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_uploads_take_what_is_allowed() {
    // What a client has sent ahead keeps the end of its connection from being seen: the upload ends
    // when the origin's time is over.
    let patient = "connect_timeout = \"30s\"";
    let brief = format!("{patient}\nbetween_bytes_timeout = \"5s\"");
    let fortress = Fortress::with(|origin| site(origin).replacen(patient, &brief, 1)).await;
    let mut open = JoinSet::new();
    for n in 0..UNREAD {
        open.spawn(upload_unread(fortress.daemon.addr(), n));
        if n % 100 == 99 {
            fortress.stands(&format!("{} uploads", n + 1)).await;
        }
    }
    // Counted when they begin: on a busy machine the first have ended before the last come.
    eventually("the origin has been given uploads, which it does not read", async || {
        let given = fortress.daemon.metric("larder_server_requests_total", "").await;
        given.expect("metrics") > 50.0
    })
    .await;
    fortress.stands("while they wait").await;
    open.shutdown().await;
    fortress.gives_back().await;
    fortress.stands("afterwards").await;
}

/// Heads that are long when they are read: seven references to a field of four kilobytes in each.
pub(crate) async fn long_heads(fortress: &Fortress) -> Vec<TcpStream> {
    let mut waiting = Vec::new();
    for n in 0..60 {
        let block = |at| {
            let request = Request::get("/slow/head").set("x-forwarded-for", ATTACKER).block();
            match at {
                0 => request.remembered("x-long", "h".repeat(3_900)).bytes().to_vec(),
                _ => request.raw(&[0x80 | 62; 7]).bytes().to_vec(),
            }
        };
        waiting.push(fortress.hundred(block).await);
        if n % 20 == 19 {
            fortress.stands(&format!("{} connections", n + 1)).await;
        }
    }
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn long_heads_that_wait_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let waiting = long_heads(&fortress).await;
    fortress.recovers_from(waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_survives_one_attack_after_another() {
    let Some(fortress) = Fortress::contained(512 << 20).await else {
        return eprintln!("skipped: no control group can be made");
    };
    let unread = bodies::unread(&fortress, "/pass/{}?bytes=200000").await;
    let kept = bodies::unread(&fortress, "/kept/{}?bytes=200000").await;
    let large = bodies::unread(&fortress, "/kept/{}?bytes=80000000").await;
    drop((unread, kept, large));
    let deaf = bodies::unread_over_http1(&fortress).await;
    drop(deaf);
    let followers = bodies::followers(&fortress).await;
    let heads = long_heads(&fortress).await;
    drop((followers, heads));
    bodies::sizes(&fortress).await;
    fortress.gives_back().await;
    fortress.stands("after them all").await;
}
