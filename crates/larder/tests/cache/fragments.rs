//! Large fragments: their pages are delivered whole at any reading speed, within the limits on held
//! memory.

use crate::support;

use std::io::Read;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use support::folder::Folder;
use support::h2::{self, H2C};
use support::{PATIENCE, Setup, Stage, pattern, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::ReplyOutcome;
use tokio::net::TcpSocket;

/// Languages of pages under the policies that read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Esi,
    Ssi,
    Vcl,
}

const KINDS: [Kind; 3] = [Kind::Esi, Kind::Ssi, Kind::Vcl];

/// A daemon for pages of this kind, with further keys at the top of its file and of `[limits]`.
async fn stage(kind: Kind, top: &str, limits: &str) -> (Stage, Folder) {
    let (origin, folder) = (ScriptedOrigin::start().await.expect("an origin"), Folder::new());
    let addr = origin.addr();
    let site = match kind {
        Kind::Esi => "origin = \"app\"\n".to_owned(),
        Kind::Ssi => "origin = \"app\"\nincludes = { ssi = true }\n".to_owned(),
        Kind::Vcl => {
            let backend = format!(
                "backend app {{ .host = \"{}\"; .port = \"{}\"; }}",
                addr.ip(),
                addr.port()
            );
            let program = "sub vcl_backend_response {
                if (bereq.url ~ \"page\") { set beresp.do_esi = true; }
                if (bereq.url ~ \"text\") { set beresp.do_gzip = true; }
            }";
            folder.file("site.vcl", format!("vcl 4.1;\n{backend}\n{program}\n"));
            format!("vcl = \"{}\"\n", folder.path().join("site.vcl").display())
        }
    };
    let origins = match kind {
        Kind::Vcl => String::new(),
        _ => format!("[[origin]]\nname = \"app\"\nservers = \"http://{addr}\"\n"),
    };
    let file = format!(
        "{H2C}\nworkers = 2\n{top}\n[limits]\n{limits}\n{origins}[[site]]\nhost = \"*\"\n{site}"
    );
    (Stage { origin, daemon: Daemon::start(&file).expect("larder starts") }, folder)
}

/// An instruction for `src` in this kind of page.
fn include(kind: Kind, src: &str) -> String {
    match kind {
        Kind::Ssi => format!("<!--#include virtual=\"{src}\" -->"),
        Kind::Esi | Kind::Vcl => format!("<esi:include src=\"{src}\"/>"),
    }
}

/// A page that names its fragments, each with a text before it.
fn page(kind: Kind, lifetime: &str, texts: &[&str], srcs: &[&str]) -> Script {
    let mut body = "<p>".to_owned();
    for (text, src) in texts.iter().zip(srcs) {
        body = body + text + &include(kind, src);
    }
    let fields = format!(
        "Cache-Control: {lifetime}\r\nContent-Type: text/html\r\n{}",
        if kind == Kind::Esi { "Surrogate-Control: content=\"ESI/1.0\"\r\n" } else { "" }
    );
    Script::ok(&fields, &body)
}

/// Fields of a page that a site reads because it is HTML.
const HTML: &str = "Cache-Control: max-age=60\r\nContent-Type: text/html\r\n";

fn letters(bytes: usize) -> String {
    String::from_utf8(pattern(bytes)).expect("letters")
}

/// A connection whose kernel takes little at once.
async fn narrow(stage: &Stage) -> RawClient {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4 * 1024).expect("a small buffer");
    let stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
    RawClient::over(stream).patience(PATIENCE)
}

#[tokio::test]
async fn a_long_page_with_fragments_that_are_not_at_hand_comes_whole_at_every_pace() {
    let text = letters(350_000);
    let (new, kept) = (Script::ok("Cache-Control: no-store\r\n", &text), Script::cacheable(&text));
    let whole_page = format!("<p>{text}{text}ab{text}");
    for kind in KINDS {
        let (stage, _folder) = stage(kind, "", "").await;
        stage.origin.on("/new/1", new.clone());
        stage.origin.on("/kept", kept.clone());
        stage.origin.on("/cart", Script::ok("Cache-Control: no-store\r\n", "a"));
        for lifetime in ["max-age=60", "no-store"] {
            let target = format!("/page?{lifetime}");
            let srcs = ["/new/1", "/cart", "/kept"];
            stage.origin.on(&target, page(kind, lifetime, &[&text, "", "b"], &srcs));
            for _ in 0..4 {
                let asked = format!("{kind:?} {target}");
                assert_eq!(stage.get(&target).await.text(), whole_page, "{asked}");
                let mut client = h2::client(&stage.daemon).await;
                let answer = client.get(&target).await.answer(&asked);
                assert!(answer.body == whole_page.as_bytes(), "{asked} over HTTP/2");
                let mut raw = narrow(&stage).await;
                raw.send(&request("GET", &target, ""), WriteSplit::Whole).await.expect("sent");
                // It stands until its windows are full.
                support::pause(50).await;
                assert_eq!(whole(raw.reply("GET").await, &asked).text(), whole_page, "{asked}");
            }
        }
    }
}

