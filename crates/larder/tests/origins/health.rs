//! Tests of responses to kubelets, balancers and Prometheus, on addresses of their own.

use crate::support;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::cli::Cli;
use support::console::{Ask, LISTENS, run};
use support::folder::Folder;
use support::spaces::{NEAR, Spaces};
use support::tls::{Authority, Client, Connection, Kind};
use support::{PATIENCE, Setup, Stage, eventually, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{ConnectionEnd, Reply};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";

/// A daemon with a health listener, and its address.
async fn healthy(top: &str, limits: &str) -> (Stage, SocketAddr) {
    let top = format!("health = {{ listen = \"127.0.0.1:0\" }}\n{top}");
    let stage = Setup { top: &top, limits, ..Setup::default() }.start().await;
    let at = stage.daemon.port("health").expect("a listener");
    (stage, at)
}

/// A folder with a token that only its owner can read.
fn folder_with(token: &str) -> Folder {
    let folder = Folder::new();
    folder.file("token", format!("{token}\n"));
    let owner = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.path().join("token"), owner).expect("a mode");
    folder
}

/// `token_file = ...` of such a folder.
fn token_file(folder: &Folder) -> String {
    format!("token_file = \"{}\"", folder.path().join("token").display())
}

/// A daemon with metrics for clients with a token, and its address.
async fn figured(folder: &Folder, limits: &str) -> (Stage, SocketAddr) {
    let top = format!("metrics = {{ listen = \"127.0.0.1:0\", {} }}\n", token_file(folder));
    let stage = Setup { top: &top, limits, ..Setup::default() }.start().await;
    let at = stage.daemon.port("metrics").expect("a listener");
    (stage, at)
}

fn with_token(target: &str, token: &str) -> Ask {
    Ask::get(target).field("Authorization", &format!("Bearer {token}"))
}

#[tokio::test]
async fn the_health_listener_serves_health_and_nothing_else() {
    let (stage, at) = healthy(LISTENS, "").await;
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let reply = Ask::get(path).host("10.1.2.3:6090").send_to(at).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, text), "{path}");
        assert_eq!(reply.field("connection").as_deref(), Some("close"));
        let reply = Ask::get(path).method("HEAD").send_to(at).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, ""), "{path}");
        for method in ["POST", "PUT", "OPTIONS", "DELETE"] {
            let reply = Ask::get(path).method(method).send_to(at).await;
            assert_eq!((reply.status, reply.field("allow")), (405, Some("GET, HEAD".into())));
        }
        let with_body = Ask::get(path).field("Content-Length", "4").body("body");
        assert_eq!(with_body.send_to(at).await.status, 400);
        assert_eq!(Ask::get(&format!("{path}?x=1")).send_to(at).await.status, 400);
    }
    let token = stage.daemon.token("config").expect("a token");
    for path in ["/", "/metrics", "/stats", "/ring", "/api/v1/status", "/healthz/", "//readyz"] {
        assert_eq!(Ask::get(path).send_to(at).await.status, 404, "{path}");
        assert_eq!(with_token(path, &token).send_to(at).await.status, 404, "{path}");
    }
    for path in ["/reload", "/api/v1/purge"] {
        assert_eq!(Ask::post(path, &Value::Null).send_to(at).await.status, 404, "{path}");
    }
    // HAProxy's minimal check.
    let mut raw = RawClient::connect(at).await.expect("a connection").patience(PATIENCE);
    raw.send(b"GET /healthz HTTP/1.0\r\n\r\n", WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(raw.reply("GET").await, "/healthz").status, 200);
}

#[tokio::test]
async fn kept_connections_lock_no_client_out() {
    let (stage, at) = healthy("", "health_connections = 2\nadmin_head_bytes = \"8KiB\"\n").await;
    let mut idle = Vec::new();
    for _ in 0..2 {
        idle.push(RawClient::connect(at).await.expect("a connection").patience(PATIENCE));
    }
    assert_eq!(Ask::get("/healthz").send_to(at).await.status, 200);
    assert_eq!(idle[0].rest().await.1, ConnectionEnd::Closed, "the oldest has left");
    stage.daemon.assert_limit_count("health_connections", 1).await;
    let long = "x".repeat(10_000);
    assert_eq!(Ask::get("/healthz").field("X-Long", &long).send_to(at).await.status, 431);
    stage.daemon.assert_limit_count("admin_head_bytes", 1).await;
}

