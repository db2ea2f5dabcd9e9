//! Tests of facts about a client that other servers get, and that `explain` predicts.

use std::fs;

use testkit::client::{RawClient, WriteSplit};
use testkit::origin::{Script, ScriptedOrigin};

use super::nominated::USERS;
use super::stage;
use crate::support::disked::Policy;
use crate::support::explain::explain;
use crate::support::folder::Folder;
use crate::support::{PATIENCE, console, h2, is_hit, sent_field};
use data_encoding::BASE64;
use serde_json::json;
use testkit::larder::Daemon;
use testkit::reference_reader::read_requests;

#[tokio::test(flavor = "multi_thread")]
async fn all_servers_get_one_spelling_of_the_host() {
    let folder = Folder::new();
    let keeper = ScriptedOrigin::start().await.expect("an origin");
    keeper.otherwise(Script::ok("", ""));
    let site =
        format!("forward_auth = {{ origin = \"http://{}\", path = \"/verify\" }}\n", keeper.addr());
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "here"));
    for host in ["f.test", "F.TEST", "f.test.", "f.test:80"] {
        let asked = format!("GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(stage.exchange("GET", asked.as_bytes()).await.status, 200, "{host}");
    }
    let told = |origin: &ScriptedOrigin| -> Vec<String> {
        let recorded = origin.recorded();
        let requests = recorded.iter().flat_map(|one| read_requests(&one.bytes).expect("requests"));
        requests.map(|request| sent_field(&request, "x-forwarded-host")).collect()
    };
    assert_eq!(told(&keeper), ["f.test"; 4]);
    assert_eq!(told(&stage.origin), ["f.test"; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_for_one_user_is_explained_so() {
    let folder = Folder::new();
    folder.file("users", USERS);
    let gate = |more: &str| {
        let users = folder.path().join("users");
        format!("basic_auth = {{ file = \"{}\"{more} }}\n", users.display())
    };
    let stage = stage(Policy::Declared, &folder, "", &gate("")).await;
    stage.origin.otherwise(Script::cacheable("page"));
    let shown = format!("Authorization: Basic {}\r\n", BASE64.encode(b"ann:password"));
    let served = async || {
        let told = explain(&stage.daemon, &json!({ "url": "http://larder.test/page" })).await;
        told["outcome"]["served"].as_str().unwrap_or_default().to_owned()
    };
    for hit in [false, true] {
        assert_eq!(is_hit(&stage.ask("GET", "/page", &shown).await), hit);
    }
    assert_eq!(served().await, "HIT");
    let file = stage.daemon.config_file();
    let text = fs::read_to_string(&file).expect("the configuration");
    let told = text.replace(&gate(""), &gate(", user_field = \"Remote-User\""));
    assert_ne!(told, text);
    fs::write(&file, told).expect("written");
    let (done, _, err) = console::run(&stage.daemon, &["reload"]).await;
    assert!(done, "{err}");
    let foretold = served().await;
    assert_ne!(foretold, "HIT");
    assert!(!is_hit(&stage.ask("GET", "/page", &shown).await), "{foretold}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fragment_of_another_host_gets_none_of_a_client_s_secrets() {
    let (page, other) =
        (ScriptedOrigin::start().await.expect("one"), ScriptedOrigin::start().await.expect("two"));
    page.on(
        "/page",
        Script::ok(
            "Cache-Control: no-store\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n\
             Content-Type: text/html\r\n",
            "<esi:include src=\"http://b.test/part\"/><esi:include src=\"/own\"/>",
        ),
    );
    page.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    other.otherwise(Script::ok("Cache-Control: no-store\r\n", "part"));
    let daemon = Daemon::start(&format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\n\
         [[site]]\nhost = \"a.test\"\norigin = \"http://{}\"\n\
         includes = {{ esi = \"announced\", hosts = [\"b.test\"] }}\n\
         [[site]]\nhost = \"b.test\"\norigin = \"http://{}\"\n",
        page.addr(),
        other.addr()
    ))
    .expect("larder starts");
    let mut raw = RawClient::connect(daemon.addr()).await.expect("a connection").patience(PATIENCE);
    let secrets = ["x-api-key", "x-auth-token", "cookie", "authorization", "x-csrf-token"];
    let fields: String = secrets.iter().map(|name| format!("{name}: K\r\n")).collect();
    let asked = format!(
        "GET /page HTTP/1.1\r\nHost: a.test\r\nAccept-Language: de\r\nUser-Agent: u\r\n{fields}\r\n"
    );
    raw.send(asked.as_bytes(), WriteSplit::Whole).await.expect("taken");
    assert_eq!(crate::support::whole(raw.reply("GET").await, "/page").text(), "partown");
    let all = |origin: &ScriptedOrigin| {
        let recorded = origin.recorded();
        let read = |one: &testkit::origin::RecordedConnection| {
            read_requests(&one.bytes).expect("requests")
        };
        recorded.iter().flat_map(read).collect::<Vec<_>>()
    };
    let part = all(&other).pop().expect("it was asked");
    for name in secrets {
        assert_eq!(sent_field(&part, name), "", "{name}");
    }
    assert_eq!(sent_field(&part, "accept-language"), "de");
    assert_eq!(sent_field(&part, "user-agent"), "u");
    let own = all(&page).into_iter().find(|one| one.target == "/own").expect("its own");
    assert_eq!(sent_field(&own, "x-api-key"), "K");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_that_was_ended_is_not_read_off_for_long() {
    const MOST: usize = 64 << 20;
    let folder = Folder::new();
    let stage = stage(Policy::Declared, &folder, "", "").await;
    let mut client = h2::client(&stage.daemon).await;
    // PING without an end.
    let ping: Vec<u8> = [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], &[7; 8]].concat();
    let pings = ping.repeat(4096);
    let mut sent = 0;
    while sent < MOST && client.send(&pings).await.is_ok() {
        sent += pings.len();
    }
    assert!(sent < MOST, "all of {sent} bytes were taken");
}
