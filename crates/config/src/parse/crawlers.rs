//! `[crawlers]` and `[site.crawlers]`: the list of crawlers, and what a site sets for whole classes
//! of clients.

use std::sync::Arc;

use message::{ClientClass, HttpsOrigin};
use policy::answer::ConfiguredResponse;
use policy::rules::Settings;
use policy::{ClassRules, CrawlerRules, ServeMode, SiteRules};
use toml::de::DeValue;

use super::answers::{self, respond};
use super::throttle;
use crate::keys::{TABLE, TEXTS};
use crate::model::{CrawlersConfig, PlacedPath, SigningCrawler};
use crate::page::{SettingsPage, word};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};

/// Most lines that a site adds to its robots.txt.
const LINES_MAX: usize = 1_000;

section! {
    pub(crate) CRAWLERS, CRAWLERS_ROWS: CrawlersConfig; "[crawlers]",
    "The list of crawlers by which Larder tells classes of clients apart: `human`, `search`, `ai`, \
     `tool` and `unknown`. It is used on sites with `[site.crawlers]` or with `class` as a \
     condition of a route. A client that claims to be a search engine is `unknown` until it is \
     verified.";
    "file", "an absolute path", "none", "List of crawlers of your own, which precedes the built-in one. Each line has a class, a name and a text that occurs in User-Agent: `ai GPTBot GPTBot`. Read at the start and at each reload. Its maximum size is the limit `crawler_list_bytes`.",
        |r, item, to| to.file = r.path(item);
    "built_in", boolean built_in, "true", "Whether the built-in list applies, too. With `false`, only `file` counts.";
    "verify", "a table of names and absolute paths", "none", "Files with the addresses of crawlers, by their name in the list: `{ Googlebot = \"/etc/larder/googlebot.json\" }`. Either JSON as Google publishes it, or one address or network in each line. A client with this name and another address is `unknown`, whatever the name's class.",
        verify;
    @table(SIGNER) "signatures", "a table of names and origins", "none", "Crawlers and agents that sign their requests (Web Bot Auth), by their name in the list, with the origin that they name in `Signature-Agent`: `{ ChatGPT-User = \"https://chatgpt.com\" }`. Larder fetches their keys from there. A request with a valid signature has the class of that name, whatever its User-Agent. With an invalid one it is `unknown`.",
        signatures;
    "dns", boolean dns, "true", "Whether Larder verifies search engines without a file in `verify` by DNS: the address must have a name below one of the crawler's domains, and the name must lead back to the address. Until DNS has answered, the client is `unknown`; Larder keeps the result for a day.";
}

section! {
    pub(crate) SIGNER, SIGNER_ROWS: Signer; "{ agent, keys, ca }",
    "A crawler or agent in `signatures` of `[crawlers]` whose keys are in a file, or whose server \
     has a certificate of your own authority.";
    @needed("a signer needs `agent`", "such as agent = \"https://agent.example\"")
    "agent", "an origin", "required", "Origin that the agent names in `Signature-Agent`, such as \"https://agent.example\". Larder fetches its keys from `/.well-known/http-message-signatures-directory` there.",
        |r, item, to| to.agent = agent(r, item);
    "keys", path keys, "fetched", "File with the agent's keys as a JSON Web Key Set, in place of a fetch. Read at the start and at each reload. Its maximum size is the limit `key_directory_bytes`.";
    "ca", path ca, "the system's", "PEM file with the authorities that verify the agent's certificate.";
}

