//! Tests of the client's address and scheme from proxies in front.

use crate::support;

use support::folder::Folder;
use support::{PATIENCE, Setup, Stage, eventually, is_hit, sent_field, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::Script;

async fn trusting(top: &str) -> Stage {
    let top = format!("trusted_proxies = \"127.0.0.1\"\n{top}");
    Setup { top: &top, ..Setup::default() }.start().await
}

const UNCACHED: &str = "Cache-Control: no-store\r\n";

#[tokio::test]
async fn a_strangers_forwarding_fields_are_ignored() {
    let stage = Stage::new().await;
    stage.origin.otherwise(Script::ok(UNCACHED, "here"));
    let forged = "X-Forwarded-For: 203.0.113.1\r\nX-Forwarded-Proto: https\r\nForwarded: for=x\r\n\
                  X-Real-IP: 203.0.113.1\r\nX_Real_IP: 203.0.113.1\r\nClient-IP: 203.0.113.1\r\n\
                  CF-Connecting-IP: 203.0.113.1\r\nX-SSL-Client-Verify: SUCCESS\r\n\
                  Front-End-Https: on\r\nX-Forwarded-Port: 1\r\nX-Forwarded-Host: evil.test\r\n";
    stage.ask("GET", "/page", forged).await;
    let sent = stage.sole_request("/page");
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "larder.test"),
        ("x-forwarded-port", "80"),
        ("forwarded", ""),
        ("x_real_ip", ""),
        ("client-ip", ""),
        ("cf-connecting-ip", ""),
        ("x-ssl-client-verify", ""),
        ("front-end-https", ""),
    ] {
        assert_eq!(sent_field(&sent, name), value, "{name}");
    }
}

#[tokio::test]
async fn what_a_trusted_proxy_says_is_passed_on_as_far_as_it_is_known() {
    let log = std::env::temp_dir().join(format!("larder-forwarding-{}.log", std::process::id()));
    let stage = trusting(&format!("forwarded = true\naccess_log = \"{}\"", log.display())).await;
    stage.origin.otherwise(Script::ok(UNCACHED, "here"));
    let said = "X-Forwarded-For: 203.0.113.1, 198.51.100.7\r\nX-Forwarded-Proto: https\r\n";
    stage.ask("GET", "/page", said).await;
    let sent = stage.sole_request("/page");
    for (name, value) in [
        ("x-forwarded-for", "198.51.100.7, 127.0.0.1"),
        ("x-real-ip", "198.51.100.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-port", "443"),
        ("forwarded", "for=198.51.100.7;host=\"larder.test\";proto=https, for=127.0.0.1"),
    ] {
        assert_eq!(sent_field(&sent, name), value, "{name}");
    }
    eventually("a line in the log", async || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.starts_with("198.51.100.7 - - "))
    })
    .await;
    std::fs::remove_file(log).expect("removed");
}

#[tokio::test]
async fn only_the_chosen_field_names_the_client() {
    for (field, client) in [
        ("Forwarded", "198.51.100.1"),
        ("X-Real-IP", "198.51.100.2"),
        ("X-My-Balancer", "198.51.100.3"),
        ("X-Forwarded-For", "198.51.100.4"),
    ] {
        let stage = trusting(&format!("client_field = \"{field}\"")).await;
        stage.origin.otherwise(Script::ok(UNCACHED, "here"));
        let all = "Forwarded: for=198.51.100.1\r\nX-Real-IP: 198.51.100.2\r\n\
                   X-My-Balancer: 198.51.100.3\r\nX-Forwarded-For: 198.51.100.4\r\n";
        stage.ask("GET", "/page", all).await;
        let sent = stage.sole_request("/page");
        let chain = format!("{client}, 127.0.0.1");
        assert_eq!(sent_field(&sent, "x-forwarded-for"), chain, "{field}");
        assert_eq!(sent_field(&sent, "x-real-ip"), client, "{field}");
        let own = if field == "X-My-Balancer" { client } else { "198.51.100.3" };
        assert_eq!(sent_field(&sent, "x-my-balancer"), own, "{field}");
    }
}

#[tokio::test]
async fn the_clients_scheme_decides_about_key_and_redirect() {
    let top = "trusted_proxies = \"127.0.0.1\"";
    let stage = Setup { top, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("here"));
    let https = "X-Forwarded-Proto: https\r\n";
    assert!(!is_hit(&stage.ask("GET", "/page", https).await));
    assert!(!is_hit(&stage.get("/page").await));
    assert!(is_hit(&stage.ask("GET", "/page", https).await));
    assert!(is_hit(&stage.get("/page").await));

    let redirecting =
        Setup { top, site: "redirect_https = true", ..Setup::default() }.start().await;
    redirecting.origin.otherwise(Script::cacheable("here"));
    let reply = redirecting.get("/page").await;
    assert_eq!(reply.status, 308);
    assert_eq!(reply.field("location").as_deref(), Some("https://larder.test/page"));
    assert_eq!(redirecting.ask("GET", "/page", https).await.status, 200);
}

