//! Tests of many concurrent passwords: guessing clients delay each other, and no user.

use data_encoding::BASE64;
use testkit::client::{RawClient, WriteSplit, request};
use testkit::origin::Script;

use super::{Stage, stage};
use crate::support::disked::Policy;
use crate::support::folder::Folder;
use crate::support::{PATIENCE, eventually, whole};

/// `htpasswd -nbB -C 8 ann password`, and another one for bob: hashes that take a while.
const USERS: &str = "ann:$2y$08$HSJekJzAtNf8bEBqq6KSy.1TkfXcR9uhbU5WjrIEhN9lDcyEO1J/S\n\
    bob:$2b$08$abcdefghijklmnopqrstuub/LlVfC1A62K0uqLz37ReP6nxxZrYNe\n";

/// A site for these users, behind a balancer that names each client.
async fn site(folder: &Folder, limits: &str) -> Stage {
    folder.file("users", USERS);
    let top = format!("trusted_proxies = \"127.0.0.1\"\n[limits]\n{limits}\n");
    let users = folder.path().join("users");
    let site = format!("basic_auth = {{ file = \"{}\" }}\n", users.display());
    let stage = stage(Policy::Declared, folder, &top, &site).await;
    stage.origin.otherwise(Script::cacheable("page"));
    stage
}

fn shown(user: &str, password: &str, client: usize) -> String {
    let credentials = BASE64.encode(format!("{user}:{password}").as_bytes());
    let (high, low) = (client / 250, client % 250 + 1);
    format!("Authorization: Basic {credentials}\r\nX-Forwarded-For: 198.51.{high}.{low}\r\n")
}

/// So many guessing clients, each with an address of its own. They stay connected.
async fn guessers(stage: &Stage, count: usize) -> Vec<RawClient> {
    let mut guessers = Vec::new();
    for client in 0..count {
        let raw = RawClient::connect(stage.daemon.addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        let fields = shown("ann", &format!("guess{client}"), client);
        raw.send(&request("GET", "/page", &fields), WriteSplit::Whole).await.expect("taken");
        guessers.push(raw);
    }
    guessers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_admitted_before_guesses() {
    const GUESSERS: usize = 200;
    let folder = Folder::new();
    let limits = "password_checks = 1\npassword_keep = \"1ms\"\npassword_wait = \"10m\"";
    let stage = site(&folder, limits).await;
    let user = |name: &'static str| {
        let stage = &stage;
        async move { stage.ask("GET", "/page", &shown(name, "password", 900)).await.status }
    };
    assert_eq!(user("ann").await, 200);
    let guessers = guessers(&stage, GUESSERS).await;
    eventually("they wait", async || stage.limit_hits("password_checks").await >= 100).await;
    // Ann's password is cached, Bob's is not, and he comes last.
    for name in ["ann", "bob"] {
        assert_eq!(user(name).await, 200, "{name}");
        let checked = stage.metric("larder_gate_checked_total").await;
        assert!(checked < GUESSERS as u64, "{name} waited for all {checked}");
    }
    drop(guessers);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_waiter_is_rejected_for_a_new_one() {
    let folder = Folder::new();
    let limits = "password_checks = 1\npassword_queue = 2\npassword_wait = \"10m\"";
    let stage = site(&folder, limits).await;
    let mut all = guessers(&stage, 12).await;
    let mut refused = 0;
    for guesser in &mut all {
        let reply = whole(guesser.reply("GET").await, "/page");
        assert!([401, 503].contains(&reply.status), "{}", reply.status);
        if reply.status == 503 {
            refused += 1;
            assert_eq!(reply.field("retry-after").as_deref(), Some("1"));
            assert!(reply.text().contains("password_queue"), "{}", reply.text());
        }
    }
    assert!(refused > 0);
    assert_eq!(stage.limit_hits("password_queue").await, refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_check_waits_longer_than_the_limit() {
    let folder = Folder::new();
    let stage = site(&folder, "password_checks = 1\npassword_wait = \"1ms\"").await;
    let mut all = guessers(&stage, 12).await;
    let mut late = 0;
    for guesser in &mut all {
        let reply = whole(guesser.reply("GET").await, "/page");
        if reply.status == 503 {
            late += 1;
            assert!(reply.text().contains("password_wait"), "{}", reply.text());
        }
    }
    assert!(late > 0);
    assert_eq!(stage.limit_hits("password_wait").await, late);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_core_has_checked_all_know() {
    let folder = Folder::new();
    folder.file("users", USERS);
    let users = folder.path().join("users");
    let setup = crate::support::Setup {
        site: &format!("basic_auth = {{ file = \"{}\" }}", users.display()),
        ..Default::default()
    };
    let stage = setup.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    for _ in 0..40 {
        assert_eq!(stage.ask("GET", "/page", &shown("ann", "password", 1)).await.status, 200);
    }
    assert_eq!(stage.metric("larder_gate_checked_total").await, 1);
}
