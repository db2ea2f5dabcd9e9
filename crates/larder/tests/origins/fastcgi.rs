//! Tests of FastCGI origins whose application follows a script, faults included.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use support::{PATIENCE, eventually, is_hit, pattern, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::fastcgi::{Act, Application, ApplicationScript, record};
use testkit::larder::Daemon;
use testkit::reply::{Ending, Reply, ReplyOutcome};

const STDOUT: u8 = 6;
const HEAD: &str = "Content-Type: text/html\r\n\r\n";
const CACHEABLE: &str = "Content-Type: text/html\r\nCache-Control: max-age=300\r\n\r\n";

/// A document root that is removed with its test.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("larder-fastcgi-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        // The system's folder for temporary files may itself be a link.
        Self(fs::canonicalize(folder).expect("a folder"))
    }

    fn file(&self, name: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, "<?php").expect("a file");
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Stage {
    app: Application,
    daemon: Daemon,
    root: Root,
}

#[derive(Default)]
struct Setup<'a> {
    limits: &'a str,
    /// Keys of the origin.
    origin: &'a str,
    site: &'a str,
    /// Another server, before the application.
    first: Option<String>,
}

impl Setup<'_> {
    async fn start(self) -> Stage {
        let app = Application::start().await.expect("a port for the application");
        let root = Root::new();
        root.file("index.php");
        let Self { limits, origin, site, first } = self;
        let servers: Vec<_> = first
            .into_iter()
            .chain([app.addr().to_string()])
            .map(|addr| format!("\"fastcgi://{addr}\""))
            .collect();
        let file = format!(
            "listen = \"127.0.0.1:0\"\nworkers = 1\n[limits]\n{limits}\n[[origin]]\n\
             name = \"php\"\nservers = [{}]\nroot = \"{}\"\neject = {{ failures = 0 }}\n{origin}\n\
             [[site]]\nhost = \"*\"\norigin = \"php\"\n{site}\n",
            servers.join(", "),
            root.0.display(),
        );
        let daemon = Daemon::start(&file).expect("larder starts");
        Stage { app, daemon, root }
    }
}

impl Stage {
    async fn new() -> Self {
        Setup::default().start().await
    }

    async fn connect(&self) -> RawClient {
        RawClient::connect(self.daemon.addr()).await.expect("a connection").patience(PATIENCE)
    }

    async fn seen(&self, method: &str, bytes: &[u8]) -> ReplyOutcome {
        let mut raw = self.connect().await;
        // A rejection may come before everything is read.
        let _ = raw.send(bytes, WriteSplit::Whole).await;
        raw.reply(method).await
    }

    async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        whole(self.seen(method, &request(method, target, fields)).await, target)
    }

    async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }

    async fn post(&self, target: &str, body: &[u8]) -> Reply {
        let head = request("POST", target, &format!("Content-Length: {}\r\n", body.len()));
        whole(self.seen("POST", &[&head, body].concat()).await, target)
    }

    async fn metric(&self, name: &str, label: &str) -> u64 {
        self.daemon.metric(name, label).await.expect("metrics") as u64
    }

    fn root(&self) -> &Path {
        &self.root.0
    }
}

fn stdout(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Stdout(bytes.into())
}

