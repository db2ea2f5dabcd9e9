//! Settings that a site and a route have in common.

use std::sync::Arc;

use codec::dictionary::MatchPattern;
use message::Status;
use message::header::{HeaderId, is_token};
use message::store::StatusMatch;
use message::upgrade::{PROTOCOLS_MAX, Protocol};
use policy::answer::{Answer, Redirect};
use policy::headers::{FieldName, FieldValue, HeaderOps};
use policy::pattern::{NamePattern, PathPattern, PatternError};
use policy::rules::{Browsers, Bypass, Settings};
use policy::value::ValuePattern;
use policy::{PageCache, StoreIn, Synthetic};
use toml::de::DeValue;

use super::lists::nets;
use super::places::{note_places, note_places_in};
use super::site_origins::SiteOrigins;
use crate::keys::{self, Section};
use crate::reader::{Item, Reader, Span, Table};

/// The shortest lifetime but none: below it a cache only costs.
const TTL_MIN_MS: u64 = 100;

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
    if let Some(item) = table.item("cache") {
        cache(r, &item, settings);
    }
    if let Some(table) = table.item("cookies").and_then(|item| r.table(&item, &keys::COOKIES)) {
        cookies(r, &table, settings);
    }
    if let Some(table) = table.item("query").and_then(|item| r.table(&item, &keys::QUERY)) {
        query(r, &table, settings);
    }
    if let Some(item) = table.item("bypass") {
        match item.value {
            DeValue::Boolean(false) => settings.bypass.clear(),
            _ => bypass(r, &item, settings),
        }
    }
    if let Some(item) = table.item("request_headers") {
        header_ops(r, &item, &keys::REQUEST_HEADERS, &mut settings.request_headers);
    }
    if let Some(item) = table.item("response_headers") {
        header_ops(r, &item, &keys::RESPONSE_HEADERS, &mut settings.response_headers);
    }
    answer(r, table, settings);
    if let Some(item) = table.item("first_byte_timeout") {
        match r.duration(&item) {
            Some(0) => drop(r.error(item.span, "`first_byte_timeout` must be longer than nothing")),
            ms => settings.first_byte_ms = ms,
        }
    }
    if let Some(item) = table.item("upgrade") {
        settings.upgrade = protocols(r, &item);
    }
    if let Some(item) = table.item("allow") {
        settings.allow = nets(r, &item);
        if item.each().is_empty() {
            r.error(item.span, "`allow` lets no one in").help =
                Some("write `deny = [\"0.0.0.0/0\", \"::/0\"]` if that is meant".to_owned());
        }
    }
    if let Some(item) = table.item("deny") {
        settings.deny = nets(r, &item);
    }
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

fn cache(r: &mut Reader, item: &Item<'_>, settings: &mut Settings) {
    if let DeValue::Boolean(on) = item.value {
        settings.cache = *on;
        return;
    }
    let Some(table) = r.table(item, &keys::CACHE) else { return };
    settings.cache = true;
    if let Some(item) = table.item("ttl") {
        ttl(r, &item, settings);
    }
    for (key, slot) in [
        ("heuristic", &mut settings.heuristic_ms),
        ("heuristic_html", &mut settings.heuristic_html_ms),
        ("stale_while_revalidate", &mut settings.grace_ms),
        ("stale_if_error", &mut settings.stale_if_error_ms),
        ("stale_if_unreachable", &mut settings.stale_if_unreachable_ms),
    ] {
        if let Some(item) = table.item(key) {
            *slot = r.duration(&item);
        }
    }
    if let Some(item) = table.item("key_headers") {
        for (text, item) in r.texts(&item) {
            let name = r.check(&item, FieldName::parse(text));
            settings.key_headers.extend(name);
        }
    }
    if let Some(item) = table.item("dictionary") {
        settings.dictionary = dictionary(r, &item);
    }
    for (key, slot) in [
        ("match_type", &mut settings.match_type),
        ("drop_set_cookie", &mut settings.drop_set_cookie),
    ] {
        if let Some(on) = table.item(key).and_then(|item| r.boolean(&item)) {
            *slot = on;
        }
    }
    if let Some(item) = table.item("match_headers") {
        for (text, item) in r.texts(&item) {
            let name = r.check(&item, FieldName::parse(text));
            settings.match_headers.extend(name);
        }
    }
    if let Some(item) = table.item("not_stored") {
        settings.not_stored = statuses(r, &item);
    }
    if let Some(item) = table.item("browsers") {
        let words = [("as_said", Browsers::AsSaid), ("never", Browsers::NeverStore)];
        settings.browsers = r.word(&item, &words).unwrap_or_default();
    }
    if let Some(item) = table.item("store") {
        settings.store = store(r, &item).unwrap_or(settings.store);
    }
    if let Some(item) = table.item("request_directives") {
        settings.honour_request_directives = r.word(&item, &[("ignore", false), ("honour", true)]);
    }
}

