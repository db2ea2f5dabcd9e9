//! Tests of VCL beside a site's settings: its subroutines run before and after the steps that a
//! preset, routes and PHP declare.

use crate::support;

use std::cell::RefCell;
use std::process::{Command, Output};

use observe::format::{self, FieldPositions};
use observe::ring::{FollowStart, RingFollower};
use serde_json::{Value, json};
use support::console::Ask;
use support::explain::{explain, fact, step};
use support::folder::Folder;
use support::scripts::Stage;
use support::{eventually, is_hit, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::fastcgi::{Act, ApplicationScript};
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

/// WordPress on a PHP stand-in, with a VCL beside the preset.
struct Blog {
    stage: Stage,
    folder: Folder,
}

impl Blog {
    /// Starts it with these subroutines, and more settings of the site.
    async fn start(subs: &str, more: &str) -> Self {
        let folder = Folder::new();
        folder.file("extra.vcl", format!("vcl 4.1;\nimport std;\n{subs}\n"));
        let file = folder.path().join("extra.vcl");
        let site = format!("preset = \"wordpress\"\nvcl = \"{}\"\n{more}", file.display());
        Self { stage: Stage::start("", &site).await, folder }
    }

    async fn get(&self, target: &str) -> Reply {
        self.stage.get(target).await
    }

    async fn ask(&self, target: &str, fields: &str) -> Reply {
        self.stage.ask("GET", target, fields).await
    }

    /// Has PHP answer requests for `uri` with these lines, and a body.
    fn on(&self, uri: &str, lines: &str) {
        let page = format!("Content-Type: text/html\r\n{lines}\r\na page");
        self.stage.app.on(uri, ApplicationScript::answer(page));
    }

    /// The number of requests that PHP has got.
    fn asked(&self) -> usize {
        self.stage.app.asked().len()
    }

    async fn explain(&self, target: &str) -> Value {
        let question = json!({ "url": format!("http://larder.test{target}") });
        explain(&self.stage.daemon, &question).await
    }

    async fn reload(&self) -> Output {
        let socket = self.stage.daemon.admin_socket();
        let mut command = Command::new(binary().expect("the binary"));
        command.arg("reload").arg("--admin-socket").arg(socket);
        let done = tokio::task::spawn_blocking(move || command.output()).await;
        done.expect("no panic").expect("it runs")
    }
}

fn field(reply: &Reply, name: &str) -> String {
    reply.field(name).unwrap_or_default()
}

/// A daemon whose site has these subroutines beside `keys`, and its origin; `top` stands above.
async fn with_subs(top: &str, subs: &str, keys: &str) -> (ScriptedOrigin, Daemon) {
    let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
    folder.file("extra.vcl", format!("vcl 4.1;\n{subs}"));
    let daemon = Daemon::start(&format!(
        "listen = \"127.0.0.1:0\"\n{top}\n[[site]]\nhost = \"*\"\norigin = \"http://{}\"\n\
         vcl = \"{}\"\n{keys}\n",
        origin.addr(),
        folder.path().join("extra.vcl").display()
    ));
    // The program is read at the start.
    (origin, daemon.expect("it starts"))
}

#[tokio::test]
async fn each_subroutine_runs_in_its_place() {
    let subs = r#"
sub vcl_recv {
    set req.http.X-Way = "recv";
    set req.http.Cookie = regsuball(req.http.Cookie, "(^|; ?)wordpress_logged_in_old=[^;]*", "");
}
sub vcl_hash { set req.http.X-Way = req.http.X-Way + " hash"; }
sub vcl_backend_fetch { set bereq.http.X-Way = bereq.http.X-Way + " fetch"; }
sub vcl_backend_response { set beresp.http.X-Way = bereq.http.X-Way + " response"; }
sub vcl_deliver {
    set resp.http.X-Way = resp.http.X-Way + " deliver";
    set resp.http.X-Hits = obj.hits;
    unset resp.http.X-Inner;
}
"#;
    let blog = Blog::start(subs, "response_headers = { set = { X-Inner = \"a\" } }").await;
    // The preset would pass a client that has logged in.
    for hits in ["0", "1", "2"] {
        let reply = blog.ask("/page/", "Cookie: wordpress_logged_in_old=1\r\n").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "by the application"));
        assert_eq!(field(&reply, "x-way"), "recv fetch response deliver");
        assert_eq!((field(&reply, "x-hits").as_str(), reply.field("x-inner")), (hits, None));
    }
    let asked = blog.stage.app.last();
    assert_eq!((asked.param("HTTP_X_WAY"), asked.has("HTTP_COOKIE")), ("recv fetch", false));
    assert_eq!(blog.asked(), 1);
    let page = blog.ask("/wp-admin/", "Cookie: wordpress_logged_in_new=1\r\n").await;
    assert_eq!(page.status, 200);
    assert!(blog.stage.app.last().has("HTTP_COOKIE"), "the preset's rules hold behind it");
}

