//! Tests of the preset for Magento 2.

use super::Rule::{Apart, ApartUnlessPublic, Clean};
use super::rules::Want::{Field, Gone, One, Text, Two};
use super::rules::{Row, play};
use super::{MARK, Probe, common, hits, is_hit, no_leak, sessions, stage};
use testkit::origin::Script;

const SESSION: &str = "PHPSESSID";

const PRIVATE: &[&str] = &[
    "/customer",
    "/customer/section/load",
    "/de/customer/account",
    "/checkout",
    "/checkout/cart",
    "/index.php/checkout",
    "/sales/order/view",
    "/wishlist",
    "/paypal/express",
    "/admin_x7f3",
    "/admin",
    "/rest/V1/carts/mine",
    "/newsletter/manage",
    "/catalog/product_compare/add",
    "/media/customer/7",
    "/downloadable/download/link",
    "/multishipping",
];

#[tokio::test]
async fn no_visitor_gets_what_was_made_for_another() {
    let mut probes = common::poisoning(ApartUnlessPublic);
    // `public` pages are stored, their cookies are not.
    let stored = |target: &str| Probe::get(target, "", ApartUnlessPublic);
    probes.push(stored("/").answered("Set-Cookie: PHPSESSID={n}; Path=/\r\n"));
    probes.push(stored("/shirt.html").answered("Set-Cookie: form_key={n}\r\n"));
    probes.extend(sessions(
        &["/", "/shirt.html", "/men.html?color=blue"],
        &[SESSION, "form_key", "private_content_version"],
        ApartUnlessPublic,
    ));
    probes.extend(sessions(&["/"], &["mage-cache-sessid", "section_data_ids"], Clean));
    // Visitors with a group, a currency or a segment of their own.
    probes.extend(sessions(&["/", "/shirt.html", "/men.html?b=1&a=2"], &["X-Magento-Vary"], Apart));
    probes.extend(sessions(&["/", "/shirt.html"], &["admin", "persistent_shopping_cart"], Apart));
    probes.extend(sessions(&["/static/version1/x.css", "/media/a.css"], &[SESSION], Clean));
    probes.extend(common::deception(PRIVATE, SESSION));
    let graphql = "/graphql?query=%7Bcart%7Bid%7D%7D";
    probes.extend(sessions(&[graphql], &[SESSION, "X-Magento-Vary"], Apart));
    for name in ["Authorization", "Store", "Content-Currency", "X-Magento-Cache-Id"] {
        probes.push(Probe::get(graphql, format!("{name}: {MARK}\r\n"), Apart));
    }
    probes.push(Probe::get(graphql, "", Apart).sent_by("POST", MARK));
    for target in ["/?SID=1", "/shirt.html?form_key=1", "/x?token=1", "/?___SID=U"] {
        probes.push(Probe::get(target, "", Apart));
    }
    let form = format!("form_key={MARK}");
    probes.push(Probe::get("/checkout/cart/add", "", Apart).sent_by("POST", &form));
    let head = format!("Cookie: X-Magento-Vary={MARK}\r\n");
    probes.push(Probe::get("/shirt.html", head, Apart).sent_by("HEAD", ""));
    no_leak("magento", &probes, "X-Magento-Vary").await;
}

