//! Tests of Vary by meaning over real sockets: few variants of a page for many ways in which
//! clients say the same, and nothing of one visitor's in what others get.

use crate::support;

use rustix::process::Signal;
use serde_json::json;
use support::console::printed;
use support::disked::{Disked, Policy};
use support::explain::{explain, fact, step};
use support::{Setup, Stage, eventually, is_hit, sent_field};
use testkit::origin::Script;

const SITE: &str = "[site.vary]\naccept_language = [\"en\", \"de\"]\naccept = \"images\"\n\
                    user_agent = \"device\"\n";

/// The headers of a phone's and of a desktop's browser, by number.
fn agent(number: usize) -> String {
    match number % 2 {
        0 => format!("Mozilla/5.0 (Linux; Android {number}; K) Chrome/{number}.0 Mobile Safari/5"),
        _ => format!("Mozilla/5.0 (Windows NT 10.0; rv:{number}.0) Gecko/2010 Firefox/{number}.0"),
    }
}

/// The values of the origin's requests for a field.
fn received(stage: &Stage, name: &str) -> Vec<String> {
    stage.received().iter().map(|request| sent_field(request, name)).collect()
}

async fn start(site: &str) -> Stage {
    Setup { site, ..Setup::default() }.start().await
}

#[tokio::test]
async fn two_hundred_browsers_make_few_variants() {
    let stage = start(SITE).await;
    stage.origin.on(
        "/page",
        Script::mirror(
            "Cache-Control: max-age=600\r\nVary: Accept, User-Agent, Accept-Language\r\n",
        ),
    );
    let languages = ["de-DE,de;q=0.9,en;q=0.8", "de", "en-GB,en;q=0.5", "fr,en;q=0.1", "ja", "*"];
    let images = [
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
        "text/html,application/xhtml+xml,image/avif,image/webp,image/apng,*/*;q=0.8",
    ];
    let mut hits = 0;
    for number in 0..200 {
        let fields = format!(
            "User-Agent: {}\r\nAccept-Language: {}\r\nAccept: {}\r\nSec-CH-UA-Mobile: ?{}\r\n",
            agent(number),
            languages[number % languages.len()],
            images[number % images.len()],
            number % 2,
        );
        let reply = stage.ask("GET", "/page", &fields).await;
        assert_eq!(reply.field("vary").as_deref(), Some("Accept, User-Agent, Accept-Language"));
        hits += usize::from(is_hit(&reply));
        // The page says what its origin was asked for.
        let text = reply.text();
        let device = if number % 2 == 0 { "X-Device: mobile" } else { "X-Device: desktop" };
        let language = if number % 6 < 2 { "Accept-Language: de" } else { "Accept-Language: en" };
        assert!(text.contains(device) && text.contains(language), "{number}: {text}");
    }
    // Of one variant, 199 requests would be hits.
    assert_eq!(stage.origin.seen("/page"), 4);
    assert!(hits * 100 >= 199 * 95, "{hits}");
    assert!(received(&stage, "sec-ch-ua-mobile").iter().all(String::is_empty));
    let agents = received(&stage, "user-agent");
    assert!(agents.iter().all(|of| of.contains("Chrome/142.0.0.0")), "{agents:?}");
    let accepts = received(&stage, "accept");
    assert!(accepts.iter().all(|of| of == "text/html,image/avif,image/webp,*/*;q=0.8"));
}

#[tokio::test]
async fn without_the_setting_each_browser_has_its_own() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::mirror("Cache-Control: max-age=600\r\nVary: User-Agent\r\n"));
    for number in 0..6 {
        let reply = stage.ask("GET", "/page", &format!("User-Agent: {}\r\n", agent(number))).await;
        assert!(!is_hit(&reply) && reply.text().contains(&agent(number)));
    }
    assert_eq!(received(&stage, "x-device"), [""; 6]);
}

#[tokio::test]
async fn a_response_that_does_not_vary_is_one_for_all() {
    let stage = start(SITE).await;
    stage.origin.on("/logo", Script::cacheable("a logo"));
    stage.origin.on("/own", Script::mirror("Cache-Control: max-age=600\r\nVary: X-Test\r\n"));
    for (number, language) in ["de", "en", "fr"].into_iter().enumerate() {
        let fields = format!("Accept-Language: {language}\r\nUser-Agent: {}\r\n", agent(number));
        assert_eq!(is_hit(&stage.ask("GET", "/logo", &fields).await), number > 0);
        // A field that is not in the table selects variants by its value.
        let fields = format!("{fields}X-Test: {number}\r\n");
        assert!(!is_hit(&stage.ask("GET", "/own", &fields).await));
    }
}

