//! A real PHP-FPM behind Larder.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support;

use support::{PATIENCE, eventually, is_hit, pattern, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::reply::{Reply, ReplyOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The site's scripts.
const FILES: &[(&str, &str)] = &[
    (
        "index.php",
        r#"<?php header('Cache-Control: no-store'); header('Content-Type: application/json');
           echo json_encode($_SERVER + ['get' => $_GET]);"#,
    ),
    (
        "echo.php",
        r#"<?php $in = file_get_contents('php://input');
           echo strlen($in), ' ', md5($in), ' ', $_SERVER['CONTENT_LENGTH'];"#,
    ),
    (
        "form.php",
        r#"<?php echo $_POST['name'] ?? '', ' ';
           if (isset($_FILES['f'])) { echo md5_file($_FILES['f']['tmp_name']); }"#,
    ),
    (
        "page.php",
        r#"<?php header('Cache-Control: max-age=300'); header('ETag: "p"'); echo uniqid();"#,
    ),
    (
        "large.php",
        r#"<?php header('Cache-Control: max-age=300');
           for ($i = 0; $i < 2000; $i++) { echo str_repeat(chr(97 + $i % 26), 1000); flush(); }"#,
    ),
    (
        "odd.php",
        r#"<?php switch ($_GET['do']) {
             case 'redirect': header('Location: /elsewhere'); break;
             case 'teapot': http_response_code(418); echo 'short and stout'; break;
             case 'log': error_log('something to say'); echo 'said'; break;
             case 'short': header('Content-Length: 100'); echo 'short'; break;
             case 'long': header('Content-Length: 5'); echo 'short and more'; break;
             case 'cookies': setcookie('a', '1'); setcookie('b', '2'); break;
             case 'die': header('Cache-Control: max-age=300'); echo 'begin'; flush();
               posix_kill(getmypid(), 9); sleep(5);
           }"#,
    ),
    (
        "events.php",
        r#"<?php header('Content-Type: text/event-stream'); while (ob_get_level()) ob_end_flush();
           for ($i = 0; $i < 3; $i++) {
             echo "data: $i\n\n"; flush();
             for ($n = 0; $n < 3000 && !file_exists(__DIR__ . "/uploads/seen$i"); $n++) {
               usleep(10000); clearstatcache();
             }
           }"#,
    ),
    (
        "auth.php",
        r#"<?php echo $_SERVER['PHP_AUTH_USER'] ?? '', ':', $_SERVER['PHP_AUTH_PW'] ?? '';"#,
    ),
    ("uploads/x.jpg", r#"<?php echo 'executed';"#),
];

/// PHP-FPM with its own pool and folder, both removed with it.
struct Fpm {
    child: Child,
    folder: PathBuf,
}

impl Fpm {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
        let site = folder.join("site");
        for (file, text) in FILES {
            let path = site.join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let config = folder.join("fpm.conf");
        let socket = folder.join("fpm.sock");
        let here = folder.display();
        let text = format!(
            "[global]\nerror_log = {here}/fpm.log\ndaemonize = no\n[www]\nlisten = {here}/fpm.sock\n\
             pm = static\npm.max_children = 4\nping.path = /ping\nclear_env = no\n\
             php_admin_value[error_log] =\nphp_admin_flag[log_errors] = on\n\
             php_admin_value[post_max_size] = 64M\nphp_admin_value[upload_max_filesize] = 64M\n\
             security.limit_extensions = .php .jpg\n"
        );
        fs::write(&config, text).expect("a file");
        let binary = binary();
        let mut command = Command::new(&binary);
        // As root, PHP-FPM needs a user for its workers, or this flag.
        command.arg("--nodaemonize").arg("--allow-to-run-as-root").arg("--fpm-config").arg(&config);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let fpm = Self { child, folder };
        let mut waited = std::time::Duration::ZERO;
        while UnixStream::connect(&socket).is_err() {
            let log = fs::read_to_string(fpm.folder.join("fpm.log")).unwrap_or_default();
            assert!(waited < PATIENCE, "php-fpm does not listen: {log}");
            waited += std::time::Duration::from_millis(20);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        fpm
    }

    fn site(&self) -> PathBuf {
        fs::canonicalize(self.folder.join("site")).expect("a folder")
    }
}

impl Drop for Fpm {
    fn drop(&mut self) {
        // Its workers end with the master if that gets TERM instead of KILL. The child has not been
        // waited for, so its id cannot belong to another process.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// PHP-FPM, whatever the version in its name.
fn binary() -> PathBuf {
    let mut found: Vec<_> = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_fpm(path))
        .collect();
    found.sort();
    found.pop().expect("php-fpm is missing: scripts/setup.sh basic installs it")
}

fn is_fpm(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("php-fpm"))
}

struct Stage {
    fpm: Fpm,
    daemon: Daemon,
}

impl Stage {
    fn new(name: &str, origin: &str) -> Self {
        Self::of_site(name, origin, "")
    }

    fn of_site(name: &str, origin: &str, site: &str) -> Self {
        let fpm = Fpm::start(name);
        let file = format!(
            "listen = \"127.0.0.1:0\"\nworkers = 2\n[[origin]]\nname = \"php\"\n\
             servers = \"fastcgi+unix:{0}/fpm.sock\"\nroot = \"{0}/site\"\n{origin}\n\
             [[site]]\nhost = \"*\"\norigin = \"php\"\n{site}\n",
            fpm.folder.display()
        );
        let daemon = Daemon::start(&file).expect("larder starts");
        Self { fpm, daemon }
    }

    async fn seen(&self, method: &str, bytes: &[u8]) -> ReplyOutcome {
        let connected = RawClient::connect(self.daemon.addr()).await;
        let mut raw = connected.expect("a connection").patience(PATIENCE);
        raw.send(bytes, WriteSplit::Whole).await.expect("the request is taken");
        raw.reply(method).await
    }

    async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        whole(self.seen(method, &request(method, target, fields)).await, target)
    }

    async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }

    async fn post(&self, target: &str, fields: &str, body: &[u8]) -> Reply {
        let length = format!("Content-Length: {}\r\n{fields}", body.len());
        let head = request("POST", target, &length);
        whole(self.seen("POST", &[&head, body].concat()).await, target)
    }
}

/// A member of the JSON object that `index.php` writes.
fn member(reply: &Reply, name: &str) -> String {
    let text = reply.text();
    let rest = text.split(&format!("\"{name}\":\"")).nth(1).unwrap_or_default();
    rest.split('"').next().unwrap_or_default().replace("\\/", "/")
}

#[tokio::test]
async fn php_sees_the_request_as_it_was_made() {
    let stage = Stage::new("fpm-server", "");
    let reply = stage.ask("GET", "/index.php/a/b?x=1", "X-Two: 2\r\n").await;
    assert_eq!(reply.field("content-type").as_deref(), Some("application/json"));
    let root = stage.fpm.site().display().to_string();
    for (name, value) in [
        ("SCRIPT_NAME", "/index.php"),
        ("SCRIPT_FILENAME", &format!("{root}/index.php")),
        ("PATH_INFO", "/a/b"),
        ("PHP_SELF", "/index.php/a/b"),
        ("DOCUMENT_ROOT", &root),
        ("REQUEST_URI", "/index.php/a/b?x=1"),
        ("HTTP_HOST", "larder.test"),
        ("HTTP_X_TWO", "2"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("x", "1"),
    ] {
        assert_eq!(member(&reply, name), value, "{name}");
    }
    let front = stage.get("/no/such/page?x=2").await;
    assert_eq!(member(&front, "SCRIPT_NAME"), "/index.php");
    assert_eq!(member(&front, "REQUEST_URI"), "/no/such/page?x=2");
    assert_eq!(member(&front, "PATH_INFO"), "");
    let auth = stage.ask("GET", "/auth.php", "Authorization: Basic YTpi\r\n").await;
    assert_eq!(auth.text(), "a:b");
}

#[tokio::test]
async fn php_reads_forms_and_uploads() {
    let stage = Stage::new("fpm-forms", "");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(stage.post("/form.php", form, b"name=Ada+L").await.text(), "Ada L ");
    let file = pattern(5_000_000);
    let begin = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n";
    let body = [begin.as_bytes(), &file, b"\r\n--b--\r\n"].concat();
    let fields = "Content-Type: multipart/form-data; boundary=b\r\n";
    let sum = stage.post("/form.php", fields, &body).await.text();
    let plain = stage.post("/echo.php", "", &file).await.text();
    assert_eq!(plain.split(' ').nth(1), sum.split(' ').nth(1), "{plain} {sum}");
    assert!(plain.starts_with("5000000 ") && plain.ends_with(" 5000000"), "{plain}");

    let head = request("POST", "/echo.php", "Transfer-Encoding: chunked\r\n");
    let bytes = [&head[..], b"5\r\nhello\r\n0\r\n\r\n"].concat();
    let reply = whole(stage.seen("POST", &bytes).await, "chunked");
    assert_eq!(reply.text(), "5 5d41402abc4b2a76b9719d911017c592 5");
}

#[tokio::test]
async fn php_answers_with_status_location_and_cookies() {
    let stage = Stage::new("fpm-odd", "");
    let redirect = stage.get("/odd.php?do=redirect").await;
    assert_eq!((redirect.status, redirect.field("location").as_deref()), (302, Some("/elsewhere")));
    let teapot = stage.get("/odd.php?do=teapot").await;
    assert_eq!((teapot.status, teapot.text().as_str()), (418, "short and stout"));
    let cookies = stage.get("/odd.php?do=cookies").await;
    assert_eq!(cookies.field("set-cookie").as_deref(), Some("a=1, b=2"));
    assert_eq!(stage.get("/odd.php?do=log").await.text(), "said");
    eventually("it is logged", async || {
        let log = stage.daemon.log();
        log.contains("GET http://larder.test/odd.php?do=log") && log.contains("something to say")
    })
    .await;
    let short = stage.seen("GET", &request("GET", "/odd.php?do=short", "")).await;
    assert!(matches!(short, ReplyOutcome::Truncated(_)), "{short:?}");
    assert_eq!(stage.get("/odd.php?do=long").await.text(), "short");
    for _ in 0..2 {
        let died = stage.seen("GET", &request("GET", "/odd.php?do=die", "")).await;
        assert!(died.complete().is_none_or(|reply| reply.status == 502), "{died:?}");
    }
}

#[tokio::test]
async fn php_pages_are_cached() {
    let stage = Stage::new("fpm-cache", "idle = 1");
    let miss = stage.get("/page.php").await;
    let hit = stage.get("/page.php").await;
    assert_eq!((is_hit(&hit), hit.text()), (true, miss.text()));
    let same = stage.ask("GET", "/page.php", "If-None-Match: \"p\"\r\n").await;
    assert_eq!(same.status, 304);
    let large = stage.get("/large.php").await;
    assert_eq!(large.body.len(), 2_000_000);
    let again = stage.get("/large.php").await;
    assert!(is_hit(&again) && again.body == large.body);
    let part = stage.ask("GET", "/large.php", "Range: bytes=999-1000\r\n").await;
    assert_eq!((part.status, part.text().as_str()), (206, "ab"));
    let head = stage.ask("HEAD", "/index.php", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    // Four workers, and two cores with an idle connection each: no request is locked out.
    for _ in 0..40 {
        assert_eq!(stage.get("/index.php").await.status, 200);
    }
    let reused = stage.daemon.metric("larder_origin_reuse_total", "").await.expect("metrics");
    assert!(reused > 0.0);
}

#[tokio::test]
async fn an_upload_is_never_run_although_php_would() {
    let stage = Stage::new("fpm-safe", "");
    // Unchanged, it is a user's picture.
    let picture = stage.get("/uploads/x.jpg").await;
    assert!(picture.text().starts_with("<?php"));
    assert_eq!(picture.field("content-type").as_deref(), Some("image/jpeg"));
    for target in ["/uploads/x.jpg/y.php", "/uploads/x.jpg%2F.php"] {
        let reply = stage.get(target).await;
        assert!(matches!(reply.status, 403 | 404), "{target}: {}", reply.status);
        assert!(!reply.text().contains("executed"), "{target}");
    }
}

/// Scripts in folders that an application writes to, and one that visitors may request.
const WRITTEN: &[(&str, &[&str], &str)] = &[
    (
        "wordpress",
        &[
            "wp-content/uploads/2026/01",
            "blog/wp-content/uploads",
            "wp-content/blogs.dir/7/files",
            "wp-content/cache/x",
            "wp-content/upgrade",
            "app/uploads",
        ],
        "wp-login.php",
    ),
    (
        "drupal",
        &["sites/default/files", "sites/a.example/private/x", "web/sites/b/files", "vendor/x/src"],
        "core/install.php",
    ),
    ("magento", &["media/catalog", "pub/media/tmp", "static/v1", "var/log"], "get.php"),
    ("mediawiki", &["images/a/ab", "w/images", "cache/l10n"], "load.php"),
];

#[tokio::test]
async fn a_preset_runs_nothing_in_the_folders_that_its_application_writes_to() {
    const EVIL: &str = "<?php echo 'exe', 'cuted';";
    for (preset, folders, own) in WRITTEN {
        let site = format!("preset = {preset:?}");
        let stage = Stage::of_site(&format!("fpm-{preset}"), "", &site);
        let put = |file: String| {
            let path = stage.fpm.site().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, EVIL).expect("a file");
        };
        put((*own).to_owned());
        assert_eq!(stage.get(&format!("/{own}")).await.text(), "executed", "{preset}");
        for folder in *folders {
            for name in ["x.php", "index.php", "x.PHP", "x.phtml", "x.phar", "x.php5", "x.jpg"] {
                put(format!("{folder}/{name}"));
            }
            let slashes = format!("//{}", folder.replace('/', "//"));
            let coded = folder.replace('/', "%2f");
            for target in [
                format!("/{folder}/x.php"),
                format!("/{folder}/"),
                format!("/{folder}/x.php/a.jpg"),
                format!("/{folder}/x.jpg/a.php"),
                format!("/{folder}/x.jpg/x.php"),
                format!("/{folder}/x.jpg%2fx.php"),
                format!("/{folder}/x.jpg%00.php"),
                format!("/{folder}/x.jpg%0a.php"),
                format!("/{folder}/x%2ephp"),
                format!("/{folder}/%78.php?a"),
                format!("/{folder}/x.php;a"),
                format!("/{folder}/x.php."),
                format!("/{folder}/x.php%20"),
                format!("/{folder}/./x.php"),
                format!("/x/../{folder}/x.php"),
                format!("/{coded}%2fx.php"),
                format!("{slashes}//x.php"),
                format!("/{folder}/x.PHP"),
                format!("/{folder}/x.phtml"),
                format!("/{folder}/x.phar"),
                format!("/{folder}/x.php5"),
                format!("/{own}/../{folder}/x.php"),
            ] {
                let text = stage.get(&target).await.text();
                assert!(!text.contains("executed"), "{preset}: {target} runs");
                assert!(!text.contains("<?php"), "{preset}: {target} shows its source");
            }
        }
    }
}

#[tokio::test]
async fn an_origin_adds_to_what_its_preset_bars_or_takes_it_back() {
    let runs = async |origin: &str| {
        let site = "preset = \"wordpress\"";
        let stage = Stage::of_site(&format!("fpm-own{}", origin.len()), origin, site);
        let mut runs = Vec::new();
        for folder in ["wp-content/uploads", "own", "plain"] {
            let path = stage.fpm.site().join(folder);
            fs::create_dir_all(&path).expect("a folder");
            fs::write(path.join("x.php"), "<?php echo 'run';").expect("a file");
            runs.push(stage.get(&format!("/{folder}/x.php")).await.text() == "run");
        }
        runs
    };
    assert_eq!(runs("").await, [false, true, true]);
    assert_eq!(runs("no_scripts = \"/own\"").await, [false, false, true]);
    assert_eq!(runs("no_scripts = false").await, [true, true, true]);
}

#[tokio::test]
async fn what_php_flushes_reaches_the_client_at_once() {
    let stage = Stage::new("fpm-events", "");
    let mut client = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    client.write_all(&request("GET", "/events.php", "")).await.expect("sent");
    let mut received = String::new();
    for number in 0..3 {
        let event = format!("data: {number}\n\n");
        while !received.contains(&event) {
            let mut bytes = [0; 4096];
            let read = timeout(PATIENCE, client.read(&mut bytes)).await.expect("in time");
            let read = read.expect("bytes");
            assert!(read > 0, "the end after {received}");
            received.push_str(std::str::from_utf8(&bytes[..read]).expect("ASCII"));
        }
        assert!(!received.contains(&format!("data: {}", number + 1)), "{received}");
        // The script continues once the client has received it.
        let seen = stage.fpm.site().join(format!("uploads/seen{number}"));
        std::fs::write(seen, "").expect("a file");
    }
}

#[tokio::test]
async fn php_fpm_answers_its_probe() {
    let probe = "probe = { path = \"/ping\", interval = \"100ms\", window = 1, threshold = 1 }";
    let stage = Stage::new("fpm-probe", probe);
    eventually("it is well", async || stage.get("/page.php").await.status == 200).await;
}
