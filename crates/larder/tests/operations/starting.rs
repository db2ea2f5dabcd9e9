//! Tests of the start: defaults, messages, and refusals.

use crate::support;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use support::folder::Folder;
use support::{Setup, Stage, console, eventually, whole};
use testkit::client::RawClient;
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};

/// A daemon started by flags alone.
struct Flagged {
    child: Child,
    /// The listener's address.
    at: SocketAddr,
    /// Its lines on standard error, until it served.
    said: String,
}

impl Flagged {
    /// Returns when it serves. Its files are in `folder`.
    async fn start(folder: &Folder, flags: &[&str]) -> Self {
        let mut command = command(folder);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags);
        let started = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().expect("it starts");
            let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
            let mut said = String::new();
            while !said.contains("larder: memory ") {
                said.push_str(
                    &lines.next().unwrap_or_else(|| panic!("it ended: {said}")).expect("text"),
                );
                said.push('\n');
            }
            // Writing to a closed pipe would end it.
            std::thread::spawn(move || lines.for_each(drop));
            let (_, at) = said.split_once("listening on ").expect("an address");
            let at = at.lines().next().expect("a line").parse().expect("an address");
            Self { child, at, said }
        });
        started.await.expect("no panic")
    }
}

impl Drop for Flagged {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A command with its own files.
fn command(folder: &Folder) -> Command {
    let mut command = Command::new(binary().expect("a binary"));
    command.env("XDG_RUNTIME_DIR", folder.path()).stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The end of a command: whether it succeeded, and its standard error.
async fn ended(folder: &Folder, arguments: &[&str]) -> (bool, String) {
    let mut command = command(folder);
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output.expect("no panic").expect("it starts");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_without_a_scheme_is_served_and_logged() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::cacheable("page"));
    let (socket, ring) = (folder.path().join("admin.sock"), folder.path().join("ring"));
    let (socket, ring) = (socket.display().to_string(), ring.display().to_string());
    let url = origin.addr().to_string();
    let flags =
        ["--origin", &url, "--admin-socket", &socket, "--log-ring", &ring, "--user", "root"];
    let daemon = Flagged::start(&folder, &[&flags[..], &["--workers", "1"]].concat()).await;
    let said = &daemon.said;
    assert!(said.contains(&format!("larder: serving every host; from {url}\n")), "{said}");
    let with = format!(" MiB, workers 1, admin {socket}, log ring {ring}\n");
    assert!(said.contains(&with), "{said}");
    let mut raw = RawClient::connect(daemon.at).await.expect("a connection");
    assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").text(), "page");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_says_which_sites_it_serves_from_where_and_with_what() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let top = format!("access_log = \"{}\"\nmemory = {{ size = \"64MiB\" }}\n", log.display());
    let admin = "[admin]\nlisten = \"127.0.0.1:0\"";
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let file = Setup { top: &top, ..Setup::default() }.file(&origin);
    let file = file.replace("host = \"*\"", "host = [\"a.test\", \"b.test\"]") + admin;
    let daemon = Daemon::start(&file).expect("larder starts");
    let server = origin.addr();
    daemon.assert_logged(&format!("larder: serving a.test, b.test; from app ({server})")).await;
    let said = daemon.assert_logged("larder: memory 64 MiB, workers 2, admin ").await;
    let socket = daemon.admin_socket().display().to_string();
    let console = daemon.admin().expect("an admin listener");
    let ring = daemon.log_ring().display().to_string();
    let rest = format!("admin {socket}, http://{console}, log {}, ring {ring}", log.display());
    assert!(said.contains(&rest), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_anything_to_serve_says_what_to_give() {
    let folder = Folder::new();
    if std::path::Path::new("/etc/larder/larder.toml").exists() {
        eprintln!("skipped: this machine has a daemon's configuration");
    } else {
        let (done, said) = ended(&folder, &["serve"]).await;
        let words = "nothing to serve: there is no /etc/larder/larder.toml; write it, or give";
        assert!(!done && said.contains(words), "{said}");
    }
    let (done, said) = ended(&folder, &["serve", "--listen", "127.0.0.1:0"]).await;
    assert!(!done && said.contains("flags for a site need --origin URL"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_workers_are_refused_by_name() {
    let folder = Folder::new();
    let (done, said) =
        ended(&folder, &["serve", "--origin", "127.0.0.1:1", "--workers", "0"]).await;
    assert!(!done && said.contains("--workers 0: from 1 to 1024"), "{said}");
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    let file = Setup::default().file(&origin).replace("workers = 2", "workers = 0");
    let said = Daemon::start(&file).expect_err("a refusal").to_string();
    assert!(said.contains("larder.toml:2:11") && said.contains("workers"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_memory_and_roots_are_reported_with_their_places() {
    let folder = Folder::new();
    let top = "[memory]\nsize = \"1TiB\"";
    let site = "[[site.route]]\npath = \"/files/*\"\nfiles = \"/nonexistent/files\"\n\
                [[site.route]]\npath = \"/here/*\"\nfiles = \"/tmp\"\n";
    let stage = Setup { top, site, ..Setup::default() }.start().await;
    let root = "`files`: /nonexistent/files: No such file or directory";
    let said = stage.daemon.assert_logged(root).await;
    assert!(said.contains("memory: 1048576 MiB are more than this machine's "), "{said}");
    assert!(said.contains("larder.toml:4:8"), "{said}");
    assert!(!said.contains("/tmp:"), "{said}");
    // `check` reports the same, and that the file is valid.
    let file = stage.daemon.config_file().display().to_string();
    let (done, said) = ended(&folder, &["check", &file]).await;
    assert!(done && said.contains(root) && said.contains("memory: 1048576 MiB"), "{said}");
    // So does a start by flags.
    let flags = ["--origin", "fastcgi://127.0.0.1:1", "--root", "/nonexistent/php"];
    // A socket below a file cannot exist.
    let socket = format!("{file}/admin.sock");
    let own = ["--admin-socket", &socket, "--user", "root"];
    let daemon = Flagged::start(&folder, &[flags, own].concat()).await;
    let said = &daemon.said;
    assert!(said.contains("`--root`: /nonexistent/php: No such file"), "{said}");
    assert!(said.contains("admin nowhere"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_reports_users_and_cache_folders_that_a_start_could_not_use() {
    let folder = Folder::new();
    let site = "[[site]]\nhost = \"*\"\norigin = \"127.0.0.1:1\"\n";
    let check = async |top: &str| {
        folder.file("larder.toml", format!("{top}\n{site}"));
        let file = folder.path().join("larder.toml").display().to_string();
        ended(&folder, &["check", &file]).await
    };
    let (done, said) = check("[run]\nuser = \"nobdy\"").await;
    assert!(!done && said.contains("there is no user `nobdy` to run as"), "{said}");
    assert!(said.contains("larder.toml:2:8") && said.contains("useradd"), "{said}");
    // Root switches to the user of the file; other users stay.
    let above = folder.path().join("above");
    fs::create_dir(&above).expect("a folder");
    let shown = above.display();
    let disk =
        format!("[run]\nuser = \"nobody\"\n[disk]\npath = \"{shown}/cache\"\nsize = \"256MiB\"");
    for (mode, is_shut) in [(0o777, false), (0o500, true)] {
        fs::set_permissions(&above, Permissions::from_mode(mode)).expect("a mode");
        let (done, said) = check(&disk).await;
        assert_eq!(done, !is_shut, "{mode:o}: {said}");
        if is_shut {
            let why = format!("the disk cache in {shown}/cache: ");
            assert!(said.contains(&why) && said.contains("larder.toml:4:8"), "{said}");
            // Root creates the folder and gives it away; parent folders stay closed.
            let is_root = rustix::process::geteuid().is_root();
            let remedy = if is_root { "`setfacl -m u:nobody:x " } else { "`install -d -o " };
            assert!(said.contains(remedy), "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_describes_the_daemon_in_a_few_lines() {
    let stage = Stage::new().await;
    stage.origin.otherwise(Script::cacheable("page"));
    for _ in 0..2 {
        stage.get("/page").await;
    }
    // Cores publish their counts at intervals.
    eventually("two requests", async || {
        console::run(&stage.daemon, &["status"]).await.1.contains("\nrequests  2, ")
    })
    .await;
    let (done, shown, said) = console::run(&stage.daemon, &["status"]).await;
    assert!(done, "{said}");
    for words in [
        &format!("larder {}, up ", env!("CARGO_PKG_VERSION")),
        "requests  2, hit ratio 50.0 %",
        "cache     1 objects, ",
        "serves    sites: 1, origins: 1, cores: 2",
        "health    ready",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let file = fs::read_to_string(stage.daemon.config_file()).expect("a file");
    fs::write(stage.daemon.config_file(), file.replace("workers = 2", "workers = 1"))
        .expect("written");
    assert!(console::run(&stage.daemon, &["reload"]).await.0);
    let (_, shown, _) = console::run(&stage.daemon, &["status"]).await;
    assert!(shown.contains("restart   needed for workers"), "{shown}");
    let (done, shown, _) = console::run(&stage.daemon, &["status", "--json"]).await;
    let value: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((done, &value["hit_ratio"], &value["ready"]), (true, &0.5.into(), &true.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_and_fingers_are_helped() {
    let folder = Folder::new();
    for (shell, word) in
        [("bash", "complete -F"), ("zsh", "#compdef larder"), ("fish", "-c larder")]
    {
        let output =
            Command::new(binary().expect("a binary")).args(["completions", shell]).output();
        let shown = String::from_utf8_lossy(&output.expect("it starts").stdout).into_owned();
        assert!(shown.contains(word) && shown.contains("explain"), "{shell}");
    }
    let (done, said) = ended(&folder, &["stop"]).await;
    assert!(!done && said.contains("systemctl stop larder"), "{said}");
    let (done, said) = ended(&folder, &["start", "--listen", "127.0.0.1:0"]).await;
    assert!(!done && said.contains("flags for a site need --origin URL"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_s_misspelt_word_is_refused_with_the_one_that_is_meant() {
    let stage = Stage::new().await;
    for (filter, meant) in [("served == hitt", "hit"), ("kind == backgruond", "background")] {
        let arguments = ["log", "--once", "-q", filter];
        let (done, _, said) = console::run(&stage.daemon, &arguments).await;
        assert!(!done && said.contains(&format!("did you mean `{meant}`?")), "{said}");
    }
    let (done, _, said) =
        console::run(&stage.daemon, &["log", "--once", "-q", "served == hit"]).await;
    assert!(done, "{said}");
    // Without a daemon a typing error is reported, too, and the absence of a daemon only where
    // there is none.
    let folder = Folder::new();
    let socket = folder.path().join("admin.sock").display().to_string();
    for verb in ["log", "hist", "top"] {
        let with = |filter| [verb, "--admin-socket", &socket, "-q", filter].map(str::to_owned);
        let (done, said) = ended(&folder, &with("served == hitt").each_ref().map(|a| &**a)).await;
        assert!(!done && said.contains("did you mean `hit`?"), "{verb}: {said}");
        assert!(!said.contains("admin.sock"), "{verb}: {said}");
        let fine = with("req.http.x-own ~ a and served == hit");
        let (done, said) = ended(&folder, &fine.each_ref().map(|a| &**a)).await;
        assert!(!done && said.contains("admin.sock"), "{verb}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_without_a_scheme_are_the_same_in_a_file_as_in_a_flag() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.on("/page", Script::cacheable("page"));
    let file = Setup::default().file(&origin).replace("http://", "");
    let daemon = Daemon::start(&file).expect("larder starts");
    let mut raw = RawClient::connect(daemon.addr()).await.expect("a connection");
    assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").text(), "page");
    let server = origin.addr();
    let by_site =
        format!("listen = \"127.0.0.1:0\"\n[[site]]\nhost = \"*\"\norigin = \"{server}\"\n");
    let daemon = Daemon::start(&by_site).expect("larder starts");
    let mut raw = RawClient::connect(daemon.addr()).await.expect("a connection");
    assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").text(), "page");
    daemon.assert_logged(&format!("larder: serving every host; from {server}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_socket_is_reported_with_its_place() {
    let folder = Folder::new();
    let socket = folder.path().join("php.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    // Root switches to the user of the file; other users stay.
    let toml = format!(
        "[run]\nuser = \"nobody\"\n[[origin]]\nname = \"php\"\n\
         servers = \"fastcgi+unix:{}\"\nroot = \"/\"\n\
         [[site]]\nhost = \"*\"\norigin = \"php\"\n",
        socket.display()
    );
    folder.file("larder.toml", toml);
    let file = folder.path().join("larder.toml").display().to_string();
    for (mode, is_shut) in [(0o666, false), (0o000, true)] {
        fs::set_permissions(&socket, Permissions::from_mode(mode)).expect("a mode");
        let (done, said) = ended(&folder, &["check", &file]).await;
        let words = format!("`servers`: {}: ", socket.display());
        assert!(done && said.contains(&words) == is_shut, "{mode:o}: {said}");
        if is_shut {
            assert!(said.contains("may not connect to it"), "{said}");
            assert!(said.contains("larder.toml:5:11") && said.contains("listen.mode"), "{said}");
        }
    }
}
