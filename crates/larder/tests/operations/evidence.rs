//! Tests of evidence for advice: what records of fetches keep, and what the store says of itself.

use crate::support;

use observe::heads::HeadSide;
use observe::ring::{FollowStart, RingFollower};
use serde_json::Value;
use support::console::{Ask, look, printed};
use support::folder::Folder;
use support::{Setup, Stage, eventually};
use testkit::origin::Script;

/// The evidence of a fetch, as a reader of the ring sees it.
#[derive(Clone, Debug)]
struct Fetched {
    target: String,
    served: &'static str,
    /// `None` without evidence.
    evidence: Option<Evidence>,
}

#[derive(Clone, Debug)]
struct Evidence {
    fingerprint: Option<u64>,
    removed: String,
    sent: Vec<String>,
    received: Vec<String>,
}

impl Fetched {
    fn evidence(&self) -> &Evidence {
        self.evidence.as_ref().unwrap_or_else(|| panic!("no evidence: {self:?}"))
    }
}

/// Waits for `count` records, and returns all in the order in which they ended.
async fn fetched(stage: &Stage, count: usize) -> Vec<Fetched> {
    let folder = stage.daemon.log_ring();
    let found = std::cell::RefCell::new(Vec::new());
    eventually("records", async || {
        let mut follower = RingFollower::open(&folder, FollowStart::Oldest).expect("a ring");
        let mut all = Vec::new();
        let polled = follower.poll(&mut |record| {
            let lines = |side| {
                let fields = record.fetch_evidence().into_iter().flat_map(|it| it.fields_of(side));
                let line = |field: observe::heads::Field<'_>| {
                    let [name, value] = [field.name, field.value].map(String::from_utf8_lossy);
                    format!("{name}: {value}")
                };
                fields.map(line).collect()
            };
            all.push(Fetched {
                target: String::from_utf8_lossy(record.target).into_owned(),
                served: record.served.word(),
                evidence: record.fetch_evidence().map(|evidence| Evidence {
                    fingerprint: evidence.fingerprint.map(|print| print.0),
                    removed: String::from_utf8_lossy(evidence.removed).into_owned(),
                    sent: lines(HeadSide::Bereq),
                    received: lines(HeadSide::Beresp),
                }),
            });
        });
        polled.expect("a readable ring");
        *found.borrow_mut() = all;
        found.borrow().len() >= count
    })
    .await;
    found.into_inner()
}

const ALL: &str = "log_ring = { fingerprints = \"100%\" }";
const HTML: &str = "Content-Type: text/html\r\n";

#[tokio::test]
async fn equal_pages_for_different_visitors_have_equal_fingerprints() {
    let stage = Setup { top: ALL, one_core: true, ..Setup::default() }.start().await;
    let private = format!("{HTML}Cache-Control: private\r\nSet-Cookie: sid=secret; Path=/\r\n");
    let page = |body: &str| Script::ok(&private, body);
    stage.origin.on("/", page("Order 1"));
    let visit = async |cookie: &str| {
        stage.ask("GET", "/", &format!("Cookie: sid={cookie}\r\n")).await;
    };
    visit("anna").await;
    visit("bob").await;
    stage.origin.on("/", page("Order 22"));
    visit("bob").await;
    let all = fetched(&stage, 3).await;
    let [anna, bob, later] = [0, 1, 2].map(|at| all[at].evidence().clone());
    assert!(anna.fingerprint.is_some() && anna.fingerprint == bob.fingerprint, "{all:?}");
    assert!(bob.fingerprint != later.fingerprint, "{all:?}");
    let cookies = [&anna, &bob, &later].map(|own| {
        let line = own.sent.iter().find(|line| line.starts_with("cookie: sid="));
        line.expect("a cookie").clone()
    });
    assert!(cookies[0] != cookies[1] && cookies[1] == cookies[2], "{cookies:?}");
    for own in [&anna, &bob, &later] {
        let text = format!("{own:?}");
        assert!(!text.contains("anna") && !text.contains("bob") && !text.contains("secret"));
        for line in ["cache-control: private", "set-cookie: sid", "content-type: text/html"] {
            assert!(own.received.iter().any(|own| own == line), "{line}: {own:?}");
        }
    }
}

#[tokio::test]
async fn a_stored_page_has_the_fingerprint_of_its_fetch_and_a_hit_has_none() {
    let limits = "fingerprint_bytes = \"1KiB\"";
    let stage = Setup { top: ALL, one_core: true, limits, ..Setup::default() }.start().await;
    let fields = format!("{HTML}Cache-Control: max-age=60\r\n");
    stage.origin.on("/a", Script::ok(&fields, "page"));
    stage.origin.on("/chunked", Script::respond(
        format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n2\r\npa\r\n2\r\nge\r\n0\r\n\r\n")
    ));
    stage.origin.on("/large", Script::ok(&fields, &"x".repeat(2000)));
    stage.get("/a?utm_source=letter&x=1").await;
    stage.get("/a?x=1").await;
    stage.get("/chunked").await;
    stage.get("/large").await;
    let all = fetched(&stage, 4).await;
    let of = |served: &str, target: &str| {
        let found = all.iter().find(|own| own.served == served && own.target == target);
        found.unwrap_or_else(|| panic!("{served} {target}: {all:?}"))
    };
    let miss = of("MISS", "/a?x=1").evidence();
    assert_eq!(miss.removed, "utm_source=letter");
    assert!(of("HIT", "/a?x=1").evidence.is_none());
    // The same page in pieces, whose length its head does not say.
    assert_eq!(of("MISS", "/chunked").evidence().fingerprint, miss.fingerprint);
    assert_eq!(of("MISS", "/large").evidence().fingerprint, None);
    let limits = look(&stage.daemon, "/api/v1/parameters").await;
    let own = |row: &&Value| row["name"] == "fingerprint_bytes";
    let row = limits["parameters"].as_array().and_then(|all| all.iter().find(own)).cloned();
    assert_eq!(row.expect("a limit")["hits"], 1);
}

