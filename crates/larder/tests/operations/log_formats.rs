//! Tests of header fields and foreign formats in the log: `larder log` and Debian's varnishncsa,
//! for equal requests.

use crate::support;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::folder::Folder;
use support::{Stage, eventually};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::binary;
use testkit::origin::{Script, ScriptedOrigin};

const PROGRAM: &str = r#"vcl 4.1;
import std;
backend b { .host = "HOST"; .port = "PORT"; }
sub vcl_recv {
  std.log("class: " + req.http.X-Class);
  if (req.url ~ "^/no") { return (synth(403)); }
  if (req.url ~ "^/pass") { return (pass); }
  return (hash);
}
sub vcl_backend_fetch { set bereq.http.X-Id = "b" + bereq.http.X-Id; }
sub vcl_backend_response { set beresp.ttl = 1h; }
sub vcl_synth { synthetic("no"); return (deliver); }
sub vcl_deliver { set resp.http.X-Tag = "t-" + req.http.X-Class; }
"#;

/// A server with varnishd's flags.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        // varnishd's manager ends its child on a signal.
        let id = rustix::process::Pid::from_child(&self.child);
        _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        _ = self.child.wait();
    }
}

impl Server {
    fn start(mut command: Command, folder: &Path, work: &str) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        command.args(["-a", &address.to_string(), "-s", "malloc,64m"]);
        command.arg("-n").arg(folder.join(work)).arg("-f").arg(folder.join("default.vcl"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: child.spawn().expect("it starts"), address }
    }