section! {
    pub(crate) SITE_CRAWLERS, SITE_CRAWLERS_ROWS: CrawlerRules; "[site.crawlers]",
    "Settings for whole classes of clients (see `[crawlers]`), in place of those of the site and \
     of each route. They are a short form for routes with the condition `class`. A route that has \
     such a condition itself stays as it is, and `/robots.txt` is left out.";
    "robots", boolean robots, "false", "Whether Larder answers `/robots.txt`, in place of the origin and of all routes: classes whose `respond` has an error status may read nothing, all others everything.";
    "robots_lines", TEXTS, "none", "Lines that the robots.txt of `robots` also has, such as `Sitemap: https://example.com/sitemap.xml`. A group for `*` replaces the one that permits everything.",
        |r, item, to| to.robots_lines = robots_lines(r, item);
    @table(CLASS) "human", TABLE, "none", "Browsers: see `[site.crawlers.ai]`.",
        |r, item, to| class(r, item, to, ClientClass::Human);
    @table(CLASS) "search", TABLE, "none", "Verified search engines: see `[site.crawlers.ai]`.",
        |r, item, to| class(r, item, to, ClientClass::Search);
    @table(CLASS) "ai", TABLE, "none", "Crawlers and agents of language models: see `[site.crawlers.ai]`.",
        |r, item, to| class(r, item, to, ClientClass::Ai);
    @table(CLASS) "tool", TABLE, "none", "Tools and libraries: see `[site.crawlers.ai]`.",
        |r, item, to| class(r, item, to, ClientClass::Tool);
    @table(CLASS) "unknown", TABLE, "none", "All others: see `[site.crawlers.ai]`.",
        |r, item, to| class(r, item, to, ClientClass::Unknown);
}

section! {
    pub(crate) CLASS, CLASS_ROWS: ClassRules; "[site.crawlers.ai]",
    "Settings for the clients of one class: `human`, `search`, `ai`, `tool` or `unknown`.";
    "serve", "\"all\" or \"stored\"", "the route's", "See `serve` in `[[site]]`.",
        |r, item, to| to.serve = serve(r, item);
    @table(answers::RESPOND) "respond", TABLE, "none", "Answers with a fixed response: see `[site.respond]`.",
        |r, item, to| {
            let fixed = respond(r, item);
            to.answer = fixed.map(|answer| ConfiguredResponse::Fixed(Arc::new(answer)));
        };
    @table(throttle::RATE) "rate", "a table or a list of tables", "the route's", "Request rate limit per client: see `[site.rate]`.",
        |r, item, to| to.rate = throttle::rates(r, item);
    @table(throttle::CONCURRENT) "concurrent", "a table or a list of tables", "the route's", "Maximum number of concurrent requests per client: see `[site.concurrent]`.",
        |r, item, to| to.concurrent = throttle::concurrency_limits(r, item);
}

/// The keywords of `serve`.
const MODES: [(&str, ServeMode); 2] = [("all", ServeMode::All), ("stored", ServeMode::Stored)];

/// Reads how requests are served that the store cannot answer.
pub(super) fn serve(r: &mut Reader, item: &SettingValue<'_>) -> Option<ServeMode> {
    r.word(item, &MODES)
}

/// Shows how such requests are served.
pub(super) fn show_serve(page: &mut SettingsPage<'_>, settings: &Settings) {
    if settings.serve != ServeMode::All {
        page.line("serve", word(&MODES, &settings.serve));
    }
}

/// Reads the classes that a condition is about.
pub(super) fn classes(r: &mut Reader, item: &SettingValue<'_>) -> Vec<ClientClass> {
    let words = ClientClass::ALL.map(|class| (class.word(), class));
    item.each().iter().filter_map(|item| r.word(item, &words)).collect()
}

/// Reads the rules of a site for crawlers into `to`, which has those of its presets.
pub(super) fn of_site(r: &mut Reader, item: &SettingValue<'_>, to: &mut CrawlerRules) {
    let Some(table) = r.table(item, &SITE_CRAWLERS) else { return };
    rows::read(r, &table, SITE_CRAWLERS_ROWS, to);
    if let Some(lines) = table.item("robots_lines").filter(|_| !to.robots) {
        r.error(lines.span, "`robots_lines` without `robots = true`").help =
            Some("the robots.txt of the origin stays as it is".to_owned());
    }
}

