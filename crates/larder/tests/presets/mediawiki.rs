//! MediaWiki.

use crate::Rule::{Apart, ApartUnlessPublic, Clean};
use crate::{MARK, Probe, common, hits, no_leak, sessions};

const SESSION: &str = "my_wiki_session";

const COOKIES: &[&str] = &[
    SESSION,
    "my_wikiUserID",
    "my_wikiUserName",
    "my_wikiToken",
    "my_wikiBlockID",
    "UseDC",
    "UseCDNCache",
    "cpPosIndex",
];

const PRIVATE: &[&str] = &[
    "/wiki/Special:MyPage",
    "/wiki/Special%3aPreferences",
    "/index.php/Special:Watchlist",
    "/wiki/special:userlogin",
    "/w/index.php/Spezial:Anmelden",
    "/w/img_auth.php/1/secret",
    "/mw-config",
];

const QUERIES: &[&str] = &[
    "/index.php?title=X&action=edit",
    "/index.php?title=X&action=%65dit",
    "/index.php?title=X&action=submit",
    "/index.php?title=X&action=history",
    "/index.php?title=X&action=watch",
    "/index.php?title=X&action=purge",
    "/index.php?title=X&action=rollback",
    "/index.php?title=X&veaction=edit",
    "/index.php?title=Special:MyPage",
    "/index.php?title=Special%3AMyPage",
    "/index.php?title=+special:MyPage",
    "/index.php?title=_Special_:MyPage",
    "/index.php?title=X&diff=7",
    "/index.php?search=word",
    "/index.php?title=X&returnto=Y",
    "/api.php?action=query&meta=userinfo",
    "/api.php?action=parse&page=X&centralauthtoken=1",
];

#[tokio::test]
async fn nobody_gets_what_was_made_for_another() {
    let mut probes = common::poisoning();
    probes.extend(common::set_cookie(&["/wiki/X", "/load.php?modules=x", "/skins/x.css"]));
    let targets = ["/wiki/X", "/index.php?title=X", "/api.php?action=view", "/index.php?curid=7"];
    probes.extend(sessions(&targets, COOKIES, Apart));
    probes.extend(sessions(&["/wiki/X"], &["unknown_extension"], ApartUnlessPublic));
    probes.extend(sessions(&["/w/load.php?modules=x", "/skins/v/x.css"], COOKIES, Clean));
    probes.extend(common::deception(PRIVATE, SESSION));
    probes.extend(QUERIES.iter().map(|target| Probe::get(*target, "", Apart)));
    let form = format!("wpTextbox1={MARK}");
    let edit = "/index.php?title=X&action=submit";
    probes.push(Probe::get(edit, "", Apart).sent_by("POST", &form));
    probes.push(Probe::get("/wiki/X", "", Apart).sent_by("POST", &form));
    let head = format!("Cookie: {SESSION}={MARK}\r\n");
    probes.push(Probe::get("/wiki/X", head, Apart).sent_by("HEAD", ""));
    no_leak("mediawiki", &probes, SESSION).await;
}

#[tokio::test]
async fn ordinary_pages_are_hits() {
    let page = "Content-Type: text/html\r\n\
                Cache-Control: s-maxage=18000, must-revalidate, max-age=0\r\nVary: Cookie\r\n";
    let known = format!("Cookie: {SESSION}=1; my_wikiUserID=7\r\n");
    let reader = "Cookie: my_wikimwuser-sessionId=1; _ga=2\r\n";
    hits(
        "mediawiki",
        &[
            ("/wiki/Main_Page", "", "", page),
            ("/wiki/Special_relativity", reader, "", page),
            ("/index.php?title=Main_Page&action=view", "", "", page),
            ("/index.php?title=X&oldid=7", "", reader, page),
            ("/index.php?title=X&action=raw&ctype=text/css", "", "", page),
            ("/w/load.php?modules=site.styles", &known, "", page),
            ("/skins/v/x.css?1", &known, &known, "Content-Type: text/css\r\n"),
            ("/images/a/ab/A.png", "", &known, "Content-Type: image/png\r\n"),
        ],
    )
    .await;
}
