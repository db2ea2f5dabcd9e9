//! Tests of attacks on the admin listener: A1 to A9. Most of A6 concerns the dashboard; only the
//! fields of every response are tested here.

use crate::support;

use std::os::unix::fs::{PermissionsExt, symlink};

use admin::routes::{RouteAccess, RouteMethod, TABLE};
use serde_json::{Value, json};
use support::console::{Ask, LISTENS, json, look, run};
use support::{PATIENCE, Setup, Stage, eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::origin::Script;
use testkit::reply::Reply;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A daemon whose documentation is a folder of this tree with one page.
async fn stage() -> Stage {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let top = format!("{LISTENS}docs = \"{docs}\"\n");
    Setup { top: &top, ..Setup::default() }.start().await
}

/// Path of an endless response.
const ENDLESS: &str = "/api/v1/live";

/// A path of a route: of the documentation, that of its page.
fn path_of(path: &str) -> String {
    path.replace("{file}", "welcome.html")
}

/// A minimal request of a route.
fn of(verb: RouteMethod, path: &str) -> Ask {
    let own = path_of(path);
    match verb {
        RouteMethod::Get if path == ENDLESS => Ask::get(&own).method("HEAD"),
        RouteMethod::Get => Ask::get(&own),
        RouteMethod::Post => Ask::post(&own, &Value::Null),
    }
}

fn purge_all() -> Ask {
    Ask::post("/api/v1/purge", &json!({ "all": true }))
}

#[tokio::test]
async fn a1_without_a_token_only_health_is_shown() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    for route in TABLE {
        let reply = of(route.verb, route.path).send(daemon).await;
        let open = route.needs == RouteAccess::Public;
        assert_eq!(reply.status, if open { 200 } else { 401 }, "{}", route.path);
        if !open {
            let challenge = reply.field("www-authenticate").expect("a challenge");
            assert!(challenge.starts_with("Bearer "), "{challenge}");
        }
    }
    for target in ["/index.html", "/none", "/api/v1/../v1/status", "//healthz", "/healthz/"] {
        assert_eq!(Ask::get(target).send(daemon).await.status, 401, "{target}");
    }
    let token = daemon.token("config").expect("a token");
    for (name, value) in [
        ("Cookie", format!("token={token}")),
        ("Authorization", format!("Basic {token}")),
        ("Authorization", format!("Bearer {}", &token[1..])),
        ("Authorization", "Bearer".to_owned()),
        ("X-Purge-Token", token.clone()),
    ] {
        let reply = Ask::get("/api/v1/status").field(name, &value).send(daemon).await;
        assert_eq!(reply.status, 401, "{name}: {value}");
    }
    let in_url = Ask::get(&format!("/api/v1/status?token={token}")).send(daemon).await;
    assert_eq!(in_url.status, 401);
}

