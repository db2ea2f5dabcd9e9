//! Edits of a configuration's text: a setting is added where the file has its table, and all else
//! stays as it was written.
//!
//! An edit only places text. Crate `config` reads the result, and a result that it refuses must not
//! be used.

use std::ops::Range;

/// The name of a route's table.
const ROUTE: &str = "site.route";

/// The table that an edit is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The top of the file.
    Top,
    /// The site with this index.
    Site(usize),
    /// A route that the file has, by the indices of its site and its own in that.
    Route(usize, usize),
    /// A route for some paths of the site with this index, written in TOML; added at the site's end
    /// if missing.
    Path(usize, String),
}

/// The new value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewValue {
    /// One more text in a list.
    Item(String),
    /// A value in TOML, in place of the present one.
    Whole(String),
    /// A time for a status, in a table such as that of `ttl`.
    Status(String, String),
}

/// An edit of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The table around it.
    pub(crate) scope: Scope,
    /// The name of the inner table, such as `cache`; empty for the table of `scope` itself.
    pub(crate) table: &'static str,
    /// The key.
    pub(crate) key: &'static str,
    /// The value.
    pub(crate) value: NewValue,
}

/// Lines of the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Number of the first, from 1.
    pub line: usize,
    /// The lines that are new or changed.
    pub lines: Vec<String>,
}

/// A table of the file: its header, and its lines after that.
#[derive(Debug)]
struct Table {
    /// The name in brackets; empty at the top.
    name: String,
    /// Its lines, the header included.
    lines: Range<usize>,
}

/// A text under edit.
#[derive(Debug)]
struct Draft {
    lines: Vec<String>,
}

/// Applies `edits` in their order. Returns the new text, and its lines that each has made.
///
/// # Errors
/// The setting that stands in the file in a form that cannot be added to.
pub(crate) fn apply(text: &str, edits: &[Edit]) -> Result<(String, Vec<Lines>), String> {
    let mut draft = Draft { lines: text.lines().map(str::to_owned).collect() };
    let made = edits.iter().map(|edit| draft.apply(edit)).collect::<Result<_, _>>()?;
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    Ok((draft.lines.join(end) + end, made))
}

/// Number of routes that the site with this index has in `text`.
pub(crate) fn route_count(text: &str, site: usize) -> usize {
    let draft = Draft { lines: text.lines().map(str::to_owned).collect() };
    let tables = nth(draft.tables(), "site", site).unwrap_or_default();
    tables.iter().filter(|table| table.name == ROUTE).count()
}

