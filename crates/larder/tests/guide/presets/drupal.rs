//! Tests of the preset for Drupal.

use super::Rule::{Apart, Clean};
use super::rules::Want::{Field, Gone, One, Text, Two};
use super::rules::{Row, play};
use super::{MARK, Probe, common, hits, no_leak, sessions};

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
async fn no_visitor_gets_what_was_made_for_another() {
    let mut probes = common::poisoning(Clean);
    probes.extend(common::set_cookie(&["/", "/node/7", "/core/x.css"]));
    probes.extend(sessions(&["/", "/node/7", "/rss.xml", "/node?page=2"], COOKIES, Apart));
    probes.extend(sessions(&["/node/7"], &["unknown_module"], Clean));
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

const PAGE: &str =
    "200 | Content-Type: text/html | Cache-Control: max-age=600, public | Vary: Cookie";

/// Rules that VCLs for Drupal have in common.
pub(crate) const RULES: &[Row] = &[
    Row {
        name: "other methods than GET and HEAD pass",
        plays: &[play("POST /node/7 || a=1", PAGE, "GET /node/7", Two)],
    },
    Row {
        name: "sessions pass: `SESS*`, `SSESS*`, `NO_CACHE`",
        plays: &[
            play("GET /n | Cookie: SESSab12=1", PAGE, "GET /n | Cookie: SESSab12=1", Two),
            play("GET /n | Cookie: SSESSab12=1", PAGE, "GET /n | Cookie: SSESSab12=1", Two),
            play("GET /n | Cookie: NO_CACHE=1", PAGE, "GET /n | Cookie: NO_CACHE=1", Two),
            play("GET /n | Cookie: SSESSab12=1", PAGE, "GET /n", Two),
        ],
    },
    Row {
        name: "other cookies do not count, although pages say `Vary: Cookie`",
        plays: &[
            play("GET /n | Cookie: cookie-agreed=2", PAGE, "GET /n", One),
            play("GET /n | Cookie: any=1", PAGE, "GET /n | Cookie: any=2; other=3", One),
            play("GET /n | Cookie: AWSALB=1; _ga=1", PAGE, "GET /n | Cookie: AWSALB=2", One),
            play("GET /n | Cookie: has_js=1", PAGE, "GET /n | Cookie: Drupal.toolbar.x=1", One),
        ],
    },
    Row {
        name: "what passes keeps all its cookies",
        plays: &[play(
            "GET /user/7",
            PAGE,
            "GET /user/7 | Cookie: SSESSab12=1; AWSALB=srv2; any=1",
            Text("SSESSab12=1; AWSALB=srv2; any=1"),
        )],
    },
    Row {
        name: "`Authorization` passes",
        plays: &[play("GET /n | Authorization: Basic YTpi", PAGE, "GET /n", Two)],
    },
    Row {
        name: "accounts, administration and scripts that work pass",
        plays: &[
            play("GET /user/login", PAGE, "GET /user/login", Two),
            play("GET /admin/people", PAGE, "GET /admin/people", Two),
            play("GET /update.php", PAGE, "GET /update.php", Two),
            play("GET /status.php", PAGE, "GET /status.php", Two),
            play("GET /cron.php", PAGE, "GET /cron.php", Two),
            play("GET /flag/flag/like/7", PAGE, "GET /flag/flag/like/7", Two),
            play("GET /views/ajax/x", PAGE, "GET /views/ajax/x", Two),
            play("GET /x/ahah/y", PAGE, "GET /x/ahah/y", Two),
        ],
    },
    Row {
        name: "private files pass",
        plays: &[play("GET /system/files/a.pdf", PAGE, "GET /system/files/a.pdf", Two)],
    },
    Row {
        name: "style sheets, scripts and images go without cookies",
        plays: &[play(
            "GET /core/misc/a.css | Cookie: SESSab12=1",
            "200 | Content-Type: text/css | Cache-Control: max-age=600",
            "GET /core/misc/a.css | Cookie: SESSab12=2",
            One,
        )],
    },
    Row {
        name: "what Drupal forbids is not stored",
        plays: &[
            play(
                "GET /n",
                "200 | Cache-Control: must-revalidate, no-cache, private",
                "GET /n",
                Two,
            )
            .unlike("a VCL without rules of its own for that stores it for two minutes"),
            play(
                "GET /n",
                "200 | Set-Cookie: SESSab12=1 | Cache-Control: max-age=9",
                "GET /n",
                Two,
            ),
        ],
    },
    Row {
        name: "BAN with `Purge-Cache-Tags`, URIBAN",
        plays: &[
            play(
                "GET /n",
                "200 | Cache-Control: max-age=600, public | Purge-Cache-Tags: node:1 node:2",
                "GET /n",
                Gone("BAN / | Purge-Cache-Tags: node:2"),
            ),
            play("GET /n", PAGE, "GET /n", Gone("URIBAN /n")),
        ],
    },
    Row {
        name: "tags are not shown",
        plays: &[play(
            "GET /n",
            "200 | Cache-Control: max-age=600, public | Purge-Cache-Tags: node:1",
            "GET /n",
            Field("purge-cache-tags", ""),
        )],
    },
];
