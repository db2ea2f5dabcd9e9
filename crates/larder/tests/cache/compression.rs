//! Tests of compression over real sockets: each client gets a coding that it accepts of one stored
//! response, and nothing is coded for clients that do not ask for it.

use crate::support;

use std::io::{Read, Write};
use std::process::Command;

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use support::folder::Folder;
use support::{PATIENCE, Setup, Stage, eventually, sent_field};
use testkit::client::{WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{Reply, ReplyOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The kind of policy that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Declared,
    Vcl,
}

const BOTH: [Policy; 2] = [Policy::Declared, Policy::Vcl];

const GZIP: &str = "Accept-Encoding: gzip\r\n";
const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
const NONE: &str = "Accept-Encoding: identity\r\n";

/// A site of either kind that compresses stored bodies, with these keys of `[limits]`.
async fn site(policy: Policy, limits: &str) -> (Stage, Folder) {
    let folder = Folder::new();
    if policy == Policy::Declared {
        let site = "purge = { dialects = [\"purge\"] }\nbypass = { path = [\"/pass*\"] }\n";
        return (Setup { site, limits, ..Setup::default() }.start().await, folder);
    }
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    let program = format!(
        "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
         sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }}\n\
         if (req.url ~ \"^/pass\") {{ return (pass); }} }}\n\
         sub vcl_backend_response {{ set beresp.do_gzip = true; set beresp.keep = 1h; }}\n"
    );
    folder.file("site.vcl", program);
    let vcl = folder.path().join("site.vcl").display().to_string();
    let file = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 2\n[[site]]\nhost = \"*\"\nvcl = \"{vcl}\"\n\
         [limits]\n{limits}\n"
    );
    (Stage { origin, daemon: Daemon::start(&file).expect("larder starts") }, folder)
}

/// A page large enough to compress.
fn page() -> String {
    let lines = (0..200).map(|n| format!("<p class=\"line\">the line with the number {n}</p>\n"));
    lines.collect()
}

fn cacheable(fields: &str, body: &[u8]) -> Script {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: text/html\r\n\
         Content-Length: {}\r\n{fields}\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    Script::respond(bytes)
}

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).expect("memory");
    encoder.finish().expect("memory")
}

fn gunzipped(coded: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    MultiGzDecoder::new(coded).read_to_end(&mut plain).expect("gzip");
    plain
}

/// The response, complete or not, that a client gets for `target`.
async fn seen(stage: &Stage, target: &str, fields: &str) -> ReplyOutcome {
    let mut client = stage.connect().await;
    client.send(&request("GET", target, fields), WriteSplit::Whole).await.expect("sent");
    client.reply("GET").await
}

/// The reply's coding, and its body without it: for gzip and none.
fn read(reply: &Reply) -> (Option<String>, Vec<u8>) {
    let coding = reply.field("content-encoding");
    let plain = match coding.as_deref() {
        None => reply.body.clone(),
        Some("gzip") => gunzipped(&reply.body),
        Some(other) => panic!("{other}"),
    };
    (coding, plain)
}

/// Requests `target` with gzip until the response is gzip-coded, and returns it.
async fn folded(stage: &Stage, target: &str) -> Reply {
    let is_gzip = async || {
        let reply = stage.ask("GET", target, GZIP).await;
        reply.field("content-encoding").as_deref() == Some("gzip")
    };
    eventually("gzip", is_gzip).await;
    stage.ask("GET", target, GZIP).await
}

