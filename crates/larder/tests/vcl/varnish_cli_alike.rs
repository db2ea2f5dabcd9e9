//! Tests of the CLI's replies, line by line, as varnishd 7.1 gives them; if varnishd is installed,
//! it is tested, too.

use crate::support;

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use regex::Regex;
use support::PATIENCE;
use support::cli::{Cli, SECRET, auth};
use support::folder::Folder;
use tokio::net::TcpListener;
use tokio::time::timeout;

const UNKNOWN: &str = "Unknown request\\.\nType 'help' for more info\\.\n";
const SYNTAX: &str = "Unknown request\\.\nType 'help' for more info\\.\nSyntax Error: ";
const PONG: &str = r"PONG \d{10} 1\.0";
const QUOTE: &str = "Missing '\"'\n";
const BACKSLASH: &str = "Invalid backslash sequence\n";
const TOO_FEW: &str = "Too few parameters\n";
const TOO_MANY: &str = "Too many parameters\n";
const HTTP_DATE: &str = r"(-|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT)";

/// Commands with equal replies: the status, and the pattern of the whole text.
fn alike() -> Vec<(&'static str, u16, String)> {
    let one = |line, status, text: &str| (line, status, text.to_owned());
    let json =
        |words: &str, rest: &str| format!(r"\[ \d, \[{words}\], \d{{10}}\.\d{{3}},{rest}\]\n");
    let columns = |state: &str| format!("{state}( +{HTTP_DATE})?\n");
    vec![
        // Answers.
        one("ping", 200, PONG),
        one("  ping\t", 200, PONG),
        one("ping\r", 200, PONG),
        one("ping 12", 200, PONG),
        one("ping abc", 200, PONG),
        one("ping -x", 200, PONG),
        one("ping\u{b}x", 200, PONG),
        one("ping 1 2", 105, TOO_MANY),
        one("ping # x", 105, TOO_MANY),
        one("ping \"1\"2", 105, TOO_MANY),
        one("\"ping\"", 200, PONG),
        one("pi\\x6eg", 200, PONG),
        one("\"pi\\x6eg\"", 200, PONG),
        one("\"pi\\156g\"", 200, PONG),
        one("ping \"\\18\"", 200, PONG),
        one("ping \"a b\"", 200, PONG),
        one("ping a\"b", 100, &format!("{SYNTAX}Invalid '\"'\n")),
        one("ping \"\\\"\\\\\\n\\r\\t\"", 200, PONG),
        one("\"ping", 100, &format!("{SYNTAX}{QUOTE}")),
        one("ping \"", 100, &format!("{SYNTAX}{QUOTE}")),
        one("ping \"a\\\"", 100, &format!("{SYNTAX}{QUOTE}")),
        one("ping\\", 100, &format!("{SYNTAX}{BACKSLASH}")),
        one("ping \"\\q\"", 100, &format!("{SYNTAX}{BACKSLASH}")),
        one("ping \"\\x1\"", 100, &format!("{SYNTAX}{BACKSLASH}")),
        one("ping \\xg0", 100, &format!("{SYNTAX}{BACKSLASH}")),
        one("ping \"\\9\"", 100, &format!("{SYNTAX}{BACKSLASH}")),
        // Here-documents.
        one("ping << E\nE", 200, PONG),
        one("ping << E\na\n\"b\nE", 200, PONG),
        one("ping \"<<\" E\na\nE", 200, PONG),
        one("ping <<", 200, PONG),
        one("ping << A << B\nx\nB", 105, TOO_MANY),
        one("<< E\nE", 101, UNKNOWN),
        one("ban req.url == << E\nx\ny\nE", 200, ".*"),
        // Names.
        one("nothing", 101, UNKNOWN),
        one("# ping", 101, UNKNOWN),
        one("PING", 101, &format!("{UNKNOWN}all commands are in lower-case\\.\n")),
        one("Status", 101, &format!("{UNKNOWN}all commands are in lower-case\\.\n")),
        one("debug.health", 101, UNKNOWN),
        // Help.
        one("help ping", 200, "ping \\[-j\\] \\[<timestamp>\\]\n.+\n"),
        one("\"help\" banner", 200, "banner\n.+\n"),
        one("help ban", 200, "ban <field> .*\n.+\n"),
        one("help nothing", 101, UNKNOWN),
        one("help -x", 101, "Unknown flag\n"),
        one("help ban ban", 105, TOO_MANY),
        one("help", 200, "(auth <response>\n)(.*\n)+"),
        one("help -j", 200, &json("\"help\", \"-j\"", "\n(.*\n)+")),
        // Bans.
        one("ban", 104, TOO_FEW),
        one("ban req.url", 104, TOO_FEW),
        one("ban req.url ~", 104, TOO_FEW),
        one("ban req.url ~ \"\"", 104, TOO_FEW),
        one("ban req.url ~ .", 200, ".*"),
        one("ban req.url == /news", 200, ".*"),
        one("ban \"req.url == /news\"", 200, ".*"),
        one("ban \"req.url ~ /x && obj.status == 200\"", 200, ".*"),
        one("ban req.url ~ ^/x && obj.status == 200", 200, ".*"),
        one("ban req.url ~ x \"&&\" req.url ~ y", 200, ".*"),
        one("ban req.http.host == example.org && obj.age > 60s", 200, ".*"),
        one("ban req.url ~ \\\\.png$", 200, ".*"),
        one("ban obj.http.X-Foo !~ a", 200, ".*"),
        one("ban obj.ttl > 1h", 200, ".*"),
        one("ban << E\nreq.url ~ y\nE", 200, ".*"),
        one("ban req.url ~ (", 106, "(?s).+"),
        one("ban foo ~ x", 106, ".*\"?`?foo.*"),
        one("ban req.url > x", 106, "expected .*"),
        one("ban req.url ~ x || req.url ~ y", 106, "(?s).*&&.*"),
        one("ban req.url ~ x &&", 106, ".+"),
        one("ban req.url ~ a b", 106, ".+"),
        one("ban obj.age ~ 1h", 106, "expected .*"),
        one("ban obj.age > 1x", 106, "expected .*duration.*1x.*"),
        one("ban req.url == a && && == b", 106, ".*&&.*"),
        // One of them contains a line end, unless it is over and gone.
        one("ban.list", 200, r"Present bans:\n(\d+\.\d{6} +\d+ [C-]  .*\n([^\d\n].*\n)?\n?)+"),
        one("ban.list -j", 200, &json("\"ban.list\", \"-j\"", "\n(.*\n)+")),
        one("ban.list x", 105, TOO_MANY),
        one("ban.list -x", 105, TOO_MANY),
        one("ban.list -j x", 105, TOO_MANY),
        // The rest.
        one("status", 200, "Child in state running"),
        one("status -j", 200, &json("\"status\", \"-j\"", " \"running\"\n")),
        one("status x", 105, TOO_MANY),
        one("start", 300, "Child in state running"),
        one("start x", 105, TOO_MANY),
        one("start -j", 102, "JSON unimplemented\n"),
        one("ping -j", 200, &json("\"ping\", \"-j\"", " \"PONG\"\n\n")),
        one("ping -j 12", 200, &json("\"ping\", \"-j\", \"12\"", " \"PONG\"\n\n")),
        one("ping -j 1 2", 105, TOO_MANY),
        one(
            "banner",
            200,
            "(?s)-+\nVarnish Cache CLI 1\\.0\n-+\n.*Type 'quit' to close CLI session\\.\n",
        ),
        one("banner x", 105, TOO_MANY),
        one("banner -j", 102, "JSON unimplemented\n"),
        one("pid", 200, r"Master: +\d+\nWorker: +\d+\n"),
        one("pid -j", 200, &json("\"pid\", \"-j\"", r#"\s+\{"master": \d+, "worker": \d+\}\n"#)),
        one("panic.show", 300, "Child has not panicked or panic has been cleared"),
        one("panic.show -j", 300, "Child has not panicked or panic has been cleared"),
        one("panic.show x", 105, TOO_MANY),
        one("panic.clear", 300, "No panic to clear"),
        one("panic.clear -z", 200, ""),
        one("panic.clear x", 106, "Unknown parameter \"x\"\\."),
        one("storage.list", 200, "Storage devices:\n(\tstorage\\.\\w+ = malloc\n)+"),
        one("storage.list -j", 200, &json("\"storage.list\", \"-j\"", "\n(.*\n)+")),
        one("storage.list x", 105, TOO_MANY),
        one("vcl.list", 200, r"active   auto    warm         0    \w+\n"),
        one("vcl.list -j", 200, &json("\"vcl.list\", \"-j\"", "\n(.*\n)+")),
        one("vcl.list x", 105, TOO_MANY),
        one(
            "backend.list",
            200,
            &format!(
                "Backend name +Admin +Probe +Health +Last change\n{}",
                columns(r"\S+\.\S+ +healthy +0/0 +healthy +-?")
            ),
        ),
        one("backend.list -p", 200, "Backend name(?s).*"),
        one("backend.list *", 200, "Backend name.*\n.*healthy.*\n"),
        one("backend.list nothing", 200, "Backend name .*\n"),
        one("backend.list a b", 106, "Too many arguments"),
        one("backend.list -x", 106, "Invalid flag x"),
        one("backend.list -j", 200, &json("\"backend.list\", \"-j\"", "\n(.*\n)+")),
        one("backend.set_health", 104, TOO_FEW),
        one("backend.set_health default", 104, TOO_FEW),
        one("backend.set_health a b c", 105, TOO_MANY),
        one("backend.set_health * weird", 106, "Invalid state weird"),
        one("backend.set_health nothing sick", 106, "No Backends matches"),
        one("backend.set_health * sick", 200, ""),
        one("backend.list *", 200, "Backend name.*\n.* sick +0/0 .*\n"),
        one("backend.set_health * auto", 200, ""),
        one("param.show", 200, "(\\S+ +.+\n)+"),
        one("param.show changed", 200, "(?s).*"),
        one("param.show -l", 200, "(?s).*\n        Value is: .*"),
        one("param.show -j", 200, &json("\"param.show\", \"-j\"", "(?s).*")),
        one("param.show nothing", 106, "Unknown parameter \"nothing\"\\."),
        one("param.show -x", 106, "Unknown parameter \"-x\"\\."),
        one("param.show -j -l", 106, "-l not permitted with param\\.show -j"),
        one("param.show a b", 105, "Too many parameters\n?"),
    ]
}

/// Commands with different replies: varnishd's status, and ours.
const OTHERWISE: &[(&str, u16, u16)] = &[
    // varnishd's manager hands a quoted argument to its child without the quotes.
    ("ban req.url ~ \"a b\"", 106, 200),
    // Stored responses lack the requests' other fields.
    ("ban req.http.cookie ~ x", 200, 106),
    // It is no byte.
    ("ping \"\\400\"", 200, 100),
    // Commands of older versions, which plugins may still send.
    ("ban.url ^/x", 101, 200),
    ("purge.url ^/x", 101, 200),
    ("url.purge ^/x", 101, 200),
    ("purge req.url == /x", 101, 200),
    // Settings decide: there is no VCL.
    ("vcl.show", 200, 106),
    ("vcl.use boot", 200, 300),
];

/// Commands before authentication. A status other than 200 ends the connection.
const STRANGER: &[&[(&str, u16)]] = &[
    &[("ping", 200), ("help", 200), ("help ping", 200), ("banner", 101)],
    &[("status", 101)],
    &[("ban req.url ~ .", 101)],
    &[("ban << E", 101)],
    &[("\"x", 100)],
    &[("auth", 104)],
    &[("auth a b", 105)],
    &[("auth 00", 500)],
    &[("quit", 500)],
];

/// Wrong replies to clients without the secret.
async fn strangers_faults(connect: impl AsyncFn() -> (Cli, (u16, String))) -> Vec<String> {
    let letters = Regex::new(r"^[a-z]{32}\n\nAuthentication required\.\n$").expect("a pattern");
    let mut faults = Vec::new();
    for lines in STRANGER {
        let (mut cli, greeting) = connect().await;
        assert!(greeting.0 == 107 && letters.is_match(&greeting.1), "{greeting:?}");
        for (line, status) in *lines {
            let (own, text) = cli.ask(line).await;
            if own != *status {
                faults.push(format!("a stranger's {line:?}: {own} {text:?}"));
            }
        }
        assert!(cli.ends().await, "{lines:?}");
    }
    faults
}

/// Wrong replies.
async fn faults(mut cli: Cli, ours: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (line, status, text) in alike() {
        let (own, said) = cli.ask(line).await;
        let pattern = Regex::new(&format!(r"\A(?:{text})\z")).expect("a pattern");
        if own != status || !pattern.is_match(&said) {
            faults.push(format!("{line:?}: {own} {said:?}"));
        }
    }
    for (line, theirs, own) in OTHERWISE {
        let (status, text) = cli.ask(line).await;
        if status != if ours { *own } else { *theirs } {
            faults.push(format!("{line:?}: {status} {text:?}"));
        }
    }
    assert_eq!(cli.ask("quit").await, (500, "Closing CLI connection".to_owned()));
    assert!(cli.ends().await);
    faults
}

#[tokio::test]
async fn lines_are_answered_as_the_table_says() {
    let (stage, _folder) = support::cli::stage("").await;
    let port = stage.daemon.port("Varnish CLI").expect("the port");
    let mut all = strangers_faults(async || Cli::connect(port).await).await;
    all.extend(faults(Cli::authenticated(port).await, true).await);
    assert!(all.is_empty(), "{all:#?}");
}

/// A varnishd that connects to `master` for its commands, again and again.
struct Varnish {
    child: Child,
    _folder: Folder,
}

impl Varnish {
    fn start(master: SocketAddr) -> Option<Self> {
        let folder = Folder::new();
        folder.file("secret", SECRET);
        let vcl = "vcl 4.1;\nbackend default { .host = \"127.0.0.1\"; .port = \"9\"; }\n";
        folder.file("site.vcl", vcl);
        let at = |name: &str| folder.path().join(name);
        let started = Command::new("varnishd")
            .args(["-F", "-s", "malloc,10m", "-a", "127.0.0.1:0", "-M", &master.to_string()])
            .arg("-n")
            .arg(at("work"))
            .arg("-S")
            .arg(at("secret"))
            .arg("-f")
            .arg(at("site.vcl"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Some(Self { child: started.ok()?, _folder: folder })
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        // On a signal it ends its child, too. The id is that of a child not yet waited for.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        _ = self.child.wait();
    }
}

#[tokio::test]
async fn varnishd_answers_as_the_table_says() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let Some(_varnish) = Varnish::start(listener.local_addr().expect("bound")) else {
        return eprintln!("skipped: no varnishd");
    };
    let accept = async || {
        let accepted = timeout(PATIENCE, listener.accept()).await.expect("varnishd connects");
        Cli::over(accepted.expect("a connection").0).await
    };
    let mut all = strangers_faults(&accept).await;
    let (mut known, (_, greeting)) = accept().await;
    assert_eq!(known.ask(&auth(&greeting, SECRET)).await.0, 200);
    while known.ask("status").await.1 != "Child in state running" {
        support::pause(50).await;
    }
    all.extend(faults(known, false).await);
    assert!(all.is_empty(), "{all:#?}");
}
