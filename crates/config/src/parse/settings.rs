//! Settings that sites and routes share.

use std::sync::Arc;

use base::units::DurationMs;
use message::upgrade::{PROTOCOLS_MAX, Protocol};
use policy::PageCache;
use policy::acl::Net;
use policy::answer::ConfiguredResponse;
use policy::rules::Settings;

use super::answers::{redirect, redirects_all, respond};
use super::authentication::{BASIC_AUTH, FORWARD_AUTH};
use super::bypass::{BYPASS, bypass, show_bypass};
use super::cache::{CACHE, CACHE_ROWS, cache};
use super::cookies::{COOKIES, COOKIES_ROWS, QUERY, QUERY_ROWS};
use super::headers::{HEADER_ROWS, REQUEST_HEADERS, RESPONSE_HEADERS};
use super::lists::nets;
use super::origins::find_of_site;
use super::response_rules::RESPONSE;
use super::setting_locations::note_places;
use super::vary::{VARY, VARY_ROWS, vary};
use super::{
    answers, authentication, crawlers, error_pages, files, headers, origins, response_rules,
    rewrites, throttle,
};
use crate::keys::{DURATION, TABLE, TEXTS};
use crate::page::word;
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, Row, put, rows};

/// Keys of a site that a route may change.
pub(crate) const SETTINGS_ROWS: &[Row<Settings>] = rows! {
    "deny", TEXTS, "no one", "Addresses or networks that get 403, even if `allow` contains them.",
        |r, item, to| to.deny = nets(r, item)
        => |page, s| page.list("deny", &s.deny);
    "allow", TEXTS, "everyone", "Addresses or networks that have access; all others get 403.",
        |r, item, to| to.allow = allow(r, item)
        => |page, s| page.list("allow", &s.allow);
    #SiteOnly #BesideVcl @table(throttle::RATE) "rate", "a table, a list of tables, or false", "none", "Request rate limit per client: see `[site.rate]`.",
        |r, item, to| to.rate = throttle::rates(r, item)
        => throttle::show_rates;
    #SiteOnly #BesideVcl @table(throttle::CONCURRENT) "concurrent", "a table, a list of tables, or false", "none", "Maximum number of concurrent requests per client: see `[site.concurrent]`.",
        |r, item, to| to.concurrent = throttle::concurrency_limits(r, item)
        => throttle::show_concurrency_limits;
    #SiteOnly #BesideVcl @table(BASIC_AUTH) "basic_auth", "a table or false", "none", "Access with user and password only: see `[site.basic_auth]`.",
        |r, item, to| to.basic_auth = authentication::basic(r, item)
        => |page, s| page.list("users", s.basic_auth.iter().map(|own| own.file.display()));
    #SiteOnly #BesideVcl @table(FORWARD_AUTH) "forward_auth", "a table or false", "none", "Access decided by an authentication server: see `[site.forward_auth]`.",
        |r, item, to| to.forward_auth = authentication::forward(r, item)
        => authentication::show_forward;
    #BesideVcl "access_log", boolean access_log, "true", "Whether the access log has lines about the requests. With `false`, counters and the log ring have them all the same."
        => |page, s| if !s.access_log { page.line("access log", "off") };
    @table(answers::REDIRECT) "redirect", "a URL, a table or false", "none", "Answers with a redirect, for every request or those of a file: see `[site.redirect]`.",
        |r, item, to| redirect(r, item, to)
        => answers::show;
    @table(answers::RESPOND) "respond", TABLE, "none", "Answers with a fixed response: see `[site.respond]`.",
        |r, item, to| {
            let fixed = respond(r, item);
            to.answer = fixed.map(|answer| ConfiguredResponse::Fixed(Arc::new(answer)));
        };
    #SiteOnly @table(files::FILES) "files", "a path or a table", "none", "Serves files of a directory instead of responses from an origin: see `[site.files]`.",
        |r, item, to| {
            if let Some(root) = files::root(r, item) {
                r.origins.site.roots.push(root);
                to.files = u32::try_from(r.origins.site.roots.len() - 1).ok();
            }
        }
        => |page, s| if s.answer.is_none() { files::show(page, s) };
    #SiteOnly "origin", "the name of an [[origin]], or a URL", "required; of a route, the site's", "Origin that gets the requests. Not required with `files`, `redirect` or `respond`.",
        |r, item, to| {
            put(&mut to.origin_name, item.value.as_str());
            // An unknown origin was reported: no origin has this index.
            to.origin = find_of_site(r, item).unwrap_or(u32::MAX);
            to.files = None;
        }
        => |page, s| if fetches(s) { origins::show(page, s) };
    #SiteOnly "mirror", "the name of an [[origin]], a URL, or false", "none", "Origin that gets a copy of each request without a body that goes to `origin`. Its responses are dropped, and its failures change nothing. The limit `mirrors` bounds the copies under way. With `false`, a route drops its site's.",
        |r, item, to| to.mirror = origins::mirror(r, item, to.origin)
        => |page, s| if fetches(s) {
            let named = s.mirror.and_then(|at| page.config.origins.get(at));
            page.list("mirror", named.map(|origin| &origin.name));
        };
    "first_byte_timeout", DURATION, "the origin's", "Maximum time from the request's last byte to the response's head, in place of the origin's `first_byte_timeout`. A preset's value applies only if the origin sets none.",
        first_byte_timeout
        => |page, s| if fetches(s) {
            page.list("waits for a head", s.first_byte_ms.map(DurationMs));
        };
    #SiteOnly "page_cache", "\"wp-super-cache\", \"wp-rocket\", \"boost\" or false", "false", "Cache plugin whose pages on disk, below the `root` of a FastCGI origin, answer misses before PHP runs.",
        |r, item, to| to.page_cache = page_cache(r, item, to.origin)
        => |page, s| if fetches(s) {
            page.list("page cache", s.page_cache.map(|plugin| word(&PLUGINS, &plugin)));
        };
    @table(COOKIES) "cookies", TABLE, "none", "Cookies that are removed, or part of the cache key: see `[site.cookies]`.",
        |r, item, to| _ = rows::read_table(r, item, &COOKIES, COOKIES_ROWS, &mut to.cookies)
        => |page, s| {
            if looks_up(s) {
                page.line("passed", "methods other than GET and HEAD, requests with a body");
                rows::show(page, COOKIES_ROWS, &s.cookies);
            } else if fetches(s) {
                page.line("passed", "every request, as it came (cache = false)");
            }
        };
    @table(QUERY) "query", TABLE, "none", "Query parameters that are removed or sorted: see `[site.query]`.",
        |r, item, to| _ = rows::read_table(r, item, &QUERY, QUERY_ROWS, &mut to.query)
        => |page, s| if looks_up(s) { rows::show(page, QUERY_ROWS, &s.query) };
    @table(VARY) "vary", "a table or false", "none", "Request fields that are brought into few forms, so that pages have few variants: see `[site.vary]`. With `false`, a route drops the rules of its site.",
        vary
        => |page, s| if looks_up(s) { rows::show(page, VARY_ROWS, &s.vary) };
    @table(BYPASS) "bypass", "a table or false", "none", "Requests that bypass the cache: see `[site.bypass]`. With `false`, a route drops the rules of its site.",
        bypass
        => |page, s| if looks_up(s) { show_bypass(page, s) };
    @table(CACHE) "cache", "a table or false", "none", "How responses are stored: see `[site.cache]`. With `false`, every request goes to the origin.",
        cache
        => |page, s| if looks_up(s) { rows::show(page, CACHE_ROWS, s) };
    "serve", "\"all\" or \"stored\"", "\"all\"", "How requests are served that no fresh response in the cache answers. `all`: by a fetch. `stored`: with a stale response, if there is one and its origin does not forbid that; otherwise by a fetch that waits in a queue for crawlers, behind those of other clients. At most `crawler_fetches` (in `[limits]`) run at the same time for each origin, and at most `crawler_queue` wait; further requests get 429 with Retry-After.",
        |r, item, to| put(&mut to.serve, crawlers::serve(r, item))
        => |page, s| if fetches(s) { crawlers::show_serve(page, s) };
    "upgrade", TEXTS, "\"websocket\"", "Protocols to which a connection may switch (field Upgrade). If the origin agrees, the connection becomes a tunnel to the origin. `[]`: none.",
        |r, item, to| to.upgrade = protocols(r, item)
        => |page, s| if fetches(s) { page.list("may change to", &s.upgrade) };
    "rewrite", "a URL path", "the client's URL", "URL that the origin is asked for, with `$path`, `$query` (including the question mark), `$args` (without it), `$host`, and `$1` to `$9` for what the stars or groups of the route's `path` match. A URL without a query keeps the client's. The cache key has the client's URL.",
        |r, item, to| to.rewrite = rewrites::whole(r, item)
        => |page, s| if fetches(s) { page.list("origin's URL", &s.rewrite) };
    "strip_prefix", "a path or false", "none", "Prefix that the path loses on its way to the origin: `/api` makes `/api/users` into `/users`. With `false`, a route drops its site's.",
        |r, item, to| rewrites::strip(r, item, &mut to.rewrite);
    "add_prefix", "a path or false", "none", "Prefix that the path gets on its way to the origin, after `strip_prefix`. With `false`, a route drops its site's.",
        |r, item, to| rewrites::add(r, item, &mut to.rewrite);
    @table(REQUEST_HEADERS) "request_headers", TABLE, "none", "Changes to requests for the origin: see `[site.request_headers]`.",
        |r, item, to| {
            rows::read_table(r, item, &REQUEST_HEADERS, HEADER_ROWS, &mut to.request_headers);
        }
        => |page, s| if fetches(s) { headers::show(page, "to the origin", &s.request_headers) };
    @table(RESPONSE_HEADERS) "response_headers", TABLE, "none", "Changes to responses for the client: see `[site.response_headers]`.",
        |r, item, to| {
            rows::read_table(r, item, &RESPONSE_HEADERS, HEADER_ROWS, &mut to.response_headers);
        }
        => |page, s| if s.answer.is_none() {
            headers::show(page, "to the client", &s.response_headers);
        };
    #SiteOnly "intercept_errors", "true, false, or statuses such as [404, \"5xx\"]", "false", "Whether the site's `error_pages` also replace errors that the origin sends (nginx: `proxy_intercept_errors`): all of them, or those of these statuses. The status stays. An error without a page stays as it is.",
        |r, item, to| to.intercepted = error_pages::intercepted(r, item)
        => |page, s| if fetches(s) { page.list("errors replaced", &s.intercepted) };
    @table(RESPONSE) "response", "a list of tables", "none", "Rules for responses of the origin, by status, type, fields and length: see `[[site.response]]`.",
        |r, item, to| response_rules::add(r, item, &mut to.response_rules)
        => |page, s| if fetches(s) { response_rules::show(page, &s.response_rules) };
};