#[tokio::test]
async fn a_page_is_coded_once_for_those_who_ask_for_that_and_never_for_others() {
    // No number of requests makes the page warm: that is another test's.
    let top = "[compression]\nwarm_hits = 1_000_000\n";
    let stage = Setup { top, ..Setup::default() }.start().await;
    let page = page();
    stage.origin.on("/page", cacheable("ETag: \"e\"\r\n", page.as_bytes()));
    let plain = async |fields: &str| {
        let reply = stage.ask("GET", "/page", fields).await;
        assert!(reply.body == page.as_bytes(), "{fields}");
        assert_eq!(reply.field("content-encoding"), None, "{fields}");
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"), "{fields}");
        assert_eq!(reply.field("etag").as_deref(), Some("\"e\""), "{fields}");
    };
    // The first client gets it at once, whatever it accepts.
    plain(BROWSER).await;
    for _ in 0..5 {
        for fields in [NONE, "", "Accept-Encoding: *;q=0\r\n", "Accept-Encoding: x\r\n"] {
            plain(fields).await;
        }
    }
    for name in ["forms_made", "coding_time_us", "bodies_coded", "bodies_decoded"] {
        stage.daemon.assert_metric(&format!("larder_{name}_total"), 0).await;
    }
    let zipped = folded(&stage, "/page").await;
    assert!(gunzipped(&zipped.body) == page.as_bytes());
    assert_eq!(zipped.field("content-length"), Some(zipped.body.len().to_string()));
    assert_eq!(zipped.field("vary").as_deref(), Some("Accept-Encoding"));
    assert_eq!(zipped.field("etag").as_deref(), Some("\"e-gzip\""));
    // A client that prefers brotli gets the existing form.
    let browser = stage.ask("GET", "/page", BROWSER).await;
    assert_eq!(browser.field("content-encoding").as_deref(), Some("gzip"));
    for fields in [NONE, "", "Accept-Encoding: *;q=0\r\n"] {
        plain(fields).await;
    }
    assert_eq!(stage.origin.seen("/page"), 1);
    assert_eq!(sent_field(&stage.sole_request("/page"), "accept-encoding"), "gzip");
    stage.daemon.assert_metric("larder_forms_made_total", 1).await;
    stage.daemon.assert_metric("larder_bodies_coded_total", 0).await;
    stage.daemon.assert_metric("larder_bodies_decoded_total", 0).await;
    assert!(stage.metric("larder_coding_time_us_total").await > 0);
    let spared = stage.metric("larder_forms_spared_bytes_total").await;
    let each = (page.len() - zipped.body.len()) as u64;
    assert!(spared >= 3 * each && spared.is_multiple_of(each), "{spared} of {each} each");
}

#[tokio::test]
async fn without_time_for_it_nothing_is_coded() {
    let (stage, _folder) = site(Policy::Declared, "coding_time = 0\n").await;
    stage.origin.on("/page", cacheable("", page().as_bytes()));
    for _ in 0..20 {
        let reply = stage.ask("GET", "/page", BROWSER).await;
        assert_eq!(reply.field("content-encoding"), None);
    }
    stage.daemon.assert_metric("larder_forms_made_total", 0).await;
    stage.daemon.assert_metric("larder_coding_time_us_total", 0).await;
}

#[tokio::test]
async fn a_page_is_coded_after_as_many_hits_as_settings_say() {
    let top = "[compression]\ngzip_hits = 30\n";
    let stage = Setup { top, ..Setup::default() }.start().await;
    stage.origin.on("/page", cacheable("", page().as_bytes()));
    for _ in 0..30 {
        let reply = stage.ask("GET", "/page", GZIP).await;
        assert_eq!(reply.field("content-encoding"), None);
    }
    folded(&stage, "/page").await;
}

/// A page that gzip makes about half as long.
fn numbers() -> String {
    let mut seed = 1_u32;
    let mut draw = || {
        seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        format!("{:x} ", seed >> 8)
    };
    (0..8000).map(|_| draw()).collect()
}

