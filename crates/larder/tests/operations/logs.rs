//! Tests of logs: the access log in custom formats, beside `larder log` and Debian's nginx; the
//! error log; and both after a rotation.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use rustls::crypto::aws_lc_rs;
use support::folder::Folder;
use support::nginx::{self, Nginx};
use support::tls::{Authority, Kind, Served};
use support::{Setup, Stage, eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

/// The lines of a file; none if it is not there.
fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The lines of a file, once there are `count` of them.
async fn once_there(file: &Path, count: usize) -> Vec<String> {
    eventually("lines", async || lines(file).len() >= count).await;
    let found = lines(file);
    assert_eq!(found.len(), count, "{found:?}");
    found
}

fn send(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("a pid")).expect("not 0");
    kill_process(pid, signal).expect("it runs");
}

async fn reload(stage: &Stage) -> (bool, String) {
    let (done, said, why) = support::console::run(&stage.daemon, &["reload"]).await;
    (done, said + &why)
}

/// The key for an access log in `file` of the format `format`.
fn own_format(file: &Path, format: &str, more: &str) -> String {
    format!("access_log = {{ path = \"{}\", format = '{format}'{more} }}", file.display())
}

/// Adds the tests' pages to an origin.
fn furnish(origin: &ScriptedOrigin) {
    let fields = "Cache-Control: max-age=60\r\nX-Tag: \"o\" \\\r\nContent-Type: text/x\r\n";
    for path in ["/page", "/other"] {
        origin.on(path, Script::ok(fields, "a body"));
    }
    origin.on("/form", Script::ok("Cache-Control: no-store\r\n", "taken"));
    let gone =
        "HTTP/1.1 404 Not Found\r\nCache-Control: max-age=60\r\nContent-Length: 7\r\n\r\nnothing";
    origin.on("/gone", Script::respond(gone));
}

const NAMED: &str = "Host: Example.com:81\r\nConnection: close\r\n";

/// A request with the common fields.
fn request(line: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\n{NAMED}{fields}\r\n{body}").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_format_says_in_the_file_what_it_says_in_larder_log() {
    const FORMAT: &str = r#"%h %>s "%r" %b $status|%{X-Id}i|$http_x_id|$http_user_agent|
        %{X-Tag}o|$sent_http_x_tag|$upstream_http_x_tag|$cookie_sid|%{Varnish:hitmiss}x|
        $upstream_cache_status|$larder_site|%{Larder:served}x|$request_id"#;
    let format = FORMAT.replace("\n        ", "");
    let folder = Folder::new();
    let file = folder.path().join("access.log");
    let top = own_format(&file, &format, "");
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    furnish(&stage.origin);
    for (line, fields) in [
        ("GET /page?a=1", "X-Id: \"1\"\r\nX-Id: 2\r\nUser-Agent: caf\u{e9} \\\r\n"),
        ("GET /page?a=1", "Cookie: sid=secret\r\nAccept: */*\r\n"),
        ("HEAD /page?a=1", ""),
        ("POST /form", "Content-Length: 0\r\n"),
    ] {
        let method = line.split(' ').next().expect("a method");
        stage.exchange(method, &request(line, fields, "")).await;
    }
    let own = once_there(&file, 4).await;
    let (done, shown, why) =
        support::console::run(&stage.daemon, &["log", "--once", "-F", &format]).await;
    assert!(done, "{why}");
    let sorted = |mut lines: Vec<String>| {
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(own.clone()), sorted(shown.lines().map(str::to_owned).collect()));
    let first = own.iter().find(|line| line.contains("|\\x221\\x22, 2|")).expect("the first");
    for part in [
        r#"127.0.0.1 200 "GET http://Example.com:81/page?a=1 HTTP/1.1" 6 200|2|"#,
        r"|caf\xC3\xA9 \x5C|",
        r#"|\"o\" \\|\x22o\x22 \x5C|\x22o\x22 \x5C|-|miss|MISS|*|MISS|"#,
    ] {
        assert!(first.contains(part), "{part} in {first}");
    }
    // A cookie is masked.
    assert!(own.iter().any(|line| line.contains("|***|")), "{own:?}");
}