#[tokio::test]
async fn an_application_gets_the_parameters_that_nginx_sends() {
    let stage = Stage::new().await;
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}hello")));
    let fields = "X-Thing: 1\r\nx-thing: 2\r\nRemote-User: me\r\nRemote_User: forged\r\n\
                  Proxy: http://evil\r\nCookie: a=1\r\nAuthorization: Basic eA==\r\n";
    let reply = stage.ask("GET", "/blog/a%20post?x=1&y", fields).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "hello"));
    let asked = stage.app.last();
    let root = stage.root().display();
    for (name, value) in [
        ("SCRIPT_FILENAME", format!("{root}/index.php")),
        ("DOCUMENT_ROOT", root.to_string()),
        ("SCRIPT_NAME", "/index.php".to_owned()),
        ("DOCUMENT_URI", "/index.php".to_owned()),
        ("PATH_INFO", String::new()),
        ("REQUEST_URI", "/blog/a%20post?x=1&y".to_owned()),
        ("QUERY_STRING", "x=1&y".to_owned()),
        ("REQUEST_METHOD", "GET".to_owned()),
        ("SERVER_PROTOCOL", "HTTP/1.1".to_owned()),
        ("GATEWAY_INTERFACE", "CGI/1.1".to_owned()),
        ("REQUEST_SCHEME", "http".to_owned()),
        ("SERVER_NAME", "larder.test".to_owned()),
        ("SERVER_PORT", "80".to_owned()),
        ("SERVER_ADDR", "127.0.0.1".to_owned()),
        ("REMOTE_ADDR", "127.0.0.1".to_owned()),
        ("REDIRECT_STATUS", "200".to_owned()),
        ("CONTENT_LENGTH", String::new()),
        ("HTTP_HOST", "larder.test".to_owned()),
        ("HTTP_X_THING", "1, 2".to_owned()),
        ("HTTP_COOKIE", "a=1".to_owned()),
        ("HTTP_AUTHORIZATION", "Basic eA==".to_owned()),
        ("HTTP_X_FORWARDED_FOR", "127.0.0.1".to_owned()),
    ] {
        assert_eq!(asked.param(name), value, "{name}");
    }
    // WordPress offers links without `index.php` if it finds Apache, IIS or nginx here.
    let software = asked.param("SERVER_SOFTWARE");
    assert!(software.starts_with("larder/") && software.contains("nginx"), "{software}");
    assert!(asked.param("REMOTE_PORT").parse::<u16>().is_ok());
    for name in ["HTTP_PROXY", "HTTP_REMOTE_USER", "HTTPS", "HTTP_CONNECTION"] {
        assert!(!asked.has(name), "{name}");
    }
}

#[tokio::test]
async fn what_a_script_says_is_read_however_it_is_cut() {
    let stage = Stage::new().await;
    let output =
        "Status: 404 Not here\nX-One:  1 \nContent-Length: 4\nTransfer-Encoding: chunked\n\ngone";
    let split = output.bytes().map(|byte| stdout([byte]));
    let split = [Act::ReadStdin].into_iter().chain(split).chain([Act::End(0)]);
    let padded = vec![
        Act::ReadStdin,
        Act::Raw(record(STDOUT, 1, output.as_bytes(), 255)),
        Act::Raw(record(STDOUT, 1, b"", 8)),
        Act::End(0),
    ];
    stage.app.on("/one", ApplicationScript::answer(output));
    stage.app.on("/bytes", ApplicationScript::answer(output).bytewise());
    stage.app.on("/records", ApplicationScript::new(split.collect()));
    stage.app.on("/padded", ApplicationScript::new(padded));
    for target in ["/one", "/bytes", "/records", "/padded"] {
        let reply = stage.get(target).await;
        assert_eq!((reply.status, reply.text().as_str()), (404, "gone"), "{target}");
        assert_eq!(reply.field("x-one").as_deref(), Some("1"), "{target}");
        assert_eq!((reply.ending, reply.field("status")), (Ending::Length, None), "{target}");
    }
}

#[tokio::test]
async fn pages_of_known_and_unknown_length_are_stored() {
    let stage = Stage::new().await;
    let body = String::from_utf8(pattern(200_000)).expect("letters");
    let pieces = body.as_bytes().chunks(65_535).map(stdout);
    let unknown = [Act::ReadStdin, stdout(CACHEABLE)].into_iter().chain(pieces);
    let unknown = unknown.chain([Act::End(0)]).collect();
    stage.app.on("/unknown", ApplicationScript::new(unknown));
    let known = format!("Content-Length: 5\r\n{CACHEABLE}12345");
    stage.app.on("/known", ApplicationScript::answer(known));
    for (target, text) in [("/unknown", body.as_str()), ("/known", "12345")] {
        let miss = stage.get(target).await;
        assert_eq!((miss.text().as_str(), is_hit(&miss)), (text, false), "{target}");
        let hit = stage.get(target).await;
        assert_eq!((hit.text().as_str(), is_hit(&hit)), (text, true), "{target}");
        let head = stage.ask("HEAD", target, "").await;
        assert_eq!(head.field("content-length"), Some(text.len().to_string()), "{target}");
        let part = stage.ask("GET", target, "Range: bytes=1-3\r\n").await;
        assert_eq!((part.status, part.text().as_str()), (206, &text[1..4]), "{target}");
    }
    assert_eq!(stage.app.asked().len(), 2);
}

