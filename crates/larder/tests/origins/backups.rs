//! Tests of backups: servers that get requests only while no other server of their origin is in
//! use.

use crate::support;

use serde_json::json;
use support::explain::{explain, step};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

/// A server, its backup, and a daemon in front of both.
struct Pair {
    first: ScriptedOrigin,
    backup: ScriptedOrigin,
    daemon: Daemon,
}

impl Pair {
    async fn start(origin: &str) -> Self {
        let [first, backup] = [server("first").await, server("backup").await];
        let (one, other) = (first.addr(), backup.addr());
        let file = format!(
            r#"
listen = "127.0.0.1:0"
workers = 1
[[origin]]
name = "app"
servers = [{{ url = "http://{other}", backup = true }}, {{ url = "http://{one}", weight = 2 }}]
{origin}
[[site]]
host = "*"
origin = "app"
"#
        );
        Self { first, backup, daemon: Daemon::start(&file).expect("larder starts") }
    }

    async fn get(&self, target: &str) -> Reply {
        let bytes = testkit::client::request("GET", target, "");
        let raw = testkit::client::RawClient::connect(self.daemon.addr()).await;
        support::whole(raw.expect("a connection").exchange(&bytes).await, target)
    }

    /// The bodies of as many responses.
    async fn bodies(&self, requests: usize) -> Vec<String> {
        let mut bodies = Vec::new();
        for number in 0..requests {
            bodies.push(self.get(&format!("/{number}")).await.text());
        }
        bodies
    }
}

async fn server(body: &str) -> ScriptedOrigin {
    let server = ScriptedOrigin::start().await.expect("a port");
    server.otherwise(Script::ok("Cache-Control: no-store\r\n", body));
    server
}

fn failing() -> Script {
    Script::respond("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn a_backup_gets_no_request_while_another_server_is_in_use() {
    for balance in ["round-robin", "least-requests", "hash"] {
        let pair = Pair::start(&format!("balance = \"{balance}\"")).await;
        assert_eq!(pair.bodies(6).await, ["first"; 6], "{balance}");
        assert_eq!(pair.backup.targets().len(), 0, "{balance}");
    }
}

#[tokio::test]
async fn a_request_that_the_servers_have_failed_goes_on_to_the_backup() {
    let settings = "retry_on = [\"503\"]\neject = { failures = 0 }\nretry_budget = 100";
    let pair = Pair::start(settings).await;
    pair.first.otherwise(failing());
    assert_eq!(pair.bodies(5).await, ["backup"; 5]);
    assert_eq!(pair.first.targets().len(), 5, "each request goes to the first server first");
}

#[tokio::test]
async fn an_ejected_server_is_replaced_by_the_backup() {
    let settings = "retry_on = [\"503\"]\n\
                    eject = { failures = 2, time = \"1h\", statuses = [\"503\"] }";
    let pair = Pair::start(settings).await;
    pair.first.otherwise(failing());
    assert_eq!(pair.bodies(6).await, ["backup"; 6]);
    assert_eq!(pair.first.targets().len(), 2);
}

#[tokio::test]
async fn a_server_that_its_probes_call_sick_is_replaced_until_it_is_well() {
    let probe = "probe = { path = \"/probe\", interval = \"100ms\", window = 1, threshold = 1 }";
    let pair = Pair::start(probe).await;
    pair.first.on("/probe", Script::ok("", "well"));
    pair.backup.on("/probe", Script::ok("", "well"));
    support::eventually("the first is well", async || pair.get("/a").await.text() == "first").await;
    pair.first.on("/probe", failing());
    support::eventually("it is replaced", async || pair.get("/a").await.text() == "backup").await;
    let told = explain(&pair.daemon, &json!({ "url": "http://a.test/a" })).await;
    let words = step(&told, "fetch")["why"].as_str().expect("words").to_owned();
    assert!(words.contains(&format!("likely its backup {}", pair.backup.addr())), "{words}");
    pair.first.on("/probe", Script::ok("", "well"));
    support::eventually("it is back", async || pair.get("/a").await.text() == "first").await;
}

#[tokio::test]
async fn listings_and_metrics_name_a_backup_as_such() {
    let pair = Pair::start("").await;
    let listing = support::console::look(&pair.daemon, "/api/v1/origins").await;
    let servers = listing["origins"][0]["servers"].as_array().expect("servers").clone();
    let is_backup = |server: &ScriptedOrigin| {
        let name = server.addr().to_string();
        let own = servers.iter().find(|own| own["name"] == *name).expect("it is listed");
        own["backup"].as_bool().expect("a flag")
    };
    assert_eq!((is_backup(&pair.first), is_backup(&pair.backup)), (false, true));
    for (server, value) in [(&pair.first, 0.0), (&pair.backup, 1.0)] {
        let label = format!("origin=\"app\",server=\"{}\"", server.addr());
        let found = pair.daemon.metric("larder_server_backup", &label).await.expect("metrics");
        assert_eq!(found, value, "{label}");
    }
}