#[tokio::test]
async fn in_a_full_memory_gzip_replaces_bodies_that_no_client_requests_uncoded() {
    let top = "memory = { size = \"64MiB\" }";
    let stage = Setup { top, limits: "coding_time = 100\n", ..Setup::default() }.start().await;
    let script = |body: &str| cacheable("ETag: \"e\"\r\n", body.as_bytes());
    // The filler is larger than any memory.
    let filler = "x".repeat(512 << 10);
    for number in 0..160 {
        let target = format!("/filler/{number}");
        stage.origin.on(&target, script(&filler));
        stage.get(&target).await;
    }
    let page = numbers();
    for target in ["/browsers", "/both"] {
        stage.origin.on(target, script(&page));
    }
    stage.ask("GET", "/both", GZIP).await;
    // A client without codings gets the stored form, which stays.
    stage.ask("GET", "/both", NONE).await;
    for target in ["/browsers", "/both"] {
        let zipped = folded(&stage, target).await;
        assert_eq!(zipped.field("etag").as_deref(), Some("\"e-gzip\""), "{target}");
        assert!(gunzipped(&zipped.body) == page.as_bytes(), "{target}");
    }
    stage.daemon.assert_metric("larder_bodies_folded_total", 1).await;
    assert!(stage.metric("larder_bodies_folded_saved_bytes_total").await > 10_000);
    for (target, decodes) in [("/both", false), ("/browsers", true)] {
        for fields in [NONE, "", NONE] {
            let plain = stage.ask("GET", target, fields).await;
            assert_eq!(plain.field("etag").as_deref(), Some("\"e\""), "{target}");
            assert_eq!(plain.field("content-encoding"), None, "{target}");
            assert!(plain.body == page.as_bytes(), "{target}");
        }
        let decoded = stage.metric("larder_bodies_decoded_total").await;
        assert_eq!(decoded > 0, decodes, "{target}");
    }
    // The first client without codings makes a copy for later ones.
    let is_beside = async || {
        let decoded = stage.metric("larder_bodies_decoded_total").await;
        stage.get("/browsers").await;
        stage.metric("larder_bodies_decoded_total").await == decoded
    };
    eventually("no decoding", is_beside).await;
    let had = format!("{GZIP}If-None-Match: \"e-gzip\"\r\n");
    assert_eq!(stage.ask("GET", "/browsers", &had).await.status, 304);
    assert_eq!((stage.origin.seen("/browsers"), stage.origin.seen("/both")), (1, 1));
}

/// A program's order to compress applies when the page is stored, as in Varnish.
#[tokio::test]
async fn a_page_that_a_program_has_coded_is_stored_in_gzip() {
    let (stage, _folder) = site(Policy::Vcl, "").await;
    let page = page();
    stage.origin.on("/page", cacheable("ETag: \"e\"\r\n", page.as_bytes()));
    for (at, fields) in
        [NONE, GZIP, "", BROWSER, "Accept-Encoding: *;q=0\r\n", GZIP].into_iter().enumerate()
    {
        let reply = stage.ask("GET", "/page", fields).await;
        let (coding, plain) = read(&reply);
        assert!(plain == page.as_bytes(), "{fields}");
        let takes = fields.contains("gzip");
        assert_eq!(coding.as_deref(), takes.then_some("gzip"), "{fields}");
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"));
        if at > 0 {
            let length = reply.field("content-length").expect("a stored body's");
            assert_eq!(length, reply.body.len().to_string(), "{fields}");
        }
    }
    assert_eq!(stage.origin.seen("/page"), 1);
    assert_eq!(sent_field(&stage.sole_request("/page"), "accept-encoding"), "gzip");
    stage.daemon.assert_metric("larder_bodies_coded_total", 1).await;
    stage.daemon.assert_metric("larder_bodies_decoded_total", 3).await;
    stage.daemon.assert_metric("larder_forms_made_total", 0).await;
}