#[tokio::test]
async fn figures_are_for_those_who_have_the_token() {
    let folder = folder_with(TOKEN);
    let (stage, at) = figured(&folder, "").await;
    let reply = with_token("/metrics", TOKEN).host("larder.example:9145").send_to(at).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.field("content-type").as_deref(), Some("text/plain; version=0.0.4"));
    let text = reply.text();
    for name in [
        "larder_build_info{",
        "process_start_time_seconds ",
        "process_open_fds ",
        "process_max_fds ",
        "process_virtual_memory_bytes ",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "process_threads ",
    ] {
        let values = text.lines().filter_map(|line| line.strip_prefix(name));
        let values: Vec<_> = values.filter_map(|rest| rest.rsplit(' ').next()).collect();
        let [value] = values[..] else { panic!("{name}: {values:?}") };
        assert!(value.parse::<f64>().is_ok_and(|value| value > 0.0), "{name}{value}");
    }
    assert_eq!(Ask::get("/metrics").send_to(at).await.status, 401);
    for wrong in [&TOKEN[1..], OTHER] {
        let reply = with_token("/metrics", wrong).send_to(at).await;
        assert_eq!(reply.status, 401, "{wrong}");
        assert!(reply.field("www-authenticate").is_some_and(|field| field.starts_with("Bearer ")));
    }
    assert_eq!(with_token("/metrics", TOKEN).method("POST").send_to(at).await.status, 405);
    for path in ["/", "/healthz", "/readyz", "/stats", "/api/v1/status"] {
        assert_eq!(with_token(path, TOKEN).send_to(at).await.status, 404, "{path}");
        assert_ne!(Ask::get(path).send_to(at).await.status, 200, "{path}");
    }
    let mut refused = false;
    for _ in 0..200 {
        refused |= with_token("/metrics", OTHER).send_to(at).await.status == 429;
        if refused {
            break;
        }
    }
    assert!(refused, "guessing is slowed down");
    assert!(stage.limit_hits("admin_wrong_tokens").await > 0);
}

#[tokio::test]
async fn the_admin_listeners_tokens_are_no_good_for_the_figures_own() {
    let folder = folder_with(TOKEN);
    let metrics = format!("metrics = {{ listen = \"127.0.0.1:0\", {} }}\n", token_file(&folder));
    let top = format!("{metrics}{LISTENS}");
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let at = stage.daemon.port("metrics").expect("a listener");
    let token = stage.daemon.token("config").expect("a token");
    assert_eq!(with_token("/metrics", &token).send_to(at).await.status, 401);
    assert_eq!(with_token("/metrics", TOKEN).send(&stage.daemon).await.status, 401);
}

#[tokio::test]
async fn a_reload_has_another_token_count_and_ends_what_began_with_the_old() {
    let folder = folder_with(TOKEN);
    let (stage, at) = figured(&folder, "").await;
    let mut kept = RawClient::connect(at).await.expect("a connection").patience(PATIENCE);
    for _ in 0..2 {
        let fields = format!("Authorization: Bearer {TOKEN}\r\n");
        kept.send(&request("GET", "/metrics", &fields), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(kept.reply("GET").await, "/metrics").status, 200);
    }
    folder.file("token", OTHER);
    assert!(run(&stage.daemon, &["reload"]).await.0);
    assert_eq!(kept.rest().await, (Vec::new(), ConnectionEnd::Closed));
    assert_eq!(with_token("/metrics", TOKEN).send_to(at).await.status, 401);
    assert_eq!(with_token("/metrics", OTHER).send_to(at).await.status, 200);
    // A public token and a short one change nothing.
    for (text, mode, said) in [(TOKEN, 0o604, "everyone may read"), ("short", 0o600, "at least 32")]
    {
        folder.file("token", text);
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path().join("token"), mode).expect("a mode");
        let (reloaded, _, told) = run(&stage.daemon, &["reload"]).await;
        assert!(!reloaded && told.contains(said), "{told}");
        assert_eq!(with_token("/metrics", OTHER).send_to(at).await.status, 200);
    }
}