#[tokio::test]
async fn a_request_is_passed_or_answered_before_the_settings_decide() {
    let subs = r#"
acl inner { "192.0.2.0"/24; }
sub vcl_recv {
    if (req.url ~ "^/campaign") { return (pass); }
    if (req.url == "/closed") { return (synth(403, "Closed")); }
    if (client.ip ~ inner) { return (synth(200, "Inner")); }
}
sub vcl_synth {
    set resp.http.X-Told = resp.reason;
    synthetic("<p>" + resp.reason);
    return (deliver);
}
"#;
    let blog = Blog::start(subs, "").await;
    blog.on("/campaign", "Cache-Control: max-age=60\r\nSet-Cookie: seen=1\r\n");
    for _ in 0..2 {
        let reply = blog.ask("/campaign", "Cookie: a=1\r\n").await;
        assert!(!is_hit(&reply) && reply.field("set-cookie").is_some());
        assert_eq!(blog.stage.app.last().param("HTTP_COOKIE"), "a=1");
    }
    assert_eq!(blog.asked(), 2);
    let closed = blog.get("/closed").await;
    assert_eq!((closed.status, closed.text().as_str()), (403, "<p>Closed"));
    assert_eq!(field(&closed, "x-told"), "Closed");
    // A client cannot name itself: no proxy is trusted.
    let forged = blog.ask("/closed-not", "X-Forwarded-For: 192.0.2.1\r\n").await;
    assert_eq!(forged.text(), "by the application");
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_has_its_own_address() {
    let subs = r#"
acl inner { "192.0.2.0"/24; }
sub vcl_recv { if (client.ip ~ inner) { return (synth(200, "Inner")); } }
"#;
    let (origin, daemon) = with_subs("trusted_proxies = [\"127.0.0.0/8\"]", subs, "").await;
    origin.on("/", Script::cacheable("a page"));
    let named = async |address: &str| {
        let fields = format!("X-Forwarded-For: {address}\r\n");
        get_from(&daemon, "a.test", "/", &fields).await
    };
    assert_eq!(named("192.0.2.7").await.status, 200);
    assert_eq!(origin.seen("/"), 0, "it was answered");
    assert_eq!(named("198.51.100.7").await.text(), "a page");
}

#[tokio::test]
async fn the_vcl_sees_no_forged_field_and_changes_neither_client_nor_scheme() {
    let subs = r#"
sub vcl_recv {
    set req.http.X-Saw = req.http.X-Real-IP + req.http.X-SSL-Client-Verify + req.http.Remote-User
        + req.http.CF-Connecting-IP + req.http.Client-Cert + req.http.X-Forwarded-For;
    set req.http.X-Forwarded-For = "192.0.2.9";
    set req.http.X-Forwarded-Proto = "https";
}
sub vcl_deliver { set resp.http.X-Saw = req.http.X-Saw; }
"#;
    let (origin, daemon) = with_subs("trusted_proxies = [\"127.0.0.0/8\"]", subs, "").await;
    origin.otherwise(Script::mirror(""));
    let forged = "X-Real-IP: 1\r\nX-SSL-Client-Verify: 2\r\nRemote-User: 3\r\n\
                  CF-Connecting-IP: 4\r\nClient-Cert: 5\r\nX-Forwarded-For: 203.0.113.1\r\n";
    let reply = get_from(&daemon, "a.test", "/a", forged).await;
    assert_eq!(field(&reply, "x-saw"), "203.0.113.1, 127.0.0.1", "the chain of trusted proxies");
    let asked = reply.text().to_ascii_lowercase();
    for line in ["x-real-ip: 203.0.113.1", "x-forwarded-proto: http"] {
        assert!(asked.lines().any(|own| own == line), "{line}: {asked}");
    }
}

#[tokio::test]
async fn limits_of_a_path_count_what_the_vcl_leads_to_it() {
    let subs = r#"
sub vcl_recv {
    set req.url = regsub(req.url, "^/alias/", "/login/");
}
"#;
    let rate = "rate = { requests = \"1/h\", burst = 1, path = [\"/login/*\"] }";
    let blog = Blog::start(subs, rate).await;
    let mut statuses = Vec::new();
    for target in ["/alias/a", "/free", "/login/b", "/alias/c", "/login/d", "/free"] {
        statuses.push(blog.get(target).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429, 200]);
    let told = blog.explain("/alias/a").await;
    assert!(told["outcome"]["summary"].to_string().contains("429"), "{told}");
}

#[tokio::test]
async fn a_client_that_the_vcl_leads_to_a_rate_keeps_its_share_when_it_is_faster() {
    let subs = "sub vcl_recv { set req.url = regsub(req.url, \"^/alias/\", \"/login/\"); }";
    let rate = "rate = { requests = \"2/s\", burst = 0, queue = 1000, path = \"/login/*\" }";
    let blog = Blog::start(subs, rate).await;
    assert_eq!(blog.get("/alias/a").await.status, 200);
    let told = blog.explain("/alias/a").await;
    assert!(told["outcome"]["summary"].to_string().contains("429"), "{told}");
    for _ in 0..5 {
        assert_eq!(blog.get("/alias/a").await.status, 429, "nothing waits behind vcl_recv");
    }
    eventually("its share", async || blog.get("/alias/a").await.status == 200).await;
}

#[tokio::test]
async fn limits_at_once_count_what_the_vcl_leads_to_a_path_until_its_reply_ends() {
    let subs = "sub vcl_recv { set req.url = regsub(req.url, \"^/alias/\", \"/login/\"); }";
    let blog = Blog::start(subs, "concurrent = { requests = 1, path = \"/login/*\" }").await;
    blog.stage.app.on("/login/a", ApplicationScript::new(vec![Act::Hang]));
    let mut first = RawClient::connect(blog.stage.daemon.addr()).await.expect("a connection");
    let asked = b"GET /alias/a HTTP/1.1\r\nHost: larder.test\r\n\r\n";
    first.send(asked, WriteSplit::Whole).await.expect("sent");
    eventually("the first request", async || blog.asked() == 1).await;
    assert_eq!(blog.get("/alias/b").await.status, 429);
    assert_eq!(blog.get("/free").await.status, 200);
    drop(first);
    eventually("its end", async || blog.get("/alias/c").await.status == 200).await;
}

#[tokio::test]
async fn a_time_of_the_vcl_stores_nothing_that_the_head_as_it_came_does_not() {
    let subs = r#"
sub vcl_backend_response {
    set beresp.http.Content-Type = "text/css";
    set beresp.http.Cache-Control = "public";
    set beresp.ttl = 1h;
}
"#;
    let (origin, daemon) = with_subs("", subs, "cache = { match_type = true }").await;
    origin.on("/account/a.css", Script::ok("Content-Type: text/html\r\n", "a page"));
    origin.on("/b.css", Script::ok("Content-Type: text/css\r\n", "a style"));
    for is_second in [false, true] {
        assert!(!is_hit(&get_from(&daemon, "a.test", "/account/a.css", "").await));
        assert_eq!(is_hit(&get_from(&daemon, "a.test", "/b.css", "").await), is_second);
    }
    get_from(&daemon, "a.test", "/mine", "Cookie: session=1\r\n").await;
    assert!(!is_hit(&get_from(&daemon, "a.test", "/mine", "").await), "it was made for one client");
}

/// The first record of a request for `target` in the log ring.
async fn record_of(daemon: &Daemon, target: &str) -> Value {
    let mut follower = RingFollower::open(&daemon.log_ring(), FollowStart::Oldest).expect("a ring");
    let fields = FieldPositions::new(follower.names());
    let found = RefCell::new(Value::Null);
    let follower = RefCell::new(&mut follower);
    eventually("the record", async || {
        let mut look = |record: &observe::Record<'_>| {
            if record.is_client() && record.target == target.as_bytes() {
                let mut line = Vec::new();
                format::json(record, &fields, true, &mut line);
                *found.borrow_mut() = serde_json::from_slice(&line).expect("JSON");
            }
        };
        follower.borrow_mut().poll(&mut look).expect("a readable ring");
        !found.borrow().is_null()
    })
    .await;
    found.into_inner()
}