#[tokio::test]
async fn each_form_has_its_tag_and_each_tag_its_304() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    let page = page();
    stage.origin.on("/page", cacheable("ETag: \"e\"\r\n", page.as_bytes()));
    let plain = stage.ask("GET", "/page", NONE).await;
    // A client's gzip tag from before is valid, though the form is made anew only for the next
    // client.
    let had = stage.ask("GET", "/page", &format!("{GZIP}If-None-Match: \"e-gzip\"\r\n")).await;
    assert_eq!((had.status, had.field("etag").as_deref()), (304, Some("\"e-gzip\"")));
    let coded = folded(&stage, "/page").await;
    assert_eq!(plain.field("etag").as_deref(), Some("\"e\""));
    assert_eq!(coded.field("etag").as_deref(), Some("\"e-gzip\""));
    for (accept, had, told) in [
        (GZIP, "\"e-gzip\"", Some("\"e-gzip\"")),
        (GZIP, "\"e\"", Some("\"e\"")),
        (GZIP, "\"e\", \"e-gzip\"", Some("\"e-gzip\"")),
        (NONE, "\"e\"", Some("\"e\"")),
        (NONE, "\"x\", W/\"e\"", Some("\"e\"")),
        (NONE, "\"e-gzip\"", None),
        (BROWSER, "W/\"e-br\"", Some("W/\"e-br\"")),
        (GZIP, "W/\"e-br\"", None),
        (GZIP, "*", Some("\"e-gzip\"")),
        (GZIP, "\"x\"", None),
    ] {
        let fields = format!("{accept}If-None-Match: {had}\r\n");
        for method in ["GET", "HEAD"] {
            let reply = stage.ask(method, "/page", &fields).await;
            assert_eq!(reply.status == 304, told.is_some(), "{accept} {had}");
            assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"));
            if told.is_some() {
                assert_eq!(reply.field("etag").as_deref(), told, "{accept} {had}");
            }
        }
    }
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn an_error_page_keeps_its_form_whatever_form_the_client_has() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    let page = page();
    let missing = format!(
        "HTTP/1.1 404 Not Found\r\nCache-Control: max-age=600\r\nContent-Type: text/html\r\n\
         ETag: \"e\"\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    );
    stage.origin.on("/no", Script::respond(missing));
    let stored = stage.ask("GET", "/no", NONE).await;
    assert_eq!((stored.status, stored.body == page.as_bytes()), (404, true));
    // Conditions count for a 2xx alone (RFC 9110 13.2.1).
    for had in ["\"e-gzip\"", "\"e\"", "*"] {
        let fields = format!("{GZIP}If-None-Match: {had}\r\n");
        let reply = stage.ask("GET", "/no", &fields).await;
        let (coding, plain) = read(&reply);
        assert_eq!((reply.status, plain == page.as_bytes()), (404, true), "{had}");
        let tag = if coding.is_some() { "\"e-gzip\"" } else { "\"e\"" };
        assert_eq!(reply.field("etag").as_deref(), Some(tag), "{had}");
    }
}

#[tokio::test]
async fn head_describes_the_form_that_get_would_get() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        stage.origin.on("/page", cacheable("ETag: \"e\"\r\n", page().as_bytes()));
        folded(&stage, "/page").await;
        for accept in [GZIP, NONE] {
            let get = stage.ask("GET", "/page", accept).await;
            let head = stage.ask("HEAD", "/page", accept).await;
            for field in ["content-encoding", "content-length", "etag", "vary", "content-type"] {
                assert_eq!(head.field(field), get.field(field), "{policy:?} {accept} {field}");
            }
        }
    }
}

#[tokio::test]
async fn ranges_are_of_the_form_that_is_sent() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    let page = page();
    stage.origin.on("/page", cacheable("ETag: \"e\"\r\n", page.as_bytes()));
    // Before a form exists, and after that.
    stage.get("/page").await;
    let first = "Range: bytes=10-29\r\nIf-Range: \"e-gzip\"\r\n";
    let first = stage.ask("GET", "/page", &format!("{GZIP}{first}")).await;
    assert!((first.status, &first.body[..]) == (200, page.as_bytes()), "of another form");
    let coded = folded(&stage, "/page").await.body;
    for (accept, whole, tag, others) in
        [(GZIP, &coded[..], "\"e-gzip\"", "\"e\""), (NONE, page.as_bytes(), "\"e\"", "\"e-gzip\"")]
    {
        let ask = async |more: &str| {
            stage.ask("GET", "/page", &format!("{accept}Range: bytes=10-29\r\n{more}")).await
        };
        let part = ask("").await;
        assert_eq!((part.status, &part.body[..]), (206, &whole[10..30]), "{accept}");
        let range = format!("bytes 10-29/{}", whole.len());
        assert_eq!(part.field("content-range"), Some(range), "{accept}");
        assert_eq!(part.field("etag").as_deref(), Some(tag));
        assert_eq!(ask(&format!("If-Range: {tag}\r\n")).await.status, 206, "{accept}");
        for other in [others, "\"e-zstd\""] {
            let other = ask(&format!("If-Range: {other}\r\n")).await;
            assert_eq!((other.status, &other.body[..]), (200, whole), "{accept}");
        }
        let beyond = format!("{accept}Range: bytes={}-\r\n", whole.len());
        assert_eq!(stage.ask("GET", "/page", &beyond).await.status, 416, "{accept}");
    }
}