#[tokio::test]
async fn head_gets_what_get_stored_and_a_purge_reaches_all_variants() {
    let stage = start(&format!("purge = {{ dialects = [\"purge\"] }}\n{SITE}")).await;
    stage
        .origin
        .on("/page", Script::mirror("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n"));
    let ask = async |method: &str, language: &str| {
        is_hit(&stage.ask(method, "/page", &format!("Accept-Language: {language}\r\n")).await)
    };
    assert!(!ask("GET", "de-AT").await && !ask("GET", "en-US").await);
    assert!(ask("HEAD", "de-CH;q=0.3").await && ask("HEAD", "nl").await);
    let purged = stage.ask("PURGE", "/page", "").await;
    assert_eq!(purged.field("x-purged").as_deref(), Some("2"));
    assert!(!ask("HEAD", "de").await && !ask("GET", "en").await);
    assert!(ask("GET", "de").await);
}

#[tokio::test]
async fn requests_that_pass_keep_their_fields() {
    let site = format!("bypass = {{ path = \"/raw\", cookie = \"login\" }}\n{SITE}");
    let stage = start(&site).await;
    let fields = format!(
        "User-Agent: {}\r\nAccept-Language: de-AT\r\nAccept: image/png\r\nX-Device: tv\r\n\
         Sec-CH-UA: a\r\n",
        agent(0)
    );
    stage.ask("GET", "/raw", &fields).await;
    stage.ask("POST", "/form", &format!("{fields}Content-Length: 0\r\n")).await;
    stage.ask("GET", "/page", &format!("{fields}Cookie: login=1\r\n")).await;
    for name in ["user-agent", "accept-language", "accept", "x-device", "sec-ch-ua"] {
        let all = received(&stage, name);
        let line =
            fields.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
        let value = line.and_then(|line| line.split_once(": ")).expect("a field").1;
        assert_eq!(all, [value; 3], "{name}");
    }
}

/// A page for one visitor reaches no other, whatever their fields become.
#[tokio::test]
async fn nothing_personal_is_shared() {
    let stage = start(SITE).await;
    let vary = "Vary: User-Agent, Accept-Language, Accept\r\n";
    stage
        .origin
        .on("/private", Script::mirror(&format!("Cache-Control: private, max-age=9\r\n{vary}")));
    stage.origin.on("/plain", Script::mirror(&format!("Cache-Control: max-age=600\r\n{vary}")));
    stage
        .origin
        .on("/open", Script::mirror(&format!("Cache-Control: public, max-age=600\r\n{vary}")));
    let ask = async |path: &str, number: usize, more: &str| {
        let fields = format!("User-Agent: {}\r\nAccept-Language: en\r\n{more}", agent(number));
        stage.ask("GET", path, &fields).await
    };
    for visitor in ["Cookie: session=anna\r\n", "Authorization: Basic YW5uYQ==\r\n"] {
        for path in ["/private", "/plain"] {
            let own = ask(path, 1, visitor).await;
            assert!(!is_hit(&own) && own.text().contains(visitor.trim()), "{path}");
            // An application that binds the session to the browser gets the browser's own field.
            assert!(own.text().contains(&agent(1)), "{path}");
            let other = ask(path, 3, "Cookie: session=bert\r\n").await;
            assert!(!is_hit(&other) && !other.text().contains(visitor.trim()), "{path}");
        }
    }
    // Neither gets what a stranger left, and no stranger gets theirs.
    let stranger = ask("/plain", 5, "").await;
    assert!(!is_hit(&stranger) && !stranger.text().contains("session"));
    assert!(!is_hit(&ask("/plain", 7, "Cookie: session=anna\r\n").await));
    assert!(is_hit(&ask("/plain", 9, "").await));
    // What is for all is stored from a personal request under that visitor's own User-Agent.
    ask("/open", 1, "Cookie: session=anna\r\n").await;
    let stranger = ask("/open", 3, "").await;
    assert!(!is_hit(&stranger) && !stranger.text().contains("anna"), "{}", stranger.text());
}

/// A visitor who says to be what the application takes for another class makes no page for others.
#[tokio::test]
async fn no_field_of_one_client_decides_for_others() {
    let stage = start(SITE).await;
    stage.origin.on("/page", Script::mirror("Cache-Control: max-age=600\r\nVary: User-Agent\r\n"));
    let evil = "User-Agent: MSIE 6.0 evil\r\nX-Device: evil\r\nX_Device: evil\r\n\
                Sec-CH-UA-Mobile: ?1evil\r\nSec_CH_UA: evil\r\nAccept-Language: evil\r\n\
                Accept: text/evil\r\n";
    let text = stage.ask("GET", "/page", evil).await.text();
    assert!(!text.contains("evil") && text.contains("X-Device: desktop"), "{text}");
    assert!(is_hit(&stage.ask("GET", "/page", &format!("User-Agent: {}\r\n", agent(1))).await));
}

