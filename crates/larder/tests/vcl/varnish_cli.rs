//! Tests of Varnish's CLI over real sockets: bans, lists, authentication, and protection from
//! strangers.

use crate::support;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use support::cli::{Cli, SECRET, auth, stage, varnishadm};
use support::{Setup, Stage, eventually, is_hit};
use testkit::origin::Script;

async fn cli(stage: &Stage) -> Cli {
    Cli::authenticated(stage.daemon.port("Varnish CLI").expect("the port")).await
}

async fn connect(stage: &Stage) -> (Cli, (u16, String)) {
    Cli::connect(stage.daemon.port("Varnish CLI").expect("the port")).await
}

async fn store(stage: &Stage, target: &str, fields: &str) {
    stage
        .origin
        .on(target, Script::ok(&format!("Cache-Control: max-age=600\r\n{fields}"), "a page"));
    stage.get(target).await;
    assert!(is_hit(&stage.get(target).await), "{target} is stored");
}

#[tokio::test]
async fn bans_are_in_force_when_they_are_answered() {
    let (stage, _folder) = stage("").await;
    let mut cli = cli(&stage).await;
    for (line, gone) in [
        ("ban req.url ~ ^/a/", &["/a/1", "/a/2"][..]),
        ("ban req.url == /a/1", &["/a/1"]),
        ("ban \"req.url == /b\"", &["/b"]),
        ("ban req.http.host == larder.test && req.url ~ \"/a/[0-1]\"", &["/a/1"]),
        ("ban req.url ~ \"\\\\/b$\"", &["/b"]),
        ("ban req.url == << END\n/b\nEND", &[]),
        ("ban obj.http.x-name ~ \"a name\"", &["/b"]),
        ("ban obj.http.xkey ~ (^|,)(one|three)(,|$)", &["/a/1", "/b"]),
        ("ban req.http.host == other.test", &[]),
        ("ban.url ^/a/2", &["/a/2"]),
        ("purge.url 2$", &["/a/2"]),
        ("url.purge .", &["/a/1", "/a/2", "/b"]),
        ("purge obj.status == 200", &["/a/1", "/a/2", "/b"]),
    ] {
        store(&stage, "/a/1", "xkey: one\r\n").await;
        store(&stage, "/a/2", "xkey: two\r\n").await;
        store(&stage, "/b", "xkey: three\r\nX-Name: a name\r\n").await;
        assert_eq!(cli.ask(line).await.0, 200, "{line}");
        for target in ["/a/1", "/a/2", "/b"] {
            let hit = is_hit(&stage.get(target).await);
            assert_eq!(hit, !gone.contains(&target), "{line}: {target}");
        }
    }
    stage.daemon.assert_metric("larder_purges_total", 13).await;
    assert!(stage.metric("larder_varnish_cli_commands_total").await >= 13);
    stage.daemon.assert_logged(": ban req.url == /a/1: ").await;
}

#[tokio::test]
async fn bans_are_listed_with_what_they_hit() {
    let (stage, _folder) = stage("").await;
    let mut cli = cli(&stage).await;
    store(&stage, "/a", "").await;
    assert_eq!(cli.ask("ban.list").await, (200, "Present bans:\n".to_owned()));
    assert_eq!(cli.ask("ban req.url ~ \"^/a\"").await.0, 200);
    for _ in 0..1000 {
        if cli.ask("ban.list").await.1.contains(" C ") {
            break;
        }
        support::pause(20).await;
    }
    cli.ask("ban obj.status == 404").await;
    let list = cli.ask("ban.list").await.1;
    let lines: Vec<_> = list.lines().collect();
    let row = |spec: &str, hits: u32| {
        let pattern = format!(r"^\d{{10}}\.\d{{6}} {hits:5} [C-]  {}$", regex::escape(spec));
        regex::Regex::new(&pattern).expect("a pattern")
    };
    assert!(row("obj.status == 404", 0).is_match(lines[1]), "{list}");
    assert!(row("req.url ~ ^/a", 1).is_match(lines[2]), "{list}");
    let json = cli.ask("ban.list -j").await.1;
    for part in ["[ 2, [\"ban.list\", \"-j\"], ", "\"refs\": 1,", "\"spec\": \"req.url ~ ^/a\""] {
        assert!(json.contains(part), "{part} in {json}");
    }
}