/// Reports a robots.txt that both Larder and a route would answer.
pub(super) fn check(r: &mut Reader, item: &SettingValue<'_>, rules: &SiteRules) {
    let is_robots =
        |path: &policy::pattern::PathPattern| path.to_string() == policy::crawlers::ROBOTS;
    let own = rules.routes.iter().find(|route| route.scope.paths.iter().any(is_robots));
    if let Some(route) = own.filter(|_| rules.crawlers.robots) {
        let message = format!("`robots` and the route `{}` both answer /robots.txt", route.name);
        r.error(item.span.clone(), message).help =
            Some("leave out one of them; `robots_lines` adds lines".to_owned());
    }
}

fn class(r: &mut Reader, item: &SettingValue<'_>, to: &mut CrawlerRules, class: ClientClass) {
    let mut rules = ClassRules { place: Some(r.place(&item.span)), ..ClassRules::of(class) };
    rows::read_table(r, item, &CLASS, CLASS_ROWS, &mut rules);
    // In place of a preset's.
    to.classes.retain(|own| own.class != class);
    to.classes.push(rules);
}

fn robots_lines(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
    let texts = r.texts(item);
    if texts.len() > LINES_MAX {
        r.error(item.span.clone(), format!("`robots_lines` has more than {LINES_MAX} lines"));
    }
    let mut lines = Vec::new();
    for (text, item) in texts.into_iter().take(LINES_MAX) {
        if text.contains(['\r', '\n', '\0']) {
            r.error(item.span, "`robots_lines` has one line in each string");
        } else {
            lines.push(text.to_owned());
        }
    }
    lines
}

fn verify(r: &mut Reader, item: &SettingValue<'_>, to: &mut CrawlersConfig) {
    for (name, _, item) in r.pairs(item) {
        if let Some(file) = r.path(&item) {
            to.verify.push((name.to_owned(), file));
        }
    }
}

/// A signer while it is read.
#[derive(Default)]
struct Signer {
    agent: Option<HttpsOrigin>,
    keys: Option<PlacedPath>,
    ca: Option<PlacedPath>,
}

fn signatures(r: &mut Reader, item: &SettingValue<'_>, to: &mut CrawlersConfig) {
    for (name, span, item) in r.pairs(item) {
        let mut signer = Signer::default();
        match item.value {
            DeValue::String(_) => signer.agent = agent(r, &item),
            _ => _ = rows::read_table(r, &item, &SIGNER, SIGNER_ROWS, &mut signer),
        }
        let Signer { agent: Some(agent), keys, ca } = signer else { continue };
        let earlier = to.signatures.iter().find(|own| own.agent == agent);
        if let Some(earlier) = earlier {
            let message = format!("`{name}` and `{}` have the agent {agent}", earlier.name);
            r.error(span.clone(), message);
        }
        if let (Some(_), Some(ca)) = (&keys, &ca) {
            let path = ca.path.display().to_string();
            r.warning(span.clone(), format!("`ca` ({path}) has no effect beside `keys`"));
        }
        let (name, place) = (name.to_owned(), r.location(&span));
        to.signatures.push(SigningCrawler { name, agent, keys, ca, place });
    }
}

fn agent(r: &mut Reader, item: &SettingValue<'_>) -> Option<HttpsOrigin> {
    let text = r.text(item)?;
    let read = HttpsOrigin::parse(text.as_bytes()).ok();
    if read.is_none() {
        r.error(item.span.clone(), format!("`{text}` is no origin of an agent")).help =
            Some("`https://` and a host, perhaps with a port, and no path".to_owned());
    }
    read
}

/// Reads `[crawlers]`; missing keys keep their defaults.
pub(super) fn crawlers(r: &mut Reader, item: &SettingValue<'_>, to: &mut CrawlersConfig) {
    rows::read_table(r, item, &CRAWLERS, CRAWLERS_ROWS, to);
    if !to.built_in && to.file.is_none() {
        r.error(item.span.clone(), "`built_in = false` without `file`").help =
            Some("without a list, every client is `unknown`".to_owned());
    }
}
