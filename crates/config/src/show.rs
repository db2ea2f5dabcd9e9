//! A configuration's sites in full, for people: presets applied, defaults filled in, every rule in
//! the order in which it decides.

use std::fmt::{Display, Write as _};

use base::units::DurationMs;
use message::store::{StatusMatch, StoreRules};
use policy::answer::Answer;
use policy::headers::{FieldName, FieldValue, HeaderOps};
use policy::rules::{Browsers, Profile, RouteRules, Settings};
use policy::{PageCache, StoreIn, Terms};

use crate::model::{Admission, Config, SiteConfig};

/// One of its sites in full, as text for others than the file's owner: what requests to origins are
/// given in header fields, which may be secrets, is left out.
pub fn show_site(config: &Config, site: &SiteConfig) -> String {
    self::site(config, site, true)
}

/// The width of the column of names.
const NAMES: usize = 18;

/// Every site of `config` in full, as text.
pub fn show(config: &Config) -> String {
    let sites: Vec<String> =
        config.sites.iter().map(|site| self::site(config, site, false)).collect();
    sites.join("\n")
}

/// Lines of a name and what it stands for, indented.
struct Page {
    text: String,
    indent: usize,
    /// Values that may be secrets are left out.
    discreet: bool,
}

impl Page {
    fn line(&mut self, name: &str, value: impl Display) {
        let indent = self.indent;
        let done = writeln!(self.text, "{:indent$}{name:NAMES$} {value}", "");
        done.expect("a string takes whatever is written to it");
    }

    /// One line per value, the name on the first.
    fn lines(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        for (at, value) in values.into_iter().enumerate() {
            self.line(if at == 0 { name } else { "" }, value);
        }
    }

    fn list(&mut self, name: &str, values: &[impl Display]) {
        self.lines(name, values.iter().map(ToString::to_string));
    }
}

fn site(config: &Config, site: &SiteConfig, discreet: bool) -> String {
    let rules = &site.rules;
    let mut page = Page { text: String::new(), indent: 0, discreet };
    page.line("site", site.hosts.join(", "));
    page.indent = 2;
    page.line(
        "presets",
        if site.presets.is_empty() { "none".into() } else { site.presets.join(", ") },
    );
    page.line(
        "profile",
        match rules.profile {
            Profile::Safe => "safe",
            Profile::Rfc => "rfc",
        },
    );
    page.list("trusted proxies", &rules.trusted_proxies);
    for (at, route) in rules.routes.iter().enumerate() {
        page.indent = 2;
        page.line(&format!("route {}", at + 1), &route.name);
        page.indent = 4;
        scope(&mut page, route);
        settings(&mut page, config, site, &route.settings);
    }
    page.indent = 2;
    page.line(if rules.routes.is_empty() { "every request" } else { "other requests" }, "");
    page.indent = 4;
    settings(&mut page, config, site, &rules.settings);
    let lines = page.text.lines().map(str::trim_end).map(|line| format!("{line}\n"));
    lines.collect()
}

fn scope(page: &mut Page, route: &RouteRules) {
    page.list("path", &route.paths);
    page.list("method", &route.methods);
}