#[tokio::test]
async fn a_script_confirms_what_is_stored() {
    let stage = Setup {
        site: "cache = { ttl = { 200 = \"100ms\" }, stale_while_revalidate = \"0s\" }",
        ..Setup::default()
    }
    .start()
    .await;
    let fresh = "Content-Type: text/html\nETag: \"a\"\n\nthe page";
    stage.app.on("/page", ApplicationScript::answer(fresh));
    assert_eq!(stage.get("/page").await.text(), "the page");
    stage.app.on("/page", ApplicationScript::answer("Status: 304 Not Modified\nETag: \"a\"\n\n"));
    eventually("the page is asked for again", async || {
        assert_eq!(stage.get("/page").await.text(), "the page");
        stage.app.asked().len() > 1
    })
    .await;
    assert_eq!(stage.app.last().param("HTTP_IF_NONE_MATCH"), "\"a\"");
    stage.daemon.assert_metric("larder_revalidated_total", 1).await;
}

#[tokio::test]
async fn an_answer_to_head_has_no_body_even_if_the_script_writes_one() {
    let stage =
        Setup { origin: "idle = 4", site: "cache = false", ..Setup::default() }.start().await;
    stage.app.on("/page", ApplicationScript::answer(format!("Content-Length: 4\n{HEAD}body")));
    // The response is there before the last record is read, so the next request may still miss it.
    eventually("a connection in order after it", async || {
        let before = stage.app.connections();
        let reply = stage.ask("HEAD", "/page", "").await;
        assert_eq!((reply.status, reply.body.len()), (200, 0));
        assert_eq!(reply.field("content-length").as_deref(), Some("4"));
        stage.app.connections() == before
    })
    .await;
    assert_eq!(stage.get("/page").await.text(), "body");
}

#[tokio::test]
async fn connections_are_kept_only_when_that_is_asked_for() {
    for (origin, keep, connections) in [("", false, 3), ("idle = 1", true, 1)] {
        let stage = Setup { origin, site: "cache = false", ..Setup::default() }.start().await;
        stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}x")));
        for _ in 0..3 {
            assert_eq!(stage.get("/").await.text(), "x");
        }
        assert_eq!(stage.app.last().keep, keep);
        assert_eq!(stage.app.connections(), connections);
    }
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_costs_nothing() {
    let stage =
        Setup { origin: "idle = 1", site: "cache = false", ..Setup::default() }.start().await;
    let once = vec![Act::ReadStdin, stdout(format!("{HEAD}x")), Act::End(0), Act::Close];
    stage.app.otherwise(ApplicationScript::new(once));
    for _ in 0..5 {
        assert_eq!(stage.get("/").await.text(), "x");
    }
    assert_eq!(stage.metric("larder_origin_failures_total", "").await, 0);
}

#[tokio::test]
async fn uploads_of_every_kind_arrive_whole() {
    let stage = Stage::new().await;
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    for length in [0, 1, 65_535, 65_536, 1_000_000] {
        let body = pattern(length);
        assert_eq!(stage.post("/form", &body).await.text(), "ok");
        let asked = stage.app.last();
        assert_eq!(asked.param("CONTENT_LENGTH"), length.to_string());
        assert!(asked.stdin == body, "{length}");
    }
    let head = request("POST", "/form", "Transfer-Encoding: chunked\r\n");
    let body = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let reply = whole(stage.seen("POST", &[&head[..], body].concat()).await, "chunked");
    assert_eq!(reply.text(), "ok");
    let asked = stage.app.last();
    assert_eq!((asked.param("CONTENT_LENGTH"), &asked.stdin[..]), ("11", &b"hello world"[..]));
    assert!(!asked.has("HTTP_TRANSFER_ENCODING"));
}