/// The response to a GET for `host`.
async fn get_from(daemon: &Daemon, host: &str, target: &str, fields: &str) -> Reply {
    ask_from(daemon, host, &format!("GET {target}"), fields).await
}

/// The response to a request for `host`, whose first line has `asked`: method and target.
async fn ask_from(daemon: &Daemon, host: &str, asked: &str, fields: &str) -> Reply {
    let mut client = RawClient::connect(daemon.addr()).await.expect("a connection");
    let request = format!("{asked} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n");
    client.send(request.as_bytes(), WriteSplit::Whole).await.expect("sent");
    let method = asked.split(' ').next().unwrap_or_default();
    whole(client.reply(method).await, asked)
}

const TIMES: &str = r#"
sub vcl_backend_response {
    set beresp.http.X-Ttl = beresp.ttl;
    set beresp.http.X-Uncacheable = beresp.uncacheable;
    if (bereq.url ~ "long") { set beresp.ttl = 1h; }
    if (bereq.url ~ "never") { set beresp.uncacheable = true; }
    if (bereq.url ~ "over") { set beresp.ttl = 0s; }
    if (bereq.url ~ "clean") { unset beresp.http.Set-Cookie; set beresp.ttl = 1h; }
    if (bereq.url ~ "open") { unset beresp.http.Cache-Control; set beresp.ttl = 1h; }
    if (bereq.url ~ "mine") { set beresp.http.Cache-Control = "private"; }
    if (bereq.url ~ "cookie-for-all") { set beresp.http.Set-Cookie = "a=1"; }
}
"#;