#[tokio::test]
async fn a1_tokens_are_random_and_their_owners_alone() {
    let stage = stage().await;
    let mut tokens = Vec::new();
    for role in ["read", "purge", "config"] {
        let file =
            stage.daemon.admin_socket().with_file_name("admin").join(format!("{role}.token"));
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{role}");
        let token = stage.daemon.token(role).expect("a token");
        assert!(token.len() == 64 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
        tokens.push(token);
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
}

#[tokio::test]
async fn a2_pages_of_other_sites_change_nothing() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    let own = format!("http://localhost:{}", daemon.admin().expect("a listener").port());
    let host = own.trim_start_matches("http://");
    let body = r#"{"all":true}"#;
    let typed = |kind: &str| {
        let ask = Ask::post("/api/v1/purge", &Value::Null).body(body);
        if kind.is_empty() { ask } else { ask.field("Content-Type", kind) }
    };
    for (ask, status) in [
        (purge_all(), 200),
        (purge_all().field("Origin", &own), 200),
        (purge_all().field("Sec-Fetch-Site", "same-origin"), 200),
        (purge_all().field("Sec-Fetch-Site", "none"), 200),
        (purge_all().field("Origin", "http://evil.test"), 403),
        (purge_all().field("Origin", "http://localhost:1"), 403),
        (purge_all().field("Origin", "null"), 403),
        (purge_all().field("Sec-Fetch-Site", "cross-site"), 403),
        (purge_all().field("Sec-Fetch-Site", "same-site"), 403),
        (typed(""), 415),
        (typed("text/plain"), 415),
        (typed("application/x-www-form-urlencoded"), 415),
        (typed("multipart/form-data; boundary=x"), 415),
    ] {
        let ask = ask.host(host);
        let reply = ask.clone().with(daemon, "purge").send(daemon).await;
        assert_eq!(reply.status, status, "{ask:?}: {}", reply.text());
        assert_eq!(reply.field("access-control-allow-origin"), None);
        assert_eq!(reply.field("set-cookie"), None);
        // The socket may have been forwarded to a port that a browser reaches.
        let locally = ask.send_locally(daemon).await;
        assert_eq!(locally.status, status, "{ask:?}");
    }
    let preflight = purge_all().method("OPTIONS").body("").field("Origin", "http://evil.test");
    assert_eq!(preflight.with(daemon, "purge").send(daemon).await.status, 405);
}

#[tokio::test]
async fn a3_it_is_asked_under_names_of_this_machine_only() {
    let top = "[admin]\nlisten = \"127.0.0.1:0\"\nhosts = \"cache.example\"\n";
    let stage = Setup { top, ..Setup::default() }.start().await;
    let daemon = &stage.daemon;
    for (host, status) in [
        ("localhost", 200),
        ("127.0.0.1:6080", 200),
        ("[::1]:6080", 200),
        ("cache.example", 200),
        ("evil.test", 421),
        ("evil.test:6080", 421),
        ("localhost.evil.test", 421),
        ("192.0.2.1", 421),
    ] {
        for target in ["/healthz", "/api/v1/status"] {
            let ask = Ask::get(target).host(host).with(daemon, "read");
            assert_eq!(ask.send(daemon).await.status, status, "{host} {target}");
            assert_eq!(ask.send_locally(daemon).await.status, status, "{host} {target}");
        }
    }
    let absolute = Ask::get("http://evil.test/healthz").send(daemon).await;
    assert_eq!(absolute.status, 421);
    let twice = Ask::get("/healthz").field("Host", "evil.test").send(daemon).await;
    assert_eq!(twice.status, 421);
}

#[tokio::test]
async fn a4_it_listens_for_this_machine_alone() {
    let stage = Stage::new().await;
    assert_eq!(stage.daemon.admin(), None, "nothing but the socket unless that is said");
    look(&stage.daemon, "/api/v1/status").await;
    let socket = stage.daemon.admin_socket();
    let mode = std::fs::metadata(&socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for listen in [":6080", "0.0.0.0:6080", "[::]:6080", "192.0.2.1:6080"] {
        let setup = Setup { top: &format!("[admin]\nlisten = \"{listen}\""), ..Setup::default() };
        let file = stage.daemon.config_file().with_file_name("public.toml");
        std::fs::write(&file, setup.file(&stage.origin)).expect("written");
        let output = std::process::Command::new(testkit::larder::binary().expect("a binary"))
            .arg("check")
            .arg(&file)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("other machines could reach"), "{said}");
    }
}

#[tokio::test]
async fn a5_guessing_is_slowed_down_and_counted() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    let guess = Ask::get("/api/v1/status").field("Authorization", "Bearer 0123456789abcdef");
    let mut refused = None;
    for _ in 0..200 {
        let reply = guess.send(daemon).await;
        if reply.status == 429 {
            refused = Some(reply);
            break;
        }
        assert_eq!(reply.status, 401);
    }
    let refused = refused.expect("five in a second are too many");
    assert_eq!(refused.field("retry-after").as_deref(), Some("1"));
    assert!(stage.limit_hits("admin_wrong_tokens").await > 0);
    let right = Ask::get("/api/v1/status").with(daemon, "read");
    for _ in 0..20 {
        guess.send(daemon).await;
        assert_eq!(right.send(daemon).await.status, 200, "a right one is always taken");
    }
}

