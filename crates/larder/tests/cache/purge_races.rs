//! Races of purges with fetches and deliveries: a request after a purge was answered never gets a
//! response fetched before it.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{Setup, Stage, is_full_run, is_hit, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::origin::Script;
use testkit::reply::Reply;

const SITE: &str = "purge = { dialects = [\"purge\", \"shopware\", \"souin\", \"drupal\"] }\n\
                    cookies = { key = [\"lang\"] }\n";

const HEAD: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nxkey: tag\r\n";

/// The ways to purge `/page`, in turn.
const PURGES: [(&str, &str, &str); 6] = [
    ("PURGE", "/page", ""),
    ("PURGE", "/", "xkey: tag\r\n"),
    ("PURGE", "/pa.*", "X-Purge-Method: regex\r\n"),
    ("BAN", "/page$", ""),
    ("PURGE", "/souin-api/souin/flush", ""),
    ("BAN", "/", "Cache-Tags: other|tag\r\n"),
];

fn page(version: usize) -> Script {
    let body = version.to_string();
    // The head comes first, then time in which a purge may come.
    Script::respond(format!("{HEAD}Content-Length: {}\r\n\r\n", body.len()))
        .delay_ms(version as u64 % 3)
        .send(body)
}

fn version(reply: &Reply) -> usize {
    reply.text().parse().expect("a version")
}

async fn ask(raw: &mut RawClient, method: &str, target: &str, fields: &str) -> Reply {
    raw.send(&request(method, target, fields), WriteSplit::Whole).await.expect("it is taken");
    whole(raw.reply(method).await, target)
}

/// Reads the page again and again, by itself and as one of many.
async fn read(stage: &Stage, done: &AtomicBool, fields: &str) -> usize {
    let mut raw = stage.connect().await;
    let mut newest = 0;
    let mut reads = 0;
    while !done.load(Ordering::Relaxed) {
        let seen = version(&ask(&mut raw, "GET", "/page", fields).await);
        newest = newest.max(seen);
        reads += 1;
    }
    assert!(newest > 0);
    reads
}

#[tokio::test]
async fn no_old_page_is_seen_after_a_purge_was_answered() {
    let rounds = if is_full_run() { 10_000 } else { 300 };
    let limits = "keepalive_requests = 10_000_000\n";
    let stage = Arc::new(Setup { site: SITE, limits, ..Setup::default() }.start().await);
    stage.origin.on("/page", page(0));
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = ["", "", "", "Cookie: lang=de\r\n", "Cookie: lang=fr\r\n"]
        .into_iter()
        .map(|fields| {
            let (stage, done) = (Arc::clone(&stage), Arc::clone(&done));
            tokio::spawn(async move { read(&stage, &done, fields).await })
        })
        .collect();
    let (mut purger, mut witness) = (stage.connect().await, stage.connect().await);
    let mut hits = 0;
    for round in 1..=rounds {
        stage.origin.on("/page", page(round));
        let (method, target, fields) = PURGES[round % PURGES.len()];
        let purged = ask(&mut purger, method, target, fields).await;
        assert!(matches!(purged.status, 200 | 204), "{method} {target}");
        for fields in ["", "Cookie: lang=de\r\n"] {
            let reply = ask(&mut witness, "GET", "/page", fields).await;
            let seen = version(&reply);
            assert!(seen >= round, "round {round}, {method} {target}: {seen}");
            hits += usize::from(is_hit(&reply));
        }
        if round % 7 == 0 {
            support::pause(1).await;
        }
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.expect("a reader") > 0);
    }
    // Otherwise nothing was raced for.
    assert!(hits > 0 && stage.origin.seen("/page") > rounds / 2);
}

#[tokio::test]
async fn waiting_for_a_fetch_that_began_before_a_purge_does_not_give_its_answer() {
    let stage = Arc::new(Setup { site: SITE, ..Setup::default() }.start().await);
    let slow = |body: &str| {
        Script::default().delay_ms(700).send(format!("{HEAD}Content-Length: 3\r\n\r\n{body}"))
    };
    for (method, target, fields) in PURGES {
        stage.origin.on("/page", slow("old"));
        let seen = stage.origin.seen("/page");
        let early = {
            let stage = Arc::clone(&stage);
            tokio::spawn(async move { stage.get("/page").await.text() })
        };
        support::eventually("the fetch", async || stage.origin.seen("/page") > seen).await;
        stage.origin.on("/page", slow("new"));
        stage.ask(method, target, fields).await;
        // It may wait for the old fetch, but not be content with it.
        assert_eq!(stage.get("/page").await.text(), "new", "{method} {target}");
        assert_eq!(early.await.expect("an answer"), "old");
        let stored = stage.get("/page").await;
        assert!(is_hit(&stored) && stored.text() == "new", "{method} {target}");
        stage.ask("PURGE", "/souin-api/souin/flush", "").await;
    }
}
