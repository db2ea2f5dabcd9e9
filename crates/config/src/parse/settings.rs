//! Settings that a site and a route have in common.

use std::sync::Arc;

use message::upgrade::{PROTOCOLS_MAX, Protocol};
use policy::PageCache;
use policy::acl::Net;
use policy::answer::Answer;
use policy::pattern::PathPattern;
use policy::rules::Settings;
use toml::de::DeValue;

use super::answers::{redirect, respond};
use super::bypass::bypass;
use super::cache::cache;
use super::cookies::{COOKIES, COOKIES_ROWS, QUERY, QUERY_ROWS};
use super::headers::{REQUEST_HEADERS, RESPONSE_HEADERS, header_ops};
use super::lists::nets;
use super::places::{note_places, note_places_in};
use super::site_origins::SiteOrigins;
use crate::keys::{DURATION, Key, TABLE, TEXTS};
use crate::reader::{Item, Reader, Table};
use crate::rows::{self, Row, rows};

/// Keys that a site has and a route may change.
pub(super) fn setting_keys() -> Vec<Key> {
    rows::keys(ROWS)
}

const ROWS: &[Row<Settings>] = rows! {
    "origin", "the name of an [[origin]], or a URL", "required", "Where requests go. Not needed where `files`, `redirect` or `respond` answers.";
    "files", "a path or a table", "none", "Serves the files of this directory, instead of asking an origin: see `[site.files]`.";
    "page_cache", "\"wp-super-cache\", \"wp-rocket\", \"boost\" or false", "false", "A plugin whose pages on the disk, below the `root` of a FastCGI origin, answer where the cache does not, before PHP is asked.";
    "cache", "a table or false", "none", "See `[site.cache]`; `false` sends every request to the origin.",
        cache;
    "cookies", TABLE, "none", "See `[site.cookies]`.",
        |r, item, to| rows::read_table(r, item, &COOKIES, COOKIES_ROWS, &mut to.cookies);
    "query", TABLE, "none", "See `[site.query]`.",
        |r, item, to| rows::read_table(r, item, &QUERY, QUERY_ROWS, &mut to.query);
    "bypass", "a table or false", "none", "See `[site.bypass]`; `false` in a route forgets what its site says.",
        bypass;
    "request_headers", TABLE, "none", "See `[site.request_headers]`.",
        |r, item, to| header_ops(r, item, &REQUEST_HEADERS, &mut to.request_headers);
    "response_headers", TABLE, "none", "See `[site.response_headers]`.",
        |r, item, to| header_ops(r, item, &RESPONSE_HEADERS, &mut to.response_headers);
    "redirect", "a URL or a table", "none", "Answers with a redirect: see `[site.redirect]`.",
        |r, item, to| to.answer = redirect(r, item).map(Answer::Redirect);
    "respond", TABLE, "none", "Answers with a fixed response: see `[site.respond]`.",
        |r, item, to| to.answer = respond(r, item).map(|answer| Answer::Fixed(Arc::new(answer)));
    "first_byte_timeout", DURATION, "the origin's", "How long the origin may take from the request's last byte to the response's head, instead of its own `first_byte_timeout`. A preset's counts only where the origin names none.",
        first_byte_timeout;
    "upgrade", TEXTS, "\"websocket\"", "Protocols that a connection may change to (the Upgrade field): it becomes a tunnel to the origin once that has agreed. `[]` for none.",
        |r, item, to| to.upgrade = protocols(r, item);
    "allow", TEXTS, "everyone", "Addresses or networks let in; others get 403.",
        |r, item, to| to.allow = allow(r, item);
    "deny", TEXTS, "no one", "Addresses or networks kept out with 403, even when `allow` lets them in.",
        |r, item, to| to.deny = nets(r, item);
    "rate", "a table, a list of tables, or false", "none", "How often a client may ask: see `[site.rate]`.";
    "basic_auth", "a table or false", "none", "Users with passwords who alone are let in: see `[site.basic_auth]`.";
    "forward_auth", "a table or false", "none", "Another server that is asked who is let in: see `[site.forward_auth]`.";
    "concurrent", "a table, a list of tables, or false", "none", "How many requests of a client may be under way at once: see `[site.concurrent]`.";
};

