//! Tests of `larder serve` with varnishd's flags, over real sockets: the line of Debian's defaults,
//! changes of programs at run time, refusals, the end.

use crate::support;

use std::process::{Command, Output};

use support::PATIENCE;
use support::cli::varnishadm;
use support::folder::Folder;
use support::serve::{Serve, vcl};
use support::tls::{Authority, Kind};
use testkit::larder::binary;
use testkit::origin::{Script, ScriptedOrigin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A program with a synthetic response.
fn says(word: &str) -> String {
    format!(
        "vcl 4.1; import std; backend none_here none; \
         sub vcl_recv {{ return (synth(200, \"{word}\")); }} \
         sub vcl_fini {{ std.log(\"{word} has ended\"); }}"
    )
}

#[tokio::test]
async fn the_line_of_debians_defaults_serves_pages_and_ends_cleanly() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.on("/page", Script::ok("Cache-Control: max-age=60\r\n", "a page"));
    let serve = Serve::start(&vcl(&origin, ""), &["-p", "default_ttl=10", "-i", "me"]);
    let first = serve.get("/page").await;
    assert!(first.starts_with("HTTP/1.1 200 ") && first.ends_with("a page"), "{first}");
    assert!(first.contains("X-Varnish: ") && !first.contains("Cache-Status"), "{first}");
    let numbers = |reply: &str| {
        let line = reply.lines().find(|line| line.starts_with("X-Varnish: ")).map(str::to_owned);
        line.expect("numbers").split(' ').count() - 1
    };
    assert_eq!(
        [numbers(&first), numbers(&serve.get("/page").await)],
        [1, 2],
        "the second is a hit"
    );
    let mut cli = serve.cli().await;
    let list = cli.ask("vcl.list").await.1;
    // One of the requests may still be ending.
    assert!(list.starts_with("active   auto    warm  ") && list.ends_with("    boot\n"), "{list}");
    let value = cli.ask("param.show default_ttl").await.1;
    assert!(value.contains("Value is: 10.000 [seconds]\n"), "{value}");
    let counted = [
        ("MAIN.cache_hit", 1),
        ("MAIN.cache_miss", 1),
        ("MAIN.n_object", 1),
        ("VBE.boot.default.req", 1),
    ];
    cli.counted(&counted).await;
    let pid = serve.folder.path().join("pid");
    let written = std::fs::read_to_string(&pid).expect("a file");
    assert_eq!(written.trim(), serve.child.id().to_string());
    assert!(serve.end().success());
    assert!(!pid.exists());
}

#[tokio::test]
async fn an_address_with_https_shows_the_certificates_of_the_file() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.on("/page", Script::ok("Cache-Control: max-age=60\r\n", "a page"));
    let authority = Authority::new();
    authority.sign("a", &["a.test"], Kind::Elliptic);
    let (cert, key) = (authority.path("a.crt"), authority.path("a.key"));
    let pair = format!("pem-file = {{\n  cert = \"{cert}\"\n  private-key = \"{key}\"\n}}\n");
    authority.put("tls.conf", &pair);
    let program = "import tls; sub vcl_deliver { set resp.http.X-Version = tls.version(); }";
    let file = authority.path("tls.conf");
    let mut serve = Serve::start(&vcl(&origin, program), &["-a", "127.0.0.1:0,https", "-A", &file]);
    let address = serve.secure();
    let reply = authority.client().get(address, "a.test", "/page").await;
    assert_eq!((reply.status, reply.text()), (200, "a page".into()));
    assert_eq!(reply.field("x-version").as_deref(), Some("TLSv1.3"));
    // The other address has no TLS.
    let plain = serve.get("/page").await;
    assert!(plain.starts_with("HTTP/1.1 200 ") && plain.ends_with("a page"), "{plain}");
}

#[tokio::test]
async fn backends_are_counted_while_their_program_is_warm() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let serve = Serve::start(&vcl(&origin, ""), &[]);
    let mut cli = serve.cli().await;
    let none = "backend x { .host = \\\"127.0.0.1\\\"; .port = \\\"9\\\"; }";
    assert_eq!(cli.ask(&format!("vcl.inline next \"vcl 4.1; {none}\" cold")).await.0, 200);
    // As in varnishd 7.1: the counters of a cold program's backends are hidden.
    for (state, seen) in [("cold", false), ("warm", true), ("cold", false)] {
        assert_eq!(cli.ask(&format!("vcl.state next {state}")).await.0, 200);
        cli.counted(&[("MAIN.n_backend", 2), ("VBE.boot.default.helddown", 0)]).await;
        let stats = cli.ask("stats.json").await.1;
        assert_eq!(stats.contains("\"VBE.next.x.req\""), seen, "{state}");
    }
}