#[tokio::test]
async fn an_expression_that_says_nothing_or_too_much_bans_nothing() {
    let (stage, _folder) = stage("").await;
    let mut cli = cli(&stage).await;
    store(&stage, "/a", "").await;
    for (line, status, text) in [
        ("ban req.url ~ (", 106, "in the regular expression: "),
        ("ban req.http.cookie ~ x", 106, "`req.http.cookie` is not known of stored responses"),
        ("ban obj.age > 1x", 106, "expected a duration"),
        ("ban req.url ~ \"\"", 104, "Too few parameters"),
        ("ban \"\"", 104, "Too few parameters"),
        ("ban.url \"\"", 104, "Too few parameters"),
        ("ban req.url ~ \\xff", 106, "an argument is not UTF-8"),
        ("ban req.url ~ . &&", 106, "no field"),
        ("ban obj.http.xkey ~ on", 106, "surrogate keys are stored as hashes"),
    ] {
        let (own, said) = cli.ask(line).await;
        assert_eq!(own, status, "{line}: {said}");
        assert!(said.starts_with(text), "{line}: {said}");
    }
    assert!(is_hit(&stage.get("/a").await));
}

#[tokio::test]
async fn who_does_not_know_the_secret_gets_nowhere() {
    let (stage, folder) = stage("").await;
    for line in ["ban req.url ~ .", "status", "param.show", "ban.list", "banner"] {
        let (mut cli, _) = connect(&stage).await;
        assert_eq!(cli.ask("ping").await.0, 200);
        assert_eq!(cli.ask(line).await.0, 101, "{line}");
        assert!(cli.ends().await, "{line}");
    }
    let (mut cli, (status, greeting)) = connect(&stage).await;
    assert_eq!((status, &greeting[32..]), (107, "\n\nAuthentication required.\n"));
    assert!(greeting[..32].bytes().all(|byte| byte.is_ascii_lowercase()));
    assert_eq!(cli.ask(&auth(&greeting, b"another secret\n")).await, (500, String::new()));
    assert!(cli.ends().await);
    // Another connection's challenge does not help, nor does a second attempt.
    let (mut cli, _) = connect(&stage).await;
    assert_eq!(cli.ask(&auth(&greeting, SECRET)).await.0, 500);
    assert!(cli.ends().await);
    stage.daemon.assert_metric("larder_varnish_cli_refused_total", 2).await;
    // A reload reads the file again; authenticated clients stay.
    let mut before = self::cli(&stage).await;
    folder.file("secret", b"a new secret\n");
    assert_eq!(stage.daemon.ask_admin("POST", "/reload").await.expect("reloaded").status, 200);
    let (mut cli, (_, greeting)) = connect(&stage).await;
    assert_eq!(cli.ask(&auth(&greeting, SECRET)).await.0, 500);
    let (mut cli, (_, greeting)) = connect(&stage).await;
    assert_eq!(cli.ask(&auth(&greeting, b"a new secret\n")).await.0, 200);
    assert_eq!(before.ask("status").await.0, 200);
    // A missing file changes nothing.
    std::fs::remove_file(folder.path().join("secret")).expect("it was there");
    assert_eq!(stage.daemon.ask_admin("POST", "/reload").await.expect("refused").status, 422);
    let (mut cli, (_, greeting)) = connect(&stage).await;
    assert_eq!(cli.ask(&auth(&greeting, b"a new secret\n")).await.0, 200);
}

#[tokio::test]
async fn without_the_table_a_reload_closes_the_port() {
    let (stage, _folder) = stage("").await;
    let file = stage.daemon.config_file();
    let text = std::fs::read_to_string(&file).expect("the file");
    let without: Vec<_> = text.lines().filter(|line| !line.starts_with("varnish_cli")).collect();
    std::fs::write(&file, without.join("\n")).expect("written");
    assert_eq!(stage.daemon.ask_admin("POST", "/reload").await.expect("reloaded").status, 200);
    assert_eq!(connect(&stage).await.1.0, 0);
}

