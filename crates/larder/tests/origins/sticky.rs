//! Tests of `sticky`: a cookie brings a client back to the server that answered it before.

use crate::support;

use serde_json::json;
use support::explain::{explain, fact, step};
use support::{is_hit, sent_field};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reference_reader::{ParsedRequest, read_requests};
use testkit::reply::Reply;

/// Two servers of an origin with a sticky cookie, and a daemon in front of them.
struct Pair {
    servers: [ScriptedOrigin; 2],
    daemon: Daemon,
}

const SITE: &str = "cookies = { key = [\"theme\"] }\nbypass = { cookie = [\"sr*\"] }\n";

impl Pair {
    async fn start(origin: &str) -> Self {
        let servers = [server("one").await, server("two").await];
        let [one, two] = servers.each_ref().map(ScriptedOrigin::addr);
        let file = format!(
            r#"
listen = "127.0.0.1:0"
workers = 1
[[origin]]
name = "app"
servers = ["http://{one}", {{ url = "http://{two}", id = "second" }}]
retries = 1
{origin}
[[site]]
host = "*"
origin = "app"
{SITE}
"#
        );
        Self { servers, daemon: Daemon::start(&file).expect("larder starts") }
    }

    async fn ask(&self, method: &str, target: &str, cookie: &str) -> Reply {
        let fields = match cookie {
            "" => String::new(),
            _ => format!("Cookie: {cookie}\r\n"),
        };
        let bytes = testkit::client::request(method, target, &fields);
        let raw = testkit::client::RawClient::connect(self.daemon.addr()).await;
        support::whole(raw.expect("a connection").exchange(&bytes).await, target)
    }

    async fn get(&self, target: &str, cookie: &str) -> Reply {
        self.ask("GET", target, cookie).await
    }

    /// Every request to the servers.
    fn received(&self) -> Vec<ParsedRequest> {
        let recorded = self.servers.iter().flat_map(ScriptedOrigin::recorded);
        recorded.flat_map(|one| read_requests(&one.bytes).expect("valid requests")).collect()
    }
}

async fn server(body: &str) -> ScriptedOrigin {
    let server = ScriptedOrigin::start().await.expect("a port");
    server.otherwise(Script::ok("Cache-Control: no-cache\r\n", body));
    server
        .on("/stored", Script::ok("Cache-Control: public, max-age=300\r\nVary: Cookie\r\n", body));
    server.on("/cdn", Script::ok(
        "Cache-Control: public, max-age=60\r\nCDN-Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
        body,
    ));
    server
}

/// The cookie that stands for the server with this body.
fn of(body: &str) -> &'static str {
    if body == "one" { "srv=1" } else { "srv=second" }
}

#[tokio::test]
async fn a_client_with_a_cookie_returns_to_its_server() {
    let pair = Pair::start("sticky = \"srv\"").await;
    for n in 0..2 {
        let first = pair.get(&format!("/{n}"), "").await;
        let body = first.text();
        let set = first.field("set-cookie").expect("a cookie");
        assert_eq!(set, format!("{}; Path=/; SameSite=Lax; HttpOnly", of(&body)));
        assert_eq!(first.field("cache-control").as_deref(), Some("no-cache, private"));
        for m in 0..4 {
            let again = pair.get(&format!("/{n}/{m}"), &format!("a=b; {}", of(&body))).await;
            assert_eq!((again.text(), again.field("set-cookie")), (body.clone(), None));
            let posted = pair.ask("POST", &format!("/{n}/{m}"), of(&body)).await;
            assert_eq!((posted.text(), posted.field("set-cookie")), (body.clone(), None));
        }
    }
    for request in pair.received() {
        assert!(!sent_field(&request, "cookie").contains("srv"), "{request:?}");
    }
}