#[tokio::test]
async fn where_they_listen_takes_a_restart_and_what_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let folder = folder_with(TOKEN);
    let tables = |health: &str, metrics: &str| {
        format!(
            "health = {{ listen = \"{health}\" }}\n\
             metrics = {{ listen = \"{metrics}\", {} }}\n",
            token_file(&folder)
        )
    };
    let at = format!("127.0.0.1:{port}");
    let stage = Setup { top: &tables(&at, &at), ..Setup::default() }.start().await;
    for name in ["health", "metrics"] {
        stage.daemon.assert_logged(&format!("larder: {name} cannot listen on {at}: Address")).await;
    }
    let file = Setup { top: &tables("127.0.0.1:1", "127.0.0.1:2"), ..Setup::default() };
    std::fs::write(stage.daemon.config_file(), file.file(&stage.origin)).expect("written");
    let (done, said, _) = run(&stage.daemon, &["reload"]).await;
    assert!(done && said.contains("not [health] listen, [metrics] listen: that takes"), "{said}");
}

/// A daemon with metrics over TLS, set up by `more`, and the listener's address.
async fn secured(authority: &Authority, more: &str) -> (Stage, SocketAddr) {
    authority.sign("metrics", &["metrics.test"], Kind::Elliptic);
    let pair = authority.pair("metrics");
    let top = format!("metrics = {{ listen = \"127.0.0.1:0 tls\", {pair}, {more} }}\n");
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let at = stage.daemon.port("metrics").expect("a listener");
    (stage, at)
}

/// The response over TLS; `None` if the handshake failed.
async fn over_tls(client: &Client, at: SocketAddr, ask: &Ask) -> Option<Reply> {
    let mut connection = client.try_connect(at, "metrics.test").await.ok()?;
    answered(&mut connection, ask).await
}

async fn answered(connection: &mut Connection, ask: &Ask) -> Option<Reply> {
    connection.send(&ask.bytes()).await.ok()?;
    match connection.reply("GET").await {
        testkit::reply::ReplyOutcome::Complete(reply) => Some(reply),
        _ => None,
    }
}

/// A client that trusts `authority` and shows a certificate that `signer` has signed.
fn certified(authority: &Authority, signer: &Authority) -> Client {
    let own = signer.make(&["prometheus.test"], Kind::Elliptic, false);
    authority.client_of(rustls::ALL_VERSIONS, Some(own))
}

#[tokio::test]
async fn a_token_is_good_over_tls_and_plain_requests_get_nothing() {
    let (authority, folder) = (Authority::new(), folder_with(TOKEN));
    let (stage, at) = secured(&authority, &token_file(&folder)).await;
    let status = async |token: &str| {
        let reply = over_tls(&authority.client(), at, &with_token("/metrics", token)).await;
        reply.expect("an answer").status
    };
    assert_eq!((status(TOKEN).await, status(OTHER).await), (200, 401));
    let mut raw = RawClient::connect(at).await.expect("a connection").patience(PATIENCE);
    raw.send(&with_token("/metrics", TOKEN).bytes(), WriteSplit::Whole).await.expect("sent");
    let (said, _) = raw.rest().await;
    assert!(!String::from_utf8_lossy(&said).contains("HTTP/1"), "{said:?}");
    assert!(stage.metric("larder_tls_handshake_failures_total").await > 0);
    // If clients have no site's certificate to verify, the metrics' own is none of the sites'.
    assert!(stage.metric("larder_certificate_expires_seconds").await > 0);
    let before = support::tls::certificate(&authority.folder.join("metrics.crt"));
    authority.sign("metrics", &["metrics.test"], Kind::Elliptic);
    let new = support::tls::certificate(&authority.folder.join("metrics.crt"));
    assert_ne!(before, new);
    eventually("the new certificate is shown", async || {
        authority.client().connect(at, "metrics.test").await.shown() == new
    })
    .await;
}