#[tokio::test]
async fn secrets_are_in_the_file_where_that_is_wanted_and_in_no_other_log() {
    let folder = Folder::new();
    let file = folder.path().join("access.log");
    let format = r#"{"sid":"$cookie_sid","set":"$sent_http_set_cookie","none":"$http_x_no"}"#;
    let top = own_format(&file, format, ", escape = \"json\", secrets = true");
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    stage.origin.on("/page", Script::ok("Set-Cookie: b=\"2\"; Path=/\r\n", "page"));
    let asks = "Cookie: sid=secret\r\nAuthorization: Bearer token\r\n";
    stage.ask("GET", "/page", asks).await;
    let line = once_there(&file, 1).await.remove(0);
    let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let expected = serde_json::json!({ "sid": "secret", "set": "b=\"2\"; Path=/", "none": "" });
    assert_eq!(read, expected);
    // Fields of other heads, and other fields, are not logged for it.
    let arguments = ["log", "--once", "--json"];
    let (_, shown, _) = support::console::run(&stage.daemon, &arguments).await;
    let record: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(record["req"]["fields"], serde_json::json!([["Cookie", "sid=secret"]]));
    assert_eq!((record.get("bereq"), record.get("beresp")), (None, None));
}

/// nginx's lines for a log in `format`, beside its other files.
fn own_log(folder: &Folder, format: &str) -> String {
    let at = folder.path().display();
    format!("log_format own '{format}';\naccess_log {at}/nginx.log own;")
}

/// Sends `requests` to Larder and to nginx, which log in `format`; returns the lines of both.
async fn both(format: &str, requests: &[Vec<u8>]) -> Option<[Vec<String>; 2]> {
    if !nginx::is_here() {
        return None;
    }
    let folder = Folder::new();
    let file = folder.path().join("access.log");
    let top = own_format(&file, format, ", secrets = true");
    let stage = Setup { top: &top, one_core: true, ..Setup::default() }.start().await;
    furnish(&stage.origin);
    let (at, origin) = (folder.path().display(), stage.origin.addr());
    let log = own_log(&folder, format);
    let http = format!("{log}\nproxy_cache_path {at}/cache keys_zone=pages:1m;");
    let server = format!(
        "location / {{ proxy_pass http://{origin};\nproxy_cache pages; \
         proxy_cache_key $host$request_uri; }}"
    );
    let nginx = Nginx::start(folder.path(), &http, ("", &server)).await;
    for bytes in requests {
        for address in [stage.daemon.addr(), nginx.address] {
            let mut raw = RawClient::connect(address).await.expect("a connection");
            raw.send(bytes, WriteSplit::Whole).await.expect("it is taken");
            let method = bytes.split(|byte| *byte == b' ').next().unwrap_or_default();
            whole(raw.reply(&String::from_utf8_lossy(method)).await, "an answer");
        }
    }
    let ours = once_there(&file, requests.len()).await;
    let theirs = once_there(&folder.path().join("nginx.log"), requests.len()).await;
    Some([ours, theirs])
}

#[tokio::test]
async fn lines_of_variables_are_those_of_nginx() {
    let format = "$remote_addr|$remote_user|$request|$request_method|$request_uri|$uri|$args|\
                  $is_args|$arg_a|$status|$body_bytes_sent|$request_length|$server_protocol|\
                  $scheme|$https|$ssl_protocol|$ssl_cipher|$host|$http_user_agent|$http_x_id|\
                  $http_cookie|$cookie_sid|\
                  $content_type|$content_length|$sent_http_x_tag|$sent_http_content_type|\
                  $upstream_http_x_tag|$upstream_status|$upstream_addr|$request_completion";
    let requests = [
        request("GET /page?a=1&b=\"2\"", "X-Id: \"1\" \\ \u{e9}\t2\r\nUser-Agent: a/1\r\n", ""),
        request("GET /page", "Authorization: Basic dXNlcjpwYXNz\r\n", ""),
        request("HEAD /other", "Cookie: a=1; sid=secret; b=2\r\n", ""),
        request("POST /form?A=x", "Content-Type: text/y\r\nContent-Length: 3\r\n", "abc"),
        request("GET /gone", "", ""),
    ];
    let Some([ours, theirs]) = both(format, &requests).await else { return };
    assert_eq!(ours, theirs);
}

