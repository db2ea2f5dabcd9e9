//! Retries: their reasons, their servers, and their number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Counter;
use message::{Framing, Method};
use origin::{Balance, Error, Events, RequestBody};

use crate::kit::*;

/// A server that receives requests and closes the connection; with the number of requests.
async fn dropping() -> (Scripted, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    let server = Scripted::new(move |_, mut conn| {
        let count = Arc::clone(&count);
        async move {
            if conn.head().await.is_some() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    (server, taken)
}

/// A server whose first connection answers once and fails at the second request.
async fn stale_once() -> Scripted {
    Scripted::new(|number, mut conn| async move {
        conn.head().await;
        conn.send(OK).await;
        if number == 0 {
            conn.head().await;
        } else {
            conn.answer_all(OK).await;
        }
    })
    .await
}

#[derive(Default)]
struct Log(Vec<String>);

impl Events for Log {
    fn connected(&mut self, _server: &str, reused: bool) {
        self.0.push(if reused { "kept" } else { "new" }.to_owned());
    }

    fn retry(&mut self, _error: &Error) {
        self.0.push("retry".to_owned());
    }
}

#[tokio::test]
async fn a_stale_connection_costs_a_new_one_and_nothing_else() {
    let server = stale_once().await;
    let client = Client::new(&[&server.url], |config| {
        config.retries = 0;
        config.retry_budget_percent = 0;
        config.eject.failures = 1;
    });
    client.get().await.expect("a response");
    let mut log = Log::default();
    let get = request(Method::Get);
    let caller = origin::OriginRequestContext::default();
    let sending = client.pool.send(&client.origin, &get, RequestBody::None, 0, &caller, &mut log);
    let mut exchange = sending.await.expect("a response");
    assert_eq!((exchange.reused, exchange.tries), (false, 2));
    assert_eq!(read(&mut exchange).await.expect("a body"), "ok");
    assert_eq!(log.0, ["kept", "retry", "new"]);
    assert_eq!(server.connections(), 2);
    assert_eq!(client.count(Counter::OriginRetries), 1);
    let status = &client.origin.servers()[0];
    assert_eq!((status.failures, status.healthy), (0, true));
}

#[tokio::test]
async fn a_post_is_not_repeated_on_a_stale_connection() {
    let server = stale_once().await;
    let client = Client::new(&[&server.url], |_| {});
    client.get().await.expect("a response");
    let error = client
        .send(&request(Method::Post), RequestBody::None)
        .await
        .expect_err("it may have been acted on");
    assert!(matches!(error, Error::ClosedBeforeHead { .. }), "{error}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_request_whose_body_was_not_begun_is_repeated_on_a_stale_connection() {
    let server = Scripted::new(|number, mut conn| async move {
        conn.head().await;
        conn.send(OK).await;
        conn.head().await;
        if number > 0 {
            panic!("only two requests come");
        }
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    client.get().await.expect("a response");
    // The source has no bytes yet, as with a client that waits for 100 (Continue).
    let mut source = Pieces { open: true, ..Pieces::default() };
    let request = upload(Method::Post, Framing::Length(4));
    let exchange = client.send(&request, stream(&mut source)).await.expect("a response");
    assert_eq!((exchange.reused, exchange.tries), (false, 2));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_failed_try_goes_to_another_server() {
    let (bad, taken) = dropping().await;
    let good = Scripted::answering(OK).await;
    let client = Client::new(&[&bad.url, &good.url], |_| {});
    for _ in 0..4 {
        assert_eq!(client.get().await.expect("a response"), "ok");
    }
    let taken = taken.load(Ordering::SeqCst) as u64;
    assert!(taken >= 2, "round robin begins with it");
    assert_eq!(client.count(Counter::OriginRetries), taken);
    assert_eq!(client.count(Counter::FetchFailures), 0);
}

#[tokio::test]
async fn a_post_that_reached_a_server_is_sent_to_no_other() {
    for framing in [Framing::None, Framing::Length(4), Framing::Chunked] {
        let (one, first) = dropping().await;
        let (two, second) = dropping().await;
        let client = Client::new(&[&one.url, &two.url], |_| {});
        let mut source = Pieces::of(&["body"]);
        let body = match framing {
            Framing::None => RequestBody::None,
            _ => stream(&mut source),
        };
        let outcome = client.send(&upload(Method::Post, framing), body).await;
        assert!(outcome.expect_err("no response").is_unreachable());
        let taken = first.load(Ordering::SeqCst) + second.load(Ordering::SeqCst);
        assert_eq!(taken, 1, "{framing:?}");
        assert_eq!(client.count(Counter::OriginRetries), 0);
    }
}

#[tokio::test]
async fn a_post_of_which_only_the_head_was_sent_goes_to_no_other_server_either() {
    let (one, first) = dropping().await;
    let (two, second) = dropping().await;
    let client = Client::new(&[&one.url, &two.url], |_| {});
    let mut source = Pieces { open: true, ..Pieces::default() };
    let request = upload(Method::Post, Framing::Length(4));
    client.send(&request, stream(&mut source)).await.expect_err("no response");
    assert_eq!(first.load(Ordering::SeqCst) + second.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_put_whose_body_is_gone_is_not_tried_again() {
    let (server, taken) = dropping().await;
    let client = Client::new(&[&server.url], |_| {});
    let mut source = Pieces::of(&["body"]);
    let request = upload(Method::Put, Framing::Length(4));
    let error = client.send(&request, stream(&mut source)).await.expect_err("no response");
    assert!(error.is_unreachable(), "{error}");
    assert_eq!(taken.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_refused_connection_is_tried_elsewhere_whatever_the_method() {
    let refusing = refusing().await;
    let good = Scripted::answering(OK).await;
    let client = Client::new(&[&refusing, &good.url], |_| {});
    let mut source = Pieces::of(&["body"]);
    let request = upload(Method::Post, Framing::Length(4));
    let exchange = client.send(&request, stream(&mut source)).await.expect("a response");
    assert_eq!((exchange.server, exchange.tries), (1, 1));
    assert_eq!(client.origin.servers()[0].failures, 1);
}

#[tokio::test]
async fn tries_are_bounded() {
    let (server, taken) = dropping().await;
    let client = Client::new(&[&server.url], |config| config.retries = 3);
    let error = client.get().await.expect_err("no response");
    assert!(matches!(error, Error::ClosedBeforeHead { .. }), "{error}");
    assert_eq!(error.status().code(), 502);
    assert_eq!(taken.load(Ordering::SeqCst), 4);
    assert_eq!(client.count(Counter::FetchFailures), 1);
}

#[tokio::test]
async fn retries_stay_within_the_budget() {
    let (server, taken) = dropping().await;
    let client = Client::new(&[&server.url], |config| {
        config.retry_budget_percent = 10;
        config.eject.failures = 0;
    });
    for _ in 0..200 {
        client.get().await.expect_err("no response");
    }
    // A tenth of the requests, and the burst of a full bucket.
    let taken = taken.load(Ordering::SeqCst);
    assert!((220..=231).contains(&taken), "{taken}");
}

#[tokio::test]
async fn nothing_is_tried_again_once_the_server_has_answered() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send("HTTP/1.1 2").await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let error = client.get().await.expect_err("half a head");
    assert!(matches!(error, Error::ClosedBeforeHead { .. }), "{error}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_slow_server_is_not_asked_twice_but_another_one_is() {
    let slow = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.hang().await;
    })
    .await;
    let client = Client::new(&[&slow.url], |config| config.timeouts.first_byte_ms = 50);
    client.get().await.expect_err("no response");
    assert_eq!(slow.connections(), 1);

    let good = Scripted::answering(OK).await;
    let client = Client::new(&[&slow.url, &good.url], |config| {
        config.timeouts.first_byte_ms = 50;
        config.balance = Balance::RoundRobin;
    });
    assert_eq!(client.get().await.expect("a response"), "ok");
}

#[tokio::test]
async fn a_server_that_is_late_with_its_answers_is_ejected() {
    let slow = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.hang().await;
    })
    .await;
    let good = Scripted::answering(OK).await;
    let client = Client::new(&[&slow.url, &good.url], |config| {
        config.timeouts.first_byte_ms = 50;
        config.eject.failures = 2;
        config.eject.for_ms = 3_600_000;
    });
    for _ in 0..10 {
        assert_eq!(client.get().await.expect("a response"), "ok");
    }
    assert_eq!(slow.connections(), 2);
}
