//! The world of the pages' commands: a folder in the place of `/`, a daemon with everything that
//! the pages mention, its origins, a cluster and a disk. Names, ports and paths of a page are
//! mapped to these; nothing leaves the machine.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use regex::{Captures, Regex};
use rustix::process::Signal;
use testkit::fastcgi::{Application, ApplicationScript};
use testkit::larder::{Daemon, binary};
use testkit::large_file::LargeFile;
use testkit::origin::{Script, ScriptedOrigin};

use crate::support::PATIENCE;
use crate::support::disked::{Disked, Policy};
use crate::support::folder::Folder;
use crate::support::nats::Nats;
use crate::support::nodes::{Node, PLAIN, Wanted, all_joined};
use crate::support::tls::{Authority, Kind};

/// Hosts of the pages.
const HOSTS: &[&str] = &[
    "example.com",
    "www.example.com",
    "example.org",
    "films.example",
    "blog.example",
    "shop.example",
    "localhost",
];

/// Seconds after which a command counts as hanging.
const HANGS: &str = "120";

/// The secret of Varnish's CLI.
const SECRET: &str = "a secret that is as long as secrets of a cluster must be\n";

/// Outcome of a command.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) is_well: bool,
    pub(crate) printed: String,
    pub(crate) said: String,
}

pub(crate) struct World {
    folder: Folder,
    authority: Authority,
    origin: ScriptedOrigin,
    php: Application,
    _film: LargeFile,
    daemon: Daemon,
    /// The daemon's file.
    text: String,
    /// A daemon with a program for all hosts, as varnishd.
    varnish: Daemon,
    _nats: Nats,
    nodes: Vec<Node>,
    varnishadm: PathBuf,
    paths: Regex,
}