#[tokio::test]
async fn a_body_of_unknown_length_is_kept_within_its_limit() {
    let limits = "spool_bytes = \"10\"\nspool_file_bytes = \"0\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    let head = request("POST", "/form", "Transfer-Encoding: chunked\r\n");
    for (body, status) in
        [("a\r\n0123456789\r\n0\r\n\r\n", 200), ("b\r\n0123456789a\r\n0\r\n\r\n", 413)]
    {
        let bytes = [&head[..], body.as_bytes()].concat();
        assert_eq!(whole(stage.seen("POST", &bytes).await, body).status, status);
    }
    assert_eq!(stage.app.asked().len(), 1);
    stage.daemon.assert_limit_count("spool_bytes", 1).await;
}

/// As uploaded by macOS' Finder and `curl -T -`.
#[tokio::test]
async fn a_long_body_of_unknown_length_arrives_by_a_file() {
    let limits = "spool_file_bytes = \"9MB\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    let head = request("PUT", "/dav/film", "Transfer-Encoding: chunked\r\n");
    for (length, status) in [(8_000_000, 200), (9_500_000, 413), (8_999_999, 200)] {
        let body = pattern(length);
        let mut bytes = head.clone();
        for chunk in body.chunks(100_000) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend([chunk, b"\r\n"].concat());
        }
        bytes.extend(b"0\r\n\r\n");
        let reply = whole(stage.seen("PUT", &bytes).await, "an upload");
        assert_eq!(reply.status, status, "{length}: {}", reply.text());
        if status == 200 {
            let asked = stage.app.last();
            assert_eq!(asked.param("CONTENT_LENGTH"), length.to_string());
            assert!(asked.stdin == body, "{length}");
        }
    }
    stage.daemon.assert_limit_count("spool_file_bytes", 1).await;
    assert_eq!(stage.metric("larder_spooled_to_files_total", "").await, 3);
}

#[tokio::test]
async fn an_application_may_write_before_it_has_read() {
    let stage = Stage::new().await;
    let body = pattern(3_000_000);
    let early = vec![stdout(format!("{HEAD}early ")), Act::ReadStdin, stdout("late"), Act::End(0)];
    stage.app.on("/echo", ApplicationScript::new(early));
    assert_eq!(stage.post("/echo", &body).await.text(), "early late");
    assert!(stage.app.last().stdin == body);
}

#[tokio::test]
async fn an_answer_that_comes_before_the_body_was_read_is_whole_and_ends_the_connection() {
    let stage = Setup { origin: "idle = 1", ..Setup::default() }.start().await;
    let refuse =
        vec![stdout("Status: 413\nContent-Type: text/plain\n\nno"), Act::End(0), Act::Hang];
    stage.app.on("/refuse", ApplicationScript::new(refuse));
    let reply = stage.post("/refuse", &pattern(20_000_000)).await;
    assert_eq!((reply.status, reply.text().as_str()), (413, "no"));
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    assert_eq!(stage.post("/other", b"x").await.text(), "ok");
    assert_eq!(stage.app.last().connection, 1);
}

#[tokio::test]
async fn an_answer_is_not_stored_whose_script_says_at_its_end_that_it_failed() {
    let stage = Stage::new().await;
    // END_REQUEST, and an appStatus of 255: PHP has died.
    let died = record(3, 1, &[0, 0, 0, 255, 0, 0, 0, 0], 0);
    for head in [CACHEABLE.to_owned(), format!("Content-Length: 4\r\n{CACHEABLE}")] {
        stage.app.on(
            "/page",
            ApplicationScript::new(vec![
                Act::ReadStdin,
                stdout(format!("{head}page")),
                Act::Raw(died.clone()),
            ]),
        );
        for _ in 0..2 {
            let reply = stage.get("/page").await;
            assert_eq!((reply.text().as_str(), is_hit(&reply)), ("page", false));
        }
    }
    stage.app.on("/page", ApplicationScript::answer(format!("{CACHEABLE}well")));
    assert_eq!(stage.get("/page").await.text(), "well");
    assert!(is_hit(&stage.get("/page").await));
}

