//! Changes of fields with variables, additions and replacements, towards origins and clients.

use crate::support;

use support::folder::Folder;
use support::{Setup, Stage, is_hit, sent_field};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

const SITE: &str = r#"
[site.request_headers]
set = { X-Url = "$scheme://$host$path$query", X-Price = "US$$5", X-Who = "${http.X-Name}" }
add = { X-List = ["a", "$args"] }

[site.response_headers]
set = { X-Asked = "$path", X-Client = "$client" }
add = { Link = ["</a>; rel=preload", "<$path>; rel=self"] }

[site.response_headers.replace]
Location   = { "~ ^http://[^/]+(/.*)$" = "$scheme://$host$1" }
Set-Cookie = { "~* ; *domain=[^;]*" = "", "; Path=/app" = "; Path=/" }

[[site.route]]
path            = "~ ^/user/([0-9]+)$"
rewrite         = "/u.php?id=$1"
request_headers = { set = { X-User = "user-$1" } }
[[site.route.response]]
status      = 200
headers.set = { X-Number = "$1" }
"#;

async fn stage() -> Stage {
    Setup { site: SITE, ..Setup::default() }.start().await
}

/// The values of the fields called `name`.
fn values<'f>(fields: &'f [(String, Vec<u8>)], name: &str) -> Vec<&'f str> {
    let own = fields.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
    own.map(|(_, value)| std::str::from_utf8(value).expect("text")).collect()
}

#[tokio::test]
async fn the_origin_gets_what_the_client_asked_for() {
    let stage = stage().await;
    stage.origin.otherwise(Script::cacheable("page"));
    stage.ask("GET", "/a/b?c=d", "X-Name: Ann\r\nX-List: own\r\n").await;
    let sent = stage.sole_request("/a/b?c=d");
    assert_eq!(sent_field(&sent, "x-url"), "http://larder.test/a/b?c=d");
    assert_eq!(sent_field(&sent, "x-price"), "US$5");
    assert_eq!(sent_field(&sent, "x-who"), "Ann");
    assert_eq!(values(&sent.fields, "x-list"), ["own", "a", "c=d"]);
    // The URL is the client's, whatever the origin is asked for.
    let reply = stage.get("/user/7").await;
    let sent = stage.sole_request("/u.php?id=7");
    assert_eq!(sent_field(&sent, "x-url"), "http://larder.test/user/7");
    assert_eq!(sent_field(&sent, "x-user"), "user-7");
    assert_eq!(reply.field("x-number").as_deref(), Some("7"));
}

#[tokio::test]
async fn each_client_gets_its_own_values_also_of_a_stored_page() {
    let stage = stage().await;
    let fields = "Cache-Control: max-age=60\r\nLink: <own>\r\n";
    stage.origin.otherwise(Script::ok(fields, "page"));
    for (target, hit) in
        [("/a?utm_source=x", false), ("/a", true), ("/user/8", false), ("/user/8", true)]
    {
        let reply = stage.get(target).await;
        assert_eq!(is_hit(&reply), hit, "{target}");
        let path = target.split('?').next().map(str::to_owned);
        assert_eq!(reply.field("x-asked"), path, "{target}");
        assert_eq!(reply.field("x-client").as_deref(), Some("127.0.0.1"));
        let own = format!("<{}>; rel=self", path.as_deref().expect("a path"));
        assert_eq!(values(&reply.fields, "link"), ["<own>", "</a>; rel=preload", &own]);
        assert_eq!(reply.field("x-number").is_some(), target.starts_with("/user"), "{target}");
    }
    // A page that is made here has the site's fields, too.
    stage.origin.on("/broken", Script::default().close());
    let reply = stage.get("/broken").await;
    assert_eq!((reply.status, reply.field("x-asked").as_deref()), (502, Some("/broken")));
}

#[tokio::test]
async fn locations_and_cookies_are_rewritten() {
    let stage = stage().await;
    stage.origin.on(
        "/old",
        Script::respond(
            "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1:8080/new?a=b\r\n\
         Set-Cookie: a=1; Domain=app.internal; Path=/app\r\nSet-Cookie: b=2; Path=/app\r\n\
         Content-Length: 0\r\n\r\n",
        ),
    );
    let reply = stage.get("/old").await;
    assert_eq!(reply.field("location").as_deref(), Some("http://larder.test/new?a=b"));
    assert_eq!(values(&reply.fields, "set-cookie"), ["a=1; Path=/", "b=2; Path=/"]);
}

/// A value from a client is never read as more than a value.
#[tokio::test]
async fn no_client_writes_a_field_of_its_own() {
    let stage = stage().await;
    stage.origin.otherwise(Script::cacheable("page"));
    for target in ["/a%0d%0aSet-Cookie:%20x=1", "/a?b=%0aX-Evil:%201"] {
        let reply = stage.get(target).await;
        assert!(reply.field("set-cookie").is_none() && reply.field("x-evil").is_none());
        assert!(reply.field("x-asked").is_some_and(|value| value.starts_with("/a")));
    }
}

/// The field is written behind the store, so no variant could be selected by it.
#[tokio::test]
async fn what_varies_by_a_field_of_the_visitor_that_larder_writes_is_not_stored() {
    let stage = stage().await;
    for (target, vary, stored) in [("/who", "X-Who", false), ("/url", "X-Url", true)] {
        let fields = format!("Cache-Control: public, max-age=60\r\nVary: {vary}\r\n");
        stage.origin.on(target, Script::ok(&fields, "hers"));
        stage.ask("GET", target, "X-Name: Ann\r\n").await;
        let other = stage.ask("GET", target, "X-Name: Bob\r\n").await;
        assert_eq!(is_hit(&other), stored, "{target}");
    }
}

#[tokio::test]
async fn a_variable_that_is_not_there_is_refused_with_the_way_to_write_a_dollar() {
    let (origin, _folder) = (ScriptedOrigin::start().await.expect("an origin"), Folder::new());
    for (keys, why) in [
        ("response_headers = { set = { X-A = \"$price\" } }", "write `$$` for a dollar sign"),
        ("response_headers = { set = { X-A = \"$1\" } }", "`response_headers` has `$1`"),
        ("request_headers = { add = { X-A = \"$2\" } }", "`request_headers` has `$2`"),
        ("response_headers = { replace = { X-A = { a = \"$1\" } } }", "`$1` stands for a group"),
        ("response_headers = { add = { Content-Length = \"1\" } }", "message's framing"),
    ] {
        let file = Setup { site: &format!("{keys}\n"), ..Setup::default() }.file(&origin);
        let error = Daemon::start(&file).expect_err("it is refused").to_string();
        assert!(error.contains(why), "{keys}: {error}");
    }
}