impl Draft {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![Table { name: String::new(), lines: 0..self.lines.len() }];
        let mut nesting = Nesting::default();
        for (at, line) in self.lines.iter().enumerate() {
            if nesting.is_none() && line.trim_start().starts_with('[') {
                let name = line.trim().trim_start_matches('[').split(']').next();
                if let Some(last) = tables.last_mut() {
                    last.lines.end = at;
                }
                let name = name.unwrap_or_default().trim().to_owned();
                tables.push(Table { name, lines: at..self.lines.len() });
            } else {
                nesting.read(line);
            }
        }
        tables
    }

    /// The tables of a scope: its own first, then those in it. `None` if it is not there.
    fn of_scope(&self, scope: &Scope) -> Option<Vec<Table>> {
        let of_site = |site: usize| nth(self.tables(), "site", site);
        let is_own = |table: &Table| !table.name.starts_with(ROUTE);
        Some(match scope {
            Scope::Top => self.tables(),
            Scope::Site(site) => of_site(*site)?.into_iter().filter(is_own).collect(),
            Scope::Route(site, route) => nth(of_site(*site)?, ROUTE, *route)?,
            Scope::Path(site, path) => {
                let all = of_site(*site)?;
                let count = all.iter().filter(|table| table.name == ROUTE).count();
                let wanted = format!("path = {path}");
                let has = |route: usize| {
                    let tables = nth(of_site(*site)?, ROUTE, route)?;
                    self.is_for_paths_alone(&tables, &wanted).then_some(tables)
                };
                (0..count).find_map(has)?
            }
        })
    }

    /// Returns true if a route has the line that names its paths, and no other condition.
    fn is_for_paths_alone(&self, tables: &[Table], paths: &str) -> bool {
        let own = || self.lines[tables[0].lines.clone()].iter().map(|line| line.trim());
        let has_condition = own()
            .any(|line| line.starts_with("when") || line.starts_with("method"))
            || tables.iter().any(|table| table.name.starts_with("site.route.when"));
        own().any(|line| line == paths) && !has_condition
    }

    fn apply(&mut self, edit: &Edit) -> Result<Lines, String> {
        let Some(tables) = self.of_scope(&edit.scope) else { return self.add_route(edit) };
        let prefix = match edit.scope {
            Scope::Top => String::new(),
            Scope::Site(_) => "site.".to_owned(),
            Scope::Route(..) | Scope::Path(..) => "site.route.".to_owned(),
        };
        let own = tables[0].lines.clone();
        if edit.table.is_empty() {
            return self.set(own, edit.key, edit);
        }
        let inner = format!("{prefix}{}", edit.table);
        if let Some(table) = tables.iter().find(|table| table.name == inner) {
            return self.set(table.lines.clone(), edit.key, edit);
        }
        if let Some(at) = self.line_of(own.clone(), edit.table) {
            return self.set_inline(at, edit);
        }
        let dotted = format!("{}.", edit.table);
        if self.lines[own.clone()].iter().any(|line| line.trim_start().starts_with(&dotted)) {
            return self.set(own, &format!("{dotted}{}", edit.key), edit);
        }
        let at = match edit.scope {
            Scope::Top => self.lines.len(),
            _ => self.end_of(own),
        };
        let lines = vec![String::new(), format!("[{inner}]"), new_line(edit.key, &edit.value)];
        Ok(self.insert(at, lines))
    }

    /// Adds a route for a path, at the end of its site.
    fn add_route(&mut self, edit: &Edit) -> Result<Lines, String> {
        let Scope::Path(site, path) = &edit.scope else {
            return Err("the file has no such table".to_owned());
        };
        let site = nth(self.tables(), "site", *site);
        let last = site.and_then(|tables| Some(tables.last()?.lines.clone()));
        let at = self.end_of(last.ok_or("the file has no such site")?);
        let mut lines = ["", "[[site.route]]"].map(str::to_owned).to_vec();
        lines.push(format!("path = {path}"));
        if !edit.table.is_empty() {
            lines.extend([String::new(), format!("[site.route.{}]", edit.table)]);
        }
        lines.push(new_line(edit.key, &edit.value));
        Ok(self.insert(at, lines))
    }

    /// Sets a key of the table with these lines.
    fn set(&mut self, table: Range<usize>, key: &str, edit: &Edit) -> Result<Lines, String> {
        let Some(at) = self.line_of(table.clone(), key) else {
            let line = new_line(key, &edit.value);
            let is_top = table.start == 0 && (table.is_empty() || !self.starts_table(0));
            let after = if is_top { 0 } else { table.start + 1 };
            return Ok(self.insert(after, vec![line]));
        };
        let line = self.lines[at].clone();
        let start = line.find('=').map_or(line.len(), |at| at + 1);
        let value = line[start..].trim_start();
        let begin = line.len() - value.len();
        let end = value_end(value).map(|len| begin + len);
        let in_list = matches!(edit.value, NewValue::Item(_)) && line.trim_end().ends_with('[');
        match (end, &edit.value) {
            (Some(end), new) => {
                let merged = merged(&line[begin..end], new)
                    .ok_or_else(|| format!("`{key}` in line {} cannot be added to", at + 1))?;
                let changed = format!("{}{merged}{}", &line[..begin], &line[end..]);
                self.lines[at].clone_from(&changed);
                Ok(Lines { line: at + 1, lines: vec![changed] })
            }
            (None, NewValue::Item(item)) if in_list => {
                Ok(self.insert(at + 1, vec![format!("    {item:?},")]))
            }
            _ => Err(format!("`{key}` in line {} has several lines", at + 1)),
        }
    }

    /// Sets a key of the inline table that line `at` holds.
    fn set_inline(&mut self, at: usize, edit: &Edit) -> Result<Lines, String> {
        let line = self.lines[at].clone();
        let cannot = || format!("`{}` in line {} cannot be added to", edit.table, at + 1);
        let open = line.find('{').ok_or_else(cannot)?;
        let end = open + value_end(&line[open..]).ok_or_else(cannot)?;
        let is_there = line[open..end].split([',', '{']).any(|part| {
            part.trim_start()
                .strip_prefix(edit.key)
                .is_some_and(|r| r.trim_start().starts_with('='))
        });
        if is_there {
            return Err(cannot());
        }
        let inner = line[open + 1..end - 1].trim();
        let comma = if inner.is_empty() { "" } else { ", " };
        let new = new_line(edit.key, &edit.value);
        let changed = format!("{}{{ {inner}{comma}{new} }}{}", &line[..open], &line[end..]);
        self.lines[at].clone_from(&changed);
        Ok(Lines { line: at + 1, lines: vec![changed] })
    }

    fn starts_table(&self, at: usize) -> bool {
        self.lines.get(at).is_some_and(|line| line.trim_start().starts_with('['))
    }

    /// The line among `table` that sets `key`.
    fn line_of(&self, table: Range<usize>, key: &str) -> Option<usize> {
        let mut nesting = Nesting::default();
        for at in table {
            let line = self.lines[at].trim_start();
            let is_key = line.strip_prefix(key).is_some_and(|r| r.trim_start().starts_with('='));
            if nesting.is_none() && is_key {
                return Some(at);
            }
            if !line.starts_with('[') || !nesting.is_none() {
                nesting.read(line);
            }
        }
        None
    }

    /// The line after the last one of `table` that says something.
    fn end_of(&self, table: Range<usize>) -> usize {
        let says = |line: &String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let last = self.lines[table.clone()].iter().rposition(says);
        table.start + last.map_or(0, |at| at + 1)
    }

    fn insert(&mut self, at: usize, lines: Vec<String>) -> Lines {
        self.lines.splice(at..at, lines.iter().cloned());
        let blank = lines.iter().take_while(|line| line.is_empty()).count();
        Lines { line: at + 1 + blank, lines: lines[blank..].to_vec() }
    }
}

