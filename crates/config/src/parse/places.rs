//! The places of a site's settings, for what is told of a decision.

use policy::rules::Settings;

use crate::reader::{Reader, Table};

/// Notes where keys are written, for what is told of a decision.
pub(super) fn note_places(
    r: &Reader,
    table: &Table<'_>,
    keys: &[&'static str],
    settings: &mut Settings,
) {
    for key in keys {
        if let Some(item) = table.item(key) {
            settings.places.note(*key, r.place(&item.span));
        }
    }
}

/// The same of the keys of a table, and of those of a table in it.
pub(super) fn note_places_in(
    r: &Reader,
    table: &Table<'_>,
    section: &'static str,
    settings: &mut Settings,
) {
    let pairs = table.item(section).and_then(|item| item.pairs());
    for (key, span, value) in pairs.unwrap_or_default() {
        settings.places.note(format!("{section}.{key}"), r.place(&span));
        for (name, span, _) in value.pairs().unwrap_or_default() {
            settings.places.note(format!("{section}.{key}.{name}"), r.place(&span));
        }
    }
}
