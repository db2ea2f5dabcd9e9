//! Magento 2.

use crate::Rule::{Apart, ApartUnlessPublic, Clean};
use crate::{MARK, Probe, common, hits, is_hit, no_leak, sessions, stage};
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
async fn nobody_gets_what_was_made_for_another() {
    let mut probes = common::poisoning();
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
    // Who has a group, a currency or a segment of their own.
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
async fn a_session_opened_by_a_page_stays_with_nobody_and_one_opened_by_a_form_with_its_visitor() {
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