#[tokio::test]
async fn broken_answers_are_errors_and_never_stored() {
    let stage =
        Setup { site: "cache = { stale_if_error = \"0s\" }", ..Setup::default() }.start().await;
    let page = || stdout(format!("{CACHEABLE}page"));
    for (name, acts) in [
        ("/id", vec![Act::Raw(record(STDOUT, 2, b"x", 0))]),
        ("/version", vec![Act::Raw(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())]),
        ("/kind", vec![Act::Raw(record(9, 0, b"", 0))]),
        ("/empty", vec![Act::End(0)]),
        ("/closed", vec![Act::Close]),
        ("/reset", vec![Act::Reset]),
        ("/cut-head", vec![stdout("Content-Type: te"), Act::Close]),
        ("/ended-head", vec![stdout("Content-Type: te"), Act::End(0)]),
        ("/no-head", vec![stdout("<html>\n"), Act::End(0)]),
        ("/fold", vec![stdout("A: b\n c\n\n"), Act::End(0)]),
        ("/two-lengths", vec![stdout("Content-Length: 1\nContent-Length: 1\n\nx"), Act::End(0)]),
        ("/long-head", vec![Act::Repeat(Box::new(stdout("A: bcdefghi\n")), 10_000), Act::End(0)]),
        ("/mpx", vec![Act::End(1)]),
        ("/role", vec![Act::End(3)]),
    ] {
        stage.app.on(
            name,
            ApplicationScript::new([vec![Act::ReadStdin], acts, vec![Act::Close]].concat()),
        );
        assert_eq!(stage.get(name).await.status, 502, "{name}");
    }
    for (name, acts) in [
        ("/cut-body", vec![page(), Act::Close]),
        ("/reset-body", vec![page(), Act::DelayMs(50), Act::Reset]),
        ("/overloaded-body", vec![page(), Act::End(2)]),
        ("/bad-body", vec![page(), Act::Raw(vec![7; 64])]),
        ("/after", vec![page(), stdout(""), stdout("more"), Act::End(0)]),
        ("/short", vec![stdout(format!("Content-Length: 9\n{CACHEABLE}page")), Act::End(0)]),
        (
            "/cut-length",
            vec![
                stdout(format!("Content-Length: 9\n{CACHEABLE}page")),
                Act::DelayMs(20),
                Act::Close,
            ],
        ),
    ] {
        stage.app.on(
            name,
            ApplicationScript::new([vec![Act::ReadStdin], acts, vec![Act::Close]].concat()),
        );
        for _ in 0..2 {
            let seen = stage.seen("GET", &request("GET", name, "")).await;
            assert!(
                matches!(seen, ReplyOutcome::Truncated(_) | ReplyOutcome::Nothing),
                "{name}: {seen:?}"
            );
        }
        let asked = stage.app.asked();
        assert_eq!(asked.iter().filter(|a| a.param("REQUEST_URI") == name).count(), 2, "{name}");
    }
}

#[tokio::test]
async fn output_beyond_its_length_is_dropped_and_the_page_not_stored() {
    let stage = Stage::new().await;
    let output = format!("Content-Length: 4\n{CACHEABLE}page and more");
    stage.app.on("/long", ApplicationScript::answer(output));
    for count in 1..=2 {
        let reply = stage.get("/long").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
        assert_eq!(stage.app.asked().len(), count);
    }
}

#[tokio::test]
async fn stdout_that_was_closed_is_whole_even_when_the_request_is_not_ended() {
    let stage = Stage::new().await;
    let acts = vec![Act::ReadStdin, stdout(format!("{CACHEABLE}page")), stdout(""), Act::Close];
    stage.app.on("/page", ApplicationScript::new(acts));
    assert_eq!(stage.get("/page").await.text(), "page");
    assert!(is_hit(&stage.get("/page").await));
}

#[tokio::test]
async fn overload_is_503_and_another_server_is_asked() {
    let stage = Stage::new().await;
    stage.app.otherwise(ApplicationScript::new(vec![Act::ReadStdin, Act::End(2)]));
    let reply = stage.get("/").await;
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("takes no more requests"), "{}", reply.text());
    let origins = support::console::look(&stage.daemon, "/api/v1/origins").await.to_string();
    assert!(origins.contains("is overloaded"), "{origins}");

    let busy = Application::start().await.expect("a port");
    busy.otherwise(ApplicationScript::new(vec![Act::ReadStdin, Act::End(2)]));
    let first = Some(busy.addr().to_string());
    let stage = Setup { first, site: "cache = false", ..Setup::default() }.start().await;
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    for _ in 0..4 {
        assert_eq!(stage.get("/").await.text(), "ok");
        // It did nothing, so any method may be repeated.
        assert_eq!(stage.ask("POST", "/", "Content-Length: 0\r\n").await.text(), "ok");
    }
    assert!(!busy.asked().is_empty());
}

