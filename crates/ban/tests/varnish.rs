//! Comparison with varnishd, where it is installed: both accept and reject equal expressions.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ban::Expression;

/// Expressions on which both agree.
const AGREED: &[&str] = &[
    "req.url == /a",
    "req.url != /a",
    "req.url ~ ^/a/",
    "req.url !~ ^/a/",
    "req.url ~ \\\\.png$",
    "req.url ~ \"\\\\.png$\"",
    "req.url ~ \\.png$",
    "req.url ~ \"a",
    "req.url ~ \"a\"b",
    "req.url ~ \"\"",
    "req.url == \"a\\x41\\101\"",
    "req.url == \"a\\q\"",
    "req.url == a\\ b",
    "req.url == a b",
    "req.url == a#b",
    "\treq.url\t==\ta\t",
    "req.http.host == example.org",
    "req.http.Host == example.org",
    "req.http == a",
    "REQ.URL == /a",
    "Req.Http.Host == a",
    "obj.status == 200",
    "obj.status != 200",
    "obj.status == abc",
    "obj.status ~ ^5",
    "obj.status !~ 2..",
    "obj.status ~ (",
    "obj.status >= 500",
    "obj.status < 300",
    "obj.http.x == a",
    "obj.http.X-Tags ~ (^|,)a(,|$)",
    "obj.http.x-y_z == a",
    "obj.http. == a",
    "obj.http.x > 5",
    "obj.httpx == a",
    "obj.age > 1d",
    "obj.age > 1.5h",
    "obj.age > .5s",
    "obj.age > 1.s",
    "obj.age > -1s",
    "obj.age > +1s",
    "obj.age > 1e3s",
    "obj.age > 0x1s",
    "obj.age > 1",
    "obj.age > s",
    "obj.age > 1S",
    "obj.age > 1ss",
    "obj.age > 1 s",
    "obj.age > 1.1.1s",
    "obj.age > 99999999999999999999y",
    "obj.age == 1y",
    "obj.age != 1y",
    "obj.age ~ 1s",
    "obj.ttl <= 10m",
    "obj.ttl > 10ms",
    "obj.grace < 1h",
    "obj.keep >= 2w",
    "obj.hits > 3",
    "obj.size > 1",
    "client.ip == 192.0.2.1",
    "req.method == GET",
    "",
    "req.url",
    "req.url ==",
    "req.url = a",
    "req.url === a",
    "req.url ! a",
    "req.url > a",
    "req.url ~ (",
    "req.url ~ [",
    "req.url ~ *",
    "req.url ~ (?i)abc",
    "req.url ~ a(?#b)c",
    "req.url ~ a(?#b",
    "req.url ~ (?>a)b",
    "req.url ~ (?>\\\\.(?>png|jpe?g))(?#the_end)$",
    "req.url ~ ^/a/(?>b+)",
    "req.url ~ (?>a",
    "req.url == a &&",
    "req.url == a && req.url",
    "req.url == a && && req.url == b",
    "req.url == a & req.url == b",
    "req.url == a &&req.url == b",
    "req.url == a || req.url == b",
    "req.url == a && obj.status == 200 && obj.http.x ~ y && obj.age > 1h",
];

/// Expressions that only varnishd accepts, with the reason for which they are rejected here.
const ONLY_VARNISH: &[&str] = &[
    // Other request fields are not stored with a response.
    "req.http.cookie ~ a",
    // Varnish compares only a prefix of a field's name.
    "req.urlx == a",
    "obj.statusx == a",
    // Matching would not take linear time.
    "req.url ~ (?=a)b",
    "req.url ~ (?>a+)b",
    "req.url ~ (a)\\\\1",
];

/// Expressions that only Larder accepts.
const ONLY_LARDER: &[&str] = &[
    // varnishd's manager passes a quoted argument to its child without the quotes.
    "req.url ~ \"a b\"",
    // Here the size of the compiled expression limits repetition, not a fixed count.
    "req.url ~ a{100000}",
];

struct Varnish(Child, std::path::PathBuf);

impl Varnish {
    fn start() -> Option<Self> {
        let dir = std::env::temp_dir().join(format!("ban-varnish-{}", std::process::id()));
        std::fs::create_dir_all(&dir).ok()?;
        let vcl = dir.join("none.vcl");
        std::fs::write(&vcl, "vcl 4.1;\nbackend default none;\n").ok()?;
        let started = Command::new("varnishd")
            .args(["-F", "-s", "malloc,10m", "-a", "127.0.0.1:0", "-n"])
            .arg(dir.join("work"))
            .arg("-f")
            .arg(&vcl)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            _ = std::fs::remove_dir_all(&dir);
            return None;
        };
        let varnish = Self(child, dir);
        let begun = Instant::now();
        while varnish.ask("ban obj.status == 999").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "varnishd does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(varnish)
    }

    /// Returns varnishd's answer to a command; `None` if varnishd does not take the command.
    fn ask(&self, command: &str) -> Option<String> {
        let mut adm = Command::new("varnishadm")
            .arg("-n")
            .arg(self.1.join("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("varnishadm comes with varnishd");
        let mut stdin = adm.stdin.take().expect("piped");
        // A varnishd that has already exited does not read the command.
        _ = writeln!(stdin, "{command}\nquit");
        drop(stdin);
        let output = adm.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && said.is_empty()).then_some(said)
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        // SIGTERM also ends varnishd's child process.
        _ = Command::new("kill").arg(self.0.id().to_string()).status();
        _ = self.0.wait();
        _ = std::fs::remove_dir_all(&self.1);
    }
}

#[test]
fn varnishd_accepts_and_refuses_the_same() {
    let Some(varnish) = Varnish::start() else { return eprintln!("skipped: no varnishd") };
    let theirs = |text: &str| varnish.ask(&format!("ban {text}")).is_some();
    let ours = |text: &str| Expression::parse(text).is_ok();
    let differ: Vec<_> = AGREED.iter().filter(|text| theirs(text) != ours(text)).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    for text in ONLY_VARNISH {
        assert!(theirs(text) && !ours(text), "{text}");
    }
    for text in ONLY_LARDER {
        assert!(ours(text) && !theirs(text), "{text}");
    }
}