#[tokio::test]
async fn what_varies_by_the_clients_address_is_not_kept_for_others() {
    let stage = trusting("").await;
    for vary in ["X-Forwarded-For", "Accept, x-real-ip", "Forwarded"] {
        let fields = format!("Cache-Control: max-age=60\r\nVary: {vary}\r\n");
        stage.origin.otherwise(Script::ok(&fields, "here"));
        let target = format!("/{}", vary.len());
        for _ in 0..3 {
            assert!(!is_hit(&stage.get(&target).await), "{vary}");
        }
        assert_eq!(stage.origin.seen(&target), 3, "{vary}");
    }
}

#[tokio::test]
async fn a_cacheable_get_that_comes_round_is_refused_without_waiting_for_itself() {
    let folder = Folder::new();
    let socket = folder.path().join("http.sock").display().to_string();
    // By waiting for itself it would notice at the timeout.
    let file = format!(
        "listen = [\"127.0.0.1:0\", \"unix:{socket}\"]\n[limits]\nfirst_byte_timeout = \"10m\"\n\
         [[origin]]\nname = \"itself\"\nservers = \"unix:{socket}\"\n\
         [[site]]\nhost = \"*\"\norigin = \"itself\"\n"
    );
    let daemon = Daemon::start(&file).expect("larder starts");
    let client = RawClient::connect(daemon.addr()).await.expect("a connection");
    let reply = whole(client.patience(PATIENCE).get("/page").await.expect("sent"), "/page");
    assert_eq!(reply.status, 508);
}

#[tokio::test]
async fn what_is_between_a_client_and_a_proxy_ends_here() {
    let stage = Stage::new().await;
    let asks = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nProxy-Authentication-Info: a=b\r\n\
                Cache-Control: no-store\r\nContent-Length: 0\r\n\r\n";
    stage.origin.on("/page", Script::respond(asks));
    for method in ["GET", "POST"] {
        let fields = "Proxy-Authorization: Basic eA==\r\nContent-Length: 0\r\n";
        let reply = stage.ask(method, "/page", fields).await;
        assert_eq!(reply.status, 407);
        assert_eq!(reply.field("proxy-authenticate"), None);
        assert_eq!(reply.field("proxy-authentication-info"), None);
    }
    for request in stage.received() {
        assert!(request.values("proxy-authorization").is_empty());
    }
}

/// A daemon whose program forwards requests to the daemon's own listener, and reports how it treats
/// them.
fn ring(folder: &Folder, program: &str) -> Daemon {
    let socket = folder.path().join("http.sock").display().to_string();
    let vcl = folder.path().join("ring.vcl").display().to_string();
    let patience = ".first_byte_timeout = 600s;";
    folder.file(
        "ring.vcl",
        format!("vcl 4.1;\nbackend own {{ .path = \"{socket}\"; {patience} }}\n{program}"),
    );
    let file = format!(
        "listen = [\"127.0.0.1:0\", \"unix:{socket}\"]\nvcl = \"{vcl}\"\n[[site]]\nhost = \"*\"\n"
    );
    Daemon::start(&file).expect("larder starts")
}

async fn status_of(daemon: &Daemon, method: &str, target: &str) -> u16 {
    let mut client =
        RawClient::connect(daemon.addr()).await.expect("a connection").patience(PATIENCE);
    let asked = request(method, target, "Content-Length: 0\r\n");
    client.send(&asked, WriteSplit::Whole).await.expect("sent");
    whole(client.reply(method).await, target).status
}

#[tokio::test]
async fn a_request_that_a_program_sends_round_is_refused_without_waiting_for_itself() {
    let folder = Folder::new();
    let daemon = ring(
        &folder,
        "sub vcl_recv {\n    if (req.url ~ \"pass\") { return (pass); }\n    \
         if (req.url ~ \"pipe\") { return (pipe); }\n}\n",
    );
    for (method, target) in
        [("GET", "/page"), ("POST", "/page"), ("GET", "/pass"), ("GET", "/pipe"), ("GET", "/page")]
    {
        assert_eq!(status_of(&daemon, method, target).await, 508, "{method} {target}");
    }
}

#[tokio::test]
async fn a_ring_that_is_tried_again_ends() {
    let folder = Folder::new();
    // The last refused request is repeated once, over an equally long way.
    let daemon = ring(
        &folder,
        "sub vcl_backend_response {\n    \
         if (beresp.status == 508 && bereq.retries == 0) { return (retry); }\n}\n",
    );
    assert_eq!(status_of(&daemon, "GET", "/page").await, 508);
}

#[tokio::test]
async fn a_program_behind_a_program_of_the_same_daemon_is_no_ring_and_fetches_once_for_all() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable("a page").delay_ms(300));
    let folder = Folder::new();
    let (host, port) = (stage.origin.addr().ip(), stage.origin.addr().port());
    let daemon = ring(
        &folder,
        &format!(
            "backend last {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
             sub vcl_recv {{\n    if (!req.http.Tier) {{ set req.http.Tier = \"2\"; \
             set req.backend_hint = own; return (pass); }}\n    \
             set req.backend_hint = last;\n}}\n"
        ),
    );
    let asked = || status_of(&daemon, "GET", "/page");
    let (first, second, third) = tokio::join!(asked(), asked(), asked());
    assert_eq!((first, second, third), (200, 200, 200));
    assert_eq!(stage.origin.seen("/page"), 1);
}
