//! `[site.cache]`: storing and lifetimes.

use base::units::DurationMs;
use codec::dictionary::MatchPattern;
use message::Status;
use message::store::{StatusMatch, StoreRules};
use policy::StorageChoice;
use policy::rules::{BrowserCaching, Settings};
use toml::de::DeValue;

use super::ignored_fields::ignored;
use super::lists::field_names;
use crate::keys::TEXTS;
use crate::model::Admission;
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

section! {
    pub(crate) CACHE, pub(super) CACHE_ROWS: Settings; "[site.cache]",
    "Which responses are stored, for how long, and under which key; `[site.route.cache]` for one \
     route.";
    "ttl", "a duration, or a table such as { 200 = \"1s\", 4xx = \"1m\" }", "none", "Lifetime of responses that state none, by status, at least 100ms: `2xx` for a class, `any` for all. `0s`: no lifetime. A duration without a table applies to 200, 301 and 302, as in nginx.",
        ttl
        => |page, s| page.list("stored", s.ttl.iter().map(|(status, ttl)| {
            format!("{status} for {} where it names no lifetime", DurationMs(*ttl))
        }));
    "ignore", "a field or a list of fields, or false", "none", "Response fields that have no say in storing, so that `ttl` applies (nginx: `proxy_ignore_headers`): `Cache-Control`, `CDN-Cache-Control`, `Surrogate-Control`, `X-Accel-Expires`, `Expires`, `Pragma`, `Set-Cookie`, `Vary` (but for `*`, codings and addresses), `Vary: User-Agent` for one name in it, and `Vary: *`. Clients get the fields unchanged, except Set-Cookie, which Larder then removes from what it stores. With `false`, a route drops the fields of its site. The guide on rules says what is safe.",
        |r, item, to| ignored(r, item, &mut to.ignored)
        => |page, s| page.list("ignored", s.ignored.names());
    "heuristic", duration heuristic_ms, "\"1d\"", "Maximum heuristic lifetime, derived from Last-Modified. `0s`: no heuristic lifetime."
        => show_guess;
    "heuristic_html", duration heuristic_html_ms, "\"10m\"", "Maximum heuristic lifetime of HTML pages, if shorter than `heuristic`; 1d in the rfc profile. `Pragma: no-cache` prevents a heuristic lifetime.";
    "stale_while_revalidate", duration grace_ms, "\"10s\"", "How long a response is served after its lifetime while one fetch renews it (grace); 0 in the rfc profile."
        => |page, s| show_stale(page, "refreshing", s.grace_ms, |rules| rules.grace_ms);
    "stale_if_error", duration stale_if_error_ms, "\"1d\"", "How long after its lifetime a response is served in place of an error of the origin; 0 in the rfc profile."
        => |page, s| show_stale(page, "error", s.stale_if_error_ms, |own| own.stale_if_error_ms);
    "stale_if_unreachable", duration stale_if_unreachable_ms, "\"1d\"", "How long after its lifetime a response is served while the origin is unreachable."
        => |page, s| {
            let own = s.stale_if_unreachable_ms;
            show_stale(page, "unreachable", own, |rules| rules.stale_if_unreachable_ms);
        };
    "drop_set_cookie", boolean drop_set_cookie, "false", "Whether Larder removes Set-Cookie from responses that the origin marked as shared and gave a lifetime (`public, max-age=60`), and stores them. Otherwise, in the safe profile, Set-Cookie prevents storage."
        => |page, s| {
            let stored = page.site.rules.profile.store_rules().store_set_cookie;
            page.line("Set-Cookie", match (s.drop_set_cookie, stored) {
                (true, _) => {
                    "removed where the origin says `public` and a lifetime; else not stored"
                }
                (_, true) => "stored where the origin names a lifetime",
                (_, false) => "not stored",
            });
        };
    "dictionary", "a pattern of paths such as \"/js/app.*.js\"", "none", "Pattern of paths for `Use-As-Dictionary` (RFC 9842), added to stored 200 responses without this field. Clients may then get later responses that match the pattern as differences from the stored one.",
        |r, item, to| to.dictionary = dictionary(r, item);
    "key_headers", TEXTS, "none", "Request fields whose values are part of the cache key.",
        |r, item, to| to.key_headers.extend(field_names(r, item))
        => |page, s| page.list("key: fields", &s.key_headers);
    "match_type", boolean match_type, "false", "Whether Larder stores a response only if its Content-Type matches the path's suffix (`.css`: `text/css`). Also prevents storage for paths with `;` or an escaped delimiter. For rules that select by suffix."
        => |page, s| {
            let only = "the Content-Type is what the path's suffix stands for";
            page.list("only if", s.match_type.then_some(only));
        };
    "match_headers", TEXTS, "none", "Fields that a response must have with the same value as the request; otherwise the response is not stored. For applications that name the cache key of their response (Magento's `X-Magento-Cache-Id`). Does not affect requests without the field.",
        |r, item, to| to.match_headers.extend(field_names(r, item))
        => |page, s| for field in &s.match_headers {
            page.line("only if", format!("{field} is the request's, where that has it"));
        };
    "not_stored", STATUSES, "none", "Statuses of responses that are never stored, whatever the origin says: `404`, `5xx`, `any`.",
        |r, item, to| to.not_stored = statuses(r, item)
        => |page, s| if !s.not_stored.is_empty() {
            let never: Vec<_> = s.not_stored.iter().map(ToString::to_string).collect();
            page.line("never stored", never.join(", "));
        };
    "browsers", "\"as_said\" or \"never\"", "\"as_said\"", "Whether browsers may store responses that are not marked `private`. `as_said`: as the response says. `never`: Larder sends `Cache-Control: no-store, no-cache, must-revalidate, max-age=0`, because purges do not reach browsers.",
        |r, item, to| to.browsers = r.word(item, &BROWSERS).unwrap_or_default()
        => |page, s| {
            let never = s.browsers == BrowserCaching::NeverStore;
            page.list("browsers", never.then_some("never store what is not private"));
        };
    "store", "\"memory\", \"disk\" or \"both\"", "\"both\" where there is a `[disk]`", "Where responses are stored. `memory`: in memory only. `disk`: on disk once memory has no room, whatever `[disk] admission` says. `both`: on disk as `[disk] admission` says.",
        |r, item, to| put(&mut to.store, store(r, item))
        => show_kept;
    "verify", "a percentage, or false", "none", "Share of hits for which Larder also asks the origin, in the background and with the visitor's own request, to see if the stored page is still right for this visitor: `\"0.5%\"`, from 0.001% to 100%. If it differs by visitor, Larder purges it, and requests with the cookie that makes the difference bypass the cache from then on (limit `verify_hold`). With `false`, a route drops its site's.",
        |r, item, to| to.verify_one_in = share(r, item)
        => |page, s| page.list("compared", verify_words(s.verify_one_in));
    "request_directives", "\"ignore\" or \"honour\"", "\"ignore\"", "Whether Larder obeys a client's Cache-Control (no-cache, no-store, max-age, min-fresh, max-stale). `honour` is the default in the rfc profile. only-if-cached is always obeyed.",
        |r, item, to| {
            let words = [("ignore", false), ("honour", true)];
            to.honour_request_directives = r.word(item, &words);
        }
        => |page, s| {
            let usual = page.site.rules.profile.store_rules().honour_request_no_store;
            let honoured = s.honour_request_directives.unwrap_or(usual);
            page.line("client's wishes", if honoured { "honoured" } else { "ignored" });
        };
}