/// The tables of the item with this index in a list of tables, its own first.
fn nth(tables: Vec<Table>, name: &str, index: usize) -> Option<Vec<Table>> {
    let inner = format!("{name}.");
    let start = tables.iter().enumerate().filter(|(_, table)| table.name == name).nth(index)?.0;
    let mut of_item: Vec<Table> = tables.into_iter().skip(start).collect();
    let end = of_item.iter().skip(1).position(|table| !table.name.starts_with(&inner));
    of_item.truncate(end.map_or(of_item.len(), |end| end + 1));
    Some(of_item)
}

fn new_line(key: &str, value: &NewValue) -> String {
    match value {
        NewValue::Item(item) => format!("{key} = [{item:?}]"),
        NewValue::Whole(value) => format!("{key} = {value}"),
        NewValue::Status(status, time) => format!("{key} = {{ {status} = {time:?} }}"),
    }
}

/// The present value with the new one; `None` if they do not go together.
fn merged(present: &str, new: &NewValue) -> Option<String> {
    match new {
        NewValue::Whole(value) => Some(value.clone()),
        NewValue::Item(item) if present.starts_with('"') => Some(format!("[{present}, {item:?}]")),
        NewValue::Item(item) => {
            let inner = present.strip_prefix('[')?.strip_suffix(']')?.trim().trim_end_matches(',');
            let comma = if inner.is_empty() { "" } else { ", " };
            Some(format!("[{inner}{comma}{item:?}]"))
        }
        // A time without a table is for 200, 301 and 302.
        NewValue::Status(status, time) if present.starts_with('"') => {
            let others = ["200", "301", "302"].into_iter().filter(|other| other != status);
            let others: String = others.map(|other| format!("{other} = {present}, ")).collect();
            Some(format!("{{ {others}{status} = {time:?} }}"))
        }
        NewValue::Status(status, time) => {
            let inner = present.strip_prefix('{')?.strip_suffix('}')?;
            let is_other = |part: &&str| part.split('=').next().map(str::trim) != Some(status);
            let parts = inner.split(',').filter(|part| !part.trim().is_empty()).filter(is_other);
            let kept: String = parts.map(|part| format!("{}, ", part.trim())).collect();
            Some(format!("{{ {kept}{status} = {time:?} }}"))
        }
    }
}

/// Length of the value that `text` begins with; `None` if it does not end in this line.
fn value_end(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_i32, None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(b'"'), b'\\') => is_escaped = true,
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[' | b'{') => depth += 1,
            (None, b']' | b'}') => depth -= 1,
            (None, b'#') if depth == 0 => return Some(text[..at].trim_end().len()),
            _ => {}
        }
    }
    (depth == 0 && quote.is_none()).then(|| text.trim_end().len())
}

/// The brackets and the string that are open at the end of a line.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    quotes: Option<&'static str>,
}

impl Nesting {
    /// The quotes of strings, those of several lines first.
    const QUOTES: [&'static str; 4] = ["\"\"\"", "'''", "\"", "'"];

    /// Returns true if nothing is open: the next line is a key or a table.
    fn is_none(&self) -> bool {
        self.depth == 0 && self.quotes.is_none()
    }

    fn read(&mut self, line: &str) {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let opened = Self::QUOTES.into_iter().find(|own| rest.starts_with(own));
            let mut len = first.len_utf8();
            match (self.quotes, first) {
                (Some(quotes), _) if rest.starts_with(quotes) => {
                    self.quotes = None;
                    len = quotes.len();
                }
                (Some(quotes), '\\') if quotes.starts_with('"') => {
                    len = rest.chars().take(2).map(char::len_utf8).sum();
                }
                (Some(_), _) => {}
                (None, '#') => break,
                (None, '[' | '{') => self.depth += 1,
                (None, ']' | '}') => self.depth = self.depth.saturating_sub(1),
                (None, _) => {
                    self.quotes = opened;
                    len = opened.map_or(len, str::len);
                }
            }
            rest = &rest[len..];
        }
        self.quotes = self.quotes.filter(|own| own.len() > 1);
    }
}

#[cfg(test)]
mod tests;
