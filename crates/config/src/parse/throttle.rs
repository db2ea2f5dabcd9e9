//! `rate` and `concurrent` of sites and routes.

use std::sync::Arc;

use base::rate::parse_rate;
use message::Status;
use policy::headers::FieldName;
use policy::rules::Settings;
use policy::{CrowdRule, Per, RateRule, Terms};
use toml::de::DeValue;

use super::lists::{nets, patterns};
use super::places::note_places;
use crate::keys::{self, Section};
use crate::reader::{Item, Reader, Table};

/// Most of what may come at once or wait.
const BEYOND_MAX: u32 = 100_000;

/// Most requests that may be under way.
const UNDER_WAY_MAX: u32 = 1_000_000;

/// Changes `settings` as `table` says.
pub(super) fn read(r: &mut Reader, table: &Table<'_>, settings: &mut Settings) {
    note_places(r, table, &["rate", "concurrent"], settings);
    if let Some(item) = table.item("rate") {
        settings.rate = each(r, &item, &keys::RATE, rate);
    }
    if let Some(item) = table.item("concurrent") {
        settings.concurrent = each(r, &item, &keys::CONCURRENT, crowd);
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
    let Ok(requests) = parse_rate(text) else {
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
    let status = table.item("status").and_then(|item| {
        let code = r.count(&item, 429, 503)?;
        if code != 429 && code != 503 {
            r.error(item.span, "a refusal is 429 or 503");
        }
        Status::new(u16::try_from(code).ok()?)
    });
    Terms {
        per: table.item("per").and_then(|item| per(r, &item)).unwrap_or_default(),
        paths: table.item("path").map(|item| patterns(r, &item)).unwrap_or_default(),
        exempt: table.item("exempt").map(|item| nets(r, &item)).unwrap_or_default(),
        status,
        dry_run: table.item("dry_run").and_then(|item| r.boolean(&item)).unwrap_or(false),
    }
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