#[tokio::test]
async fn without_a_secret_in_its_table_the_daemon_makes_one() {
    let top = "varnish_cli = { listen = \"127.0.0.1:0\" }\n";
    let stage = Setup { top, ..Setup::default() }.start().await;
    let (mut cli, (status, greeting)) = connect(&stage).await;
    assert_eq!(status, 107);
    let log = stage.daemon.assert_logged("the CLI's secret is in ").await;
    let told = log.lines().find_map(|line| line.split("the CLI's secret is in ").nth(1));
    let path = std::path::PathBuf::from(told.expect("its path"));
    assert_eq!(path.parent(), stage.daemon.admin_socket().parent());
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let secret = std::fs::read(&path).expect("read");
    assert!(secret.len() > 32);
    let (status, banner) = cli.ask(&auth(&greeting, &secret)).await;
    assert_eq!(status, 200);
    // By this line clients recognise the version of Varnish.
    assert!(banner.lines().any(|line| line.starts_with("varnish-7.1.1 revision ")), "{banner}");
}

#[tokio::test]
async fn without_a_secret_this_machine_gets_in_and_http_does_not() {
    let top = "varnish_cli = { listen = \"127.0.0.1:0\", secret = \"none\" }\n";
    let stage = Setup { top, ..Setup::default() }.start().await;
    let (mut cli, (status, banner)) = connect(&stage).await;
    assert_eq!(status, 200);
    assert!(banner.contains("Varnish Cache CLI 1.0\n"), "{banner}");
    assert_eq!(cli.ask("status").await, (200, "Child in state running".to_owned()));
    store(&stage, "/a", "").await;
    // Bytes that a browser's page, or an abused server, may send.
    let (mut http, _) = connect(&stage).await;
    http.send(b"POST /a HTTP/1.1\r\nHost: x\r\n\r\nban req.url ~ .\r\n").await;
    assert_eq!(http.answer().await.0, 500);
    assert!(is_hit(&stage.get("/a").await));
    stage.daemon.assert_metric("larder_varnish_cli_refused_total", 1).await;
}

#[tokio::test]
async fn no_origin_leads_there() {
    // An address without other listeners: its ports are free.
    let port = TcpListener::bind("127.77.0.1:0").expect("a port").local_addr().expect("bound");
    let top = format!("varnish_cli = {{ listen = \"{port}\" }}\n");
    let stage = Setup { top: &top, ..Setup::default() }.start().await;
    let own = format!("servers = \"http://{}\"", stage.origin.addr());
    let file = std::fs::read_to_string(stage.daemon.config_file()).expect("there");
    let there = file.replace(&own, &format!("servers = \"http://{port}\""));
    std::fs::write(stage.daemon.config_file(), there).expect("written");
    assert_eq!(stage.daemon.ask_admin("POST", "/reload").await.expect("reloaded").status, 200);
    assert_eq!(stage.get("/a").await.status, 502);
    assert_eq!(stage.metric("larder_varnish_cli_refused_total").await, 0);
}

#[tokio::test]
async fn connections_lines_and_waits_are_bounded() {
    let limits = "varnish_cli_connections = 2\nvarnish_cli_bytes = \"1KiB\"\n\
                  varnish_cli_auth_timeout = \"3s\"\nvarnish_cli_idle_timeout = \"3s\"\n";
    let (stage, _folder) = stage(limits).await;
    let mut one = cli(&stage).await;
    let (mut two, _) = connect(&stage).await;
    assert_eq!(one.ask(&format!("ping {}", "x".repeat(2000))).await.0, 500);
    assert!(one.ends().await);
    stage.daemon.assert_limit_count("varnish_cli_bytes", 1).await;
    // Other commands do not extend the timeout.
    assert_eq!(two.ask("ping").await.0, 200);
    assert!(two.ends().await);
    stage.daemon.assert_limit_count("varnish_cli_auth_timeout", 1).await;
    let mut idle = cli(&stage).await;
    assert!(idle.ends().await);
    stage.daemon.assert_limit_count("varnish_cli_idle_timeout", 1).await;
}

