//! Tests of certificates that Varnish's CLI loads, stages, activates and removes, as Varnish 9
//! does.

use crate::support;

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::geteuid;
use serde_json::Value;
use support::Setup;
use support::cli::Cli;
use support::serve::{Serve, vcl};
use support::tls::{Authority, Kind, certificate};
use testkit::origin::{Script, ScriptedOrigin};

/// Handshakes one after another: with several cores, each core serves some.
const HANDSHAKES: usize = 8;

/// A daemon with a TLS listener, its CLI, and files of certificates.
struct Scene {
    authority: Authority,
    serve: Serve,
    at: SocketAddr,
    cli: Cli,
    _origin: ScriptedOrigin,
}

impl Scene {
    /// A scene without certificates. A client that connects to 127.0.0.1 sends no name.
    async fn start() -> Self {
        Self::start_with(Authority::new(), &[]).await
    }

    async fn start_with(authority: Authority, more: &[&str]) -> Self {
        let origin = ScriptedOrigin::start().await.expect("an origin");
        origin.on("/page", Script::ok("Cache-Control: max-age=60\r\n", "a page"));
        let flags = [&["-a", "127.0.0.1:0,https"], more].concat();
        let mut serve = Serve::start(&vcl(&origin, ""), &flags);
        let at = serve.secure();
        let cli = serve.cli().await;
        Self { authority, serve, at, cli, _origin: origin }
    }

    /// Writes `<file>.pem` with a certificate for `names`, followed by its key.
    fn write(&self, file: &str, names: &[&str]) -> String {
        write(&self.authority, file, names)
    }

    fn certificate(&self, file: &str) -> Vec<u8> {
        certificate(Path::new(&self.authority.path(&format!("{file}.pem"))))
    }

    /// Asserts that each new client that names `host` gets the certificate of `file`.
    async fn shows(&self, host: &str, file: &str) {
        for _ in 0..HANDSHAKES {
            // A client of its own: a resumed session presents no certificate.
            let shown = self.authority.client().connect(self.at, host).await.shown();
            assert!(shown == self.certificate(file), "{host} is not shown {file}");
        }
    }

    /// Asserts that a client that names `host` gets no session, for the reason `why`.
    async fn refuses(&self, host: &str, why: &str) {
        for _ in 0..HANDSHAKES {
            let tried = self.authority.client().try_connect(self.at, host).await;
            let refused = tried.err().expect("no session").to_string();
            assert!(refused.contains(why), "{host}: {refused}");
        }
    }

    async fn done(&mut self, command: &str) {
        assert_eq!(self.cli.ask(command).await, (200, String::new()), "{command}");
    }

    /// Asserts that `command` fails, with its message.
    async fn cannot(&mut self, command: &str, why: &str) {
        let (status, said) = self.cli.ask(command).await;
        assert!(status == 300 && said.starts_with(why), "{command}: {status} {said}");
    }

    /// Frontends, ids and states of all certificates.
    async fn listed(&mut self) -> Vec<[String; 3]> {
        let (status, list) = self.cli.ask("tls.cert.list").await;
        assert_eq!(status, 200);
        let row = |line: &str| {
            let words: Vec<_> = line.split('\t').collect();
            assert_eq!(words.len(), 4, "{line}");
            std::array::from_fn(|at| words[at].to_owned())
        };
        list.lines().map(row).collect()
    }
}

fn write(authority: &Authority, file: &str, names: &[&str]) -> String {
    let (chain, key) = authority.make(names, Kind::Elliptic, false);
    let file = format!("{file}.pem");
    authority.put(&file, &format!("{chain}{key}"));
    authority.path(&file)
}

