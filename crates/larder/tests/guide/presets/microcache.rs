//! Tests of the preset `microcache`.

use super::Rule::{Apart, ApartUnlessPublic, Clean};
use super::{MARK, Probe, common, hits, no_leak, sessions};

const COOKIES: &[&str] = &[
    "PHPSESSID",
    "JSESSIONID",
    "ASP.NET_SessionId",
    ".ASPXAUTH",
    "connect.sid",
    "sessionid",
    "session",
    "laravel_session",
    "_shop_session",
    "remember_token",
    "next-auth.session-token",
    "__Host-id",
    "auth_token",
    "sid",
];

#[tokio::test]
async fn no_visitor_gets_what_was_made_for_another() {
    let mut probes = common::poisoning(ApartUnlessPublic);
    probes.extend(common::set_cookie(&["/", "/page", "/a.css"]));
    probes.extend(sessions(&["/", "/page", "/page?x=1", "/a.css"], COOKIES, Apart));
    probes.extend(sessions(&["/", "/a.css"], &["unknown"], ApartUnlessPublic));
    probes.extend(sessions(&["/", "/a.css"], &["_gid"], Clean));
    probes.extend(common::deception_by_session("PHPSESSID", Apart));
    let form = format!("password={MARK}");
    probes.push(Probe::get("/login", "", Apart).sent_by("POST", &form));
    let head = format!("Cookie: PHPSESSID={MARK}\r\n");
    probes.push(Probe::get("/page", head, Apart).sent_by("HEAD", ""));
    no_leak("microcache", &probes, "PHPSESSID").await;
}

#[tokio::test]
async fn ordinary_pages_are_hits() {
    let html = "Content-Type: text/html\r\n";
    hits(
        "microcache",
        &[
            ("/", "", "", html),
            ("/page?x=1", "Cookie: _ga=1\r\n", "", html),
            ("/page?utm_source=a", "", "Cookie: _gid=1\r\n", html),
        ],
    )
    .await;
}
