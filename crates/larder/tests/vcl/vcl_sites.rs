//! Tests of `vcl` in larder.toml, for the whole daemon and for a site: what a reload changes, and
//! what it keeps.

use crate::support;

use std::process::{Command, Output};

use support::folder::Folder;
use support::{eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

/// A daemon with a program for all and one for `shop.test`, in front of one origin.
struct Sites {
    folder: Folder,
    origin: ScriptedOrigin,
    daemon: Daemon,
}

impl Sites {
    async fn start() -> Self {
        let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
        for (file, says) in [("all.vcl", "all 1"), ("shop.vcl", "shop 1")] {
            folder.file(file, program(&origin, says));
        }
        let at = |file: &str| folder.path().join(file).display().to_string();
        let config = format!(
            "listen = \"127.0.0.1:0\"\nvcl = \"{}\"\n\n[[site]]\nhost = \"shop.test\"\n\
             vcl = \"{}\"\n\n[[site]]\nhost = \"*\"\n",
            at("all.vcl"),
            at("shop.vcl")
        );
        let daemon = Daemon::start(&config).expect("it starts");
        Self { folder, origin, daemon }
    }

    /// The response to a GET for `host`.
    async fn get(&self, host: &str, target: &str) -> Reply {
        let mut client = RawClient::connect(self.daemon.addr()).await.expect("a connection");
        let asked = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        client.send(asked.as_bytes(), WriteSplit::Whole).await.expect("sent");
        whole(client.reply("GET").await, target)
    }

    /// A metric of the daemon.
    async fn metric(&self, name: &str) -> f64 {
        self.daemon.metric(name, "").await.expect("metrics")
    }

    /// The number of loaded programs.
    async fn programs(&self) -> u64 {
        let stats = self.daemon.ask_admin("GET", "/stats").await.expect("an answer");
        let stats: serde_json::Value = serde_json::from_str(&stats.text()).expect("JSON");
        stats["varnish"]["MAIN.n_vcl"].as_u64().expect("a number")
    }

    async fn reload(&self) -> Output {
        let socket = self.daemon.admin_socket();
        let mut command = Command::new(binary().expect("the binary"));
        command.arg("reload").arg("--admin-socket").arg(socket);
        let done = tokio::task::spawn_blocking(move || command.output()).await;
        done.expect("no panic").expect("it runs")
    }
}

/// A program whose responses name it.
fn program(origin: &ScriptedOrigin, says: &str) -> String {
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    format!(
        "vcl 4.1;\nbackend default {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
         sub vcl_deliver {{\n    set resp.http.X-Program = \"{says}\";\n    \
         set resp.http.X-Hits = obj.hits;\n}}\n"
    )
}

/// The program that delivered, and the number of earlier hits of its object.
fn by(reply: &Reply) -> String {
    let field = |name: &str| reply.field(name).unwrap_or_default();
    format!("{}, {} hits", field("x-program"), field("x-hits"))
}

#[tokio::test]
async fn a_reload_takes_the_changed_program_up_and_keeps_cache_and_requests() {
    let sites = Sites::start().await;
    sites.origin.on("/page", Script::cacheable("a page"));
    sites.origin.on("/slow", Script::default().delay_ms(1_500).send(SLOW));
    assert_eq!(by(&sites.get("shop.test", "/page").await), "shop 1, 0 hits");
    assert_eq!(by(&sites.get("else.test", "/page").await), "all 1, 0 hits");
    let slow = sites.get("shop.test", "/slow");
    let change = async {
        eventually("the request at the origin", async || sites.origin.seen("/slow") == 1).await;
        sites.folder.replace("shop.vcl", program(&sites.origin, "shop 2"));
        let reload = sites.reload().await;
        assert!(reload.status.success(), "{}", String::from_utf8_lossy(&reload.stderr));
        sites.get("shop.test", "/page").await
    };
    let (slow, page) = tokio::join!(slow, change);
    assert_eq!(by(&page), "shop 2, 1 hits");
    assert_eq!((by(&slow).as_str(), &slow.body[..]), ("shop 1, 0 hits", &b"slow"[..]));
    let other = sites.get("else.test", "/page").await;
    assert_eq!(by(&other), "all 1, 1 hits");
    assert_eq!(sites.origin.seen("/page"), 2, "one for each host");
}

const SLOW: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow";

#[tokio::test]
async fn a_faulty_program_changes_nothing_and_is_reported_with_its_place() {
    let sites = Sites::start().await;
    sites.origin.on("/page", Script::cacheable("a page"));
    sites.get("shop.test", "/page").await;
    // The other one is valid, and is not loaded either.
    sites.folder.replace("all.vcl", program(&sites.origin, "all 2"));
    let faulty = program(&sites.origin, "shop 2").replace("obj.hits", "obj.hit");
    sites.folder.replace("shop.vcl", faulty);
    let reload = sites.reload().await;
    assert!(!reload.status.success());
    let why = String::from_utf8_lossy(&reload.stderr).into_owned();
    let place = format!("{}:5:28", sites.folder.path().join("shop.vcl").display());
    assert!(why.contains(&place) && why.contains("obj.hits"), "{why}");
    eventually("the log tells it too", async || sites.daemon.log().contains(&place)).await;
    let page = sites.get("shop.test", "/page").await;
    assert_eq!(by(&page), "shop 1, 1 hits");
    assert_eq!(by(&sites.get("else.test", "/page").await), "all 1, 0 hits");
}

#[tokio::test]
async fn a_program_that_fails_late_takes_none_of_the_file_along() {
    let sites = Sites::start().await;
    sites.origin.on("/page", Script::cacheable("a page"));
    assert_eq!(by(&sites.get("shop.test", "/page").await), "shop 1, 0 hits");
    let budget = sites.metric("larder_memory_budget_bytes").await;
    assert_eq!(sites.programs().await, 2);

    // It compiles, and fails in `vcl_init`.
    sites.folder.replace("all.vcl", program(&sites.origin, "all 2"));
    let failing = "sub vcl_init { return (fail(\"not today\")); }\n";
    sites.folder.replace("shop.vcl", program(&sites.origin, "shop 2") + failing);
    let file = std::fs::read_to_string(sites.daemon.config_file()).expect("a file");
    let smaller = format!("{file}\n[memory]\nsize = \"64MiB\"\n");
    std::fs::write(sites.daemon.config_file(), &smaller).expect("written");
    let refused = sites.reload().await;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("not today"), "{why}");
    let now = sites.metric("larder_memory_budget_bytes").await;
    assert_eq!(now, budget);
    eventually("the end of those two", async || sites.programs().await == 2).await;
    assert_eq!(by(&sites.get("shop.test", "/page").await), "shop 1, 1 hits");
    assert_eq!(by(&sites.get("else.test", "/page").await), "all 1, 0 hits");

    sites.folder.replace("shop.vcl", program(&sites.origin, "shop 2"));
    let reload = sites.reload().await;
    assert!(reload.status.success(), "{}", String::from_utf8_lossy(&reload.stderr));
    let now = sites.metric("larder_memory_budget_bytes").await;
    assert!(now < budget, "{now} is not less than {budget}");
    assert_eq!(by(&sites.get("else.test", "/page").await), "all 2, 1 hits");
}