#[tokio::test]
async fn a_304_of_the_origin_confirms_all_forms() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    let page = page();
    let stale = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=0, must-revalidate\r\nETag: \"e\"\r\n\
         Content-Type: text/css\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    );
    let same = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"e\"\r\n\
                Content-Length: 7\r\n\r\n";
    stage.origin.on("/page", Script::respond(stale));
    stage.ask("GET", "/page", GZIP).await;
    stage.origin.on("/page", Script::respond(same.replace("max-age=60", "max-age=0")));
    // The form is made while each response is validated, and stays.
    folded(&stage, "/page").await;
    let made = stage.metric("larder_forms_made_total").await;
    stage.origin.on("/page", Script::respond(same));
    stage.get("/page").await;
    let asked = stage.origin.seen("/page");
    for accept in [GZIP, NONE, GZIP] {
        let reply = stage.ask("GET", "/page", accept).await;
        assert!(read(&reply).1 == page.as_bytes(), "{accept}");
        let tag = if accept == GZIP { "\"e-gzip\"" } else { "\"e\"" };
        assert_eq!(reply.field("etag").as_deref(), Some(tag));
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"));
    }
    assert_eq!(stage.origin.seen("/page"), asked);
    stage.daemon.assert_metric("larder_forms_made_total", made).await;
    let confirming = stage.received().pop().expect("a request");
    assert_eq!(sent_field(&confirming, "if-none-match"), "\"e\"");
}

#[tokio::test]
async fn what_is_not_worth_it_or_must_not_be_changed_is_left_alone() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    let page = page();
    for (target, fields) in [
        ("/image", "Content-Type: image/png\r\n"),
        ("/none", "Cache-Control: no-transform\r\nContent-Type: text/html\r\n"),
        ("/digest", "Repr-Digest: sha-256=:AAAA:\r\nContent-Type: text/html\r\n"),
    ] {
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"e\"\r\n{fields}\
             Content-Length: {}\r\n\r\n{page}",
            page.len()
        );
        stage.origin.on(target, Script::respond(head));
        for accept in [GZIP, BROWSER, GZIP] {
            let reply = stage.ask("GET", target, accept).await;
            assert_eq!(reply.field("content-encoding"), None, "{target}");
            assert_eq!(reply.field("vary"), None, "{target}");
            assert_eq!(reply.field("etag").as_deref(), Some("\"e\""), "{target}");
            assert!(reply.body == page.as_bytes());
        }
    }
    stage.origin.on("/tiny", cacheable("", b"tiny"));
    for _ in 0..3 {
        assert_eq!(stage.ask("GET", "/tiny", GZIP).await.text(), "tiny");
    }
    let private = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Type: text/html\r\n\
         Content-Length: {}\r\n\r\n{page}",
        page.len()
    );
    stage.origin.on("/private", Script::respond(private));
    for _ in 0..3 {
        let reply = stage.ask("GET", "/private", GZIP).await;
        assert_eq!(reply.field("content-encoding"), None, "BREACH");
    }
    stage.daemon.assert_metric("larder_coding_time_us_total", 0).await;
}