#[tokio::test]
async fn a_body_that_breaks_off_has_no_fingerprint_and_a_file_can_turn_evidence_off() {
    let stage = Setup { top: ALL, one_core: true, ..Setup::default() }.start().await;
    let cut = format!("HTTP/1.1 200 OK\r\n{HTML}Content-Length: 9\r\n\r\npage");
    stage.origin.on("/cut", Script::respond(cut).close());
    let mut raw = stage.connect().await;
    raw.send(&testkit::client::request("GET", "/cut", ""), testkit::client::WriteSplit::Whole)
        .await
        .expect("the request is taken");
    drop(raw.reply("GET").await);
    let all = fetched(&stage, 1).await;
    assert_eq!(all[0].evidence().fingerprint, None);
    let top = "log_ring = { evidence = false, fingerprints = \"100%\" }";
    let stage = Setup { top, one_core: true, ..Setup::default() }.start().await;
    stage.origin.on("/", Script::cacheable("page"));
    stage.get("/").await;
    assert!(fetched(&stage, 1).await[0].evidence.is_none());
}

#[tokio::test]
async fn the_store_says_which_pages_vary_which_have_marks_and_what_was_purged() {
    let stage = Setup { one_core: true, ..Setup::default() }.start().await;
    let varying = format!("{HTML}Cache-Control: max-age=60\r\nVary: Accept-Language\r\n");
    stage.origin.on("/varies", Script::ok(&varying, &"page".repeat(500)));
    stage.origin.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    for language in ["de", "fr"] {
        stage.ask("GET", "/varies", &format!("Accept-Language: {language}\r\n")).await;
    }
    stage.get("/own").await;
    let told = look(&stage.daemon, "/api/v1/evidence").await;
    let page = &told["varied"]["pages"][0];
    assert_eq!(told["varied"]["count"], 1, "{told}");
    assert_eq!((&page["url"], &page["variants"]), (&"http://larder.test/varies".into(), &2.into()));
    assert_eq!((&page["bodies"], &page["vary"][0]), (&1.into(), &"accept-language".into()));
    let mark = &told["marked"]["pages"][0];
    assert_eq!(
        (&told["marked"]["count"], &mark["url"]),
        (&1.into(), &"http://larder.test/own".into())
    );
    assert!(mark["left_ms"].as_u64().is_some_and(|left| left > 60_000), "{mark}");
    assert_eq!(told["invalidations"], serde_json::json!([]));
    assert!(told["memory"]["stores"].as_u64() >= Some(2), "{told}");
    let body = serde_json::json!({ "url": "http://larder.test/varies" });
    let purge = Ask::post("/api/v1/purge", &body);
    assert_eq!(purge.send_locally(&stage.daemon).await.status, 200);
    let told = look(&stage.daemon, "/api/v1/evidence").await;
    let purge = &told["invalidations"][0];
    assert_eq!((&purge["objects"], &purge["soft"]), (&2.into(), &false.into()), "{told}");
    assert_eq!(purge["selection"], "http://larder.test/varies");
}

#[tokio::test]
async fn advice_on_a_running_daemon_has_proof_in_the_ring() {
    let setup = Setup { top: ALL, one_core: true, ..Setup::default() };
    let stage = setup.start().await;
    let folder = Folder::new();
    folder.file("larder.toml", setup.file(&stage.origin));
    let config = folder.path().join("larder.toml").display().to_string();
    let fields = format!("{HTML}Cache-Control: max-age=600\r\n");
    stage.origin.otherwise(Script::ok(&fields, "one page"));
    for number in 0..40 {
        stage.get(&format!("/page?ref={number}")).await;
    }
    fetched(&stage, 40).await;
    let text = printed(&stage.daemon, &["advise", "--config", &config, "--json"]).await;
    let advice: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(advice["requests"], 40);
    let found = advice["findings"].as_array().expect("a list");
    let own = found.iter().find(|one| one["kind"] == "query-parameter-unused");
    let own = own.unwrap_or_else(|| panic!("{text}"));
    assert_eq!((&own["about"], &own["proof"]["kind"]), (&"ref".into(), &"bodies".into()), "{text}");
    // The daemon makes it, too, by its own file.
    let made = look(&stage.daemon, "/api/v1/advice").await;
    let found = made["findings"].as_array().expect("a list");
    assert!(found.iter().any(|one| one["kind"] == "query-parameter-unused"), "{made}");
}
