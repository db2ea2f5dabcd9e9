//! Tests of the preset for WordPress, with WooCommerce and Easy Digital Downloads.

use super::Rule::{Apart, ApartUnlessPublic, Clean};
use super::rules::Want::{Gone, One, Text, Two};
use super::rules::{Row, play};
use super::{MARK, Probe, ask, common, hits, no_leak, sessions, stage};
use crate::support::is_hit;
use testkit::origin::Script;

const LOGIN: &str = "wordpress_logged_in_0123456789abcdef";

const COOKIES: &[&str] = &[
    LOGIN,
    "wordpress_sec_0123456789abcdef",
    "wordpress_0123456789abcdef",
    "wordpress_no_cache",
    "wp-postpass_0123456789abcdef",
    "comment_author_0123456789abcdef",
    "comment_author_email_0123456789abcdef",
    "woocommerce_items_in_cart",
    "woocommerce_cart_hash",
    "wp_woocommerce_session_0123456789abcdef",
    "woocommerce_recently_viewed",
    "edd_items_in_cart",
    "edd_saved_cart",
    "PHPSESSID",
    "wfwaf-authcookie-0123456789",
];

const PRIVATE: &[&str] = &[
    "/my-account",
    "/shop/cart",
    "/checkout",
    "/checkout/order-received/12",
    "/purchase-history",
    "/wp-admin",
    "/blog/wp-admin/profile.php",
    "/wp-login.php",
    "/xmlrpc.php",
    "/wp-cron.php",
    "/forum/index.php",
    "/index.php/my-account",
    "/index.php/wp-login.php",
    "/wp-json/wc/store/v1/cart",
    "/mon-compte",
];

const QUERIES: &[&str] = &[
    "/?s=word",
    "/?p=7&preview=true",
    "/?preview_id=7&preview_nonce=1",
    "/?customize_changeset_uuid=1",
    "/shop/?add-to-cart=7",
    "/?wc-ajax=get_refreshed_fragments",
    "/?edd_action=add_to_cart",
    "/?rest_route=/wp/v2/users/me",
    "/page/?_wpnonce=1",
    "/?utm_source=a&s=word",
];

#[tokio::test]
async fn no_visitor_gets_what_was_made_for_another() {
    no_leak("wordpress", &probes(), LOGIN).await;
}

#[tokio::test]
async fn nor_with_other_presets_behind_it() {
    no_leak("wordpress, static, microcache", &probes(), LOGIN).await;
}

/// The probes have no User-Agent, so their class is `unknown`: they are served as crawlers.
#[tokio::test]
async fn nor_does_a_crawler() {
    no_leak("wordpress, crawlers", &probes(), LOGIN).await;
}

fn probes() -> Vec<Probe> {
    let mut probes = common::poisoning(ApartUnlessPublic);
    probes.extend(common::set_cookie(&["/", "/page/", "/feed/", "/wp-content/a.css", "/gone"]));
    let targets = ["/", "/page/", "/feed/", "/wp-sitemap.xml", "/page/?utm_source=x"];
    probes.extend(sessions(&targets, COOKIES, Apart));
    probes.extend(sessions(&["/page/"], &["unknown_plugin"], ApartUnlessPublic));
    probes.extend(sessions(&["/wp-content/a.css", "/wp-includes/x.js?ver=1"], COOKIES, Clean));
    probes.extend(common::deception(PRIVATE, LOGIN));
    probes.extend(QUERIES.iter().map(|target| Probe::get(*target, "", Apart)));
    for (target, fields) in [
        ("/wp-json/wp/v2/users/me", format!("X-WP-Nonce: {MARK}\r\n")),
        ("/wp-json/wp/v2/posts", String::new()),
        ("/page/", format!("X-WP-Nonce: {MARK}\r\n")),
        ("/page/", "X-Requested-With: XMLHttpRequest\r\n".to_owned()),
        ("/wp-content/uploads/edd/2026/book.jpg", String::new()),
        ("/wp-content/uploads/woocommerce_uploads/x.png", format!("Cookie: {LOGIN}={MARK}\r\n")),
        ("/wp-content/..%2fmy-account/x.css", format!("Cookie: {LOGIN}={MARK}\r\n")),
        ("/my-account/wp-content/x.css", String::new()),
        ("/index.php;x.png", String::new()),
        ("/index.php%2fx.css", String::new()),
        ("/index.php.css", String::new()),
        ("/index.php?s=word", String::new()),
        ("/index.php/index.php", String::new()),
        ("/index.php/a-post/", format!("Cookie: {LOGIN}={MARK}\r\n")),
        ("/wp-content/plugins/p/ajax.php/x.css", String::new()),
        ("/wp-admin/..%2fx.js", format!("Cookie: {LOGIN}={MARK}\r\n")),
    ] {
        probes.push(Probe::get(target, fields, Apart));
    }
    let password = format!("post_password={MARK}");
    for target in ["/wp-login.php?action=postpass", "/protected-post/", "/checkout/"] {
        probes.push(Probe::get(target, "", Apart).sent_by("POST", &password));
    }
    let head = format!("Cookie: {LOGIN}={MARK}\r\n");
    probes.push(Probe::get("/page/", head, Apart).sent_by("HEAD", ""));
    probes
}

