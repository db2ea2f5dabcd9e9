//! Throttles: `rate` and `concurrent` of sites and routes.

use std::fmt::Display;
use std::sync::Arc;

use base::rate::RateQuota;
use message::Status;
use policy::headers::FieldName;
use policy::rules::Settings;
use policy::{ConcurrencyRule, LimitKey, RateRule, Terms};

use super::lists::{nets, patterns};
use crate::keys::{BOOLEAN, TEXTS};
use crate::page::{SettingsPage, texts};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, Row, put, rows, section};

/// Largest burst or queue.
const BEYOND_MAX: u32 = 100_000;

/// Most concurrent requests.
const UNDER_WAY_MAX: u32 = 1_000_000;

section! {
    pub(crate) RATE, RATE_ROWS: RateRule, TERMS_ROWS; "[site.rate]",
    @later("count", "every request counts, hits too; a route, or `path`, limits what is dear")
    "Request rate limit for each client; also in a route. Requests beyond it wait, or get 429 \
     with Retry-After. With a list of tables, a request must satisfy all of them. A route without \
     `rate` counts together with its site; `false` in a route removes the limit.";
    @needed("a limit without `requests`", "")
    "requests", "a rate such as \"10/s\"", "required", "Number of requests per second (`/s`), minute (`/m`) or hour (`/h`), at an even pace: `60/m` admits one every second.",
        |r, item, to| put(&mut to.requests, pace(r, item));
    "burst", count32(0, BEYOND_MAX) burst, "0", "Number of further requests that are admitted at once; the number refills at the rate. With 10, eleven requests are admitted at once. Like nginx's `burst` with `nodelay`, or its `delay`.";
    "queue", count32(0, BEYOND_MAX) queue, "0", "Number of requests beyond `burst` that wait for their turn, in order of arrival, at most for the limit `rate_wait`. Like nginx's `burst` without `nodelay`.";
}

section! {
    pub(crate) CONCURRENT, CONCURRENT_ROWS: ConcurrencyRule, TERMS_ROWS; "[site.concurrent]",
    "Maximum number of concurrent requests for each client, from the head to the last byte of the \
     response; also in a route. Requests beyond it get 429. Lists and routes work as in \
     `[site.rate]`. Connections have their own limit, `connections_per_ip`.";
    @needed("a limit without `requests`", "")
    "requests", count32(1, UNDER_WAY_MAX) requests, "required", "Maximum number of concurrent requests, at least 1. A WebSocket connection counts as one request as long as it lasts.";
}

/// The keys common to both kinds of limits.
const TERMS_ROWS: &[Row<Terms>] = rows! {
    "per", "\"address\", \"site\" or { field = \"X-Api-Key\" }", "\"address\"", "What counts as one client. `address`: an IPv4 address or an IPv6 /64, determined with `trusted_proxies`. `site`: all clients together. `field`: requests with the same value of this field; requests without the field count by address.",
        |r, item, to| put(&mut to.per, per(r, item));
    "path", TEXTS, "every path", "Paths to which the limit applies, as a route's `path`. If a path can be read in several ways, each reading counts.",
        |r, item, to| to.paths = patterns(r, item);
    "exempt", TEXTS, "no one", "Addresses or networks without this limit; `unix:` for clients of a unix socket.",
        |r, item, to| to.exempt = nets(r, item);
    "status", "429 or 503", "429", "Status of refused requests. nginx's default is 503.",
        |r, item, to| to.status = status(r, item);
    "dry_run", BOOLEAN, "false", "Whether Larder only counts and logs the requests that it would refuse.",
        |r, item, to| put(&mut to.dry_run, r.boolean(item));
};

/// Reads limits on the rate of requests; `None` for `false`.
pub(super) fn rates(r: &mut Reader, item: &SettingValue<'_>) -> Option<Arc<[RateRule]>> {
    each(r, item, |r, item| {
        let requests = RateQuota { count: 1, per_ms: 1 };
        let mut rule = RateRule { requests, burst: 0, queue: 0, terms: Terms::default() };
        let table = r.table(item, &RATE)?;
        rows::read(r, &table, TERMS_ROWS, &mut rule.terms);
        rows::read(r, &table, RATE_ROWS, &mut rule).then_some(rule)
    })
}

/// Reads limits on concurrent requests; `None` for `false`.
pub(super) fn concurrency_limits(
    r: &mut Reader,
    item: &SettingValue<'_>,
) -> Option<Arc<[ConcurrencyRule]>> {
    each(r, item, |r, item| {
        let mut rule = ConcurrencyRule { requests: 1, terms: Terms::default() };
        let table = r.table(item, &CONCURRENT)?;
        rows::read(r, &table, TERMS_ROWS, &mut rule.terms);
        rows::read(r, &table, CONCURRENT_ROWS, &mut rule).then_some(rule)
    })
}

/// Reads the limits of a list, or a single one; `None` for `false`.
fn each<T>(
    r: &mut Reader,
    item: &SettingValue<'_>,
    read: fn(&mut Reader, &SettingValue<'_>) -> Option<T>,
) -> Option<Arc<[T]>> {
    if item.is_off() {
        return None;
    }
    let each = item.each();
    if each.is_empty() {
        r.error(item.span.clone(), format!("`{}` is an empty list", item.name)).help =
            Some("`false` takes a limit off".to_owned());
    }
    Some(each.iter().filter_map(|each| read(r, each)).collect())
}

pub(super) fn show_rates(page: &mut SettingsPage<'_>, settings: &Settings) {
    let rules = settings.rate.iter().flat_map(|rules| rules.iter());
    page.list("rate", rules.map(|rule| limited(rule.told(), &rule.terms)));
}

pub(super) fn show_concurrency_limits(page: &mut SettingsPage<'_>, settings: &Settings) {
    let rules = settings.concurrent.iter().flat_map(|rules| rules.iter());
    page.list("at once", rules.map(|rule| limited(rule.requests, &rule.terms)));
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

fn pace(r: &mut Reader, item: &SettingValue<'_>) -> Option<RateQuota> {
    let text = r.text(item)?;
    let pace = RateQuota::parse(text).ok();
    if pace.is_none() {
        r.error(item.span.clone(), format!("`{text}` is no rate")).help =
            Some("write \"10/s\", \"300/m\" or \"1000/h\"".to_owned());
    }
    pace
}

fn status(r: &mut Reader, item: &SettingValue<'_>) -> Option<Status> {
    let code = r.count(item, 429, 503)?;
    if code != 429 && code != 503 {
        r.error(item.span.clone(), "a refusal is 429 or 503");
    }
    Status::new(u16::try_from(code).ok()?)
}

fn per(r: &mut Reader, item: &SettingValue<'_>) -> Option<LimitKey> {
    let Some(pairs) = item.pairs() else {
        return r
            .word(item, &[("address", LimitScope::Address), ("site", LimitScope::Site)])
            .map(Into::into);
    };
    match pairs.as_slice() {
        [("field", _, field)] => {
            let text = r.text(field)?;
            r.check(field, FieldName::parse(text)).map(LimitKey::Field)
        }
        _ => {
            r.wrong_type(item);
            None
        }
    }
}

/// The clients that share a count, as `per` names them.
#[derive(Clone, Copy)]
enum LimitScope {
    Address,
    Site,
}

impl From<LimitScope> for LimitKey {
    fn from(word: LimitScope) -> Self {
        match word {
            LimitScope::Address => Self::Address,
            LimitScope::Site => Self::Site,
        }
    }
}
