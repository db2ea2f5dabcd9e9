//! WordPress, WooCommerce, Easy Digital Downloads.

use crate::Rule::{Apart, ApartUnlessPublic, Clean};
use crate::support::is_hit;
use crate::{MARK, Probe, ask, common, hits, no_leak, sessions, stage};
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
async fn nobody_gets_what_was_made_for_another() {
    no_leak("wordpress", &probes(), LOGIN).await;
}

#[tokio::test]
async fn nor_with_other_presets_behind_it() {
    no_leak("wordpress, static, microcache", &probes(), LOGIN).await;
}

fn probes() -> Vec<Probe> {
    let mut probes = common::poisoning();
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
    // Whoever has seen the login form has this cookie, and no other.
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