/// Statuses and classes of them.
fn statuses(r: &mut Reader, item: &Item<'_>) -> Vec<StatusMatch> {
    let mut found = Vec::new();
    for (text, item) in r.texts(item) {
        match status_match(text) {
            Some(status) => found.push(status),
            None => {
                r.error(item.span, format!("`{text}` is no status that could be stored")).help =
                    Some("write a status from 200 to 599, a class such as 5xx, or any".to_owned());
            }
        }
    }
    found
}

/// Where responses are kept.
fn store(r: &mut Reader, item: &Item<'_>) -> Option<StoreIn> {
    let words = [("memory", StoreIn::Memory), ("disk", StoreIn::Disk), ("both", StoreIn::Both)];
    let store = r.word(item, &words)?;
    if store != StoreIn::Memory {
        r.disk_uses.push(item.span.clone());
    }
    Some(store)
}

/// Statuses that a lifetime without any is for: those of nginx's `proxy_cache_valid`.
const TTL_STATUSES: [u16; 3] = [200, 301, 302];

fn ttl(r: &mut Reader, item: &Item<'_>, settings: &mut Settings) {
    let Some(pairs) = item.pairs() else {
        if let Some(ms) = lifetime(r, item) {
            for status in TTL_STATUSES.into_iter().filter_map(Status::new) {
                settings.set_ttl(StatusMatch::Exact(status), ms);
                settings.places.note(format!("cache.ttl.{status}"), r.place(&item.span));
            }
        }
        return;
    };
    for (status, span, item) in pairs {
        let Some(status) = status_match(status) else {
            r.error(span, format!("`{status}` is no status that has a lifetime")).help =
                Some("write a status from 200 to 599, a class such as 2xx, or any".to_owned());
            continue;
        };
        if let Some(ms) = lifetime(r, &item) {
            settings.set_ttl(status, ms);
        }
    }
    // The first match counts: what speaks of fewer statuses comes first.
    settings.ttl.sort_by_key(|(status, _)| match status {
        StatusMatch::Exact(_) => 0,
        StatusMatch::Class(_) => 1,
        StatusMatch::Any => 2,
    });
}

fn lifetime(r: &mut Reader, item: &Item<'_>) -> Option<u64> {
    let ms = r.duration(item)?;
    if ms > 0 && ms < TTL_MIN_MS {
        r.error(item.span.clone(), "a lifetime is at least 100ms").help =
            Some("\"0s\" keeps such responses from being stored".to_owned());
        return None;
    }
    Some(ms)
}

fn status_match(text: &str) -> Option<StatusMatch> {
    if text == "any" {
        return Some(StatusMatch::Any);
    }
    if let Some(class) = text.strip_suffix("xx") {
        return class.parse().ok().filter(|c| (2..=5).contains(c)).map(StatusMatch::Class);
    }
    // `parse` would take a sign too.
    let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    let code = text.parse().ok().filter(|code| digits && (200..=599).contains(code))?;
    Status::new(code).map(StatusMatch::Exact)
}

fn cookies(r: &mut Reader, table: &Table<'_>, settings: &mut Settings) {
    if let Some(item) = table.item("strip") {
        settings.cookies.strip.extend(names(r, &item, NamePattern::cookie));
    }
    if let Some(item) = table.item("keep") {
        settings.cookies.keep.extend(names(r, &item, NamePattern::cookie));
    }
    if let Some(item) = table.item("strip_tracking") {
        settings.cookies.strip_tracking = r.boolean(&item);
    }
    if let Some(item) = table.item("key") {
        for (text, item) in r.texts(&item) {
            if !is_token(text.as_bytes()) || text.contains('*') {
                r.error(item.span, format!("`{text}` is not the name of a cookie")).help =
                    Some("names in `key` are whole names".to_owned());
            } else if !settings.cookies.key.iter().any(|known| known == text) {
                settings.cookies.key.push(text.to_owned());
            }
        }
    }
}