#[tokio::test]
async fn a_certificate_is_as_good_as_a_token_and_where_both_are_wanted_both_must_be_right() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let ca = format!("client_ca = \"{}\"", authority.path("ca.pem"));
    let (_stage, at) = secured(&authority, &ca).await;
    let ask = Ask::get("/metrics");
    let right = over_tls(&certified(&authority, &authority), at, &ask).await;
    let right = right.expect("an answer");
    assert!(right.status == 200 && right.text().contains("larder_build_info"), "{right:?}");
    for client in [certified(&authority, &stranger), authority.client()] {
        let reply = over_tls(&client, at, &with_token("/metrics", TOKEN)).await;
        assert!(reply.is_none(), "{reply:?}");
    }
    let other = over_tls(&certified(&authority, &authority), at, &Ask::get("/healthz")).await;
    assert_ne!(other.expect("an answer").status, 200);

    let folder = folder_with(TOKEN);
    let (_stage, at) = secured(&authority, &format!("{ca}, {}", token_file(&folder))).await;
    let known = certified(&authority, &authority);
    for (client, token, status) in [
        (&known, TOKEN, Some(200)),
        (&known, OTHER, Some(401)),
        (&authority.client(), TOKEN, None),
        (&certified(&authority, &stranger), TOKEN, None),
    ] {
        let reply = over_tls(client, at, &with_token("/metrics", token)).await;
        assert_eq!(reply.map(|reply| reply.status), status, "{token}");
    }
    assert_eq!(over_tls(&known, at, &ask).await.map(|reply| reply.status), Some(401));
}

#[tokio::test]
async fn another_authority_counts_after_a_reload_for_connections_that_are_open_too() {
    let (authority, next) = (Authority::new(), Authority::new());
    let ca = |of: &Authority| format!("client_ca = \"{}\"", of.path("ca.pem"));
    let (stage, at) = secured(&authority, &ca(&authority)).await;
    let mut kept = certified(&authority, &authority).connect(at, "metrics.test").await;
    let get = b"GET /metrics HTTP/1.1\r\nHost: metrics.test\r\n\r\n";
    kept.send(get).await.expect("sent");
    assert_eq!(whole(kept.reply("GET").await, "/metrics").status, 200);
    let file = std::fs::read_to_string(stage.daemon.config_file()).expect("a file");
    let file = file.replace(&ca(&authority), &ca(&next));
    std::fs::write(stage.daemon.config_file(), file).expect("written");
    assert!(run(&stage.daemon, &["reload"]).await.0);
    // It may read the request, and does not answer.
    _ = kept.send(get).await;
    let after = kept.reply("GET").await;
    assert!(!matches!(after, testkit::reply::ReplyOutcome::Complete(_)), "{after:?}");
    let ask = Ask::get("/metrics");
    assert!(over_tls(&certified(&authority, &authority), at, &ask).await.is_none());
    let status = over_tls(&certified(&authority, &next), at, &ask).await.expect("one").status;
    assert_eq!(status, 200);
}

/// Two sites with an origin each; further lines at the top.
async fn two_sites(top: &str) -> (Daemon, ScriptedOrigin) {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let site = |name: &str| {
        let addr = origin.addr();
        format!(
            "[[origin]]\nname = \"{name}\"\nservers = \"http://{addr}\"\n\
             [[site]]\nhost = \"{name}.test\"\norigin = \"{name}\"\n"
        )
    };
    let sites = [site("a"), site("b")].concat();
    let file = format!("listen = \"127.0.0.1:0\"\nhealth_check = \"/health\"\n{top}\n{sites}");
    let daemon = Daemon::start(&file).expect("it starts");
    (daemon, origin)
}