#[tokio::test]
async fn requests_and_fetches_that_find_their_workspace_full_are_counted() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::ok("", "a page"));
    let doubled = |of: &str| {
        let once = format!("set {of}.http.x = {of}.http.x + {of}.http.x;");
        format!("set {of}.http.x = \"0123456789\"; {}", once.repeat(11))
    };
    let subs = format!(
        "sub vcl_recv {{ if (req.url == \"/client\") {{ {} }} return (pass); }}\n\
         sub vcl_backend_fetch {{ if (bereq.url == \"/backend\") {{ {} }} }}",
        doubled("req"),
        doubled("bereq")
    );
    let small = ["-p", "workspace_client=9k", "-p", "workspace_backend=9k"];
    let serve = Serve::start(&vcl(&origin, &subs), &small);
    let mut cli = serve.cli().await;
    for (url, wanted) in [("/", [0, 0]), ("/client", [1, 0]), ("/backend", [1, 1])] {
        let reply = serve.get(url).await;
        assert_eq!(reply.starts_with("HTTP/1.1 200 "), url == "/", "{reply}");
        let [client, backend] = wanted;
        let both = [("MAIN.ws_client_overflow", client), ("MAIN.ws_backend_overflow", backend)];
        cli.counted(&both).await;
    }
}

#[tokio::test]
async fn programs_are_changed_while_it_runs_and_end_once() {
    let mut serve = Serve::start(&says("one"), &[]);
    let mut cli = serve.cli().await;
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 one\r\n"));
    let inline = format!("vcl.inline two << END\n{}\nEND", says("two"));
    assert_eq!(cli.ask(&inline).await.0, 200);
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 one\r\n"));
    assert_eq!(cli.ask("vcl.use two").await, (200, "VCL 'two' now active".to_owned()));
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 two\r\n"));
    let kept = cli.ask("vcl.discard two").await;
    assert_eq!(kept, (300, "Cannot discard active VCL program two\n".to_owned()));
    assert_eq!(cli.ask("vcl.discard boot").await.0, 200);
    serve.until("one has ended");
    // A program that fails to compile or to start changes nothing.
    let (status, said) = cli.ask("vcl.inline bad \"vcl 4.1; junk\"").await;
    assert!(status == 106 && said.contains("junk") && said.contains("<vcl.inline>:1:10"), "{said}");
    let fails = "vcl 4.1; backend n none; sub vcl_init { return (fail(\\\"because\\\")); }";
    assert_eq!(
        cli.ask(&format!("vcl.inline bad \"{fails}\"")).await,
        (300, "VCL \"bad\" Failed initialization\nMessage:\n\tbecause\n".to_owned())
    );
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 two\r\n"));
    assert_eq!(cli.ask("vcl.list").await.1.lines().count(), 1);
}

#[tokio::test]
async fn connections_to_backends_outlive_the_programs_that_made_them() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::ok("", "a page"));
    let pass = |mark: &str| {
        let rest = "sub vcl_recv { return (pass); }\nsub vcl_deliver { set resp.http.X-In = ";
        vcl(&origin, &format!("{rest}\"{mark}\"; }}"))
    };
    let serve = Serve::start(&pass("boot"), &[]);
    let mut cli = serve.cli().await;
    for (kept, name) in (1..).zip(["boot", "second", "third", "boot"]) {
        if name != "boot" {
            let inline = format!("vcl.inline {name} << END\n{}\nEND", pass(name));
            assert_eq!(cli.ask(&inline).await.0, 200);
        }
        if kept > 1 {
            assert_eq!(cli.ask(&format!("vcl.use {name}")).await.0, 200);
        }
        assert!(serve.get("/").await.contains(&format!("X-In: {name}\r\n")));
        cli.counted(&[("MAIN.backend_recycle", kept)]).await;
    }
    assert_eq!(origin.recorded().len(), 1);
}

