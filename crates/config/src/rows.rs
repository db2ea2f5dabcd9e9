//! Rows: the keys of a table, each with its words and its parser. Whatever is to be known of a key
//! stands in its row; the parser, the messages about unknown keys and the reference walk the rows.
//!
//! A section whose keys have rows declares them beside its parsers, and makes its keys of them.

use crate::keys::{Key, Section};
use crate::reader::{Item, Reader, Table};

/// One key of a table that is read into a `T`.
pub(crate) struct Row<T> {
    pub(crate) key: Key,
    /// Its parser, which changes what the key says and nothing else. `None` for a key that is read
    /// together with others.
    pub(crate) read: Option<fn(&mut Reader, &Item<'_>, &mut T)>,
}

/// Rows, each `"key", takes, default, description, parser;`. A key that is read together with
/// others has no parser; `#own` stands before one that is each node's own.
macro_rules! rows {
    (@read) => { None };
    (@read $read:expr) => { Some($read) };
    ($(
        $(#$own:ident)? $name:literal, $takes:expr, $default:expr, $about:expr $(, $read:expr)?;
    )*) => {
        &[$(crate::rows::Row {
            key: crate::keys::Key {
                name: $name,
                takes: $takes,
                default: std::borrow::Cow::Borrowed($default),
                about: $about,
                is_own: false,
            }$(.$own())?,
            read: crate::rows::rows!(@read $($read)?),
        },)*]
    };
}
pub(crate) use rows;

/// The keys of rows.
pub(crate) fn keys<T>(rows: &[Row<T>]) -> Vec<Key> {
    rows.iter().map(|row| row.key.clone()).collect()
}

/// Reads what `table` says into `to`, in the order of the rows.
pub(crate) fn read<T>(r: &mut Reader, table: &Table<'_>, rows: &[Row<T>], to: &mut T) {
    for row in rows {
        if let Some(read) = row.read
            && let Some(item) = table.item(row.key.name)
        {
            read(r, &item, to);
        }
    }
}

/// Reads `item`, which is a table of kind `section` with these rows, into `to`.
pub(crate) fn read_table<T>(
    r: &mut Reader,
    item: &Item<'_>,
    section: &'static Section,
    rows: &[Row<T>],
    to: &mut T,
) {
    if let Some(table) = r.table(item, section) {
        read(r, &table, rows, to);
    }
}

/// Puts a value in its place, if there is one.
pub(crate) fn put<V>(place: &mut V, value: Option<V>) {
    if let Some(value) = value {
        *place = value;
    }
}
