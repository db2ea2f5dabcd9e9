//! Tests of `mirror`: copies of requests to another origin, whose responses are dropped.

use crate::support;

use serde_json::json;
use support::explain::{explain, fact, step};
use support::{Setup, Stage, eventually, is_hit, sent_field};
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reference_reader::read_requests;

/// A stage with a mirror, whose URL is in the place of `MIRROR` in `site`.
async fn stage(site: &str, limits: &str) -> (Stage, ScriptedOrigin) {
    let mirror = ScriptedOrigin::start().await.expect("a port");
    let site = site.replace("MIRROR", &format!("http://{}", mirror.addr()));
    let stage = Setup { site: &site, limits, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    stage.origin.on("/private", Script::ok("Cache-Control: no-store\r\n", "private"));
    mirror.otherwise(Script::ok("Cache-Control: max-age=300\r\nX-Mirror: 1\r\n", "copy"));
    (stage, mirror)
}

async fn copied(mirror: &ScriptedOrigin, target: &str, times: usize) {
    eventually("a copy", async || mirror.seen(target) >= times).await;
    assert_eq!(mirror.seen(target), times, "{target}");
}

const SITE: &str = "mirror = \"MIRROR\"\nrequest_headers = { set = { X-To = \"all\" } }\n\
                    [[site.route]]\npath = \"/own/*\"\nmirror = false\n";

#[tokio::test]
async fn what_goes_to_the_origin_goes_to_the_mirror_and_nothing_comes_from_there() {
    let (stage, mirror) = stage(SITE, "").await;
    for hit in [false, true] {
        let reply = stage.ask("GET", "/a?b=c", "X-Id: 7\r\n").await;
        assert_eq!((reply.text().as_str(), is_hit(&reply)), ("page", hit));
        assert_eq!(reply.field("x-mirror"), None);
    }
    copied(&mirror, "/a?b=c", 1).await;
    for times in 1..3 {
        assert_eq!(stage.get("/private").await.text(), "private");
        copied(&mirror, "/private", times).await;
    }
    stage.ask("DELETE", "/a", "").await;
    copied(&mirror, "/a", 1).await;
    assert_eq!(stage.get("/own/a").await.text(), "page");
    let recorded = mirror.recorded();
    let requests: Vec<_> =
        recorded.iter().flat_map(|one| read_requests(&one.bytes).expect("valid")).collect();
    let first = requests.iter().find(|own| own.target == "/a?b=c").expect("a copy");
    assert_eq!((sent_field(first, "x-id"), sent_field(first, "x-to")), ("7".into(), "all".into()));
    assert!(sent_field(first, "via").contains("larder"), "{first:?}");
    assert_eq!(mirror.seen("/own/a"), 0);
    stage.daemon.assert_metric("larder_mirrored_total", 4).await;
}

#[tokio::test]
async fn requests_with_bodies_are_not_copied() {
    let (stage, mirror) = stage(SITE, "").await;
    let post = b"POST /form HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(stage.exchange("POST", post).await.status, 200);
    assert_eq!(stage.get("/after").await.status, 200);
    copied(&mirror, "/after", 1).await;
    assert_eq!(mirror.seen("/form"), 0);
    let question = |method: &str| json!({ "url": "http://a.test/x", "method": method });
    let told = explain(&stage.daemon, &question("GET")).await;
    let words = format!("origin `http://{}` gets a copy", mirror.addr());
    assert_eq!(fact(step(&told, "fetch"), "mirror"), words);
}

#[tokio::test]
async fn a_mirror_that_fails_or_hangs_changes_nothing() {
    let (stage, mirror) = stage(SITE, "mirrors = 3").await;
    mirror.otherwise(Script::default().reset());
    for n in 0..3 {
        assert_eq!(stage.get(&format!("/reset/{n}")).await.text(), "page");
    }
    stage.daemon.assert_metric("larder_mirror_failures_total", 3).await;
    mirror.otherwise(Script::default().hang());
    // On two cores.
    for n in 0..12 {
        assert_eq!(stage.get(&format!("/hang/{n}")).await.text(), "page");
    }
    eventually("the limit is reached", async || stage.limit_hits("mirrors").await >= 6).await;
    let under_way = (0..12).filter(|n| mirror.seen(&format!("/hang/{n}")) > 0).count();
    assert!(under_way <= 6, "{under_way}");
}

#[tokio::test]
async fn a_mirror_that_is_down_changes_nothing() {
    let site = "mirror = \"http://127.0.0.1:1\"";
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    assert_eq!(stage.get("/a").await.text(), "page");
    stage.daemon.assert_metric("larder_mirror_failures_total", 1).await;
    let ready = support::console::Ask::get("/readyz").send_locally(&stage.daemon).await;
    assert_eq!(ready.status, 200, "{}", ready.text());
}