#[tokio::test]
async fn varnishadm_finds_the_cli_by_the_working_directory() {
    let serve = Serve::start(&says("one"), &[]);
    let folder = serve.folder.path().join("work");
    let program = serve.folder.path().join("default.vcl");
    std::fs::write(&program, says("two")).expect("written");
    let ask = async |words: &[&str]| {
        let mut process = Command::new("varnishadm");
        process.arg("-n").arg(&folder).args(words);
        let run = tokio::task::spawn_blocking(move || process.output());
        let output = timeout(PATIENCE, run).await.expect("it ends").expect("no panic");
        let output = output.expect("scripts/setup.sh basic installs varnishadm");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (done, said) = ask(&["ping"]).await;
    assert!(done && said.starts_with("PONG "), "{said}");
    // The commands of varnishreload.
    assert!(ask(&["vcl.load", "next", &program.display().to_string()]).await.0);
    assert!(ask(&["vcl.use", "next"]).await.0);
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 two\r\n"));
    assert!(folder.join("_.vsm_mgt").exists());
    serve.signal("-TERM");
    support::eventually("its end", async || !folder.join("_.vsm_mgt").exists()).await;
}

#[tokio::test]
async fn varnishadm_changes_programs_parameters_and_backends_and_bans() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.on("/page", Script::ok("Cache-Control: max-age=60\r\n", "a page"));
    let serve = Serve::start(&vcl(&origin, ""), &[]);
    let second = vcl(&origin, "sub vcl_deliver { set resp.http.X-From = \"second\"; }");
    serve.folder.file("second.vcl", &second);
    let second = serve.folder.path().join("second.vcl").display().to_string();
    let ask = async |command: &[&str]| varnishadm(serve.cli, &serve.folder, command).await;
    let does = async |command: &[&str], wanted: &str| {
        let (done, said) = ask(command).await;
        assert!(done && said.contains(wanted), "{command:?}: {said}");
    };
    let fails = async |command: &[&str], wanted: &str| {
        let (done, said) = ask(command).await;
        assert!(!done && said.contains(wanted), "{command:?}: {said}");
    };
    assert!(!serve.get("/page").await.contains("X-From"));
    does(&["vcl.load", "second", &second], "").await;
    does(&["vcl.list"], "available   auto    warm         0    second\n").await;
    assert!(!serve.get("/page").await.contains("X-From"), "it is not in use yet");
    does(&["vcl.use", "second"], "VCL 'second' now active").await;
    assert!(serve.get("/page").await.contains("X-From: second\r\n"));
    assert_eq!(origin.seen("/page"), 1, "the cache stays");
    fails(&["vcl.discard", "second"], "Cannot discard active VCL program second").await;
    does(&["vcl.discard", "boot"], "").await;
    // Once it has no requests any more.
    support::eventually("it is gone", async || !ask(&["vcl.list"]).await.1.contains("boot")).await;
    does(&["vcl.list"], "    second\n").await;
    fails(&["vcl.load", "third", "/nowhere.vcl"], "/nowhere.vcl").await;

    does(&["ban", "req.url", "~", "^/page"], "").await;
    does(&["ban.list"], "req.url ~ ^/page\n").await;
    serve.get("/page").await;
    assert_eq!(origin.seen("/page"), 2, "it is fetched anew");

    does(&["param.set", "default_ttl", "30"], "").await;
    does(&["param.show", "default_ttl"], "Value is: 30.000 [seconds]\n").await;
    fails(&["param.set", "default_ttl", "x"], "Invalid number (x)").await;

    does(&["backend.set_health", "default", "sick"], "").await;
    does(&["backend.list"], "second.default   sick ").await;
    assert!(serve.get("/other").await.starts_with("HTTP/1.1 503 "));
    does(&["backend.set_health", "default", "auto"], "").await;
    origin.on("/other", Script::ok("", "another"));
    assert!(serve.get("/other").await.starts_with("HTTP/1.1 200 "));
    fails(&["nonsense"], "Command failed with error code 101").await;
}

#[tokio::test]
async fn a_reload_reads_the_file_again_and_a_bad_one_changes_nothing() {
    let mut serve = Serve::start(&says("one"), &[]);
    serve.folder.file("default.vcl", says("two"));
    serve.signal("-HUP");
    serve.until("configuration reloaded");
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 two\r\n"));
    serve.until("one has ended");
    serve.folder.file("default.vcl", "vcl 4.1; junk");
    serve.signal("-HUP");
    serve.until("the running configuration stays");
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 two\r\n"));
}

