//! Frames that carry nothing and must be read all the same, their answers unread (CVE-2019-9512,
//! -9515, -9518 and others).

use testkit::h2::{Frame, Request, error, kind, setting};

use super::siege::{Flood, stream};

#[tokio::test(flavor = "multi_thread")]
async fn pings() {
    Flood {
        name: "PING flood",
        burst: |round| Frame::ping(u64::from(round).to_be_bytes()).bytes().repeat(200),
        ..Flood::USUAL
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_settings() {
    Flood {
        name: "SETTINGS flood, empty",
        burst: |_| Frame::settings(&[]).bytes().repeat(200),
        ..Flood::USUAL
    }
    .run()
    .await;
}

/// A change of the initial window affects every stream.
#[tokio::test(flavor = "multi_thread")]
async fn settings_that_change_all_windows() {
    Flood {
        name: "SETTINGS flood, windows of 100 streams",
        settings: &[(setting::INITIAL_WINDOW_SIZE, 0)],
        burst: |round| match round {
            0 => (0..100).flat_map(|n| Request::get("/large").bytes(stream(n), true)).collect(),
            _ => {
                let window =
                    |size| Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, size); 100]).bytes();
                [window(0), window(1)].concat().repeat(10)
            }
        },
        ..Flood::USUAL
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_data() {
    Flood {
        name: "DATA flood, empty",
        burst: |round| match round {
            0 => Request::post("/hang").bytes(1, false),
            _ => Frame::data(1, b"", false).bytes().repeat(200),
        },
        ..Flood::USUAL
    }
    .run()
    .await;
}

/// Nothing but padding: it takes of the windows and gives nothing.
#[tokio::test(flavor = "multi_thread")]
async fn padding_alone() {
    Flood {
        name: "DATA flood, padding alone",
        burst: |round| match round {
            0 => Request::post("/hang").bytes(1, false),
            _ => Frame::padded_data(1, b"", 255, false).bytes().repeat(50),
        },
        codes: &[error::ENHANCE_YOUR_CALM, error::FLOW_CONTROL_ERROR],
        limits: &["h2_resets", "h2_control_frames"],
        ..Flood::USUAL
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn priorities_of_the_old_kind() {
    Flood {
        name: "PRIORITY flood",
        burst: |round| {
            let numbers = round * 100..(round + 1) * 100;
            numbers.flat_map(|n| Frame::priority(stream(n), stream(n + 7), 9).bytes()).collect()
        },
        ..Flood::USUAL
    }
    .run()
    .await;
}

/// Of streams that may never be opened: each has some state, whose amount must be limited.
#[tokio::test(flavor = "multi_thread")]
async fn priorities_of_the_new_kind() {
    Flood {
        name: "PRIORITY_UPDATE flood",
        burst: |round| {
            let numbers = round * 100..(round + 1) * 100;
            numbers.flat_map(|n| Frame::priority_update(stream(n), "u=1, i").bytes()).collect()
        },
        codes: &[error::ENHANCE_YOUR_CALM, error::PROTOCOL_ERROR],
        limits: &["h2_resets", "h2_control_frames"],
        ..Flood::USUAL
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_opened_byte_by_byte() {
    Flood {
        name: "WINDOW_UPDATE flood",
        settings: &[(setting::INITIAL_WINDOW_SIZE, 0)],
        burst: |round| match round {
            0 => Request::get("/large").bytes(1, true),
            _ => Frame::window_update(1, 1).bytes().repeat(200),
        },
        ..Flood::USUAL
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_frames() {
    Flood {
        name: "flood of unknown frames",
        burst: |_| Frame::new(0xbe, 0, 0, b"grease".to_vec()).bytes().repeat(200),
        ..Flood::USUAL
    }
    .run()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_of_nothing_on_many_streams() {
    Flood {
        name: "flood of empty HEADERS",
        burst: |round| {
            let numbers = round * 50..(round + 1) * 50;
            let one = |n| {
                let head = Request::post("/page").bytes(stream(n), false);
                [head, Frame::new(kind::HEADERS, 4, stream(n), []).bytes()].concat()
            };
            numbers.flat_map(one).collect()
        },
        codes: &[error::ENHANCE_YOUR_CALM, error::PROTOCOL_ERROR],
        limits: &["h2_resets", "h2_control_frames"],
        ..Flood::USUAL
    }
    .run()
    .await;
}