#[tokio::test]
async fn a_response_is_stored_as_the_rules_permit_and_the_vcl_wishes() {
    let blog = Blog::start(TIMES, "").await;
    for (uri, lines, is_stored, shown) in [
        ("/plain", "Cache-Control: max-age=60\r\n", true, "60 false"),
        // The preset keeps pages that say nothing for half a minute.
        ("/silent", "", true, "30 false"),
        ("/long", "Cache-Control: max-age=60\r\n", true, "60 false"),
        ("/never", "Cache-Control: max-age=60\r\n", false, "60 false"),
        ("/over", "Cache-Control: max-age=60\r\n", false, "60 false"),
        ("/mine", "Cache-Control: max-age=60\r\n", false, "60 false"),
        ("/cookie-for-all", "Cache-Control: max-age=60\r\n", false, "60 false"),
        // What the rules refuse is one client's, whatever the program removes.
        ("/clean", "Set-Cookie: me=1\r\n", false, "30 true"),
        ("/open-private", "Cache-Control: private\r\n", false, "30 true"),
        ("/open-no-store", "Cache-Control: no-store\r\n", false, "30 true"),
    ] {
        blog.on(uri, lines);
        let before = blog.asked();
        let first = blog.get(uri).await;
        // The exchange itself has taken a moment.
        let ttl = field(&first, "x-ttl").parse::<f64>().expect("seconds").ceil();
        let told = format!("{ttl} {}", field(&first, "x-uncacheable"));
        assert_eq!(told, shown, "{uri}");
        assert_eq!(is_hit(&blog.get(uri).await), is_stored, "{uri}");
        assert_eq!(blog.asked() - before, if is_stored { 1 } else { 2 }, "{uri}");
    }
    let long = blog.explain("/long").await;
    let why = step(&long, "freshness")["why"].as_str().unwrap_or_default();
    assert!(why.contains("ttl 3600 s") && why.contains("vcl_backend_response"), "{why}");
}

#[tokio::test]
async fn a_response_without_a_time_gets_one_and_a_refused_wish_is_logged() {
    let (origin, daemon) = with_subs("", TIMES, "").await;
    origin.otherwise(Script::ok("", "a page"));
    origin.on("/clean", Script::ok("Set-Cookie: me=1\r\n", "mine"));
    for (target, hits) in [("/nothing", false), ("/long", true), ("/clean", false)] {
        for is_second in [false, true] {
            let reply = get_from(&daemon, "a.test", target, "").await;
            assert_eq!(is_hit(&reply), hits && is_second, "{target}");
        }
    }
    let record = record_of(&daemon, "/clean").await;
    let lines = record["vcl_log"].to_string();
    assert!(lines.contains("beresp.ttl has no effect") && lines.contains("set-cookie"), "{record}");
    assert_eq!((&record["rule"], &record["not_stored"]), (&json!("cache"), &json!("set-cookie")));
}

#[tokio::test]
async fn a_cookie_that_the_vcl_restores_keeps_the_response_from_others() {
    let subs = r#"
sub vcl_recv { set req.http.X-Kept = req.http.Cookie; unset req.http.Cookie; }
sub vcl_backend_fetch {
    if (bereq.url == "/mine") { set bereq.http.Cookie = bereq.http.X-Kept; }
}
"#;
    let blog = Blog::start(subs, "").await;
    for uri in ["/mine", "/all"] {
        blog.on(uri, "Cache-Control: max-age=60\r\n");
        blog.ask(uri, "Cookie: wordpress_logged_in_x=1\r\n").await;
    }
    assert!(!is_hit(&blog.get("/mine").await), "it was made for one client");
    assert!(is_hit(&blog.get("/all").await), "it was made without the cookie");
}

#[tokio::test]
async fn keys_are_split_and_a_purge_reaches_all_of_them() {
    let subs = r#"
sub vcl_recv { set req.url = regsub(req.url, "^/old/", "/new/"); }
sub vcl_hash { hash_data(req.http.X-Group); }
sub vcl_backend_response { set beresp.http.X-Group = bereq.http.X-Group; }
"#;
    let purge = "purge = { allow = [\"127.0.0.0/8\"] }";
    let blog = Blog::start(subs, purge).await;
    let of = async |target: &str, group: &str| {
        let reply = blog.ask(target, &format!("X-Group: {group}\r\n")).await;
        assert_eq!(field(&reply, "x-group"), group, "one group's page for another");
        is_hit(&reply)
    };
    assert_eq!((of("/new/a", "1").await, of("/new/a", "2").await), (false, false));
    assert_eq!((of("/old/a", "1").await, of("/new/a", "2").await), (true, true));
    let told = blog.explain("/old/a").await;
    let why = step(&told, "key")["why"].as_str().unwrap_or_default();
    assert!(why.contains("/new/a") && why.contains("hash_data"), "{why}");
    for purged in ["/new/a", "/old/a"] {
        let done = blog.stage.ask("PURGE", purged, "").await;
        assert_eq!(done.status, 200, "{}", done.text());
        assert_eq!((of("/new/a", "1").await, of("/new/a", "2").await), (false, false), "{purged}");
        assert_eq!((of("/new/a", "1").await, of("/new/a", "2").await), (true, true), "{purged}");
    }
    // An unsafe request invalidates, too (RFC 9111 4.4), but its own key: clients add no bans.
    let posted = blog.stage.ask("POST", "/new/a", "X-Group: 1\r\nContent-Length: 0\r\n").await;
    assert_eq!(posted.status, 200);
    assert_eq!((of("/new/a", "1").await, of("/new/a", "2").await), (false, true));
}

