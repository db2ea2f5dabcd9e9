//! A stored response: head, numbers, validators, body.

use std::sync::Arc;

use message::Status;

use crate::content::{Complete, Content, Keeper, State};
use crate::fill::Fill;
use crate::ledger::Ledger;
use crate::pieces::Whole;
use crate::reader::Reader;
use crate::size;
use crate::span::Span;
use crate::sync::{AtomicI64, AtomicU8, AtomicU32, Ordering};
use crate::tags::{COUNT_BYTES, Stored, Tags};
use crate::variant::{Select, Variant, is_for};

/// What the caller knows about a response to be stored. Times are milliseconds of the monotonic
/// clock.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// Status code.
    pub status: Status,
    /// The encoded HTTP/1 head block, as it will be sent.
    pub head: Box<[u8]>,
    /// Where the entity tag's value lies in `head`: offset and length. One longer than 64 KiB is
    /// not kept.
    pub etag: Option<(u32, u32)>,
    /// Last-Modified, seconds since 1970. One after 2105 is not kept (RFC 9110 8.8.2.1: it would be
    /// wrong).
    pub last_modified: Option<u64>,
    /// Date, or when the response came if it had none, seconds since 1970.
    pub date: Option<u64>,
    /// When the response's age was zero; before the clock's own zero for a response that came old.
    pub born_ms: i64,
    /// How long it is fresh, counted from `born_ms`.
    pub lifetime_ms: u64,
    /// How long after that it may answer while a fetch runs behind it.
    pub grace_ms: u64,
    /// How long it may answer when the origin answers with an error.
    pub stale_if_error_ms: u64,
    /// How long it may answer when the origin cannot be reached.
    pub stale_if_unreachable_ms: u64,
    /// Marks.
    pub flags: Flags,
    /// Surrogate keys.
    pub tags: Tags,
    /// Bytes the caller keeps with it, of which the cache knows nothing; empty for none.
    pub note: Box<[u8]>,
    /// The length of the body that will be pushed, when it is known: zero for none. A body of any
    /// other length is aborted.
    pub length: Option<u64>,
}

/// Marks the caller keeps with an object; the cache itself does not look at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The origin said that it is for all: it may answer requests that carry something personal.
    pub shared: bool,
    /// Never to be used without validation (no-cache).
    pub must_validate: bool,
    /// Never to be used stale, not even for a client that would take it (must-revalidate).
    pub never_stale: bool,
    /// The origin spoke HTTP/1.0.
    pub http10: bool,
    /// No response, but a mark: the last answer was for one request only, and the next ones are
    /// fetched without waiting for each other.
    pub hit_for_miss: bool,
    /// No response, but a mark: requests go past the store.
    pub hit_for_pass: bool,
    /// The body is coded in gzip, whoever asks for it.
    pub gzip: bool,
}

impl Flags {
    /// Whether it is no response, but a mark.
    pub fn is_mark(self) -> bool {
        self.hit_for_miss || self.hit_for_pass
    }

    fn bits(self) -> u16 {
        u16::from(self.shared)
            | u16::from(self.must_validate) << 1
            | u16::from(self.http10) << 2
            | u16::from(self.never_stale) << 3
            | u16::from(self.hit_for_miss) << 4
            | u16::from(self.hit_for_pass) << 5
            | u16::from(self.gzip) << 9
    }

    fn from_bits(bits: u16) -> Self {
        Self {
            shared: bits & 1 != 0,
            must_validate: bits & 2 != 0,
            http10: bits & 4 != 0,
            never_stale: bits & 8 != 0,
            hit_for_miss: bits & 16 != 0,
            hit_for_pass: bits & 32 != 0,
            gzip: bits & 512 != 0,
        }
    }
}

/// `Object::flags`: the object has a Vary.
const VARIES: u16 = 1 << 7;
/// `Object::flags`: the object has tags.
const TAGGED: u16 = 1 << 6;
/// `Object::flags`: the object has a note.
const NOTED: u16 = 1 << 8;
/// What an object's weight is counted in: every size class is a multiple of it.
const WEIGHT_BYTES: u64 = 16;