fn query(r: &mut Reader, table: &Table<'_>, settings: &mut Settings) {
    if let Some(item) = table.item("strip") {
        settings.query.strip.extend(names(r, &item, NamePattern::query));
    }
    if let Some(item) = table.item("strip_tracking") {
        settings.query.strip_tracking = r.boolean(&item);
    }
    for (key, slot) in [("sort", &mut settings.query.sort), ("ignore", &mut settings.query.ignore)]
    {
        if let Some(on) = table.item(key).and_then(|item| r.boolean(&item)) {
            *slot = on;
        }
    }
}

fn names(
    r: &mut Reader,
    item: &Item<'_>,
    parse: fn(&str) -> Result<NamePattern, PatternError>,
) -> Vec<NamePattern> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, parse(text))).collect()
}

fn bypass(r: &mut Reader, item: &Item<'_>, settings: &mut Settings) {
    let Some(table) = r.table(item, &keys::BYPASS) else { return };
    let mut found = Vec::new();
    if let Some(item) = table.item("path") {
        each(r, &item, &mut found, |text| PathPattern::parse(text).map(Bypass::Path));
    }
    if let Some(item) = table.item("cookie") {
        each(r, &item, &mut found, |text| NamePattern::cookie(text).map(Bypass::Cookie));
    }
    if let Some(item) = table.item("query") {
        bypass_query(r, &item, settings, &mut found);
    }
    if let Some(item) = table.item("header") {
        bypass_headers(r, &item, &mut found);
    }
    if let Some(item) = table.item("unless") {
        for (text, item) in r.texts(&item) {
            let name = r.check(&item, FieldName::parse(text));
            settings.bypass_unless.extend(name);
        }
    }
    // Presets that are used together have some rules in common.
    let known: Vec<String> = settings.bypass.iter().map(ToString::to_string).collect();
    found.retain(|(reason, _)| !known.contains(&reason.to_string()));
    for (reason, span) in found {
        settings.places.note(format!("bypass {reason}"), r.place(&span));
        settings.bypass.push(reason);
    }
}

/// Reasons, and where they are written.
type Reasons = Vec<(Bypass, Span)>;

/// Adds a reason for each string of a list.
fn each(
    r: &mut Reader,
    item: &Item<'_>,
    found: &mut Reasons,
    parse: fn(&str) -> Result<Bypass, PatternError>,
) {
    for (text, item) in r.texts(item) {
        found.extend(r.check(&item, parse(text)).map(|reason| (reason, item.span)));
    }
}

fn bypass_query(r: &mut Reader, item: &Item<'_>, settings: &mut Settings, found: &mut Reasons) {
    let any = |name| Bypass::Query(name, None);
    if let Some(pairs) = item.pairs() {
        for (name, span, item) in pairs {
            let name = NamePattern::query(name)
                .map_err(|why| r.error(span, format!("`{}`: {why}", name.escape_debug())));
            let Ok(name) = name else { continue };
            if matches!(item.value, DeValue::Boolean(true)) {
                found.push((any(name), item.span));
                continue;
            }
            for (text, item) in r.texts(&item) {
                let value = r.check(&item, ValuePattern::parse(text));
                let reason = value.map(|value| Bypass::Query(name.clone(), Some(value)));
                found.extend(reason.map(|reason| (reason, item.span)));
            }
        }
        return;
    }
    match item.value {
        DeValue::Boolean(true) => found.push((Bypass::AnyQuery, item.span.clone())),
        DeValue::Boolean(false) => {
            settings.bypass.retain(|b| !matches!(b, Bypass::AnyQuery | Bypass::Query(..)));
        }
        _ => each(r, item, found, |text| {
            NamePattern::query(text).map(|name| Bypass::Query(name, None))
        }),
    }
}

fn bypass_headers(r: &mut Reader, item: &Item<'_>, found: &mut Reasons) {
    let Some(pairs) = item.pairs() else {
        for (text, item) in r.texts(item) {
            if let Some(name) = r.check(&item, FieldName::parse(text)) {
                found.push((Bypass::Header(name, None), item.span));
            }
        }
        return;
    };
    for (name, span, item) in pairs {
        let Some(name) = field_name(r, name, span) else { continue };
        match item.value {
            DeValue::Boolean(true) => found.push((Bypass::Header(name, None), item.span)),
            _ => {
                let value = r.text(&item).and_then(|text| r.check(&item, FieldValue::parse(text)));
                let reason = value.map(|v| Bypass::Header(name, Some(v.as_bytes().to_vec())));
                found.extend(reason.map(|reason| (reason, item.span)));
            }
        }
    }
}

