//! Tests of fields that Connection names: the peer's are removed, those added here stay.

use data_encoding::BASE64;
use testkit::fastcgi::ApplicationScript;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reference_reader::ParsedRequest;

use super::{Stage, stage};
use crate::support::disked::{BOTH, Policy};
use crate::support::folder::Folder;
use crate::support::{is_hit, scripts, sent_field};

const UNCACHED: &str = "Cache-Control: no-store\r\n";

/// `htpasswd -nbB -C 5 ann secret`.
pub(crate) const USERS: &str = "ann:$2y$05$pirA/ZQzb4TZXyVzoFnxVO9xpzbhsxFvsySVXQE3G/voezCDT78bO\n";

fn connection(names: &[&str]) -> String {
    format!("Connection: close, {}\r\n", names.join(", "))
}

/// The latest request to the origin.
fn latest(stage: &Stage) -> ParsedRequest {
    stage.received().pop().expect("the origin was asked")
}

/// Sends a Connection that names all of `added`, and finds them at the origin all the same.
async fn stay(stage: &Stage, target: &str, fields: &str, added: &[(&str, &str)]) {
    let names: Vec<_> = added.iter().map(|(name, _)| *name).collect();
    let hop = "X-Hop: 1\r\n";
    let fields = format!("{fields}{hop}{}", connection(&[&names[..], &["X-Hop"]].concat()));
    let reply = stage.ask("GET", target, &fields).await;
    assert_eq!(reply.status, 200, "{target}");
    let sent = latest(stage);
    for (name, value) in added {
        assert_eq!(sent_field(&sent, name), *value, "{target}: {name}");
    }
    assert_eq!(sent_field(&sent, "x-hop"), "", "{target}: the client's own goes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_removes_no_field_that_larder_sends_to_the_origin() {
    let folder = Folder::new();
    let site = "request_headers = { set = { X-Secret = \"s\" } }\n";
    let stage = stage(Policy::Declared, &folder, "forwarded = true\n", site).await;
    stage.origin.otherwise(Script::ok(UNCACHED, "here"));
    for (target, fields) in [("/a", ""), ("/b", "Cookie: sid=1\r\n"), ("/c", "Upgrade: x\r\n")] {
        let added = [
            ("X-Secret", "s"),
            ("X-Forwarded-For", "127.0.0.1"),
            ("X-Forwarded-Proto", "http"),
            ("X-Forwarded-Host", "larder.test"),
            ("X-Real-IP", "127.0.0.1"),
            ("Forwarded", "for=127.0.0.1;host=\"larder.test\";proto=http"),
            ("Via", "1.1 larder"),
        ];
        stay(&stage, target, fields, &added).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_takes_off_nothing_that_a_program_has_set() {
    let folder = Folder::new();
    let stage = stage(Policy::Vcl, &folder, "", "").await;
    stage.origin.otherwise(Script::ok(UNCACHED, "here"));
    for target in ["/a", "/pass/a", "/pipe/a"] {
        let brought = "X-Recv: own\r\nX-Fetch: own\r\n";
        let added = [("X-Recv", "set"), ("X-Fetch", "set")];
        stay(&stage, target, brought, &added).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_field_is_sent_whatever_connection_names() {
    let folder = Folder::new();
    folder.file("users", USERS);
    let users = folder.path().join("users");
    let site = format!(
        "basic_auth = {{ file = \"{}\", user_field = \"Remote-User\" }}\n",
        users.display()
    );
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::ok(UNCACHED, "here"));
    let shown = format!("Authorization: Basic {}\r\n", BASE64.encode(b"ann:password"));
    stay(&stage, "/page", &shown, &[("Remote-User", "ann")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_stored_for_the_group_that_the_origin_got() {
    let folder = Folder::new();
    let keeper = ScriptedOrigin::start().await.expect("an origin");
    keeper.otherwise(Script::ok("X-Groups: staff\r\n", ""));
    let site = format!(
        "forward_auth = {{ origin = \"http://{}\", path = \"/verify\", copy = [\"X-Groups\"] }}\n\
         cache = {{ key_headers = [\"X-Groups\"] }}\n",
        keeper.addr()
    );
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::mirror("Cache-Control: max-age=600\r\n"));
    let first = stage.ask("GET", "/page", &connection(&["X-Groups"])).await;
    assert!(first.text().to_lowercase().contains("x-groups: staff\n"), "{}", first.text());
    let second = stage.get("/page").await;
    assert!(is_hit(&second));
    assert!(second.text().to_lowercase().contains("x-groups: staff\n"), "{}", second.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_gets_its_parameters_whatever_connection_names() {
    let stage =
        scripts::Stage::start("", "request_headers = { set = { X-Secret = \"s\" } }\n").await;
    stage.app.otherwise(ApplicationScript::answer("Cache-Control: no-store\r\n\r\nhere"));
    let fields = connection(&["X-Secret", "X-Forwarded-For", "X-Hop"]) + "X-Hop: 1\r\n";
    assert_eq!(stage.ask("GET", "/index.php", &fields).await.status, 200);
    let asked = stage.app.last();
    assert_eq!(asked.param("HTTP_X_SECRET"), "s");
    assert_eq!(asked.param("HTTP_X_FORWARDED_FOR"), "127.0.0.1");
    assert!(!asked.has("HTTP_X_HOP"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_removes_no_field_that_larder_sends_to_clients() {
    for policy in BOTH {
        let folder = Folder::new();
        let site = match policy {
            Policy::Declared => "response_headers = { set = { X-Deliver = \"set\" } }\n",
            Policy::Vcl => "",
        };
        let stage = stage(policy, &folder, "", site).await;
        stage.origin.otherwise(Script::respond(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\nX-Hop: 1\r\n\
             Content-Length: 4\r\nConnection: keep-alive, X-Hop, Age, Cache-Status, ETag, X-Cache, \
             Via, Date, X-Deliver, X-Varnish, Cache-Control, Vary\r\nVary: X-Kind\r\n\r\npage",
        ));
        for n in 0..2 {
            let reply = stage.ask("GET", "/page", "X-Kind: a\r\n").await;
            let has = |name: &str| reply.field(name).is_some();
            assert_eq!((reply.status, reply.text().as_str()), (200, "page"), "{policy:?} {n}");
            for name in ["ETag", "Via", "Date", "X-Deliver", "Vary", "Cache-Control"] {
                assert!(has(name), "{policy:?} {n}: {name}");
            }
            assert!(has("Age") || n == 0, "{policy:?} {n}");
            assert!(has("Cache-Status") || policy == Policy::Vcl, "{policy:?} {n}");
            assert!(!has("X-Hop"), "{policy:?} {n}: that of the origin goes");
        }
        assert_eq!(stage.origin.seen("/page"), 1, "{policy:?}");
        stage.ask("GET", "/page", "X-Kind: b\r\n").await;
        assert_eq!(stage.origin.seen("/page"), 2, "{policy:?}: Vary counts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_connection_names_is_stored_for_others_no_more_easily() {
    for policy in BOTH {
        let folder = Folder::new();
        let stage = stage(policy, &folder, "", "").await;
        for (name, fields) in [
            ("Cache-Control", "Cache-Control: private, max-age=600\r\n"),
            ("Set-Cookie", "Cache-Control: max-age=600\r\nSet-Cookie: sid=1\r\n"),
        ] {
            let target = format!("/{}", name.to_lowercase());
            stage.origin.on(&target, Script::respond(format!(
                "HTTP/1.1 200 OK\r\n{fields}Content-Length: 4\r\nConnection: keep-alive, {name}\r\n\
                 \r\npage"
            )));
            for asked in 1..3 {
                stage.get(&target).await;
                assert_eq!(stage.origin.seen(&target), asked, "{policy:?} {name}");
            }
        }
    }
}
