//! Tables of keys: their form, and the words that many of them have in common. What `larder.toml`
//! may say stands beside the parsers; [`crate::parse::TOP`] leads to every table. The parser looks
//! unknown keys up in them, its messages quote them, and the reference page is made from them.

use std::borrow::Cow;

use crate::model::Config;

/// One key of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Values that the key takes, as words after "takes".
    pub takes: &'static str,
    /// Its default, as it would be written.
    pub default: Cow<'static, str>,
    /// Its description.
    pub about: &'static str,
    pub(crate) marks: &'static [Mark],
    /// The tables that are its value, if it has such.
    pub(crate) section: Option<&'static Section>,
    pub(crate) restart: Option<Restart>,
}

/// Facts about a key: where it may stand, and who may read its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It stands in each node's own file, not in what the nodes of a cluster share. Said of keys at
    /// the top of the file and of limits; what is in a table goes with the table.
    Own,
    /// It stands in a site alone, and in no preset.
    SiteOnly,
    /// It may stand in a site beside a VCL.
    BesideVcl,
    /// Messages that quote its line do not show its value.
    Secret,
}

/// A setting that takes a restart, since it concerns what the daemon opens or makes once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Returns true if it is another in the second configuration.
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
    /// Keys that a later version will have, each with what to do until then.
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

    /// The section and all that stand in it, each once, in the order of the keys.
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

    /// The key called `name`, or in a table that is one: `memory.size`.
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
