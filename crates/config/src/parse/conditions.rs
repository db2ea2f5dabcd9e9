//! `[site.route.when]`: what a route asks of a request beside its path and method.

use std::fmt;

use policy::CountryCode;
use policy::conditions::{
    ClientAddresses, ClientCountries, Condition, Conditions, NamedCondition, RouteScope,
    UserAgents, WantedValue,
};
use policy::headers::FieldName;
use policy::pattern::{NamePattern, PatternError, TextPattern};
use policy::value::ValuePattern;
use toml::de::DeValue;

use super::crawlers::classes;
use super::lists::{methods, nets, patterns};
use super::times::{TIMES, time};
use crate::keys::TEXTS;
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue, TextRange};
use crate::rows::{self, Row, rows, section};

/// Values of keys that name something, and may say what its value should be.
pub(super) const NAMED: &str = "a string, a list of strings, or a table of values";

/// Values of `class`.
const CLASSES: &str = "`human`, `search`, `ai`, `tool`, `unknown`, or a list of them";

section! {
    pub(crate) WHEN, WHEN_ROWS: Conditions, LEFT_OUT_ROWS; "[site.route.when]",
    "Conditions of a route, beside its path and method; all keys must hold, a list has alternatives. A \
     string or list names what must be present. In a table, all names must have the given value \
     (whole, with `*` for anything, or `~ regex` as in paths), be present (`true`) or absent \
     (`false`). Larder looks at the request as the client sent it.";
    "header", NAMED, "none", "Request fields. `_` in a name counts as `-`. Fields that only proxies may send cannot be named: use `client`.",
        |r, item, to| named(r, item, &HEADER, |any| to.push(Condition::Header(any)));
    "cookie", NAMED, "none", "Cookies: a name, `prefix*`, `*suffix` or `*part*`.",
        |r, item, to| named(r, item, &COOKIE, |any| to.push(Condition::Cookie(any)));
    "query", NAMED, "none", "Query parameters: a name, or `prefix*`. Names and values are decoded before they are compared.",
        |r, item, to| named(r, item, &QUERY, |any| to.push(Condition::Query(any)));
    "client", TEXTS, "every client", "Addresses or networks of clients. Behind a balancer, `trusted_proxies` says who is the client.",
        |r, item, to| {
            let nets = nets(r, item);
            if refuse_empty(r, item) {
                to.push(Condition::Client(ClientAddresses::new(nets)));
            }
        };
    "country", TEXTS, "every client", "Countries of clients by the database of `geoip`, each as two letters: `DE`. A client whose country is not known is in none.",
        |r, item, to| country(r, item, to);
    "user_agent", TEXTS, "every client", "Texts that occur anywhere in User-Agent, in any case; `*` stands for anything. Or `~ regex`.",
        user_agent;
    "class", CLASSES, "every client", "Classes of clients: see `[crawlers]`.",
        class;
    "time", TIMES, "always", "Windows of time in which the head of the request was read: dates, weekdays, times of the day and a time zone, each of which may be missing: `\"Mon-Fri 09:00-17:00 Europe/Berlin\"`, `\"2026-12-24..2026-12-26\"`. Without a zone it is UTC.",
        time;
}

/// The key of what is left out, which may have all the others.
const LEFT_OUT_ROWS: &[Row<Conditions>] = rows! {
    @table(NOT) "not", "a table or a list of tables", "none", "Requests that the route leaves out: see `[site.route.when.not]`.",
        left_out;
};

