//! Crawlers: classes of clients, the queue of their fetches, robots.txt, and that they share stored
//! pages with people and nothing else.
//!
//! The origin never answers what is to be under way, so that no test depends on the machine's
//! speed: requests are counted, not timed.

use crate::support;

use std::process::Command;

use serde_json::json;
use support::explain::{explain, fact, step};
use support::folder::Folder;
use support::{PATIENCE, Setup, Stage, eventually, is_hit, pause, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::binary;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::net::{TcpSocket, TcpStream};

const PERSON: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0\r\n";
const GPTBOT: &str =
    "User-Agent: Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)\r\n";
const GOOGLEBOT: &str =
    "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)\r\n";

/// Crawlers of models get what is stored.
const STORED: &str = "[site.crawlers]\nai = { serve = \"stored\" }\n";

/// A request that is under way. Dropping the connection resets it, which the daemon sees at once.
async fn begin(stage: &Stage, target: &str, fields: &str) -> RawClient {
    let stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    stream.set_zero_linger().expect("an open socket");
    let mut raw = RawClient::over(stream).patience(PATIENCE);
    raw.send(&request("GET", target, fields), WriteSplit::Whole).await.expect("sent");
    raw
}

/// A response to a GET from this address of the loopback network.
async fn from(stage: &Stage, address: &str, target: &str, fields: &str) -> Reply {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{address}:0").parse().expect("an address")).expect("a local address");
    let stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
    let mut raw = RawClient::over(stream).patience(PATIENCE);
    raw.send(&request("GET", target, fields), WriteSplit::Whole).await.expect("sent");
    whole(raw.reply("GET").await, target)
}

/// Requests to the origin for targets that begin so.
fn seen_of(stage: &Stage, prefix: &str) -> usize {
    stage.origin.targets().iter().filter(|target| target.starts_with(prefix)).count()
}

async fn waiting(stage: &Stage, count: u64) {
    eventually("crawlers wait", async || {
        stage.metric("larder_crawlers_queued_total").await == count
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_made_up_urls_costs_the_origin_a_few_requests() {
    let limits = "crawler_share = 100\ncrawler_fetches = 2\ncrawler_queue = 3";
    let stage = Setup { limits, site: STORED, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    let mut under_way = Vec::new();
    for number in 0..20 {
        let target = format!("/made-up?n={number}");
        stage.origin.on(&target, Script::default().hang());
        under_way.push(begin(&stage, &target, GPTBOT).await);
    }
    eventually("the others are refused", async || {
        stage.metric("larder_crawlers_refused_total").await == 15
    })
    .await;
    assert_eq!(seen_of(&stage, "/made-up"), 2);
    assert_eq!(stage.metric("larder_crawlers_queued_total").await, 3);
    assert_eq!(stage.limit_hits("crawler_queue").await, 15);
    // People do not notice.
    for number in 0..10 {
        let reply = stage.ask("GET", &format!("/new?n={number}"), PERSON).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
    }
    // Neither do crawlers, where something is stored.
    assert!(is_hit(&stage.ask("GET", "/new?n=1", GPTBOT).await));
    let refused = stage.ask("GET", "/made-up?n=99", GPTBOT).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.field("retry-after").as_deref(), Some("120"));
    assert_eq!(refused.field("cache-control").as_deref(), Some("no-store"));
    assert_eq!(seen_of(&stage, "/made-up"), 2);
}

#[tokio::test]
async fn crawlers_have_a_share_of_what_people_fetch() {
    let limits = "crawler_share = 10\ncrawler_minute = 0\ncrawler_wait = \"10m\"";
    let stage = Setup { limits, site: STORED, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    assert_eq!(stage.ask("GET", "/made-up?n=1", GPTBOT).await.status, 200, "the first one");
    let mut second = begin(&stage, "/made-up?n=2", GPTBOT).await;
    waiting(&stage, 1).await;
    for number in 0..9 {
        stage.ask("GET", &format!("/new?n={number}"), PERSON).await;
    }
    let question = json!({
        "url": "http://a.test/made-up?n=3",
        "headers": ["User-Agent: GPTBot/1.2"],
    });
    let told = explain(&stage.daemon, &question).await;
    assert!(fact(step(&told, "queue"), "now").contains("1 wait"), "{told}");
    assert_eq!(seen_of(&stage, "/made-up"), 1);
    stage.ask("GET", "/new?n=9", PERSON).await;
    assert_eq!(whole(second.reply("GET").await, "/made-up?n=2").text(), "page");
    assert_eq!(seen_of(&stage, "/made-up"), 2);
}

#[tokio::test]
async fn a_crawler_that_has_waited_too_long_is_refused() {
    let limits = "crawler_share = 1\ncrawler_minute = 0\ncrawler_wait = \"300ms\"";
    let stage = Setup { limits, site: STORED, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    assert_eq!(stage.ask("GET", "/made-up?n=1", GPTBOT).await.status, 200, "the first one");
    let refused = stage.ask("GET", "/made-up?n=2", GPTBOT).await;
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("crawler_wait"), "{}", refused.text());
    assert!(refused.field("retry-after").is_some());
    assert_eq!(stage.limit_hits("crawler_wait").await, 1);
    assert_eq!(seen_of(&stage, "/made-up"), 1);
}

#[tokio::test]
async fn a_person_does_not_wait_behind_a_crawler_for_the_same_page() {
    let site = format!("bypass = {{ path = \"/passed\" }}\n{STORED}");
    let limits = "crawler_share = 100\ncrawler_fetches = 1\ncrawler_queue = 9";
    let stage = Setup { limits, site: &site, ..Setup::default() }.start().await;
    stage.origin.on("/passed", Script::default().hang());
    stage.origin.on("/page", Script::cacheable("page"));
    let first = begin(&stage, "/passed", GPTBOT).await;
    eventually("the first fetch", async || stage.origin.seen("/passed") == 1).await;
    let mut crawler = begin(&stage, "/page", GPTBOT).await;
    waiting(&stage, 1).await;
    assert_eq!(stage.origin.seen("/page"), 0);
    let reply = stage.ask("GET", "/page", PERSON).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
    // A crawler that has left gives its place to the next, which finds the page.
    drop(first);
    let reply = whole(crawler.reply("GET").await, "/page");
    assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn a_crawler_joins_the_fetch_of_a_person() {
    let limits = "crawler_share = 100\ncrawler_fetches = 1\ncrawler_queue = 0";
    let stage = Setup { limits, site: STORED, ..Setup::default() }.start().await;
    stage.origin.on("/hung", Script::default().hang());
    let slow = Script::default().delay_ms(500);
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 4\r\n\r\n";
    stage.origin.on("/page", slow.send(format!("{head}page")));
    let _hung = begin(&stage, "/hung", GPTBOT).await;
    eventually("the only place is taken", async || stage.origin.seen("/hung") == 1).await;
    let mut person = begin(&stage, "/page", PERSON).await;
    eventually("the person's fetch", async || stage.origin.seen("/page") == 1).await;
    // Where nothing is under way, it would be refused.
    let crawler = stage.ask("GET", "/page", GPTBOT).await;
    assert_eq!((crawler.status, crawler.text().as_str()), (200, "page"));
    assert_eq!(whole(person.reply("GET").await, "/page").text(), "page");
    assert_eq!(stage.origin.seen("/page"), 1);
    assert_eq!(stage.ask("GET", "/other", GPTBOT).await.status, 429);
}

#[tokio::test]
async fn a_crawler_gets_stale_pages_and_has_none_fetched_anew() {
    let site = format!(
        "cache = {{ ttl = {{ 200 = \"100ms\" }}, stale_while_revalidate = \"0s\", \
         request_directives = \"honour\" }}\nbypass = {{ path = \"/passed\" }}\n{STORED}"
    );
    let limits = "crawler_share = 100\ncrawler_fetches = 1\ncrawler_queue = 9";
    let stage = Setup { limits, site: &site, ..Setup::default() }.start().await;
    stage.origin.on("/passed", Script::default().hang());
    stage.origin.on("/page", Script::ok("", "old"));
    stage.origin.on("/careful", Script::ok("Cache-Control: must-revalidate\r\n", "old"));
    for target in ["/page", "/careful"] {
        assert_eq!(stage.ask("GET", target, PERSON).await.text(), "old");
    }
    pause(300).await;
    stage.origin.on("/page", Script::ok("", "new"));
    stage.origin.on("/careful", Script::ok("Cache-Control: must-revalidate\r\n", "new"));
    let only = begin(&stage, "/passed", GPTBOT).await;
    eventually("the only place is taken", async || stage.origin.seen("/passed") == 1).await;
    for fields in ["", "Cache-Control: no-cache\r\n", "Cache-Control: max-age=0\r\n"] {
        let reply = stage.ask("GET", "/page", &format!("{GPTBOT}{fields}")).await;
        assert_eq!(reply.text(), "old", "{fields}");
    }
    assert_eq!(stage.origin.seen("/page"), 1);
    // The origin forbids it for this page, so it waits.
    let mut careful = begin(&stage, "/careful", GPTBOT).await;
    waiting(&stage, 1).await;
    assert_eq!(stage.origin.seen("/careful"), 1);
    drop(only);
    assert_eq!(whole(careful.reply("GET").await, "/careful").text(), "new");
    // With a place free, a stale page is renewed behind the crawler.
    eventually("the page is renewed", async || {
        stage.ask("GET", "/page", GPTBOT).await;
        stage.origin.seen("/page") >= 2
    })
    .await;
}

#[tokio::test]
async fn crawlers_share_what_is_stored_for_all_and_nothing_else() {
    let site =
        format!("{STORED}[[site.route]]\npath = \"/shop/*\"\ncookies = {{ key = \"cur\" }}\n");
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::mirror("Cache-Control: max-age=300\r\n"));
    let ask = async |target, fields: &str| stage.ask("GET", target, fields).await;
    let session = format!("{PERSON}Cookie: session=alice\r\n");
    // A person's own page is no one else's.
    let own = ask("/account", &session).await;
    assert!(own.text().contains("session=alice"));
    let crawler = ask("/account", GPTBOT).await;
    assert!(!is_hit(&crawler) && !crawler.text().contains("alice"));
    // A crawler's page is for people, and theirs for crawlers.
    assert!(is_hit(&ask("/account", PERSON).await));
    assert!(!is_hit(&ask("/b", PERSON).await) && is_hit(&ask("/b", GPTBOT).await));
    // Not to people with a cookie, nor a crawler that has one.
    assert!(ask("/account", &session).await.text().contains("alice"));
    let other = ask("/account", &format!("{GPTBOT}Cookie: session=bot\r\n")).await;
    assert!(other.text().contains("session=bot") && !other.text().contains("alice"));
    // What is in a route's key is in that of its crawlers.
    let euro = format!("{PERSON}Cookie: cur=eur\r\n");
    assert!(!is_hit(&ask("/shop/a", &euro).await) && is_hit(&ask("/shop/a", &euro).await));
    assert!(!is_hit(&ask("/shop/a", GPTBOT).await));
    assert!(is_hit(&ask("/shop/a", &format!("{GPTBOT}Cookie: cur=eur\r\n")).await));
}

#[tokio::test]
async fn a_class_with_another_origin_shares_no_page() {
    let beta = ScriptedOrigin::start().await.expect("a port for the origin");
    beta.otherwise(Script::cacheable("for agents"));
    let site = format!(
        "purge = {{ dialects = [\"purge\"] }}\n[[site.route]]\nwhen = {{ class = [\"ai\", \"tool\"] }}\n\
         origin = \"http://{}\"\n",
        beta.addr()
    );
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("for people"));
    let ask = async |fields| stage.ask("GET", "/page", fields).await;
    for (fields, body, hit) in [
        (PERSON, "for people", false),
        (GPTBOT, "for agents", false),
        ("User-Agent: curl/8.14.1\r\n", "for agents", true),
        (GPTBOT, "for agents", true),
        (PERSON, "for people", true),
        // It has no class that the route is for.
        (GOOGLEBOT, "for people", true),
        ("", "for people", true),
    ] {
        let reply = ask(fields).await;
        assert_eq!((reply.text().as_str(), is_hit(&reply)), (body, hit), "{fields}");
    }
    assert_eq!(stage.ask("PURGE", "/page", "").await.status, 200);
    assert!(!is_hit(&ask(GPTBOT).await) && !is_hit(&ask(PERSON).await));
}

/// A site on which only verified search engines get pages, but people.
fn verified(folder: &Folder, log: &str) -> (String, String) {
    folder.file("google.json", r#"{"prefixes": [{"ipv4Prefix": "127.0.0.2/32"}]}"#);
    let top = format!(
        "access_log = {{ path = \"{log}\", format = \"json\" }}\n[crawlers]\ndns = false\n\
         verify = {{ Googlebot = \"{}/google.json\" }}\n",
        folder.path().display()
    );
    let site = "[site.crawlers]\nunknown = { respond = { status = 403 } }\n".to_owned();
    (top, site)
}

#[tokio::test]
async fn a_search_engine_is_one_only_at_its_addresses() {
    let folder = Folder::new();
    let log = folder.path().join("log").display().to_string();
    let (top, site) = verified(&folder, &log);
    let stage = Setup { top: &top, site: &site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    assert_eq!(from(&stage, "127.0.0.2", "/page", GOOGLEBOT).await.status, 200);
    assert_eq!(from(&stage, "127.0.0.3", "/page", GOOGLEBOT).await.status, 403);
    assert_eq!(from(&stage, "127.0.0.2", "/page", "User-Agent: bingbot/2.0\r\n").await.status, 403);
    assert_eq!(from(&stage, "127.0.0.3", "/page", PERSON).await.status, 200);
    // What no proxy has forwarded is not believed.
    let forged = format!("{GOOGLEBOT}X-Forwarded-For: 127.0.0.2\r\n");
    assert_eq!(from(&stage, "127.0.0.3", "/page", &forged).await.status, 403);
    eventually("the log", async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let has = |class: &str| {
            let fields = format!("\"class\":\"{class}\",\"crawler\":\"Googlebot\"");
            text.lines().filter(|line| line.contains(&fields)).count()
        };
        let human = text.lines().find(|line| line.contains("\"class\":\"human\""));
        has("search") == 1 && has("unknown") == 2 && human.is_some_and(|h| !h.contains("crawler"))
    })
    .await;
    for (class, requests, hits, fetches) in
        [("search", 1, 0, 1), ("unknown", 3, 0, 0), ("human", 1, 1, 0), ("ai", 0, 0, 0)]
    {
        for (what, count) in [("requests", requests), ("hits", hits), ("fetches", fetches)] {
            stage.daemon.assert_metric(&format!("larder_class_{class}_{what}_total"), count).await;
        }
    }
    let question = |peer: &str| {
        let agent = GOOGLEBOT.trim_end();
        json!({ "url": "http://a.test/page", "client": peer, "headers": [agent] })
    };
    for (peer, told) in [("127.0.0.2", "search: it is `Googlebot`"), ("127.0.0.3", "unknown: ")] {
        let explanation = explain(&stage.daemon, &question(peer)).await;
        let why = step(&explanation, "class")["why"].as_str().unwrap_or_default().to_owned();
        assert!(why.starts_with(told), "{peer}: {explanation}");
    }
}

#[tokio::test]
async fn robots_txt_says_who_is_kept_out() {
    let site = "[site.crawlers]\nrobots = true\n\
                robots_lines = [\"Sitemap: https://a.test/sitemap.xml\"]\n\
                ai = { respond = { status = 403 } }\ntool = { serve = \"stored\" }\n\
                [[site.route]]\npath = \"*.txt\"\ncache = false\n";
    let stage = Setup { site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    for fields in [GPTBOT, PERSON, GOOGLEBOT, ""] {
        let reply = stage.ask("GET", "/robots.txt", fields).await;
        let text = reply.text();
        assert_eq!(reply.status, 200, "{fields}");
        let group = text.split("\n\n").next().unwrap_or_default();
        assert!(group.contains("User-agent: GPTBot\n") && group.ends_with("Disallow: /"), "{text}");
        assert!(
            group.contains("User-agent: Google-Extended\n") && !text.contains("curl"),
            "{text}"
        );
        let end = "User-agent: *\nDisallow:\nSitemap: https://a.test/sitemap.xml\n";
        assert!(text.ends_with(end), "{text}");
        assert_eq!(reply.field("content-type").as_deref(), Some("text/plain; charset=utf-8"));
    }
    assert_eq!(stage.origin.seen("/robots.txt"), 0);
    assert_eq!(stage.ask("GET", "/page", GPTBOT).await.status, 403);
    assert_eq!(stage.ask("GET", "/a.txt", GPTBOT).await.status, 403);
    assert_eq!(stage.ask("GET", "/page", PERSON).await.status, 200);
}

/// A page's fetch holds the only place until its body has passed.
#[tokio::test]
async fn fragments_of_a_page_do_not_wait_for_their_page() {
    let limits =
        "crawler_share = 100\ncrawler_fetches = 1\ncrawler_queue = 0\nwindow_bytes = \"16KiB\"";
    let site = format!("includes = {{ esi = \"html\" }}\n{STORED}");
    let stage = Setup { limits, site: &site, ..Setup::default() }.start().await;
    let body = format!("<esi:include src=\"/part\"/>{}", "x".repeat(200_000));
    let fields = "Content-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n\
                  Cache-Control: no-store\r\n";
    stage.origin.on("/page", Script::ok(fields, &body));
    stage.origin.on("/part", Script::ok("Cache-Control: no-store\r\n", "part"));
    let reply = stage.ask("GET", "/page", GPTBOT).await;
    assert!(reply.status == 200 && reply.text().starts_with("partxxx"), "{reply:?}");
    assert_eq!(reply.text().len(), 200_004);
}

#[tokio::test]
async fn explain_foretells_the_queue() {
    let limits = "crawler_share = 100\ncrawler_fetches = 1\ncrawler_queue = 0";
    let stage = Setup { limits, site: STORED, ..Setup::default() }.start().await;
    stage.origin.on("/hung", Script::default().hang());
    let question = |agent: &str| {
        let agent = format!("User-Agent: {agent}");
        json!({ "url": "http://a.test/page", "headers": [agent] })
    };
    let told = explain(&stage.daemon, &question("GPTBot/1.2")).await;
    assert_eq!(step(&told, "class")["why"], "ai: its User-Agent names `GPTBot`");
    assert_eq!(fact(step(&told, "queue"), "now"), "it would be fetched at once");
    assert_eq!(fact(step(&told, "route"), "because of"), "class ai, not (path /robots.txt)");
    let told = explain(&stage.daemon, &question("Mozilla/5.0 Firefox/140.0")).await;
    assert!(step(&told, "queue").is_null(), "{told}");
    let _hung = begin(&stage, "/hung", GPTBOT).await;
    eventually("the only place is taken", async || stage.origin.seen("/hung") == 1).await;
    let told = explain(&stage.daemon, &question("GPTBot/1.2")).await;
    assert_eq!(fact(step(&told, "queue"), "now"), "0 wait, so it would be refused");
    assert!(told["outcome"]["summary"].as_str().is_some_and(|why| why.contains("429")), "{told}");
    assert_eq!(stage.ask("GET", "/page", GPTBOT).await.status, 429);
    assert_eq!(stage.origin.seen("/page"), 0);
}

#[tokio::test]
async fn a_list_of_ones_own_comes_first_and_is_read_again() {
    let folder = Folder::new();
    folder.file("crawlers.txt", "tool GPTBot GPTBot\nai Mine my-reader/\n");
    let list = folder.path().join("crawlers.txt").display().to_string();
    let top = format!("[crawlers]\nfile = \"{list}\"\n");
    let site = "[site.crawlers]\nai = { respond = { status = 403 } }\n";
    let stage = Setup { top: &top, site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    let ask = async |agent: &str| {
        stage.ask("GET", "/page", &format!("User-Agent: {agent}\r\n")).await.status
    };
    assert_eq!((ask("GPTBot/1").await, ask("My-Reader/2").await), (200, 403));
    assert_eq!(ask("ClaudeBot/1").await, 403, "the built-in list follows");
    folder.file("crawlers.txt", "human Mine my-reader/\n");
    let reload = async || stage.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reload().await.status, 200);
    assert_eq!((ask("GPTBot/1").await, ask("My-Reader/2").await), (403, 200));
    folder.file("crawlers.txt", "ai Mine\nrobot x xxx\n");
    let refused = reload().await;
    assert!(refused.status >= 400 && refused.text().contains("line 2"), "{}", refused.text());
    assert_eq!(ask("GPTBot/1").await, 403, "the configuration stays");
}

#[test]
fn unusable_lists_are_faults_of_the_configuration() {
    let folder = Folder::new();
    folder.file("empty.txt", "# none\n");
    folder.file("net.txt", "127.0.0.0/8\n");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (keys, said) in [
        (format!("file = \"{}\"", path("missing.txt")), "No such file"),
        (format!("verify = {{ Googlebot = \"{}\" }}", path("empty.txt")), "it has no address"),
        (format!("verify = {{ Nobody = \"{}\" }}", path("net.txt")), "is called `Nobody`"),
    ] {
        let file = format!(
            "listen = \"127.0.0.1:0\"\n[crawlers]\n{keys}\n[[site]]\nhost = \"*\"\n\
             origin = \"http://127.0.0.1:9\"\n{STORED}"
        );
        folder.file("larder.toml", &file);
        let mut command = Command::new(binary().expect("the binary"));
        let output = command.args(["check", &path("larder.toml")]).output().expect("it runs");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!output.status.success() && text.contains(said), "{keys}: {text}");
    }
}

#[tokio::test]
async fn a_prefetch_gives_way_while_the_origin_is_busy() {
    let origin = "connections = 1";
    let site = "bypass = { path = \"/passed*\" }";
    let limits = "origin_queue_timeout = \"1m\"";
    let stage = Setup { limits, origin, site, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    stage.origin.on("/passed", Script::default().hang());
    let prefetch = format!("{PERSON}Sec-Purpose: prefetch;prerender\r\n");
    assert_eq!(stage.ask("GET", "/stored", &prefetch).await.status, 200);
    let only = begin(&stage, "/passed", PERSON).await;
    eventually("the only place is taken", async || stage.origin.seen("/passed") == 1).await;
    for target in ["/new", "/passed/2"] {
        let refused = stage.ask("GET", target, &prefetch).await;
        assert_eq!((refused.status, refused.body.len()), (503, 0), "{target}");
        assert_eq!(refused.field("cache-control").as_deref(), Some("no-store"));
    }
    assert!(is_hit(&stage.ask("GET", "/stored", &prefetch).await));
    assert_eq!(stage.metric("larder_prefetches_refused_total").await, 2);
    let question = json!({
        "url": "http://a.test/new", "headers": ["Sec-Purpose: prefetch"],
    });
    let told = explain(&stage.daemon, &question).await;
    assert_eq!(fact(step(&told, "prefetch"), "now"), "the origin has no place for it");
    // A person waits for the place, and gets it.
    let mut person = begin(&stage, "/new", PERSON).await;
    drop(only);
    assert_eq!(whole(person.reply("GET").await, "/new").text(), "page");
    assert_eq!(stage.ask("GET", "/passed/2", &prefetch).await.status, 200);
}