#[tokio::test]
async fn without_a_program_requests_wait_for_nothing() {
    let folder = Folder::new();
    folder.file("commands", "vcl.inline late \"vcl 4.1; backend n none;\"\n-vcl.use nothing\n");
    let commands = folder.path().join("commands").display().to_string();
    let serve = Serve::start(&says("one"), &["-f", "", "-I", &commands]);
    let mut cli = serve.cli().await;
    let list = cli.ask("vcl.list").await.1;
    assert!(list.contains("    boot\n") && list.contains("    late\n"), "{list}");
    assert_eq!(cli.ask("vcl.use late").await.0, 200);
    assert!(serve.get("/").await.starts_with("HTTP/1.1 503 "));
}

#[tokio::test]
async fn parameters_are_set_at_once_and_some_never() {
    let serve = Serve::start(&says("one"), &["-r", "max_restarts,vcl_path"]);
    let mut cli = serve.cli().await;
    assert_eq!(cli.ask("param.set http_max_hdr 32").await.0, 200);
    let (status, said) = cli.ask("param.set max_restarts 9").await;
    assert_eq!((status, said.as_str()), (107, "parameter \"max_restarts\" is protected."));
    let (status, said) = cli.ask("param.reset max_restarts").await;
    assert_eq!((status, said.as_str()), (107, "parameter \"max_restarts\" is protected."));
    // The value is ignored; the number of words is not.
    assert_eq!(cli.ask("param.set max_restarts x").await.0, 107);
    assert_eq!(cli.ask("param.set max_restarts 1 2").await.0, 105);
    let note = "NB: This parameter is protected and can not be changed.\n";
    assert!(cli.ask("param.show max_restarts").await.1.contains(note));
    assert!(!cli.ask("param.show http_max_hdr").await.1.contains(note));
    let shown = cli.ask("param.show -j max_restarts").await.1;
    assert!(shown.contains("\"flags\": [\n      \"protected\"\n    ]"), "{shown}");
    // The host and 27 more: one too many.
    let fields = (0..27).map(|n| format!("X-{n}: y\r\n")).collect::<String>();
    let mut stream = TcpStream::connect(serve.clients[0]).await.expect("a connection");
    let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut reply = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut reply)).await.expect("in time").expect("read");
    assert_eq!(&reply, b"HTTP/1.1 431");
    assert_eq!(cli.ask("param.reset http_max_hdr").await.0, 200);
    assert!(serve.get("/").await.starts_with("HTTP/1.1 200 one\r\n"));
}

fn run(arguments: &[&str]) -> Output {
    Command::new(binary().expect("the binary")).args(arguments).output().expect("it runs")
}

#[test]
fn a_file_is_checked_and_every_fault_named() {
    let folder = Folder::new();
    folder.file("good.vcl", says("one"));
    folder.file("bad.vcl", "vcl 4.1;\nbackend b none;\nsub vcl_recv { set req.htp.x = 1; }\n");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for arguments in [&["check"][..], &["serve", "-C", "-f"]] {
        let with = |file: &str| run(&[arguments, &[path(file).as_str()]].concat());
        let good = with("good.vcl");
        assert!(good.status.success());
        assert!(String::from_utf8_lossy(&good.stdout).ends_with("good.vcl: good\n"));
        let bad = with("bad.vcl");
        assert!(!bad.status.success());
        let said = String::from_utf8_lossy(&bad.stderr).into_owned();
        assert!(said.contains("bad.vcl:3:"), "{said}");
    }
}

#[test]
fn a_files_content_decides_its_check_and_not_its_extension() {
    let folder = Folder::new();
    folder.file("program.conf", format!("# A comment = first\n{}", says("one")));
    let origin = "[[origin]]\nname = \"app\"\nservers = \"http://127.0.0.1:8080\"\n";
    folder.file("configuration.vcl", format!("{origin}[[site]]\nhost = \"*\"\norigin = \"app\"\n"));
    for (file, good) in [
        ("program.conf", "program.conf: good\n"),
        ("configuration.vcl", ": good: 1 site, 1 origin\n"),
    ] {
        let output = run(&["check", &folder.path().join(file).display().to_string()]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.ends_with(good), "{said}");
    }
}