#[tokio::test]
async fn a_page_of_many_long_fragments_comes_whole_with_little_memory() {
    let text = letters(300_000);
    for kind in [Kind::Esi, Kind::Vcl] {
        let (stage, _folder) = stage(kind, "memory = { size = \"64MiB\" }\n", "").await;
        let srcs: Vec<String> = (0..64)
            .map(|n| match n % 3 {
                // One stored as gzip, one not stored, and one common to all pages.
                0 => format!("/text/{n}"),
                1 => format!("/new/{n}"),
                _ => "/same".to_owned(),
            })
            .collect();
        for src in &srcs {
            let stored = "Cache-Control: max-age=600\r\nContent-Type: text/plain\r\n";
            let fields = if src.contains("new") { "Cache-Control: no-store\r\n" } else { stored };
            stage.origin.on(src, Script::ok(fields, &text));
        }
        let named: Vec<&str> = srcs.iter().map(String::as_str).collect();
        stage.origin.on("/page", page(kind, "max-age=600", &[""; 64], &named));
        let expected = format!("<p>{}", text.repeat(64));
        for _ in 0..2 {
            assert!(stage.get("/page").await.text() == expected, "{kind:?}");
        }
        let mut client = h2::client(&stage.daemon).await;
        let answer = client.get("/page").await.answer("/page");
        assert!(answer.body == expected.as_bytes(), "{kind:?} over HTTP/2");
    }
}

#[tokio::test]
async fn pages_within_pages_do_not_wait_for_each_others_places() {
    for parallel in [1, 2] {
        let limits = format!("esi_parallel = {parallel}");
        for kind in KINDS {
            let (stage, _folder) = stage(kind, "", &limits).await;
            let (names, mut expected) = (["/page/1", "/page/2", "/page/3"], "<p>".to_owned());
            for name in names {
                let srcs: Vec<String> = (0..3).map(|n| format!("{name}/f{n}")).collect();
                for src in &srcs {
                    let body = format!("[{src}]{}", letters(5_000));
                    stage.origin.on(src, Script::ok("Cache-Control: no-store\r\n", &body));
                }
                let named: Vec<&str> = srcs.iter().map(String::as_str).collect();
                stage.origin.on(name, page(kind, "max-age=60", &[""; 3], &named));
                let bodies = srcs.iter().map(|src| format!("[{src}]{}", letters(5_000)));
                expected += &format!("<p>{}", bodies.collect::<String>());
            }
            stage.origin.on("/page", page(kind, "max-age=60", &[""; 3], &names));
            for _ in 0..2 {
                // This program treats fragments of fragments as pages.
                let text = stage.get("/page").await.text();
                assert_eq!(text.len(), expected.len(), "{kind:?} {parallel}");
                assert_eq!(text, expected, "{kind:?} {parallel}");
            }
        }
    }
}

#[tokio::test]
async fn a_page_that_is_larger_than_pages_may_be_is_cut_and_counted() {
    for kind in [Kind::Esi, Kind::Vcl] {
        let (stage, _folder) = stage(kind, "", "esi_bytes = \"1MiB\"").await;
        // Of none of them the length is known before.
        let chunked = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\n";
        let script = Script::respond(format!("{chunked}{}", letters(300_000))).close();
        stage.origin.on("/new", script);
        stage.origin.on("/page", page(kind, "max-age=60", &[""; 10], &["/new"; 10]));
        let mut raw = stage.connect().await;
        raw.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("sent");
        let seen = raw.reply("GET").await;
        assert!(!matches!(seen, ReplyOutcome::Complete(_)), "{kind:?}");
        assert!(stage.limit_hits("esi_bytes").await > 0, "{kind:?}");
    }
}

