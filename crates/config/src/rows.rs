//! Rows: the keys of a table, each with its description, its parser and its marks. The parser,
//! messages about unknown keys, the settings page, the shared configuration, restarts and the
//! reference use the rows.
//!
//! A section declares its rows beside its parsers, and makes its keys from them.

use crate::keys::{Key, Section};
use crate::page::SettingsPage;
use crate::reader::{Reader, SettingValue, TomlTable};

/// One key of a table that is read into a `T`.
pub(crate) struct Row<T> {
    pub(crate) key: Key,
    /// The parser. It applies the key's value; other keys of the table may influence it.
    pub(crate) read: fn(&mut Reader, &SettingValue<'_>, &mut T),
    /// The message and help if the key is missing and required.
    pub(crate) needed: Option<[&'static str; 2]>,
    /// Shows the value in force on a page.
    pub(crate) show: Option<fn(&mut SettingsPage<'_>, &T)>,
}

/// A section and its rows, with optional rows that other sections share: `SECTION, ROWS: T,
/// MORE_ROWS; title, description; rows`.
macro_rules! section {
    ($vis:vis $name:ident, $rows_vis:vis $rows:ident: $of:ty $(, $more:ident)*;
        $title:literal, $(@later($later:literal, $instead:literal))? $about:expr; $($row:tt)*
    ) => {
        $vis const $name: crate::keys::Section = crate::keys::Section {
            title: $title,
            about: $about,
            keys: || [crate::rows::keys($rows) $(, crate::rows::keys($more))*].concat(),
            later: &[$(($later, $instead))?],
        };
        $rows_vis const $rows: &[crate::rows::Row<$of>] = crate::rows::rows! { $($row)* };
    };
}
pub(crate) use section;

/// Rows, each `"key", takes, default, description, parser;`. The first and the last may be replaced
/// by the kind of the value and its field: `"key", boolean field, default, description;`. A row may
/// end with `=> show`.
///
/// Before the key stand its marks (`#Own`, see [`crate::keys::Mark`]), the message if it is missing
/// (`@needed(message, help)`), its restart rule (`@restart(name, differs)`), and the section of its
/// table or tables (`@table(section)`).
macro_rules! rows {
    (@ [$($row:expr,)*]) => { &[$($row,)*] };
    (@ [$($row:expr,)*]
        $(#$mark:ident)* $(@needed($why:literal, $help:literal))?
        $(@restart($named:literal, $differs:expr))? $(@table($section:expr))?
        $name:literal, $kind:ident $(($($arg:expr),+))? $($field:ident).+,
        $default:expr, $about:expr $(=> $show:expr)?;
        $($rest:tt)*
    ) => {
        crate::rows::rows!(@ [$($row,)*]
            $(#$mark)* $(@needed($why, $help))? $(@restart($named, $differs))? $(@table($section))?
            $name, crate::rows::rows!(@takes $kind), $default, $about,
            |r, item, to| crate::rows::put(&mut to.$($field).+, r.$kind(item $($(, $arg)+)?))
            $(=> $show)?;
            $($rest)*)
    };
    (@ [$($row:expr,)*]
        $(#$mark:ident)* $(@needed($why:literal, $help:literal))?
        $(@restart($named:literal, $differs:expr))? $(@table($section:expr))?
        $name:literal, $takes:expr, $default:expr, $about:expr, $read:expr $(=> $show:expr)?;
        $($rest:tt)*
    ) => {
        crate::rows::rows!(@ [$($row,)* crate::rows::Row {
            key: crate::keys::Key {
                name: $name,
                takes: $takes,
                default: std::borrow::Cow::Borrowed($default),
                about: $about,
                marks: &[$(crate::keys::Mark::$mark),*],
                section: crate::rows::rows!(@some $(&$section)?),
                restart: crate::rows::rows!(@some $(crate::keys::Restart {
                    name: $named,
                    differs: $differs,
                })?),
            },
            read: $read,
            needed: crate::rows::rows!(@some $([$why, $help])?),
            show: crate::rows::rows!(@some $($show)?),
        },] $($rest)*)
    };
    (@some) => { None };
    (@some $value:expr) => { Some($value) };
    (@takes bare_path) => { "an absolute path" };
    (@takes boolean) => { crate::keys::BOOLEAN };
    (@takes count32) => { crate::keys::COUNT };
    (@takes duration) => { crate::keys::DURATION };
    (@takes path) => { "an absolute path" };
    (@takes size) => { crate::keys::SIZE };
    (@takes string) => { "a string" };
    ($($rows:tt)*) => { crate::rows::rows!(@ [] $($rows)*) };
}
pub(crate) use rows;

/// The keys of rows.
pub(crate) fn keys<T>(rows: &[Row<T>]) -> Vec<Key> {
    rows.iter().map(|row| row.key.clone()).collect()
}

/// Reads `table` into `to`, in the order of the rows. Returns true if there are no errors.
pub(crate) fn read<T>(r: &mut Reader, table: &TomlTable<'_>, rows: &[Row<T>], to: &mut T) -> bool {
    let before = r.errors();
    for row in rows {
        match (table.known(row.key.name), row.needed) {
            (Some(item), _) => (row.read)(r, &item, to),
            (None, Some([why, help])) => {
                r.error(table.span.clone(), why).help = (!help.is_empty()).then(|| help.to_owned());
            }
            (None, None) => {}
        }
    }
    r.errors() == before
}

/// Reads `item`, a table of kind `section` with these rows, into `to`. Returns true if there are no
/// errors.
pub(crate) fn read_table<T>(
    r: &mut Reader,
    item: &SettingValue<'_>,
    section: &'static Section,
    rows: &[Row<T>],
    to: &mut T,
) -> bool {
    r.table(item, section).is_some_and(|table| read(r, &table, rows, to))
}

/// Shows the values of `of` on a page, in the order of the rows.
pub(crate) fn show<T>(page: &mut SettingsPage<'_>, rows: &[Row<T>], of: &T) {
    rows.iter().filter_map(|row| row.show).for_each(|show| show(page, of));
}

/// Stores a value, if there is one.
pub(crate) fn put<P: From<V>, V>(place: &mut P, value: Option<V>) {
    if let Some(value) = value {
        *place = value.into();
    }
}