#[tokio::test]
async fn ordinary_pages_are_hits() {
    let (html, css) = ("Content-Type: text/html\r\n", "Content-Type: text/css\r\n");
    let known = format!("Cookie: {LOGIN}=1\r\n");
    // The cookie of a visitor who has seen the login form.
    const TESTED: &str = "Cookie: wordpress_test_cookie=WP%20Cookie%20check\r\n";
    hits(
        "wordpress",
        &[
            ("/", "", "", html),
            ("/2026/a-post/", "Cookie: _ga=1\r\n", "Cookie: _fbp=2\r\n", html),
            ("/account-of-a-journey/", "", "", html),
            ("/page/?utm_source=x&fbclid=1", "", "", html),
            ("/index.php/2026/a-post/", "", "", html),
            ("/index.php", "", "", html),
            ("/a-post/", TESTED, "", html),
            ("/a-post/", "", TESTED, html),
            ("/page/", "Cookie: pll_language=de\r\n", "Cookie: pll_language=de\r\n", html),
            ("/feed/", "", "", "Content-Type: application/rss+xml\r\n"),
            ("/wp-sitemap-posts-page-1.xml", "", "", "Content-Type: application/xml\r\n"),
            ("/wp-content/themes/t/style.css?ver=6.8", &known, "", css),
            ("/blog/wp-includes/js/x.js?ver=1", "", &known, "Content-Type: text/javascript\r\n"),
            ("/wp-content/uploads/2026/01/a.jpg", &known, &known, "Content-Type: image/webp\r\n"),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_redirect_to_the_site_s_icon_is_kept_and_no_other() {
    let stage = stage("wordpress").await;
    stage.origin.otherwise(Script::respond(
        "HTTP/1.1 302 Found\r\nLocation: /icon.png\r\nContent-Length: 0\r\n\r\n".to_owned(),
    ));
    for (target, kept) in [("/favicon.ico", true), ("/", false), ("/a/favicon.ico", false)] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        ask(&stage, "GET", request.as_bytes()).await;
        let again = ask(&stage, "GET", request.as_bytes()).await;
        assert_eq!((again.status, is_hit(&again)), (302, kept), "{target}");
    }
}

#[tokio::test]
async fn the_login_form_gets_its_own_cookie_back() {
    let stage = stage("wordpress").await;
    stage.origin.otherwise(Script::mirror(""));
    let request = "GET /wp-login.php HTTP/1.1\r\nHost: a.test\r\n\
                   Cookie: _ga=1; wordpress_test_cookie=x\r\n\r\n";
    let reply = ask(&stage, "GET", request.as_bytes()).await;
    assert!(reply.text().contains("wordpress_test_cookie=x"), "{}", reply.text());
}

const PAGE: &str = "200 | Content-Type: text/html";

/// Rules of WordPress and of plugins, as these publish them for caches.
pub(crate) const RULES: &[Row] = &[
    Row {
        name: "WordPress: users, commenters, unlocked posts",
        plays: &[
            play("GET /p | Cookie: wordpress_logged_in_ab=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wordpress_logged_in_ab=1", Two),
            play("GET /p | Cookie: wordpress_sec_ab=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wordpress_sec_ab=1", Two),
            play("GET /p | Cookie: comment_author_ab=A", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: comment_author_ab=A", Two),
            play("GET /p | Cookie: wp-postpass_ab=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wp-postpass_ab=1", Two),
            play("GET /p | Cookie: wordpress_no_cache=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wordpress_no_cache=1", Two),
            play("GET /wp-login.php", PAGE, "GET /wp-login.php", Two),
            play("GET /wp-admin/", PAGE, "GET /wp-admin/", Two),
            play("GET /wp-json/wp/v2/posts", PAGE, "GET /wp-json/wp/v2/posts", Two),
            play("GET /?s=word", PAGE, "GET /?s=word", Two),
            play("GET /?p=7&preview=true", PAGE, "GET /?p=7&preview=true", Two),
            play("GET /xmlrpc.php", PAGE, "GET /xmlrpc.php", Two),
            play("GET /wp-cron.php", PAGE, "GET /wp-cron.php", Two),
        ],
    },
    Row {
        name: "WooCommerce: carts, sessions, notices",
        plays: &[
            play("GET /p | Cookie: woocommerce_items_in_cart=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: woocommerce_items_in_cart=1", Two),
            play("GET /p | Cookie: woocommerce_cart_hash=ab", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: woocommerce_cart_hash=ab", Two),
            play("GET /p | Cookie: wp_woocommerce_session_ab=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wp_woocommerce_session_ab=1", Two),
            play("GET /p | Cookie: woocommerce_recently_viewed=7", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: woocommerce_recently_viewed=7", Two),
            play("GET /p | Cookie: store_notice1=hidden", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: store_notice1=hidden", Two),
            play("GET /cart/", PAGE, "GET /cart/", Two),
            play("GET /checkout/order-received/7/", PAGE, "GET /checkout/order-received/7/", Two),
            play("GET /my-account/orders/", PAGE, "GET /my-account/orders/", Two),
            play(
                "GET /?wc-ajax=get_refreshed_fragments",
                PAGE,
                "GET /?wc-ajax=get_refreshed_fragments",
                Two,
            ),
            play("GET /?add-to-cart=7", PAGE, "GET /?add-to-cart=7", Two),
            play("GET /wc-api/v3", PAGE, "GET /wc-api/v3", Two),
            play("GET /wp-json/wc/store/v1/cart", PAGE, "GET /wp-json/wc/store/v1/cart", Two),
        ],
    },
    Row {
        name: "WooCommerce: order attribution does not count",
        plays: &[
            play(
                "GET /p",
                PAGE,
                "GET /p | Cookie: sbjs_current=typ%3Dorganic; sbjs_migrations=1",
                One,
            ),
            play("GET /p | Cookie: sbjs_session=pgs%3D1; tk_ai=a", PAGE, "GET /p", One),
            play("GET /p", PAGE, "GET /p | Cookie: __stripe_mid=a; __stripe_sid=b", One),
        ],
    },
    Row {
        name: "Easy Digital Downloads: carts, purchases",
        plays: &[
            play("GET /p | Cookie: edd_items_in_cart=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: edd_items_in_cart=1", Two),
            play("GET /p | Cookie: edd_saved_cart=a", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: edd_saved_cart=a", Two),
            play("GET /p | Cookie: edd_cart_token=a", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: edd_cart_token=a", Two),
            play("GET /checkout/", PAGE, "GET /checkout/", Two),
            play("GET /purchase-history/", PAGE, "GET /purchase-history/", Two),
            play("GET /purchase-confirmation/", PAGE, "GET /purchase-confirmation/", Two),
            play("GET /transaction-failed/", PAGE, "GET /transaction-failed/", Two),
            play("GET /?edd_action=add_to_cart", PAGE, "GET /?edd_action=add_to_cart", Two),
            play("GET /edd-api/sales/", PAGE, "GET /edd-api/sales/", Two),
        ],
    },
    Row {
        name: "bbPress and BuddyPress: members, messages",
        plays: &[
            play("GET /p | Cookie: bbp_x=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: bbp_x=1", Two),
            play("GET /p | Cookie: bp-message=a", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: bp-message=a", Two),
            play("GET /p | Cookie: bp-message-type=success", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: bp-message-type=success", Two),
            play("GET /p | Cookie: bp_completed_create_steps=a", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: bp_completed_create_steps=a", Two),
            play("GET /members/me/profile/", PAGE, "GET /members/me/profile/", Two),
            play("GET /register/", PAGE, "GET /register/", Two),
            play("GET /activate/ab", PAGE, "GET /activate/ab", Two),
        ],
    },
    Row {
        name: "MemberPress: accounts, login, sign-up",
        plays: &[
            play("GET /account/", PAGE, "GET /account/", Two),
            play("GET /login/", PAGE, "GET /login/", Two),
            play("GET /register/gold/", PAGE, "GET /register/gold/", Two),
            play("GET /thank-you/", PAGE, "GET /thank-you/", Two),
            play("GET /mepr/ipn", PAGE, "GET /mepr/ipn", Two),
        ],
    },
    Row {
        name: "Paid Memberships Pro: membership pages",
        plays: &[
            play("GET /membership-account/", PAGE, "GET /membership-account/", Two),
            play("GET /membership-checkout/", PAGE, "GET /membership-checkout/", Two),
            play("GET /membership-confirmation/", PAGE, "GET /membership-confirmation/", Two),
            play("GET /membership-billing/", PAGE, "GET /membership-billing/", Two),
            play("GET /membership-invoice/", PAGE, "GET /membership-invoice/", Two),
            play("GET /membership-cancel/", PAGE, "GET /membership-cancel/", Two),
            play("GET /membership-levels/", PAGE, "GET /membership-levels/", Two),
        ],
    },
    Row {
        name: "Restrict Content Pro: accounts, registration",
        plays: &[
            play("GET /p | Cookie: rcp_x=1", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: rcp_x=1", Two),
            play("GET /register/", PAGE, "GET /register/", Two),
            play("GET /account/edit-your-profile/", PAGE, "GET /account/edit-your-profile/", Two),
            play("GET /update-billing-card/", PAGE, "GET /update-billing-card/", Two),
            play("GET /your-profile/", PAGE, "GET /your-profile/", Two),
        ],
    },
    Row {
        name: "WPML, Polylang, TranslatePress: each language a page of its own",
        plays: &[
            play("GET /p | Cookie: pll_language=de", PAGE, "GET /p | Cookie: pll_language=fr", Two),
            play("GET /p | Cookie: pll_language=de", PAGE, "GET /p | Cookie: pll_language=de", One),
            play("GET /p", PAGE, "GET /p | Cookie: wp-wpml_current_language=de", Two),
            play(
                "GET /p | Cookie: wp-wpml_current_language=de",
                PAGE,
                "GET /p | Cookie: wp-wpml_current_language=de",
                One,
            ),
            play("GET /p", PAGE, "GET /p | Cookie: trp_language=de_DE", Two),
            play(
                "GET /p | Cookie: trp_language=de_DE",
                PAGE,
                "GET /p | Cookie: trp_language=de_DE",
                One,
            ),
        ],
    },
    Row {
        name: "currencies and other choices of a visitor",
        plays: &[
            play("GET /p | Cookie: wcml_client_currency=USD", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wcml_client_currency=USD", Two),
            play("GET /p | Cookie: aelia_cs_selected_currency=USD", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: aelia_cs_selected_currency=USD", Two),
            play("GET /p | Cookie: wp_consent_marketing=allow", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wp_consent_marketing=allow", Two),
            play("GET /p | Cookie: wptouch-pro-view=desktop", PAGE, "GET /p", Two),
            play("GET /p", PAGE, "GET /p | Cookie: wptouch-pro-view=desktop", Two),
        ],
    },
    Row {
        name: "uploads that are sold or protected pass",
        plays: &[
            play(
                "GET /wp-content/uploads/edd/book.jpg",
                PAGE,
                "GET /wp-content/uploads/edd/book.jpg",
                Two,
            ),
            play(
                "GET /wp-content/uploads/woocommerce_uploads/a.png",
                PAGE,
                "GET /wp-content/uploads/woocommerce_uploads/a.png",
                Two,
            ),
            play(
                "GET /wp-content/uploads/mepr/a.png",
                PAGE,
                "GET /wp-content/uploads/mepr/a.png",
                Two,
            ),
        ],
    },
    Row {
        name: "consent, chat, analytics, balancers do not count",
        plays: &[
            play("GET /p", PAGE, "GET /p | Cookie: borlabs-cookie=a; moove_gdpr_popup=b", One),
            play("GET /p", PAGE, "GET /p | Cookie: real_cookie_banner-v=a; euconsent-v2=b", One),
            play("GET /p", PAGE, "GET /p | Cookie: intercom-id-x=1; _vwo_uuid=2; _clck=3", One),
            play("GET /p", PAGE, "GET /p | Cookie: AWSALB=1; __cf_bm=2; SERVERID=3", One),
            play(
                "GET /p | Cookie: ARRAffinity=1; __kla_id=2; ajs_anonymous_id=3",
                PAGE,
                "GET /p",
                One,
            ),
            play(
                "GET /p",
                PAGE,
                "GET /p | Cookie: wordpress_logged_in_ab=1; SERVERID=b",
                Text("SERVERID=b"),
            ),
            play("GET /p", PAGE, "GET /p | Cookie: own=1; SERVERID=b", Text("SERVERID=b")),
        ],
    },
    Row {
        name: "plugins purge by URL, by expression, by a star, and by tag",
        plays: &[
            play("GET /a/b", PAGE, "GET /a/b", Gone("PURGE /a/b")),
            play("GET /a/b", PAGE, "GET /a/b", Gone("PURGE /.* | X-Purge-Method: regex")),
            play("GET /a/b", PAGE, "GET /a/b", Gone("PURGE /a/*")),
            play("GET /a/b", PAGE, "GET /a/b", Gone("GET /purge/a/b")),
            play("GET /a/b", PAGE, "GET /a/b", Gone("GET /purge/a/*")),
            play(
                "GET /a/b",
                "200 | Surrogate-Key: post-7",
                "GET /a/b",
                Gone("PURGE / | Surrogate-Key: post-7"),
            ),
        ],
    },
];
