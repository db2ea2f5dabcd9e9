//! Tests of the tools that observe a running daemon, run as a user runs them.

use crate::support;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::folder::Folder;
use support::nats::Nats;
use support::{Setup, Stage, eventually};
use testkit::larder::binary;
use testkit::origin::Script;

/// Runs the binary to its end without blocking the origin.
async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary().expect("a binary"));
    command.args(arguments).stdin(Stdio::null());
    let waited = tokio::task::spawn_blocking(move || command.output()).await;
    waited.expect("no panic").expect("it starts")
}

/// Runs a verb against `stage`; returns its standard output, if it succeeded.
async fn ask(stage: &Stage, verb: &str, arguments: &[&str]) -> String {
    let socket = stage.daemon.admin_socket().display().to_string();
    let output = run(&[&[verb, "--admin-socket", &socket], arguments].concat()).await;
    assert!(output.status.success(), "{verb}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A daemon that has served `/page` three times, once from its origin, `/gone` with 404, and `/own`
/// as a pass. It has one core: records of several are in random order.
async fn visited() -> Stage {
    let stage = Setup { one_core: true, ..Setup::default() }.start().await;
    stage.origin.on("/page?a=1", Script::cacheable("page"));
    stage.origin.on("/own", Script::ok("Cache-Control: no-store\r\n", "own"));
    stage.origin.on(
        "/gone",
        Script::respond(
            "HTTP/1.1 404 Not Found\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n",
        ),
    );
    for _ in 0..3 {
        stage
            .ask("GET", "/page?a=1", "User-Agent: one/1 \x01\r\n".replace('\x01', "").as_str())
            .await;
    }
    stage.ask("GET", "/own", "User-Agent: two/2\r\nReferer: http://r.test/\r\n").await;
    stage.get("/gone").await;
    // Records are written in batches.
    eventually("five records", async || ask(&stage, "log", &["--once"]).await.lines().count() == 5)
        .await;
    stage
}

#[tokio::test]
async fn log_shows_the_last_requests_in_three_forms() {
    let stage = visited().await;
    let combined = ask(&stage, "log", &["--once"]).await;
    let first = combined.lines().next().expect("a line");
    assert!(first.starts_with("127.0.0.1 - - ["), "{first}");
    assert!(first.contains("] \"GET /page?a=1 HTTP/1.1\" 200 4 \"-\" \"one/1"), "{first}");
    assert_eq!(ask(&stage, "log", &["-n", "2"]).await.lines().count(), 2);
    let json = ask(&stage, "log", &["--once", "--json"]).await;
    let lines: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let served: Vec<_> = lines.iter().map(|line| line["cache"].as_str().unwrap_or("")).collect();
    assert_eq!(served, ["MISS", "HIT", "HIT", "MISS", "MISS"]);
    let detail = ask(&stage, "log", &["--detail", "-n", "1"]).await;
    assert!(detail.starts_with("* ") && detail.contains("not stored: no-store"), "{detail}");
    assert!(detail.contains("-   origin     app"), "{detail}");
}

#[tokio::test]
async fn log_shows_what_a_filter_holds_for_and_points_at_mistakes() {
    let stage = visited().await;
    for (filter, count) in [
        ("served == hit", 2),
        ("resp.status >= 400 and req.url ~ \"^/g\"", 1),
        ("not_stored", 2),
        ("req.http.referer ~ r.test", 1),
        ("client.ip == 127.0.0.0/8 and not time.total > 1h", 5),
    ] {
        let shown = ask(&stage, "log", &["--once", "-q", filter]).await;
        assert_eq!(shown.lines().count(), count, "{filter}: {shown}");
    }
    let socket = stage.daemon.admin_socket().display().to_string();
    let output = run(&["log", "--admin-socket", &socket, "-q", "resp.status > abc"]).await;
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("resp.status > abc\n              ^^^ a number belongs here"), "{said}");
}

/// A running tool, and its output.
struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(binary().expect("a binary"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, lines }
    }

    async fn line(mut self) -> (Self, String) {
        tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            self.lines.read_line(&mut line).expect("text");
            (self, line)
        })
        .await
        .expect("no panic")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_follows_requests_until_it_is_interrupted() {
    let stage = visited().await;
    let socket = stage.daemon.admin_socket().display().to_string();
    let tool = Running::start(&["log", "--admin-socket", &socket, "-n", "1", "-f"]);
    let (tool, line) = tool.line().await;
    assert!(line.contains("/gone"), "{line}");
    stage.get("/own").await;
    let (mut tool, line) = tool.line().await;
    assert!(line.contains("\"GET /own HTTP/1.1\" 200 3 "), "{line}");
    let pid = Pid::from_raw(tool.child.id().cast_signed()).expect("a process id");
    // Background commands of a shell ignore interrupts; lab/tools presses Ctrl-C.
    kill_process(pid, Signal::TERM).expect("it runs");
    let ended = tokio::task::spawn_blocking(move || tool.child.wait()).await.expect("no panic");
    assert!(!ended.expect("it ends").success());
    assert_eq!(stage.get("/own").await.status, 200, "the daemon goes on");
}