#[tokio::test]
async fn only_idempotent_requests_are_repeated_after_a_drop() {
    let dead = Application::start().await.expect("a port");
    dead.otherwise(ApplicationScript::new(vec![Act::ReadStdin, Act::Close]));
    let first = Some(dead.addr().to_string());
    let stage = Setup { first, site: "cache = false", ..Setup::default() }.start().await;
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    let mut statuses = Vec::new();
    for _ in 0..4 {
        assert_eq!(stage.get("/").await.status, 200);
    }
    for _ in 0..4 {
        statuses.push(stage.ask("POST", "/", "Content-Length: 0\r\n").await.status);
    }
    assert!(statuses.contains(&502), "{statuses:?}");
}

#[tokio::test]
async fn a_silent_application_is_a_504() {
    let stage =
        Setup { origin: "first_byte_timeout = \"100ms\"", ..Setup::default() }.start().await;
    stage.app.otherwise(ApplicationScript::new(vec![Act::Hang]));
    let reply = stage.get("/").await;
    assert_eq!(reply.status, 504);
    assert!(reply.text().contains("first_byte_timeout"), "{}", reply.text());
}

#[tokio::test]
async fn noise_on_stderr_neither_holds_up_a_deadline_nor_fills_the_log() {
    let setup = Setup {
        limits: "stderr_bytes = \"100\"",
        origin: "first_byte_timeout = \"300ms\"\nbetween_bytes_timeout = \"300ms\"",
        ..Setup::default()
    };
    let stage = setup.start().await;
    let noise = [Act::Stderr(b"PHP Warning: noise\n".to_vec()), Act::DelayMs(10)];
    let noise = || noise.iter().cloned().cycle().take(400);
    stage.app.on("/head", ApplicationScript::new(noise().collect()));
    assert_eq!(stage.get("/head").await.status, 504);
    let body = [stdout(format!("{HEAD}begin"))].into_iter().chain(noise());
    stage.app.on("/body", ApplicationScript::new(body.collect()));
    let seen = stage.seen("GET", &request("GET", "/body", "")).await;
    assert!(matches!(seen, ReplyOutcome::Truncated(_)), "{seen:?}");
    let name = format!("{}: GET http://larder.test/body from 127.0.0.1: ", stage.app.addr());
    stage.daemon.assert_logged(&format!("{name}PHP Warning: noise")).await;
    stage.daemon.assert_limit_count("stderr_bytes", 2).await;
    let log = stage.daemon.assert_logged("bytes more (limit: stderr_bytes)").await;
    assert!(log.lines().count() < 40, "{log}");
}

#[tokio::test]
async fn what_a_script_complains_of_is_logged_and_the_page_is_served() {
    let stage = Stage::new().await;
    let acts = vec![
        Act::ReadStdin,
        Act::Stderr(b"PHP Notice: one\nlarder: forged\x1b[0m".to_vec()),
        stdout(format!("{CACHEABLE}page")),
        Act::End(0),
    ];
    stage.app.on("/page?a", ApplicationScript::new(acts));
    assert_eq!(stage.get("/page?a").await.text(), "page");
    let name = "GET http://larder.test/page?a from 127.0.0.1: ";
    let said = [format!("{name}PHP Notice: one"), format!("{name}larder: forged\\u{{1b}}[0m")];
    eventually("the log has both lines", async || {
        let log = stage.daemon.log();
        said.iter().all(|line| log.contains(line))
    })
    .await;
}

#[tokio::test]
async fn a_request_without_waiters_is_aborted() {
    let origin = "between_bytes_timeout = \"100ms\"";
    let stage = Setup { origin, ..Setup::default() }.start().await;
    let acts = vec![Act::ReadStdin, stdout(format!("{HEAD}begin")), Act::Hang];
    stage.app.on("/long", ApplicationScript::new(acts));
    let seen = stage.seen("GET", &request("GET", "/long", "")).await;
    assert!(matches!(seen, ReplyOutcome::Truncated(_)), "{seen:?}");
    eventually("it is taken back", async || stage.app.aborted() == 1).await;
}