#[tokio::test]
async fn a_purge_of_a_url_reaches_what_the_vcl_makes_of_it() {
    let subs = "sub vcl_recv { set req.url = regsub(req.url, \"^/old/\", \"/new/\"); }";
    let blog = Blog::start(subs, "purge = { allow = [\"127.0.0.0/8\"] }").await;
    for purged in ["/old/a", "/new/a"] {
        blog.get("/old/a").await;
        assert!(is_hit(&blog.get("/new/a").await));
        assert_eq!(blog.stage.ask("PURGE", purged, "").await.status, 200);
        assert!(!is_hit(&blog.get("/old/a").await), "{purged}");
    }
}

#[tokio::test]
async fn a_purge_of_a_url_reaches_what_the_vcl_makes_of_it_for_its_host() {
    let subs = r#"
sub vcl_recv {
    if (req.http.Host ~ "^a\.test$") { set req.url = regsub(req.url, "^/old/", "/new/"); }
    set req.http.Host = regsub(req.http.Host, "^www\.", "");
}
"#;
    let (origin, daemon) = with_subs("", subs, "purge = { allow = [\"127.0.0.0/8\"] }").await;
    origin.otherwise(Script::cacheable("a page"));
    for (host, purged) in [("a.test", "PURGE /old/a"), ("www.a.test", "PURGE /new/a")] {
        get_from(&daemon, "a.test", "/new/a", "").await;
        assert!(is_hit(&get_from(&daemon, "a.test", "/old/a", "").await), "one condition");
        assert!(is_hit(&get_from(&daemon, "www.a.test", "/new/a", "").await), "one host");
        assert_eq!(ask_from(&daemon, host, purged, "").await.status, 200);
        assert!(!is_hit(&get_from(&daemon, "a.test", "/new/a", "").await), "{host} {purged}");
    }
}

#[tokio::test]
async fn rules_of_a_path_hold_for_the_url_as_it_came_and_as_it_was_rewritten() {
    let subs = r#"
sub vcl_recv {
    if (req.http.X-To) { set req.url = req.http.X-To; }
    if (req.http.X-Site) { set req.http.Host = req.http.X-Site; }
}
"#;
    let folder = Folder::new();
    folder.file("users", "u:{SHA}pJZN1GTWbSmr+Zn8WBTsD7rGlJo=\n");
    let routes = format!(
        "[[site.route]]\npath = \"/denied/*\"\ndeny = \"0.0.0.0/0\"\n\
         [[site.route]]\npath = \"/secret/*\"\nbasic_auth = {{ file = \"{}\" }}\n\
         [[site]]\nhost = \"other.test\"\nrespond = {{ status = 200, body = \"other\" }}\n",
        folder.path().join("users").display()
    );
    let blog = Blog::start(subs, &routes).await;
    let status = async |target: &str, to: &str| {
        let fields = if to.is_empty() { String::new() } else { format!("X-To: {to}\r\n") };
        blog.ask(target, &fields).await.status
    };
    assert_eq!(status("/free", "").await, 200);
    assert_eq!((status("/denied/a", "").await, status("/secret/a", "").await), (403, 401));
    assert_eq!(status("/denied/a", "/free").await, 403, "as it came");
    assert_eq!(status("/secret/a", "/free").await, 401, "as it came");
    assert_eq!(status("/free", "/denied/a").await, 403, "as it was rewritten");
    assert_eq!(status("/free", "/denied/%2e/a").await, 403, "in another spelling");
    assert_eq!(status("/free", "/secret/a").await, 503, "as it was rewritten");
    assert_eq!(status("/free", "no-path").await, 503);
    let host = blog.ask("/free", "X-Site: other.test\r\n").await;
    assert_eq!(host.status, 503, "another site's host");
    let own = blog.ask("/free", "X-Site: third.test\r\n").await;
    assert_eq!((own.status, blog.stage.app.last().param("HTTP_HOST")), (200, "third.test"));
}

