//! The page on which the configuration in force is shown.

use std::fmt::{Display, Write as _};

use crate::model::{Config, SiteConfig};

/// The width of the column of names.
const NAMES: usize = 18;

/// Lines of a name and what it stands for, indented.
pub(crate) struct Page<'a> {
    pub(crate) config: &'a Config,
    pub(crate) site: &'a SiteConfig,
    /// Values that may be secrets are left out.
    pub(crate) discreet: bool,
    pub(crate) indent: usize,
    pub(crate) text: String,
}

impl Page<'_> {
    pub(crate) fn line(&mut self, name: &str, value: impl Display) {
        let line = format!("{:indent$}{name:NAMES$} {value}", "", indent = self.indent);
        let done = writeln!(self.text, "{}", line.trim_end());
        done.expect("a string takes whatever is written to it");
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