#[tokio::test]
async fn a_page_that_stands_still_ends() {
    for kind in [Kind::Esi, Kind::Vcl] {
        let (stage, _folder) = stage(kind, "", "esi_still_time = \"1s\"").await;
        stage.origin.on("/never", Script::default().hang());
        stage.origin.on("/page", page(kind, "max-age=60", &["begins"], &["/never"]));
        let mut raw = stage.connect().await;
        raw.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("sent");
        let seen = raw.reply("GET").await;
        assert!(!matches!(seen, ReplyOutcome::Complete(_)), "{kind:?}");
        assert_eq!(stage.limit_hits("esi_still_time").await, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_empty_page_in_gzip_is_whole_for_every_client() {
    let (stage, _folder) = stage(Kind::Vcl, "", "").await;
    let mut empty = GzEncoder::new(Vec::new(), Compression::default()).finish().expect("memory");
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Type: text/html\r\n\
         Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        empty.len()
    );
    let mut answer = head.into_bytes();
    answer.append(&mut empty);
    stage.origin.on("/page", Script::respond(answer));
    for _ in 0..2 {
        let reply = stage.get("/page").await;
        assert_eq!((reply.status, reply.body.len()), (200, 0));
        let reply = stage.ask("GET", "/page", "Accept-Encoding: gzip\r\n").await;
        assert_eq!(reply.field("content-encoding").as_deref(), Some("gzip"));
        let mut plain = Vec::new();
        MultiGzDecoder::new(&reply.body[..]).read_to_end(&mut plain).expect("a stream of gzip");
        assert!(plain.is_empty() && !reply.body.is_empty(), "{:?}", reply.body);
    }
}

#[tokio::test]
async fn variables_tell_named_cookies_that_policy_leaves_and_no_markup() {
    let text = "<p><esi:vars>[$(HTTP_COOKIE{group})][$(HTTP_COOKIE{sid})][$(HTTP_COOKIE)]\
                [$(HTTP_HEADER{cookie})][$(HTTP_HEADER{authorization})][$(QUERY_STRING{q})]\
                [$(HTTP_REFERER)]</esi:vars><esi:include src=\"/f?x=$(HTTP_COOKIE{sid})&amp;\
                y=$(HTTP_COOKIE{group})&amp;z=$(HTTP_REFERER)\"/></p>";
    let asked = "Cookie: sid=secret; group=<b>&1\r\nAuthorization: Basic c2VjcmV0\r\n\
                 Referer: http://h/\"><script>\r\n";
    let group = "&lt;b&gt;&amp;1";
    let rest = "[][%3Ci%3E][http://h/&quot;&gt;&lt;script&gt;]";
    let z = "http%3A%2F%2Fh%2F%22%3E%3Cscript%3E";
    let none = (format!("[][][][]{rest}"), format!("/f?x=&y=&z={z}"));
    let named = format!("[{group}][][group={group}][group={group}]{rest}");
    let named = (named, format!("/f?x=&y=%3Cb%3E%261&z={z}"));
    for (site, (shown, src)) in [
        ("includes = { esi = \"html\" }\n", &none),
        ("includes = { esi = \"html\", cookies = [\"group\"] }\n", &named),
        (
            "includes = { esi = \"html\", cookies = [\"group\"] }\ncookies = { strip = [\"*\"] }\n",
            &none,
        ),
        (
            "includes = { esi = \"html\", cookies = [\"group\"] }\ncookies = { keep = [\"group\"] }\n",
            &named,
        ),
    ] {
        let stage = Setup { site, ..Setup::default() }.start().await;
        stage.origin.on("/page?q=%3Ci%3E", Script::ok(HTML, text));
        stage.origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "F"));
        let reply = stage.ask("GET", "/page?q=%3Ci%3E", asked).await;
        let expected = format!("<p>{shown}F</p>");
        assert_eq!(reply.text(), expected, "{site}");
        assert!(stage.origin.targets().contains(src), "{site} {:?}", stage.origin.targets());
    }
}

#[tokio::test]
async fn commands_tell_named_cookies_only() {
    let text = "<p>[<!--#echo var=\"cookie_group\" -->][<!--#echo var=\"cookie_sid\" -->]\
                [<!--#echo var=\"http_cookie\" -->][<!--#echo var=\"http_authorization\" -->]</p>";
    let asked = "Cookie: sid=secret; group=<b>\r\nAuthorization: Basic c2VjcmV0\r\n";
    for (site, shown) in [
        ("includes = { ssi = true }\n", "[(none)][(none)][(none)][(none)]"),
        (
            "includes = { ssi = true, cookies = [\"group\"] }\n",
            "[&lt;b&gt;][(none)][group=&lt;b&gt;][(none)]",
        ),
    ] {
        let stage = Setup { site, ..Setup::default() }.start().await;
        stage.origin.on("/page", Script::ok(HTML, text));
        assert_eq!(stage.ask("GET", "/page", asked).await.text(), format!("<p>{shown}</p>"));
    }
}