/// Settings in the order in which they count: who is let in, an answer of its own, what passes
/// unread, what is removed, what passes then, the key, storing, and header changes.
fn settings(page: &mut Page, config: &Config, site: &SiteConfig, settings: &Settings) {
    page.list("deny", &settings.deny);
    page.list("allow", &settings.allow);
    let rates = settings.rate.iter().flat_map(|rules| rules.iter());
    page.lines("rate", rates.map(|rule| limited(rule.told(), &rule.terms)));
    let crowds = settings.concurrent.iter().flat_map(|rules| rules.iter());
    page.lines("at once", crowds.map(|rule| limited(rule.requests, &rule.terms)));
    if let Some(basic) = &settings.basic_auth {
        page.line("users", basic.file.display());
    }
    if let Some(forward) = &settings.forward_auth {
        let origin = config.origins.get(forward.origin).map_or("", |origin| &*origin.name);
        page.line("asks who enters", format!("{origin}{}", forward.shown_path()));
    }
    match &settings.answer {
        Some(Answer::Fixed(fixed)) => {
            page.line("answers", format!("{} with {} bytes", fixed.status, fixed.body.len()));
            return;
        }
        Some(Answer::Redirect(redirect)) => {
            match page.discreet {
                true => page.line("answers", redirect.without_credentials()),
                false => page.line("answers", redirect),
            }
            return;
        }
        None => {}
    }
    if let Some(files) = settings.files.and_then(|at| site.files.get(at as usize)) {
        page.line("files", self::files(files));
        to_client(page, settings);
        return;
    }
    origin(page, config, site, settings);
    if let Some(plugin) = settings.page_cache {
        let name = match plugin {
            PageCache::WpSuperCache => "wp-super-cache",
            PageCache::WpRocket => "wp-rocket",
            PageCache::Boost => "boost",
        };
        page.line("page cache", name);
    }
    if settings.cache {
        let safe = site.rules.profile == Profile::Safe;
        page.line("passed", "methods other than GET and HEAD, requests with a body");
        removed(page, settings, safe);
        bypass(page, settings);
        page.list("key: cookies", &settings.cookies.key);
        page.list("key: fields", &settings.key_headers);
        storing(page, config, settings, site.rules.profile);
    } else {
        page.line("passed", "every request, as it came (cache = false)");
    }
    page.list("may change to", &settings.upgrade);
    if page.discreet {
        let names = settings.request_headers.iter().map(|(field, _)| format!("{field} is set"));
        page.lines("to the origin", names);
    } else {
        changes(page, "to the origin", &settings.request_headers);
    }
    to_client(page, settings);
}

/// The origin that answers, what it never runs, and how long it may take.
fn origin(page: &mut Page, config: &Config, site: &SiteConfig, settings: &Settings) {
    let origin = usize::try_from(settings.origin).ok().and_then(|at| site.origins.get(at));
    let Some(origin) = origin.and_then(|index| config.origins.get(*index)) else { return };
    page.line("origin", &origin.name);
    if let Some(scripts) = &origin.scripts {
        page.list("no scripts below", &scripts.rules.barred);
    }
    if let Some(first_byte) = settings.first_byte_ms {
        page.line("waits for a head", DurationMs(first_byte));
    }
}

/// A limit with its terms.
fn limited(what: impl Display, terms: &Terms) -> String {
    let mut told = format!("{what} per {}", terms.per.told());
    for (word, each) in [("for", texts(&terms.paths)), ("but not of", texts(&terms.exempt))] {
        if !each.is_empty() {
            told += &format!(", {word} {each}");
        }
    }
    if terms.dry_run {
        told += " (only counted)";
    }
    told
}

fn texts(values: &[impl Display]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Changes to responses, which may hold secrets of the operator's towards others.
fn to_client(page: &mut Page, settings: &Settings) {
    if page.discreet {
        let names = settings.response_headers.iter().map(|(field, _)| format!("{field} is set"));
        page.lines("to the client", names);
    } else {
        changes(page, "to the client", &settings.response_headers);
    }
}

/// A root, and what of a path is looked for in it.
fn files(files: &files::Config) -> String {
    let root = files.root.display();
    match files.strip.as_str() {
        "" => root.to_string(),
        strip => format!("{root}, without the {strip} before it"),
    }
}

fn removed(page: &mut Page, settings: &Settings, safe: bool) {
    let cookies = &settings.cookies;
    let tracking = cookies.strip_tracking.unwrap_or(safe);
    page.lines("cookies removed", tracking.then(|| "known tracking cookies".to_owned()));
    page.list(if tracking { "" } else { "cookies removed" }, &cookies.strip);
    if !cookies.keep.is_empty() {
        page.line("cookies that count", texts(&cookies.keep));
    }
    let query = &settings.query;
    if query.ignore {
        page.line("query removed", "all of it");
        return;
    }
    let tracking = query.strip_tracking.unwrap_or(safe);
    page.lines("query removed", tracking.then(|| "known tracking parameters".to_owned()));
    page.list(if tracking { "" } else { "query removed" }, &query.strip);
    if query.sort {
        page.line("query", "sorted by name");
    }
}

/// Paths are looked at first, then cookies, header fields, and the query.
fn bypass(page: &mut Page, settings: &Settings) {
    let discreet = page.discreet;
    let looks = |kind: &'static str| {
        let reasons = settings.bypass.iter().map(move |reason| match discreet {
            true => reason.told(),
            false => reason.to_string(),
        });
        reasons.filter_map(move |reason| {
            let rest = reason.strip_prefix(kind)?;
            Some(if rest.is_empty() { "any".to_owned() } else { rest.trim_start().to_owned() })
        })
    };
    page.lines("passed: path", looks("path"));
    page.lines("passed: cookie", looks("cookie"));
    page.lines("passed: field", looks("header"));
    page.lines("passed: query", looks("query"));
    if !settings.bypass_unless.is_empty() {
        let fields = texts(&settings.bypass_unless);
        page.line("not passed", format!("for more than its path: a request with {fields}"));
    }
}

