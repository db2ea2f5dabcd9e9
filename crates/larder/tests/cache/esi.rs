//! ESI: pages assembled from fragments, under both policies.

use crate::support;

use std::cell::RefCell;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use support::console::printed;
use support::folder::Folder;
use support::{Setup, Stage, eventually};
use testkit::client::{WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

/// The kind of policy that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Declared,
    Vcl,
}

const BOTH: [Policy; 2] = [Policy::Declared, Policy::Vcl];

const PROGRAM: &str = "sub vcl_recv {
    if (req.url ~ \"^/pass\") { return (pass); }
    return (hash);
}
sub vcl_backend_response { if (bereq.url ~ \"page\") { set beresp.do_esi = true; } }
";

/// Fields of a page with fragments.
const PAGE: &str = "Cache-Control: max-age=60\r\nContent-Type: text/html\r\n\
                    Surrogate-Control: content=\"ESI/1.0\"\r\nETag: \"page\"\r\n";

async fn site(policy: Policy) -> (Stage, Folder) {
    limited(policy, "").await
}

/// A site of either kind, with these keys of `[limits]`.
async fn limited(policy: Policy, limits: &str) -> (Stage, Folder) {
    let folder = Folder::new();
    if policy == Policy::Declared {
        let site = "bypass = { path = [\"/pass*\"] }\n";
        return (Setup { site, limits, ..Setup::default() }.start().await, folder);
    }
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    let backend = format!("backend app {{ .host = \"{host}\"; .port = \"{port}\"; }}");
    folder.file("site.vcl", format!("vcl 4.1;\n{backend}\n{PROGRAM}"));
    let vcl = folder.path().join("site.vcl").display().to_string();
    let file = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 2\n[[site]]\nhost = \"*\"\nvcl = \"{vcl}\"\n\
         [limits]\n{limits}\n"
    );
    (Stage { origin, daemon: Daemon::start(&file).expect("larder starts") }, folder)
}

fn page(body: &str) -> Script {
    Script::ok(PAGE, body)
}

#[tokio::test]
async fn fragments_are_fetched_once_and_stand_where_the_page_names_them() {
    for policy in BOTH {
        let (stage, _folder) = site(policy).await;
        let text =
            "<p>one <esi:include src=\"/a\"/> two <esi:include src=\"sub/b?x=1\"/> three</p>";
        stage.origin.on("/dir/page", page(text));
        stage.origin.on("/a", Script::cacheable("A"));
        stage.origin.on("/dir/sub/b?x=1", Script::cacheable("BB"));
        for _ in 0..3 {
            let reply = stage.get("/dir/page").await;
            assert_eq!((reply.status, reply.text()), (200, "<p>one A two BB three</p>".to_owned()));
        }
        for target in ["/dir/page", "/a", "/dir/sub/b?x=1"] {
            assert_eq!(stage.origin.seen(target), 1, "{policy:?} {target}");
        }
        let reply = stage.ask("HEAD", "/dir/page", "").await;
        assert_eq!((reply.status, reply.field("content-length")), (200, None), "{policy:?}");
    }
}

#[tokio::test]
async fn all_fragments_are_asked_for_at_once_and_the_beginning_waits_for_none() {
    for policy in BOTH {
        let (stage, _folder) = site(policy).await;
        let includes: String = (0..10).map(|n| format!("<esi:include src=\"/f{n}\"/>")).collect();
        stage.origin.on("/page", page(&format!("<p>begins {includes}</p>")));
        for n in 0..10 {
            // None is answered before all have been asked for.
            stage.origin.on(&format!("/f{n}"), Script::default().hang());
        }
        let mut raw = stage.connect().await;
        raw.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("it is taken");
        for n in 0..10 {
            let target = format!("/f{n}");
            eventually(&target, async || stage.origin.seen(&target) == 1).await;
        }
        assert!(raw.until("<p>begins ").await, "{policy:?}");
    }
}

#[tokio::test]
async fn a_fragment_that_fails_has_its_place_taken_or_is_left_out() {
    let (stage, _folder) = site(Policy::Declared).await;
    for (body, whole) in [
        ("<p>1<esi:include src=\"/bad\" alt=\"/good\"/>2</p>", "<p>1G2</p>"),
        ("<p>1<esi:include src=\"/bad\" alt=\"/worse\" onerror=\"continue\"/>2</p>", "<p>12</p>"),
        ("<p>1<esi:include src=\"/bad\"/>2</p>", "<p>12</p>"),
        (
            "<p><esi:try><esi:attempt>a<esi:include src=\"/bad\"/>b</esi:attempt>\
             <esi:except>e<esi:include src=\"/good\"/></esi:except></esi:try></p>",
            "<p>eG</p>",
        ),
        (
            "<p><esi:try><esi:attempt>a<esi:include src=\"/good\"/>b</esi:attempt>\
             <esi:except>e</esi:except></esi:try></p>",
            "<p>aGb</p>",
        ),
    ] {
        for bad in ["/bad", "/worse"] {
            let answer =
                "HTTP/1.1 503 No\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nBAD";
            stage.origin.on(bad, Script::respond(answer));
        }
        stage.origin.on("/good", Script::cacheable("G"));
        let target = format!("/page?{}", body.len());
        stage.origin.on(&target, page(body));
        // Once fetched, and once from the store.
        for _ in 0..2 {
            assert_eq!(stage.get(&target).await.text(), whole, "{body}");
        }
    }
    assert!(stage.metric("larder_esi_failed_total").await > 0);
}

#[tokio::test]
async fn a_page_that_includes_itself_comes_to_an_end() {
    for policy in BOTH {
        let (stage, _folder) = site(policy).await;
        let text = "<p>(<esi:include src=\"/page\"/>)</p>";
        stage.origin.on("/page", page(text));
        let body = stage.get("/page").await.text();
        assert_eq!(body.matches('(').count(), 6, "{policy:?} {body}");
        assert!(stage.metric("larder_limit_hits_total").await > 0);
    }
}

#[tokio::test]
async fn a_page_has_no_more_fragments_than_may_be() {
    for policy in BOTH {
        let (stage, _folder) = limited(policy, "esi_includes = 50").await;
        stage.origin.on("/f", Script::cacheable("F"));
        let text = format!("<p>{}</p>", "<esi:include src=\"/f\"/>".repeat(9_000));
        stage.origin.on("/page", page(&text));
        for _ in 0..2 {
            let body = stage.get("/page").await.text();
            assert_eq!(body, format!("<p>{}</p>", "F".repeat(50)), "{policy:?}");
        }
    }
}

#[tokio::test]
async fn a_page_asks_no_other_server() {
    let (stage, _folder) = site(Policy::Declared).await;
    let other = ScriptedOrigin::start().await.expect("another server");
    other.otherwise(Script::cacheable("stolen"));
    let admin = stage.daemon.admin_socket().display().to_string();
    for src in [
        format!("http://{}/x", other.addr()),
        format!("//{}/x", other.addr()),
        "http://localhost/x".to_owned(),
        "http://[::1]/x".to_owned(),
        "https://127.0.0.1:1/x".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("file://{admin}"),
        "gopher://127.0.0.1/x".to_owned(),
        "http://user@127.0.0.1/x".to_owned(),
        "/x\r\nHost: other".to_owned(),
    ] {
        let target = format!("/page?{}", src.len());
        stage.origin.on(&target, page(&format!("<p>1<esi:include src=\"{src}\"/>2</p>")));
        let body = stage.get(&target).await.text();
        assert!(body == "<p>12</p>" || !body.contains("stolen"), "{src}: {body}");
    }
    assert_eq!(other.targets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_cached_page_has_a_fragment_of_each_client() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let file = format!(
        "listen = \"127.0.0.1:0\"\n[[origin]]\nname = \"app\"\nservers = \"http://{}\"\n\
         [[site]]\nhost = \"*\"\norigin = \"app\"\ncookies = {{ strip = [\"*\"] }}\n\
         [[site.route]]\npath = \"/cart\"\ncache = false\ncookies = {{ strip = [] }}\n",
        origin.addr()
    );
    let stage = Stage { origin, daemon: Daemon::start(&file).expect("larder starts") };
    stage.origin.on("/page", page("<p>hello <esi:include src=\"/cart\"/></p>"));
    stage.origin.on("/cart", Script::mirror("Cache-Control: private\r\n"));
    for client in ["alice", "bob"] {
        let reply = stage.ask("GET", "/page", &format!("Cookie: user={client}\r\n")).await;
        assert!(reply.text().contains(&format!("user={client}")), "{}", reply.text());
    }
    assert_eq!((stage.origin.seen("/page"), stage.origin.seen("/cart")), (1, 2));
}

#[tokio::test]
async fn what_is_true_of_the_bytes_of_a_page_is_not_said_of_the_whole() {
    for policy in BOTH {
        let (stage, _folder) = site(policy).await;
        stage.origin.on("/page", page("<p>1<esi:include src=\"/f\"/></p>"));
        stage.origin.on("/f", Script::cacheable("F"));
        for _ in 0..2 {
            let reply = stage.ask("GET", "/page", "Range: bytes=0-1\r\n").await;
            assert_eq!((reply.status, reply.text()), (200, "<p>1F</p>".to_owned()), "{policy:?}");
            let etag = (policy == Policy::Vcl).then(|| "W/\"page\"".to_owned());
            assert_eq!(reply.field("etag"), etag, "{policy:?}");
            assert_eq!(
                reply.field("surrogate-control"),
                match policy {
                    Policy::Declared => None,
                    Policy::Vcl => Some("content=\"ESI/1.0\"".to_owned()),
                }
            );
        }
    }
}

#[tokio::test]
async fn the_parts_of_a_page_that_still_comes_are_sent_as_they_come() {
    let (stage, _folder) = site(Policy::Declared).await;
    stage.origin.on("/f", Script::cacheable("F"));
    let head = format!("HTTP/1.1 200 OK\r\n{PAGE}Transfer-Encoding: chunked\r\n\r\n");
    let first = "<p>first <esi:include src=\"/f\"/> and";
    let chunk = format!("{:x}\r\n{first}\r\n", first.len());
    stage.origin.on("/page", Script::respond(head + &chunk).hang());
    let mut raw = stage.connect().await;
    raw.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("it is taken");
    assert!(raw.until("<p>first ").await);
    assert!(raw.until("F").await);
    assert!(raw.until(" and").await);
}

fn gzipped(plain: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

/// A script that answers with `plain` in gzip.
fn coded(fields: &str, plain: &str) -> Script {
    let body = gzipped(plain);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\n{fields}Content-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
    );
    Script::respond([head.as_bytes(), &body].concat())
}

/// The body of a reply without its coding.
fn plain(reply: &Reply) -> String {
    if reply.field("content-encoding").is_none() {
        return reply.text();
    }
    let mut plain = String::new();
    MultiGzDecoder::new(&reply.body[..]).read_to_string(&mut plain).expect("gzip");
    plain
}

#[tokio::test]
async fn pages_and_fragments_may_be_in_any_coding() {
    let long = "fragment ".repeat(300);
    for policy in BOTH {
        for (page_coded, fragment_coded) in [(true, false), (false, true), (true, true)] {
            let (stage, _folder) = site(policy).await;
            let text = "<p>page <esi:include src=\"/f\"/> and <esi:include src=\"/f\"/></p>";
            let fresh = "Cache-Control: max-age=60\r\n";
            stage.origin.on("/page", if page_coded { coded(PAGE, text) } else { page(text) });
            let fragment =
                if fragment_coded { coded(fresh, &long) } else { Script::ok(fresh, &long) };
            stage.origin.on("/f", fragment);
            let whole = format!("<p>page {long} and {long}</p>");
            for accept in ["", "Accept-Encoding: gzip\r\n", "Accept-Encoding: br, gzip\r\n"] {
                for _ in 0..2 {
                    let reply = stage.ask("GET", "/page", accept).await;
                    let what = format!("{policy:?} {page_coded} {fragment_coded} {accept}");
                    assert_eq!(plain(&reply), whole, "{what}");
                    // A program's page is in gzip if it came so.
                    let may = page_coded || policy == Policy::Declared;
                    let gzip = (may && !accept.is_empty()).then(|| "gzip".to_owned());
                    assert_eq!(reply.field("content-encoding"), gzip, "{what}");
                    let vary = may.then(|| "Accept-Encoding".to_owned());
                    assert_eq!(reply.field("vary"), vary, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_page_in_gzip_can_be_read_as_far_as_it_has_come() {
    let (stage, _folder) = site(Policy::Declared).await;
    stage
        .origin
        .on("/page", page("<p>begins <esi:include src=\"/a\"/> <esi:include src=\"/b\"/></p>"));
    stage.origin.on("/a", Script::cacheable("A"));
    stage.origin.on("/b", Script::default().hang());
    let mut raw = stage.connect().await;
    let asked = request("GET", "/page", "Accept-Encoding: gzip\r\n");
    raw.send(&asked, WriteSplit::Whole).await.expect("it is taken");
    assert!(raw.until("Content-Encoding: gzip").await);
    // In stored blocks or in codes of a fixed table nothing is readable as it is: it is decoded.
    let raw = RefCell::new(raw);
    eventually("the beginning", async || {
        let mut raw = raw.borrow_mut();
        let came = raw.so_far();
        let at = came.windows(4).position(|window| window == b"\r\n\r\n");
        let body = at.map(|at| chunks(&came[at + 4..])).unwrap_or_default();
        let mut plain = Vec::new();
        _ = MultiGzDecoder::new(&body[..]).read_to_end(&mut plain);
        plain.starts_with(b"<p>begins A")
    })
    .await;
}

/// A site whose pages are all read for instructions.
async fn all_html(more: &str) -> Stage {
    let site = format!("includes = {{ esi = \"html\" }}\n{more}");
    Setup { site: &site, ..Setup::default() }.start().await
}

#[tokio::test]
async fn a_page_without_an_instruction_is_compressed_as_others_are() {
    let stage = all_html("").await;
    let text = "<p>a page without any</p>".repeat(100);
    let fields = "Cache-Control: max-age=60\r\nContent-Type: text/html\r\nETag: \"e\"\r\n";
    stage.origin.on("/page", Script::ok(fields, &text));
    let gzip = "Accept-Encoding: gzip\r\n";
    assert_eq!(plain(&stage.ask("GET", "/page", gzip).await), text, "while it comes");
    let is_gzip = async || {
        let reply = stage.ask("GET", "/page", gzip).await;
        reply.field("content-encoding").as_deref() == Some("gzip")
    };
    eventually("gzip", is_gzip).await;
    for (accept, coding, tag) in [
        (gzip, Some("gzip"), "\"e-gzip\""),
        ("", None, "\"e\""),
        (gzip, Some("gzip"), "\"e-gzip\""),
    ] {
        let reply = stage.ask("GET", "/page", accept).await;
        assert_eq!(reply.field("content-encoding").as_deref(), coding, "{accept}");
        assert_eq!(plain(&reply), text, "{accept}");
        assert_eq!(reply.field("etag").as_deref(), Some(tag), "{accept}");
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"), "{accept}");
        assert_eq!(reply.field("content-length"), Some(reply.body.len().to_string()));
        assert_eq!(reply.body.len() < text.len() / 4, coding.is_some());
        let again = format!("{accept}If-None-Match: {tag}\r\n");
        let confirmed = stage.ask("GET", "/page", &again).await;
        assert_eq!((confirmed.status, confirmed.field("etag").as_deref()), (304, Some(tag)));
    }
    let part = stage.ask("GET", "/page", "Range: bytes=3-8\r\n").await;
    assert_eq!((part.status, part.text()), (206, "a page".to_owned()));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn a_page_without_an_instruction_is_left_alone_as_others_are() {
    let long = "<p>a page without any</p>".repeat(100);
    let fresh = "Cache-Control: max-age=60\r\nContent-Type: text/html\r\n";
    let kept = "Cache-Control: max-age=60, no-transform\r\nContent-Type: text/html\r\n";
    for (site, fields, text) in
        [("", fresh, "<p>short</p>"), ("", kept, &long), ("compress = \"off\"\n", fresh, &long)]
    {
        let stage = all_html(site).await;
        stage.origin.on("/page", Script::ok(fields, text));
        stage.get("/page").await;
        for _ in 0..2 {
            let reply = stage.ask("GET", "/page", "Accept-Encoding: gzip, br\r\n").await;
            assert_eq!(reply.field("content-encoding"), None, "{site} {fields}");
            assert_eq!(reply.field("vary"), None, "{site} {fields}");
            assert_eq!(reply.text(), text, "{site} {fields}");
        }
    }
}

/// The content of the chunks that have come whole.
fn chunks(mut bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let Ok(size) = std::str::from_utf8(&bytes[..end]) else { break };
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        let Some(chunk) = bytes.get(end + 2..end + 2 + size) else { break };
        content.extend_from_slice(chunk);
        let Some(rest) = bytes.get(end + 4 + size..) else { break };
        bytes = rest;
    }
    content
}

#[tokio::test]
async fn a_page_chooses_by_the_request() {
    let (stage, _folder) = site(Policy::Declared).await;
    let text = "<p><esi:choose>\
        <esi:when test=\"$(HTTP_COOKIE{group})=='a'\"><esi:include src=\"/a\"/></esi:when>\
        <esi:otherwise>nobody</esi:otherwise></esi:choose>\
        <esi:vars>$(QUERY_STRING{q}|none)</esi:vars></p>";
    stage.origin.on("/page?q=1", page(text));
    stage.origin.on("/page", page(text));
    stage.origin.on("/a", Script::cacheable("A"));
    let ask = async |target: &str, fields: &str| stage.ask("GET", target, fields).await.text();
    assert_eq!(ask("/page?q=1", "").await, "<p>nobody1</p>");
    assert_eq!(ask("/page", "").await, "<p>nobodynone</p>");
}

#[tokio::test]
async fn server_side_includes_are_read_as_nginx_does() {
    let setup = Setup { site: "includes = { ssi = true, esi = false }\n", ..Setup::default() };
    let stage = setup.start().await;
    let fields = "Cache-Control: max-age=60\r\nContent-Type: text/html\r\n";
    let text = "<p><!--# include virtual=\"/a\" --><!--# set var=\"x\" value=\"1\" -->\
        <!--# if expr=\"$x = 1\" -->yes<!--# else -->no<!--# endif -->\
        <!--# block name=\"none\" -->empty<!--# endblock -->\
        <!--# include virtual=\"/bad\" stub=\"none\" -->\
        <!--# include virtual=\"/a\" set=\"body\" --><!--# echo var=\"body\" --></p>";
    stage.origin.on("/page", Script::ok(fields, text));
    stage.origin.on("/a", Script::cacheable("A"));
    for _ in 0..2 {
        assert_eq!(stage.get("/page").await.text(), "<p>AyesemptyA</p>");
    }
    stage
        .origin
        .on("/other", Script::ok("Cache-Control: max-age=60\r\nContent-Type: text/css\r\n", text));
    assert_eq!(stage.get("/other").await.text(), text);
}

#[tokio::test]
async fn explain_and_the_log_tell_of_the_pieces() {
    for policy in BOTH {
        let (stage, _folder) = site(policy).await;
        stage.origin.on("/page", page("<p><esi:include src=\"/a\"/><esi:include src=\"/b\"/></p>"));
        stage.origin.on("/a", Script::cacheable("A"));
        assert_eq!(stage.get("/page").await.text(), "<p>A</p>", "{policy:?}");
        let told = printed(&stage.daemon, &["explain", "http://larder.test/page"]).await;
        for words in [
            "a page with 2 fragments (ESI)",
            "/a: would be answered from the cache",
            "/b: would be",
        ] {
            assert!(told.contains(words), "{policy:?}: {words} in {told}");
        }
        let of_fragments = async || {
            let log =
                printed(&stage.daemon, &["log", "--once", "--json", "-q", "kind == fragment"])
                    .await;
            let records = log.lines().map(|line| serde_json::from_str(line).expect("JSON"));
            records.filter(|record: &Value| record["kind"] == "fragment").collect::<Vec<_>>()
        };
        eventually("records", async || of_fragments().await.len() == 2).await;
        let records = of_fragments().await;
        assert_eq!(records[0]["target"], "/a", "{policy:?}");
        assert!(records[0]["parent"].is_u64() || records[0]["parent"].is_string(), "{records:?}");
    }
}

#[tokio::test]
async fn a_fragment_within_a_page_is_there_when_its_text_has_gone_by() {
    let (stage, _folder) = site(Policy::Declared).await;
    let first = "<esi:inline name=\"/inner\">inner</esi:inline><p>a</p>";
    let second = "<esi:include src=\"/inner\"/><p>b</p>";
    let length = first.len() + second.len();
    let head = format!("HTTP/1.1 200 OK\r\n{PAGE}Content-Length: {length}\r\n\r\n{first}");
    stage.origin.on("/page", Script::respond(head).delay_ms(100).send(second));
    for _ in 0..2 {
        let reply = stage.get("/page").await;
        assert_eq!((reply.status, reply.text()), (200, "<p>a</p>inner<p>b</p>".to_owned()));
    }
}

#[tokio::test]
async fn what_a_page_leaves_out_does_not_hold_up_the_rest() {
    let (stage, _folder) = site(Policy::Declared).await;
    let gone = "x".repeat(64 * 1024);
    let part = format!("<p>a</p><esi:remove>{gone}</esi:remove>");
    let tried = format!("<esi:try><esi:attempt>b</esi:attempt><esi:except>{gone}</esi:except>");
    let text = format!("{}{tried}</esi:try><p>c</p>", part.repeat(12));
    stage.origin.on("/page", page(&text));
    let reply = stage.get("/page").await;
    assert_eq!(reply.text(), format!("{}b<p>c</p>", "<p>a</p>".repeat(12)));
}

#[tokio::test]
async fn fragments_of_a_page_that_is_made_anew_have_no_other_clients_cookies() {
    let site = "purge = { dialects = [\"foshttpcache\"] }\n";
    let stage = Setup { site, one_core: true, ..Setup::default() }.start().await;
    stage.origin.on("/page", page("<p><esi:include src=\"/cart\"/></p>"));
    stage.origin.on("/cart", Script::mirror("Cache-Control: private\r\n"));
    stage.origin.on("/other", Script::ok("Cache-Control: no-store\r\n", "other"));
    stage.ask("GET", "/other", "Cookie: user=alice\r\n").await;
    let reply = stage.ask("GET", "/page", "X-Refresh: 1\r\n").await;
    let text = reply.text();
    assert!(text.contains("GET /cart") && !text.contains("alice"), "{text}");
}