#[tokio::test]
async fn paths_lead_to_scripts_and_never_to_what_is_no_script() {
    let setup = Setup { origin: "no_scripts = \"/uploads\"", ..Setup::default() };
    let stage = setup.start().await;
    for file in ["page.php", "admin/index.php", "uploads/x.jpg", "uploads/evil.php", ".git/x.php"] {
        stage.root.file(file);
    }
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    for (target, script, path_info) in [
        ("/", "/index.php", ""),
        ("/a/b", "/index.php", ""),
        ("/page.php", "/page.php", ""),
        ("/page.php/x%20y", "/page.php", "/x y"),
        ("/%70age.php", "/page.php", ""),
        ("/admin/", "/admin/index.php", ""),
        ("/admin//../page.php", "/page.php", ""),
    ] {
        assert_eq!(stage.get(target).await.text(), "ok", "{target}");
        let asked = stage.app.last();
        assert_eq!((asked.param("SCRIPT_NAME"), asked.param("PATH_INFO")), (script, path_info));
        let file = format!("{}{script}", stage.root().display());
        assert_eq!(asked.param("SCRIPT_FILENAME"), file);
    }
    let before = stage.app.asked().len();
    for (target, status) in [
        ("/uploads/x.jpg/y.php", 404),
        ("/uploads/x.jpg%2fy.php", 404),
        ("/uploads/x.jpg/y.php?a", 404),
        ("/missing.php", 404),
        ("/uploads/x.jpg", 200),
        ("/uploads/evil.php", 403),
        ("/.git/x.php", 403),
        ("/.env", 403),
        ("/admin", 301),
    ] {
        assert_eq!(stage.get(target).await.status, status, "{target}");
    }
    let slash = stage.get("/admin?a=b").await;
    assert_eq!(slash.field("location").as_deref(), Some("http://larder.test/admin/?a=b"));
    assert_eq!(stage.app.asked().len(), before, "no application was asked");
}

#[tokio::test]
async fn a_new_script_is_found_within_moments() {
    let stage = Setup { site: "cache = false", ..Setup::default() }.start().await;
    stage.app.otherwise(ApplicationScript::answer(format!("{HEAD}ok")));
    assert_eq!(stage.get("/new.php").await.status, 404);
    stage.root.file("new.php");
    eventually("it is found", async || stage.get("/new.php").await.status == 200).await;
}

#[tokio::test]
async fn probes_ask_for_their_own_script() {
    let origin = "probe = { path = \"/ping\", interval = \"100ms\", threshold = 1, window = 1 }";
    let stage = Setup { origin, ..Setup::default() }.start().await;
    stage.app.on("/ping", ApplicationScript::answer("Status: 500\n\nsick"));
    eventually("it is held for sick", async || stage.get("/x").await.status == 503).await;
    stage.app.on("/ping", ApplicationScript::answer("Content-Type: text/plain\n\npong"));
    stage.app.on("/x", ApplicationScript::answer(format!("{HEAD}well")));
    eventually("it is well again", async || stage.get("/x").await.text() == "well").await;
}

#[tokio::test]
async fn scripts_get_the_parameters_of_their_origins_settings() {
    let params =
        "params = { PHP_VALUE = \"memory_limit=256M\\nmax_execution_time=60\", A_1 = \"\" }";
    let stage = support::scripts::Stage::start(params, "").await;
    assert_eq!(stage.get("/page").await.status, 200);
    let asked = stage.app.last();
    assert_eq!(asked.param("PHP_VALUE"), "memory_limit=256M\nmax_execution_time=60");
    assert!(asked.has("A_1") && asked.has("SCRIPT_FILENAME"));
    let refused = "listen = \"127.0.0.1:0\"\n[[origin]]\nname = \"php\"\nroot = \"/\"\n\
                   servers = \"fastcgi://127.0.0.1:1\"\n\
                   params = { script_filename = \"/etc/passwd\", KEY = \"hush\" }\n\
                   [[site]]\nhost = \"*\"\norigin = \"php\"\n";
    let said = testkit::larder::Daemon::start(refused).expect_err("it is refused").to_string();
    assert!(said.contains("Larder sets this parameter from the request"), "{said}");
    assert!(!said.contains("hush") && !said.contains("/etc/passwd"), "{said}");
}
