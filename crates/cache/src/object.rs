//! The stored object: one response with its record, its content and its state in the index. A
//! record and a complete body never change; an update is another object under the same key.

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

/// A stored object: a response that the cache keeps. It dereferences to its [`Record`], which most
/// callers need.
///
/// # Parts
/// - The *record* is what the response is: head, validators, times, tags, Vary signature. Only its
///   times and the number of the last ban passed can change.
/// - The *content* is where the body is: in memory, filling, shared with another object, or
///   external. It becomes complete once. Trailers, further forms and derived data lie with the
///   body.
/// - The *index state* is what eviction uses: hits, queue, weight, and the ledger that gets the
///   bytes back. Queue and weight change only under the shard's lock.
///
/// # Life
/// [`Lead::store`](crate::Lead::store) reserves the bytes and puts the object into the index while
/// its body is still filling. An [`ObjectWriter`](crate::ObjectWriter) pushes the body, and
/// [`Reader`]s follow. A lookup counts a hit and tests new bans. After its lifetime the object is
/// stale: it is served in grace and revalidated. A 304 makes a new object with the old body. The
/// object leaves the index by eviction, which may demote it to the lower tier, by an invalidation,
/// by expiry, or because another replaces it.
///
/// # References
/// The index holds one reference, and each delivery one more. An object outside the index lives
/// until its last delivery ends, and only then returns its bytes.
///
/// # Invariants
/// An object outside the index never enters it again. An incomplete body is never delivered as
/// complete, and leaves the index. No object is used before it has passed all bans. Nothing is
/// allocated for it before it is reserved.
///
/// # Layout
/// Behind the two counts of its `Arc`, the parts that a hit reads are in the first two cache lines.
/// The object and its counts are one allocation of 160 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    pub(crate) index_state: IndexState,
    content: Content,
    record: Record,
}

impl Object {
    /// Bytes to reserve for an object without its body.
    pub(crate) fn cost(new: &NewObject, key: &[u8], vary: Option<Variant<'_>>) -> u64 {
        size::arc::<Self>() + size::class(Record::block_len(new, key, vary))
    }

    /// [`Object::cost`] of a stored record.
    pub(crate) fn cost_of(record: &Record) -> u64 {
        size::arc::<Self>() + size::class(record.block_bytes())
    }

    /// An object whose body `fill` brings, or that is completed at once.
    pub(crate) fn new(record: Record, index_state: IndexState, fill: Option<Arc<Fill>>) -> Self {
        Self { index_state, content: Content::new(fill), record }
    }

    /// Returns the data attached to the body, if it is of type `T`.
    pub fn attached<T: DerivedData>(&self) -> Option<Arc<T>> {
        (self.content.forms()?.attached()? as Arc<dyn Any + Send + Sync>).downcast().ok()
    }

    /// Attaches `made` to the body for later requests, unless data is attached already or memory is
    /// short.
    pub fn attach(&self, made: Arc<dyn DerivedData>) {
        if let (Some(ledger), Some(forms)) = (&self.index_state.ledger, self.content.forms()) {
            forms.attach(ledger, made);
        }
    }

    /// The approximate number of lookups that found the object: concurrent hits of several cores
    /// may count once.
    pub fn hits(&self) -> u32 {
        self.index_state.hits()
    }

    /// Adds the hits of `old`, which this object replaces. Eviction does not count them.
    pub fn count_on(&self, old: &Self) {
        self.index_state.count_on(&old.index_state);
    }

    /// Sets whether the object is demoted when it is evicted, for the lower tier to read.
    pub fn set_sinks(&self, sinks: DemotionPolicy) {
        self.index_state.set_sinks(sinks);
    }

    /// The demotion policy of the object.
    pub fn sinks(&self) -> DemotionPolicy {
        self.index_state.sinks()
    }

    /// Returns true if the object is in the index.
    pub fn is_live(&self) -> bool {
        self.index_state.is_live()
    }

    /// The body's length: as declared while it arrives, as counted once it is complete.
    pub fn length(&self) -> Option<u64> {
        self.content.length()
    }