#[tokio::test]
async fn top_adds_up_what_is_asked_for() {
    let stage = visited().await;
    let shown = ask(&stage, "top", &["--once", "--seconds", "0"]).await;
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[0].starts_with("5 requests in "), "{shown}");
    assert!(lines[1].starts_with("hit 2, stale 0, revalidated 0, miss 3, pass 0, "), "{shown}");
    assert!(lines[3].ends_with("  larder.test/page?a=1") && lines[3].contains("67 %"), "{shown}");
    let arguments = ["--json", "--seconds", "0", "--by", "status", "--sort", "misses"];
    let value: Value = serde_json::from_str(&ask(&stage, "top", &arguments).await).expect("JSON");
    assert_eq!(value["all"]["requests"], 5);
    assert_eq!((&value["rows"][0]["key"], &value["rows"][0]["waited"]), (&"200".into(), &2.into()));
    let last = &value["rows"][1];
    assert_eq!((&last["key"], &last["cache"]["hit"]), (&"404".into(), &0.into()));
}

#[tokio::test]
async fn top_and_hist_show_the_last_seconds_that_are_in_the_ring() {
    let stage = visited().await;
    // It was there before their start.
    let shown = ask(&stage, "top", &["--once"]).await;
    assert!(shown.starts_with("5 requests in "), "{shown}");
    let shown = ask(&stage, "hist", &["--once"]).await;
    assert!(shown.contains("| hits            2 "), "{shown}");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    stage.get("/late").await;
    // Records that a filter removes also move the end.
    let count = async |arguments: &[&str]| {
        let arguments = [&["--json", "--seconds", "1"], arguments].concat();
        let value: Value =
            serde_json::from_str(&ask(&stage, "top", &arguments).await).expect("JSON");
        value["all"]["requests"].as_u64()
    };
    eventually("the late one alone", async || count(&[]).await == Some(1)).await;
    assert_eq!(count(&["-q", "resp.status == 404 and req.url ~ gone"]).await, Some(0));
    let json = ask(&stage, "hist", &["--json", "--seconds", "1"]).await;
    let value: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&value["hits"]["count"], &value["others"]["count"]), (&0.into(), &1.into()));
}

#[tokio::test]
async fn hist_counts_hits_and_others() {
    let stage = visited().await;
    let shown = ask(&stage, "hist", &["--once", "--seconds", "0"]).await;
    assert!(shown.contains("| hits            2  p50 "), "{shown}");
    assert!(shown.contains("# others          3  p50 "), "{shown}");
    assert!(shown.contains("1us       10us      100us     1ms"), "{shown}");
    let json = ask(&stage, "hist", &["--json", "--seconds", "0", "--ttfb"]).await;
    let value: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&value["hits"]["count"], &value["others"]["count"]), (&2.into(), &3.into()));
    assert!(value["others"]["p50_us"].as_u64() > value["hits"]["p50_us"].as_u64(), "{json}");
}

#[tokio::test]
async fn stat_has_names_that_stay() {
    let stage = visited().await;
    let value: Value = serde_json::from_str(&ask(&stage, "stat", &["--json"]).await).expect("JSON");
    assert_eq!((&value["requests_total"], &value["hits_total"]), (&5.into(), &2.into()));
    assert!(value["uptime_seconds"].is_u64() && value["limit_hits"]["ranges"].is_u64());
    let plain = ask(&stage, "stat", &["--once"]).await;
    let line = plain.lines().find(|line| line.starts_with("misses_total ")).expect("a line");
    assert_eq!(line.split_whitespace().last(), Some("3"));
}