#[tokio::test]
async fn tls_parameters_are_logged_in_nginxs_terms() {
    const FORMAT: &str = "$https|$scheme|$ssl_protocol|$ssl_cipher|$status";
    if !nginx::is_here() {
        return;
    }
    let folder = Folder::new();
    let authority = Authority::new();
    authority.sign("rsa", &["larder.test"], Kind::Rsa);
    authority.sign("ec", &["larder.test"], Kind::Elliptic);
    let path = |file: &str| authority.path(file);
    let files = [path("rsa.crt"), path("ec.crt"), path("rsa.key"), path("ec.key")];
    let [rsa, ec, rsa_key, ec_key] = files;
    let file = folder.path().join("access.log");
    // Apache's names mean the same.
    let format = format!("{FORMAT} %{{SSL_PROTOCOL}}x %{{SSL_CIPHER}}x");
    let served = Served::start(&format!(
        "{}\n[[site]]\nhost = \"larder.test\"\norigin = \"app\"\n\
         tls = {{ cert = [\"{rsa}\", \"{ec}\"], key = [\"{rsa_key}\", \"{ec_key}\"] }}\n",
        own_format(&file, &format, ""),
    ))
    .await;
    furnish(&served.origin);
    let origin = served.origin.addr();
    let server = format!(
        "ssl_protocols TLSv1.2 TLSv1.3;\nssl_certificate {rsa};\n\
         ssl_certificate_key {rsa_key};\n\
         ssl_certificate {ec};\nssl_certificate_key {ec_key};\n\
         location / {{ proxy_pass http://{origin}; }}"
    );
    let http = own_log(&folder, FORMAT);
    let nginx = Nginx::start(folder.path(), &http, ("ssl", &server)).await;
    let mut clients: Vec<_> = aws_lc_rs::ALL_CIPHER_SUITES
        .iter()
        .map(|suite| authority.client_speaking(*suite))
        .collect();
    // A resumed session has a cipher suite, too.
    clients.push(clients[0].clone());
    for client in &clients {
        for address in [served.addr(), nginx.address] {
            client.get(address, "larder.test", "/page").await;
            let mut connection = client.connect(address, "larder.test").await;
            connection.send(b"NONSENSE\r\n\r\n").await.expect("sent");
            assert_eq!(whole(connection.reply("GET").await, "nonsense").status, 400);
        }
    }
    let count = 2 * clients.len();
    let ours = once_there(&file, count).await;
    let mut theirs = once_there(&folder.path().join("nginx.log"), count).await;
    let each = ours.iter().map(|line| line.split_once(' ').expect("both"));
    // Each core logs its own requests.
    let mut lines: Vec<_> = each.clone().map(|(line, _)| line.to_owned()).collect();
    lines.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(lines, theirs);
    for (line, apache) in each {
        let told: Vec<_> = line.split('|').collect();
        assert_eq!(told[2..4], apache.split(' ').collect::<Vec<_>>());
    }
    assert!(ours.iter().any(|line| line.contains("|TLSv1.3|")), "{ours:?}");
    assert!(ours.iter().any(|line| line.contains("|TLSv1.2|")), "{ours:?}");
    let requests = [request("GET /page", "", ""), b"NONSENSE\r\n\r\n".to_vec()];
    let [ours, theirs] = both(FORMAT, &requests).await.expect("an nginx");
    assert_eq!(ours, theirs, "without TLS");
}

#[tokio::test]
async fn cache_results_are_logged_in_nginxs_terms() {
    let format = "$request $status $body_bytes_sent $upstream_cache_status $upstream_status";
    let requests = ["GET /page", "GET /page", "HEAD /page", "GET /other", "GET /gone", "GET /gone"]
        .map(|line| request(line, "", ""));
    let Some([ours, theirs]) = both(format, &requests).await else { return };
    // nginx fetches an error again unless a setting or, as here, the origin gives it a lifetime.
    assert_eq!(ours, theirs);
}

#[tokio::test]
async fn times_have_the_form_that_nginx_gives_them() {
    let format = "$time_local|$time_iso8601|$msec|$request_time|$upstream_response_time|\
                  $upstream_header_time|$bytes_sent";
    let requests = [request("GET /page", "", ""), request("GET /page", "", "")];
    let Some([ours, theirs]) = both(format, &requests).await else { return };
    let form = |lines: &[String]| -> Vec<String> {
        // The length of a head differs between servers, and the month may change.
        let line = |line: &String| {
            let all = line.rsplit_once('|').map_or("", |(all, _)| all);
            let (day, rest) = all.split_once('/').expect("a date");
            let (_, rest) = rest.split_once('/').expect("a month");
            let mut form = String::new();
            for c in format!("{day}/Mon/{rest}").chars() {
                match c {
                    c if !c.is_ascii_digit() => form.push(c),
                    _ if form.ends_with('9') => {}
                    _ => form.push('9'),
                }
            }
            form
        };
        lines.iter().map(line).collect()
    };
    assert_eq!(form(&ours), form(&theirs));
}

