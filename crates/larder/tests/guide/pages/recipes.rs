//! The recipes of the guide, put in force and tested by requests.

use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

use super::blocks::{Block, read};
use crate::support::{Setup, Stage};

/// A request and its outcome: the heading of a recipe, method and host, target, status, and a line
/// of the response.
type Question = (&'static str, &'static str, &'static str, u16, &'static str);

const QUESTIONS: &[Question] = &[
    (
        "Use one name for the site",
        "GET www.example.com",
        "/a?b=1",
        301,
        "Location: https://example.com/a?b=1",
    ),
    ("Redirect old addresses", "GET example.com", "/about.html", 301, "Location: /about/"),
    (
        "Redirect old addresses",
        "GET example.com",
        "/shop/x?y",
        301,
        "Location: https://shop.example.com/shop/x?y",
    ),
    (
        "Redirect old addresses",
        "GET example.com",
        "/old-forum/1",
        410,
        "The forum was closed in 2024.",
    ),
    ("Close for maintenance", "GET example.com", "/any", 503, "Retry-After: 600"),
    ("Restrict the admin pages to the office", "GET example.com", "/wp-admin/x", 200, "a page"),
    ("Restrict the admin pages to the office", "POST example.com", "/xmlrpc.php", 403, ""),
    ("Limit password guesses", "GET example.com", "/wp-login.php", 200, "a page"),
    ("Limit password guesses", "POST example.com", "/wp-login.php", 429, "Retry-After: "),
    ("Limit crawlers", "GET example.com", "/robots.txt", 200, "User-agent: GPTBot"),
    ("Set security headers", "GET example.com", "/", 200, "X-Frame-Options: SAMEORIGIN"),
    (
        "Let other sites use fonts and data (CORS)",
        "GET example.com",
        "/f.woff2",
        200,
        "Access-Control-Allow-Origin: *",
    ),
    (
        "Cache a page that changes all the time",
        "GET example.com",
        "/api/scores",
        200,
        "Cache-Status: larder; hit",
    ),
];

/// Requests until a limit is reached, or a page is stored.
const TRIES: usize = 8;

/// The first settings below `heading`.
fn block(text: &str, heading: &str) -> Block {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).expect(heading);
    read("recipes.md", rest).into_iter().find(|block| block.tag == "toml").expect(heading)
}

/// A daemon with a recipe.
async fn with(block: &Block) -> Stage {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::ok("", "a page"));
    let is_site = block.text.contains("[[site]]");
    let site = if is_site { "" } else { &*block.text };
    let mut file = Setup { site, ..Setup::default() }.file(&origin);
    if is_site {
        file.push_str(&format!("\n{}", block.text));
    }
    Stage { daemon: Daemon::start(&file).expect(&file), origin }
}

/// The lines of a response.
fn answer(reply: &Reply) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = reply.fields.iter().map(|(name, value)| format!("{}: {}\n", name, text(value)));
    format!("{}\n{}{}", reply.status, fields.collect::<String>(), reply.text())
}

#[tokio::test]
async fn recipes_do_what_they_say() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/recipes.md");
    let text = std::fs::read_to_string(file).expect("the page");
    for (heading, asked, target, status, line) in QUESTIONS {
        let stage = with(&block(&text, heading)).await;
        let (method, host) = asked.split_once(' ').expect("two words");
        let length = if *method == *"POST" { "Content-Length: 0\r\n" } else { "" };
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{length}\r\n");
        let mut last = String::new();
        let mut is_well = false;
        for _ in 0..TRIES {
            let reply = stage.exchange(method, request.as_bytes()).await;
            last = answer(&reply);
            is_well = reply.status == *status && last.to_lowercase().contains(&line.to_lowercase());
            if is_well {
                break;
            }
        }
        assert!(is_well, "{heading}: {asked}{target}: {last}");
    }
}