#[tokio::test]
async fn a6_every_answer_forbids_browsers_what_it_does_not_need() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    let xss = "/%3Cscript%3Ealert(1)%3C/script%3E";
    let answers: [(Reply, u16); 7] = [
        (Ask::get("/healthz").send(daemon).await, 200),
        (Ask::get("/healthz").host("evil.test").send(daemon).await, 421),
        (Ask::get("/api/v1/status").send(daemon).await, 401),
        (Ask::get("/api/v1/status").with(daemon, "read").send(daemon).await, 200),
        (purge_all().with(daemon, "read").send(daemon).await, 403),
        (Ask::get(xss).with(daemon, "read").send(daemon).await, 404),
        (Ask::get("/healthz?%3Cb%3E=1").with(daemon, "read").send(daemon).await, 400),
    ];
    for (reply, status) in answers {
        assert_eq!(reply.status, status, "{}", reply.text());
        let field = |name: &str| reply.field(name).unwrap_or_default();
        let policy = field("content-security-policy");
        for wanted in ["default-src 'self'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(wanted), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(field("x-content-type-options"), "nosniff");
        assert_eq!(field("cache-control"), "no-store");
        assert_eq!(field("referrer-policy"), "no-referrer");
        assert!(!field("content-type").contains("html"));
    }
}

/// Returns true if `role` suffices for a route.
fn may(needs: RouteAccess, role: &str) -> bool {
    match needs {
        RouteAccess::Public => true,
        RouteAccess::OpenMetrics(needed) | RouteAccess::Role(needed) => {
            let order = ["read", "purge", "config"];
            let rank = |word: &str| order.iter().position(|own| *own == word);
            rank(role) >= rank(needed.word())
        }
    }
}

#[tokio::test]
async fn a7_each_role_may_ask_what_the_table_says_and_nothing_else() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    for route in TABLE {
        for role in ["read", "purge", "config"] {
            let reply = of(route.verb, route.path).with(daemon, role).send(daemon).await;
            let told = format!("{} as {role}: {} {}", route.path, reply.status, reply.text());
            if may(route.needs, role) {
                // A missing body is reported to authorised callers only.
                assert!(matches!(reply.status, 200 | 400), "{told}");
            } else {
                assert_eq!(reply.status, 403, "{told}");
            }
        }
        let locally = of(route.verb, route.path).send_locally(daemon).await;
        assert!(matches!(locally.status, 200 | 400), "{} on the socket", route.path);
    }
    for (role, status) in [("read", 403), ("purge", 200), ("config", 200)] {
        assert_eq!(purge_all().with(daemon, role).send(daemon).await.status, status, "{role}");
        let said = Ask::get("/api/v1/status").with(daemon, role).send(daemon).await;
        assert_eq!(json(&said)["role"], role);
    }
}

