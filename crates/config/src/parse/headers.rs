//! `[site.request_headers]` and `[site.response_headers]`.

use policy::headers::{FieldName, FieldValue, HeaderOps};

use super::lists::field_name;
use crate::keys::{Key, Section, TEXTS, keys};
use crate::reader::{Item, Reader};

pub(crate) const REQUEST_HEADERS: Section = Section {
    title: "[site.request_headers]",
    about: "Changes to requests on their way to the origin.",
    keys: HEADER_KEYS,
    ..Section::EMPTY
};

pub(crate) const RESPONSE_HEADERS: Section = Section {
    title: "[site.response_headers]",
    about: "Changes to responses on their way to the client.",
    keys: HEADER_KEYS,
    ..Section::EMPTY
};

const HEADER_KEYS: fn() -> Vec<Key> = || {
    keys! {
        "set", "a table of names and values", "none", "Fields set, replacing those of the same name.";
        "unset", TEXTS, "none", "Fields removed.";
    }
};

/// Names and values of a table of fields.
pub(super) fn fields(r: &mut Reader, item: &Item<'_>) -> Vec<(FieldName, FieldValue)> {
    let Some(pairs) = item.pairs() else {
        r.wrong_type(item);
        return Vec::new();
    };
    let read = |(name, span, item): (&str, _, Item<'_>)| {
        let name = field_name(r, name, span);
        let text = r.text(&item)?;
        Some((name?, r.check(&item, FieldValue::parse(text))?))
    };
    pairs.into_iter().filter_map(read).collect()
}

/// Changes `ops` as a table of kind `section` says.
pub(super) fn header_ops(
    r: &mut Reader,
    item: &Item<'_>,
    section: &'static Section,
    ops: &mut HeaderOps,
) {
    let Some(table) = r.table(item, section) else { return };
    if let Some(item) = table.item("unset") {
        for (text, item) in r.texts(&item) {
            if let Some(name) = r.check(&item, FieldName::parse(text)) {
                ops.unset(name);
            }
        }
    }
    if let Some(item) = table.item("set") {
        for (name, value) in fields(r, &item) {
            ops.set(name, value);
        }
    }
}
