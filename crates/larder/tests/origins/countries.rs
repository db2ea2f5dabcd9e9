//! Tests of `when.country`: routes for clients of some countries.

use crate::support;

use std::net::IpAddr;

use serde_json::json;
use support::console;
use support::explain::{explain, fact, step};
use support::folder::Folder;
use support::{Setup, Stage, is_hit};
use testkit::geoip::{Datum, database};
use testkit::origin::Script;

const SWEDEN: &str = "192.0.2.7";
const GERMANY: &str = "2001:db8::7";
const NOWHERE: &str = "198.51.100.7";

/// A database of two countries, each of them elsewhere if `moved`.
fn geoip(moved: bool) -> Vec<u8> {
    let of =
        |code| Datum::Map(vec![("country", Datum::Map(vec![("iso_code", Datum::Text(code))]))]);
    let (first, second) = if moved { ("DE", "SE") } else { ("SE", "DE") };
    let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
    database(&[(ip("192.0.2.0"), 24, of(first)), (ip("2001:db8::"), 32, of(second))])
}

const ROUTES: &str = r#"
purge = { dialects = ["purge"] }
[[site.route]]
name = "north"
when = { country = ["SE", "no"] }
request_headers = { set = { X-Shop = "north" } }
[[site.route]]
name = "closed"
path = "/eu/*"
when = { not = { country = ["DE", "AT"] } }
respond = { status = 451 }
"#;

async fn stage(folder: &Folder) -> Stage {
    std::fs::write(folder.path().join("c.mmdb"), geoip(false)).expect("written");
    let file = folder.path().join("c.mmdb");
    let top = format!("geoip = \"{}\"\ntrusted_proxies = [\"127.0.0.0/8\"]", file.display());
    let stage = Setup { top: &top, site: ROUTES, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::mirror("Cache-Control: public, max-age=300\r\n"));
    stage
}

/// The response to a client at `address`.
async fn ask(stage: &Stage, target: &str, address: &str) -> testkit::reply::Reply {
    stage.ask("GET", target, &format!("X-Forwarded-For: {address}\r\n")).await
}

#[tokio::test]
async fn clients_of_other_countries_get_other_pages_and_share_none() {
    let folder = Folder::new();
    let stage = stage(&folder).await;
    for (client, is_north, hit) in [
        (GERMANY, false, false),
        (SWEDEN, true, false),
        (NOWHERE, false, true),
        ("::ffff:192.0.2.9", true, true),
        ("127.0.0.1", false, true),
    ] {
        let reply = ask(&stage, "/a", client).await;
        let of_north = reply.text().to_ascii_lowercase().contains("x-shop: north");
        assert_eq!((of_north, is_hit(&reply)), (is_north, hit), "{client}");
    }
    assert_eq!(stage.origin.seen("/a"), 2);
    assert_eq!(stage.ask("PURGE", "/a", "").await.status, 200);
    assert!(!is_hit(&ask(&stage, "/a", SWEDEN).await));
    assert!(!is_hit(&ask(&stage, "/a", GERMANY).await));
}

#[tokio::test]
async fn a_client_of_no_known_country_is_in_none() {
    let folder = Folder::new();
    let stage = stage(&folder).await;
    for (client, status) in [(GERMANY, 200), (NOWHERE, 451), ("127.0.0.1", 451)] {
        assert_eq!(ask(&stage, "/eu/a", client).await.status, status, "{client}");
    }
}

#[tokio::test]
async fn a_reload_reads_the_database_anew_and_a_bad_one_changes_nothing() {
    let folder = Folder::new();
    let stage = stage(&folder).await;
    let is_north = async || {
        let reply = ask(&stage, "/eu/a", GERMANY).await;
        reply.text().to_ascii_lowercase().contains("x-shop: north")
    };
    assert!(!is_north().await);
    let write = |bytes: &[u8]| {
        // Moved into place, as `geoipupdate` does.
        std::fs::write(folder.path().join("new"), bytes).expect("written");
        let to = folder.path().join("c.mmdb");
        std::fs::rename(folder.path().join("new"), to).expect("moved");
    };
    write(b"no database");
    let (done, _, said) = console::run(&stage.daemon, &["reload"]).await;
    assert!(!done && said.contains("c.mmdb: "), "{said}");
    assert!(!is_north().await);
    write(&geoip(true));
    let (done, _, said) = console::run(&stage.daemon, &["reload"]).await;
    assert!(done, "{said}");
    assert!(is_north().await);
}

#[tokio::test]
async fn explain_names_the_country_and_the_condition() {
    let folder = Folder::new();
    let stage = stage(&folder).await;
    let question = |client: &str| {
        let headers = json!([format!("X-Forwarded-For: {client}")]);
        json!({ "url": "http://a.test/a", "headers": headers, "client": "127.0.0.1" })
    };
    let told = explain(&stage.daemon, &question(SWEDEN)).await;
    let route = step(&told, "route");
    assert_eq!(fact(route, "because of"), "country SE or NO");
    assert_eq!(fact(route, "country of the client"), "SE");
    let told = explain(&stage.daemon, &question(NOWHERE)).await;
    let route = step(&told, "route");
    assert_eq!(fact(route, "not met"), "`north`: country SE or NO");
    assert_eq!(fact(route, "country of the client"), "not known");
}