#[tokio::test]
async fn cookies_with_few_values_are_in_the_key() {
    let stage = start("[site.vary]\ncookie = { currency = [\"EUR\", \"USD\"] }\n").await;
    stage.origin.on("/shop", Script::mirror("Cache-Control: max-age=600\r\n"));
    let ask =
        async |cookies: &str| stage.ask("GET", "/shop", &format!("Cookie: {cookies}\r\n")).await;
    assert!(!is_hit(&ask("currency=EUR").await));
    assert!(ask("currency=EUR; _ga=1").await.text().contains("Cookie: currency=EUR\n"));
    let dollars = ask("currency=USD").await;
    assert!(!is_hit(&dollars) && dollars.text().contains("Cookie: currency=USD\n"));
    // What a client invents is as good as no cookie.
    let none = ask("currency=GBP").await;
    assert!(!is_hit(&none) && !none.text().contains("Cookie"), "{}", none.text());
    assert!(is_hit(&ask("currency=CHF").await) && is_hit(&stage.get("/shop").await));
    assert_eq!(stage.origin.seen("/shop"), 3);
    // A session beside it makes the request personal.
    let own = ask("currency=EUR; session=anna").await;
    assert!(!is_hit(&own) && own.text().contains("session=anna"));
    assert!(!ask("currency=EUR").await.text().contains("anna"));
}

#[tokio::test]
async fn agents_get_markdown_and_browsers_html() {
    let stage = start("vary = { accept = \"markdown\" }\n").await;
    stage.origin.on("/doc", Script::mirror("Cache-Control: max-age=600\r\nVary: Accept\r\n"));
    for (accept, form, hit) in [
        ("text/markdown, text/html, */*", "text/markdown,*/*;q=0.8", false),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html,*/*;q=0.8", false),
        ("text/markdown", "text/markdown,*/*;q=0.8", true),
        ("*/*", "text/html,*/*;q=0.8", true),
        ("text/event-stream", "text/event-stream", false),
    ] {
        let reply = stage.ask("GET", "/doc", &format!("Accept: {accept}\r\n")).await;
        assert!(reply.text().contains(&format!("Accept: {form}\n")), "{}", reply.text());
        assert_eq!(is_hit(&reply), hit, "{accept}");
    }
}

/// With `key_headers`, an application that negotiates without saying so is kept apart, too.
#[tokio::test]
async fn forms_may_be_in_the_key() {
    let site = "cache = { key_headers = [\"X-Device\", \"Accept-Language\"] }\n";
    let stage = start(&format!("{site}{SITE}")).await;
    stage.origin.on("/page", Script::mirror("Cache-Control: max-age=600\r\n"));
    for (number, language, hit) in
        [(0, "de", false), (1, "de", false), (2, "de-AT", true), (3, "en", false), (5, "ja", true)]
    {
        let fields = format!("User-Agent: {}\r\nAccept-Language: {language}\r\n", agent(number));
        assert_eq!(is_hit(&stage.ask("GET", "/page", &fields).await), hit, "{number} {language}");
    }
}

#[tokio::test]
async fn explanations_and_logs_show_forms_and_what_was_sent() {
    let top = "log_ring = { headers = [\"User-Agent\", \"Accept-Language\"] }";
    let stage = Setup { top, site: SITE, ..Setup::default() }.start().await;
    stage
        .origin
        .on("/page", Script::mirror("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n"));
    let fields = format!("User-Agent: {}\r\nAccept-Language: de-AT\r\n", agent(0));
    stage.ask("GET", "/page", &fields).await;
    let headers =
        [format!("User-Agent: {}", agent(0)), "Accept-Language: de-CH,en;q=0.1".to_owned()];
    let told =
        explain(&stage.daemon, &json!({ "url": "http://larder.test/page", "headers": headers }))
            .await;
    let forms = fact(step(&told, "vary"), "forms").to_owned();
    assert!(
        forms.starts_with("Accept-Language: de, Accept: */*, User-Agent: Mozilla/5.0"),
        "{told}"
    );
    assert!(forms.ends_with("X-Device: mobile"), "{forms}");
    assert_eq!(told["outcome"]["served"], "HIT", "{told}");
    let format = "%{User-Agent}i %{Accept-Language}i";
    eventually("the record", async || {
        let logged = printed(&stage.daemon, &["log", "--once", "-F", format]).await;
        logged.contains(&format!("{} de-AT", agent(0)))
    })
    .await;
}

