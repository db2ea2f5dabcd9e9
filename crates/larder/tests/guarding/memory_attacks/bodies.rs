//! Bodies that are asked for and not read.

use testkit::client::request;
use tokio::net::TcpStream;

use super::fortress::{ATTACKS, Fortress, get};

/// Connections of HTTP/2, each with a hundred streams.
const CONNECTIONS: usize = 60;

/// Requests `target`, with a unique number, on every stream of sixty connections.
pub(crate) async fn unread(fortress: &Fortress, target: &str) -> Vec<TcpStream> {
    let mut deaf = Vec::new();
    for n in 0..CONNECTIONS {
        deaf.push(fortress.hundred(|at| get(&target.replace("{}", &format!("{n}-{at}")))).await);
        if n % 20 == 19 {
            fortress.stands(&format!("{} connections", n + 1)).await;
        }
    }
    deaf
}

/// Half of them stored and half too large for that, over HTTP/1.
pub(crate) async fn unread_over_http1(fortress: &Fortress) -> Vec<TcpStream> {
    let mut deaf = Vec::new();
    for n in 0..1_400 {
        let target = match n % 2 {
            0 => format!("/kept/{n}?bytes=400000"),
            _ => format!("/kept/{n}?bytes=80000000"),
        };
        deaf.push(fortress.deaf(&request("GET", &target, ATTACKS)).await);
        if n % 350 == 349 {
            fortress.within_bounds(&format!("{} connections", n + 1));
        }
    }
    deaf
}

/// Five thousand who follow one body that comes slowly.
pub(crate) async fn followers(fortress: &Fortress) -> Vec<TcpStream> {
    let mut deaf = Vec::new();
    for n in 0..50 {
        deaf.push(fortress.hundred(|_| get("/slow/one?bytes=4000000")).await);
        if n % 10 == 9 {
            fortress.stands(&format!("{} followers", (n + 1) * 100)).await;
        }
    }
    deaf
}

/// Fills the store with answers of one size after another.
pub(crate) async fn sizes(fortress: &Fortress) {
    for (bytes, count) in [(20_000, 4_500), (1_000, 30_000), (100_000, 900), (5_000, 12_000)] {
        fortress.flood(count, |n| format!("/kept/{bytes}-{n}?bytes={bytes}")).await;
        fortress.stands(&format!("{count} answers of {bytes} bytes")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_of_passing_bodies_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let deaf = unread(&fortress, "/pass/{}?bytes=200000").await;
    fortress.reached("client_memory").await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_of_bodies_too_large_to_keep_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let deaf = unread(&fortress, "/kept/{}?bytes=80000000").await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_of_bodies_that_are_kept_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let deaf = unread(&fortress, "/kept/{}?bytes=200000").await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_streams_of_bodies_that_a_program_collects_take_what_is_allowed() {
    let program = "vcl 4.1;\nbackend app { .host = \"127.0.0.1\"; .port = \"PORT\"; \
                   .connect_timeout = 30s; .first_byte_timeout = 30s; }\n\
                   sub vcl_backend_response { set beresp.do_stream = false; \
                   set beresp.uncacheable = true; }\n";
    let fortress = Fortress::of_program(program).await;
    let deaf = unread(&fortress, "/pass/{}?bytes=200000").await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_over_http1_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let deaf = unread_over_http1(&fortress).await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_of_one_body_share_it() {
    let fortress = Fortress::start().await;
    let deaf = followers(&fortress).await;
    fortress.recovers_from(deaf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_of_answers_may_change() {
    let fortress = Fortress::start().await;
    sizes(&fortress).await;
    fortress.gives_back().await;
}
