//! Health of servers, and the selection by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use origin::{
    Balance, Error, HealthChange, Journal, ProbeConfig, ProbeVerdict, ServerMessage, run_background,
};
use parking_lot::Mutex;

use crate::kit::*;

#[tokio::test]
async fn requests_take_turns_by_weight() {
    let (a, b) = (Scripted::answering(OK).await, Scripted::answering(OK).await);
    let client = Client::new(&[&a.url, &b.url], |config| {
        config.servers[1].weight = 3;
        config.idle_max = 0;
    });
    for _ in 0..20 {
        client.get().await.expect("a response");
    }
    assert_eq!((a.connections(), b.connections()), (5, 15));
}

#[tokio::test]
async fn failures_in_a_row_eject_and_one_request_tries_again() {
    let up = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&up);
    let server = Scripted::new(move |_, mut conn| {
        let up = state.load(Ordering::SeqCst);
        async move {
            if up {
                conn.answer_all(OK).await;
            } else {
                conn.head().await;
            }
        }
    })
    .await;
    let other = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url, &other.url], |config| {
        config.eject.failures = 2;
        config.eject.for_ms = 300;
        config.idle_max = 0;
    });
    for _ in 0..10 {
        client.get().await.expect("the other one's response");
    }
    assert_eq!(server.connections(), 2, "ejected after two failures");
    let status = &client.origin.servers()[0];
    assert_eq!((status.healthy, status.failures), (false, 2));
    assert!(status.ejected_ms > 0 && status.last_error.is_some());
    assert!(client.origin.is_healthy());

    tokio::time::sleep(Duration::from_millis(350)).await;
    for _ in 0..10 {
        client.get().await.expect("the other one's response");
    }
    assert_eq!(server.connections(), 3, "one trial, which failed");

    up.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(350)).await;
    for _ in 0..10 {
        client.get().await.expect("a response");
    }
    assert!(server.connections() >= 7, "back in turn");
    assert_eq!(client.origin.servers()[0].failures, 0);
}

#[tokio::test]
async fn when_all_are_ejected_requests_are_tried_all_the_same() {
    let refusing = refusing().await;
    let client = Client::new(&[&refusing], |config| config.eject.failures = 1);
    let error = client.get().await.expect_err("nobody listens");
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(!client.origin.is_healthy());
    let error = client.get().await.expect_err("nobody listens");
    assert!(matches!(error, Error::Connect { .. }), "{error}");
}

#[tokio::test]
async fn probes_decide_who_gets_requests() {
    let status = Arc::new(AtomicU64::new(200));
    let shown = Arc::clone(&status);
    let server = Scripted::new(move |_, mut conn| {
        let status = Arc::clone(&shown);
        async move {
            while let Some(head) = conn.head().await {
                let code = if head.starts_with("GET /up ") {
                    assert!(head.contains("\r\nHost: health\r\n"), "{head}");
                    status.load(Ordering::SeqCst)
                } else {
                    200
                };
                let response = format!("HTTP/1.1 {code} Some\r\nContent-Length: 2\r\n\r\nok");
                conn.send(&response).await;
            }
        }
    })
    .await;
    let client = Client::new(&[&server.url], |config| {
        config.idle_max = 0;
        config.probe = Some(ProbeConfig {
            path: "/up".to_owned(),
            host: Some("health".to_owned()),
            interval_ms: 10,
            timeout_ms: 5_000,
            window: 4,
            threshold: 2,
            expected_status: 200,
            ..ProbeConfig::default()
        });
    });
    let probed = || client.origin.servers()[0].probed;
    assert_eq!(probed(), ProbeVerdict::Unknown);
    client.get().await.expect("not probed yet is no reason to refuse");

    let heard = Arc::new(Heard::default());
    let journal: Arc<dyn Journal> = heard.clone();
    let background = tokio::spawn(run_background(Arc::clone(&client.origin), Some(journal)));
    eventually(|| probed() == ProbeVerdict::Healthy).await;
    client.get().await.expect("a response");

    status.store(503, Ordering::SeqCst);
    eventually(|| probed() == ProbeVerdict::Sick).await;
    let error = client.get().await.expect_err("no healthy server");
    assert!(matches!(error, Error::NoHealthyServer { .. }), "{error}");
    assert_eq!(error.to_string(), "shop: no healthy server");
    assert_eq!(error.status().code(), 503);
    assert!(!client.origin.is_healthy());
    let (at_ms, last) = client.origin.servers()[0].last_error.clone().expect("an error");
    assert_eq!(last, "probe: status 503");
    let now_ms = rt::now().unix_ms;
    assert!(at_ms <= now_ms && at_ms + 3_600_000 > now_ms, "{at_ms}, and it is {now_ms}");

    status.store(200, Ordering::SeqCst);
    eventually(|| probed() == ProbeVerdict::Healthy).await;
    client.get().await.expect("a response");

    background.abort();
    assert!(background.await.expect_err("it runs for ever").is_cancelled());
    let heard = heard.0.lock().clone();
    let turns: Vec<_> = heard.iter().map(|line| line.split(" probes good, ").collect()).collect();
    let [well, sick, again] = turns.as_slice() else { panic!("{heard:?}") };
    let turn = |to: &str| {
        format!("Backend_health shop {} went {to}: ", server.url.trim_start_matches("http://"))
    };
    for (parts, turn, end) in [
        (well, turn("healthy: 2 of 4"), "good"),
        (sick, turn("sick: 1 of 4"), "status 503"),
        (again, turn("healthy: 2 of 4"), "good"),
    ] {
        let parts: &Vec<&str> = parts;
        assert_eq!(parts[0], turn.trim_end_matches(": "));
        assert!(parts[1].starts_with("2 needed, 0.") && parts[1].ends_with(end), "{parts:?}");
    }
    client.get().await.expect("a response, after every connection that was on its way");
    let seen = server.connections();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.connections(), seen, "its tasks ended with it");
}

/// Messages to the journal.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Journal for Heard {
    fn said(&self, _: &ServerMessage<'_>) {}

    fn probed(&self, turn: &HealthChange<'_>) {
        self.0.lock().push(turn.to_string());
    }

    fn line_feeds(&self, _: &str) {}
}

#[tokio::test]
async fn a_server_that_does_not_answer_probes_is_sick() {
    let server = Scripted::new(|_, conn| conn.hang()).await;
    let refusing = refusing().await;
    let client = Client::new(&[&server.url, &refusing], |config| {
        config.probe =
            Some(ProbeConfig { interval_ms: 10, timeout_ms: 50, ..ProbeConfig::default() });
    });
    let background = tokio::spawn(run_background(Arc::clone(&client.origin), None));
    eventually(|| client.origin.servers().iter().all(|s| s.probed == ProbeVerdict::Sick)).await;
    let rows = client.origin.servers();
    assert_eq!(
        rows[0].last_error.as_ref().map(|(_, why)| &**why),
        Some("probe: no answer within 50ms")
    );
    let refused = &*rows[1].last_error.as_ref().expect("an error").1;
    assert!(refused.contains("cannot connect"), "{refused}");
    background.abort();
}

#[tokio::test]
async fn the_same_hash_goes_to_the_same_server() {
    let servers = [Scripted::answering(OK).await, Scripted::answering(OK).await];
    let client = Client::new(&[&servers[0].url, &servers[1].url], |config| {
        config.balance = Balance::Hash;
    });
    for _ in 0..10 {
        client.get().await.expect("a response");
    }
    let taken = [servers[0].connections(), servers[1].connections()];
    assert!(taken == [1, 0] || taken == [0, 1], "{taken:?}");
}