#[tokio::test]
async fn what_an_origin_has_coded_is_one_variant_for_all_clients() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    let page = page();
    let fields = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\nETag: \"e\"\r\n";
    stage.origin.on("/page", cacheable(fields, &gzipped(page.as_bytes())));
    for accept in [NONE, GZIP, BROWSER, "Accept-Encoding: br;q=1, gzip;q=0.1\r\n", NONE] {
        let reply = stage.ask("GET", "/page", accept).await;
        let (coding, plain) = read(&reply);
        assert!(plain == page.as_bytes(), "{accept}");
        let tag = if coding.is_some() { "\"e\"" } else { "W/\"e\"" };
        assert_eq!(reply.field("etag").as_deref(), Some(tag), "{accept}");
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"));
    }
    assert_eq!(stage.origin.seen("/page"), 1);
    let head = stage.ask("HEAD", "/page", NONE).await;
    assert_eq!(head.field("content-length"), Some(page.len().to_string()), "counted as it came");
}

#[tokio::test]
async fn what_passes_is_decoded_for_a_client_that_did_not_ask_for_it() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    let page = page();
    let body = gzipped(page.as_bytes());
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Encoding: gzip\r\n\
         ETag: \"e\"\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    stage.origin.on("/private", Script::respond(answer));
    for accept in [NONE, GZIP] {
        let reply = stage.ask("GET", "/private", accept).await;
        let (coding, plain) = read(&reply);
        assert_eq!(coding.is_some(), accept == GZIP);
        assert!(plain == page.as_bytes(), "{accept}");
    }
}

