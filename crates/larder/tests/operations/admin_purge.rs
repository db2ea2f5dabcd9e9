//! Tests of `larder purge` and its parts: stored objects are listed, purged, counted and logged;
//! and servers are taken out by hand.

use crate::support;

use serde_json::{Value, json};
use support::console::{Ask, json, look, run};
use support::{Setup, Stage, is_hit};
use testkit::origin::{Script, ScriptedOrigin};

const PAGES: [(&str, &str, &str); 4] = [
    ("a.test", "/", "front,post-1"),
    ("a.test", "/shop/1?x=y", "post-1"),
    ("a.test", "/shop/2", "post-2"),
    ("b.test", "/shop/1", "post-1,list"),
];

/// Stores the pages, those of one URL for every host.
async fn store(stage: &Stage) {
    for (host, target, tags) in PAGES {
        let fields = format!(
            "Cache-Control: max-age=600, stale-while-revalidate=600\r\nSurrogate-Key: {tags}\r\n\
             Surrogate-Control: content=\"ESI/1.0\"\r\n"
        );
        stage.origin.on(target, Script::ok(&fields, "a page"));
        get(stage, host, target).await;
        assert!(get(stage, host, target).await.starts_with("hit"), "{host}{target} is stored");
    }
}

/// Requests a page, and returns `hit`, `hit stale` or nothing.
async fn get(stage: &Stage, host: &str, target: &str) -> String {
    let bytes = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let reply = stage.exchange("GET", bytes.as_bytes()).await;
    let status = reply.field("cache-status").unwrap_or_default();
    match (is_hit(&reply), status.contains("ttl=-") || status.contains("stale")) {
        (true, true) => "hit stale".to_owned(),
        (true, false) => "hit".to_owned(),
        (false, _) => String::new(),
    }
}