/// Returns true if missing responses are fetched from an origin.
fn fetches(s: &Settings) -> bool {
    s.answer.is_none() && s.files.is_none()
}

/// Returns true if the cache is looked up.
fn looks_up(s: &Settings) -> bool {
    fetches(s) && s.cache
}

/// Applies `table` to `settings`.
pub(super) fn read(r: &mut Reader, table: &TomlTable<'_>, settings: &mut Settings) {
    for [first, second, what, message] in [
        ["origin", "files", "the origin", "`files` and `origin` cannot both answer"],
        ["rewrite", "strip_prefix", "the whole URL", "`rewrite` has the whole URL: no prefix goes"],
        ["rewrite", "add_prefix", "the whole URL", "`rewrite` has the whole URL: no prefix comes"],
    ] {
        if let (Some(first), Some(second)) = (table.known(first), table.known(second)) {
            r.error(second.span, message).related = Some((first.span, what.to_owned()));
        }
    }
    if let (Some(first), Some(second)) = (redirects_all(table), table.known("respond")) {
        let message = "`redirect` and `respond` cannot both answer";
        r.error(second.span, message).related = Some((first.span, "the other answer".to_owned()));
    }
    note_places(r, table, SETTINGS_ROWS, settings);
    rows::read(r, table, SETTINGS_ROWS, settings);
}