/// Changes `settings` as `table` says, which are for `paths`; whether it names an origin that
/// exists.
pub(super) fn read(
    r: &mut Reader,
    table: &Table<'_>,
    paths: &[PathPattern],
    settings: &mut Settings,
    origins: &mut SiteOrigins<'_, '_>,
) -> bool {
    let (origin_item, files_item) = (table.item("origin"), table.item("files"));
    if let (Some(origin), Some(files)) = (&origin_item, &files_item) {
        let related = Some((origin.span.clone(), "the origin".to_owned()));
        r.error(files.span.clone(), "`files` and `origin` cannot both answer").related = related;
    }
    let origin = origin_item.as_ref().and_then(|item| origins.find(r, item));
    if let Some(origin) = origin {
        settings.origin = origin;
        settings.files = None;
    }
    let root = files_item.as_ref().and_then(|item| super::files::root(r, item, paths));
    if let Some(root) = root {
        settings.files = origins.root(root);
    }
    if let Some(item) = table.item("page_cache") {
        settings.page_cache = page_cache(r, &item);
        let known = origin_item_is_sound(table, origin);
        if settings.page_cache.is_some() && known && !origins.runs_scripts(settings.origin) {
            r.error(item.span, "`page_cache` needs a FastCGI origin").help =
                Some("the pages are below its `root`".to_owned());
        }
    }
    note_places(r, table, &["origin", "files", "page_cache"], settings);
    super::throttle::read(r, table, settings);
    super::entry::read(r, table, settings, origins);
    rules(r, table, settings);
    origin.is_some()
}

/// Returns true unless the table names an origin that was not found. Such a name was reported
/// already.
fn origin_item_is_sound(table: &Table<'_>, found: Option<u32>) -> bool {
    found.is_some() || table.item("origin").is_none()
}

fn page_cache(r: &mut Reader, item: &Item<'_>) -> Option<PageCache> {
    if matches!(item.value, DeValue::Boolean(false)) {
        return None;
    }
    let words = [
        ("wp-super-cache", PageCache::WpSuperCache),
        ("wp-rocket", PageCache::WpRocket),
        ("boost", PageCache::Boost),
    ];
    r.word(item, &words)
}

/// Changes `settings` as `table` says, but for the origin, which a preset has none of.
pub(super) fn rules(r: &mut Reader, table: &Table<'_>, settings: &mut Settings) {
    const KEYS: [&str; 6] = ["allow", "cache", "deny", "redirect", "respond", "upgrade"];
    note_places(r, table, &KEYS, settings);
    for section in ["cache", "cookies", "query"] {
        note_places_in(r, table, section, settings);
    }
    if let (Some(redirect), Some(respond)) = (table.item("redirect"), table.item("respond")) {
        let related = Some((redirect.span, "the other answer".to_owned()));
        r.error(respond.span, "`redirect` and `respond` cannot both answer").related = related;
    }
    rows::read(r, table, ROWS, settings);
}

fn first_byte_timeout(r: &mut Reader, item: &Item<'_>, settings: &mut Settings) {
    match r.duration(item) {
        Some(0) => {
            r.error(item.span.clone(), "`first_byte_timeout` must be longer than nothing");
        }
        ms => settings.first_byte_ms = ms,
    }
}

/// Clients that are let in.
fn allow(r: &mut Reader, item: &Item<'_>) -> Vec<Net> {
    let allow = nets(r, item);
    if item.each().is_empty() {
        r.error(item.span.clone(), "`allow` lets no one in").help =
            Some("write `deny = [\"0.0.0.0/0\", \"::/0\"]` if that is meant".to_owned());
    }
    allow
}

/// Protocols a connection may change to.
fn protocols(r: &mut Reader, item: &Item<'_>) -> Vec<Protocol> {
    let texts = r.texts(item);
    if texts.len() > PROTOCOLS_MAX {
        r.error(item.span.clone(), format!("`upgrade` names more than {PROTOCOLS_MAX} protocols"));
    }
    let read = |(text, item): &(&str, Item<'_>)| {
        let protocol = Protocol::parse(text).map_err(|why| format!("`{text}`: {why}"));
        r.check(item, protocol)
    };
    texts.iter().filter_map(read).take(PROTOCOLS_MAX).collect()
}