/// Pages that are no longer stored.
async fn gone(stage: &Stage) -> Vec<String> {
    let listed = look(&stage.daemon, "/api/v1/objects").await;
    let urls: Vec<_> = listed["objects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|object| object["url"].as_str().expect("text").to_owned())
        .collect();
    let url = |(host, target, _): &(&str, &str, &str)| format!("http://{host}{target}");
    PAGES.iter().map(url).filter(|url| !urls.contains(url)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_hits_what_is_meant_and_says_how_many() {
    let stage = Stage::new().await;
    for (arguments, said, gone_then) in [
        (
            &["http://a.test/shop/1?x=y"][..],
            "purged: 1 response",
            &["http://a.test/shop/1?x=y"][..],
        ),
        (&["https://A.test/"], "purged: 1 response", &["http://a.test/"]),
        (&["http://a.test/none"], "no stored object matches", &[]),
        (
            &["http://a.test/", "http://b.test/shop/1"],
            "purged: 2 responses",
            &["http://a.test/", "http://b.test/shop/1"],
        ),
        (
            &["--tag", "post-2", "--tag", "front"],
            "purged: 2 responses",
            &["http://a.test/", "http://a.test/shop/2"],
        ),
        (&["--tag", "post-1", "--host", "b.test"], "purged: 1 response", &["http://b.test/shop/1"]),
        (&["--host", "b.test"], "purged: 1 response", &["http://b.test/shop/1"]),
        (
            &["--prefix", "http://a.test/shop/"],
            "purged: 2 responses",
            &["http://a.test/shop/1?x=y", "http://a.test/shop/2"],
        ),
        (
            &["--prefix", "/shop/1"],
            "purged: 2 responses",
            &["http://a.test/shop/1?x=y", "http://b.test/shop/1"],
        ),
        (
            &["--ban", "req.http.host == a.test && req.url ~ 2$"],
            "purged: 1 response",
            &["http://a.test/shop/2"],
        ),
    ] {
        store(&stage).await;
        let (good, out, err) = run(&stage.daemon, &[&["purge"], arguments].concat()).await;
        assert!(good, "{arguments:?}: {err}");
        assert_eq!(out.trim_end(), said, "{arguments:?}");
        assert_eq!(gone(&stage).await, gone_then, "{arguments:?}");
    }
    store(&stage).await;
    let (good, out, _) = run(&stage.daemon, &["purge", "--all", "--json"]).await;
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((good, answer), (true, json!({ "purged": 4, "pending": false })));
    assert_eq!(gone(&stage).await.len(), PAGES.len());
    let uid = rustix::process::geteuid().as_raw();
    stage.daemon.assert_logged(&format!("larder: admin: uid {uid} ")).await;
    stage.daemon.assert_logged("POST /api/v1/purge {\"prefix\":\"/shop/1\"").await;
    stage.daemon.assert_logged(": 200 {\"pending\":false,\"purged\":2}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_that_waits_for_no_count_has_taken_effect() {
    let stage = Stage::new().await;
    store(&stage).await;
    let ask = Ask::post("/api/v1/purge", &json!({ "tags": "post-1", "wait_ms": 0 }));
    let reply = ask.send_locally(&stage.daemon).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(json(&reply)["pending"].is_boolean());
    assert_eq!(gone(&stage).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soft_purge_leaves_what_is_stale() {
    let stage = Stage::new().await;
    store(&stage).await;
    let (good, out, _) = run(&stage.daemon, &["purge", "--tag", "post-2", "--soft"]).await;
    assert_eq!((good, out.trim_end()), (true, "made stale: 1 response"));
    let listed = look(&stage.daemon, "/api/v1/objects?url=http://a.test/shop/2").await;
    assert_eq!(listed["objects"][0]["fresh_ms"], 0, "{listed}");
    let (_, out, _) = run(&stage.daemon, &["purge", "http://a.test/", "--soft"]).await;
    assert_eq!(out.trim_end(), "made stale: 1 response");
    assert_eq!(gone(&stage).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_that_mean_nothing_say_what_to_write() {
    let setup = Setup::default();
    let origin = ScriptedOrigin::start().await.expect("a port");
    let file = setup.file(&origin).replace("host = \"*\"", "host = \"a.test\"");
    let daemon = testkit::larder::Daemon::start(&file).expect("larder starts");
    for (arguments, why) in [
        (&["a.test/page"][..], "scheme, host and path"),
        (&["/page"], "https://example.org/page"),
        (&["http://b.test/"], "no site has the host of `http://b.test/`"),
        (&["--ban", "req.url == "], "such as: req.http.host =="),
        (&["--ban", "obj.http.xkey ~ a"], "surrogate keys are stored as hashes"),
        (&["--tag", "a b"], "without comma or space"),
        (&["--prefix", "shop"], "is no URL"),
        (&[], "required arguments"),
        (&["--all", "--tag", "a"], "cannot be used with"),
    ] {
        let (good, _, said) = run(&daemon, &[&["purge"], arguments].concat()).await;
        assert!(!good && said.contains(why), "{arguments:?}: {said}");
    }
    for body in [
        json!({}),
        json!({ "urls": "http://a.test/" }),
        json!({ "url": "http://a.test/", "all": true }),
        json!({ "all": "yes" }),
        json!({ "all": true, "ban": null }),
        json!([]),
        json!("all"),
    ] {
        let reply = Ask::post("/api/v1/purge", &body).send_locally(&daemon).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        assert!(json(&reply)["error"].as_str().is_some_and(|why| !why.is_empty()));
    }
    let null = Ask::post("/api/v1/config/check", &json!({})).body("null");
    assert_eq!(null.send_locally(&daemon).await.status, 400);
    let half = Ask::post("/api/v1/purge", &json!({})).body("{\"all\":");
    assert_eq!(half.send_locally(&daemon).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_listed_as_it_is_meant() {
    let stage = Stage::new().await;
    store(&stage).await;
    let count = async |query: &str| {
        let listed = look(&stage.daemon, &format!("/api/v1/objects?{query}")).await;
        let count = listed["objects"].as_array().expect("a list").len();
        (count, listed["more"].as_bool().expect("a flag"))
    };
    for (query, found) in [
        ("", (4, false)),
        ("limit=2", (2, true)),
        ("limit=4", (4, false)),
        ("host=a.test", (3, false)),
        ("host=b.test&tag=post-1", (1, false)),
        ("tag=post-1", (3, false)),
        ("prefix=/shop/", (3, false)),
        ("prefix=http://a.test/shop/&tag=post-2", (1, false)),
        ("ban=obj.status+%3D%3D+200", (4, false)),
        // Clients do not see this field.
        ("ban=obj.http.surrogate-control+~+ESI", (4, false)),
        ("url=http://a.test/shop/1?x%3Dy", (1, false)),
        ("site=*", (4, false)),
    ] {
        assert_eq!(count(query).await, found, "{query}");
    }
    let listed = look(&stage.daemon, "/api/v1/objects?url=http://a.test/").await;
    let object = &listed["objects"][0];
    assert_eq!(object["url"], "http://a.test/");
    assert_eq!(
        (&object["status"], &object["bytes"], &object["tags"]),
        (&json!(200), &json!(6), &json!(2))
    );
    assert_eq!((&object["ttl_ms"], &object["stale_ms"]), (&json!(600_000), &json!(0)));
    for (query, status) in [
        ("limit=1001", 400),
        ("limit=x", 400),
        ("limit=1&limit=2", 400),
        ("colour=red", 400),
        ("url=http://a.test/&tag=a", 400),
        ("url=a", 422),
        ("ban=req.url", 422),
        ("site=none", 404),
    ] {
        let reply = Ask::get(&format!("/api/v1/objects?{query}")).send_locally(&stage.daemon).await;
        assert_eq!(reply.status, status, "{query}: {}", reply.text());
    }
    run(&stage.daemon, &["purge", "--ban", "req.url ~ nothing"]).await;
    let bans = look(&stage.daemon, "/api/v1/bans").await;
    assert_eq!(bans["bans"][0]["text"], "req.url ~ nothing", "{bans}");
    assert_eq!((&bans["bans"][0]["over"], &bans["bans"][0]["objects"]), (&json!(true), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_taken_out_gets_no_requests_until_it_is_back() {
    let (one, two) = (
        ScriptedOrigin::start().await.expect("a port"),
        ScriptedOrigin::start().await.expect("one"),
    );
    for origin in [&one, &two] {
        origin.on("/", Script::ok("Cache-Control: no-store\r\n", "passed"));
    }
    let [a, b] = [one.addr(), two.addr()].map(|addr| format!("http://{addr}"));
    let setup = Setup::default();
    let own = format!("servers = \"{a}\"");
    let file = setup.file(&one).replace(&own, &format!("servers = [\"{a}\", \"{b}\"]"));
    let stage = Stage {
        daemon: testkit::larder::Daemon::start(&file).expect("larder starts"),
        origin: ScriptedOrigin::start().await.expect("a port"),
    };
    let name = |addr: std::net::SocketAddr| addr.to_string();
    let order = async |server: Option<String>, word: &str| {
        let mut body = json!({ "origin": "app", "order": word });
        if let Some(server) = server {
            body["server"] = json!(server);
        }
        let reply = Ask::post("/api/v1/origins/order", &body).send_locally(&stage.daemon).await;
        (reply.status, json(&reply))
    };
    // The number of requests to each server, of eight.
    let spread = async || {
        one.forget();
        two.forget();
        let mut statuses = Vec::new();
        for _ in 0..8 {
            statuses.push(stage.get("/").await.status);
        }
        statuses.dedup();
        (one.seen("/"), two.seen("/"), statuses)
    };
    assert_eq!(spread().await, (4, 4, vec![200]));
    for word in ["drain", "down"] {
        let (status, said) = order(Some(name(one.addr())), word).await;
        assert_eq!(status, 200, "{said}");
        let server = &said["origins"][0]["servers"][0];
        assert_eq!((&server["order"], &server["healthy"]), (&json!(word), &json!(false)));
        assert_eq!(spread().await, (0, 8, vec![200]), "{word}");
    }
    order(None, "drain").await;
    assert_eq!(spread().await, (0, 0, vec![503]));
    order(Some(format!("http://{}", one.addr())), "up").await;
    assert_eq!(spread().await, (8, 0, vec![200]));
    order(None, "auto").await;
    assert_eq!(spread().await, (4, 4, vec![200]));
    for (body, status) in [
        (json!({ "origin": "none", "order": "up" }), 404),
        (json!({ "origin": "app", "server": "none", "order": "up" }), 404),
        (json!({ "origin": "app", "order": "sleep" }), 400),
        (json!({ "origin": "app" }), 400),
    ] {
        let reply = Ask::post("/api/v1/origins/order", &body).send_locally(&stage.daemon).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
}

#[tokio::test]
async fn the_running_configuration_is_shown_without_its_secrets() {
    let secret = "0123456789abcdef0123456789abcdef";
    let site = format!(
        "purge = {{ dialects = [\"purge\"], token = \"{secret}\" }}\n\
         request_headers = {{ set = {{ \"X-Secret\" = \"{secret}\" }} }}\n"
    );
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    for _ in 0..3 {
        stage.get("/page").await;
    }
    let status = look(&stage.daemon, "/api/v1/status").await;
    assert_eq!((&status["role"], &status["cores"]), (&json!("config"), &json!(2)));
    assert_eq!(status["cache"]["objects"], 1);
    let sites = look(&stage.daemon, "/api/v1/sites").await;
    let site = &sites["sites"][0];
    assert_eq!((&site["hosts"], &site["origins"]), (&json!(["*"]), &json!(["app"])));
    support::eventually("the cores have handed over what they counted", async || {
        let sites = look(&stage.daemon, "/api/v1/sites").await;
        let requests = &sites["sites"][0]["requests"];
        (&requests["hit"], &requests["miss"]) == (&json!(2), &json!(1))
    })
    .await;
    let config = look(&stage.daemon, "/api/v1/config").await;
    assert!(config["sites"].as_str().is_some_and(|text| text.contains("X-Secret is set")));
    for said in [&status, &sites, &config] {
        assert!(!said.to_string().contains(secret), "{said}");
    }
    let parameters = look(&stage.daemon, "/api/v1/parameters").await;
    let all = parameters["parameters"].as_array().expect("a list");
    assert_eq!(all.len(), base::limits::TABLE.len());
    let tags = all.iter().find(|one| one["name"] == "tag_bytes").expect("a limit");
    assert_eq!((&tags["value"], &tags["is_default"]), (&json!("512KiB"), &json!(true)));
}
