//! Tables of keys: their form, and the words that many of them have in common.

use std::borrow::Cow;

/// One key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Values that the key takes, as words after "takes".
    pub takes: &'static str,
    /// Its default, as it would be written.
    pub default: Cow<'static, str>,
    /// Its description.
    pub about: &'static str,
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

impl Section {
    /// The key called `name`.
    pub(crate) fn key(&self, name: &str) -> Option<Key> {
        (self.keys)().into_iter().find(|key| key.name == name)
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

macro_rules! keys {
    ($($name:literal, $takes:expr, $default:expr, $about:expr;)*) => {
        vec![$(crate::keys::Key {
            name: $name,
            takes: $takes,
            default: std::borrow::Cow::Borrowed($default),
            about: $about,
        },)*]
    };
}
pub(super) use keys;

pub(super) const TEXTS: &str = "a string or a list of strings";
pub(super) const DURATION: &str = "a duration such as \"10s\"";
pub(super) const SIZE: &str = "a size such as \"1KiB\"";
pub(super) const BOOLEAN: &str = "true or false";
pub(super) const COUNT: &str = "a whole number";
pub(super) const TABLE: &str = "a table";
pub(super) const PATHS: &str = "a path or a list of paths";

/// A certificate and its key, in `[tls]` and in `[site.tls]`.
pub(super) fn pair() -> Vec<Key> {
    keys! {
        "cert", PATHS, "none", "PEM files, each a certificate followed by its chain; with several, a client gets the first it can check, elliptic curves before RSA.";
        "key", PATHS, "none", "PEM files with the private keys, in the order of `cert`.";
    }
}