/// A program with faults of several kinds, two of them in a file that it includes.
const SEVERAL: &str = r#"vcl 4.1;

import std;
include "./parts.vcl";

backend app {
    .host = "127.0.0.1";
    .first_byte_timeout = 60;
}

sub vcl_recv {
    if (req.restarts > "2") {
        return (lookup);
    }
    set req.http.Y = std.tolowr(req.url);
}
"#;

/// The file that [`SEVERAL`] includes.
const PARTS: &str = r#"sub vcl_deliver {
    unset resp.status;
    set resp.http.A = "a" "b";
}
"#;

/// The report on [`SEVERAL`]; `@` stands for the folder.
const SAID: &str = r#"error: `.first_byte_timeout` has a value of the wrong kind
 --> @/several.vcl:8:27
  |
8 |     .first_byte_timeout = 60;
  |                           ^^ expected a duration with its unit, such as `5s`

error: cannot compare INT with STRING
  --> @/several.vcl:12:9
   |
12 |     if (req.restarts > "2") {
   |         ------------^^^---
   |         |              |
   |         |              this is STRING
   |         this is INT
   |
   = help: write the number without quotes

error: `lookup` cannot be returned in vcl_recv
  --> @/several.vcl:13:17
   |
13 |         return (lookup);
   |                 ^^^^^^
   |
   = note: it works in vcl_hash only
   = help: vcl_recv returns one of fail, hash, pass, pipe, purge, restart, synth, vcl

error: VMOD `std` has no function `tolowr`
  --> @/several.vcl:15:22
   |
15 |     set req.http.Y = std.tolowr(req.url);
   |                      ^^^^^^^^^^
   |
   = help: did you mean `tolower`?

error: `resp.status` cannot be unset
 --> @/parts.vcl:2:11
  |
2 |     unset resp.status;
  |           ^^^^^^^^^^^
  |
  = note: included at @/several.vcl:4:1
  = note: headers can be unset, and a few variables

error: two strings side by side
 --> @/parts.vcl:3:27
  |
3 |     set resp.http.A = "a" "b";
  |                           ^^^ expected `+`
  |
  = note: included at @/several.vcl:4:1
  = help: `+` joins strings; only older Varnish joined them without
"#;

#[test]
fn faults_of_all_files_are_reported_at_once_with_suggestions() {
    let folder = Folder::new();
    folder.file("several.vcl", SEVERAL);
    folder.file("parts.vcl", PARTS);
    let path = folder.path().join("several.vcl").display().to_string();
    let output = run(&["check", &path]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let plain = said.replace(&folder.path().display().to_string(), "@");
    assert_eq!(plain.trim_end(), SAID.trim_end());
}

#[test]
fn options_that_cannot_be_served_are_reported() {
    for (arguments, why) in [
        (&["serve"][..], "nothing to serve"),
        (&["serve", "-a", "127.0.0.1:0"], "one of -b and -f is required"),
        (&["serve", "--origin", "http://127.0.0.1:1", "-T", "127.0.0.1:0"], "go neither with"),
        (&["serve", "-f", "/nowhere.vcl"], "Cannot read file '/nowhere.vcl'"),
        (&["serve", "-b", "none", "-a", "127.0.0.1:80,SPDY"], "`SPDY` is no protocol"),
        (&["serve", "-b", "none", "-Z"], "unexpected argument '-Z'"),
    ] {
        let folder = Folder::new();
        let socket = folder.path().join("admin.sock").display().to_string();
        let output = run(&[arguments, &["--admin-socket", &socket]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn what_a_program_has_stored_leaves_when_its_time_is_over() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::ok("", "a page"));
    let lifetimes = "sub vcl_backend_response {
        set beresp.ttl = 1s;
        set beresp.grace = 0s;
        set beresp.keep = 500ms;
        if (bereq.url == \"/grace\") {
            set beresp.grace = 1h;
        }
    }";
    let serve = Serve::start(&vcl(&origin, lifetimes), &[]);
    for target in ["/a", "/b", "/grace"] {
        assert!(serve.get(target).await.starts_with("HTTP/1.1 200 "));
    }
    let mut cli = serve.cli().await;
    cli.counted(&[("MAIN.n_object", 1), ("MAIN.n_expired", 2)]).await;
    assert!(serve.get("/grace").await.contains("Age: "));
    assert_eq!(origin.seen("/grace"), 1);
}