    /// The complete body, without lock, count or copy. `None` if it is incomplete or not in memory.
    pub fn whole(&self) -> Option<BorrowedBody<'_>> {
        self.content.state().whole()
    }

    /// Returns true if the body is still arriving, or has broken off.
    pub fn is_filling(&self) -> bool {
        matches!(self.content.state(), Location::Filling)
    }

    /// The body, if it is complete and not in memory as one piece.
    pub fn elsewhere(&self) -> Option<&Arc<dyn ExternalBody>> {
        if let Location::External(body) = self.content.state() { Some(body) } else { None }
    }

    /// A reader at the body's beginning, wherever the body is.
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader::of_object(self.body_keeper())
    }

    /// The trailers behind the body; `None` before the body is complete. Takes no lock.
    #[inline]
    pub fn trailers(&self) -> Option<&Trailers> {
        self.content.trailers()
    }

    /// The further form of the complete body with this number, below [`crate::FORMS`]. Takes no
    /// lock.
    #[inline]
    pub fn form(&self, number: usize) -> Option<Bytes> {
        self.content.forms()?.get(number)
    }

    /// Returns true if there is a further form with this number.
    #[inline]
    pub fn has_form(&self, number: usize) -> bool {
        self.content.forms().is_some_and(|forms| forms.has(number))
    }

    /// The length of the content without its coding, if known.
    #[inline]
    pub fn plain_length(&self) -> Option<u64> {
        self.content.forms()?.plain_length()
    }

    /// Notes the length of the content without its coding. To be called once the body is complete.
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

    /// Returns true if a client has asked for the content without a coding since the body was
    /// completed.
    pub fn is_plain_asked(&self) -> bool {
        self.content.forms().is_some_and(EncodedForms::is_plain_asked)
    }

    /// The effort with which the form was made; 0 without one.
    pub fn form_effort(&self, number: usize) -> u8 {
        self.content.forms().map_or(0, |forms| forms.effort(number))
    }

    /// Returns true if the body is complete, may have the form, and no caller has begun to make it
    /// with this effort.
    pub fn wants_form(&self, number: usize, effort: u8) -> bool {
        self.content.forms().is_some_and(|forms| forms.is_wanted(number, effort))
    }

    /// The form of the complete body for `key`. Takes no lock.
    pub fn keyed_form(&self, key: u64) -> Option<Bytes> {
        self.content.forms()?.keyed()?.get(key)
    }

    /// Returns true if there is a form for any key.
    #[inline]
    pub fn has_keyed_forms(&self) -> bool {
        self.content.forms().and_then(EncodedForms::keyed).is_some_and(KeyedForms::has_any)
    }

    /// Returns true if the body is complete, may have forms, and no caller has begun to make the
    /// one for `key`.
    pub fn wants_keyed_form(&self, key: u64) -> bool {
        let forms = self.content.forms();
        forms.is_some_and(|forms| forms.keyed().is_none_or(|keyed| keyed.is_wanted(key)))
    }

    /// A weak reference to the body.
    pub fn body_ref(self: &Arc<Self>) -> BodyRef {
        BodyRef(Arc::downgrade(&self.body_keeper()))
    }

    /// Further forms of the body, if it may have any.
    pub(crate) fn forms(&self) -> Option<&EncodedForms> {
        self.content.forms()
    }

    /// The body for another object, if it is one chunk that several may have. The other object
    /// reserves [`CompleteBody::OTHER_BYTES`].
    pub(crate) fn body_in_common(&self) -> Option<CompleteBody> {
        self.content.in_common()
    }

    /// The owner of the body, if it is another object.
    fn owner(&self) -> Option<&Arc<dyn BodyOwner>> {
        self.content.keeper()
    }

    /// The owner of the body, itself or another object.
    pub(crate) fn body_keeper(self: &Arc<Self>) -> Arc<dyn BodyOwner> {
        self.owner().map_or_else(|| Arc::clone(self) as Arc<dyn BodyOwner>, Arc::clone)
    }

    /// Returns true if `object` owns this object's body.
    pub(crate) fn delivers_of(&self, object: &Self) -> bool {
        match self.owner() {
            Some(owner) => std::ptr::addr_eq(Arc::as_ptr(owner), object),
            None => std::ptr::eq(self, object),
        }
    }

    /// Returns true if both objects have one body.
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
            None => self.index_state.place() & BROKEN != 0,
        }
    }

    /// Returns true if the object or its body is referenced outside the index.
    pub(crate) fn is_held(self: &Arc<Self>) -> bool {
        let is_owner_held = |owner: &Arc<dyn BodyOwner>| Arc::strong_count(owner) > 1;
        Arc::strong_count(self) > 1 || self.owner().is_some_and(is_owner_held)
    }

    /// Bytes that this object keeps in use, including its body and the owner of a shared body.
    pub(crate) fn memory(&self) -> u64 {
        self.own_memory() + self.content.held_memory()
    }

    /// The bytes that this object itself returns when it is dropped.
    fn own_memory(&self) -> u64 {
        Self::cost_of(&self.record) + self.content.own_memory()
    }

    /// Sets the complete body, whose bytes are reserved.
    pub(crate) fn complete(&self, body: CompleteBody) {
        self.content.complete(body);
    }

    /// Forgets the fill of a complete body.
    pub(crate) fn forget_fill(&self) {
        self.content.forget_fill();
    }
}

/// A weak reference to a stored body. It ends when the body leaves the store, and outlives a 304
/// that gives the body another head.
#[derive(Clone, Debug)]
pub struct BodyRef(Weak<dyn BodyOwner>);

impl BodyRef {
    /// Returns true if the body is still stored.
    pub fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Calls `look` with the complete body. Returns `None` if the body is gone, incomplete, or not
    /// in memory.
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
        if let Some(ledger) = &self.index_state.ledger {
            ledger.release(self.own_memory());
        }
    }
}