section! {
    pub(crate) NOT, NOT_ROWS: RouteScope; "[site.route.when.not]",
    "Requests that a route leaves out: those for which all keys hold. In a list of tables, each \
     table leaves out its own. The keys are those of `[site.route.when]`, and `path` and `method`.";
    "path", TEXTS, "every path", "Paths, as in `[[site.route]]`.",
        |r, item, to| {
            to.paths = patterns(r, item);
            refuse_empty(r, item);
        };
    "method", TEXTS, "every method", "Methods, in capitals.",
        |r, item, to| {
            to.methods = methods(r, item);
            refuse_empty(r, item);
        };
    "header", NAMED, "none", "Request fields.",
        |r, item, to| named(r, item, &HEADER, |any| to.when.push(Condition::Header(any)));
    "cookie", NAMED, "none", "Cookies.",
        |r, item, to| named(r, item, &COOKIE, |any| to.when.push(Condition::Cookie(any)));
    "query", NAMED, "none", "Query parameters.",
        |r, item, to| named(r, item, &QUERY, |any| to.when.push(Condition::Query(any)));
    "client", TEXTS, "every client", "Addresses or networks of clients.",
        |r, item, to| {
            let nets = nets(r, item);
            if refuse_empty(r, item) {
                to.when.push(Condition::Client(ClientAddresses::new(nets)));
            }
        };
    "country", TEXTS, "every client", "Countries of clients.",
        |r, item, to| country(r, item, &mut to.when);
    "user_agent", TEXTS, "every client", "Texts that occur in User-Agent.",
        |r, item, to| user_agent(r, item, &mut to.when);
    "class", CLASSES, "every client", "Classes of clients.",
        |r, item, to| class(r, item, &mut to.when);
    "time", TIMES, "always", "Windows of time.",
        |r, item, to| time(r, item, &mut to.when);
}

/// The conditions of `item`, a route's `when`.
pub(super) fn when(r: &mut Reader, item: &SettingValue<'_>, to: &mut Conditions) {
    let Some(table) = r.table(item, &WHEN) else { return };
    rows::read(r, &table, WHEN_ROWS, to);
    rows::read(r, &table, LEFT_OUT_ROWS, to);
    if table.names().is_empty() {
        r.error(item.span.clone(), "`when` without conditions");
    }
}

/// Conditions, whose values may be secrets, on a page.
pub(super) fn show(page: &mut SettingsPage<'_>, when: &Conditions) {
    let discreet = page.discreet;
    page.list("when", when.iter().map(|one| if discreet { one.told() } else { one.to_string() }));
}

/// A kind of what has names and values: how these are read.
struct NamedKind<N, V> {
    name: fn(&str) -> Result<N, String>,
    value: fn(&str) -> Result<V, PatternError>,
}

const HEADER: NamedKind<FieldName, TextPattern> =
    NamedKind { name: field, value: |text| TextPattern::parse(text) };

const RESPONSE_HEADER: NamedKind<FieldName, TextPattern> = NamedKind {
    name: |text| FieldName::parse(text).map_err(|why| why.to_string()),
    value: |text| TextPattern::parse(text),
};

const COOKIE: NamedKind<NamePattern, TextPattern> = NamedKind {
    name: |text| NamePattern::cookie(text).map_err(|why| why.to_string()),
    value: |text| TextPattern::parse(text),
};

const QUERY: NamedKind<NamePattern, ValuePattern> = NamedKind {
    name: |text| NamePattern::query(text).map_err(|why| why.to_string()),
    value: |text| ValuePattern::parse(text),
};

/// The name of a field that means the same wherever a route is looked for.
fn field(text: &str) -> Result<FieldName, String> {
    let name = FieldName::parse(text).map_err(|why| why.to_string())?;
    if name.is_spelt(b"cookie") {
        return Err("`when.cookie` looks at single cookies".to_owned());
    }
    if name.is_spelt(b"authorization") || name.is_for_proxies() {
        return Err("Larder removes the field from requests before a route is chosen".to_owned());
    }
    Ok(name)
}

/// Reads conditions for a response's fields; of each list, one must hold.
pub(super) fn response_fields(
    r: &mut Reader,
    item: &SettingValue<'_>,
) -> Vec<Vec<NamedCondition<FieldName, TextPattern>>> {
    let mut all = Vec::new();
    named(r, item, &RESPONSE_HEADER, |any| all.push(any));
    all
}