#[tokio::test]
async fn strangers_lock_no_operator_out() {
    let (stage, _folder) = stage("varnish_cli_connections = 2\n").await;
    let mut known = cli(&stage).await;
    let mut strangers = Vec::new();
    for _ in 0..5 {
        strangers.push(connect(&stage).await.0);
    }
    stage.daemon.assert_limit_count("varnish_cli_connections", 3).await;
    // The oldest were evicted, for authenticated clients, too.
    let mut second = cli(&stage).await;
    for stranger in &mut strangers[..4] {
        assert!(stranger.ends().await);
    }
    for cli in [&mut known, &mut second] {
        assert_eq!(cli.ask("status").await.0, 200);
    }
    let (mut third, (_, greeting)) = connect(&stage).await;
    assert_eq!(third.ask(&auth(&greeting, SECRET)).await.0, 500);
    assert!(third.ends().await);
    drop(second);
    eventually("there is a place again", async || {
        let (mut third, (_, greeting)) = connect(&stage).await;
        third.ask(&auth(&greeting, SECRET)).await.0 == 200
    })
    .await;
}

#[tokio::test]
async fn wrong_answers_are_replied_to_one_after_the_other() {
    let (stage, _folder) = stage("varnish_cli_wrong_answer = \"300ms\"\n").await;
    let begun = std::time::Instant::now();
    let guess = async || {
        let (mut cli, (_, greeting)) = connect(&stage).await;
        cli.ask(&auth(&greeting, b"a guess\n")).await.0
    };
    let all = tokio::join!(guess(), guess(), guess());
    assert_eq!(all, (500, 500, 500));
    // A slow machine takes longer, and none takes less.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(900));
    assert_eq!(stage.limit_hits("varnish_cli_wrong_answer").await, 3);
    assert_eq!(cli(&stage).await.ask("ping").await.0, 200);
}

#[tokio::test]
async fn programs_are_loaded_from_their_folders_only() {
    let (stage, folder) = stage("").await;
    let mut cli = cli(&stage).await;
    folder.file("private", b"a token of somebody\n");
    let path = folder.path().join("private").display().to_string();
    let include = format!("\"vcl 4.1; backend b none; include \\\"{path}\\\";\"");
    for line in [format!("vcl.load x {path}"), format!("vcl.inline x {include}")] {
        let (status, said) = cli.ask(&line).await;
        assert_eq!(status, 106, "{line}: {said}");
        assert!(said.contains("neither in vcl_path") && !said.contains("token"), "{said}");
    }
    for line in [
        format!("param.set vcl_path {}", folder.path().display()),
        "param.set vcc_unsafe_path on".to_owned(),
        "param.reset vcl_path".to_owned(),
    ] {
        assert_eq!(cli.ask(&line).await.0, 107, "{line}");
    }
}

#[tokio::test]
async fn a_program_of_two_megabytes_comes_in_line() {
    let (stage, _folder) = stage("").await;
    let mut cli = cli(&stage).await;
    let lines = format!("# {}\n", "x".repeat(97)).repeat(20_000);
    let program = format!("vcl 4.1;\nbackend b none;\n{lines}");
    assert_eq!(cli.ask(&format!("vcl.inline here << END\n{program}END")).await.0, 200);
    let quoted = program.replace('\n', "\\n");
    assert_eq!(cli.ask(&format!("vcl.inline quoted \"{quoted}\"")).await.0, 200);
    assert_eq!(cli.ask("vcl.show quoted").await.1, program);
    let (mut stranger, _) = connect(&stage).await;
    assert_eq!(stranger.ask(&format!("ping {}", "x".repeat(5000))).await.0, 500);
}