/// Values of keys that name statuses.
pub(super) const STATUSES: &str = "a status, a class such as \"5xx\", or a list of them";

/// Shortest lifetime above zero: below it a cache only costs.
const TTL_MIN_MS: u64 = 100;

/// The keywords of `browsers`.
const BROWSERS: [(&str, BrowserCaching); 2] =
    [("as_said", BrowserCaching::AsSaid), ("never", BrowserCaching::NeverStore)];

/// Applies `cache` to `settings`.
pub(super) fn cache(r: &mut Reader, item: &SettingValue<'_>, settings: &mut Settings) {
    if let DeValue::Boolean(on) = item.value {
        settings.cache = *on;
    } else if let Some(table) = r.table(item, &CACHE) {
        settings.cache = true;
        rows::read(r, &table, CACHE_ROWS, settings);
    }
}

/// Reads a share of requests or pages, as one in so many; 0 for none.
pub(super) fn share(r: &mut Reader, item: &SettingValue<'_>) -> Option<u32> {
    match item.value {
        DeValue::Boolean(false) => return Some(0),
        DeValue::String(text) => {
            let number = text.strip_suffix('%').map(str::trim_end);
            let percent = number.and_then(|number| number.parse::<f64>().ok());
            if let Some(percent) = percent.filter(|percent| (0.001..=100.0).contains(percent)) {
                return Some((100.0 / percent).round() as u32);
            }
        }
        _ => {}
    }
    r.wrong_type(item).help = Some("from \"0.001%\" to \"100%\"".to_owned());
    None
}