/// `Object::place`: in the index.
pub(crate) const LIVE: u8 = 1;
/// `Object::place`: in the main queue, not the small one.
pub(crate) const MAIN: u8 = 2;
/// `Object::place`: the body will never be complete; nothing that delivers it may enter the index.
pub(crate) const BROKEN: u8 = 4;

/// The highest value of the two frequency bits.
const FREQUENCY_MAX: u8 = 3;

/// A date or its absence in four bytes: seconds since 1970.
const NO_DATE: u32 = u32::MAX;

/// A stored response. Immutable but for its freshness (a soft purge ends it) and its counters.
///
/// The fields are laid out by hand: behind the two counts of its `Arc`, what a hit reads fills the
/// first cache line, and the whole with its counts is one 160-byte allocation.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    // A hit has just counted a reference, so this core owns the line: a plain load and store costs
    // nothing more here. Two cores hitting at the very same time may count one hit; a locked add on
    // every hit would cost more than the number is worth.
    hits: AtomicU32,
    frequency: AtomicU8,
    place: AtomicU8,
    flags: u16,
    fresh_until: AtomicI64,
    content: Content,
    born: i64,
    /// Key, Vary names, Vary signature, tags and their number if there are any, a note and its
    /// length if there is one, head: one allocation.
    block: Box<[u8]>,
    /// The newest ban it has passed.
    passed: AtomicU32,
    key_len: u32,
    spec_len: u32,
    /// With the tags and the note.
    signature_len: u32,
    pub(crate) id: u32,
    etag_at: u32,
    etag_len: u16,
    status: Status,
    lifetime: Span,
    // Spans: a soft purge may change them.
    grace: AtomicU32,
    stale_if_error: AtomicU32,
    stale_if_unreachable: Span,
    last_modified: u32,
    date: u32,
    /// What eviction counts for this object, in units of [`WEIGHT_BYTES`]; written under its
    /// shard's lock.
    weight: AtomicU32,
    /// To whom the bytes are given back; none when there was no room to reserve any.
    ledger: Option<Arc<Ledger>>,
}

/// New times for what is stored, in milliseconds; none to leave one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retime {
    /// When freshness ends, of the monotonic clock.
    pub fresh_until_ms: Option<i64>,
    /// How long after that it may answer while a fetch runs behind it.
    pub grace_ms: Option<u64>,
    /// How long it may answer when the origin answers with an error.
    pub stale_if_error_ms: Option<u64>,
}

/// What the cache adds to a [`NewObject`].
pub(crate) struct Making<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) vary: Option<Variant<'a>>,
    pub(crate) id: u32,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) fill: Option<Arc<Fill>>,
    /// The newest ban when its fetch began.
    pub(crate) passed: u32,
}

impl Object {
    /// Bytes to reserve for an object without its body.
    pub(crate) fn cost(new: &NewObject, key: &[u8], vary: Option<Variant<'_>>) -> u64 {
        let varying = vary.map_or(0, |vary| vary.spec.len() + vary.signature.len());
        let extra = tags_len(&new.tags) + note_len(&new.note);
        size::arc::<Self>() + size::class(key.len() + varying + extra + new.head.len())
    }

    pub(crate) fn new(new: &NewObject, making: Making<'_>) -> Self {
        let Making { key, vary, id, ledger, fill, passed } = making;
        let (spec, signature) = vary.map_or((&[][..], &[][..]), |vary| (vary.spec, vary.signature));
        let (etag_at, etag_len) = match new.etag {
            Some((at, len)) if u64::from(at) + u64::from(len) <= new.head.len() as u64 => {
                (at, u16::try_from(len).unwrap_or(0))
            }
            _ => (0, 0),
        };
        let lifetime = i64::try_from(new.lifetime_ms).unwrap_or(i64::MAX);
        let flag = |is: bool, flag: u16| if is { flag } else { 0 };
        Self {
            hits: AtomicU32::new(0),
            frequency: AtomicU8::new(0),
            place: AtomicU8::new(0),
            flags: new.flags.bits()
                | flag(vary.is_some(), VARIES)
                | flag(!new.tags.is_empty(), TAGGED)
                | flag(!new.note.is_empty(), NOTED),
            fresh_until: AtomicI64::new(new.born_ms.saturating_add(lifetime)),
            content: Content::new(fill),
            born: new.born_ms,
            block: block(key, spec, signature, new),
            passed: AtomicU32::new(passed),
            key_len: key.len() as u32,
            spec_len: spec.len() as u32,
            signature_len: (signature.len() + tags_len(&new.tags) + note_len(&new.note)) as u32,
            id,
            etag_at,
            etag_len,
            status: new.status,
            lifetime: Span::from_ms(new.lifetime_ms),
            grace: AtomicU32::new(Span::from_ms(new.grace_ms).bits()),
            stale_if_error: AtomicU32::new(Span::from_ms(new.stale_if_error_ms).bits()),
            stale_if_unreachable: Span::from_ms(new.stale_if_unreachable_ms),
            last_modified: pack_date(new.last_modified),
            date: pack_date(new.date),
            weight: AtomicU32::new(0),
            ledger,
        }
    }