#[tokio::test]
async fn a_failing_subroutine_sends_nothing_of_the_response() {
    let subs = r#"
sub vcl_deliver {
    if (req.http.X-Fail) { return (fail("not today")); }
    unset resp.http.X-Inner;
}
"#;
    let blog = Blog::start(subs, "").await;
    blog.on("/page", "Cache-Control: max-age=60\r\nX-Inner: secret\r\n");
    let failed = blog.ask("/page", "X-Fail: 1\r\n").await;
    assert_eq!((failed.status, failed.field("x-inner")), (503, None));
    assert!(!failed.text().contains("a page"));
    let reply = blog.get("/page").await;
    assert_eq!((reply.status, reply.field("x-inner"), is_hit(&reply)), (200, None, true));
    let failed = blog.ask("/page", "X-Fail: 1\r\n").await;
    assert_eq!((failed.status, failed.field("x-inner")), (503, None), "from the store, too");
}

#[tokio::test]
async fn a_response_on_which_the_vcl_fails_is_not_used() {
    let subs = r#"
sub vcl_backend_fetch { if (bereq.url == "/not-sent") { return (fail("no")); } }
sub vcl_backend_response { if (bereq.url == "/bad") { return (fail("not today")); } }
"#;
    let blog = Blog::start(subs, "").await;
    blog.on("/bad", "Cache-Control: max-age=60\r\nX-Inner: secret\r\n");
    for count in 1..3 {
        let bad = blog.get("/bad").await;
        assert_eq!((bad.status, bad.field("x-inner"), blog.asked()), (503, None, count));
        assert_eq!(blog.get("/not-sent").await.status, 503);
    }
    let record = record_of(&blog.stage.daemon, "/bad").await;
    let told = record["error"].as_str().unwrap_or_default();
    assert!(told.contains("program"), "{record}");
    assert!(record["vcl"].to_string().contains("not today"), "{record}");
    assert_eq!(blog.get("/good").await.status, 200);
}

#[tokio::test]
async fn a_purge_that_fetches_anew_goes_through_the_subroutines() {
    let subs = r#"
sub vcl_recv { set req.url = regsub(req.url, "^/old/", "/new/"); }
sub vcl_deliver { set resp.http.X-Way = "delivered"; }
"#;
    let blog =
        Blog::start(subs, "purge = { allow = [\"127.0.0.0/8\"], dialects = [\"foshttpcache\"] }")
            .await;
    blog.get("/new/a").await;
    let anew = blog.ask("/old/a", "Cache-Control: no-cache\r\n").await;
    assert_eq!((field(&anew, "x-way").as_str(), blog.asked()), ("delivered", 2));
    assert!(is_hit(&blog.get("/new/a").await));
    assert_eq!(blog.asked(), 2);
}

#[tokio::test]
async fn a_purge_that_fetches_anew_is_not_limited_behind_vcl_recv() {
    let subs = "sub vcl_recv { set req.url = regsub(req.url, \"^/old/\", \"/new/\"); }";
    let keys = "purge = { allow = [\"127.0.0.0/8\"], dialects = [\"foshttpcache\"] }\n\
                rate = { requests = \"1/h\", path = \"/new/*\" }";
    let blog = Blog::start(subs, keys).await;
    for count in 1..4 {
        let anew = blog.ask("/old/a", "Cache-Control: no-cache\r\n").await;
        assert_eq!((anew.status, blog.asked()), (200, count));
    }
    assert_eq!(blog.get("/old/a").await.status, 200, "it was not counted");
    assert_eq!(blog.get("/old/a").await.status, 429);
}

#[tokio::test]
async fn variants_that_a_client_s_request_does_not_select_are_not_stored() {
    let subs = r#"
sub vcl_backend_fetch { set bereq.http.X-Device = regsub(bereq.http.User-Agent, "/.*", ""); }
sub vcl_backend_response {
    if (bereq.url == "/lost") { unset beresp.http.Vary; }
}
"#;
    let blog = Blog::start(subs, "").await;
    for (uri, vary, is_stored) in
        [("/device", "X-Device", false), ("/lost", "X-Group", false), ("/group", "X-Group", true)]
    {
        blog.on(uri, &format!("Cache-Control: max-age=60\r\nVary: {vary}\r\n"));
        for is_second in [false, true] {
            let reply = blog.ask(uri, "User-Agent: phone/1\r\nX-Group: 1\r\n").await;
            assert_eq!(is_hit(&reply), is_stored && is_second, "{uri}");
        }
        assert!(!is_hit(&blog.ask(uri, "User-Agent: desk/1\r\nX-Group: 2\r\n").await), "{uri}");
    }
}

#[tokio::test]
async fn directives_of_the_vcl_open_nothing_to_others_when_a_304_confirms_the_response() {
    let subs = r#"
sub vcl_backend_response {
    set beresp.http.Cache-Control = "public, max-age=3600";
    set beresp.grace = 0s;
    if (bereq.http.If-None-Match) { set beresp.ttl = 1h; } else { set beresp.ttl = 1ms; }
}
"#;
    let (origin, daemon) = with_subs("", subs, "").await;
    origin.on("/a", Script::ok("Cache-Control: max-age=60\r\nETag: \"a\"\r\n", "a page"));
    assert_eq!(get_from(&daemon, "a.test", "/a", "").await.text(), "a page");
    origin.on("/a", Script::respond("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"));
    let confirmed = async || is_hit(&get_from(&daemon, "a.test", "/a", "").await);
    eventually("a confirmed response", confirmed).await;
    origin.on("/a", Script::ok("Cache-Control: private\r\n", "mine"));
    let personal = get_from(&daemon, "a.test", "/a", "Cookie: session=1\r\n").await;
    assert_eq!((personal.text().as_str(), is_hit(&personal)), ("mine", false));
}