/// Reads names with or without values, and passes conditions to `push`, each a list of
/// alternatives.
fn named<N, V>(
    r: &mut Reader,
    item: &SettingValue<'_>,
    kind: &NamedKind<N, V>,
    mut push: impl FnMut(Vec<NamedCondition<N, V>>),
) {
    let Some(pairs) = item.pairs() else {
        let mut any = Vec::new();
        for (text, item) in r.texts(item) {
            let name = said(r, &item.span, text, (kind.name)(text));
            any.extend(name.map(|name| NamedCondition { name, wanted: WantedValue::Present }));
        }
        if refuse_empty(r, item) {
            push(any);
        }
        return;
    };
    for (text, span, item) in pairs {
        let Some(name) = said(r, &span, text, (kind.name)(text)) else { continue };
        let wanted = match item.value {
            DeValue::Boolean(true) => WantedValue::Present,
            DeValue::Boolean(false) => WantedValue::Absent,
            _ => {
                let texts = r.texts(&item);
                let values = texts.iter();
                let read = values.filter_map(|(text, item)| r.check(item, (kind.value)(text)));
                let wanted = WantedValue::Like(read.collect());
                if !refuse_empty(r, &item) {
                    continue;
                }
                wanted
            }
        };
        push(vec![NamedCondition { name, wanted }]);
    }
}

/// The value that was read, or an error that quotes `text`.
fn said<T>(
    r: &mut Reader,
    span: &TextRange,
    text: &str,
    read: Result<T, impl fmt::Display>,
) -> Option<T> {
    read.map_err(|why| r.error(span.clone(), format!("`{}`: {why}", text.escape_debug()))).ok()
}

/// Refuses an empty list, which would hold for nothing. Returns true if the list has something.
pub(super) fn refuse_empty(r: &mut Reader, item: &SettingValue<'_>) -> bool {
    let is_empty = item.each().is_empty();
    if is_empty {
        r.error(item.span.clone(), format!("`{}` is an empty list", item.name));
    }
    !is_empty
}

fn country(r: &mut Reader, item: &SettingValue<'_>, to: &mut Conditions) {
    let mut codes = Vec::new();
    for (text, item) in r.texts(item) {
        match CountryCode::parse(text) {
            Some(code) => codes.push(code),
            None => {
                let message = format!("`{}` is no country: write two letters", text.escape_debug());
                r.error(item.span, message).help = Some("for example \"DE\" or \"AT\"".to_owned());
            }
        }
    }
    if refuse_empty(r, item) {
        to.push(Condition::Country(ClientCountries::new(codes)));
    }
}

fn user_agent(r: &mut Reader, item: &SettingValue<'_>, to: &mut Conditions) {
    let texts = r.texts(item);
    if !refuse_empty(r, item) || texts.is_empty() {
        return;
    }
    let patterns: Vec<&str> = texts.iter().map(|(text, _)| *text).collect();
    match UserAgents::parse(&patterns) {
        Ok(agents) => to.push(Condition::UserAgent(agents)),
        Err(refused) => {
            let at = texts.get(refused.at).map_or(&item.span, |(_, item)| &item.span);
            r.error(at.clone(), format!("`user_agent`: {}", refused.why));
        }
    }
}

fn class(r: &mut Reader, item: &SettingValue<'_>, to: &mut Conditions) {
    let classes = classes(r, item);
    if refuse_empty(r, item) {
        to.push(Condition::Class(classes));
    }
}

fn left_out(r: &mut Reader, item: &SettingValue<'_>, to: &mut Conditions) {
    refuse_empty(r, item);
    for item in item.each() {
        let Some(table) = r.table(&item, &NOT) else { continue };
        let mut scope = RouteScope::default();
        let is_sound = rows::read(r, &table, NOT_ROWS, &mut scope);
        if is_sound && scope.is_everything() {
            r.error(item.span.clone(), "`not` without conditions would leave out every request");
        }
        to.push(Condition::Not(Box::new(scope)));
    }
}