fn rows(of: &[[&str; 3]]) -> Vec<[String; 3]> {
    of.iter().map(|row| row.map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_start_without_a_certificate_refuses_clients_until_one_is_committed() {
    let mut scene = Scene::start().await;
    assert!(scene.serve.has_said("there is no certificate: TLS clients are refused"));
    scene.refuses("a.test", "UnrecognisedName").await;
    let a = scene.write("a", &["a.test", "127.0.0.1"]);
    scene.done(&format!("tls.cert.load {a}")).await;
    scene.refuses("a.test", "UnrecognisedName").await;
    scene.done("tls.cert.commit").await;
    scene.shows("a.test", "a").await;
    let reply = scene.authority.client().get(scene.at, "a.test", "/page").await;
    assert_eq!((reply.status, reply.text()), (200, "a page".into()));
    scene.shows("127.0.0.1", "a").await;
    scene.done("tls.cert.discard cert0").await;
    scene.done("tls.cert.commit").await;
    scene.refuses("a.test", "UnrecognisedName").await;
}

#[tokio::test]
async fn names_choose_among_certificates_and_discarded_ones_are_gone() {
    let mut scene = Scene::start().await;
    let a = scene.write("a", &["a.test", "www.b.test"]);
    let (chain, key) = scene.authority.make(&["*.b.test", "127.0.0.1"], Kind::Rsa, false);
    scene.authority.put("b.pem", &chain);
    scene.authority.put("b.key", &key);
    let (b, b_key) = (scene.authority.path("b.pem"), scene.authority.path("b.key"));
    scene.done(&format!("tls.cert.load first {a}")).await;
    scene.done(&format!("tls.cert.load second {b} -k {b_key} -d")).await;
    let listed = scene.listed().await;
    assert_eq!(listed, rows(&[["default", "first", "staged"], ["default", "second", "staged"]]));
    scene.done("tls.cert.commit").await;
    scene.shows("a.test", "a").await;
    scene.shows("shop.b.test", "b").await;
    scene.shows("www.b.test", "a").await;
    scene.shows("127.0.0.1", "b").await;
    // A discarded one is presented until the commit.
    scene.done("tls.cert.discard first").await;
    let staged = scene.cli.ask("tls.cert.list -s").await.1;
    assert!(staged.starts_with("default\tfirst\tdiscard\t") && staged.lines().count() == 1);
    scene.shows("a.test", "a").await;
    scene.done("tls.cert.rollback").await;
    let listed = scene.listed().await;
    assert_eq!(listed, rows(&[["default", "first", "active"], ["default", "second", "active"]]));
    scene.done("tls.cert.discard first").await;
    scene.done("tls.cert.commit").await;
    scene.shows("www.b.test", "b").await;
    scene.refuses("a.test", "certificate not valid for name").await;
    let (status, json) = scene.cli.ask("tls.cert.list -j").await;
    let list: Value = serde_json::from_str(&json).expect("JSON");
    let [one] = &list.as_array().expect("an array")[..] else { panic!("{json}") };
    assert_eq!((status, &one["id"], &one["status"]), (200, &"second".into(), &"active".into()));
    assert_eq!((&one["frontend"], &one["default"]), (&"default".into(), &true.into()));
    assert_eq!((&one["names"][0], &one["file"]), (&"*.b.test".into(), &b.into()));
}

#[tokio::test]
async fn a_bad_file_is_named_and_nothing_that_serves_is_lost() {
    let mut scene = Scene::start().await;
    let a = scene.write("a", &["a.test"]);
    scene.done(&format!("tls.cert.load own {a}")).await;
    scene.done("tls.cert.commit").await;
    let other = scene.write("other", &["other.test"]);
    let (late, late_key) = scene.authority.make(&["a.test"], Kind::Elliptic, true);
    scene.authority.put("late.pem", &format!("{late}{late_key}"));
    scene.authority.put("junk.pem", "junk");
    scene.authority.put("long.pem", &"x".repeat(300 << 10));
    let file = |name: &str| scene.authority.path(name);
    let (late, junk, long, none) =
        (file("late.pem"), file("junk.pem"), file("long.pem"), file("none.pem"));
    for (arguments, why) in [
        (none.clone(), format!("{none}: No such file or directory")),
        (junk.clone(), format!("{junk}: there is no certificate in it")),
        (late.clone(), format!("{late}: the certificate has expired")),
        (long.clone(), format!("{long}: it has more than 256KiB")),
        (format!("{a} -k {other}"), format!("{other}: the key does not belong to the certificate")),
        ("/dev/zero".to_owned(), "/dev/zero: it is no file".to_owned()),
        (format!("own {other}"), "Id: \"own\" already exists".to_owned()),
        (format!("{other} -f a0"), "Frontend 'a0' not found".to_owned()),
        (format!("{other} -x"), "Unknown TLS option: -x".to_owned()),
        (format!("{other} -k"), "No value specified for: -k".to_owned()),
    ] {
        scene.cannot(&format!("tls.cert.load {arguments}"), &why).await;
    }
    scene.cannot("tls.cert.discard nothing", "ID not found").await;
    assert_eq!(scene.listed().await, rows(&[["default", "own", "active"]]));
    scene.shows("a.test", "a").await;
    let (status, said) = scene.cli.ask(&format!("tls.cert.load {other} -f a1 -p TLSv1.3")).await;
    assert!(status == 200 && said.starts_with("-p is without effect"), "{said}");
    assert_eq!(scene.listed().await[1], ["a1", "cert0", "staged"].map(str::to_owned));
}

#[tokio::test]
async fn files_are_read_again_on_request_all_or_none() {
    let mut scene = Scene::start().await;
    let (a, b) = (scene.write("a", &["a.test"]), scene.write("b", &["b.test"]));
    scene.done(&format!("tls.cert.load one {a}")).await;
    scene.done(&format!("tls.cert.load two {b}")).await;
    scene.cannot("tls.cert.reload", "There are staged changes").await;
    scene.done("tls.cert.commit").await;
    let old = scene.certificate("a");
    scene.write("a", &["a.test"]);
    scene.authority.put("b.pem", "junk");
    scene.cannot("tls.cert.reload", &format!("{b}: there is no certificate in it")).await;
    let shown = scene.authority.client().connect(scene.at, "a.test").await.shown();
    assert_eq!(shown, old);
    scene.write("b", &["b.test"]);
    scene.done("tls.cert.reload").await;
    scene.shows("a.test", "a").await;
    scene.shows("b.test", "b").await;
    // A reload of the daemon keeps loaded certificates.
    scene.serve.signal("-HUP");
    scene.serve.until("configuration reloaded");
    scene.shows("b.test", "b").await;
}

#[tokio::test]
async fn certificates_of_the_file_are_chosen_among_too_and_the_last_is_the_default() {
    let authority = Authority::new();
    let one = write(&authority, "one", &["one.test"]);
    let two = write(&authority, "two", &["two.test", "127.0.0.1"]);
    authority.put("tls.conf", &format!("pem-file = \"{one}\"\npem-file = \"{two}\"\n"));
    let file = authority.path("tls.conf");
    let mut scene = Scene::start_with(authority, &["-A", &file]).await;
    let both = [["default", "cert0", "active"], ["default", "cert1", "active"]];
    assert_eq!(scene.listed().await, rows(&both));
    scene.shows("one.test", "one").await;
    scene.shows("two.test", "two").await;
    scene.shows("127.0.0.1", "two").await;
    let three = scene.write("three", &["three.test", "127.0.0.1"]);
    scene.done(&format!("tls.cert.load {three}")).await;
    scene.done("tls.cert.commit").await;
    scene.shows("three.test", "three").await;
    scene.shows("127.0.0.1", "two").await;
    let four = scene.write("four", &["three.test", "127.0.0.1"]);
    scene.done(&format!("tls.cert.load -d {four}")).await;
    scene.done("tls.cert.discard cert1").await;
    scene.done("tls.cert.commit").await;
    scene.shows("127.0.0.1", "four").await;
    scene.shows("three.test", "four").await;
    scene.refuses("two.test", "certificate not valid for name").await;
    // It stays away when the daemon reads its flags' files again.
    scene.serve.signal("-HUP");
    scene.serve.until("configuration reloaded");
    scene.refuses("two.test", "certificate not valid for name").await;
    scene.shows("one.test", "one").await;
}

#[tokio::test]
async fn commands_of_a_file_load_certificates_before_clients_come() {
    let authority = Authority::new();
    let a = write(&authority, "a", &["a.test"]);
    authority.put("commands", &format!("tls.cert.load own {a}\ntls.cert.commit\n"));
    let file = authority.path("commands");
    let mut scene = Scene::start_with(authority, &["-I", &file]).await;
    scene.shows("a.test", "a").await;
    assert_eq!(scene.listed().await, rows(&[["default", "own", "active"]]));
}

#[tokio::test]
async fn a_file_that_the_daemon_s_user_may_not_read_is_reported_with_the_user() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can start what becomes somebody else");
        return;
    }
    let authority = Authority::new();
    fs::set_permissions(&authority.folder, Permissions::from_mode(0o755)).expect("a mode");
    let own = write(&authority, "own", &["own.test"]);
    let secret = write(&authority, "secret", &["secret.test"]);
    let open = write(&authority, "open", &["open.test"]);
    for (file, mode) in [(&own, 0o600), (&secret, 0o600), (&open, 0o644)] {
        fs::set_permissions(file, Permissions::from_mode(mode)).expect("a mode");
    }
    authority.put("tls.conf", &format!("pem-file = \"{own}\"\n"));
    let file = authority.path("tls.conf");
    let more = ["-A", &file, "-j", "unix,user=nobody"];
    let mut scene = Scene::start_with(authority, &more).await;
    scene.shows("own.test", "own").await;
    let why =
        format!("{secret}: Permission denied (os error 13): larder runs as the user `nobody`");
    scene.cannot(&format!("tls.cert.load {secret}"), &why).await;
    scene.done(&format!("tls.cert.load {open}")).await;
    scene.done("tls.cert.commit").await;
    scene.shows("open.test", "open").await;
    // The files of `-A` are read by the keeper.
    scene.write("own", &["own.test"]);
    fs::set_permissions(&own, Permissions::from_mode(0o600)).expect("a mode");
    scene.done("tls.cert.reload").await;
    scene.shows("own.test", "own").await;
}

