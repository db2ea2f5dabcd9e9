//! `rate` and `concurrent` of sites and routes.

use std::sync::Arc;

use base::rate::Pace;
use message::Status;
use policy::headers::FieldName;
use policy::rules::Settings;
use policy::{CrowdRule, Per, RateRule, Terms};
use toml::de::DeValue;

use super::lists::{nets, patterns};
use super::places::note_places;
use crate::keys::{BOOLEAN, COUNT, Section, TEXTS, keys};
use crate::reader::{Item, Reader, Table};
use crate::rows::{self, Row, put, rows};

/// Most of what may come at once or wait.
const BEYOND_MAX: u32 = 100_000;

/// Most requests that may be under way.
const UNDER_WAY_MAX: u32 = 1_000_000;

pub(crate) const RATE: Section = Section {
    title: "[site.rate]",
    about: "How often clients may ask, counted for each by itself; also in a route. Further \
            requests wait or are refused with 429 and Retry-After. A list of tables holds all of \
            them: a request comes in when each lets it in. A route that says nothing counts \
            together with its site; `false` in a route takes the limit off.",
    keys: || {
        let mut keys = keys! {
            "requests", "a rate such as \"10/s\"", "required", "So many in a second (`/s`), a minute (`/m`) or an hour (`/h`), at an even pace: `60/m` lets one in every second.";
            "burst", COUNT, "0", "How many more may come at once; what was taken of it comes back at the rate. With 10, eleven come in at once. As nginx's `burst` with `nodelay`, or its `delay`.";
            "queue", COUNT, "0", "How many beyond that wait for their turn, in the order in which they came and no longer than `rate_wait`, instead of being refused. As nginx's `burst` without `nodelay`.";
        };
        keys.extend(rows::keys(TERMS_ROWS));
        keys
    },
    later: &[("count", "every request counts, hits too; a route, or `path`, limits what is dear")],
    ..Section::EMPTY
};

pub(crate) const CONCURRENT: Section = Section {
    title: "[site.concurrent]",
    about: "How many requests of a client may be under way at once, from their heads to the last \
            bytes of their answers; also in a route. Further ones are refused with 429. Lists and \
            routes are as for `[site.rate]`. Connections have a limit of their own, \
            `connections_per_ip`.",
    keys: || {
        let mut keys = keys! {
            "requests", COUNT, "required", "So many, at least 1. A WebSocket connection is one as long as it lasts.";
        };
        keys.extend(rows::keys(TERMS_ROWS));
        keys
    },
    ..Section::EMPTY
};

/// The keys of a limit of either kind.
const TERMS_ROWS: &[Row<Terms>] = rows! {
    "per", "\"address\", \"site\" or { field = \"X-Api-Key\" }", "\"address\"", "Who is counted as one: an IPv4 address or the /64 of an IPv6 address, all together, or requests with the same value of a field (those without it by address). The address is the client's as `trusted_proxies` say it.",
        |r, item, to| put(&mut to.per, per(r, item));
    "path", TEXTS, "every path", "The paths that it is for, as a route's `path`. Of a path that can be read in several ways each reading counts.",
        |r, item, to| to.paths = patterns(r, item);
    "exempt", TEXTS, "no one", "Addresses or networks that are not limited; `unix:` for clients of a unix socket.",
        |r, item, to| to.exempt = nets(r, item);
    "status", "429 or 503", "429", "The status of a refusal; nginx has 503 where nothing is said.",
        |r, item, to| to.status = status(r, item);
    "dry_run", BOOLEAN, "false", "Whether what would be refused is only counted and logged.",
        |r, item, to| put(&mut to.dry_run, r.boolean(item));
};

/// Changes `settings` as `table` says.
pub(super) fn read(r: &mut Reader, table: &Table<'_>, settings: &mut Settings) {
    note_places(r, table, &["rate", "concurrent"], settings);
    if let Some(item) = table.item("rate") {
        settings.rate = each(r, &item, &RATE, rate);
    }
    if let Some(item) = table.item("concurrent") {
        settings.concurrent = each(r, &item, &CONCURRENT, crowd);
    }
}

/// The limits of a list, or the one that stands alone; `None` for `false`.
fn each<T>(
    r: &mut Reader,
    item: &Item<'_>,
    section: &'static Section,
    read: fn(&mut Reader, &Table<'_>) -> Option<T>,
) -> Option<Arc<[T]>> {
    if matches!(item.value, DeValue::Boolean(false)) {
        return None;
    }
    let limits: Vec<T> = item
        .each()
        .iter()
        .filter_map(|each| r.table(each, section).and_then(|table| read(r, &table)))
        .collect();
    if item.each().is_empty() {
        r.error(item.span.clone(), format!("`{}` is an empty list", item.name)).help =
            Some("`false` takes a limit off".to_owned());
    }
    Some(limits.into())
}

fn rate(r: &mut Reader, table: &Table<'_>) -> Option<RateRule> {
    let terms = terms(r, table);
    let beyond = |r: &mut Reader, name| {
        let count = table.item(name).and_then(|item| r.count32(&item, 0, BEYOND_MAX));
        count.unwrap_or(0)
    };
    let (burst, queue) = (beyond(r, "burst"), beyond(r, "queue"));
    let item = required(r, table)?;
    let text = r.text(&item)?;
    let Ok(requests) = Pace::parse(text) else {
        r.error(item.span, format!("`{text}` is no rate")).help =
            Some("write \"10/s\", \"300/m\" or \"1000/h\"".to_owned());
        return None;
    };
    Some(RateRule { requests, burst, queue, terms })
}

fn crowd(r: &mut Reader, table: &Table<'_>) -> Option<CrowdRule> {
    let terms = terms(r, table);
    let item = required(r, table)?;
    let requests = r.count32(&item, 1, UNDER_WAY_MAX)?;
    Some(CrowdRule { requests, terms })
}

fn required<'a>(r: &mut Reader, table: &Table<'a>) -> Option<Item<'a>> {
    let item = table.item("requests");
    if item.is_none() {
        r.error(table.span.clone(), "a limit without `requests`");
    }
    item
}

fn terms(r: &mut Reader, table: &Table<'_>) -> Terms {
    let mut terms = Terms::default();
    rows::read(r, table, TERMS_ROWS, &mut terms);
    terms
}

fn status(r: &mut Reader, item: &Item<'_>) -> Option<Status> {
    let code = r.count(item, 429, 503)?;
    if code != 429 && code != 503 {
        r.error(item.span.clone(), "a refusal is 429 or 503");
    }
    Status::new(u16::try_from(code).ok()?)
}

fn per(r: &mut Reader, item: &Item<'_>) -> Option<Per> {
    let Some(pairs) = item.pairs() else {
        return r.word(item, &[("address", Whole::Address), ("site", Whole::Site)]).map(Into::into);
    };
    match pairs.as_slice() {
        [("field", _, field)] => {
            let text = r.text(field)?;
            r.check(field, FieldName::parse(text)).map(Per::Field)
        }
        _ => {
            r.wrong_type(item);
            None
        }
    }
}

/// Those who count as one that `per` has a word for.
#[derive(Clone, Copy)]
enum Whole {
    Address,
    Site,
}

impl From<Whole> for Per {
    fn from(word: Whole) -> Self {
        match word {
            Whole::Address => Self::Address,
            Whole::Site => Self::Site,
        }
    }
}