#[tokio::test]
async fn a_condition_on_what_passes_reaches_the_origin_by_the_tags_that_it_knows() {
    let stage = Setup { site: "compress = \"all\"\n", ..Setup::default() }.start().await;
    let private = "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Type: text/html\r\n";
    let page = page();
    let whole = format!("{private}ETag: \"e\"\r\nContent-Length: {}\r\n\r\n{page}", page.len());
    stage.origin.on("/private", Script::respond(whole.into_bytes()));
    let had = stage.ask("GET", "/private", GZIP).await;
    assert_eq!(had.field("etag").as_deref(), Some("\"e-gzip\""));
    let same = "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nCache-Control: private\r\n\r\n";
    stage.origin.on("/private", Script::respond(same.as_bytes().to_vec()));
    let delta = "W/\"e-dcz-0011223344556677\"";
    for (accept, listed, asked, told) in [
        (GZIP, "\"e-gzip\"", "\"e-gzip\", \"e\"", "\"e-gzip\""),
        (GZIP, "W/\"e-gzip\", \"x\"", "W/\"e-gzip\", \"x\", W/\"e\"", "W/\"e-gzip\""),
        // The client has what the origin names.
        (GZIP, "\"e\", \"e-gzip\"", "\"e\", \"e-gzip\", \"e\"", "\"e\""),
        // The client could not use that form.
        (NONE, "\"e-gzip\"", "\"e-gzip\"", "\"e\""),
        (GZIP, "\"x\"", "\"x\"", "\"e\""),
        // Nor is a dictionary form named by a passing 304.
        (BROWSER, delta, delta, "\"e\""),
    ] {
        stage.origin.forget();
        let fields = format!("{accept}If-None-Match: {listed}\r\n");
        let reply = stage.ask("GET", "/private", &fields).await;
        assert_eq!(reply.status, 304, "{fields}");
        assert_eq!(reply.field("etag").as_deref(), Some(told), "{fields}");
        assert_eq!(sent_field(&stage.sole_request("/private"), "if-none-match"), asked, "{fields}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_it_claims_is_cut_and_not_stored() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        let fields = "Content-Encoding: gzip\r\n";
        stage.origin.on("/page", cacheable(fields, page().as_bytes()));
        for count in 1..=2 {
            let seen = seen(&stage, "/page", GZIP).await;
            assert!(seen.complete().is_none_or(|reply| reply.status >= 500), "{policy:?}");
            assert_eq!(stage.origin.seen("/page"), count, "{policy:?}");
        }
    }
}

/// A body of `len` zeros, in a coding.
fn bomb(coding: codec::Coding, len: usize) -> Vec<u8> {
    let settings = codec::EncodeSettings::new(coding, 5).expect("a level");
    let mut encoder = codec::Encoder::new(&settings).expect("memory");
    let (zeros, mut output, mut coded) = (vec![0; len], vec![0; 1 << 16], Vec::new());
    let mut at = 0;
    loop {
        let step =
            encoder.step(&zeros[at..], &mut output, codec::FlushMode::Finish).expect("memory");
        at += step.taken;
        coded.extend_from_slice(&output[..step.made]);
        if step.done {
            return coded;
        }
    }
}

#[tokio::test]
async fn bombs_are_cut_and_counted_and_larder_lives() {
    let limits = "decoded_bytes = \"4MiB\"\n";
    let (stage, _folder) = site(Policy::Declared, limits).await;
    for coding in codec::Coding::CODED {
        let target = format!("/{}", coding.token());
        let fields = format!("Content-Encoding: {}\r\n", coding.token());
        stage.origin.on(&target, cacheable(&fields, &bomb(coding, 64 << 20)));
        let seen = seen(&stage, &target, NONE).await;
        assert!(seen.complete().is_none(), "{coding:?}");
    }
    let reached = async || {
        stage.limit_hits("decoded_bytes").await + stage.limit_hits("decoded_ratio").await == 3
    };
    eventually("three limits", reached).await;
    stage.origin.on("/page", cacheable("", page().as_bytes()));
    assert_eq!(stage.get("/page").await.status, 200);
    stage.daemon.assert_metric("larder_panics_total", 0).await;
}

#[tokio::test]
async fn what_is_hot_is_kept_in_better_forms_until_it_is_purged() {
    let top = "[compression]\nwarm_hits = 2\nhot_hits = 6\n";
    let site = "purge = { dialects = [\"purge\"] }\n";
    let stage = Setup { top, site, ..Setup::default() }.start().await;
    let page = page();
    stage.origin.on("/page", cacheable("ETag: \"e\"\r\n", page.as_bytes()));
    for (accept, token) in
        [("Accept-Encoding: br\r\n", "br"), ("Accept-Encoding: zstd\r\n", "zstd")]
    {
        let has_form = async || {
            let reply = stage.ask("GET", "/page", accept).await;
            reply.field("content-encoding").as_deref() == Some(token)
        };
        eventually("the form", has_form).await;
        let reply = stage.ask("GET", "/page", accept).await;
        let tag = format!("W/\"e-{token}\"");
        assert_eq!(reply.field("etag"), Some(tag.clone()));
        assert_eq!(reply.field("content-length"), Some(reply.body.len().to_string()));
        let same = format!("{accept}If-None-Match: {tag}\r\n");
        assert_eq!(stage.ask("GET", "/page", &same).await.status, 304);
        let head = stage.ask("HEAD", "/page", accept).await;
        assert_eq!(head.field("content-encoding").as_deref(), Some(token));
    }
    // By an independent decoder.
    for accept in ["br", "zstd", "gzip", "br, zstd, gzip"] {
        let url = format!("http://{}/page", stage.daemon.addr());
        let header = format!("Accept-Encoding: {accept}");
        let mut curl = Command::new("curl");
        curl.args(["-s", "--compressed", "-H", "Host: larder.test", "-H", &header, &url]);
        let curl = tokio::task::spawn_blocking(move || curl.output()).await.expect("no panic");
        let Ok(curl) = curl else { return eprintln!("skipped: no curl") };
        assert!(curl.stdout == page.as_bytes(), "{accept}");
    }
    assert_eq!(stage.origin.seen("/page"), 1);
    assert!(stage.metric("larder_forms_made_total").await >= 2);
    assert!(stage.metric("larder_forms_sent_total").await >= 2);
    assert_eq!(stage.ask("PURGE", "/page", "").await.status, 200);
    let reply = stage.ask("GET", "/page", "Accept-Encoding: br\r\n").await;
    assert_eq!(reply.field("content-encoding"), None, "forms are gone with the object");
    assert_eq!(stage.origin.seen("/page"), 2);
}

/// Load tools and old clients accept no coding: a frequently requested coded response is decoded
/// once.
#[tokio::test]
async fn what_is_often_asked_for_without_a_coding_is_decoded_once() {
    let top = "[compression]\nwarm_hits = 2\n";
    let stage = Setup { top, ..Setup::default() }.start().await;
    let page = page();
    let fields = "Content-Encoding: gzip\r\nETag: \"e-gzip\"\r\n";
    stage.origin.on("/page", cacheable(fields, &gzipped(page.as_bytes())));
    let asked = async || {
        let reply = stage.get("/page").await;
        assert!(reply.body == page.as_bytes() && reply.field("content-encoding").is_none());
        assert_eq!(reply.field("etag").as_deref(), Some("\"e\""));
        reply.field("content-length")
    };
    _ = asked().await;
    let has_form = async || {
        _ = asked().await;
        stage.metric("larder_forms_sent_total").await >= 1
    };
    eventually("the form", has_form).await;
    let decoded = stage.metric("larder_bodies_decoded_total").await;
    for _ in 0..10 {
        assert_eq!(asked().await, Some(page.len().to_string()));
    }
    assert_eq!(stage.metric("larder_bodies_decoded_total").await, decoded);
    let zipped = stage.ask("GET", "/page", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(zipped.field("content-encoding").as_deref(), Some("gzip"));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn with_compress_off_bodies_are_what_origins_make_of_them() {
    let stage = Setup { site: "compress = \"off\"\n", ..Setup::default() }.start().await;
    stage.origin.on("/page", cacheable("Vary: Accept-Encoding\r\n", page().as_bytes()));
    for accept in [GZIP, NONE, GZIP] {
        assert_eq!(stage.ask("GET", "/page", accept).await.field("content-encoding"), None);
    }
    assert_eq!(stage.origin.seen("/page"), 2, "two variants");
}

#[tokio::test]
async fn with_compress_all_what_passes_is_coded_too() {
    let stage = Setup { site: "compress = \"all\"\n", ..Setup::default() }.start().await;
    let page = page();
    let private = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Type: text/html\r\nETag: \"e\"\r\n\
         Content-Length: {}\r\n\r\n{page}",
        page.len()
    );
    stage.origin.on("/private", Script::respond(private));
    for accept in [GZIP, NONE] {
        let reply = stage.ask("GET", "/private", accept).await;
        let (coding, plain) = read(&reply);
        assert_eq!(coding.is_some(), accept == GZIP);
        assert!(plain == page.as_bytes());
        assert_eq!(reply.field("vary").as_deref(), Some("Accept-Encoding"));
        let tag = if accept == GZIP { "\"e-gzip\"" } else { "\"e\"" };
        assert_eq!(reply.field("etag").as_deref(), Some(tag));
    }
}

#[tokio::test]
async fn a_page_that_pauses_is_seen_as_far_as_it_came() {
    for policy in BOTH {
        let (stage, _folder) = site(policy, "").await;
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Type: text/html\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let script = Script::respond(head).send(chunk("the beginning")).hang();
        stage.origin.on("/page", script);
        let mut client = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
        client.write_all(&request("GET", "/page", NONE)).await.expect("sent");
        let mut came = Vec::new();
        let seen = async {
            while !String::from_utf8_lossy(&came).contains("the beginning") {
                assert!(client.read_buf(&mut came).await.expect("it goes on") > 0);
            }
        };
        assert!(timeout(PATIENCE, seen).await.is_ok(), "{policy:?}: nothing is seen of it");
    }
}

#[tokio::test]
async fn an_edit_of_a_form_reaches_the_origin_with_the_tag_that_it_knows() {
    let (stage, _folder) = site(Policy::Declared, "").await;
    stage.origin.on("/page", Script::ok("", "edited"));
    stage.ask("PUT", "/page", "If-Match: \"e-gzip\"\r\nContent-Length: 0\r\n").await;
    let edit = stage.sole_request("/page");
    assert_eq!(sent_field(&edit, "if-match"), "\"e-gzip\", \"e\"");
}