#[tokio::test]
async fn a_value_of_no_server_is_no_cookie() {
    let pair = Pair::start("sticky = \"srv\"").await;
    for value in ["2", "3", "127.0.0.1", "SECOND", ""] {
        let reply = pair.get("/a", &format!("srv={value}")).await;
        let set = reply.field("set-cookie").expect("a new cookie");
        assert!(set.starts_with(of(&reply.text())), "{value}: {set}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_replaced_and_so_is_the_cookie() {
    let pair = Pair::start("sticky = \"srv\"\nretry_on = [\"drop\"]").await;
    pair.servers[0].otherwise(Script::default().close());
    let reply = pair.get("/a", "srv=1").await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "two"));
    assert!(reply.field("set-cookie").expect("a cookie").starts_with("srv=second;"));
    let drained = json!({ "origin": "app", "order": "drain" });
    let mut order = drained.clone();
    order["server"] = json!(pair.servers[1].addr().to_string());
    let done = support::console::Ask::post("/api/v1/origins/order", &order);
    assert_eq!(done.send_locally(&pair.daemon).await.status, 200);
    pair.servers[0].otherwise(Script::ok("Cache-Control: no-store\r\n", "one"));
    let reply = pair.get("/a", "srv=second").await;
    assert_eq!(reply.text(), "one");
    assert_eq!(reply.field("cache-control").as_deref(), Some("no-store"));
}

#[tokio::test]
async fn what_is_stored_has_no_cookie_and_is_for_clients_with_any() {
    let pair = Pair::start("sticky = \"srv\"").await;
    for (n, cookie) in ["", "srv=1", "srv=second", "srv=x"].into_iter().enumerate() {
        let reply = pair.get("/stored", cookie).await;
        assert_eq!((is_hit(&reply), reply.field("set-cookie")), (n > 0, None), "{cookie}");
        assert_eq!(reply.field("cache-control").as_deref(), Some("public, max-age=300"));
    }
    assert_eq!(pair.received().len(), 1);
}

#[tokio::test]
async fn no_cache_behind_may_store_a_response_with_the_cookie() {
    let pair = Pair::start("sticky = \"srv\"").await;
    let reply = pair.get("/cdn", "").await;
    let cookies = reply.field("set-cookie").expect("both cookies");
    assert!(cookies.contains("a=b") && cookies.contains(of(&reply.text())), "{cookies}");
    assert_eq!(reply.field("cache-control").as_deref(), Some("public, max-age=60, private"));
    assert_eq!(reply.field("cdn-cache-control"), None);
    // With its cookie, a client gets what the origin says.
    let again = pair.get("/cdn", of(&reply.text())).await;
    assert_eq!(again.field("cache-control").as_deref(), Some("public, max-age=60"));
}

#[tokio::test]
async fn attributes_are_as_they_are_set_and_explain_names_the_server() {
    let pair = Pair::start(
        "sticky = { name = \"n\", path = \"/shop\", domain = \"a.test\", max_age = \"1h\", \
         secure = true, same_site = \"none\" }",
    )
    .await;
    let set = pair.get("/a", "").await.field("set-cookie").expect("a cookie");
    let attributes = "; Path=/shop; SameSite=None; Domain=a.test; Max-Age=3600; HttpOnly; Secure";
    assert!(set.starts_with("n=") && set.ends_with(attributes), "{set}");
    for (value, words, server) in [
        ("second", "the cookie `n` is of server 2", &pair.servers[1]),
        ("1", "the cookie `n` is of server 1", &pair.servers[0]),
    ] {
        let headers = json!([format!("Cookie: n={value}")]);
        let question = json!({ "url": "http://a.test/x", "headers": headers });
        let told = explain(&pair.daemon, &question).await;
        assert_eq!(fact(step(&told, "route"), "sticky"), words);
        let why = step(&told, "fetch")["why"].as_str().expect("words").to_owned();
        assert!(why.contains(&server.addr().to_string()), "{why}");
    }
    let told = explain(&pair.daemon, &json!({ "url": "http://a.test/x" })).await;
    assert_eq!(fact(step(&told, "route"), "sticky"), "no cookie `n` of a server");
}