#[tokio::test]
async fn directives_of_the_vcl_for_clients_lengthen_no_time_when_a_304_confirms_the_response() {
    let subs = r#"
sub vcl_backend_response {
    set beresp.http.X-Seen = beresp.ttl + " " + beresp.grace + " " + beresp.keep;
    set beresp.http.Cache-Control = "public, max-age=31536000, stale-if-error=31536000";
    if (bereq.url == "/set" && bereq.http.If-None-Match) { set beresp.ttl = 2h; }
}
"#;
    let (origin, daemon) = with_subs("", subs, "").await;
    let anew = "Cache-Control: max-age=120, stale-while-revalidate=6, stale-if-error=8\r\n";
    for (target, fields, most_s, windows, kept) in [
        ("/silent", "", 60.0, "5.000 7.000", "ttl 60 s"),
        ("/anew", anew, 120.0, "6.000 8.000", "ttl 120 s"),
        ("/set", "", 60.0, "5.000 7.000", "ttl 7200 s"),
    ] {
        let head = "Cache-Control: max-age=60, stale-while-revalidate=5, stale-if-error=7\r\n";
        origin.on(target, Script::ok(&format!("{head}ETag: \"a\"\r\n"), "a page"));
        get_from(&daemon, "a.test", target, "").await;
        let not_modified = format!("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n{fields}\r\n");
        origin.on(target, Script::respond(not_modified));
        let url = format!("http://a.test{target}");
        let soft = Ask::post("/api/v1/purge", &json!({ "url": url, "soft": true }));
        assert_eq!(soft.send_locally(&daemon).await.status, 200);
        eventually("a revalidation", async || {
            get_from(&daemon, "a.test", target, "").await;
            origin.seen(target) == 2
        })
        .await;
        eventually("times of the response as it came", async || {
            let seen = field(&get_from(&daemon, "a.test", target, "").await, "x-seen");
            let told = explain(&daemon, &json!({ "url": url })).await;
            let why = step(&told, "freshness")["why"].to_string();
            let (ttl_s, seen) = seen.split_once(' ').unwrap_or_default();
            ttl_s.parse().is_ok_and(|ttl_s: f64| ttl_s <= most_s && ttl_s > 0.9 * most_s)
                && seen == windows
                && why.contains(kept)
        })
        .await;
    }
}

#[tokio::test]
async fn state_lasts_from_recv_to_deliver_and_each_fragment_has_its_own() {
    let subs = r#"
import var;
sub vcl_recv {
    var.set("came", req.url);
    set req.url = regsub(req.url, "^/part", "/piece");
}
sub vcl_deliver {
    set resp.http.X-Came = var.get("came");
    set resp.http.X-Level = req.esi_level;
}
"#;
    let blog = Blog::start(subs, "includes = { esi = \"html\" }").await;
    blog.on("/page", "Cache-Control: max-age=60\r\n");
    blog.on("/piece", "Cache-Control: max-age=60\r\n");
    blog.stage.app.on(
        "/with",
        ApplicationScript::answer(
            "Content-Type: text/html\r\nCache-Control: max-age=60\r\n\r\n\
             [<esi:include src=\"/part\"/>]",
        ),
    );
    for _ in 0..2 {
        assert_eq!(field(&blog.get("/page").await, "x-came"), "/page");
        let whole = blog.get("/with").await;
        assert_eq!((whole.text().as_str(), field(&whole, "x-came")), ("[a page]", "/with".into()));
        assert_eq!(field(&whole, "x-level"), "0");
    }
    assert!(is_hit(&blog.get("/part").await), "the fragment was stored under its own URL");
}

#[tokio::test]
async fn a_background_fetch_runs_the_subroutines_of_a_fetch() {
    let subs = r#"
sub vcl_backend_fetch {
    if (bereq.is_bgfetch) { set bereq.http.X-Behind = "yes"; }
}
sub vcl_backend_response { set beresp.ttl = 1ms; set beresp.grace = 1h; }
"#;
    let blog = Blog::start(subs, "").await;
    blog.get("/page").await;
    let renewed = async || {
        blog.get("/page").await;
        blog.stage.app.last().has("HTTP_X_BEHIND")
    };
    eventually("the renewal", renewed).await;
}