#[tokio::test]
async fn the_disk_has_variants_by_form() {
    let mut stage = Disked::start(Policy::Declared, "").await;
    stage.file += "[site.vary]\naccept_language = [\"en\", \"de\"]\n";
    stage.again(Signal::TERM).await;
    let vary = Script::mirror("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n");
    stage.origin.on("/page", vary);
    for round in 0..2 {
        for (number, language) in ["de-AT", "en-GB", "de", "ja"].into_iter().enumerate() {
            let fields = format!("Accept-Language: {language}\r\n");
            let reply = stage.ask("GET", "/page", &fields).await;
            assert_eq!(is_hit(&reply), round > 0 || number > 1, "{round} {language}");
            let form = if language.starts_with("de") { "de" } else { "en" };
            assert!(reply.text().contains(&format!("Accept-Language: {form}\n")));
        }
        stage.again(Signal::TERM).await;
    }
    assert_eq!(stage.origin.seen("/page"), 2);
}

#[tokio::test]
async fn a_field_that_changes_nothing_is_told() {
    let stage = Stage::new().await;
    let vary = "Cache-Control: max-age=600\r\nVary: User-Agent\r\n";
    stage.origin.on("/page", Script::ok(vary, "the same for all"));
    for number in 0..3 {
        stage.ask("GET", "/page", &format!("User-Agent: {}\r\n", agent(number))).await;
    }
    let question = json!({ "url": "http://larder.test/page", "headers": ["User-Agent: curl"] });
    let told = explain(&stage.daemon, &question).await;
    assert_eq!(fact(step(&told, "variants"), "equal bodies"), "3 of 3 are equal to another");
    let effect = "`User-Agent`: no effect: without it, 1 would be kept";
    assert_eq!(fact(step(&told, "variants"), "effect of Vary"), effect);
    let advice = told["advice"].to_string();
    assert!(advice.contains("3 of 3 are equal") && advice.contains("vary] user_agent"), "{advice}");
    assert!(advice.contains("no stored body differs by it, and 1 would be kept"), "{advice}");
}

#[tokio::test]
async fn a_field_of_which_few_forms_make_a_difference_is_told_with_the_setting() {
    let stage = Stage::new().await;
    let vary = "Cache-Control: max-age=600\r\nVary: User-Agent\r\n";
    for number in 0..12 {
        let body = if number % 2 == 0 { "for phones" } else { "for desks" };
        stage.origin.on("/page", Script::ok(vary, body));
        let fields = format!("User-Agent: {}\r\n", agent(number));
        assert_eq!(stage.ask("GET", "/page", &fields).await.text(), body);
    }
    let question = json!({ "url": "http://larder.test/page", "headers": ["User-Agent: curl"] });
    let told = explain(&stage.daemon, &question).await;
    let variants = step(&told, "variants");
    assert!(variants["why"].as_str().is_some_and(|why| why.starts_with("12 are kept")), "{told}");
    assert_eq!(fact(variants, "different bodies"), "2");
    let setting = "`vary.user_agent = \"device\"` would keep 2";
    assert_eq!(fact(variants, "effect of Vary"), format!("`User-Agent`: {setting}"));
    assert!(told["advice"][0].as_str().is_some_and(|advice| advice.contains(setting)), "{told}");
    let metrics = ["larder_cache_variants_total", "larder_cache_variants_equal_total"];
    for (name, wanted) in metrics.into_iter().zip([12, 10]) {
        assert_eq!(stage.metric(name).await, wanted, "{name}");
    }
    // The setting does what was said of it.
    let stage = start("[site.vary]\nuser_agent = \"device\"\n").await;
    stage.origin.on("/page", Script::ok(vary, "for all"));
    for number in 0..12 {
        stage.ask("GET", "/page", &format!("User-Agent: {}\r\n", agent(number))).await;
    }
    assert_eq!(stage.origin.seen("/page"), 2);
}

#[tokio::test]
async fn fragments_have_the_forms_of_their_page() {
    let stage = start(SITE).await;
    let fields = "Cache-Control: max-age=600\r\nContent-Type: text/html\r\n\
                  Surrogate-Control: content=\"ESI/1.0\"\r\n";
    stage.origin.on("/page", Script::ok(fields, "<p><esi:include src=\"/part\"/></p>"));
    let vary = "Cache-Control: max-age=600\r\nVary: Accept-Language, User-Agent\r\n";
    stage.origin.on("/part", Script::mirror(vary));
    for (number, language, form) in [(0, "de-AT", "de"), (2, "de", "de"), (4, "fr", "en")] {
        let fields = format!("User-Agent: {}\r\nAccept-Language: {language}\r\n", agent(number));
        let text = stage.ask("GET", "/page", &fields).await.text();
        assert!(text.starts_with("<p>") && text.contains(&format!("Accept-Language: {form}\n")));
    }
    assert_eq!((stage.origin.seen("/page"), stage.origin.seen("/part")), (1, 2));
}