    /// Sends a request once the server is there; returns the whole response.
    async fn ask(&self, bytes: &[u8]) -> Vec<u8> {
        eventually("a server", async || RawClient::connect(self.address).await.is_ok()).await;
        let mut raw = RawClient::connect(self.address).await.expect("a connection");
        raw.send(bytes, WriteSplit::Whole).await.expect("the request is taken");
        raw.rest().await.0
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// An origin, and a folder with a program for it.
async fn backdrop() -> (ScriptedOrigin, Folder) {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let fields = "Cache-Control: max-age=60\r\nX-Tag: o\r\n";
    for path in ["/page", "/pass"] {
        origin.on(path, Script::ok(fields, "a body"));
    }
    let folder = Folder::new();
    let (host, port) = (origin.addr().ip().to_string(), origin.addr().port().to_string());
    folder.file("default.vcl", PROGRAM.replace("HOST", &host).replace("PORT", &port));
    (origin, folder)
}

fn larder(folder: &Path) -> (Server, PathBuf) {
    let socket = folder.join("admin.sock");
    let mut command = Command::new(binary().expect("a binary"));
    command.arg("serve").arg("--admin-socket").arg(&socket);
    (Server::start(command, folder, "larder"), socket)
}

/// Runs a command that must succeed; returns its output.
async fn printed(mut command: Command) -> String {
    let run = tokio::task::spawn_blocking(move || command.stdin(Stdio::null()).output());
    let output = run.await.expect("no panic").expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn log(socket: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(binary().expect("a binary"));
    command.arg("log").args(arguments).arg("--admin-socket").arg(socket);
    printed(command).await
}

/// Requests the daemon to keep header fields; returns its status and body.
fn watch(socket: &Path, wanted: &Value) -> (u16, String) {
    let body = wanted.to_string();
    let mut stream = UnixStream::connect(socket).expect("the admin socket");
    let head = format!(
        "POST /api/v1/log/fields HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    (answer[9..12].parse().expect("a status"), answer)
}

/// Requests of each kind.
fn requests() -> Vec<Vec<u8>> {
    let common = "Host: Example.com:81\r\nConnection: close\r\n";
    [
        (
            "GET /page?a=1&b=%20",
            "X-Class: one\r\nX-Id: 1\r\nUser-Agent: a \"quoted\" \\ one\r\n",
            "",
        ),
        ("GET /page?a=1&b=%20", "X-Class: two\r\nX-Id: 2\r\nX-Id: 3\r\n", ""),
        ("HEAD /page?a=1&b=%20", "X-Class: three\r\nUser-Agent: caf\u{e9}\r\n", ""),
        ("GET /page", "Authorization: Basic dXNlcjpwYXNz\r\nX-Id: 4\r\n", ""),
        ("POST /pass", "X-Id: 5\r\nContent-Length: 3\r\n", "abc"),
        ("GET /no?", "X-Class: a:b\r\nCookie: sid=secret\r\n", ""),
    ]
    .map(|(line, fields, body)| {
        format!("{line} HTTP/1.1\r\n{common}{fields}\r\n{body}").into_bytes()
    })
    .to_vec()
}

/// Formats with equal output in both, between bars.
const ALIKE: &str = "%m|%U|%q|%r|%s|%b|%H|%h|%l|%u|%I|%{X-Id}i|%{User-agent}i|%{cookie}i|\
                     %{X-Tag}o|%{Nope}o|%{Varnish:hitmiss}x|%{Varnish:handling}x|\
                     %{Varnish:side}x|%{VCL_Log:class}x|a\\tb";
/// Formats with equal output but for digits.
const OF_TIME: &str = "%t|%D|%T|%{ms}T|%{us}T|%{s}T|%O|%{Varnish:time_firstbyte}x|%{Varnish:vxid}x|\
                       %{%Y-%m-%dT%H:%M}t|%{sec}t|%{msec}t|%{msec_frac}t|%{usec_frac}t";
/// Formats of backend requests with equal output.
const BEHIND: &str = "%m|%U|%q|%r|%s|%b|%h|%{X-Id}i|%{X-Tag}o|%{Varnish:side}x";

/// Text with each number reduced to one digit.
fn without_digits(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if !c.is_ascii_digit() => out.push(c),
            _ if out.ends_with('9') => {}
            _ => out.push('9'),
        }
    }
    out
}

/// The lines, sorted: Varnish's workers may log a request after the next one was answered.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn lines_of_a_format_are_those_of_varnishncsa() {
    if Command::new("varnishd").arg("-V").stderr(Stdio::null()).status().is_err() {
        return eprintln!("skipped: no varnishd");
    }
    let (_origin, folder) = backdrop().await;
    let mut command = Command::new("varnishd");
    command.args(["-j", "none", "-F", "-T", "none"]).env("TZ", "UTC");
    let varnish = Server::start(command, folder.path(), "varnish");
    let (own, socket) = larder(folder.path());
    let all = requests();
    eventually("a daemon", async || UnixStream::connect(&socket).is_ok()).await;
    assert_eq!(watch(&socket, &json!({ "secrets": true })).0, 200);
    for request in &all {
        own.ask(request).await;
        varnish.ask(request).await;
    }
    for (flags, format, count) in
        [(&[][..], ALIKE, all.len()), (&[][..], OF_TIME, all.len()), (&["-b"][..], BEHIND, 3)]
    {
        let ours = async || log(&socket, &[&["--once", "-F", format], flags].concat()).await;
        let theirs = async || {
            let mut command = Command::new("varnishncsa");
            command.args(["-d", "-n"]).arg(folder.path().join("varnish")).env("TZ", "UTC");
            command.args(["-F", format]).args(flags);
            printed(command).await
        };
        eventually("our lines", async || ours().await.lines().count() == count).await;
        eventually("their lines", async || theirs().await.lines().count() == count).await;
        let (mut ours, mut theirs) = (ours().await, theirs().await);
        if format == OF_TIME {
            (ours, theirs) = (without_digits(&ours), without_digits(&theirs));
        }
        assert_eq!(sorted(&ours), sorted(&theirs), "{format}");
    }
}

/// The fields of a side, once there is a record with some.
async fn sides(stage: &Stage, filter: &str) -> Value {
    let socket = stage.daemon.admin_socket();
    let arguments = ["--once", "--json", "-q", filter];
    eventually(filter, async || !log(&socket, &arguments).await.is_empty()).await;
    let text = log(&socket, &arguments).await;
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

fn field(record: &Value, side: &str, name: &str) -> Value {
    let all = record[side]["fields"].as_array().into_iter().flatten();
    let mut own = all.filter(|field| field[0].as_str().unwrap_or("").eq_ignore_ascii_case(name));
    own.next_back().map_or(Value::Null, |field| field[1].clone())
}

#[tokio::test]
async fn header_fields_of_all_sides_are_kept_while_a_reader_subscribes() {
    let stage = Stage::new().await;
    let fields = "Cache-Control: max-age=60\r\nX-Tag: o\r\nSet-Cookie: sid=secret; Path=/\r\n";
    stage.origin.on("/page", Script::ok(fields, "page"));
    let socket = stage.daemon.admin_socket();
    stage.ask("GET", "/page?0", "X-Id: 0\r\n").await;
    let nobody = sides(&stage, "req.url == /page?0").await;
    assert_eq!((nobody.get("req"), nobody.get("resp")), (None, None));

    assert_eq!(watch(&socket, &json!({ "filter": "not req.url ~ other" })).0, 200);
    let asks = "X-Id: 1\r\nCookie: sid=secret\r\nAuthorization: Basic dTpw\r\n";
    stage.ask("GET", "/page?1", asks).await;
    let record = sides(&stage, "req.url == /page?1").await;
    assert_eq!(record["req"]["line"], "GET /page?1 HTTP/1.1");
    assert_eq!(record["bereq"]["line"], "GET /page?1 HTTP/1.1");
    assert_eq!(record["beresp"]["line"], "200 OK");
    assert_eq!(record["resp"]["line"], "200 OK");
    for (side, name, value) in [
        ("req", "X-Id", "1"),
        ("req", "Cookie", "sid=***"),
        ("req", "Authorization", "Basic u:***"),
        ("bereq", "X-Id", "1"),
        ("bereq", "Authorization", "Basic u:***"),
        ("beresp", "X-Tag", "o"),
        ("beresp", "Set-Cookie", "sid=***; Path=/"),
        ("resp", "X-Tag", "o"),
        ("bereq", "Host", "larder.test"),
    ] {
        assert_eq!(field(&record, side, name), value, "{side} {name}: {record}");
    }
    stage.ask("GET", "/other", "").await;
    assert_eq!(sides(&stage, "req.url == /other").await.get("req"), None);
    let detail = log(&socket, &["--once", "--detail", "-q", "req.url == /page?1"]).await;
    assert!(detail.contains("-   beresp     X-Tag: o\n"), "{detail}");

    assert_eq!(watch(&socket, &json!({ "secrets": true, "names": ["cookie"] })).0, 200);
    stage.ask("GET", "/page?2", asks).await;
    let record = sides(&stage, "req.url == /page?2").await;
    assert_eq!(field(&record, "req", "cookie"), "sid=secret");
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_and_what_does_not_fit_is_left_out() {
    let limits = "log_heads = \"1KiB\"\nlog_readers = 2";
    let stage = support::Setup { limits, ..Default::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    let socket = stage.daemon.admin_socket();
    for (wanted, status) in [
        (json!({ "names": [] }), 400),
        (json!({ "names": ["a b"] }), 400),
        (json!({ "filter": "nope == 1" }), 422),
        (json!({ "names": ["x-id", "x-long"] }), 200),
        (json!({ "names": ["x-id", "x-long"] }), 200),
        (json!({ "names": ["x-b"] }), 200),
        (json!({ "names": ["x-c"] }), 503),
    ] {
        let (found, said) = watch(&socket, &wanted);
        assert_eq!(found, status, "{wanted}: {said}");
    }
    let long = format!("X-Id: 1\r\nX-Long: {}\r\nX-Not: 1\r\n", "a".repeat(1000));
    stage.ask("GET", "/page", &long).await;
    let record = sides(&stage, "req.url == /page").await;
    assert_eq!(field(&record, "req", "X-Id"), "1");
    assert_eq!(field(&record, "req", "X-Not"), Value::Null);
    let stats = stage.daemon.ask_admin("GET", "/stats").await.expect("figures");
    let stats: Value = serde_json::from_str(&stats.text()).expect("JSON");
    assert_eq!(stats["limit_hits"]["log_heads"], 1, "bereq's long field does not fit");
    assert_eq!(stats["limit_hits"]["log_readers"], 1);
}

#[tokio::test]
async fn the_tool_subscribes_to_the_fields_of_its_format() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\nX-Tag: o\r\n", "page"));
    let socket = stage.daemon.admin_socket();
    let folder = Folder::new();
    folder.file("format", "%U %{X-Tag}o %{X-Id}i %{Larder:not_stored}x\nmore\n");
    let file = format!("@{}", folder.path().join("format").display());
    let nginx = "$uri $sent_http_x_tag $http_x_id $larder_not_stored";
    let out = folder.path().join("out");
    for format in [file.as_str(), nginx] {
        let mut command = Command::new(binary().expect("a binary"));
        command.args(["log", "-F", format, "--admin-socket"]).arg(&socket);
        command.stdin(Stdio::null()).stdout(std::fs::File::create(&out).expect("a file"));
        let mut child = command.spawn().expect("it starts");
        eventually("a line with its fields", async || {
            stage.ask("GET", "/page?a=1", "X-Id: 7\r\n").await;
            let text = std::fs::read_to_string(&out).unwrap_or_default();
            text.lines().any(|line| line == "/page o 7 no-store")
        })
        .await;
        _ = child.kill();
        _ = child.wait();
    }
    let mut command = Command::new(binary().expect("a binary"));
    command.args(["log", "--once", "-F", "%{VSL:Bigin}x", "--admin-socket"]).arg(&socket);
    let run = tokio::task::spawn_blocking(move || command.output());
    let output = run.await.expect("no panic").expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("there is no tag `Bigin`"), "{said}");
}
