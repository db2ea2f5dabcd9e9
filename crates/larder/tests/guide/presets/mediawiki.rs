//! Tests of the preset for MediaWiki.

use super::Rule::{Apart, Clean};
use super::rules::Want::{Field, Gone, One, Two};
use super::rules::{Row, play};
use super::{MARK, Probe, common, hits, no_leak, sessions};

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
async fn no_visitor_gets_what_was_made_for_another() {
    let mut probes = common::poisoning(Clean);
    probes.extend(common::set_cookie(&["/wiki/X", "/load.php?modules=x", "/skins/x.css"]));
    let targets = ["/wiki/X", "/index.php?title=X", "/api.php?action=view", "/index.php?curid=7"];
    probes.extend(sessions(&targets, COOKIES, Apart));
    probes.extend(sessions(&["/wiki/X"], &["unknown_extension"], Clean));
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

const PAGE: &str = "200 | Content-Type: text/html | Vary: Accept-Encoding, Cookie | \
                    Cache-Control: s-maxage=18000, must-revalidate, max-age=0";

/// Rules of MediaWiki's manual for caches in front of it.
pub(crate) const RULES: &[Row] = &[
    Row {
        name: "sessions and tokens pass",
        plays: &[
            play("GET /w | Cookie: wiki_session=1", PAGE, "GET /w | Cookie: wiki_session=1", Two),
            play("GET /w | Cookie: wikiSession=1", PAGE, "GET /w | Cookie: wikiSession=1", Two),
            play("GET /w | Cookie: wikiToken=1", PAGE, "GET /w | Cookie: wikiToken=1", Two),
            play("GET /w | Cookie: wiki_session=1", PAGE, "GET /w", Two),
        ],
    },
    Row {
        name: "`Authorization` passes",
        plays: &[play("GET /w | Authorization: Bearer a", PAGE, "GET /w", Two)],
    },
    Row {
        name: "other methods than GET and HEAD pass",
        plays: &[play("POST /w || a=1", PAGE, "GET /w", Two)],
    },
    Row {
        name: "other cookies do not count, although pages say `Vary: Cookie`",
        plays: &[
            play("GET /w | Cookie: any=1", PAGE, "GET /w | Cookie: any=2", One),
            play("GET /w | Cookie: wikimwuser-sessionId=1; _ga=2", PAGE, "GET /w", One),
            play("GET /w | Cookie: SERVERID=a", PAGE, "GET /w | Cookie: __cf_bm=1", One),
        ],
    },
    Row {
        name: "users who have just edited, are blocked, or chose a language or form pass",
        plays: &[
            play("GET /w | Cookie: UseDC=1", PAGE, "GET /w", Two)
                .unlike("for Wikimedia's own data centres and extensions; the manual has no rule"),
            play("GET /w | Cookie: wikiBlockID=1", PAGE, "GET /w", Two).unlike("as above"),
            play("GET /w | Cookie: wikilanguage=fr", PAGE, "GET /w", Two).unlike("as above"),
            play("GET /w | Cookie: mf_useformat=true", PAGE, "GET /w", Two).unlike("as above"),
            play("GET /w | Cookie: stopMobileRedirect=true", PAGE, "GET /w", Two)
                .unlike("as above"),
        ],
    },
    Row {
        name: "`s-maxage` is the lifetime here, and browsers ask again",
        plays: &[
            play("GET /w", PAGE, "GET /w", One),
            play(
                "GET /w",
                PAGE,
                "GET /w",
                Field("cache-control", "s-maxage=18000, must-revalidate, max-age=0"),
            ),
        ],
    },
    Row {
        name: "special pages and forms pass",
        plays: &[
            play("GET /wiki/Special:MyPage", PAGE, "GET /wiki/Special:MyPage", Two)
                .unlike("MediaWiki marks them `private` itself"),
            play("GET /index.php?action=edit", PAGE, "GET /index.php?action=edit", Two)
                .unlike("as above"),
        ],
    },
    Row {
        name: "`load.php` has no sessions",
        plays: &[play(
            "GET /load.php?modules=a | Cookie: wiki_session=1",
            "200 | Content-Type: text/css | Cache-Control: public, max-age=300, s-maxage=300",
            "GET /load.php?modules=a",
            One,
        )
        .unlike("the manual's VCL passes it for users")],
    },
    Row { name: "PURGE by URL", plays: &[play("GET /w", PAGE, "GET /w", Gone("PURGE /w"))] },
];
