//! `[site.request_headers]` and `[site.response_headers]`: changes of fields.

use policy::headers::{FieldName, FieldValue, HeaderOps};

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
    "set", "a table of names and values", "none", "Fields that are set; they replace fields of the same name.",
        |r, item, to| fields(r, item).into_iter().for_each(|(name, value)| to.set(name, value));
};

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
        ops.iter().map(|(field, value)| match value {
            _ if discreet => format!("{field} is set"),
            Some(value) => format!("{field}: {value}"),
            None => format!("without {field}"),
        }),
    );
}
