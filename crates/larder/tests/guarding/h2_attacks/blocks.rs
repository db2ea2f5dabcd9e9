//! Tests of endless header blocks, and of small ones that expand: CONTINUATION flood
//! (CVE-2024-27316 and similar) and HPACK bombs (CVE-2016-6581).

use testkit::h2::{FieldBlock, Frame, Request, error};
use testkit::origin::Script;
use testkit::reply::ConnectionEnd;

use super::siege::{Flood, Siege, stream};
use crate::support::figures::count;

const CONTINUED: Flood = Flood { limits: &["h2_continuations", "header_bytes"], ..Flood::USUAL };

#[tokio::test(flavor = "multi_thread")]
async fn blocks_without_end() {
    Flood {
        name: "CONTINUATION flood, full frames",
        burst: |round| match round {
            0 => Frame::open_headers(1, Request::get("/page").block(), true).bytes(),
            _ => {
                let block = FieldBlock::new().literal("x", "v".repeat(16_000));
                Frame::continuation(1, block, false).bytes()
            }
        },
        ..CONTINUED
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_without_end_in_empty_frames() {
    Flood {
        name: "CONTINUATION flood, empty frames",
        burst: |round| match round {
            0 => Frame::open_headers(1, Request::get("/page").block(), true).bytes(),
            _ => Frame::continuation(1, [], false).bytes().repeat(100),
        },
        ..CONTINUED
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_without_end_byte_by_byte() {
    Flood {
        name: "CONTINUATION flood, single bytes",
        burst: |round| match round {
            0 => Frame::open_headers(1, Request::get("/page").block(), true).bytes(),
            // A reference to `accept-encoding: gzip, deflate` each.
            _ => Frame::continuation(1, [0x90], false).bytes().repeat(100),
        },
        ..CONTINUED
    }
    .run()
    .await;
}

/// Blocks that are refused one by one: so many of them end the connection.
const BOMBS: Flood = Flood {
    rounds: 300,
    codes: &[error::ENHANCE_YOUR_CALM, error::COMPRESSION_ERROR],
    limits: &["header_bytes", "header_count", "h2_resets"],
    ..Flood::USUAL
};

/// One table entry of nearly 4 KiB, with a reference per byte of a frame: 64 MiB from 16 KiB.
fn bomb(round: u32) -> Vec<u8> {
    let block = match round {
        0 => Request::get("/page").block().remembered("x-bomb", "b".repeat(4_000)),
        _ => Request::get("/smuggled").block().raw(&[0x80 | 62; 16_000]),
    };
    Frame::headers(stream(round), block, true).bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_entry_referred_to_thousands_of_times() {
    let flood = Flood { name: "HPACK bomb", burst: bomb, ..BOMBS };
    let siege = Siege::start("").await;
    let made = siege.attack(flood).await;
    siege.reached(flood.name, flood.limits, made.calmed).await;
    assert_eq!(siege.stage.origin.seen("/smuggled"), 0, "none is a request");
    siege.end(flood.name, made.connections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_of_one_byte() {
    Flood {
        name: "bomb of one-byte references",
        burst: |round| {
            let block = Request::get("/hang").block().raw(&[0x90; 16_000]);
            Frame::headers(stream(round), block, true).bytes()
        },
        ..BOMBS
    }
    .run()
    .await;
}

/// Cookie crumbs are joined again; so many of them would be much work.
#[tokio::test(flavor = "multi_thread")]
async fn cookies_in_countless_crumbs() {
    Flood {
        name: "cookie bomb",
        burst: |round| {
            // Entry 62 is `cookie: a` once it has been remembered; the first request is sound.
            let block = match round {
                0 => Request::get("/page").block().remembered("cookie", "a"),
                _ => Request::get("/hang").block().raw(&[0x80 | 62; 16_000]),
            };
            Frame::headers(stream(round), block, true).bytes()
        },
        ..BOMBS
    }
    .run()
    .await;
}

/// A head that arrives byte by byte has the deadline of HTTP/1.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_never_comes_to_its_end() {
    let siege = Siege::start("header_timeout = \"1s\"").await;
    let mut attackers = tokio::task::JoinSet::new();
    for _ in 0..count(500, 20) {
        let mut client = crate::support::h2::client(&siege.stage.daemon).await;
        attackers.spawn(async move {
            let block = Request::get("/page").block();
            let frame = Frame::headers(1, block, true).bytes();
            for byte in &frame[..frame.len() - 1] {
                if client.send(&[*byte]).await.is_err() {
                    break;
                }
                crate::support::pause(100).await;
            }
            client.rest().await
        });
    }
    for ended in siege.beside("slow blocks", attackers).await {
        let over = matches!(ended, Ok(ending) if ending.end != ConnectionEnd::Open);
        assert!(over, "{ended:?}");
    }
    siege.end("slow blocks", 1).await;
}

/// A bomb within every limit of one request: work, but no more than HTTP/1 permits.
#[tokio::test(flavor = "multi_thread")]
async fn many_crumbs_that_are_allowed() {
    let siege = Siege::start("").await;
    siege.stage.origin.otherwise(Script::mirror("Cache-Control: no-store\r\n"));
    let mut client = crate::support::h2::client(&siege.stage.daemon).await;
    let crumbs = |count: usize| {
        let request = Request::get("/crumbs");
        (0..count).fold(request, |request, n| request.field("cookie", format!("c{n}=1")))
    };
    let answer = client.fetch(&crumbs(50)).await.answer("/crumbs");
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("c0=1; c1=1; c2=1"));
    drop(client);
    siege.end("many crumbs", 1).await;
}

/// A table that shrinks and grows repeatedly, and entries that evict each other.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_turned_over_all_the_time() {
    let siege = Siege::start("").await;
    let mut client = crate::support::h2::client(&siege.stage.daemon).await;
    for round in 0..200 {
        let mut block = FieldBlock::new().table_size(0).table_size(4_096);
        for (name, value) in &Request::get("/page").fields {
            block = block.literal(name, value);
        }
        for n in 0..30 {
            block = block.remembered(format!("x-{n}"), format!("{round}"));
        }
        let stream = client.new_stream();
        client.send_frame(&Frame::headers(stream, block, true)).await.expect("sent");
        assert_eq!(client.outcome(stream).await.answer("/page").status, 200);
    }
    drop(client);
    siege.end("table turned over", 1).await;
}
