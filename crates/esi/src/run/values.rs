//! The variables that a page has set.

use std::collections::BTreeMap;

use crate::limits::Limits;

use super::value_piece::{Author, Purpose, ValuePiece, write_value};

/// The variables that a page has set.
#[derive(Debug)]
pub(super) struct Values {
    limits: Limits,
    all: BTreeMap<Box<[u8]>, Vec<u8>>,
    /// The pieces of those values that a client has a part in.
    words: BTreeMap<Box<[u8]>, Vec<ValuePiece>>,
}

impl Values {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { limits, all: BTreeMap::new(), words: BTreeMap::new() }
    }

    /// The most bytes of a value.
    pub(super) const fn most_bytes(&self) -> usize {
        self.limits.value_bytes
    }

    /// The value of a variable, if it is set.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Vec<u8>> {
        self.all.get(name)
    }

    /// The pieces of a value that a client has a part in.
    pub(super) fn words(&self, name: &[u8]) -> Option<&[ValuePiece]> {
        self.words.get(name).map(Vec::as_slice)
    }

    /// Sets a variable.
    pub(super) fn assign(&mut self, name: &[u8], mut value: Vec<u8>) {
        value.truncate(self.limits.value_bytes);
        let all = &mut self.all;
        if all.len() < self.limits.names || all.contains_key(name) {
            all.insert(name.into(), value);
            self.words.remove(name);
        }
    }

    /// Sets a variable to a value that a client may have a part in.
    pub(super) fn assign_words(&mut self, name: &[u8], words: Vec<ValuePiece>) {
        let is_own = words.iter().all(|word| word.author == Author::Page);
        self.assign(name, write_value(words.clone(), Purpose::Test));
        if !is_own && self.all.contains_key(name) {
            self.words.insert(name.into(), words);
        }
    }

    /// Removes a variable.
    pub(super) fn remove(&mut self, name: &[u8]) {
        self.all.remove(name);
    }
}