#[tokio::test]
async fn ordinary_pages_are_hits() {
    let page =
        "Content-Type: text/html\r\nCache-Control: max-age=86400, public, s-maxage=86400\r\n";
    let opened = format!("{page}Set-Cookie: PHPSESSID={{n}}\r\n");
    let vary = "Cookie: X-Magento-Vary=abc; PHPSESSID=1\r\n";
    let one = "Cookie: PHPSESSID=1; form_key=2; mage-cache-sessid=true\r\n";
    hits(
        "magento",
        &[
            ("/", "", "", page),
            ("/shirt.html", "", one, &opened),
            ("/shirt.html", one, "Cookie: PHPSESSID=2\r\n", page),
            ("/men.html?color=blue&utm_source=x", vary, vary, page),
            ("/customer-favourites.html", "", "", page),
            ("/graphql?query=x", "Store: de\r\n", "Store: de\r\n", page),
            ("/static/version1/x.css", one, vary, "Content-Type: text/css\r\n"),
            ("/media/catalog/product/a.jpg", vary, "", "Content-Type: image/jpeg\r\n"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_session_opened_by_a_page_is_dropped_and_one_opened_by_a_form_stays_with_its_visitor() {
    let stage = stage("magento").await;
    let public = "Cache-Control: public, s-maxage=60\r\nSet-Cookie: PHPSESSID=secret\r\n";
    stage.origin.otherwise(Script::mirror(public));
    for again in [false, true] {
        let page = stage.get("/shirt.html").await;
        assert_eq!((is_hit(&page), page.field("set-cookie")), (again, None));
        let private = stage.get("/customer/section/load").await;
        assert_eq!(private.field("set-cookie").as_deref(), Some("PHPSESSID=secret"));
    }
    stage.origin.otherwise(Script::mirror("Set-Cookie: PHPSESSID=secret\r\n"));
    for _ in 0..2 {
        let silent = stage.get("/silent.html").await;
        assert_eq!(silent.field("set-cookie").as_deref(), Some("PHPSESSID=secret"));
        assert!(!is_hit(&silent), "an origin that says nothing is not believed");
    }
}

/// The VCL's `Cache-Control` for browsers.
const NEVER: &str = "no-store, no-cache, must-revalidate, max-age=0";

const PAGE: &str =
    "200 | Content-Type: text/html | Cache-Control: max-age=86400, public, s-maxage=86400";

/// Rules of `varnish7.vcl`, in its order.
pub(crate) const RULES: &[Row] = &[
    Row {
        name: "parameters may come in any order",
        plays: &[play("GET /men.html?b=1&a=2", PAGE, "GET /men.html?a=2&b=1", One)],
    },
    Row {
        name: "PURGE with `X-Magento-Tags-Pattern` or `X-Pool`",
        plays: &[
            play(
                "GET /p",
                "200 | Cache-Control: public, max-age=60 | X-Magento-Tags: cat_p,cat_p_1",
                "GET /p",
                Gone("PURGE / | X-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))"),
            ),
            play(
                "GET /p",
                "200 | Cache-Control: public, max-age=60 | X-Pool: main",
                "GET /p",
                Gone("PURGE / | X-Pool: main"),
            ),
        ],
    },
    Row {
        name: "other methods than GET and HEAD pass",
        plays: &[
            play("POST /graphql || {}", PAGE, "POST /graphql || {}", Two),
            play("POST /p || a=1", PAGE, "GET /p", Two),
        ],
    },
    Row {
        name: "`/customer` and `/checkout` pass",
        plays: &[
            play("GET /customer/section/load", PAGE, "GET /customer/section/load", Two),
            play("GET /de/checkout/cart", PAGE, "GET /de/checkout/cart", Two),
        ],
    },
    Row {
        name: "`/health_check.php` passes",
        plays: &[
            play("GET /health_check.php", PAGE, "GET /health_check.php", Two),
            play("GET /pub/health_check.php", PAGE, "GET /pub/health_check.php", Two),
        ],
    },
    Row {
        name: "marketing parameters do not count",
        plays: &[
            play("GET /p?utm_source=a&gclid=b", PAGE, "GET /p", One),
            play("GET /p?q=1&mc_cid=1&trk_x=2", PAGE, "GET /p?q=1&snrai_campaign=7", One),
            play("GET /p?cof=1&cx=2&siteurl=x&zanpid=3", PAGE, "GET /p?gad_source=1", One),
            play("GET /p?_bta_tid=1&dm_i=2&ef_id=3", PAGE, "GET /p?s_kwcid=AL&hsa_acc=1", One),
            play("GET /p?mkwid=1", PAGE, "GET /p", One),
            play("GET /p?piwik_campaign=1&pk_x=2", PAGE, "GET /p?matomo_kwd=1&mtm_x=2", One),
            play("GET /p?q=1&utm_source=a", PAGE, "GET /p?q=2", Two),
        ],
    },
    Row {
        name: "files below `/static` and `/media` pass",
        plays: &[play(
            "GET /static/version1/a.css | Cookie: a=1",
            "200 | Content-Type: text/css",
            "GET /static/version1/a.css | Cookie: a=2",
            One,
        )
        .unlike("the VCL passes them for the sake of CDNs, and has a comment on how to keep them")],
    },
    Row {
        name: "GraphQL with a token and without an id passes",
        plays: &[play(
            "GET /graphql?query=a | Authorization: Bearer a",
            PAGE,
            "GET /graphql?query=a | Authorization: Bearer a",
            Two,
        )],
    },
    Row {
        name: "`X-Magento-Vary` is part of the key",
        plays: &[
            play("GET /p", PAGE, "GET /p | Cookie: X-Magento-Vary=a", Two),
            play("GET /p | Cookie: X-Magento-Vary=a", PAGE, "GET /p", Two),
            play(
                "GET /p | Cookie: X-Magento-Vary=a",
                PAGE,
                "GET /p | Cookie: X-Magento-Vary=b",
                Two,
            ),
            play(
                "GET /p | Cookie: X-Magento-Vary=a; PHPSESSID=1",
                PAGE,
                "GET /p | Cookie: form_key=2; X-Magento-Vary=a",
                One,
            ),
            play("GET /p | Cookie: PHPSESSID=1", PAGE, "GET /p | Cookie: PHPSESSID=2", One),
        ],
    },
    Row {
        name: "GraphQL goes by `X-Magento-Cache-Id`, `Store` and `Content-Currency`",
        plays: &[
            play(
                "GET /graphql?query=a | X-Magento-Cache-Id: a",
                "200 | Cache-Control: public, max-age=60 | X-Magento-Cache-Id: a",
                "GET /graphql?query=a | X-Magento-Cache-Id: a",
                One,
            ),
            play(
                "GET /graphql?query=a | X-Magento-Cache-Id: a",
                "200 | Cache-Control: public, max-age=60 | X-Magento-Cache-Id: a",
                "GET /graphql?query=a | X-Magento-Cache-Id: b",
                Two,
            ),
            play(
                "GET /graphql?query=a | X-Magento-Cache-Id: a | Cookie: X-Magento-Vary=a; PHPSESSID=1",
                "200 | Cache-Control: public, max-age=60 | X-Magento-Cache-Id: a",
                "GET /graphql?query=a | X-Magento-Cache-Id: a | Cookie: X-Magento-Vary=a",
                One,
            ),
            play("GET /graphql?query=a | Store: a", PAGE, "GET /graphql?query=a | Store: b", Two),
            play("GET /graphql?query=a | Store: a", PAGE, "GET /graphql?query=a | Store: a", One),
            play(
                "GET /graphql?query=a | Content-Currency: EUR",
                PAGE,
                "GET /graphql?query=a | Content-Currency: USD",
                Two,
            ),
        ],
    },
    Row {
        name: "GraphQL with a token and an id is stored, apart from what has no token",
        plays: &[
            play(
                "GET /graphql?query=a | X-Magento-Cache-Id: a | Authorization: Bearer a",
                "200 | Cache-Control: public, max-age=60 | X-Magento-Cache-Id: a",
                "GET /graphql?query=a | X-Magento-Cache-Id: a | Authorization: Bearer a",
                One,
            ),
            play(
                "GET /graphql?query=a | X-Magento-Cache-Id: a | Authorization: Bearer a",
                "200 | Cache-Control: public, max-age=60 | X-Magento-Cache-Id: a",
                "GET /graphql?query=a | X-Magento-Cache-Id: a",
                Two,
            ),
            play(
                "GET /graphql?query=a | X-Magento-Cache-Id: a | Authorization: Bearer a",
                "200 | Cache-Control: public, max-age=60 | X-Magento-Cache-Id: a",
                "GET /graphql?query=a | X-Magento-Cache-Id: a | Authorization: Bearer b",
                Two,
            )
            .unlike("the VCL has one answer for all tokens of an id"),
        ],
    },
    Row {
        name: "403, 404 and 5xx are not stored",
        plays: &[
            play("GET /p", "404 | Cache-Control: public, max-age=60", "GET /p", Two),
            play("GET /p", "403 | Cache-Control: public, max-age=60", "GET /p", Two),
            play("GET /p", "503 | Cache-Control: public, max-age=60", "GET /p", Two),
            play("GET /p", "301 | Cache-Control: public, max-age=60 | Location: /q", "GET /p", One),
        ],
    },
    Row {
        name: "pages are put together of their ESI blocks",
        plays: &[
            play(
                "GET /p",
                "200 | Content-Type: text/html; charset=UTF-8 | Cache-Control: public, max-age=60 || \
                 <nav><esi:include src=\"/fragment\" /></nav>",
                "GET /p",
                Text("<nav>FRAGMENT</nav>"),
            ),
            play(
                "GET /p",
                "200 | Content-Type: application/json | Cache-Control: public, max-age=60 || \
                 <esi:include src=\"/fragment\" />",
                "GET /p",
                Text("<esi:include"),
            ),
        ],
    },
    Row {
        name: "`private` is not stored",
        plays: &[play("GET /p", "200 | Cache-Control: private, max-age=60", "GET /p", Two)],
    },
    Row {
        name: "cookies of what is stored are removed",
        plays: &[
            play(
                "GET /p",
                "200 | Cache-Control: public, max-age=60 | Set-Cookie: PHPSESSID=1; Path=/",
                "GET /p",
                One,
            ),
            play(
                "GET /p",
                "200 | Cache-Control: public, max-age=60 | Set-Cookie: PHPSESSID=1; Path=/",
                "GET /p",
                Field("set-cookie", ""),
            ),
        ],
    },
    Row {
        name: "a page that sets `X-Magento-Vary` is not stored as the guests'",
        plays: &[
            play(
                "GET /p",
                "200 | Cache-Control: public, max-age=60 | Set-Cookie: X-Magento-Vary=de; Path=/",
                "GET /p",
                Two,
            ),
            play(
                "GET /p | Cookie: X-Magento-Vary=de",
                "200 | Cache-Control: public, max-age=60 | Set-Cookie: X-Magento-Vary=de; Path=/",
                "GET /p | Cookie: X-Magento-Vary=de",
                One,
            ),
            play(
                "GET /p | Cookie: X-Magento-Vary=de",
                "200 | Cache-Control: public, max-age=60 | Set-Cookie: X-Magento-Vary=fr; Path=/",
                "GET /p | Cookie: X-Magento-Vary=de",
                Two,
            )
            .unlike("the VCL stores the French page as the German one"),
            play(
                "GET /p",
                "200 | Cache-Control: public, max-age=60 | Set-Cookie: X-Magento-Vary=de; Path=/",
                "GET /p",
                Field("set-cookie", "X-Magento-Vary=de; Path=/"),
            )
            .unlike("the VCL takes the cookie from the visitor whom it is for"),
        ],
    },
    Row {
        name: "`no-cache`, `no-store`, `Surrogate-Control: no-store` and `Vary: *` are not stored",
        plays: &[
            play("GET /p", "200 | Cache-Control: no-cache, max-age=60", "GET /p", Two),
            play("GET /p", "200 | Cache-Control: no-store", "GET /p", Two),
            play(
                "GET /p",
                "200 | Cache-Control: public, max-age=60 | Surrogate-Control: no-store",
                "GET /p",
                Two,
            ),
            play("GET /p", "200 | Cache-Control: public, max-age=60 | Vary: *", "GET /p", Two),
        ],
    },
    Row {
        name: "GraphQL's answer for another id is not stored",
        plays: &[play(
            "GET /graphql?query=a | X-Magento-Cache-Id: a",
            "200 | Cache-Control: public, max-age=60 | X-Magento-Cache-Id: b",
            "GET /graphql?query=a | X-Magento-Cache-Id: a",
            Two,
        )],
    },
    Row {
        name: "browsers keep no page",
        plays: &[
            play("GET /p", PAGE, "GET /p", Field("cache-control", NEVER)),
            play("GET /p", PAGE, "GET /p", Field("pragma", "no-cache")),
            play("GET /p", PAGE, "GET /p", Field("expires", "-1")),
            play("GET /checkout", PAGE, "GET /checkout", Field("cache-control", NEVER)),
            play(
                "GET /p",
                "404 | Cache-Control: max-age=9",
                "GET /p",
                Field("cache-control", NEVER),
            ),
        ],
    },
    Row {
        name: "browsers keep what is `private`, and files, as Magento says",
        plays: &[
            play(
                "GET /p",
                "200 | Cache-Control: private, max-age=9",
                "GET /p",
                Field("cache-control", "private, max-age=9"),
            ),
            play(
                "GET /static/a.css",
                "200 | Content-Type: text/css | Cache-Control: public, max-age=9",
                "GET /static/a.css",
                Field("cache-control", "public, max-age=9"),
            ),
            play(
                "GET /pub/media/a.bin",
                "200 | Cache-Control: public, max-age=9",
                "GET /pub/media/a.bin",
                Field("cache-control", "public, max-age=9"),
            ),
        ],
    },
    Row {
        name: "tags are not shown",
        plays: &[play(
            "GET /p",
            "200 | Cache-Control: public, max-age=60 | X-Magento-Tags: cat_p",
            "GET /p",
            Field("x-magento-tags", ""),
        )],
    },
];