fn field_name(r: &mut Reader, name: &str, span: std::ops::Range<usize>) -> Option<FieldName> {
    FieldName::parse(name)
        .map_err(|why| r.error(span, format!("`{}`: {why}", name.escape_debug())))
        .ok()
}

/// Names and values of a table of fields.
fn fields(r: &mut Reader, item: &Item<'_>) -> Vec<(FieldName, FieldValue)> {
    let Some(pairs) = item.pairs() else {
        r.wrong_type(item);
        return Vec::new();
    };
    let read = |(name, span, item): (&str, _, Item<'_>)| {
        let name = field_name(r, name, span);
        let text = r.text(&item)?;
        Some((name?, r.check(&item, FieldValue::parse(text))?))
    };
    pairs.into_iter().filter_map(read).collect()
}

fn header_ops(r: &mut Reader, item: &Item<'_>, section: &'static Section, ops: &mut HeaderOps) {
    let Some(table) = r.table(item, section) else { return };
    if let Some(item) = table.item("unset") {
        for (text, item) in r.texts(&item) {
            if let Some(name) = r.check(&item, FieldName::parse(text)) {
                ops.unset(name);
            }
        }
    }
    if let Some(item) = table.item("set") {
        for (name, value) in fields(r, &item) {
            ops.set(name, value);
        }
    }
}

fn answer(r: &mut Reader, table: &Table<'_>, settings: &mut Settings) {
    let (redirect_item, respond_item) = (table.item("redirect"), table.item("respond"));
    if let (Some(redirect), Some(respond)) = (&redirect_item, &respond_item) {
        let related = Some((redirect.span.clone(), "the other answer".to_owned()));
        r.error(respond.span.clone(), "`redirect` and `respond` cannot both answer").related =
            related;
    }
    if let Some(item) = redirect_item {
        settings.answer = redirect(r, &item).map(Answer::Redirect);
    }
    if let Some(item) = respond_item {
        settings.answer = respond(r, &item).map(|s| Answer::Fixed(Arc::new(s)));
    }
}

fn redirect(r: &mut Reader, item: &Item<'_>) -> Option<Redirect> {
    let found = Status::new(302).expect("three digits");
    if item.value.is_str() {
        let target = r.text(item)?;
        return r.check(item, Redirect::parse(found, target));
    }
    let table = r.table(item, &keys::REDIRECT)?;
    let status = match table.item("status") {
        Some(item) => status(r, &item, 301, 308),
        None => Some(found),
    };
    let Some(to) = table.item("to") else {
        r.error(item.span.clone(), "a redirect without `to`");
        return None;
    };
    let target = r.text(&to)?;
    let redirect = r.check(&to, Redirect::parse(status.unwrap_or(found), target));
    status.and(redirect)
}

fn status(r: &mut Reader, item: &Item<'_>, least: u64, most: u64) -> Option<Status> {
    r.count(item, least, most).and_then(|code| Status::new(code.try_into().ok()?))
}

fn respond(r: &mut Reader, item: &Item<'_>) -> Option<Synthetic> {
    let table = r.table(item, &keys::RESPOND)?;
    let status = match table.item("status") {
        Some(item) => status(r, &item, 200, 599).unwrap_or(Status::OK),
        None => Status::OK,
    };
    let body = table.item("body").and_then(|item| r.text(&item)).unwrap_or_default();
    if status.has_no_body() && !body.is_empty() {
        r.error(item.span.clone(), format!("a response of status {status} has no body"));
    }
    let headers = table.item("headers").map(|item| fields(r, &item)).unwrap_or_default();
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = headers
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    let typed = fields.iter().any(|(name, _)| HeaderId::of(name) == HeaderId::ContentType);
    if !typed && !body.is_empty() {
        fields.push((b"Content-Type".to_vec(), b"text/plain; charset=utf-8".to_vec()));
    }
    Some(Synthetic { status, fields, body: body.as_bytes().to_vec(), close: false })
}

/// The pattern of requests that a response may be a dictionary for.
fn dictionary(r: &mut Reader, item: &Item<'_>) -> Option<Box<str>> {
    let text = r.text(item)?;
    let is_printable = text.bytes().all(|b| matches!(b, b' '..=b'~'));
    if is_printable && MatchPattern::parse(text.as_bytes(), b"https://", b"/").is_some() {
        return Some(text.into());
    }
    r.error(item.span.clone(), format!("`{text}` is no pattern of paths for a dictionary")).help = Some(
        "write a path such as \"/js/app.*.js\" in which `*` is any text and `:name` one segment"
            .to_owned(),
    );
    None
}