async fn order(daemon: &Daemon, origin: &str, order: &str) {
    let body = json!({ "origin": origin, "order": order });
    let reply = Ask::post("/api/v1/origins/order", &body).send_locally(daemon).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// Waits for what `/readyz` says.
async fn says(at: SocketAddr, status: u16, text: &str) {
    eventually(text, async || {
        let reply = Ask::get("/readyz").send_to(at).await;
        reply.status == status && reply.text() == text
    })
    .await;
}

const TELLS: &str = "health = { listen = \"127.0.0.1:0\", origins_down = \"not-ready\" }";
const A: &str = "origins down, nothing stored: a.test\n";
const B: &str = "origins down, nothing stored: b.test\n";

#[tokio::test]
async fn a_site_that_cannot_answer_is_reported_where_configured() {
    let (daemon, origin) = two_sites(TELLS).await;
    let at = daemon.port("health").expect("a listener");
    origin.on("/page", Script::cacheable("page"));
    says(at, 200, "ready\n").await;
    let page = Ask::get("/page").host("a.test").send_to(daemon.addr()).await;
    assert_eq!((page.status, page.text().as_str()), (200, "page"));
    order(&daemon, "a", "down").await;
    order(&daemon, "b", "down").await;
    // Something is stored of the first.
    says(at, 503, B).await;
    assert_eq!(Ask::get("/healthz").send_to(at).await.status, 200, "it lives");
    assert_eq!(Ask::get("/readyz").send_locally(&daemon).await.text(), B, "there, too");
    let checked = Ask::get("/health").send_to(daemon.addr()).await;
    let why = "the origins of a site are down, and nothing of it is stored\n";
    assert_eq!((checked.status, checked.text().as_str()), (503, why));
    daemon.assert_logged("larder: not ready: origins down, nothing stored: b.test").await;
    let all = Ask::post("/api/v1/purge", &json!({ "all": true }));
    assert_eq!(all.send_locally(&daemon).await.status, 200);
    says(at, 503, &format!("{A}{B}")).await;
    order(&daemon, "a", "auto").await;
    says(at, 503, B).await;
    order(&daemon, "b", "up").await;
    says(at, 200, "ready\n").await;
    daemon.assert_logged("larder: ready: ").await;
}

#[tokio::test]
async fn origins_are_not_reported_where_not_configured() {
    let (daemon, _origin) = two_sites(TELLS).await;
    let at = daemon.port("health").expect("a listener");
    order(&daemon, "b", "down").await;
    says(at, 503, B).await;
    let file = std::fs::read_to_string(daemon.config_file()).expect("a file");
    let file = file.replace(", origins_down = \"not-ready\"", "");
    std::fs::write(daemon.config_file(), file).expect("written");
    let (done, said, _) = run(&daemon, &["reload"]).await;
    assert!(done && said == "configuration reloaded\n", "{said}");
    says(at, 200, "ready\n").await;
}

#[tokio::test]
async fn what_is_stale_answers_only_for_as_long_as_it_may() {
    let (daemon, origin) = two_sites(TELLS).await;
    let at = daemon.port("health").expect("a listener");
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1, must-revalidate\r\n";
    let short = format!("{head}Content-Length: 4\r\n\r\npage");
    origin.on("/page", Script::respond(short));
    let page = Ask::get("/page").host("b.test").send_to(daemon.addr()).await;
    assert_eq!(page.status, 200);
    order(&daemon, "b", "down").await;
    says(at, 503, B).await;
}

#[tokio::test]
async fn a_site_with_a_program_is_reported_as_well() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let addr = origin.addr();
    folder.file(
        "default.vcl",
        format!(
            "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n",
            addr.ip(),
            addr.port()
        ),
    );
    let vcl = folder.path().join("default.vcl");
    let file = format!(
        "listen = \"127.0.0.1:0\"\nvcl = \"{}\"\n{TELLS}\n\
         varnish_cli = {{ listen = \"127.0.0.1:0\", secret = \"none\" }}\n\
         [[site]]\nhost = \"a.test\"\n",
        vcl.display()
    );
    let daemon = Daemon::start(&file).expect("it starts");
    let at = daemon.port("health").expect("a listener");
    origin.on("/page", Script::cacheable("page"));
    let (mut cli, _) = Cli::connect(daemon.port("Varnish CLI").expect("a port")).await;
    let answer = cli.ask("backend.set_health app sick").await;
    assert_eq!(answer.0, 200, "{}", answer.1);
    says(at, 503, A).await;
    cli.ask("backend.set_health app healthy").await;
    says(at, 200, "ready\n").await;
    let page = Ask::get("/page").host("a.test").send_to(daemon.addr()).await;
    assert_eq!(page.status, 200, "{}", page.text());
}