#[tokio::test]
async fn parameters_are_the_settings_by_name() {
    let (stage, _folder) = stage("bans = 77\n").await;
    let mut cli = cli(&stage).await;
    let all = cli.ask("param.show").await.1;
    assert!(all.lines().count() > base::limits::TABLE.len());
    assert!(all.lines().is_sorted(), "{all}");
    let row = all.lines().find(|line| line.starts_with("workers ")).expect("a row");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["workers", "2"]);
    let changed = cli.ask("param.show changed").await.1;
    let words: Vec<_> = changed.split_whitespace().collect();
    assert_eq!(words, ["bans", "77", "workers", "2"]);
    let one = cli.ask("param.show bans").await.1;
    assert!(
        one.starts_with(
            "bans\n        Value is: 77\n        Default is: 1000\n\n        Maximum number of bans"
        ),
        "{one}"
    );
    assert_eq!(cli.ask("param.show -l bans").await.1, one);
    let json = cli.ask("param.show -j changed").await.1;
    for part in ["\"name\": \"bans\",", "\"value\": 77,", "\"default\": \"1000\","] {
        assert!(json.contains(part), "{part} in {json}");
    }
    for row in cli.ask("param.show -l").await.1.lines() {
        assert!(row.len() <= 72, "{row}");
    }
}

#[tokio::test]
async fn origins_servers_are_the_backends() {
    let (stage, _folder) = stage("").await;
    let mut cli = cli(&stage).await;
    let name = format!("larder.app({})", stage.origin.addr());
    let list = cli.ask("backend.list").await.1;
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["Backend", "name", "Admin", "Probe", "Health", "Last", "change"]
    );
    let words: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(words[..4], [name.as_str(), "healthy", "0/0", "healthy"]);
    assert_eq!((words.len(), words.last()), (10, Some(&"GMT")), "when that changed: {words:?}");
    for pattern in ["app*", "larder.app*", "*", &name] {
        assert_eq!(cli.ask(&format!("backend.list {pattern}")).await.1, list, "{pattern}");
    }
    assert_eq!(cli.ask("backend.list nothing").await.1.lines().count(), 1);
    let json = cli.ask("backend.list -j").await.1;
    assert!(json.contains(&format!("\"{name}\": {{")), "{json}");
    for (state, status) in [("sick", 503), ("healthy", 200), ("sick", 503), ("auto", 200)] {
        assert_eq!(cli.ask(&format!("backend.set_health app* {state}")).await.0, 200);
        stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", "a page"));
        assert_eq!(stage.get("/page").await.status, status, "{state}");
    }
}

#[tokio::test]
async fn varnishadm_authenticates_bans_and_lists() {
    let (stage, folder) = stage("").await;
    let address = stage.daemon.port("Varnish CLI").expect("the port");
    let ask = async |command: &[&str]| varnishadm(address, &folder, command).await;
    assert!(ask(&["ping"]).await.0);
    assert!(ask(&["status"]).await.1.contains("Child in state running"));
    store(&stage, "/a", "").await;
    store(&stage, "/b", "").await;
    let banned = ask(&["ban", "req.url", "~", "^/a"]).await;
    assert!(banned.0 && banned.1.contains("1 stored responses hit"), "{}", banned.1);
    assert!(!is_hit(&stage.get("/a").await) && is_hit(&stage.get("/b").await));
    let quoted = ask(&["ban", "req.http.host == larder.test && req.url ~ \"/b\""]).await;
    assert!(quoted.0 && !is_hit(&stage.get("/b").await), "{}", quoted.1);
    let list = ask(&["ban.list"]).await.1;
    assert!(list.contains("Present bans:") && list.contains("req.url ~ ^/a"), "{list}");
    for command in
        ["backend.list", "vcl.list", "param.show", "storage.list", "help", "banner", "pid"]
    {
        assert!(ask(&[command]).await.0, "{command}");
    }
    let refused = ask(&["ban", "req.url", ">", "1"]).await;
    assert!(
        !refused.0 && refused.1.contains("Command failed with error code 106"),
        "{}",
        refused.1
    );
    folder.file("secret", "another\n");
    assert!(!ask(&["ping"]).await.0);
}