#[tokio::test]
async fn without_a_daemon_the_tools_say_what_to_do() {
    for verb in ["log", "top", "hist"] {
        let output = run(&[verb, "--once", "--admin-socket", "/nonexistent/admin.sock"]).await;
        assert!(!output.status.success());
        let said = text(&output.stderr);
        assert!(said.contains("no running daemon answers at /nonexistent/admin.sock"), "{said}");
        // Daemons of other tests may answer, too.
        assert!(said.contains("= help: ") && said.contains("--admin-socket"), "{said}");
        assert!(said.contains("larder serve") && said.contains("--admin-socket PATH"), "{said}");
    }
    let output = run(&["log", "--once", "--log-ring", "/nonexistent"]).await;
    assert!(text(&output.stderr).contains("no log ring in /nonexistent"));
}

/// A log file of this test.
struct LogFile(PathBuf);

impl LogFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("larder-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("written");
        Self(path)
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

fn access_line(client: &str, clock: &str, verdict: &str) -> String {
    format!(
        "{client} - - [22/Nov/2026:{clock} +0000] \"GET /page HTTP/1.1\" 200 5 \"-\" \"ua\" \
         {verdict}\n"
    )
}

#[tokio::test]
async fn logstat_answers_how_many_were_there_at_once() {
    let old: String = [
        access_line("192.0.2.1", "10:00:00", "MISS"),
        access_line("192.0.2.2", "10:00:00", "HIT"),
        access_line("192.0.2.1", "10:04:59", "HIT"),
    ]
    .concat();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(old.as_bytes()).expect("packed");
    let old = LogFile::new("access.log.1.gz", &packed.finish().expect("packed"));
    let new = [access_line("192.0.2.1", "12:00:00", "HIT"), "no line\n".to_owned()].concat();
    let new = LogFile::new("access.log", new.as_bytes());
    let (old, new) = (old.0.display().to_string(), new.0.display().to_string());
    // The newer one first: they are sorted.
    let output = run(&["logstat", &new, &old]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let has = |name: &str, value: &str| {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line.contains(value), "{name}: {shown}");
    };
    has("requests", " 4");
    has("users", " 2");
    has("sessions", " 3  (30 min apart)");
    has("  most at once", " 2  within 5 min from 2026-11-22 10:00:00");
    has("  per second, peak", " 2  at 2026-11-22 10:00:00");
    has("hit ratio", "75.0 %");
    has("unreadable lines", " 1");
    has("2026-11-22", " 75.0 %");
    let output = run(&["logstat", "--json", "--gap", "200", &old, &new]).await;
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value["all"]["sessions"], &value["all"]["users"]), (&2.into(), &2.into()));
    assert_eq!(value["days"]["2026-11-22"]["users_at_once"], 2);
    let output = run(&["logstat", "/nonexistent"]).await;
    assert!(text(&output.stderr).contains("/nonexistent: No such file"));
}

#[tokio::test]
async fn metrics_have_rows_for_sites_servers_and_times() {
    let stage = visited().await;
    let sample = async |name: &str, label: &str| {
        stage.daemon.metric(name, label).await.expect("metrics") as u64
    };
    // These are handed over once a second.
    eventually("the sites' rows", async || {
        sample("larder_site_requests_total", "site=\"*\"").await == 5
    })
    .await;
    assert_eq!(sample("larder_site_requests_total", "cache=\"hit\"").await, 2);
    assert_eq!(sample("larder_site_requests_total", "cache=\"miss\"").await, 3);
    assert_eq!(sample("larder_site_errors_total", "").await, 0);
    assert_eq!(sample("larder_site_bytes_out_total", "").await, 4 * 3 + 3);
    assert_eq!(sample("larder_request_seconds_count", "cache=\"miss\"").await, 3);
    let infinite = sample("larder_request_seconds_bucket", "cache=\"hit\",le=\"+Inf\"").await;
    assert_eq!(infinite, 2);
    let server = format!("origin=\"app\",server=\"{}\"", stage.origin.addr());
    assert_eq!(sample("larder_server_requests_total", &server).await, 3);
    assert_eq!(sample("larder_server_failures_total", &server).await, 0);
    assert_eq!(sample("larder_server_up", &server).await, 1);
    assert_eq!(sample("larder_build_info", "version=").await, 1);
}

