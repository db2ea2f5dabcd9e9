//! Bodies that are asked for and not read.

use testkit::client::request;

use crate::fortress::{Fortress, get};

/// Connections of HTTP/2, each with a hundred streams.
const CONNECTIONS: usize = 60;
/// Below what the daemon takes when it holds nothing: its own data, and what is stored.
const GIVEN_BACK: u64 = 56 << 20;

/// Asks for `target`, with a number of its own, on every stream of sixty connections.
async fn unread_over_http2(target: &str) {
    let fortress = Fortress::start().await;
    let mut deaf = Vec::new();
    for n in 0..CONNECTIONS {
        deaf.push(fortress.hundred(|at| get(&target.replace("{}", &format!("{n}-{at}")))).await);
        if n % 20 == 19 {
            fortress.stands(&format!("{} connections", n + 1)).await;
        }
    }
    fortress.reached("client_memory").await;
    drop(deaf);
    fortress.gives_back(GIVEN_BACK).await;
    fortress.stands("afterwards").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_of_passing_bodies_take_what_is_allowed() {
    unread_over_http2("/pass/{}?bytes=200000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_of_bodies_too_large_to_keep_take_what_is_allowed() {
    unread_over_http2("/kept/{}?bytes=80000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_over_http1_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let mut deaf = Vec::new();
    for n in 0..1_400 {
        let target = match n % 2 {
            0 => format!("/kept/{n}?bytes=400000"),
            _ => format!("/kept/{n}?bytes=80000000"),
        };
        deaf.push(fortress.deaf(&request("GET", &target, "")).await);
        if n % 350 == 349 {
            fortress.within_bounds(&format!("{} connections", n + 1));
        }
    }
    drop(deaf);
    fortress.gives_back(GIVEN_BACK).await;
    fortress.stands("afterwards").await;
}
