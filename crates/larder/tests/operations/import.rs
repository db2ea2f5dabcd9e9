//! Tests of `larder import`: a translated configuration that serves, and responses that are
//! compared.

use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

use crate::support::console::{larder, text};
use crate::support::folder::Folder;
use crate::support::{PATIENCE, Stage, whole};

/// Rules of all kinds.
const RULES: &str = "
map $http_user_agent $bot { default 0; ~*scanner 1; }
geo $far { default 1; 127.0.0.0/8 0; }
server {
    listen 127.0.0.1:0;
    server_name a.test;
    if ($bot) { return 403; }
    if ($far) { return 404; }
    if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }
    set $deny 0;
    if ($arg_token != right) { set $deny 1; }
    if ($uri !~ ^/inner/) { set $deny 0; }
    if ($deny) { return 401; }
    rewrite ^/u/([a-z]+)$ /user?name=$1 last;
    rewrite ^/old/(.*)$ /new/$1 permanent;
    location / { proxy_pass http://ORIGIN; proxy_set_header Host $host; }
    location /beta/ {
        if ($cookie_beta != yes) { return 302 /; }
        rewrite ^/beta/(.*)$ /$1 break;
        proxy_pass http://ORIGIN;
    }
}
";

#[tokio::test]
async fn conditions_of_nginx_hold_in_the_daemon() {
    let origin = ScriptedOrigin::start().await.expect("a port for the origin");
    origin.otherwise(Script::ok("", "by the origin"));
    let folder = Folder::new();
    folder.file("nginx.conf", RULES.replace("ORIGIN", &origin.addr().to_string()));
    let conf = folder.path().join("nginx.conf").display().to_string();
    let toml = folder.path().join("larder.toml").display().to_string();
    let made = larder(&["import", &conf, "-o", &toml]).await;
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let result = std::fs::read_to_string(&toml).expect("the result");
    let daemon = Daemon::start(&result).expect("larder starts");
    for (method, target, fields, status, asked) in [
        ("GET", "/page", "", 200, Some("/page")),
        ("GET", "/page", "User-Agent: A Scanner\r\n", 403, None),
        ("PUT", "/page", "Content-Length: 0\r\n", 405, None),
        ("GET", "/inner/a", "", 401, None),
        ("GET", "/inner/a?token=wrong", "", 401, None),
        ("GET", "/inner/a?token=right", "", 200, Some("/inner/a?token=right")),
        ("GET", "/u/name", "", 200, Some("/user?name=name")),
        ("GET", "/u/name?x=1", "", 200, Some("/user?name=name&x=1")),
        ("GET", "/old/a?b", "", 301, None),
        ("GET", "/beta/a", "", 302, None),
        ("GET", "/beta/a", "Cookie: beta=yes\r\n", 200, Some("/a")),
    ] {
        origin.forget();
        let raw = RawClient::connect(daemon.addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        let bytes = request(method, target, &format!("{fields}Connection: close\r\n"));
        raw.send(&bytes, WriteSplit::Whole).await.expect("the request is taken");
        let reply = whole(raw.reply(method).await, target);
        assert_eq!(reply.status, status, "{method} {target} {fields}\n{result}");
        let expected: Vec<String> = asked.into_iter().map(str::to_owned).collect();
        assert_eq!(origin.targets(), expected, "{method} {target} {fields}");
    }
}

#[tokio::test]
async fn two_servers_are_asked_the_same_and_differences_shown() {
    let (one, other) = (Stage::new().await, Stage::new().await);
    for stage in [&one, &other] {
        stage.origin.on("/same", Script::ok("X-A: 1\r\n", "same"));
        stage.origin.on("/cookie", Script::ok("Set-Cookie: a=1; Path=/\r\n", "cookie"));
    }
    one.origin.on("/page", Script::ok("X-B: 1\r\nX-C: 1\r\n", "first\nold\n"));
    other.origin.on("/page", Script::ok("X-B: 2\r\nX-D: 1\r\n", "first\nnew\n"));
    let folder = Folder::new();
    folder.file("same", "/same\nHEAD /same\n    X-Asked: 1\n/cookie\n");
    folder.file("list", "# all\n/same\n/page\n/missing\n");
    let [old, new] = [&one, &other].map(|stage| format!("http://{}", stage.daemon.addr()));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let same =
        larder(&["import", "--compare", &old, &new, &path("same"), "--host", "a.test"]).await;
    assert_eq!(same.status.code(), Some(0), "{} {}", text(&same.stdout), text(&same.stderr));
    assert!(text(&same.stdout).contains("3 requests: 3 the same, 0 differ"));
    let asked = one.received();
    assert!(asked.iter().all(|own| own.values("host") == [b"a.test"]), "{asked:?}");
    let list = path("list");
    let differs = larder(&["bench", "diff", &old, &new, &list, "--ignore", "x-d"]).await;
    assert_eq!(differs.status.code(), Some(1), "{}", text(&differs.stderr));
    let shown = text(&differs.stdout);
    for line in [
        "GET /page",
        "    x-b: `1` | `2`",
        "    x-c: `1` | (none)",
        "    body: 10 | 10 bytes, line 2: `old` | `new`",
        "3 requests: 2 the same, 1 differ",
    ] {
        assert!(shown.lines().any(|own| own == line), "{line}\n{shown}");
    }
    assert!(!shown.contains("x-d"), "{shown}");
    let gone = larder(&["bench", "diff", &old, "http://127.0.0.1:1", &list]).await;
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stdout).contains("http://127.0.0.1:1: "), "{}", text(&gone.stdout));
    let wrong = larder(&["bench", "diff", &old, &new, "/nowhere"]).await;
    assert_eq!(wrong.status.code(), Some(2));
}