/// The metrics of a daemon with a disk, a cluster and a neighbour.
async fn all_metrics() -> (Stage, Nats, String) {
    let (nats, folder) = (Nats::start(&[]).await, Folder::new());
    let top = format!(
        "[disk]\npath = \"{}\"\nsize = \"256MiB\"\n[cluster]\nservers = [\"{}\"]\nname = \"n1\"\n\
         [[neighbour]]\norigin = \"http://127.0.0.1:1\"\ndialect = \"xkey\"\n",
        folder.path().display(),
        nats.url()
    );
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::cacheable("page"));
    stage.get("/page").await;
    let metrics = stage.daemon.metrics().await.expect("metrics");
    (stage, nats, metrics)
}

/// The metrics in an expression that are not among `metrics`, and the number of all.
fn unknown(expression: &str, metrics: &str) -> (Vec<String>, usize) {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let starts = expression.match_indices("larder_");
    let names: Vec<String> =
        starts.map(|(at, _)| expression[at..].chars().take_while(is_part).collect()).collect();
    let is_there = |name: &&String| {
        // There is a row for each certificate, and none here.
        *name == "larder_certificate_expires_seconds"
            || metrics.lines().any(|line| line.split([' ', '{']).next() == Some(name))
    };
    (names.iter().filter(|name| !is_there(name)).cloned().collect(), names.len())
}

fn document(name: &str) -> String {
    let file = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(file).expect(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn panels_and_alerts_ask_for_metrics_that_are_there() {
    let (_stage, _nats, metrics) = all_metrics().await;
    let dashboard: Value = serde_json::from_str(&document("grafana/larder.json")).expect("JSON");
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            let (missing, named) = unknown(expression, &metrics);
            assert_eq!(missing, [""; 0], "{}", panel["title"]);
            asked += named;
        }
    }
    assert!(asked > 20);
    let rules = document("prometheus/larder-alerts.yml");
    let (missing, named) = unknown(&rules, &metrics);
    assert_eq!(missing, [""; 0]);
    assert!(named > 25, "{named}");
    let tests = document("prometheus/larder-alerts-test.yml");
    assert_eq!(unknown(&tests, &metrics).0, [""; 0]);
    let mut alerts = rules.split("- alert: ").skip(1);
    assert!(alerts.clone().count() >= 10);
    let bare = alerts.find(|rule| !rule.contains("          do: \""));
    assert_eq!(bare, None, "each says what to do");
    assert_eq!(unknown("sum(larder_none{})", &metrics), (vec!["larder_none".to_owned()], 1));
}

#[tokio::test]
async fn a_fetch_behind_a_stale_answer_counts_as_no_request() {
    let folder = Folder::new();
    let path = folder.path().join("access.log");
    let top = format!("access_log = \"{}\"", path.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=600\r\n";
    stage.origin.on("/page", Script::ok(fields, "page"));
    stage.get("/page").await;
    stage.get("/page").await;
    eventually("lines", async || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() == 2)
    })
    .await;
    let lines = async |arguments: &[&str]| ask(&stage, "log", arguments).await.lines().count();
    eventually("a background fetch", async || lines(&["--once", "-b"]).await == 2).await;
    assert_eq!(lines(&["--once"]).await, 2);
    assert_eq!(lines(&["--once", "-b", "-c"]).await, 3);
    assert_eq!(lines(&["--once", "-q", "kind == background"]).await, 1);
    assert_eq!(lines(&["--once", "-q", "parent > 0 and origin.status == 200"]).await, 1);
    let detail = ask(&stage, "log", &["--once", "--detail"]).await;
    assert!(detail.contains("-   caused by  request "), "{detail}");
    let top: Value = serde_json::from_str(&ask(&stage, "top", &["--json", "--seconds", "0"]).await)
        .expect("JSON");
    let rows = top["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[0]["requests"]), (1, &2.into()), "{top}");
}
