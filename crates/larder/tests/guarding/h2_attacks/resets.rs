//! Requests made and taken back: by the client (CVE-2023-44487, rapid reset), or by a server that
//! the client brings to it (CVE-2025-8671, "MadeYouReset").

use testkit::h2::{Frame, Request, error, kind};

use super::siege::{Flood, Siege, stream};

/// Requests in each burst.
const BURST: u32 = 50;

/// Each burst opens streams with a request for `path`, each followed by `after`.
fn each(round: u32, path: &str, after: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let numbers = round * BURST..(round + 1) * BURST;
    numbers
        .map(stream)
        .flat_map(|stream| [Request::get(path).bytes(stream, true), after(stream)].concat())
        .collect()
}

const RESETS: Flood = Flood { rounds: 100, limits: &["h2_resets"], ..Flood::USUAL };

#[tokio::test(flavor = "multi_thread")]
async fn rapid_reset_of_what_the_origin_must_answer() {
    let flood = Flood {
        name: "rapid reset, misses",
        burst: |round| each(round, "/hang", |stream| Frame::reset(stream, error::CANCEL).bytes()),
        ..RESETS
    };
    let siege = Siege::start("").await;
    let made = siege.attack(flood).await;
    siege.reached(flood.name, flood.limits, made.calmed).await;
    let asked = siege.stage.origin.seen("/hang") as u64;
    println!("{}: {asked} requests reached the origin", flood.name);
    let most = made.connections * 101;
    assert!(asked <= most, "{asked} requests of {} connections", made.connections);
    siege.end(flood.name, made.connections).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rapid_reset_in_one_write() {
    Flood {
        name: "rapid reset, in one write",
        burst: |round| each(round, "/hang", |stream| Frame::reset(stream, error::CANCEL).bytes()),
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rapid_reset_of_stored_pages() {
    Flood {
        name: "rapid reset, hits",
        burst: |round| each(round, "/large", |stream| Frame::reset(stream, error::CANCEL).bytes()),
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_by_a_window_opened_by_nothing() {
    Flood {
        name: "MadeYouReset, WINDOW_UPDATE of 0",
        burst: |round| each(round, "/hang", |stream| Frame::window_update(stream, 0).bytes()),
        codes: &[error::ENHANCE_YOUR_CALM, error::PROTOCOL_ERROR],
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_by_a_window_opened_too_far() {
    Flood {
        name: "MadeYouReset, window overflow",
        burst: |round| {
            each(round, "/hang", |stream| Frame::window_update(stream, 0x7fff_ffff).bytes())
        },
        codes: &[error::ENHANCE_YOUR_CALM, error::FLOW_CONTROL_ERROR],
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_by_data_after_the_end() {
    Flood {
        name: "MadeYouReset, DATA on a half-closed stream",
        burst: |round| each(round, "/hang", |stream| Frame::data(stream, b"x", true).bytes()),
        codes: &[error::ENHANCE_YOUR_CALM, error::STREAM_CLOSED],
        limits: &["h2_resets", "h2_control_frames"],
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_by_a_head_after_the_end() {
    Flood {
        name: "MadeYouReset, HEADERS on a half-closed stream",
        burst: |round| each(round, "/hang", |stream| Request::get("/page").bytes(stream, true)),
        codes: &[error::ENHANCE_YOUR_CALM, error::STREAM_CLOSED],
        limits: &["h2_resets", "h2_control_frames"],
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_by_a_priority_of_the_wrong_length() {
    Flood {
        name: "MadeYouReset, PRIORITY of 4 bytes",
        burst: |round| {
            each(round, "/hang", |stream| Frame::new(kind::PRIORITY, 0, stream, [0; 4]).bytes())
        },
        codes: &[error::ENHANCE_YOUR_CALM, error::FRAME_SIZE_ERROR],
        limits: &["h2_resets", "h2_control_frames"],
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_by_a_stream_that_depends_on_itself() {
    Flood {
        name: "MadeYouReset, PRIORITY on itself",
        burst: |round| each(round, "/page", |stream| Frame::priority(stream, stream, 16).bytes()),
        rounds: 400,
        codes: &[error::ENHANCE_YOUR_CALM, error::PROTOCOL_ERROR],
        limits: &["h2_resets", "h2_control_frames"],
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_by_malformed_requests() {
    Flood {
        name: "malformed requests",
        burst: |round| {
            let numbers = round * BURST..(round + 1) * BURST;
            numbers.flat_map(|n| Frame::headers(stream(n), [], true).bytes()).collect()
        },
        ..RESETS
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_of_streams_long_over() {
    Flood {
        name: "resets of closed streams",
        burst: |round| match round {
            0 => Request::get("/page").bytes(1, true),
            _ => Frame::reset(1, error::CANCEL).bytes().repeat(50),
        },
        limits: &["h2_resets", "h2_control_frames"],
        codes: &[error::ENHANCE_YOUR_CALM, error::STREAM_CLOSED],
        ..RESETS
    }
    .run()
    .await;
}

/// More streams than allowed, again and again: each refused, none served.
#[tokio::test(flavor = "multi_thread")]
async fn streams_beyond_the_limit() {
    Flood {
        name: "streams beyond the limit",
        burst: |round| each(round, "/hang", |_| Vec::new()),
        limits: &["h2_streams", "h2_resets"],
        ..RESETS
    }
    .run()
    .await;
}
