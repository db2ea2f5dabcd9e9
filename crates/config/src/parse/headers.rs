//! `[site.request_headers]` and `[site.response_headers]`: changes of fields.

use policy::header_changes::{FieldChange, FieldText, HeaderOps, ValueReplacement};
use policy::headers::{FieldName, FieldValue};

use super::lists::{field_name, field_names};
use crate::keys::{Section, TEXTS};
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, Row, rows};

pub(crate) const REQUEST_HEADERS: Section = Section {
    title: "[site.request_headers]",
    about: "Changes to requests before they go to the origin.",
    keys: || rows::keys(HEADER_ROWS),
    ..Section::EMPTY
};

pub(crate) const RESPONSE_HEADERS: Section = Section {
    title: "[site.response_headers]",
    about: "Changes to responses before they go to the client.",
    keys: || rows::keys(HEADER_ROWS),
    ..Section::EMPTY
};

pub(super) const HEADER_ROWS: &[Row<HeaderOps>] = rows! {
    "unset", TEXTS, "none", "Fields that are removed.",
        |r, item, to| field_names(r, item).into_iter().for_each(|name| to.unset(name));
    "set", "a table of names and values", "none", "Fields that are set; they replace fields of the same name. A value may have `$host`, `$path`, `$query`, `$args`, `$scheme`, `$client` (the client's address), `${http.Name}` for a field of the request, `$1` to `$9` for what the stars or groups of the route's `path` match, and `$$` for a dollar sign.",
        |r, item, to| {
            for (name, span, item) in r.pairs(item) {
                if let Some((name, text)) = field_name(r, name, span).zip(text(r, &item)) {
                    to.set(name, text);
                }
            }
        };
    "replace", "a table of names, each with a table of texts and replacements", "none", "Parts of values that are replaced: `{ Location = { \"http://\" = \"https://\" } }`. Of a text, or of `~ regex` (`~* regex` ignores case), the first occurrence in each field is replaced. The replacement has the variables of `set`, but `$1` to `$9` are the groups of the expression.",
        replacements;
    "add", "a table of names, each with a value or a list of values", "none", "Fields that are added to those of the same name, with the variables of `set`.",
        |r, item, to| {
            for (name, span, item) in r.pairs(item) {
                let Some(name) = field_name(r, name, span) else { continue };
                for item in item.each() {
                    if let Some(text) = text(r, &item) {
                        to.add(name.clone(), text);
                    }
                }
            }
        };
};

/// Reads a value, which may have variables.
fn text(r: &mut Reader, item: &SettingValue<'_>) -> Option<FieldText> {
    let text = r.text(item)?;
    r.check(item, FieldText::parse(text))
}

fn replacements(r: &mut Reader, item: &SettingValue<'_>, to: &mut HeaderOps) {
    for (name, span, item) in r.pairs(item) {
        let Some(name) = field_name(r, name, span) else { continue };
        for (pattern, _, item) in r.pairs(&item) {
            let Some(by) = r.text(&item) else { continue };
            if let Some(own) = r.check(&item, ValueReplacement::parse(pattern, by)) {
                to.replace(name.clone(), own);
            }
        }
    }
}

/// Reads names and values of a table of fields.
pub(super) fn fields(r: &mut Reader, item: &SettingValue<'_>) -> Vec<(FieldName, FieldValue)> {
    let read = |r: &mut Reader, (name, span, item): (&str, _, SettingValue<'_>)| {
        let name = field_name(r, name, span);
        let text = r.text(&item)?;
        Some((name?, r.check(&item, FieldValue::parse(text))?))
    };
    r.pairs(item).into_iter().filter_map(|pair| read(r, pair)).collect()
}

/// Shows changes of fields, whose values may be secrets.
pub(super) fn show(page: &mut SettingsPage<'_>, name: &str, ops: &HeaderOps) {
    let discreet = page.discreet;
    page.list(
        name,
        ops.iter().map(|(field, change)| match change {
            _ if discreet => format!("{field} is set"),
            FieldChange::Set(value) => format!("{field}: {value}"),
            FieldChange::Add(value) => format!("{field}: {value} (added)"),
            FieldChange::Replace(own) => format!("{field}: {own}"),
            FieldChange::Unset => format!("without {field}"),
        }),
    );
}