#[tokio::test]
async fn a7_every_change_is_written_down_in_a_chain() {
    let folder = support::folder::Folder::new();
    let log = folder.path().join("audit.log");
    let top = format!("{LISTENS}audit = \"{}\"\n", log.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let daemon = &stage.daemon;
    purge_all().with(daemon, "purge").send(daemon).await;
    purge_all().with(daemon, "read").send(daemon).await;
    Ask::post("/reload", &Value::Null).send_locally(daemon).await;
    Ask::get("/api/v1/status").with(daemon, "read").send(daemon).await;
    let text = std::fs::read_to_string(&log).expect("written");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an entry")).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line["what"].as_str().expect("text"), line["status"].as_u64().expect("one")))
        .collect();
    assert_eq!(
        told,
        [("POST /api/v1/purge", 200), ("POST /api/v1/purge", 403), ("POST /reload", 200)]
    );
    assert_eq!(lines[0]["who"], "127.0.0.1, role purge");
    assert_eq!(lines[0]["asked"], json!({ "all": true }));
    assert_eq!(lines[0]["answer"], json!({ "purged": 0, "pending": false }));
    let who = lines[2]["who"].as_str().expect("text");
    let uid = rustix::process::geteuid().as_raw();
    assert!(who.starts_with(&format!("uid {uid} (process ")), "{who}");
    let check = || {
        let mut command = std::process::Command::new(testkit::larder::binary().expect("a binary"));
        let output = command.arg("check-audit").arg(&log).output().expect("it starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let (whole, said) = check();
    assert!(whole && said.contains("whole: 3 lines"), "{said}");
    // A specific 403: another may be in a time or a digest.
    let changed = text.replacen("\"status\":403", "\"status\":200", 1);
    assert_ne!(changed, text);
    std::fs::write(&log, changed).expect("written");
    let (whole, said) = check();
    assert!(!whole && said.contains("line 2: it has been changed"), "{said}");
    // The daemon's standard error is read by a thread of the test.
    let lines = async || daemon.log().matches("larder: admin: ").count();
    eventually("three lines", async || lines().await == 3).await;
    assert!(daemon.log().contains("127.0.0.1, role purge: POST /api/v1/purge {\"all\":true}: 200"));
}

#[tokio::test]
async fn a7_a_change_is_written_down_although_its_client_has_left() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    let token = daemon.token("purge").expect("a token");
    let body = json!({ "ban": "req.url ~ left-before-the-answer" }).to_string();
    let head = format!(
        "POST /api/v1/purge HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let addr = daemon.admin().expect("a listener");
    let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    raw.send(head.as_bytes(), WriteSplit::Whole).await.expect("sent");
    drop(raw);
    eventually("it is in the log", async || daemon.log().contains("left-before-the-answer")).await;
}

#[tokio::test]
async fn a8_clients_never_reach_it() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    let addr = daemon.admin().expect("a listener");
    let link = daemon.admin_socket().with_file_name("link.sock");
    symlink(daemon.admin_socket(), &link).expect("a link");
    let asked = async || look(daemon, "/stats").await["admin_requests_total"].as_u64();
    let port = addr.port();
    for server in [
        format!("http://{addr}"),
        format!("http://localhost:{port}"),
        format!("http://0.0.0.0:{port}"),
        format!("http://[::ffff:127.0.0.1]:{port}"),
        format!("unix:{}", daemon.admin_socket().display()),
        format!("unix:{}", link.display()),
        format!("fastcgi://{addr}"),
    ] {
        let root = if server.starts_with("fastcgi") { "root = \"/tmp\"\n" } else { "" };
        let setup = Setup {
            top: LISTENS,
            origin: root,
            site: "upgrade = [\"websocket\"]",
            ..Setup::default()
        };
        let own = format!("servers = \"http://{}\"", stage.origin.addr());
        let file = setup.file(&stage.origin).replace(&own, &format!("servers = \"{server}\""));
        std::fs::write(daemon.config_file(), file).expect("written");
        let reloaded = Ask::post("/reload", &Value::Null).send_locally(daemon).await;
        assert_eq!(reloaded.status, 200, "{}", reloaded.text());
        let before = asked().await;
        for target in ["/healthz", "/metrics", "/x.php"] {
            let reply = stage.get(target).await;
            assert!(matches!(reply.status, 404 | 502..=504), "{server} {target}: {}", reply.status);
            assert!(!reply.text().contains("larder_"), "{server} {target}");
        }
        let upgrade = "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
        let reply = stage
            .exchange("GET", format!("GET /healthz HTTP/1.1\r\n{upgrade}\r\n").as_bytes())
            .await;
        assert!(reply.status >= 400, "{server}: {}", reply.status);
        assert_eq!(asked().await, before.map(|n| n + 1), "{server}: only the look itself");
    }
    let tunnel = format!("CONNECT {addr} HTTP/1.1\r\nHost: {addr}\r\n\r\n");
    let reply = stage.exchange("CONNECT", tunnel.as_bytes()).await;
    assert!(reply.status >= 400, "{}", reply.status);
    let absolute = format!("GET http://{addr}/healthz HTTP/1.1\r\nHost: {addr}\r\n\r\n");
    assert!(stage.exchange("GET", absolute.as_bytes()).await.status >= 400);
}

#[tokio::test]
async fn a8_a_configuration_that_leads_to_it_is_refused() {
    let stage = stage().await;
    let port = stage.daemon.admin().expect("a listener").port();
    let top = format!("[admin]\nlisten = \"127.0.0.1:{port}\"\n");
    let own = format!("http://{}", stage.origin.addr());
    for server in [format!("http://127.0.0.1:{port}"), format!("http://0.0.0.0:{port}")] {
        let file = Setup { top: &top, ..Setup::default() }.file(&stage.origin);
        std::fs::write(stage.daemon.config_file(), file.replace(&own, &server)).expect("written");
        let (reloaded, _, said) = run(&stage.daemon, &["reload"]).await;
        assert!(!reloaded && said.contains("is this admin listener"), "{said}");
    }
}

#[tokio::test]
async fn a9_nothing_is_set_by_what_is_sent() {
    let stage = stage().await;
    let daemon = &stage.daemon;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.get("/page").await;
    let check = async |toml: &str| {
        let ask = Ask::post("/api/v1/config/check", &json!({ "toml": toml }));
        let reply = ask.with(daemon, "config").send(daemon).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        json(&reply)
    };
    let good = std::fs::read_to_string(daemon.config_file()).expect("a file");
    assert_eq!(check(&good).await["good"], true);
    for (more, why) in [
        ("request_headers = { set = { \"X-A\" = \"b\\r\\nX-C: d\" } }", "field value"),
        ("root = \"../../etc\"", "root"),
        ("vcl = \"C{ system(); }C\"", "vcl"),
    ] {
        let said = check(&format!("{good}{more}\n")).await;
        assert_eq!(said["good"], false, "{said}");
        assert!(said["said"].as_str().is_some_and(|text| text.contains(why)), "{said}");
    }
    // The response reveals neither existence nor content of a file.
    let key = "[tls]\ncert = \"/etc/passwd\"\nkey = \"/etc/shadow\"\n";
    let said = check(&format!(
        "listen = \":443 tls\"\n{key}[[site]]\nhost = \"*\"\norigin = \"http://a\"\n"
    ))
    .await;
    assert!(!said["said"].as_str().expect("text").contains("root:"), "{said}");
    for body in [json!({ "file": "../../etc/passwd" }), json!({ "toml": good, "apply": true })] {
        let ask = Ask::post("/api/v1/config/check", &body).with(daemon, "config");
        assert_eq!(ask.send(daemon).await.status, 400, "{body}");
    }
    for target in ["/api/v1/../../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/api/v1/config/x"] {
        let reply = Ask::get(target).with(daemon, "config").send(daemon).await;
        assert_eq!(reply.status, 404, "{target}");
    }
    assert!(support::is_hit(&stage.get("/page").await), "nothing has changed");
    std::fs::write(daemon.config_file(), format!("{good}nonsense = 1\n")).expect("written");
    let reload = Ask::post("/api/v1/config/reload", &Value::Null).with(daemon, "config");
    let reply = reload.send(daemon).await;
    assert_eq!((reply.status, &json(&reply)["good"]), (422, &json!(false)));
    assert!(json(&reply)["said"].as_str().is_some_and(|text| text.contains("larder.toml:")));
    assert!(support::is_hit(&stage.get("/page").await), "what was in force stays");
}

#[tokio::test]
async fn a_kept_connection_reaches_no_limit_by_its_end() {
    let limits = "admin_timeout = \"300ms\"\n";
    let stage = Setup { top: LISTENS, limits, ..Setup::default() }.start().await;
    let addr = stage.daemon.admin().expect("a listener");
    let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    raw.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", WriteSplit::Whole)
        .await
        .expect("sent");
    assert_eq!(whole(raw.reply("GET").await, "/healthz").status, 200);
    assert_eq!(raw.rest().await.0, b"");
    assert_eq!(stage.limit_hits("admin_timeout").await, 0);
}

#[tokio::test]
async fn slow_clients_delay_no_other_and_are_disconnected() {
    let limits = "admin_connections = 4\nadmin_timeout = \"300ms\"\n";
    let stage = Setup { top: LISTENS, limits, ..Setup::default() }.start().await;
    let daemon = &stage.daemon;
    let addr = daemon.admin().expect("a listener");
    let mut slow = Vec::new();
    let begun = b"GET /healthz HTTP/1.1\r\nHost: local";
    let whole_one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // An endless head, no bytes at all, and a second request that does not come.
    for sent in [&begun[..], b"", &whole_one[..]].into_iter().cycle().take(12) {
        let stream = TcpStream::connect(addr).await.expect("a connection");
        _ = stream.try_write(sent);
        slow.push(stream);
    }
    assert_eq!(Ask::get("/healthz").send_locally(daemon).await.status, 200, "the socket's own");
    eventually("some were too many", async || stage.limit_hits("admin_connections").await > 0)
        .await;
    eventually("they are sent away", async || {
        let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
        let sent = raw.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", WriteSplit::Whole);
        let sent = sent.await.is_ok();
        sent && raw.reply("GET").await.complete().is_some_and(|reply| reply.status == 200)
    })
    .await;
    eventually("that is counted", async || stage.limit_hits("admin_timeout").await > 0).await;
    for mut stream in slow {
        // The end, or a reset: it was closed with unread bytes.
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "every one of them is closed");
    }
    let mut late = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    let token = daemon.token("purge").expect("a token");
    let head = format!(
        "POST /api/v1/purge HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{{\"a"
    );
    late.send(head.as_bytes(), WriteSplit::Whole).await.expect("sent");
    let reply = whole(late.reply("POST").await, "a body that does not come");
    assert_eq!((reply.status, reply.closes()), (408, true));
}

#[tokio::test]
async fn who_has_shown_a_token_keeps_the_place_and_others_give_way() {
    let stage = Setup { top: LISTENS, limits: "admin_connections = 2\n", ..Setup::default() };
    let stage = stage.start().await;
    let addr = stage.daemon.admin().expect("a listener");
    let token = stage.daemon.token("read").expect("a token");
    let asked = format!(
        "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let mut known = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    let ask = async |client: &mut RawClient| {
        client.send(asked.as_bytes(), WriteSplit::Whole).await.expect("sent");
        whole(client.reply("GET").await, "status").status
    };
    assert_eq!(ask(&mut known).await, 200);
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(TcpStream::connect(addr).await.expect("a connection"));
    }
    let mut other = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    assert_eq!(ask(&mut other).await, 200);
    assert_eq!(ask(&mut known).await, 200);
    stage.daemon.assert_limit_count("admin_connections", 5).await;
    for stream in &mut silent[..5] {
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "the oldest have given way");
    }
}