#[tokio::test]
async fn one_that_ends_says_so_for_as_long_as_it_serves() {
    let (stage, at) = healthy("", "").await;
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nCache-Control: no-store\r\n\r\nslow";
    stage.origin.on("/slow", Script::default().send(head).hang());
    let mut busy = stage.connect().await;
    busy.send(&request("GET", "/slow", ""), WriteSplit::Whole).await.expect("sent");
    eventually("the slow fetch", async || stage.origin.seen("/slow") == 1).await;
    says(at, 200, "ready\n").await;
    let pid = Pid::from_raw(stage.daemon.pid() as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("a signal");
    says(at, 503, "stopping\n").await;
    assert_eq!(Ask::get("/healthz").send_to(at).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_balancers_and_prometheus_ask_over_a_network() {
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: there is no curl");
        return;
    }
    let Some(spaces) = Spaces::new() else { return };
    let (authority, folder) = (Authority::new(), folder_with(TOKEN));
    for name in ["metrics.test", "prometheus.test"] {
        authority.sign(name, &[name], Kind::Elliptic);
    }
    let ca = authority.path("ca.pem");
    let file = format!(
        "listen = \":8080\"\nworkers = 2\n{}\n\
         metrics = {{ listen = \":9145 tls\", {}, {}, client_ca = \"{ca}\" }}\n\
         admin = {{ listen = \"127.0.0.1:6080\" }}\n\
         [[site]]\nhost = \"a.test\"\norigin = \"http://127.0.0.1:1\"\n",
        TELLS.replace("127.0.0.1:0", ":6090"),
        authority.pair("metrics.test"),
        token_file(&folder),
    );
    let daemon = Daemon::start_command(spaces.daemon(), &file, &[]).expect("it starts");
    for near in [NEAR[0].to_owned(), format!("[{}]", NEAR[1])] {
        let at = format!("http://{near}:6090");
        let kubelet = ["--user-agent", "kube-probe/1.31", "--header", "Accept: */*"];
        let ask = |more: &[&str]| spaces.curl(&[&kubelet, more].concat());
        assert_eq!(ask(&[&format!("{at}/healthz")]), (200, "ok\n".to_owned()));
        assert_eq!(ask(&[&format!("{at}/readyz")]), (200, "ready\n".to_owned()));
        let balancer = ["--http1.0", "--header", "Host:", &format!("{at}/readyz")];
        assert_eq!(spaces.curl(&balancer), (200, "ready\n".to_owned()));
        assert_eq!(spaces.curl(&["--head", &format!("{at}/readyz")]).0, 200);
        for other in ["/metrics", "/stats", "/api/v1/status"] {
            assert_eq!(spaces.curl(&[&format!("{at}{other}")]).0, 404, "{other}");
        }
        assert_eq!(spaces.curl(&[&format!("http://{near}:6080/healthz")]).0, 0);
        let to = format!("metrics.test:9145:{}", near.trim_matches(['[', ']']));
        let (cert, key) =
            (authority.path("prometheus.test.crt"), authority.path("prometheus.test.key"));
        let (bearer, url) =
            (format!("Authorization: Bearer {TOKEN}"), "https://metrics.test:9145/metrics");
        let accept = "Accept: application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5";
        let common = ["--cacert", &ca, "--resolve", &to, "--header", accept, url];
        let shown = ["--cert", &cert, "--key", &key];
        let told = ["--header", &bearer];
        let (status, text) = spaces.curl(&[&common[..], &shown, &told].concat());
        assert!(status == 200 && text.contains("\nprocess_start_time_seconds "), "{status} {text}");
        assert_eq!(spaces.curl(&[&common[..], &shown].concat()).0, 401);
        assert_eq!(spaces.curl(&[&common[..], &told].concat()).0, 0);
    }
    order(&daemon, "http://127.0.0.1:1", "down").await;
    eventually("it is not ready", async || {
        spaces.curl(&[&format!("http://{}:6090/readyz", NEAR[0])]) == (503, A.to_owned())
    })
    .await;
}
