//! Tests of the preset `static`.

use super::Rule::{Apart, ApartUnlessPublic, Clean};
use super::{MARK, Probe, common, hits, is_hit, no_leak, sessions, stage};
use testkit::origin::Script;

#[tokio::test]
async fn no_visitor_gets_what_was_made_for_another() {
    let mut probes = common::poisoning(ApartUnlessPublic);
    probes.extend(common::set_cookie(&["/", "/a.css", "/a.pdf", "/favicon.ico"]));
    let known = ["sid", "PHPSESSID", "sessionid"];
    probes.extend(sessions(&["/", "/page", "/a.html", "/book.pdf"], &known, ApartUnlessPublic));
    probes.extend(sessions(&["/a.css", "/a.js", "/favicon.ico", "/x/a.css?1"], &known, Clean));
    // These are files by their names, but not by their types and delimiters.
    probes.extend(common::deception_by_session("sid", Clean).split_off(1));
    for target in ["/account;x.css", "/account%2fx.css", "/account%3fx.css", "/account%3bx.css"] {
        probes.push(Probe::get(target, "", ApartUnlessPublic));
    }
    for target in ["/a.css", "/book.pdf", "/page"] {
        let password = format!("Authorization: Basic {MARK}\r\n");
        probes.push(Probe::get(target, password, Apart));
        probes.push(Probe::get(target, "", Apart).sent_by("POST", MARK));
    }
    no_leak("static", &probes, "sid").await;
}

#[tokio::test]
async fn files_are_hits() {
    let (one, two) = ("Cookie: sid=1\r\n", "Cookie: sid=2\r\n");
    hits(
        "static",
        &[
            ("/a.css", one, two, "Content-Type: text/css; charset=utf-8\r\n"),
            ("/a.min.js?v=2", one, "", "Content-Type: application/javascript\r\n"),
            ("/fonts/a.woff2", "", two, "Content-Type: font/woff2\r\n"),
            ("/favicon.ico", "", "", "Content-Type: image/vnd.microsoft.icon\r\n"),
            ("/film.mp4", "", "", "Content-Type: video/mp4\r\n"),
        ],
    )
    .await;
}

#[tokio::test]
async fn p8_a_page_under_the_name_of_a_file_is_never_stored() {
    let stage = stage("static").await;
    for kind in ["text/html", "application/xhtml+xml", "application/json", ""] {
        let fields = format!("Content-Type: {kind}\r\nCache-Control: public, max-age=300\r\n");
        stage.origin.otherwise(Script::mirror(&fields));
        for _ in 0..3 {
            let reply = stage.get("/account/x.css").await;
            assert!(!is_hit(&reply), "{kind}: {reply:?}");
        }
    }
}