/// A daemon with both logs in files of `folder`.
async fn logged(folder: &Folder, level: &str) -> Stage {
    let top = tops(folder, level);
    Setup { top: &top, ..Setup::default() }.start().await
}

fn tops(folder: &Folder, level: &str) -> String {
    let folder = folder.path().display();
    format!(
        "access_log = \"{folder}/access.log\"\n\
         error_log = {{ path = \"{folder}/error.log\", level = \"{level}\" }}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_that_were_moved_away_are_opened_anew_by_a_reload() {
    let folder = Folder::new();
    let stage = logged(&folder, "info").await;
    stage.origin.on("/page", Script::cacheable("page"));
    let (access, error) = (folder.path().join("access.log"), folder.path().join("error.log"));
    stage.get("/page").await;
    once_there(&access, 1).await;
    let good = std::fs::read_to_string(stage.daemon.config_file()).expect("a file");
    for (round, is_good) in [true, false, true].into_iter().enumerate() {
        for file in [&access, &error] {
            std::fs::rename(file, file.with_extension(round.to_string())).expect("moved");
        }
        let config = if is_good { good.clone() } else { format!("{good}\nnothing = 1\n") };
        std::fs::write(stage.daemon.config_file(), config).expect("written");
        assert_eq!(reload(&stage).await.0, is_good);
        let word = if is_good { "configuration reloaded" } else { "running configuration stays" };
        let is_told = async || lines(&error).iter().any(|line| line.contains(word));
        eventually(word, is_told).await;
        eventually("the file", async || access.exists()).await;
        stage.get("/page").await;
        once_there(&access, 1).await;
        for file in [&access, &error] {
            let mode = std::fs::metadata(file).expect("a file").permissions().mode() & 0o777;
            assert_eq!(mode & 0o137, 0, "{mode:o}: nobody else reads it");
        }
    }
    // A signal alone does it, too.
    std::fs::rename(&error, error.with_extension("last")).expect("moved");
    send(&stage.daemon, Signal::USR1);
    eventually("the file", async || error.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_log_has_levels_and_standard_error_only_the_start() {
    let folder = Folder::new();
    let stage = logged(&folder, "info").await;
    let error = folder.path().join("error.log");
    let has = |word: &str| lines(&error).iter().any(|line| line.contains(word));
    eventually("the start", async || has("] [info] larder: memory ")).await;
    stage.daemon.assert_logged("larder: memory ").await;
    assert!(reload(&stage).await.0);
    eventually("the reload", async || has("] [notice] larder: configuration reloaded")).await;
    // A reload changes the level: a successful one is no error, a failed one is.
    let quiet = std::fs::read_to_string(stage.daemon.config_file()).expect("a file");
    let quiet = quiet.replace("level = \"info\"", "level = \"error\"");
    std::fs::write(stage.daemon.config_file(), &quiet).expect("written");
    assert!(reload(&stage).await.0);
    assert!(reload(&stage).await.0);
    std::fs::write(stage.daemon.config_file(), quiet + "\nnothing = 1\n").expect("written");
    let (done, why) = reload(&stage).await;
    assert!(!done && why.contains("nothing"), "{why}");
    eventually("the refusal", async || has("] [error] larder: the running configuration")).await;
    let all = lines(&error);
    let reloads = all.iter().filter(|line| line.contains("larder: configuration reloaded")).count();
    assert_eq!(reloads, 1, "{all:?}");
    // Every line of a message has the head.
    assert!(all.iter().all(|line| line.starts_with('[') && line.contains("+0000] [")), "{all:?}");
    let said = stage.daemon.log();
    assert!(!said.contains("reloaded") && !said.contains("configuration stays"), "{said}");
}

#[tokio::test]
async fn a_failed_start_is_logged_in_both_places() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let top = tops(&folder, "info");
    let own = folder.path().display().to_string();
    let failed = |top: String| {
        let file = Setup { top: &top, ..Setup::default() }.file(&origin);
        Daemon::start(&file).expect_err("it cannot start").to_string()
    };
    let why = failed(top.replace(&format!("{own}/access.log"), "/no/where/a"));
    assert!(why.contains("larder: access log: No such file"), "{why}");
    let all = lines(&folder.path().join("error.log"));
    let last = all.last().expect("a line");
    assert!(last.contains("] [error] larder: access log: No such file"), "{all:?}");
    let why = failed(top.replace(&format!("{own}/error.log"), "/no/where/e"));
    assert!(why.contains("larder: error log: /no/where/e: No such file"), "{why}");
}

const CHATTY: &str = r#"vcl 4.1;
import std;
backend b { .host = "HOST"; .port = "PORT"; }
sub vcl_recv {
  std.syslog(4, "the same again");
  return (synth(200));
}
"#;

#[tokio::test]
async fn equal_lines_are_written_or_counted() {
    const REQUESTS: usize = 60;
    let folder = Folder::new();
    let vcl = CHATTY.replace("HOST", "127.0.0.1").replace("PORT", "1");
    folder.file("chatty.vcl", vcl);
    let program = folder.path().join("chatty.vcl");
    let top = format!("{}vcl = \"{}\"\n", tops(&folder, "debug"), program.display());
    let limits = "error_log_repeats = 3";
    let setup = Setup { top: &top, limits, ..Setup::default() };
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let config = setup.file(&origin).replace("origin = \"app\"\n", "");
    let stage = Stage { origin, daemon: Daemon::start(&config).expect("larder starts") };
    let mut raw = stage.connect().await;
    let one = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    raw.send(&one.repeat(REQUESTS), WriteSplit::Whole).await.expect("taken");
    for _ in 0..REQUESTS {
        whole(raw.reply("GET").await, "an answer");
    }
    let error = folder.path().join("error.log");
    let counts = || {
        let all = lines(&error);
        let same: Vec<_> = all.iter().filter(|line| line.contains("the same again")).collect();
        let left = same.iter().filter_map(|line| line.split_once("suppressed "));
        let left: Vec<usize> = left
            .map(|(_, rest)| rest.split(' ').next().expect("a number").parse().expect("a number"))
            .collect();
        (same.len() - left.len(), left.iter().sum::<usize>(), all)
    };
    let is_whole = async || {
        let (written, left, _) = counts();
        written + left == REQUESTS
    };
    eventually("every line or its count", is_whole).await;
    let (_, left, all) = counts();
    assert_eq!(stage.limit_hits("error_log_repeats").await, left as u64);
    assert!(
        all.iter().any(|line| line.contains("] [warn] larder: VCL: the same again")),
        "{all:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_syslog_daemon_has_the_levels_too() {
    let folder = Folder::new();
    let path = folder.path().join("log.sock");
    let syslog = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    syslog.set_read_timeout(Some(support::PATIENCE)).expect("a timeout");
    let top = format!("error_log = \"syslog:{}\"\n", path.display());
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let pid = stage.daemon.pid();
    assert!(reload(&stage).await.0);
    let expected = format!("<{}>larder[{pid}]: configuration reloaded", 23 * 8 + 5);
    let found = tokio::task::spawn_blocking(move || {
        let mut buffer = [0; 8192];
        loop {
            let length = syslog.recv(&mut buffer).expect("a message");
            if buffer[..length] == *expected.as_bytes() {
                return true;
            }
        }
    });
    assert!(found.await.expect("no panic"));
}

#[tokio::test]
async fn only_the_journal_gets_levels_on_standard_error() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("an origin");
    folder.file("larder.toml", Setup::default().file(&origin));
    for is_journals in [true, false] {
        let path = folder.path().join(format!("stderr-{is_journals}"));
        let stderr = std::fs::File::create(&path).expect("a file");
        let of = stderr.metadata().expect("it is open");
        let inode = if is_journals { of.ino() } else { of.ino() + 1 };
        let mut command = Command::new(testkit::larder::binary().expect("a binary"));
        command.arg("serve").arg("--config").arg(folder.path().join("larder.toml"));
        command.arg("--admin-socket").arg(folder.path().join("admin.sock"));
        command.env("JOURNAL_STREAM", format!("{}:{inode}", of.dev())).stderr(stderr);
        let mut child = command.spawn().expect("it starts");
        eventually("a start", async || {
            lines(&path).iter().any(|line| line.contains("larder: memory "))
        })
        .await;
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("not 0");
        kill_process(pid, Signal::TERM).expect("it runs");
        let ended = tokio::task::spawn_blocking(move || child.wait()).await.expect("no panic");
        assert!(ended.expect("it ends").success());
        let all = lines(&path);
        let head = if is_journals { "<6>larder: " } else { "larder: " };
        for text in ["listening on 127.0.0.1:", "memory ", "finishing requests under way"] {
            let line = format!("{head}{text}");
            assert!(all.iter().any(|own| own.starts_with(&line)), "{line} in {all:?}");
        }
    }
}