/// The keywords of `page_cache`.
const PLUGINS: [(&str, PageCache); 3] = [
    ("wp-super-cache", PageCache::WpSuperCache),
    ("wp-rocket", PageCache::WpRocket),
    ("boost", PageCache::Boost),
];

fn page_cache(r: &mut Reader, item: &SettingValue<'_>, origin: u32) -> Option<PageCache> {
    if item.is_off() {
        return None;
    }
    let plugin = r.word(item, &PLUGINS)?;
    if r.origins.of_site(origin).is_some_and(|known| known.config.scripts.is_none()) {
        r.error(item.span.clone(), "`page_cache` needs a FastCGI origin").help =
            Some("the pages are below its `root`".to_owned());
    }
    Some(plugin)
}

fn first_byte_timeout(r: &mut Reader, item: &SettingValue<'_>, settings: &mut Settings) {
    match r.duration(item) {
        Some(0) => {
            r.error(item.span.clone(), "`first_byte_timeout` must be longer than nothing");
        }
        ms => settings.first_byte_ms = ms,
    }
}

/// Reads the clients that are admitted.
fn allow(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Net> {
    let allow = nets(r, item);
    if item.each().is_empty() {
        r.error(item.span.clone(), "`allow` lets no one in").help =
            Some("write `deny = [\"0.0.0.0/0\", \"::/0\"]` if that is meant".to_owned());
    }
    allow
}

/// Reads the protocols that a connection may switch to.
fn protocols(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Protocol> {
    let texts = r.texts(item);
    if texts.len() > PROTOCOLS_MAX {
        r.error(item.span.clone(), format!("`upgrade` names more than {PROTOCOLS_MAX} protocols"));
    }
    let read = |(text, item): &(&str, SettingValue<'_>)| {
        let protocol = Protocol::parse(text).map_err(|why| format!("`{text}`: {why}"));
        r.check(item, protocol)
    };
    texts.iter().filter_map(read).take(PROTOCOLS_MAX).collect()
}
