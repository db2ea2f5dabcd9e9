//! Tests of `error_pages`: a site's own pages for errors made here, over HTTP/1 and HTTP/2.

use crate::support;

use std::path::Path;
use std::process::Command;

use support::folder::Folder;
use support::h2::{H2C, client};
use support::{Setup, Stage};
use testkit::larder::{Daemon, binary};
use testkit::origin::{Script, ScriptedOrigin};

const OWN: &str = "<!doctype html><title>Back soon</title><p>Gr\u{fc}\u{df}e";

/// Keys of a site with this page for 502, and JSON for 403.
fn keys(folder: &Folder) -> String {
    let at = folder.path().display();
    format!(
        "error_pages = {{ 502 = \"{at}/down.html\", 403 = \"{at}/no.json\" }}\n\
         [[site.route]]\npath = \"/secret\"\nrespond = {{ status = 403 }}\n\
         [[site.route]]\npath = \"/worded\"\nrespond = {{ status = 403, body = \"worded\" }}\n"
    )
}

fn written() -> Folder {
    let folder = Folder::new();
    folder.file("down.html", OWN);
    folder.file("no.json", "{\"no\":true}");
    folder
}

/// A stage with these pages, whose origin closes connections without a response on `/down`.
async fn stage(folder: &Folder) -> Stage {
    let stage = Setup { site: &keys(folder), ..Setup::default() }.listening(H2C).await;
    stage.origin.on("/down", Script::default().close());
    stage
}

/// Checks a file with `text` in `folder`; the error has the message.
fn check(folder: &Folder, text: &str) -> Result<(), String> {
    folder.file("larder.toml", text);
    let file = folder.path().join("larder.toml");
    let output = Command::new(binary().expect("a binary")).arg("check").arg(file).output();
    let output = output.expect("it ran");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_made_here_has_the_site_s_page_its_type_and_its_number() {
    let folder = written();
    let stage = stage(&folder).await;
    let reply = stage.ask("GET", "/down", "Accept-Encoding: gzip, br\r\n").await;
    assert_eq!((reply.status, reply.text().as_str()), (502, OWN));
    assert_eq!(reply.field("content-type").as_deref(), Some("text/html"));
    assert_eq!(reply.field("cache-control").as_deref(), Some("no-store"));
    assert_eq!(reply.field("content-encoding"), None);
    let number = reply.field("x-request-id").expect("a number");
    assert!(u64::from_str_radix(&number, 16).is_ok(), "{number}");
    let reply = stage.ask("HEAD", "/down", "").await;
    let length = OWN.len().to_string();
    assert_eq!((reply.status, reply.body.len()), (502, 0));
    assert_eq!(reply.field("content-length"), Some(length));
    // A status without a file has the plain page; one without a body is the site's.
    let reply = stage.get("/secret").await;
    assert_eq!((reply.status, reply.text().as_str()), (403, "{\"no\":true}"));
    assert_eq!(reply.field("content-type").as_deref(), Some("application/json"));
    let reply = stage.get("/worded").await;
    assert_eq!((reply.status, reply.text().as_str()), (403, "worded"));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http2_the_page_is_the_same() {
    let folder = written();
    let stage = stage(&folder).await;
    let mut client = client(&stage.daemon).await;
    let reply = client.get("/down").await.answer("/down");
    assert_eq!((reply.status, reply.text().as_str()), (502, OWN));
    assert_eq!(reply.field("content-type").as_deref(), Some("text/html"));
    assert!(reply.field("x-request-id").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_s_own_errors_stay_its_own() {
    let folder = written();
    let stage = stage(&folder).await;
    for status in ["502 Bad Gateway", "403 Forbidden"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 6\r\n\r\norigin");
        stage.origin.on("/own", Script::respond(answer));
        let reply = stage.get("/own").await;
        assert!(status.starts_with(&reply.status.to_string()), "{}", reply.status);
        assert_eq!(reply.text(), "origin");
        assert_eq!(reply.field("x-request-id"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_reads_the_page_again_and_keeps_the_old_one_if_it_cannot() {
    let folder = written();
    let stage = stage(&folder).await;
    assert_eq!(stage.get("/down").await.text(), OWN);
    folder.file("down.html", "later");
    assert_eq!(stage.get("/down").await.text(), OWN);
    let (done, said) = reload(&stage.daemon).await;
    assert!(done, "{said}");
    assert_eq!(stage.get("/down").await.text(), "later");
    std::fs::remove_file(folder.path().join("down.html")).expect("removed");
    let (done, said) = reload(&stage.daemon).await;
    assert!(!done && said.contains("down.html"), "{said}");
    assert_eq!(stage.get("/down").await.text(), "later");
}

async fn reload(daemon: &Daemon) -> (bool, String) {
    let (done, said, why) = support::console::run(daemon, &["reload"]).await;
    (done, said + &why)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_names_pages_that_cannot_be_used_and_where_they_are_written() {
    let folder = written();
    let origin = ScriptedOrigin::start().await.expect("a port");
    let good = Setup { site: &keys(&folder), ..Setup::default() }.file(&origin);
    assert_eq!(check(&folder, &good), Ok(()));
    let line = good.lines().position(|line| line.starts_with("error_pages")).expect("it") + 1;
    let limited = good.replace("[limits]", "[limits]\nerror_page_bytes = \"16B\"");
    for (bad, line, words) in [
        (good.replace("down.html", "gone.html"), line, "gone.html: No such file"),
        (limited, line + 1, "down.html: the file is longer than 16B (limit: error_page_bytes)"),
        (good.replace("502 =", "302 ="), line, "`302` is not the status of an error"),
        (good.replace("502 =", "5xx ="), line, "`5xx` is not the status of an error"),
        (good.replace("502 = \"/", "502 = \""), line, "takes an absolute path"),
    ] {
        let said = check(&folder, &bad).expect_err("it is wrong");
        assert!(said.contains(words), "{words}: {said}");
        assert!(said.contains(&format!("larder.toml:{line}:")), "{line}: {said}");
    }
}

/// A site of `program`, with an origin that does not listen.
fn with_program(program: &Path, keys: &str) -> String {
    let program = program.display();
    format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\n[[site]]\nhost = \"*\"\nvcl = \"{program}\"\n{keys}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_with_vcl_keeps_varnish_s_page() {
    let folder = written();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    drop(socket);
    let text = format!("vcl 4.1;\nbackend app {{ .host = \"127.0.0.1\"; .port = \"{port}\"; }}\n");
    folder.file("site.vcl", text);
    let program = folder.path().join("site.vcl");
    let pages = format!("error_pages = {{ 503 = \"{}/down.html\" }}\n", folder.path().display());
    let said = check(&folder, &with_program(&program, &pages)).expect_err("VCL decides");
    assert!(said.contains("beside `error_pages` the VCL decides nothing alone"), "{said}");
    let daemon = Daemon::start(&with_program(&program, "")).expect("larder starts");
    let mut raw = testkit::client::RawClient::connect(daemon.addr()).await.expect("a connection");
    let reply = support::whole(raw.get("/").await.expect("sent"), "/");
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("Guru Meditation"), "{}", reply.text());
}
