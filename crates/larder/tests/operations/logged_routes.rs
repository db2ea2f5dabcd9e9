//! Tests of routes in logs: their names, and those about which the access log has no line.

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::explain::{explain, fact, step};
use support::folder::Folder;
use support::{Setup, eventually};
use testkit::origin::Script;

const SITE: &str = r#"
[[site.route]]
path = "/health"
access_log = false
[[site.route]]
name = "shop"
path = "/shop/*"
"#;

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_without_access_log_has_no_lines_and_is_counted_all_the_same() {
    let folder = Folder::new();
    let file = folder.path().join("access.log");
    let top = format!("access_log = {{ path = \"{}\", format = \"json\" }}", file.display());
    let stage = Setup { top: &top, site: SITE, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    for target in ["/health", "/shop/a", "/health", "/shop/a", "/"] {
        assert_eq!(stage.get(target).await.status, 200, "{target}");
    }
    eventually("lines", async || lines(&file).len() >= 3).await;
    let mut seen: Vec<_> = lines(&file)
        .iter()
        .map(|line| (line["target"].clone(), line.get("route").cloned(), line["cache"].clone()))
        .collect();
    seen.sort_by_key(|(target, _, cache)| format!("{target} {cache}"));
    let shop = |cache: &str| (json!("/shop/a"), Some(json!("shop")), json!(cache));
    assert_eq!(seen, [(json!("/"), None, json!("MISS")), shop("HIT"), shop("MISS")]);
    // The ring and the counters have all.
    let (done, shown, why) = support::console::run(
        &stage.daemon,
        &["log", "--once", "-q", "route == \"/health\"", "--json"],
    )
    .await;
    assert!(done, "{why}");
    assert_eq!(shown.lines().count(), 2, "{shown}");
    let (_, own, _) =
        support::console::run(&stage.daemon, &["log", "--once", "-F", "$larder_route $status"])
            .await;
    let mut own: Vec<_> = own.lines().collect();
    own.sort_unstable();
    assert_eq!(own, ["- 200", "/health 200", "/health 200", "shop 200", "shop 200"]);
    stage.daemon.assert_metric("larder_site_requests_total", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_without_access_log_may_have_routes_with_one() {
    let folder = Folder::new();
    let file = folder.path().join("access.log");
    let top = format!("access_log = {{ path = \"{}\", format = \"json\" }}", file.display());
    let site = "access_log = false\n[[site.route]]\npath = \"/shop/*\"\naccess_log = true\n\
                [[site.route]]\npath = \"/blog/*\"\ncache = false\n";
    let stage = Setup { top: &top, site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    for target in ["/", "/blog/a", "/shop/a", "/"] {
        stage.get(target).await;
    }
    eventually("a line", async || !lines(&file).is_empty()).await;
    let told = explain(&stage.daemon, &json!({ "url": "http://a.test/blog/a" })).await;
    assert_eq!(fact(step(&told, "route"), "access log"), "no line (access_log = false)");
    let told = explain(&stage.daemon, &json!({ "url": "http://a.test/shop/a" })).await;
    assert_eq!(fact(step(&told, "route"), "access log"), "");
    stage.daemon.assert_metric("larder_site_requests_total", 4).await;
    let targets: Vec<_> = lines(&file).iter().map(|line| line["target"].clone()).collect();
    assert_eq!(targets, ["/shop/a"]);
}
