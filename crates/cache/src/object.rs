//! A stored response: its record, its content, and its standing with the index.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use message::Trailers;

use crate::borrowed_body::BorrowedBody;
use crate::content::{BodyOwner, CompleteBody, Content, ExternalBody, Location};
use crate::fill::Fill;
use crate::forms::{DerivedData, EncodedForms};
use crate::index_state::{BROKEN, DemotionPolicy, IndexState};
use crate::keyed_forms::KeyedForms;
use crate::reader::Reader;
use crate::record::{NewObject, Record};
use crate::size;
use crate::variant::Variant;

/// A stored response. It dereferences to its [`Record`], which is what most callers want of it.
///
/// Laid out by hand: behind the two counts of its `Arc`, what a hit reads is in the first two cache
/// lines, and the whole with its counts is one 160-byte allocation.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    pub(crate) standing: IndexState,
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
    pub(crate) fn new(record: Record, standing: IndexState, fill: Option<Arc<Fill>>) -> Self {
        Self { standing, content: Content::new(fill), record }
    }

    /// Returns what is attached to the body, if it is of type `T`.
    pub fn attached<T: DerivedData>(&self) -> Option<Arc<T>> {
        (self.content.forms()?.attached()? as Arc<dyn Any + Send + Sync>).downcast().ok()
    }

    /// Attaches `made` to the body, unless something is attached or the budget has no room for it.
    /// Whoever comes later finds it.
    pub fn attach(&self, made: Arc<dyn DerivedData>) {
        if let (Some(ledger), Some(forms)) = (&self.standing.ledger, self.content.forms()) {
            forms.attach(ledger, made);
        }
    }

    /// The number of lookups that found the object. The number is approximate: hits of several
    /// cores at the same time may count once.
    pub fn hits(&self) -> u32 {
        self.standing.hits()
    }

    /// Counts hits on from those of `old`, in whose place this object is. Eviction does not count
    /// them.
    pub fn count_on(&self, old: &Self) {
        self.standing.count_on(&old.standing);
    }

    /// Says what becomes of the object when it leaves memory. The cache itself does not look at it.
    pub fn set_sinks(&self, sinks: DemotionPolicy) {
        self.standing.set_sinks(sinks);
    }

    /// The fate of the object when it leaves memory.
    pub fn sinks(&self) -> DemotionPolicy {
        self.standing.sinks()
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
    pub fn whole(&self) -> Option<BorrowedBody<'_>> {
        self.content.state().whole()
    }

    /// Returns true if the body is still coming, or has broken off.
    pub fn is_filling(&self) -> bool {
        matches!(self.content.state(), Location::Filling)
    }

    /// The body, if it is complete and not in memory as one piece.
    pub fn elsewhere(&self) -> Option<&Arc<dyn ExternalBody>> {
        if let Location::Elsewhere(body) = self.content.state() { Some(body) } else { None }
    }

    /// A reader at the body's beginning, wherever the body is.
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader::of_object(self.body_keeper())
    }

    /// The trailers that came behind the body; `None` before that is complete. No lock.
    #[inline]
    pub fn trailers(&self) -> Option<&Trailers> {
        self.content.trailers()
    }

    /// The further form of the complete body with this number, below [`crate::FORMS`]. No lock.
    #[inline]
    pub fn form(&self, number: usize) -> Option<Bytes> {
        self.content.forms()?.get(number)
    }

    /// Returns true if there is a further form with this number.
    #[inline]
    pub fn has_form(&self, number: usize) -> bool {
        self.content.forms().is_some_and(|forms| forms.has(number))
    }

    /// The length of the content without its coding, where that is known.
    #[inline]
    pub fn plain_length(&self) -> Option<u64> {
        self.content.forms()?.plain_length()
    }

    /// Notes the length of the content without its coding, once the body is complete.
    pub fn note_plain_length(&self, length: u64) {
        if let Some(forms) = self.content.forms() {
            forms.note_plain_length(length);
        }
    }

    /// Notes that a client has asked for the content without a coding.
    #[inline]
    pub fn note_plain_asked(&self) {
        if let Some(forms) = self.content.forms() {
            forms.note_plain_asked();
        }
    }

    /// Returns true if a client has asked for the content without a coding since the body is there.
    pub fn is_plain_asked(&self) -> bool {
        self.content.forms().is_some_and(EncodedForms::is_plain_asked)
    }

    /// The effort that the form with this number was made with; 0 without one.
    pub fn form_effort(&self, number: usize) -> u8 {
        self.content.forms().map_or(0, |forms| forms.effort(number))
    }

    /// Returns true if the body is complete, may have the form, and nobody has begun to make it
    /// with as much effort.
    pub fn wants_form(&self, number: usize, effort: u8) -> bool {
        self.content.forms().is_some_and(|forms| forms.is_wanted(number, effort))
    }

    /// The form of the complete body for `key`. No lock.
    pub fn keyed_form(&self, key: u64) -> Option<Bytes> {
        self.content.forms()?.keyed()?.get(key)
    }

    /// Returns true if there is a form for any key.
    #[inline]
    pub fn has_keyed_forms(&self) -> bool {
        self.content.forms().and_then(EncodedForms::keyed).is_some_and(KeyedForms::has_any)
    }

    /// Returns true if the body is complete, may have forms, and nobody has begun to make the one
    /// for `key`.
    pub fn wants_keyed_form(&self, key: u64) -> bool {
        let forms = self.content.forms();
        forms.is_some_and(|forms| forms.keyed().is_none_or(|keyed| keyed.is_wanted(key)))
    }

    /// A way to the body for as long as somebody else keeps it.
    pub fn body_ref(self: &Arc<Self>) -> BodyRef {
        BodyRef(Arc::downgrade(&self.body_keeper()))
    }

    /// Further forms of the body, if it may have any.
    pub(crate) fn forms(&self) -> Option<&EncodedForms> {
        self.content.forms()
    }

    /// Whose body this one delivers, if it is another's.
    fn owner(&self) -> Option<&Arc<dyn BodyOwner>> {
        self.content.keeper()
    }

    /// Whoever keeps the body that this one delivers.
    pub(crate) fn body_keeper(self: &Arc<Self>) -> Arc<dyn BodyOwner> {
        self.owner().map_or_else(|| Arc::clone(self) as Arc<dyn BodyOwner>, Arc::clone)
    }

    /// Returns true if `object` keeps the body that this one delivers.
    pub(crate) fn delivers_of(&self, object: &Self) -> bool {
        match self.owner() {
            Some(owner) => std::ptr::addr_eq(Arc::as_ptr(owner), object),
            None => std::ptr::eq(self, object),
        }
    }

    /// Returns true if both deliver the same body.
    pub(crate) fn shares_body(&self, other: &Self) -> bool {
        match other.owner() {
            Some(owner) => {
                let kept = Arc::as_ptr(owner);
                self.owner().map_or_else(
                    || std::ptr::addr_eq(self, kept),
                    |own| std::ptr::addr_eq(Arc::as_ptr(own), kept),
                )
            }
            None => self.delivers_of(other),
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
        let is_owner_held = |owner: &Arc<dyn BodyOwner>| Arc::strong_count(owner) > 1;
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
    pub(crate) fn complete(&self, body: CompleteBody) {
        self.content.complete(body);
    }

    /// Forgets the state of filling; the body is complete.
    pub(crate) fn forget_fill(&self) {
        self.content.forget_fill();
    }
}

/// A way to a stored body that does not keep it: it ends when the body leaves the store, and
/// outlives a 304 by which the body got another head.
#[derive(Clone, Debug)]
pub struct BodyRef(Weak<dyn BodyOwner>);

impl BodyRef {
    /// Returns true if the body is still there.
    pub fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Calls `look` with the complete body. `None` if it is gone, incomplete, or not in memory.
    pub fn whole<T>(&self, look: impl FnOnce(BorrowedBody<'_>) -> T) -> Option<T> {
        self.0.upgrade()?.state().whole().map(look)
    }
}

impl Deref for Object {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl BodyOwner for Object {
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

    fn forms(&self) -> Option<&EncodedForms> {
        self.content.forms()
    }

    fn trailers(&self) -> Option<&Trailers> {
        self.content.trailers()
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(ledger) = &self.standing.ledger {
            ledger.release(self.own_memory());
        }
    }
}