fn storing(page: &mut Page, config: &Config, settings: &Settings, profile: Profile) {
    let defaults: StoreRules = profile.store_rules();
    let ms = |ms: u64| DurationMs(ms).to_string();
    let ttl = settings.ttl.iter().map(|(status, ttl)| {
        format!("{} for {} where it names no lifetime", status_words(*status), ms(*ttl))
    });
    page.lines("stored", ttl);
    let heuristic = settings.heuristic_ms.unwrap_or(defaults.heuristic_max_ms);
    page.line(
        "heuristic",
        match heuristic {
            0 => "no guess from Last-Modified".to_owned(),
            most => {
                let html = settings.heuristic_html_ms.unwrap_or(defaults.heuristic_html_max_ms);
                let (most, html) = (ms(most), ms(html.min(most)));
                format!("guess from Last-Modified, at most {most}, of HTML {html}")
            }
        },
    );
    if settings.match_type {
        page.line("only if", "the Content-Type is what the path's suffix stands for");
    }
    if !settings.not_stored.is_empty() {
        let never: Vec<_> = settings.not_stored.iter().map(|of| status_words(*of)).collect();
        page.line("never stored", never.join(", "));
    }
    for field in &settings.match_headers {
        page.line("only if", format!("{field} is the request's, where that has it"));
    }
    page.line(
        "Set-Cookie",
        match (settings.drop_set_cookie, defaults.store_set_cookie) {
            (true, _) => "removed where the origin says `public` and a lifetime; else not stored",
            (_, true) => "stored where the origin names a lifetime",
            (_, false) => "not stored",
        },
    );
    let windows = [
        ("stale: refreshing", settings.grace_ms.unwrap_or(defaults.grace_ms)),
        ("stale: error", settings.stale_if_error_ms.unwrap_or(defaults.stale_if_error_ms)),
        (
            "stale: unreachable",
            settings.stale_if_unreachable_ms.unwrap_or(defaults.stale_if_unreachable_ms),
        ),
    ];
    for (name, window) in windows {
        page.line(name, ms(window));
    }
    if config.disk.is_some() || settings.store != StoreIn::Both {
        page.line("kept", kept(config, settings.store));
    }
    if settings.browsers == Browsers::NeverStore {
        page.line("browsers", "never store what is not private");
    }
    let honoured = settings.honour_request_directives.unwrap_or(defaults.honour_request_no_store);
    page.line("client's wishes", if honoured { "honoured" } else { "ignored" });
}

fn status_words(of: StatusMatch) -> String {
    match of {
        StatusMatch::Exact(status) => status.to_string(),
        StatusMatch::Class(class) => format!("{class}xx"),
        StatusMatch::Any => "any".to_owned(),
    }
}

/// Where responses are kept.
fn kept(config: &Config, store: StoreIn) -> &'static str {
    match (store, config.disk.as_ref().map(|disk| disk.admission)) {
        (StoreIn::Memory, _) | (_, None) => "in memory",
        (StoreIn::Both, Some(Admission::Hit)) => {
            "in memory, then on disk if asked for more than once"
        }
        (StoreIn::Disk, _) | (StoreIn::Both, Some(Admission::All)) => "in memory, then on disk",
    }
}

fn changes(page: &mut Page, name: &str, ops: &HeaderOps) {
    let change = |(field, value): (&FieldName, Option<&FieldValue>)| match value {
        Some(value) => format!("{field}: {value}"),
        None => format!("without {field}"),
    };
    page.lines(name, ops.iter().map(change));
}
