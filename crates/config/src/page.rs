//! The settings page: the configuration in force, as text.

use std::fmt::Display;

use crate::model::{Config, SiteConfig};

/// The width of the names' column.
const NAMES: usize = 18;

/// The page, as lines of names and values.
pub(crate) struct SettingsPage<'a> {
    pub(crate) config: &'a Config,
    pub(crate) site: &'a SiteConfig,
    /// Values that may be secrets are left out.
    pub(crate) discreet: bool,
    pub(crate) indent: usize,
    pub(crate) lines: Vec<Line>,
}

/// A line.
pub(crate) struct Line {
    pub(crate) indent: usize,
    pub(crate) name: String,
    pub(crate) value: String,
}

impl<'a> SettingsPage<'a> {
    pub(crate) fn new(config: &'a Config, site: &'a SiteConfig, discreet: bool) -> Self {
        Self { config, site, discreet, indent: 0, lines: Vec::new() }
    }

    /// All lines, indented.
    pub(crate) fn text(&self) -> String {
        let text = |Line { indent, name, value }: &Line| {
            let line = format!("{:indent$}{name:NAMES$} {value}", "");
            format!("{}\n", line.trim_end())
        };
        self.lines.iter().map(text).collect()
    }

    pub(crate) fn line(&mut self, name: &str, value: impl Display) {
        let (indent, name, value) = (self.indent, name.to_owned(), value.to_string());
        self.lines.push(Line { indent, name, value });
    }

    /// One line per value, the name on the first.
    pub(crate) fn list<V: Display>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        for (at, value) in values.into_iter().enumerate() {
            self.line(if at == 0 { name } else { "" }, value);
        }
    }
}

/// Values in one line.
pub(crate) fn texts(values: &[impl Display]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The keyword of a value.
pub(crate) fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, own)| own == value).map_or("", |(word, _)| word)
}