impl World {
    pub(crate) async fn new(fragments: &str) -> Self {
        let folder = Folder::new();
        let authority = Authority::new();
        let names: Vec<&str> = HOSTS.iter().copied().chain(["127.0.0.1"]).collect();
        authority.sign("ec", &names, Kind::Elliptic);
        authority.sign("rsa", &names, Kind::Rsa);
        let origin = ScriptedOrigin::start().await.expect("an origin");
        answer_pages(&origin, fragments);
        let php = Application::start().await.expect("an application");
        answer_posts(&php);
        let film = LargeFile::start(4 << 30).await.expect("an origin");
        write_files(&folder, &origin);
        let text = configuration(&folder, &authority, &origin, &php, &film);
        let daemon = Daemon::start(&text).expect("larder starts");
        let nats = Nats::start(&[]).await;
        let nodes = cluster(&folder, &nats, &origin).await;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut found = std::env::split_paths(&path).map(|folder| folder.join("varnishadm"));
        let varnishadm = found.find(|file| file.is_file());
        let varnishadm = varnishadm.expect("varnishadm: scripts/setup.sh basic installs it");
        let paths = Regex::new(r#"(^|[\s"'=,(:@\[])(/(?:etc|var|run|srv)/)"#).expect("a pattern");
        let varnish = varnish(&folder, &authority);
        let _nats = nats;
        let _film = film;
        let world = Self {
            folder,
            authority,
            origin,
            php,
            _film,
            daemon,
            text,
            varnish,
            _nats,
            nodes,
            varnishadm,
            paths,
        };
        world.link();
        world.disk().await;
        world
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The working directory of commands.
    pub(crate) fn here(&self) -> PathBuf {
        self.root().join("here")
    }

    /// A page's text with its paths mapped below the folder; files that it names exist then.
    pub(crate) fn mapped(&self, text: &str) -> String {
        let root = self.root().display().to_string();
        let text = self
            .paths
            .replace_all(text, |found: &Captures<'_>| format!("{}{root}{}", &found[1], &found[2]));
        let named = Regex::new(&format!(r#"{}/[^\s"',;:)]+"#, regex::escape(&root)));
        for path in named.expect("a pattern").find_iter(&text) {
            self.provide(Path::new(path.as_str()));
        }
        text.into_owned()
    }

    /// Printed text with the page's names.
    fn unmapped(&self, text: &str) -> String {
        let root = self.root().display().to_string();
        let serve = format!("{root}/serve");
        let text = text.replace(&serve, "").replace(&format!("{root}/here/"), "");
        text.replace(&root, "").replace(&self.php.addr().to_string(), "unix:/run/php.sock")
    }

    /// Creates what a page names: a certificate, a program, a page, or a folder.
    fn provide(&self, path: &Path) {
        if path.exists() || path.to_string_lossy().contains('*') {
            return;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = path.parent().expect("a folder");
        fs::create_dir_all(parent).expect("a folder");
        let kind = if name.contains("rsa") { "rsa" } else { "ec" };
        let from = match () {
            () if name.ends_with(".key") || name.contains("privkey") => {
                self.authority.path(&format!("{kind}.key"))
            }
            () if name.contains("ca.pem") || name.contains("clients") => {
                self.authority.path("ca.pem")
            }
            () if name.ends_with(".pem") => self.authority.path(&format!("{kind}.crt")),
            () if name == "extra.vcl" => self.at("etc/larder/extra.vcl"),
            () if name.ends_with(".vcl") => self.at("etc/varnish/default.vcl"),
            () if name.ends_with(".html") => self.at("here/error.html"),
            () if name.ends_with("secret") => self.at("etc/varnish/secret"),
            () if name.ends_with(".token") => self.at("here/own.token"),
            () if name == "crawlers.txt" => self.at("here/crawlers.list"),
            () if name.ends_with("keys.json") => self.at("here/keys.json"),
            () if name.ends_with("bot.json") => self.at("here/addresses.json"),
            () if name.ends_with("users") => self.at("here/ann.users"),
            () if name.starts_with("redirects.") => self.at("here/redirects.txt"),
            () if name.ends_with(".mmdb") => self.at("here/countries.mmdb"),
            () if name.contains('.') => return,
            () => return fs::create_dir_all(path).expect("a folder"),
        };
        fs::copy(from, path).expect("a file");
    }

    fn at(&self, name: &str) -> String {
        self.root().join(name).display().to_string()
    }

    /// The origin of the pages' sites.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.origin.addr())
    }

    /// The FastCGI application.
    pub(crate) fn application(&self) -> String {
        format!("fastcgi://{}", self.php.addr())
    }

    /// Links the names of the pages to the daemon's files.
    fn link(&self) {
        let folder = self.daemon.admin_socket();
        let link = |to: &Path, name: &str| {
            let name = self.root().join(name);
            fs::create_dir_all(name.parent().expect("a folder")).expect("a folder");
            symlink(to, name).expect("a link");
        };
        link(&folder, "run/larder/admin.sock");
        link(&folder.with_file_name("admin"), "var/lib/larder/admin");
        let mut curl = String::from("silent\nmax-time = 100\n");
        let (plain, tls) = (self.daemon.addrs()[0].port(), self.daemon.addrs()[1].port());
        for host in HOSTS {
            _ = writeln!(curl, "connect-to = \"{host}:80:127.0.0.1:{plain}\"");
            _ = writeln!(curl, "connect-to = \"{host}:443:127.0.0.1:{tls}\"");
        }
        let admin = self.daemon.admin().expect("an admin listener").port();
        _ = writeln!(curl, "connect-to = \"127.0.0.1:6080:127.0.0.1:{admin}\"");
        _ = writeln!(curl, "cacert = \"{}\"", self.authority.path("ca.pem"));
        self.folder.file(".curlrc", curl);
    }

    /// Leaves a disk cache, as a stopped daemon does.
    async fn disk(&self) {
        let path = self.root().join("var/cache/larder");
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let top = "memory = { size = \"16MiB\" }";
        let mut disked = Disked::start_at(Policy::Declared, top, &path, Folder::new()).await;
        disked.origin.otherwise(Script::ok("Cache-Control: max-age=600\r\n", "a page"));
        for target in ["/a", "/b"] {
            disked.get(target).await;
            disked.get(target).await;
        }
        disked.stop(Signal::TERM).await;
    }

    /// The command that runs `command` of `page`.
    fn shell(&self, page: &str, command: &str) -> Command {
        let is_varnish = page.starts_with("vcl") || page == "varnish-cli.md";
        let varnish = if is_varnish { &self.varnish } else { &self.daemon };
        let is_cluster = ["cluster.md", "tls.md"].contains(&page);
        let daemon = if is_cluster { self.nodes[0].daemon() } else { &self.daemon };
        // A page creates another secret, which the daemon has not read.
        self.folder.file("etc/varnish/secret", SECRET);
        let shims = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guide/pages/bin");
        let path = std::env::var("PATH").unwrap_or_default();
        fs::write(self.root().join("said"), self.daemon.log()).expect("a file");
        let mut shell = Command::new("timeout");
        let text = self.mapped(command).replace("10.0.0.2:8080", &self.origin()[7..]);
        shell.args(["--foreground", HANGS, "bash", "-o", "pipefail", "-c"]).arg(text);
        shell.current_dir(self.here()).stdin(Stdio::null()).env("HOME", self.root());
        shell.env("PATH", format!("{}:{path}:/usr/sbin", shims.display()));
        shell.env("CURL_HOME", self.root()).env("SANDBOX", self.root());
        shell.env("LARDER", binary().expect("a binary")).env("SOCKET", daemon.admin_socket());
        shell.env("PLAIN", self.daemon.addrs()[0].port().to_string());
        shell.env("PID", self.daemon.pid().to_string()).env("ORIGIN", self.origin());
        shell.env("SAID", self.root().join("said")).env("SERVED", self.root().join("served"));
        shell.env("VARNISHADM", &self.varnishadm);
        shell.env("CLI", varnish.port("Varnish CLI").expect("a port").to_string());
        shell
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, page: &str, command: &str) -> Done {
        self.done(&self.shell(page, command).output().expect("it starts"))
    }

    /// Runs `larder check` on a file of the commands' working directory.
    pub(crate) fn check(&self, file: &str) -> Done {
        let mut check = Command::new(binary().expect("a binary"));
        let output = check.args(["check", file]).current_dir(self.here()).output();
        self.done(&output.expect("it starts"))
    }

    fn done(&self, output: &Output) -> Done {
        let text = |bytes: &[u8]| self.unmapped(&String::from_utf8_lossy(bytes));
        let (printed, said) = (text(&output.stdout), text(&output.stderr));
        Done { is_well: output.status.success(), printed, said }
    }

    /// Starts a program that does not end by itself, waits for a line with `word`, and ends it.
    pub(crate) fn begin(&self, page: &str, command: &str, word: &str) -> Done {
        let command = format!("exec {command} 2>&1");
        let mut child =
            self.shell(page, &command).stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = child.stdout.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut printed = String::new();
        let mut is_well = false;
        while !is_well && let Ok(line) = lines.recv_timeout(PATIENCE) {
            is_well = line.contains(word);
            printed.push_str(&format!("{line}\n"));
        }
        // `timeout` forwards this to the command.
        let pid = rustix::process::Pid::from_child(&child);
        _ = rustix::process::kill_process(pid, Signal::TERM);
        _ = child.wait();
        self.folder.file("served", self.unmapped(&printed));
        Done { is_well, printed: self.unmapped(&printed), said: String::new() }
    }

    /// Prepares what a page's commands expect.
    pub(crate) async fn ready(&self, page: &str) {
        self.folder.file("etc/varnish/secret", SECRET);
        fs::write(self.daemon.config_file(), self.file_of(page)).expect("a file");
        if page == "cluster.md" {
            let url = format!("http://{}/page", self.nodes[0].daemon().addr());
            self.run(page, &format!("curl -H 'Host: example.com' {url} {url}"));
            assert!(self.nodes[2].order("drain").await.0);
        }
        // Servers are in their first state, and the next request is a hit, as in the pages.
        let begin = r#"larder purge --all
            varnishadm backend.set_health '*.*' auto
            curl --unix-socket /run/larder/admin.sock -H 'Content-Type: application/json' \
                -d '{"origin": "app", "order": "auto"}' http://localhost/api/v1/origins/order
            curl http://localhost/ http://example.com/ https://example.com/"#;
        self.run("", begin);
        if page == "why-not-cached.md" {
            for path in ["post-1/", "post-1/", "author/admin/", "category/uncategorized/"] {
                self.run(page, &format!("curl http://blog.example/{path}"));
            }
            self.run(page, "logged 'req.url ~ \"^/post-1\" and served == hit'");
        }
    }

    /// The daemon's file for a page: one page reloads what needs a restart.
    fn file_of(&self, page: &str) -> String {
        if page == "operating.md" {
            let text = self.text.replace("workers = 2", "workers = 1");
            return text.replace("\"127.0.0.1:0 tls\"]", "\"127.0.0.1:0 tls\", \"127.0.0.2:0\"]");
        }
        self.text.clone()
    }

    /// A certificate and its key, as settings name them.
    pub(crate) fn pair(&self) -> String {
        self.authority.pair("ec")
    }
}

/// Answers of the origin.
fn answer_pages(origin: &ScriptedOrigin, fragments: &str) {
    let html = "Cache-Control: max-age=3600\r\nContent-Type: text/html\r\nETag: \"5f3e\"\r\n\
                Surrogate-Key: product-17\r\n";
    origin.otherwise(Script::ok(html, &"a page ".repeat(200)));
    let own = "Content-Type: text/html\r\nSet-Cookie: sid=1; Path=/\r\n";
    origin.on("/basket", Script::ok(own, "a basket"));
    origin.on("/cart", Script::ok(own, "a cart"));
    let assembled = format!("{html}Surrogate-Control: content=\"ESI/1.0\"\r\n");
    origin.on("/fragments", Script::ok(&assembled, fragments));
    let dictionary = "Cache-Control: max-age=3600\r\nContent-Type: text/javascript\r\n\
                      Use-As-Dictionary: match=\"/js/app.*.js\", match-dest=(\"script\")\r\n";
    origin.on("/js/app.v1.js", Script::ok(dictionary, &"let a = 1;".repeat(200)));
    let bytes = "Cache-Control: max-age=3600\r\nContent-Type: text/html\r\n";
    origin.on("/gen/20", Script::ok(bytes, &"x".repeat(20_000)));
    let list = "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\
                <url><loc>ORIGIN/</loc></url></urlset>";
    let list = list.replace("ORIGIN", &format!("http://{}", origin.addr()));
    origin.on("/sitemap.xml", Script::ok("Content-Type: application/xml\r\n", &list));
}

/// Answers of the application, as a WordPress with plugins does.
fn answer_posts(php: &Application) {
    let page = |fields: &str| {
        ApplicationScript::answer(format!("Content-Type: text/html\r\n{fields}\r\na post"))
    };
    php.otherwise(page(""));
    php.on("/author/admin/", page("Set-Cookie: visitor_id=7; Path=/\r\n"));
    php.on(
        "/category/uncategorized/",
        page("Cache-Control: no-cache, must-revalidate, max-age=0\r\nExpires: Wed, 11 Jan 1984 05:00:00 GMT\r\n"),
    );
}

/// Files that pages name and do not show.
fn write_files(folder: &Folder, origin: &ScriptedOrigin) {
    let port = origin.addr().port();
    let head = format!(
        "vcl 4.1;\nimport std;\n\nbackend app {{\n    .host = \"127.0.0.1\";\n    .port = \"{port}\";\n}}\n"
    );
    let rest = "include \"./conf.d/normalise.vcl\";\nsub vcl_backend_response {\n    \
                return (deliver);\n}\n";
    let faulty = "sub vcl_recv {\n    set req.http.A = \"a\" \"b\";\n}\n";
    let normalise = "sub vcl_recv {\n    if (req.url == \"/cart\") {\n        \
                     std.log(\"class:personal\");\n        return (pass);\n    }\n}\n";
    for place in ["etc/varnish", "here"] {
        folder.file(&format!("{place}/default.vcl"), format!("{head}{rest}"));
        folder.file(&format!("{place}/conf.d/normalise.vcl"), normalise);
    }
    folder.file("here/faulty/default.vcl", format!("{head}{faulty}"));
    folder.file("etc/larder/conf.d/normalise.vcl", normalise);
    let steps = ["recv", "backend_response", "deliver"];
    let subs = steps
        .map(|step| format!("sub vcl_{step} {{\n    if (now > now) {{ return (fail); }}\n}}\n"));
    folder.file("etc/larder/extra.vcl", format!("vcl 4.1;\n{}", subs.concat()));
    let page = "vcl 4.1;\nsub vcl_backend_response {\n    set beresp.do_esi = true;\n}\n";
    folder.file("here/faulty/extra.vcl", page);
    folder.file("etc/varnish/secret", SECRET);
    folder.file("here/error.html", "<h1>Down</h1>\n");
    let hash = "$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00";
    folder.file("here/ann.users", format!("ann:{hash}\n"));
    folder.file("here/crawlers.list", "tool our-monitor Status Check/\n");
    let key = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    folder.file("here/keys.json", format!("{{\"keys\":[{key}]}}"));
    folder.file("here/addresses.json", "{\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\"}]}");
    folder.file("here/redirects.txt", "/old /new\n");
    folder.file("here/countries.mmdb", testkit::geoip::database(&[]));
    folder.file("here/own.token", "0123456789abcdef0123456789abcdef\n");
    let owner = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.path().join("here/own.token"), owner).expect("a mode");
    folder.file("here/list", "/a\n/b\n");
    let log =
        "192.0.2.1 - - [22/Nov/2026:09:46:40 +0000] \"GET /a HTTP/1.1\" 200 7 \"-\" \"curl\"\n";
    folder.file("var/log/nginx/access.log", log.repeat(3));
    for name in ["run/php", "var/log/larder", "serve/run/larder", "serve/dev/shm", "work"] {
        fs::create_dir_all(folder.path().join(name)).expect("a folder");
    }
    folder.file("srv/wordpress/index.php", "<?php");
    for root in ["var/www/html", "var/www/wordpress"] {
        folder.file(&format!("{root}/wp-includes/version.php"), "<?php");
        folder.file(&format!("{root}/wp-content/index.php"), "<?php");
    }
    folder.link("monday.json", "here/tuesday.json");
}

/// The daemon's file, with a site for each host of the pages.
fn configuration(
    folder: &Folder,
    authority: &Authority,
    origin: &ScriptedOrigin,
    php: &Application,
    film: &LargeFile,
) -> String {
    let root = folder.path().display();
    let (app, php, film, pair) = (origin.addr(), php.addr(), film.addr(), authority.pair("ec"));
    format!(
        r#"listen = ["127.0.0.1:0", "127.0.0.1:0 tls"]
workers = 2
tls = {{ {pair} }}
varnish_cli = {{ listen = "127.0.0.1:0", secret = "{root}/etc/varnish/secret" }}
[admin]
listen = "127.0.0.1:0"
audit = "{root}/var/log/larder/changes.log"
[[neighbour]]
origin = "http://{app}"
dialect = "purge"
[[origin]]
name = "app"
servers = "http://{app}"
eject = {{ failures = 0 }}
[[origin]]
name = "php"
servers = "fastcgi://{php}"
root = "{root}/srv/wordpress"
eject = {{ failures = 0 }}
[[site]]
host = ["example.com", "www.example.com", "example.org", "localhost", "127.0.0.1"]
origin = "app"
server_timing = true
[[site.route]]
path = "/cart"
cache = false
[[site]]
host = "films.example"
origin = "http://{film}"
[[site]]
host = "blog.example"
origin = "php"
preset = "wordpress"
[[site]]
host = "*"
vcl = "{root}/etc/varnish/default.vcl"
"#
    )
}

/// A daemon with the program for all hosts.
fn varnish(folder: &Folder, authority: &Authority) -> Daemon {
    let root = folder.path().display();
    let text = format!(
        "listen = [\"127.0.0.1:0\", \"127.0.0.1:0 tls\"]\nworkers = 1\n\
         vcl = \"{root}/etc/varnish/default.vcl\"\ntls = {{ {} }}\n\
         varnish_cli = {{ listen = \"127.0.0.1:0\", secret = \"{root}/etc/varnish/secret\" }}\n\
         [[site]]\nhost = \"*\"\n",
        authority.pair("ec"),
    );
    Daemon::start(&text).expect("larder starts")
}

/// Three nodes that know each other.
async fn cluster(folder: &Folder, nats: &Nats, origin: &ScriptedOrigin) -> Vec<Node> {
    let secret = folder.path().join("etc/varnish/secret");
    let cluster = format!("secret_file = \"{}\"", secret.display());
    let wanted = Wanted { cluster: &cluster, host: "*", ..PLAIN };
    let nodes: Vec<Node> =
        ["web-1", "web-2", "web-3"].map(|name| Node::start(name, nats, origin, wanted)).into();
    all_joined(&nodes).await;
    nodes
}