#[tokio::test]
async fn explain_tells_what_the_subroutines_do() {
    let subs = r#"
sub vcl_recv {
    std.log("seen " + req.url);
    if (req.url ~ "^/campaign") { return (pass); }
    if (req.url == "/closed") { return (synth(404)); }
    set req.http.X-Group = "1";
}
sub vcl_backend_fetch { set bereq.url = regsub(bereq.url, "^/", "/app/"); }
sub vcl_deliver { set resp.http.X-Hits = obj.hits; }
"#;
    let blog = Blog::start(subs, "").await;
    blog.get("/page").await;
    let told = blog.explain("/page").await;
    let recv = step(&told, "recv");
    assert_eq!(fact(recv, "VCL_Log"), "seen /page");
    assert_eq!(fact(recv, "changes"), "req.http.X-Group to 1");
    assert_eq!(fact(step(&told, "deliver"), "changes"), "resp.http.X-Hits to 1");
    assert!(is_hit(&blog.get("/page").await), "{told}");
    assert_eq!(told["outcome"]["served"], "HIT", "{told}");
    assert_eq!(recv["why"], "vcl_recv goes on to the site's settings");
    let told = blog.explain("/new").await;
    assert_eq!(fact(step(&told, "backend_fetch"), "changes"), "bereq.url to /app/new");
    let told = blog.explain("/campaign").await;
    assert_eq!(step(&told, "recv")["decided"], true, "{told}");
    assert!(
        told["outcome"]["summary"].as_str().unwrap_or_default().contains("rule `vcl`"),
        "{told}"
    );
    let told = blog.explain("/closed").await;
    assert!(told["outcome"]["summary"].as_str().unwrap_or_default().contains("404"), "{told}");
    assert_eq!(blog.get("/closed").await.status, 404);
    assert_eq!(blog.asked(), 1, "explaining asks nobody");
}

#[tokio::test]
async fn a_reload_with_a_broken_file_keeps_the_former_one() {
    let says = |what: &str| {
        format!("vcl 4.1;\nsub vcl_deliver {{ set resp.http.X-Says = \"{what}\"; }}\n")
    };
    let blog = Blog::start("sub vcl_deliver { set resp.http.X-Says = \"1\"; }", "").await;
    assert_eq!(field(&blog.get("/").await, "x-says"), "1");
    for (text, why) in [
        ("vcl 4.1;\nbackend a none;\n".to_owned(), "a backend"),
        (says("2").replace("set", "sett"), "sett"),
    ] {
        blog.folder.replace("extra.vcl", text);
        let reload = blog.reload().await;
        let said = String::from_utf8_lossy(&reload.stderr).into_owned();
        assert!(!reload.status.success() && said.contains("extra.vcl"), "{why}: {said}");
        assert_eq!(field(&blog.get("/").await, "x-says"), "1");
    }
    blog.folder.replace("extra.vcl", says("2"));
    let reload = blog.reload().await;
    assert!(reload.status.success(), "{}", String::from_utf8_lossy(&reload.stderr));
    eventually("the new one", async || field(&blog.get("/").await, "x-says") == "2").await;
    assert!(is_hit(&blog.get("/").await), "the cache stays");
}

#[tokio::test]
async fn check_tells_which_part_a_file_has() {
    let folder = Folder::new();
    folder.file("extra.vcl", "vcl 4.1;\nsub vcl_recv { set req.http.a = \"1\"; }\n");
    folder.file("whole.vcl", "vcl 4.1;\nbackend a { .host = \"127.0.0.1\"; }\n");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let site = |host: &str, rest: String| format!("[[site]]\nhost = \"{host}\"\n{rest}\n");
    let own = "origin = \"http://127.0.0.1:9\"\n";
    let check = |config: &str| {
        folder.file("larder.toml", config);
        let output = Command::new(binary().expect("the binary"))
            .arg("check")
            .arg(at("larder.toml"))
            .output();
        let output = output.expect("it runs");
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), said.concat())
    };
    let (is_good, said) = check(&format!(
        "{}{}",
        site("a.test", format!("{own}vcl = \"{}\"", at("extra.vcl"))),
        site("b.test", format!("vcl = \"{}\"", at("whole.vcl")))
    ));
    assert!(is_good, "{said}");
    assert!(
        said.contains(&format!("{}: stands beside settings: vcl_recv", at("extra.vcl"))),
        "{said}"
    );
    assert!(said.contains(&format!("{}: decides alone", at("whole.vcl"))), "{said}");
    let (is_good, said) = check(&site("a.test", format!("{own}vcl = \"{}\"", at("whole.vcl"))));
    assert!(!is_good && said.contains("backend `a` beside a site's settings"), "{said}");
    let (is_good, said) = check(&site("a.test", format!("vcl = \"{}\"", at("extra.vcl"))));
    assert!(!is_good && said.contains("no backend"), "{said}");
    let alone =
        Command::new(binary().expect("the binary")).arg("check").arg(at("extra.vcl")).output();
    let said = String::from_utf8_lossy(&alone.expect("it runs").stdout).into_owned();
    assert!(said.contains("good, beside a site's settings"), "{said}");
}
