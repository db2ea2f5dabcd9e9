//! Drupal.

use crate::Rule::{Apart, ApartUnlessPublic, Clean};
use crate::{MARK, Probe, common, hits, no_leak, sessions};

const SESSION: &str = "SSESS0123456789abcdef";

const COOKIES: &[&str] = &[
    SESSION,
    "SESS0123456789abcdef",
    "Drupal.visitor.name",
    "Drupal_visitor_mail",
    "big_pipe_nojs",
    "SimpleSAMLAuthToken",
];

const PRIVATE: &[&str] = &[
    "/user",
    "/de/user/7",
    "/admin/people",
    "/node/add",
    "/node/7/edit",
    "/batch",
    "/cron.php",
    "/update.php",
    "/install.php",
    "/flag/flag/bookmark/7",
    "/big_pipe/no-js",
    "/system/files/secret",
    "/system/ajax",
    "/session/token",
    "/cart",
    "/checkout/7",
    "/contextual/render",
    "/comment/reply/node/7",
];

#[tokio::test]
async fn nobody_gets_what_was_made_for_another() {
    let mut probes = common::poisoning();
    probes.extend(common::set_cookie(&["/", "/node/7", "/core/x.css"]));
    probes.extend(sessions(&["/", "/node/7", "/rss.xml", "/node?page=2"], COOKIES, Apart));
    probes.extend(sessions(&["/node/7"], &["unknown_module"], ApartUnlessPublic));
    let files = ["/core/misc/x.css", "/sites/default/files/css/a.css", "/de/themes/t/x.css"];
    probes.extend(sessions(&files, COOKIES, Clean));
    probes.extend(common::deception(PRIVATE, SESSION));
    for (target, fields) in [
        ("/node/7", format!("X-CSRF-Token: {MARK}\r\n")),
        ("/jsonapi/node/page", format!("Authorization: Basic {MARK}\r\n")),
        ("/views", "X-Requested-With: XMLHttpRequest\r\n".to_owned()),
        ("/node/7?token=1", String::new()),
        ("/search?form_id=1", String::new()),
        ("/x?destination=/node", String::new()),
        ("/system/files/styles/large/x.png", format!("Cookie: {SESSION}={MARK}\r\n")),
        ("/core/..%2fuser/x.css", format!("Cookie: {SESSION}={MARK}\r\n")),
        ("/user/core/x.css", String::new()),
    ] {
        probes.push(Probe::get(target, fields, Apart));
    }
    let form = format!("name={MARK}");
    probes.push(Probe::get("/user/login", "", Apart).sent_by("POST", &form));
    probes.push(Probe::get("/node/7", "", Apart).sent_by("POST", &form));
    let head = format!("Cookie: {SESSION}={MARK}\r\n");
    probes.push(Probe::get("/node/7", head, Apart).sent_by("HEAD", ""));
    no_leak("drupal", &probes, SESSION).await;
}

#[tokio::test]
async fn ordinary_pages_are_hits() {
    let page = "Content-Type: text/html\r\nCache-Control: max-age=600, public\r\nVary: Cookie\r\n";
    let known = format!("Cookie: {SESSION}=1\r\n");
    hits(
        "drupal",
        &[
            ("/", "", "", page),
            ("/node/7", "Cookie: has_js=1; _ga=1\r\n", "", page),
            ("/username-of-the-year", "", "", page),
            ("/news?page=2", "", "Cookie: Drupal.tableDrag.showWeight=1\r\n", page),
            ("/core/misc/x.css?v=10", &known, "", "Content-Type: text/css\r\n"),
            (
                "/sites/default/files/styles/a.jpg?itok=1",
                "",
                &known,
                "Content-Type: image/jpeg\r\n",
            ),
        ],
    )
    .await;
}
