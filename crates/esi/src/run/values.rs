//! Values of the variables that a page has set. Their size never exceeds the limits.

use std::collections::BTreeMap;

use crate::limits::Limits;

use super::value_piece::{Author, Purpose, ValuePiece, write_value};

/// The variables that a page has set.
#[derive(Debug)]
pub(super) struct Values {
    limits: Limits,
    all: BTreeMap<Box<[u8]>, Vec<u8>>,
    /// Pieces of the values that contain a client's text.
    pieces: BTreeMap<Box<[u8]>, Vec<ValuePiece>>,
}

impl Values {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { limits, all: BTreeMap::new(), pieces: BTreeMap::new() }
    }

    /// Most bytes of a value.
    pub(super) const fn most_bytes(&self) -> usize {
        self.limits.value_bytes
    }

    /// The value of a variable, if it is set.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Vec<u8>> {
        self.all.get(name)
    }

    /// The pieces of a value that contains a client's text.
    pub(super) fn pieces(&self, name: &[u8]) -> Option<&[ValuePiece]> {
        self.pieces.get(name).map(Vec::as_slice)
    }

    /// Sets a variable.
    pub(super) fn assign(&mut self, name: &[u8], mut value: Vec<u8>) {
        value.truncate(self.limits.value_bytes);
        let all = &mut self.all;
        if all.len() < self.limits.names || all.contains_key(name) {
            all.insert(name.into(), value);
            self.pieces.remove(name);
        }
    }

    /// Sets a variable to a value that may contain a client's text.
    pub(super) fn assign_pieces(&mut self, name: &[u8], pieces: Vec<ValuePiece>) {
        let is_own = pieces.iter().all(|piece| piece.author == Author::Page);
        self.assign(name, write_value(pieces.clone(), Purpose::Test));
        if !is_own && self.all.contains_key(name) {
            self.pieces.insert(name.into(), pieces);
        }
    }

    /// Unsets a variable.
    pub(super) fn remove(&mut self, name: &[u8]) {
        self.all.remove(name);
    }
}