#[tokio::test]
async fn heads_and_bodies_that_are_too_large_are_refused() {
    let limits = "admin_body_bytes = \"1KiB\"\nadmin_head_bytes = \"8KiB\"\n";
    let stage = Setup { top: LISTENS, limits, ..Setup::default() }.start().await;
    let daemon = &stage.daemon;
    let tags: Vec<_> = (0..400).map(|n| format!("tag-{n}")).collect();
    let ask = Ask::post("/api/v1/purge", &json!({ "tags": tags })).with(daemon, "purge");
    assert_eq!(ask.send(daemon).await.status, 413);
    stage.daemon.assert_limit_count("admin_body_bytes", 1).await;
    let long = Ask::get("/healthz").field("X-Long", &"x".repeat(10_000)).send(daemon).await;
    assert_eq!(long.status, 431);
    // Counted at the end of the connection, which follows the response.
    stage.daemon.assert_limit_count("admin_head_bytes", 1).await;
}

#[tokio::test]
async fn the_description_is_of_what_is_there() {
    let stage = stage().await;
    let described = look(&stage.daemon, "/api/v1/openapi.json").await;
    assert!(described["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let mut count = 0;
    for (path, item) in described["paths"].as_object().expect("paths") {
        for verb in ["get", "post", "put", "patch", "delete"] {
            let ask = match verb {
                "post" => Ask::post(&path_of(path), &Value::Null),
                "get" if path == ENDLESS => of(RouteMethod::Get, path),
                verb => Ask::get(&path_of(path)).method(&verb.to_ascii_uppercase()),
            };
            let status = ask.send_locally(&stage.daemon).await.status;
            let there = !matches!(status, 404 | 405);
            assert_eq!(there, item.get(verb).is_some(), "{verb} {path}: {status}");
            count += usize::from(there);
        }
    }
    assert_eq!(count, TABLE.len());
}
