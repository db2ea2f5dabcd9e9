//! Redaction: hides the values of secret keys in the lines that messages quote.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::TOP;
use crate::keys::{Mark, Section};
use crate::reader::TextRange;

/// The text with masked secrets of the same length, so that spans stay valid; `None` if `top`,
/// which was parsed from it, has no secrets.
pub(super) fn masked(text: &str, top: &DeTable<'_>) -> Option<String> {
    let mut secrets = Vec::new();
    find(&TOP, top, &mut secrets);
    if secrets.is_empty() {
        return None;
    }
    let mut bytes = text.as_bytes().to_vec();
    for span in secrets {
        // All but quotes and line ends: TOML stays TOML.
        let hidden = bytes.get_mut(span).into_iter().flatten();
        hidden.filter(|b| !b"\"'\r\n".contains(b)).for_each(|b| *b = b'*');
    }
    String::from_utf8(bytes).ok()
}

/// Collects the spans of secrets in `table`, a table of `section`.
fn find(section: &'static Section, table: &DeTable<'_>, found: &mut Vec<TextRange>) {
    let keys = (section.keys)();
    for (name, value) in table {
        match keys.iter().find(|key| key.name == name.get_ref()) {
            Some(key) if key.is(Mark::Secret) => collect(value, found),
            Some(key) => {
                let Some(section) = key.section else { continue };
                match value.get_ref() {
                    DeValue::Table(table) => find(section, table, found),
                    DeValue::Array(array) => {
                        let tables = array.iter().filter_map(|each| each.get_ref().as_table());
                        tables.for_each(|table| find(section, table, found));
                    }
                    _ => {}
                }
            }
            None => {}
        }
    }
}

/// Collects the spans of strings in `value`, except file names.
fn collect(value: &Spanned<DeValue<'_>>, found: &mut Vec<TextRange>) {
    match value.get_ref() {
        DeValue::String(_) => found.push(value.span()),
        DeValue::Array(array) => array.iter().for_each(|each| collect(each, found)),
        DeValue::Table(table) => {
            let other = table.iter().filter(|(name, _)| name.get_ref() != "file");
            other.for_each(|(_, each)| collect(each, found));
        }
        _ => {}
    }
}
