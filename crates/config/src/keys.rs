//! Keys: the form of the tables of keys, and texts that many of them share. The tables stand beside
//! the parsers; [`crate::parse::TOP`] leads to all of them. The parser looks up unknown keys in
//! them, messages quote them, and the reference page is made from them.

use std::borrow::Cow;

use crate::model::Config;

/// One key of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Accepted values, as the text after "takes".
    pub takes: &'static str,
    /// Its default, as it would be written.
    pub default: Cow<'static, str>,
    /// Its description.
    pub about: &'static str,
    pub(crate) marks: &'static [Mark],
    /// The kind of table that is its value, if it is one.
    pub(crate) section: Option<&'static Section>,
    pub(crate) restart: Option<Restart>,
}

/// Facts about a key: where it is allowed, and whether its value is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The key belongs in each node's own file, not in the shared configuration. Used for keys at
    /// the top of the file and for limits; the keys of a table go with the table.
    Own,
    /// The key is allowed in a site only, not in a preset.
    SiteOnly,
    /// The key is allowed in a site with a VCL.
    BesideVcl,
    /// Messages that quote its line hide its value.
    Secret,
}

/// A setting that needs a restart, since it concerns something opened or created once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Returns true if the second configuration has another value.
    pub(crate) differs: fn(&Config, &Config) -> bool,
}

/// One kind of table.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its form in a file: `[memory]`, `[[site]]`; empty for the top of the file.
    pub title: &'static str,
    /// Its purpose.
    pub about: &'static str,
    /// Its keys.
    pub keys: fn() -> Vec<Key>,
    /// Keys of a later version, each with what to do until then.
    pub(crate) later: &'static [(&'static str, &'static str)],
}

impl Key {
    pub(crate) fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }
}

impl Section {
    /// A section without anything.
    pub(crate) const EMPTY: Self = Self { title: "", about: "", keys: Vec::new, later: &[] };

    /// The section and all within it, each once, in the order of the keys.
    pub(crate) fn all(&'static self) -> Vec<&'static Self> {
        let (mut all, mut next) = (Vec::new(), vec![self]);
        while let Some(section) = next.pop() {
            if all.iter().all(|own: &&Self| own.title != section.title) {
                all.push(section);
                next.extend((section.keys)().into_iter().rev().filter_map(|key| key.section));
            }
        }
        all
    }

    /// The key called `name`.
    pub(crate) fn key(&self, name: &str) -> Option<Key> {
        (self.keys)().into_iter().find(|key| key.name == name)
    }

    /// The key called `name`, or one inside a table that is a key: `memory.size`.
    pub(crate) fn within(&self, name: &str) -> Option<Key> {
        match name.split_once('.') {
            Some((table, name)) => self.key(table)?.section?.key(name),
            None => self.key(name),
        }
    }

    /// "at the top of the file", `in [memory]`.
    pub(crate) fn place(&self) -> String {
        if self.title.is_empty() {
            "at the top of the file".to_owned()
        } else {
            format!("in {}", self.title)
        }
    }
}

pub(crate) const TEXTS: &str = "a string or a list of strings";
pub(crate) const DURATION: &str = "a duration such as \"10s\"";
pub(crate) const SIZE: &str = "a size such as \"1KiB\"";
pub(crate) const BOOLEAN: &str = "true or false";
pub(crate) const COUNT: &str = "a whole number";
pub(crate) const TABLE: &str = "a table";
pub(crate) const PATHS: &str = "a path or a list of paths";