    /// Status code.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The encoded HTTP/1 head block.
    pub fn head(&self) -> &[u8] {
        &self.block[self.head_at()..]
    }

    /// The key's bytes.
    pub fn key(&self) -> &[u8] {
        &self.block[..self.key_len as usize]
    }

    /// The names this response varies by and the signature it was fetched with; `None` without
    /// Vary.
    pub fn vary(&self) -> Option<Variant<'_>> {
        if self.flags & VARIES == 0 {
            return None;
        }
        let spec_at = self.key_len as usize;
        let signature_at = spec_at + self.spec_len as usize;
        let signature_end = self.tags_end() - self.stored_tags().map_or(0, Stored::block_bytes);
        Some(Variant {
            spec: &self.block[spec_at..signature_at],
            signature: &self.block[signature_at..signature_end],
        })
    }

    /// Surrogate keys as they are stored; `None` when there are none.
    pub(crate) fn stored_tags(&self) -> Option<Stored<'_>> {
        if self.flags & TAGGED == 0 {
            return None;
        }
        let (before, count) = self.block[..self.tags_end()].split_last_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (_, tags) = before.split_at(before.len() - count * size_of::<u64>());
        Some(Stored(tags.as_chunks().0))
    }

    /// The bytes its maker keeps with it; empty when there are none.
    pub fn note(&self) -> &[u8] {
        let end = self.tags_end();
        let behind = usize::from(self.flags & NOTED != 0) * COUNT_BYTES;
        &self.block[end..self.head_at() - behind]
    }

    /// Where what stands before the note ends.
    fn tags_end(&self) -> usize {
        let head_at = self.head_at();
        if self.flags & NOTED == 0 {
            return head_at;
        }
        let len = self.block[..head_at].last_chunk::<COUNT_BYTES>();
        let len = len.map_or(0, |len| u32::from_le_bytes(*len) as usize);
        head_at - COUNT_BYTES - len
    }

    /// Its surrogate keys.
    pub fn tags(&self) -> Tags {
        self.stored_tags().map_or_else(Tags::default, |tags| Tags::new(tags.iter().collect()))
    }

    /// Whether the request whose signatures `variant` computes may be answered with this variant
    /// (RFC 9111 4.1).
    pub fn matches(&self, variant: &mut Select<'_>) -> bool {
        self.vary().is_none_or(|vary| is_for(vary, variant))
    }

    /// The entity tag as it stands in the head.
    pub fn etag(&self) -> Option<&[u8]> {
        let at = self.etag_at as usize;
        (self.etag_len > 0).then(|| &self.head()[at..at + usize::from(self.etag_len)])
    }

    /// Last-Modified, seconds since 1970.
    pub fn last_modified(&self) -> Option<u64> {
        unpack_date(self.last_modified)
    }

    /// Date, seconds since 1970.
    pub fn date(&self) -> Option<u64> {
        unpack_date(self.date)
    }

    /// When its age was zero, monotonic milliseconds.
    pub fn born_ms(&self) -> i64 {
        self.born
    }

    /// Its age at `now_ms`.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        u64::try_from(i64::try_from(now_ms).unwrap_or(i64::MAX).saturating_sub(self.born))
            .unwrap_or(0)
    }

    /// How long it was to be fresh when it was stored.
    pub fn lifetime_ms(&self) -> u64 {
        self.lifetime.as_ms()
    }

    /// Until when it is fresh, monotonic milliseconds: `born_ms` plus the lifetime, or the moment
    /// of a soft purge.
    pub fn fresh_until_ms(&self) -> i64 {
        self.fresh_until.load(Ordering::Relaxed)
    }

    /// Whether it is fresh at `now_ms`.
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        i64::try_from(now_ms).is_ok_and(|now| now < self.fresh_until_ms())
    }

    /// How long it has been stale at `now_ms`; zero while it is fresh.
    pub fn stale_ms(&self, now_ms: u64) -> u64 {
        let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
        u64::try_from(now.saturating_sub(self.fresh_until_ms())).unwrap_or(0)
    }

    /// How long after its freshness it may answer while a fetch runs behind it.
    pub fn grace_ms(&self) -> u64 {
        Span::of_bits(self.grace.load(Ordering::Relaxed)).as_ms()
    }

    /// How long after its freshness it may answer when the origin answers with an error.
    pub fn stale_if_error_ms(&self) -> u64 {
        Span::of_bits(self.stale_if_error.load(Ordering::Relaxed)).as_ms()
    }

    /// How long after its freshness it may answer when the origin cannot be reached.
    pub fn stale_if_unreachable_ms(&self) -> u64 {
        self.stale_if_unreachable.as_ms()
    }

    /// Its marks.
    pub fn flags(&self) -> Flags {
        Flags::from_bits(self.flags)
    }

    /// How often a lookup found it (about: hits of several cores at the same time may count once).
    pub fn hits(&self) -> u32 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Whether it is still in the index.
    pub fn is_live(&self) -> bool {
        self.place.load(Ordering::Relaxed) & LIVE != 0
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

    /// Whether the body is still coming, or has broken off.
    pub fn is_filling(&self) -> bool {
        matches!(self.content.state(), State::Filling)
    }

    /// A reader at the body's beginning, wherever the body is.
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader::of_object(self.body_keeper())
    }

    // For the cache.

    fn head_at(&self) -> usize {
        self.key_len as usize + self.spec_len as usize + self.signature_len as usize
    }

    /// Whose body this one delivers, if it is another's.
    fn owner(&self) -> Option<&Arc<dyn Keeper>> {
        self.content.keeper()
    }

    /// Whoever keeps the body that this one delivers.
    pub(crate) fn body_keeper(self: &Arc<Self>) -> Arc<dyn Keeper> {
        self.owner().map_or_else(|| Arc::clone(self) as Arc<dyn Keeper>, Arc::clone)
    }

    /// Whether the body that this one delivers is kept by `object`.
    pub(crate) fn delivers_of(&self, object: &Self) -> bool {
        match self.owner() {
            Some(owner) => std::ptr::addr_eq(Arc::as_ptr(owner), object),
            None => std::ptr::eq(self, object),
        }
    }

    /// Counts a hit: the frequency bits are written only while they change.
    pub(crate) fn touch(&self) {
        self.hits.store(self.hits().saturating_add(1), Ordering::Relaxed);
        let frequency = self.frequency();
        if frequency < FREQUENCY_MAX {
            self.set_frequency(frequency + 1);
        }
    }

    pub(crate) fn frequency(&self) -> u8 {
        self.frequency.load(Ordering::Relaxed)
    }

    pub(crate) fn set_frequency(&self, frequency: u8) {
        self.frequency.store(frequency, Ordering::Relaxed);
    }

    pub(crate) fn place(&self) -> u8 {
        self.place.load(Ordering::Relaxed)
    }

    /// Only under the shard's lock.
    pub(crate) fn set_place(&self, place: u8) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Out of the index. Only under the shard's lock.
    pub(crate) fn set_out(&self) {
        self.set_place(self.place() & BROKEN);
    }

    /// The body will never be complete. Only under the shard's lock, or before anybody else has the
    /// object.
    pub(crate) fn set_broken(&self) {
        self.set_place(self.place() | BROKEN);
    }

    pub(crate) fn is_broken(&self) -> bool {
        match self.owner() {
            Some(owner) => owner.is_broken(),
            None => self.place() & BROKEN != 0,
        }
    }

    /// Whether somebody outside the index holds the object or its body.
    pub(crate) fn is_held(self: &Arc<Self>) -> bool {
        let is_owner_held = |owner: &Arc<dyn Keeper>| Arc::strong_count(owner) > 1;
        Arc::strong_count(self) > 1 || self.owner().is_some_and(is_owner_held)
    }

    /// The number of the newest ban it has passed.
    pub(crate) fn passed(&self) -> u32 {
        self.passed.load(Ordering::Relaxed)
    }

    /// It has passed the bans up to `number`; returns what it had passed before.
    pub(crate) fn pass(&self, number: u32) -> u32 {
        self.passed.fetch_max(number, Ordering::AcqRel)
    }

    pub(crate) fn weight(&self) -> u64 {
        u64::from(self.weight.load(Ordering::Relaxed)) * WEIGHT_BYTES
    }

    /// Only under the shard's lock. The weight is in whole units of [`WEIGHT_BYTES`], and at most
    /// 64 GiB.
    pub(crate) fn set_weight(&self, weight: u64) {
        let units = u32::try_from(weight.div_ceil(WEIGHT_BYTES)).unwrap_or(u32::MAX);
        self.weight.store(units, Ordering::Relaxed);
    }

    /// Bytes this object keeps in use, its body and the object it borrowed that from included.
    pub(crate) fn memory(&self) -> u64 {
        self.own_memory() + self.content.held_memory()
    }

    /// The bytes this object gives back itself when it is dropped.
    fn own_memory(&self) -> u64 {
        size::arc::<Self>() + size::class(self.block.len()) + self.content.own_memory()
    }

    /// Freshness ends at `now_ms` at the latest.
    pub(crate) fn expire(&self, now_ms: i64) {
        self.fresh_until.fetch_min(now_ms, Ordering::Relaxed);
    }

    /// Freshness ends at `until_ms` (monotonic milliseconds), and what follows it takes this long;
    /// none to leave a time as it is.
    pub(crate) fn retime(&self, times: &Retime) {
        if let Some(until_ms) = times.fresh_until_ms {
            self.fresh_until.store(until_ms, Ordering::Relaxed);
        }
        for (span, ms) in
            [(&self.grace, times.grace_ms), (&self.stale_if_error, times.stale_if_error_ms)]
        {
            if let Some(ms) = ms {
                span.store(Span::from_ms(ms).bits(), Ordering::Relaxed);
            }
        }
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

/// Bytes of the tags and their number.
fn tags_len(tags: &Tags) -> usize {
    if tags.is_empty() { 0 } else { tags.len() * size_of::<u64>() + COUNT_BYTES }
}

/// Bytes of a note and its length.
fn note_len(note: &[u8]) -> usize {
    if note.is_empty() { 0 } else { note.len() + COUNT_BYTES }
}

fn block(key: &[u8], spec: &[u8], signature: &[u8], new: &NewObject) -> Box<[u8]> {
    if new.tags.is_empty() && new.note.is_empty() {
        return [key, spec, signature, &new.head].concat().into_boxed_slice();
    }
    let count = |is_empty: bool, count: usize| match is_empty {
        true => Vec::new(),
        false => (count as u32).to_le_bytes().to_vec(),
    };
    let tags: Vec<u8> = new.tags.iter().flat_map(u64::to_le_bytes).collect();
    let tag_count = count(new.tags.is_empty(), new.tags.len());
    let note_len = count(new.note.is_empty(), new.note.len());
    let parts = [key, spec, signature, &tags, &tag_count, &new.note, &note_len, &new.head];
    parts.concat().into_boxed_slice()
}

impl Keeper for Object {
    fn state(&self) -> State<'_> {
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
        if let Some(ledger) = &self.ledger {
            ledger.release(self.own_memory());
        }
    }
}

fn pack_date(secs: Option<u64>) -> u32 {
    secs.and_then(|secs| u32::try_from(secs).ok()).unwrap_or(NO_DATE)
}

fn unpack_date(secs: u32) -> Option<u64> {
    (secs != NO_DATE).then(|| u64::from(secs))
}