#[tokio::test]
async fn limits_of_the_configuration_bound_certificates_and_their_files() {
    let authority = Authority::new();
    authority.sign("site", &["site.test"], Kind::Elliptic);
    let limits = "varnish_cli_certificates = 1\nvarnish_cli_certificate_bytes = \"8KiB\"";
    let pair = authority.pair("site");
    let cli = "{ listen = \"127.0.0.1:0\", secret = \"none\" }";
    let top = format!("tls = {{ {pair} }}\nvarnish_cli = {cli}\n");
    let setup = Setup { top: &top, limits, ..Setup::default() };
    let stage = setup.listening("listen = \"127.0.0.1:0 tls\"").await;
    let at = stage.daemon.addrs()[0];
    let (mut cli, _) = Cli::connect(stage.daemon.port("Varnish CLI").expect("a port")).await;
    let a = write(&authority, "a", &["a.test"]);
    authority.put("long.pem", &"x".repeat(9 << 10));
    let long = cli.ask(&format!("tls.cert.load {}", authority.path("long.pem"))).await;
    assert!(long.0 == 300 && long.1.ends_with("it has more than 8KiB\n"), "{long:?}");
    assert_eq!(cli.ask(&format!("tls.cert.load {a}")).await.0, 200);
    let full = cli.ask(&format!("tls.cert.load {a}")).await;
    assert_eq!(full, (300, "1 certificates are loaded, and no more may be\n".to_owned()));
    assert_eq!(cli.ask("tls.cert.commit").await.0, 200);
    for limit in ["varnish_cli_certificates", "varnish_cli_certificate_bytes"] {
        assert_eq!(stage.limit_hits(limit).await, 1, "{limit}");
    }
    // It is beside those of `larder.toml`.
    for (host, file) in [("a.test", "a.pem"), ("site.test", "site.crt")] {
        let shown = authority.client().connect(at, host).await.shown();
        assert_eq!(shown, certificate(Path::new(&authority.path(file))), "{host}");
    }
}
