//! A stored response: its record, its content, and its standing with the index.

use std::ops::Deref;
use std::sync::Arc;

use crate::content::{Complete, Content, Elsewhere, Keeper, Location};
use crate::fill::Fill;
use crate::pieces::Whole;
use crate::reader::Reader;
use crate::record::{NewObject, Record};
use crate::size;
use crate::standing::{BROKEN, Standing};
use crate::variant::Variant;

/// A stored response. It dereferences to its [`Record`], which is what most callers want of it.
///
/// Laid out by hand: behind the two counts of its `Arc`, what a hit reads is in the first two cache
/// lines, and the whole with its counts is one 160-byte allocation.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    pub(crate) standing: Standing,
    content: Content,
    record: Record,
}

impl Object {
    /// Bytes to reserve for an object without its body.
    pub(crate) fn cost(new: &NewObject, key: &[u8], vary: Option<Variant<'_>>) -> u64 {
        size::arc::<Self>() + size::class(Record::block_len(new, key, vary))
    }

    /// The same, where there is a record.
    pub(crate) fn cost_of(record: &Record) -> u64 {
        size::arc::<Self>() + size::class(record.block_bytes())
    }

    /// An object whose body `fill` brings, or that is completed at once.
    pub(crate) fn new(record: Record, standing: Standing, fill: Option<Arc<Fill>>) -> Self {
        Self { standing, content: Content::new(fill), record }
    }

    /// The number of lookups that found the object. The number is approximate: hits of several
    /// cores at the same time may count once.
    pub fn hits(&self) -> u32 {
        self.standing.hits()
    }

    /// Returns true if the object is still in the index.
    pub fn is_live(&self) -> bool {
        self.standing.is_live()
    }

    /// The body's length: as declared while it comes, as counted when it is complete.
    pub fn length(&self) -> Option<u64> {
        self.content.length()
    }

    /// The complete body; `None` while it is still coming, and where it is not in memory. No lock,
    /// no count, no copy.
    pub fn whole(&self) -> Option<Whole<'_>> {
        self.content.state().whole()
    }

    /// Returns true if the body is still coming, or has broken off.
    pub fn is_filling(&self) -> bool {
        matches!(self.content.state(), Location::Filling)
    }

    /// The body, if it is complete and not in memory as one piece.
    pub fn elsewhere(&self) -> Option<&Arc<dyn Elsewhere>> {
        if let Location::Elsewhere(body) = self.content.state() { Some(body) } else { None }
    }

    /// A reader at the body's beginning, wherever the body is.
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader::of_object(self.body_keeper())
    }

    /// Whose body this one delivers, if it is another's.
    fn owner(&self) -> Option<&Arc<dyn Keeper>> {
        self.content.keeper()
    }

    /// Whoever keeps the body that this one delivers.
    pub(crate) fn body_keeper(self: &Arc<Self>) -> Arc<dyn Keeper> {
        self.owner().map_or_else(|| Arc::clone(self) as Arc<dyn Keeper>, Arc::clone)
    }

    /// Returns true if `object` keeps the body that this one delivers.
    pub(crate) fn delivers_of(&self, object: &Self) -> bool {
        match self.owner() {
            Some(owner) => std::ptr::addr_eq(Arc::as_ptr(owner), object),
            None => std::ptr::eq(self, object),
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        match self.owner() {
            Some(owner) => owner.is_broken(),
            None => self.standing.place() & BROKEN != 0,
        }
    }

    /// Returns true if somebody outside the index holds the object or its body.
    pub(crate) fn is_held(self: &Arc<Self>) -> bool {
        let is_owner_held = |owner: &Arc<dyn Keeper>| Arc::strong_count(owner) > 1;
        Arc::strong_count(self) > 1 || self.owner().is_some_and(is_owner_held)
    }

    /// Bytes this object keeps in use, its body and the object it borrowed that from included.
    pub(crate) fn memory(&self) -> u64 {
        self.own_memory() + self.content.held_memory()
    }

    /// The bytes this object gives back itself when it is dropped.
    fn own_memory(&self) -> u64 {
        Self::cost_of(&self.record) + self.content.own_memory()
    }

    /// Gives the object its complete body. The body's bytes have been reserved.
    pub(crate) fn complete(&self, body: Complete) {
        self.content.complete(body);
    }

    /// Forgets the state of filling; the body is complete.
    pub(crate) fn forget_fill(&self) {
        self.content.forget_fill();
    }
}

impl Deref for Object {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl Keeper for Object {
    fn state(&self) -> Location<'_> {
        self.content.state()
    }

    fn length(&self) -> Option<u64> {
        self.length()
    }

    fn fill(&self) -> Option<Arc<Fill>> {
        self.content.fill()
    }

    fn is_broken(&self) -> bool {
        self.is_broken()
    }

    fn memory(&self) -> u64 {
        self.memory()
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(ledger) = &self.standing.ledger {
            ledger.release(self.own_memory());
        }
    }
}