fn verify_words(one_in: Option<u32>) -> Option<String> {
    let one_in = one_in.filter(|one_in| *one_in > 0)?;
    Some(format!("one of {one_in} hits with the origin"))
}

fn show_guess(page: &mut SettingsPage<'_>, s: &Settings) {
    let usual = page.site.rules.profile.store_rules();
    let most = s.heuristic_ms.unwrap_or(usual.heuristic_max_ms);
    let html = s.heuristic_html_ms.unwrap_or(usual.heuristic_html_max_ms).min(most);
    let guess = match most {
        0 => "no guess from Last-Modified".to_owned(),
        _ => {
            let (most, html) = (DurationMs(most), DurationMs(html));
            format!("guess from Last-Modified, at most {most}, of HTML {html}")
        }
    };
    page.line("heuristic", guess);
}

fn show_stale(
    page: &mut SettingsPage<'_>,
    why: &str,
    own: Option<u64>,
    usual: fn(&StoreRules) -> u64,
) {
    let usual = usual(&page.site.rules.profile.store_rules());
    page.line(&format!("stale: {why}"), DurationMs(own.unwrap_or(usual)));
}

/// Shows the storage, if there is a choice.
fn show_kept(page: &mut SettingsPage<'_>, s: &Settings) {
    let admission = page.config.disk.as_ref().map(|disk| disk.admission);
    if admission.is_none() && s.store == StorageChoice::Both {
        return;
    }
    page.line(
        "kept",
        match (s.store, admission) {
            (StorageChoice::Memory, _) | (_, None) => "in memory",
            (StorageChoice::Both, Some(Admission::Hit)) => {
                "in memory, then on disk if asked for more than once"
            }
            (StorageChoice::Disk, _) | (StorageChoice::Both, Some(Admission::All)) => {
                "in memory, then on disk"
            }
        },
    );
}

/// Reads statuses and classes of statuses.
pub(super) fn statuses(r: &mut Reader, item: &SettingValue<'_>) -> Vec<StatusMatch> {
    let mut found = Vec::new();
    for item in item.each() {
        let text = match item.value {
            DeValue::Integer(number) => number.as_str(),
            _ => match r.text(&item) {
                Some(text) => text,
                None => continue,
            },
        };
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

/// Reads the storage of responses.
fn store(r: &mut Reader, item: &SettingValue<'_>) -> Option<StorageChoice> {
    let words = [
        ("memory", StorageChoice::Memory),
        ("disk", StorageChoice::Disk),
        ("both", StorageChoice::Both),
    ];
    let store = r.word(item, &words)?;
    if store != StorageChoice::Memory {
        r.disk_uses.push(item.span.clone());
    }
    Some(store)
}

/// Statuses of a lifetime that names none: those of nginx's `proxy_cache_valid`.
const TTL_STATUSES: [u16; 3] = [200, 301, 302];

fn ttl(r: &mut Reader, item: &SettingValue<'_>, settings: &mut Settings) {
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
    // The first match counts: entries for fewer statuses come first.
    settings.ttl.sort_by_key(|(status, _)| match status {
        StatusMatch::Exact(_) => 0,
        StatusMatch::Class(_) => 1,
        StatusMatch::Any => 2,
    });
}

/// Reads a lifetime in milliseconds.
pub(super) fn lifetime(r: &mut Reader, item: &SettingValue<'_>) -> Option<u64> {
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
    // `parse` would accept a sign, too.
    let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    let code = text.parse().ok().filter(|code| digits && (200..=599).contains(code))?;
    Status::new(code).map(StatusMatch::Exact)
}

/// Reads the pattern of requests that a response may serve as a dictionary for.
fn dictionary(r: &mut Reader, item: &SettingValue<'_>) -> Option<Box<str>> {
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
