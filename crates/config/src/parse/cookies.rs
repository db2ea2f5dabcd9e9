//! `[site.cookies]` and `[site.query]`: what is removed from requests, and what is part of the key.

use message::header::is_token;
use policy::pattern::{NamePattern, PatternError};
use policy::rules::{CookieRules, Profile, QueryRules};

use crate::keys::TEXTS;
use crate::page::{SettingsPage, texts};
use crate::reader::{Reader, SettingValue};
use crate::rows::section;

section! {
    pub(crate) COOKIES, pub(super) COOKIES_ROWS: CookieRules; "[site.cookies]",
    "Cookies of requests. The cookies that remain make a request personal: only responses that \
     the origin marked as shared (`public`, `s-maxage`) answer it.";
    "strip_tracking", boolean strip_tracking, "true", "Whether Larder removes known tracking cookies (`_ga*`, `_fbp`, `sbjs_*`, ...). Cookies of balancers and of bot protection (`SERVERID`, `__cf_bm`, ...) then do not make a request personal. Personal requests and requests that pass keep these; others lose them. `false` in the rfc profile.";
    "strip", TEXTS, "none", "Cookies that Larder removes from cacheable requests: a name, `prefix*`, `*suffix` or `*part*`.",
        |r, item, to| to.strip.extend(names(r, item, NamePattern::cookie))
        => |page, own| show_removed(page, "cookies", own.strip_tracking, &own.strip);
    "keep", TEXTS, "all", "The only cookies, besides those of `key`, that make a request personal. Larder removes all others from requests that are looked up in the cache. Requests that pass keep all cookies.",
        |r, item, to| to.keep.extend(names(r, item, NamePattern::cookie))
        => |page, cookies| if !cookies.keep.is_empty() {
            page.line("cookies that count", texts(&cookies.keep));
        };
    "key", TEXTS, "none", "Cookies whose values are part of the cache key. They do not make a request personal.",
        cookie_key
        => |page, cookies| page.list("key: cookies", &cookies.key);
}

section! {
    pub(crate) QUERY, pub(super) QUERY_ROWS: QueryRules; "[site.query]",
    "Query parameters of cacheable requests. Parameters that are removed from the cache key are \
     also removed from the forwarded request.";
    "strip_tracking", boolean strip_tracking, "true", "Whether Larder removes known tracking parameters (`utm_*`, `gclid`, ...); `false` in the rfc profile.";
    "strip", TEXTS, "none", "Parameters that Larder removes: a name, or `prefix*`.",
        |r, item, to| to.strip.extend(names(r, item, NamePattern::query))
        => |page, own| if !own.ignore {
            show_removed(page, "parameters", own.strip_tracking, &own.strip);
        };
    "sort", boolean sort, "false", "Whether Larder sorts parameters by name."
        => |page, query| {
            let sorts = query.sort && !query.ignore;
            page.list("query", sorts.then_some("sorted by name"));
        };
    "ignore", boolean ignore, "false", "Whether Larder removes the whole query."
        => |page, query| page.list("query removed", query.ignore.then_some("all of it"));
}

/// Shows removed names. The safe profile removes known tracking names by default.
fn show_removed(
    page: &mut SettingsPage<'_>,
    names: &str,
    tracking: Option<bool>,
    strip: &[NamePattern],
) {
    let is_safe = page.site.rules.profile == Profile::Safe;
    let known = tracking.unwrap_or(is_safe).then(|| format!("known tracking {names}"));
    let strip = strip.iter().map(ToString::to_string);
    page.list(&format!("{names} removed"), known.into_iter().chain(strip));
}

fn cookie_key(r: &mut Reader, item: &SettingValue<'_>, cookies: &mut CookieRules) {
    for (text, item) in r.texts(item) {
        if !is_token(text.as_bytes()) || text.contains('*') {
            r.error(item.span, format!("`{text}` is not the name of a cookie")).help =
                Some("names in `key` are whole names".to_owned());
        } else if !cookies.key.iter().any(|known| known == text) {
            cookies.key.push(text.to_owned());
        }
    }
}

fn names(
    r: &mut Reader,
    item: &SettingValue<'_>,
    parse: fn(&str) -> Result<NamePattern, PatternError>,
) -> Vec<NamePattern> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, parse(text))).collect()
}
