//! Decoded bodies for clients that accept no coding and read nothing.

use testkit::client::request;
use tokio::net::TcpStream;

use super::fortress::{ATTACKS, Fortress, get, site};

/// Connections of HTTP/2, each with a hundred streams.
const CONNECTIONS: usize = 60;
/// The window of a stream of a client that says nothing (RFC 9113 6.9.2).
const WINDOW: u32 = 65_535;

/// Requests `target` on every stream of some connections with stream windows of `window` bytes.
async fn unread(
    fortress: &Fortress,
    (connections, window): (usize, u32),
    target: impl Fn(usize) -> String,
) -> Vec<TcpStream> {
    let mut deaf = Vec::new();
    for n in 0..connections {
        deaf.push(fortress.hundred_of(window, |at| get(&target(at))).await);
        if n % 20 == 19 {
            fortress.stands(&format!("{} connections", n + 1)).await;
        }
    }
    fortress.stands("all of them").await;
    deaf
}

/// Does the same over `count` connections of HTTP/1.
async fn unread_over_http1(
    fortress: &Fortress,
    count: usize,
    target: impl Fn(usize) -> String,
) -> Vec<TcpStream> {
    let mut deaf = Vec::new();
    for n in 0..count {
        deaf.push(fortress.deaf(&request("GET", &target(n), ATTACKS)).await);
        if n % 125 == 124 {
            fortress.stands(&format!("{} connections", n + 1)).await;
        }
    }
    fortress.stands("all of them").await;
    deaf
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_decoded_for_streams_whose_windows_are_shut() {
    let fortress = Fortress::start().await;
    fortress.ask("/text/one?bytes=3000000").await;
    let before = fortress.figure("larder_bodies_decoded_total").await;
    let one = |_| "/text/one?bytes=3000000".to_owned();
    let deaf = unread(&fortress, (CONNECTIONS, 0), one).await;
    assert_eq!(fortress.figure("larder_bodies_decoded_total").await, before);
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_of_text_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    fortress.ask("/text/one?bytes=3000000").await;
    let one = |_| "/text/one?bytes=3000000".to_owned();
    let deaf = unread(&fortress, (CONNECTIONS, WINDOW), one).await;
    fortress.recovers_from(deaf).await;
    let many = |n| format!("/text/{n}?bytes=100000");
    let deaf = unread(&fortress, (CONNECTIONS, WINDOW), many).await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_texts_over_http1_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    fortress.ask("/text/one?bytes=6000000").await;
    let one = |_| "/text/one?bytes=6000000".to_owned();
    let deaf = unread_over_http1(&fortress, 1_000, one).await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_texts_that_a_program_has_folded_take_what_is_allowed() {
    let program = "vcl 4.1;\nbackend app { .host = \"127.0.0.1\"; .port = \"PORT\"; \
                   .connect_timeout = 30s; .first_byte_timeout = 30s; }\n\
                   sub vcl_backend_response { set beresp.do_gzip = true; }\n";
    let fortress = Fortress::of_program(program).await;
    fortress.ask("/text/one?bytes=300000").await;
    for window in [0, WINDOW] {
        let one = |_| "/text/one?bytes=300000".to_owned();
        let deaf = unread(&fortress, (20, window), one).await;
        fortress.recovers_from(deaf).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decoders_with_the_largest_windows_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    for coding in ["zstd", "br"] {
        let target = format!("/{coding}/one?bytes=3000000");
        fortress.ask(&target).await;
        let one = |_| target.clone();
        let deaf = unread_over_http1(&fortress, 250, one).await;
        fortress.recovers_from(deaf).await;
        let deaf = unread(&fortress, (5, WINDOW), one).await;
        fortress.recovers_from(deaf).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_pages_of_fragments_that_are_decoded_take_what_is_allowed() {
    // A page of a thousand takes a debug build a tenth of a second: there are fewer of these.
    for (fragments, each, readers, connections) in [(64, 100_000, 250, 10), (1_000, 3_000, 20, 0)] {
        let fortress = Fortress::start().await;
        for n in 0..fragments {
            fortress.ask(&format!("/text/{n}-{each}?bytes={each}")).await;
        }
        let page = |_| format!("/page/one?fragments={fragments}&each={each}");
        let deaf = unread_over_http1(&fortress, readers, page).await;
        fortress.recovers_from(deaf).await;
        let deaf = unread(&fortress, (connections, WINDOW), page).await;
        fortress.recovers_from(deaf).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_a_server_that_gates_ask_take_what_is_allowed() {
    let fortress = Fortress::with(|origin| {
        let auth = "forward_auth = { origin = \"app\", path = \"/refused/auth?bytes=200000\" }";
        format!("{}[[site.route]]\npath = \"/locked*\"\n{auth}\n", site(origin))
    });
    let fortress = fortress.await;
    let deaf = unread(&fortress, (40, 0), |n| format!("/locked/{n}")).await;
    fortress.recovers_from(deaf).await;
}
