//! `[site.bypass]`: rules for requests that pass the cache.

use policy::headers::{FieldName, FieldValue};
use policy::pattern::{NamePattern, PathPattern, PatternError};
use policy::rules::{Bypass, Settings};
use policy::value::ValuePattern;
use toml::de::DeValue;

use super::lists::{field_name, field_names};
use crate::keys::TEXTS;
use crate::page::{SettingsPage, texts};
use crate::reader::{Reader, SettingValue, TextRange};
use crate::rows::{self, section};

section! {
    pub(crate) BYPASS, BYPASS_ROWS: BypassReasons; "[site.bypass]",
    "Requests that bypass the cache. The rules apply after cookies and parameters are removed.";
    "path", TEXTS, "none", "Paths that bypass the cache, as in `[[site.route]]`.",
        |r, item, to| {
            each(r, item, &mut to.reasons, |text| PathPattern::parse(text).map(Bypass::Path));
        };
    "cookie", TEXTS, "none", "Cookies whose presence bypasses the cache: a name, `prefix*`, `*suffix` or `*part*`.",
        |r, item, to| {
            each(r, item, &mut to.reasons, |text| NamePattern::cookie(text).map(Bypass::Cookie));
        };
    "query", "true, false, a string, a list of strings, or a table of values", "none", "Parameters whose presence bypasses the cache: a name, or `prefix*`. `true`: every request with a query. `false`: none; a route drops the rule of its site. In a table, a parameter must have one of the given values (whole, `prefix*`, or `~ regex` as in paths), or any (`true`).",
        query;
    "header", "a string, a list of strings, or a table of values", "none", "Request fields whose presence bypasses the cache. In a table, a field must have the given value, or any (`true`).",
        |r, item, to| headers(r, item, &mut to.reasons);
    "unless", TEXTS, "none", "Request fields that turn off all rules but `path`: a request with such a field bypasses the cache only for its path. For fields that say whom the response is for; name these fields in `cache.key_headers`, too.",
        |r, item, to| to.unless.extend(field_names(r, item));
}

/// Applies `bypass` to `settings`.
pub(super) fn bypass(r: &mut Reader, item: &SettingValue<'_>, settings: &mut Settings) {
    if matches!(item.value, DeValue::Boolean(false)) {
        settings.bypass.clear();
        return;
    }
    let mut passing = BypassReasons::default();
    rows::read_table(r, item, &BYPASS, BYPASS_ROWS, &mut passing);
    settings.bypass_unless.extend(passing.unless);
    if passing.forgets_query {
        settings.bypass.retain(|b| !matches!(b, Bypass::AnyQuery | Bypass::Query(..)));
    }
    // Presets that are used together share some rules.
    let known: Vec<String> = settings.bypass.iter().map(ToString::to_string).collect();
    passing.reasons.retain(|reason| !known.contains(&reason.bypass.to_string()));
    for Reason { bypass, span } in passing.reasons {
        settings.places.note(format!("bypass {bypass}"), r.place(&span));
        settings.bypass.push(bypass);
    }
}

/// Shows the rules in their order: paths, cookies, header fields, query.
pub(super) fn show_bypass(page: &mut SettingsPage<'_>, settings: &Settings) {
    let discreet = page.discreet;
    let kinds = ["path", "cookie", "header", "query"];
    for (kind, name) in kinds.into_iter().zip(["path", "cookie", "field", "query"]) {
        let reasons = settings.bypass.iter().filter_map(|reason| {
            let told = if discreet { reason.told() } else { reason.to_string() };
            let rest = told.strip_prefix(kind)?.trim_start();
            Some(if rest.is_empty() { "any".to_owned() } else { rest.to_owned() })
        });
        page.list(&format!("passed: {name}"), reasons);
    }
    if !settings.bypass_unless.is_empty() {
        let fields = texts(&settings.bypass_unless);
        page.line("not passed", format!("for more than its path: a request with {fields}"));
    }
}

/// A reason, and its location.
struct Reason {
    bypass: Bypass,
    span: TextRange,
}

/// The reasons that `bypass` names.
#[derive(Default)]
struct BypassReasons {
    reasons: Vec<Reason>,
    /// Earlier reasons about the query are dropped.
    forgets_query: bool,
    unless: Vec<FieldName>,
}

/// Adds a reason for each string of a list.
fn each(
    r: &mut Reader,
    item: &SettingValue<'_>,
    found: &mut Vec<Reason>,
    parse: fn(&str) -> Result<Bypass, PatternError>,
) {
    for (text, item) in r.texts(item) {
        found.extend(r.check(&item, parse(text)).map(|bypass| Reason { bypass, span: item.span }));
    }
}

fn query(r: &mut Reader, item: &SettingValue<'_>, to: &mut BypassReasons) {
    let found = &mut to.reasons;
    let any = |name| Bypass::Query(name, None);
    if let Some(pairs) = item.pairs() {
        for (name, span, item) in pairs {
            let name = NamePattern::query(name)
                .map_err(|why| r.error(span, format!("`{}`: {why}", name.escape_debug())));
            let Ok(name) = name else { continue };
            if matches!(item.value, DeValue::Boolean(true)) {
                found.push(Reason { bypass: any(name), span: item.span });
                continue;
            }
            for (text, item) in r.texts(&item) {
                let value = r.check(&item, ValuePattern::parse(text));
                let bypass = value.map(|value| Bypass::Query(name.clone(), Some(value)));
                found.extend(bypass.map(|bypass| Reason { bypass, span: item.span }));
            }
        }
        return;
    }
    match item.value {
        DeValue::Boolean(true) => {
            found.push(Reason { bypass: Bypass::AnyQuery, span: item.span.clone() });
        }
        DeValue::Boolean(false) => to.forgets_query = true,
        _ => each(r, item, found, |text| {
            NamePattern::query(text).map(|name| Bypass::Query(name, None))
        }),
    }
}

fn headers(r: &mut Reader, item: &SettingValue<'_>, found: &mut Vec<Reason>) {
    let Some(pairs) = item.pairs() else {
        for (text, item) in r.texts(item) {
            if let Some(name) = r.check(&item, FieldName::parse(text)) {
                found.push(Reason { bypass: Bypass::Header(name, None), span: item.span });
            }
        }
        return;
    };
    for (name, span, item) in pairs {
        let Some(name) = field_name(r, name, span) else { continue };
        let bypass = match item.value {
            DeValue::Boolean(true) => Some(Bypass::Header(name, None)),
            _ => {
                let value = r.text(&item).and_then(|text| r.check(&item, FieldValue::parse(text)));
                value.map(|v| Bypass::Header(name, Some(v.as_bytes().to_vec())))
            }
        };
        found.extend(bypass.map(|bypass| Reason { bypass, span: item.span }));
    }
}
