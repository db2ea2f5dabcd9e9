//! Tests of authentication (`basic_auth`, `forward_auth`): under the declared policy and under a
//! program, over HTTP/1 and HTTP/2.

use crate::support;

use std::process::Command;

use data_encoding::BASE64;
use support::console::run;
use support::disked::{BOTH, Policy};
use support::folder::Folder;
use support::h2::client;
use support::{PATIENCE, Stage, eventually, is_hit, sent_field, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::h2::Request;
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::net::TcpSocket;

/// `htpasswd -nbB -C 5 ann secret`, and apr1 and SHA-1 for two others.
const USERS: &str = "ann:$2y$05$pirA/ZQzb4TZXyVzoFnxVO9xpzbhsxFvsySVXQE3G/voezCDT78bO\n\
    bob:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n\
    old:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";

/// The configuration of a site of either kind, with these keys of the file and the site.
fn file(policy: Policy, origin: &ScriptedOrigin, folder: &Folder, top: &str, site: &str) -> String {
    let addr = origin.addr();
    let head =
        format!("listen = \"127.0.0.1:0 h2c\"\nworkers = 1\n{top}\n[[site]]\nhost = \"*\"\n");
    if policy == Policy::Declared {
        return format!("{head}origin = \"http://{addr}\"\nupgrade = \"echo\"\n{site}\n");
    }
    let (host, port) = (addr.ip(), addr.port());
    folder.file(
        "site.vcl",
        format!(
            "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
             sub vcl_recv {{ if (req.http.upgrade) {{ return (pipe); }} }}\n\
             sub vcl_pipe {{ set bereq.http.upgrade = req.http.upgrade; \
             set bereq.http.connection = req.http.connection; }}\n\
             sub vcl_deliver {{ if (obj.hits > 0) \
             {{ set resp.http.cache-status = \"larder; hit\"; }} }}\n"
        ),
    );
    let vcl = folder.path().join("site.vcl");
    format!("{head}vcl = \"{}\"\n{site}\n", vcl.display())
}

/// A site of either kind, with these keys, whose pages are stored.
async fn stage(policy: Policy, folder: &Folder, top: &str, site: &str) -> Stage {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::cacheable("page"));
    let daemon = Daemon::start(&file(policy, &origin, folder, top, site)).expect("larder starts");
    Stage { origin, daemon }
}

/// A folder with a users file, and the keys of a site that uses it.
fn users(more: &str) -> (Folder, String) {
    let folder = Folder::new();
    folder.file("users", USERS);
    let path = folder.path().join("users");
    (folder, format!("basic_auth = {{ file = \"{}\"{more} }}\n", path.display()))
}

fn shown(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", BASE64.encode(format!("{user}:{password}").as_bytes()))
}

/// The password of all three users.
const PASSWORD: &str = "password";

#[tokio::test(flavor = "multi_thread")]
async fn only_authenticated_clients_get_objects_stored_for_all() {
    for policy in BOTH {
        let (folder, site) = users(", realm = \"the cellar\"");
        let log = folder.path().join("log");
        let log = format!(
            "access_log = {{ path = \"{}\", format = \"$remote_user $status\" }}",
            log.display()
        );
        let stage = stage(policy, &folder, &log, &site).await;
        let wrong = [
            String::new(),
            shown("ann", "wrong"),
            shown("nobody", PASSWORD),
            shown("ann", ""),
            "Authorization: Basic !!!\r\n".to_owned(),
            "Authorization: Bearer x\r\n".to_owned(),
            shown("ann", PASSWORD) + &shown("ann", PASSWORD),
        ];
        for fields in &wrong {
            let reply = stage.ask("GET", "/page", fields).await;
            let challenge = reply.field("www-authenticate");
            let told = "Basic realm=\"the cellar\", charset=\"UTF-8\"";
            assert_eq!((reply.status, challenge.as_deref()), (401, Some(told)), "{fields}");
            assert_eq!(reply.field("cache-control").as_deref(), Some("no-store"));
        }
        assert_eq!(stage.origin.targets(), [""; 0], "{policy:?}: the origin was not asked");
        for (n, user) in ["ann", "bob", "old", "ann", "bob"].into_iter().enumerate() {
            let reply = stage.ask("GET", "/page", &shown(user, PASSWORD)).await;
            assert_eq!((reply.status, reply.text().as_str()), (200, "page"), "{user}");
            assert_eq!(is_hit(&reply), n > 0, "{policy:?}: {user}");
        }
        assert_eq!(sent_field(&stage.sole_request("/page"), "authorization"), "", "{policy:?}");
        assert_eq!(stage.ask("GET", "/page", "").await.status, 401, "{policy:?}: stored or not");
        // Three users with right passwords, and two attempts with wrong ones.
        assert_eq!(stage.metric("larder_gate_checked_total").await, 6, "{policy:?}");
        assert_eq!(stage.metric("larder_gate_remembered_total").await, 2, "{policy:?}");
        eventually("the users are in the log", async || {
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            log.lines().filter(|line| *line == "ann 200").count() == 2
                && log.lines().filter(|line| *line == "bob 200").count() == 2
                && log.lines().filter(|line| *line == "- 401").count() > 2
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http2_the_gate_is_the_same() {
    for policy in BOTH {
        let (folder, site) = users("");
        let stage = stage(policy, &folder, "", &site).await;
        let mut client = client(&stage.daemon).await;
        let reply = client.get("/page").await.answer("/page");
        assert_eq!(reply.status, 401, "{policy:?}");
        assert!(reply.field("www-authenticate").is_some());
        for (n, user) in ["ann", "bob", "ann"].into_iter().enumerate() {
            let credentials =
                format!("Basic {}", BASE64.encode(format!("{user}:{PASSWORD}").as_bytes()));
            let asked = Request::get("/page").field("authorization", &credentials);
            let reply = client.fetch(&asked).await.answer("/page");
            assert_eq!((reply.status, reply.text().as_str()), (200, "page"), "{policy:?}");
            assert_eq!(
                reply.field("cache-status").is_some_and(|told| told.contains("; hit")),
                n > 0,
                "{policy:?}: {user}"
            );
        }
    }
}

/// An upload that waits for authentication, a connection that is to be a tunnel, and an abandoned
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_and_tunnels_wait_behind_the_gate() {
    for policy in BOTH {
        let (folder, site) = users("");
        let stage = stage(policy, &folder, "", &site).await;
        stage.origin.on("/upload", Script::mirror(""));
        let body = "x".repeat(100_000);
        let fields = format!(
            "{}Content-Length: {}\r\nExpect: 100-continue\r\n",
            shown("ann", PASSWORD),
            body.len()
        );
        let mut raw = stage.connect().await;
        let whole_request = [&request("POST", "/upload", &fields)[..], body.as_bytes()].concat();
        raw.send(&whole_request, WriteSplit::Whole).await.expect("it is taken");
        let reply = whole(raw.reply("POST").await, "/upload");
        assert_eq!(reply.status, 200, "{policy:?}");
        let sent = stage.sole_request("/upload");
        assert_eq!(sent_field(&sent, "authorization"), "", "{policy:?}");
        assert!(sent.body == body.as_bytes(), "{policy:?}: another body");
        // Rejected before the body arrives.
        let fields = "Content-Length: 5\r\nExpect: 100-continue\r\n";
        let reply = stage.ask("POST", "/upload", fields).await;
        assert_eq!((reply.status, reply.interim.len()), (401, 0), "{policy:?}");

        let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\
                      \r\nhello";
        stage.origin.on("/tunnel", Script::default().send(agreed).close());
        let wish = format!("Connection: Upgrade\r\nUpgrade: echo\r\n{}", shown("bob", PASSWORD));
        let mut raw = stage.connect().await;
        raw.send(&request("GET", "/tunnel", &wish), WriteSplit::Whole).await.expect("it is taken");
        let (seen, _) = raw.rest().await;
        let seen = String::from_utf8_lossy(&seen);
        assert!(seen.starts_with("HTTP/1.1 101 ") && seen.ends_with("\r\n\r\nhello"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_that_the_origin_gets_is_never_another_s() {
    let (folder, site) = users(", user_field = \"Remote-User\"");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::mirror("Cache-Control: max-age=600\r\n"));
    for user in ["ann", "bob", "ann", "bob"] {
        let forged = "Remote-User: root\r\nremote_user: root\r\n";
        let reply = stage.ask("GET", "/page", &(shown(user, PASSWORD) + forged)).await;
        let text = reply.text().to_lowercase();
        assert!(text.contains(&format!("remote-user: {user}\n")), "{user}: {text}");
        assert!(!text.contains("root") && !text.contains("authorization"), "{text}");
        assert!(!is_hit(&reply), "{user}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_with_the_user_in_the_key_are_stored_for_each_user() {
    let (folder, site) = users(", user_field = \"Remote-User\"");
    let site = format!("{site}cache = {{ key_headers = [\"Remote-User\"] }}\n");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::mirror("Cache-Control: max-age=600\r\n"));
    for (n, user) in ["ann", "bob", "ann", "bob"].into_iter().enumerate() {
        let reply = stage.ask("GET", "/page", &shown(user, PASSWORD)).await;
        let text = reply.text().to_lowercase();
        assert!(text.contains(&format!("remote-user: {user}\n")), "{user}: {text}");
        assert_eq!(is_hit(&reply), n > 1, "{user}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_has_gates_of_its_own_whatever_its_path_looks_like() {
    let (folder, site) = users("");
    let site = format!(
        "[[site.route]]\nname = \"inner\"\npath = \"/inner/*\"\n{site}\
         [[site.route]]\nname = \"open\"\npath = \"/inner-open/*\"\nbasic_auth = false\n"
    );
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    for (target, status) in
        [("/page", 200), ("/inner-open/a", 200), ("/inner/a", 401), ("/%69nner/a", 401)]
    {
        assert_eq!(stage.get(target).await.status, status, "{target}");
    }
    let remembered = stage.metric("larder_gate_remembered_total").await;
    assert_eq!(remembered, 0, "where there is no gate none lets in");
    // Spellings that an origin may take for the protected path never bypass it by another route.
    for target in ["//inner/a", "/x/../inner/a", "/inner;x/a", "/x/..;/inner/a", "/inner%2fa"] {
        let status = stage.get(target).await.status;
        assert!([400, 401, 403].contains(&status), "{target}: {status}");
    }
    assert!(stage.origin.targets().iter().all(|target| !target.contains("inner/a")));
    assert_eq!(stage.ask("GET", "/inner/a", &shown("ann", PASSWORD)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_takes_other_users_and_keeps_the_old_ones_if_it_cannot() {
    let (folder, site) = users("");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    assert_eq!(stage.ask("GET", "/page", &shown("ann", PASSWORD)).await.status, 200);
    folder.file("users", "bob:plain\n");
    let (done, out, err) = run(&stage.daemon, &["reload"]).await;
    assert!(!done && (out + &err).contains("line 1"), "it is told where");
    assert_eq!(stage.ask("GET", "/page", &shown("ann", PASSWORD)).await.status, 200);
    folder.file("users", "bob:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n");
    let (done, _, err) = run(&stage.daemon, &["reload"]).await;
    assert!(done, "{err}");
    assert_eq!(stage.ask("GET", "/page", &shown("ann", PASSWORD)).await.status, 401);
    assert_eq!(stage.ask("GET", "/page", &shown("bob", PASSWORD)).await.status, 200);
    let (done, out, err) = run(&stage.daemon, &["explain", "http://larder.test/page"]).await;
    assert!(done && out.contains("basic_auth"), "{out}{err}");
}

#[test]
fn a_check_names_what_is_wrong_and_where() {
    let folder = Folder::new();
    folder.file("users", USERS);
    folder.file("plain", "ann:secret\n");
    let at = folder.path().display().to_string();
    let vcl = folder.path().join("site.vcl");
    folder.file("site.vcl", "vcl 4.1;\nbackend a { .host = \"127.0.0.1\"; }\n");
    for (site, words) in [
        ("basic_auth = {}", "`basic_auth` without `file`"),
        ("basic_auth = { file = \"users\" }", "takes an absolute path"),
        ("basic_auth = { file = \"AT/none\" }", "No such file"),
        ("basic_auth = { file = \"AT/plain\" }", "line 1: not a bcrypt, apr1 or SHA-1 hash"),
        ("basic_auth = { file = \"AT/users\", realm = \"a\\\"b\" }", "a realm has no quotes"),
        ("forward_auth = { path = \"/a\" }", "`forward_auth` without `origin`"),
        ("forward_auth = { origin = \"http://127.0.0.1:1\" }", "`forward_auth` without `path`"),
        ("forward_auth = { origin = \"nobody\", path = \"/a\" }", "no origin is called `nobody`"),
        ("forward_auth = { origin = \"http://127.0.0.1:1\", path = \"a\" }", "`a` is no path"),
        (
            "forward_auth = { origin = \"http://127.0.0.1:1\", path = \"/a\", copy = \"Host\" }",
            "the field belongs to",
        ),
        (
            "VCL basic_auth = { file = \"AT/users\", user_field = \"Remote-User\" }",
            "forwards the user, beside a VCL",
        ),
    ] {
        let origin = match site.strip_prefix("VCL ") {
            Some(_) => format!("vcl = \"{}\"", vcl.display()),
            None => "origin = \"http://127.0.0.1:1\"".to_owned(),
        };
        let site = site.trim_start_matches("VCL ").replace("AT", &at);
        let text = format!("listen = \"127.0.0.1:0\"\n[[site]]\nhost = \"*\"\n{origin}\n{site}\n");
        folder.file("larder.toml", &text);
        let checked = Command::new(binary().expect("a binary"))
            .arg("check")
            .arg(folder.path().join("larder.toml"))
            .output()
            .expect("it ran");
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(!checked.status.success() && said.contains(words), "{site}: {said}");
    }
}

/// An authentication server that admits the user whom a cookie names.
async fn gatekeeper() -> ScriptedOrigin {
    let keeper = ScriptedOrigin::start().await.expect("a port");
    keeper.otherwise(Script::ok("Remote-User: ann\r\nRemote-Groups: staff\r\n", "welcome"));
    keeper
}

fn asks(keeper: &ScriptedOrigin, more: &str) -> String {
    format!(
        "forward_auth = {{ origin = \"http://{}\", path = \"/verify?by=larder\"{more} }}\n",
        keeper.addr()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_lets_in_and_what_is_stored_is_for_all_of_them() {
    for policy in BOTH {
        let (folder, keeper) = (Folder::new(), gatekeeper().await);
        let stage = stage(policy, &folder, "", &asks(&keeper, "")).await;
        let fields = "Cookie: sid=1\r\nX-Forwarded-Uri: /other\r\nX-Forwarded-For: 192.0.2.9\r\n\
                      If-None-Match: \"x\"\r\nRange: bytes=0-1\r\n";
        for n in 1..=3 {
            let reply = stage.ask("GET", "/page?a=b", fields).await;
            assert!([200, 206].contains(&reply.status), "{policy:?}: {}", reply.status);
            assert_eq!(keeper.seen("/verify?by=larder"), n, "{policy:?}: each time");
        }
        let recorded = keeper.recorded();
        let text = String::from_utf8_lossy(&recorded[0].bytes).to_lowercase();
        let first = text.split("\r\n\r\n").next().unwrap_or_default().to_owned() + "\r\n";
        for line in [
            "get /verify?by=larder http/1.1\r\n",
            "cookie: sid=1\r\n",
            "x-forwarded-method: get\r\n",
            "x-forwarded-proto: http\r\n",
            "x-forwarded-host: larder.test\r\n",
            "x-forwarded-uri: /page?a=b\r\n",
            "x-forwarded-for: 127.0.0.1\r\n",
        ] {
            assert_eq!(first.matches(line).count(), 1, "{policy:?}: {line}{first}");
        }
        for gone in ["/other", "192.0.2.9", "if-none-match", "range:"] {
            assert!(!first.contains(gone), "{policy:?}: {first}");
        }
        let post = [&request("POST", "/page", "Content-Length: 4\r\n")[..], b"body"].concat();
        assert_eq!(stage.exchange("POST", &post).await.status, 200, "{policy:?}");
        assert_eq!(stage.metric("larder_gate_asked_total").await, 4, "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_clients_get_the_servers_own_response() {
    for policy in BOTH {
        let (folder, keeper) = (Folder::new(), gatekeeper().await);
        let stage = stage(policy, &folder, "", &asks(&keeper, ", keep = \"1h\"")).await;
        keeper.otherwise(Script::respond(
            "HTTP/1.1 302 Found\r\nLocation: https://login.test/?to=%2Fpage\r\n\
             Set-Cookie: state=1\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\nlogin",
        ));
        for n in 1..=2 {
            let reply = stage.get("/page").await;
            assert_eq!((reply.status, reply.text().as_str()), (302, "login"), "{policy:?}");
            let location = reply.field("location");
            assert_eq!(location.as_deref(), Some("https://login.test/?to=%2Fpage"));
            assert_eq!(reply.field("set-cookie").as_deref(), Some("state=1"));
            assert_eq!(reply.field("cache-control").as_deref(), Some("private, no-store"));
            assert_eq!(keeper.seen("/verify?by=larder"), n, "{policy:?}: a no is not remembered");
        }
        let head = stage.ask("HEAD", "/page", "").await;
        assert_eq!((head.status, head.body.len()), (302, 0), "{policy:?}");
        assert_eq!(stage.origin.targets(), [""; 0], "{policy:?}");
        keeper.otherwise(Script::default().close());
        assert_eq!(stage.get("/page").await.status, 502, "{policy:?}: it says nothing");
        keeper.otherwise(Script::respond("HTTP/1.1 304 Not Modified\r\n\r\n"));
        assert_eq!(stage.get("/page").await.status, 502, "{policy:?}: it says nothing of use");
        keeper.otherwise(Script::ok("", &"x".repeat(300 << 10)));
        assert_eq!(stage.get("/page").await.status, 502, "{policy:?}: it says too much");
        assert_eq!(stage.limit_hits("gate_answer_bytes").await, 1, "{policy:?}");
        drop(keeper);
        assert_eq!(stage.get("/page").await.status, 502, "{policy:?}: it is gone");
        assert_eq!(stage.origin.targets(), [""; 0], "{policy:?}: nobody was let in");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_cached_for_equal_credentials() {
    let (folder, keeper) = (Folder::new(), gatekeeper().await);
    let site = asks(&keeper, ", keep = \"1h\", keep_for = \"site\"");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    for (target, cookie, asked) in [
        ("/a", "sid=1", 1),
        ("/a", "sid=1", 1),
        ("/b", "sid=1", 1),
        ("/a", "sid=2", 2),
        ("/a", "", 3),
        ("/a", "", 3),
    ] {
        let fields = match cookie {
            "" => String::new(),
            cookie => format!("Cookie: {cookie}\r\n"),
        };
        assert_eq!(stage.ask("GET", target, &fields).await.status, 200);
        assert_eq!(keeper.seen("/verify?by=larder"), asked, "{target} {cookie}");
    }
    let (folder, keeper) = (Folder::new(), gatekeeper().await);
    let stage = self::stage(Policy::Vcl, &folder, "", &asks(&keeper, ", keep = \"1h\"")).await;
    for (method, target, asked) in
        [("GET", "/a", 1), ("GET", "/a", 1), ("GET", "/b", 2), ("HEAD", "/a", 3)]
    {
        assert_eq!(stage.ask(method, target, "").await.status, 200);
        assert_eq!(keeper.seen("/verify?by=larder"), asked, "{method} {target}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_for_values_in_their_own_fields() {
    let (folder, keeper) = (Folder::new(), gatekeeper().await);
    let site = asks(&keeper, ", keep = \"1h\", by = [\"x-a\", \"x-b\"]");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    let all = [
        "x-b: x-b\r\n",
        "x-a: x-b\r\n",
        "x-a: x-b\r\nx-b:\r\n",
        "x-a:\r\nx-b: x-b\r\n",
        "x-a: x-b\r\nx-a:\r\n",
        "",
    ];
    for (n, fields) in all.iter().chain(&all).enumerate() {
        assert_eq!(stage.ask("GET", "/a", fields).await.status, 200);
        let asked = (n + 1).min(all.len());
        assert_eq!(keeper.seen("/verify?by=larder"), asked, "{fields}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_is_copied_is_never_another_s() {
    let (folder, keeper) = (Folder::new(), gatekeeper().await);
    let site = asks(&keeper, ", copy = [\"Remote-User\", \"Remote-Groups\"]");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::mirror("Cache-Control: max-age=600\r\n"));
    for user in ["ann", "bob", "ann"] {
        keeper.otherwise(Script::ok(&format!("Remote-User: {user}\r\n"), ""));
        let forged = "Remote-User: root\r\nRemote-Groups: root\r\nremote_groups: root\r\n";
        let reply = stage.ask("GET", "/page", forged).await;
        let text = reply.text().to_lowercase();
        assert!(text.contains(&format!("remote-user: {user}\n")), "{text}");
        assert!(!text.contains("root") && !text.contains("remote-groups"), "{text}");
        assert!(!is_hit(&reply));
    }
}

/// A password first, then another server, which does not get the password.
#[tokio::test(flavor = "multi_thread")]
async fn two_gates_stand_behind_each_other() {
    for policy in BOTH {
        let (folder, site) = users("");
        let keeper = gatekeeper().await;
        let stage = stage(policy, &folder, "", &(site + &asks(&keeper, ""))).await;
        assert_eq!(stage.get("/page").await.status, 401, "{policy:?}");
        assert_eq!(keeper.targets(), [""; 0], "{policy:?}");
        let reply = stage.ask("GET", "/page", &shown("ann", PASSWORD)).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "page"), "{policy:?}");
        let recorded = keeper.recorded();
        let text = String::from_utf8_lossy(&recorded[0].bytes).to_lowercase();
        assert!(!text.contains("authorization"), "{policy:?}: {text}");
    }
}

/// The decisions agree with those of Debian's nginx.
#[tokio::test(flavor = "multi_thread")]
async fn curl_is_let_in_by_its_user_and_password() {
    let (folder, site) = users("");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    for (user, status) in [("ann:password", "200"), ("ann:wrong", "401"), ("x:password", "401")] {
        let url = format!("http://{}/page", stage.daemon.addr());
        let said = tokio::task::block_in_place(|| {
            let args = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "60", "-u"];
            Command::new("curl").args(args).args([user, &url]).output().expect("curl")
        });
        assert_eq!(String::from_utf8_lossy(&said.stdout), status, "{user}");
    }
}

/// An attacker's many passwords do not delay other users.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_has_few_passwords_checked_at_once() {
    let (folder, site) = users("");
    // Slow enough that several overlap.
    let hash = "$2y$12$Wq9QhDhVbcmHUN1xnkYNyuS/MWYRLjdFXGO6mDt4Z7FpBDFpyMgEe";
    folder.file("users", format!("slow:{hash}\nbob:$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00\n"));
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    let mut clients = Vec::new();
    for n in 0..40 {
        let mut raw = stage.connect().await;
        let asked = request("GET", "/page", &shown("slow", &format!("guess {n}")));
        raw.send(&asked, WriteSplit::Whole).await.expect("sent");
        clients.push(raw);
    }
    let mut seen = [0; 2];
    for mut raw in clients {
        let reply = whole(raw.reply("GET").await, "/page");
        match reply.status {
            401 => seen[0] += 1,
            429 => seen[1] += 1,
            other => panic!("{other}"),
        }
    }
    assert!(seen[0] >= 2 && seen[1] > 0, "{seen:?}");
    assert_eq!(stage.limit_hits("password_checks_client").await, seen[1]);
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.9:0".parse().expect("an address")).expect("it is this machine's");
    let stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
    let mut raw = RawClient::over(stream).patience(PATIENCE);
    raw.send(&request("GET", "/page", &shown("bob", PASSWORD)), WriteSplit::Whole)
        .await
        .expect("sent");
    let reply: Reply = whole(raw.reply("GET").await, "/page");
    assert_eq!(reply.status, 200);
}

/// Forwarding fields of an untrusted client: servers that decide by some of them get none.
#[tokio::test(flavor = "multi_thread")]
async fn forged_proxy_fields_admit_no_client() {
    for policy in BOTH {
        let (folder, keeper) = (Folder::new(), gatekeeper().await);
        let stage = stage(policy, &folder, "", &asks(&keeper, "")).await;
        let forged = "X-Original-URL: http://larder.test/forged\r\nX-Original-Method: FORGED\r\n\
                      X-Forwarded-Server: forged\r\nX_Forwarded_Uri: /forged\r\n\
                      X-Real-IP: forged\r\nRemote-User: forged\r\nClient-Cert: forged\r\n\
                      X-Own: kept\r\n";
        assert_eq!(stage.ask("GET", "/page", forged).await.status, 200, "{policy:?}");
        let asked = text_of(&keeper);
        assert!(asked.contains("x-own: kept") && !asked.contains("forged"), "{policy:?}: {asked}");
    }
}

/// The requests to `origin`, in lower case.
fn text_of(origin: &ScriptedOrigin) -> String {
    let recorded = origin.recorded();
    let texts = recorded.iter().map(|one| String::from_utf8_lossy(&one.bytes).to_lowercase());
    texts.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_s_client_fields_reach_the_authentication_server() {
    let (folder, keeper) = (Folder::new(), gatekeeper().await);
    let site = asks(&keeper, ", keep = \"1h\"");
    let stage = stage(Policy::Declared, &folder, "trusted_proxies = \"127.0.0.0/8\"", &site).await;
    for (n, scheme) in ["https", "http", "https"].into_iter().enumerate() {
        let fields = format!("X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: {scheme}\r\n");
        assert_eq!(stage.ask("GET", "/page", &fields).await.status, 200);
        let asked = (n + 1).min(2);
        assert_eq!(keeper.seen("/verify?by=larder"), asked, "a yes is for one scheme");
        let text = text_of(&keeper);
        for (line, count) in [
            ("x-forwarded-proto: https\r\n", 1),
            ("x-forwarded-proto: http\r\n", asked - 1),
            ("x-forwarded-for: 192.0.2.9\r\n", asked),
        ] {
            assert_eq!(text.matches(line).count(), count, "{line}{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_password_is_requested_over_cleartext() {
    let (folder, site) = users("");
    let top = "trusted_proxies = \"127.0.0.0/8\"";
    let site = format!("redirect_https = true\n{site}");
    let stage = stage(Policy::Declared, &folder, top, &site).await;
    for fields in [String::new(), shown("ann", PASSWORD), "X-Forwarded-Proto: http\r\n".to_owned()]
    {
        let reply = stage.ask("GET", "/page", &fields).await;
        let to = reply.field("location");
        assert_eq!((reply.status, to.as_deref()), (308, Some("https://larder.test/page")));
        assert_eq!(reply.field("www-authenticate"), None, "{fields}");
    }
    assert_eq!(stage.metric("larder_gate_checked_total").await, 0);
    let secure = "X-Forwarded-Proto: https\r\n";
    assert_eq!(stage.ask("GET", "/page", secure).await.status, 401);
    let asked = shown("ann", PASSWORD) + secure;
    assert_eq!(stage.ask("GET", "/page", &asked).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trailer_says_nothing_in_a_gate_s_name() {
    let (folder, site) = users(", user_field = \"X-User\"");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.on("/upload", Script::mirror(""));
    let fields = format!(
        "{}Transfer-Encoding: chunked\r\nTrailer: X-User, X-Own\r\n",
        shown("ann", PASSWORD)
    );
    let body = b"3\r\nabc\r\n0\r\nX-User: root\r\nX_User: root\r\nX-Own: kept\r\n\r\n";
    let upload = [&request("POST", "/upload", &fields)[..], body].concat();
    assert_eq!(stage.exchange("POST", &upload).await.status, 200);
    let text = text_of(&stage.origin);
    assert!(text.contains("x-user: ann\r\n") && text.contains("x-own: kept\r\n"), "{text}");
    assert!(!text.contains("root"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_is_in_the_key_of_another_route_is_never_another_s() {
    let (folder, site) = users(", user_field = \"X-User\"");
    let site = format!(
        "{}\n[[site.route]]\npath = \"/inner/*\"\n{site}\
         cache = {{ key_headers = [\"X-User\"] }}\n",
        site.replace(", user_field = \"X-User\"", "")
    );
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::mirror("Cache-Control: max-age=600\r\n"));
    // An origin may take the second for the first.
    for target in ["/inner/a", "/inner;x/a"] {
        for user in ["ann", "bob"] {
            let reply = stage.ask("GET", target, &shown(user, PASSWORD)).await;
            let text = reply.text().to_lowercase();
            assert!(text.contains(&format!("x-user: {user}\n")), "{target}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_two_routes_reports_a_user_once() {
    let (folder, site) = users(", user_field = \"X-User\"");
    let site = format!("{site}\n[[site.route]]\npath = \"/inner/*\"\ncache = true\n");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.otherwise(Script::mirror(""));
    let reply = stage.ask("GET", "/inner;x/a", &shown("ann", PASSWORD)).await;
    assert_eq!(reply.text().to_lowercase().matches("x-user: ann\n").count(), 1);
}

/// An HTML page that includes `target`.
fn including(target: &str) -> Script {
    let html = format!("<p><esi:include src=\"{target}\"/></p>");
    Script::ok("Content-Type: text/html\r\nCache-Control: no-store\r\n", &html)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fragment_that_the_origin_makes_for_one_user_is_no_other_s() {
    for (field, key) in [("X-User", ""), ("X-User", "X-User"), ("Remote-User", "Remote-User")] {
        let (folder, site) = users(&format!(", user_field = \"{field}\""));
        let site = format!(
            "includes = {{ esi = \"html\" }}\n{site}\n[[site.route]]\npath = \"/page\"\n\
             cache = {{ key_headers = [\"{key}\"] }}\n"
        );
        let site = site.replace("cache = { key_headers = [\"\"] }\n", "cache = true\n");
        let stage = stage(Policy::Declared, &folder, "", &site).await;
        stage.origin.on("/page", including("/menu"));
        stage.origin.on("/menu", Script::mirror("Cache-Control: max-age=600\r\n"));
        for user in ["ann", "bob", "ann"] {
            let reply = stage.ask("GET", "/page", &shown(user, PASSWORD)).await;
            let text = reply.text().to_lowercase();
            let told = format!("{}: {user}\n", field.to_lowercase());
            assert_eq!(text.matches(&told).count(), 1, "{field} {key}: {text}");
        }
    }
}

/// A page cannot include a fragment that its reader may not access.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_gets_no_fragment_from_behind_a_gate_that_it_does_not_stand_behind() {
    let (folder, site) = users("");
    let site = format!(
        "includes = {{ esi = \"html\" }}\n\
         [[site.route]]\nname = \"inner\"\npath = \"/inner/*\"\n{site}"
    );
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    stage.origin.on("/inner/page", including("/inner/secret"));
    stage.origin.on("/inner/secret", Script::ok("Cache-Control: max-age=600\r\n", "secret"));
    for target in ["/inner/secret", "//inner/secret", "/inner;x/secret", "/%69nner/secret"] {
        stage.origin.on("/page", including(target));
        let reply = stage.ask("GET", "/page", &shown("ann", PASSWORD)).await;
        assert!(!reply.text().contains("secret"), "{target}: {}", reply.text());
    }
    let reply = stage.ask("GET", "/inner/page", &shown("ann", PASSWORD)).await;
    assert_eq!(reply.text(), "<p>secret</p>", "both stand behind it");
    stage.origin.on("/page", including("/inner/secret"));
    let reply = stage.get("/page").await;
    assert!(!reply.text().contains("secret"), "stored: {}", reply.text());
}

/// A program's pages may name any host.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_s_page_gets_no_fragment_from_behind_another_site_s_gate() {
    let (folder, gate) = users("");
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let addr = origin.addr();
    folder.file(
        "site.vcl",
        format!(
            "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n\
             sub vcl_backend_response {{ set beresp.do_esi = true; }}\n",
            addr.ip(),
            addr.port()
        ),
    );
    let vcl = format!("vcl = \"{}\"\n", folder.path().join("site.vcl").display());
    let daemon = Daemon::start(&format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\n[[site]]\nhost = \"open.test\"\n{vcl}\
         [[site]]\nhost = \"shut.test\"\n{vcl}{gate}\
         [[site]]\nhost = \"inner.test\"\norigin = \"http://{addr}\"\n{gate}"
    ));
    let stage = Stage { origin, daemon: daemon.expect("larder starts") };
    stage.origin.on("/page", including("http://inner.test/secret"));
    stage.origin.on("/secret", Script::ok("Cache-Control: max-age=600\r\n", "secret"));
    for (host, text) in [("open.test", "<p></p>"), ("shut.test", "<p>secret</p>")] {
        let asked = format!("GET /page HTTP/1.1\r\nHost: {host}\r\n{}\r\n", shown("ann", PASSWORD));
        assert_eq!(stage.exchange("GET", asked.as_bytes()).await.text(), text, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_not_another_server_s() {
    let (folder, keepers) = (Folder::new(), [gatekeeper().await, gatekeeper().await]);
    let keep = ", keep = \"1h\"";
    let stage = stage(Policy::Declared, &folder, "", &asks(&keepers[0], keep)).await;
    for (n, keeper) in keepers.iter().enumerate() {
        for _ in 0..2 {
            assert_eq!(stage.get("/page").await.status, 200);
            assert_eq!(keeper.seen("/verify?by=larder"), 1, "server {n}");
        }
        let next = file(Policy::Declared, &stage.origin, &folder, "", &asks(&keepers[1], keep));
        std::fs::write(stage.daemon.config_file(), next).expect("written");
        let (done, _, err) = run(&stage.daemon, &["reload"]).await;
        assert!(done, "{err}");
    }
}

/// A browser requests everything that a page needs at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_password_that_comes_many_times_at_once_is_checked_once() {
    let (folder, site) = users("");
    let stage = stage(Policy::Declared, &folder, "", &site).await;
    let mut client = client(&stage.daemon).await;
    for (password, status) in [(PASSWORD, 200), ("wrong", 401)] {
        let shown = format!("Basic {}", BASE64.encode(format!("ann:{password}").as_bytes()));
        let get = Request::get("/page").field("authorization", &shown);
        let streams: Vec<u32> = (0..20).map(|_| client.new_stream()).collect();
        let all: Vec<u8> = streams.iter().flat_map(|stream| get.bytes(*stream, true)).collect();
        client.send(&all).await.expect("sent");
        for stream in streams {
            assert_eq!(client.outcome(stream).await.answer("/page").status, status);
        }
    }
    assert_eq!(stage.limit_hits("password_checks_client").await, 0);
}
