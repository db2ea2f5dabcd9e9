//! The record of a response: head, validators, times, tags and the fields that select it. It is
//! immutable except for its times and the bans passed, and does not depend on where the body is.

use codec::Coding;
use message::Status;

use crate::compact_duration::CompactDuration;
use crate::sync::{AtomicI64, AtomicU32, Ordering};
use crate::tags::{COUNT_BYTES, StoredTags, Tags};
use crate::variant::{SignatureFunction, Variant, is_for};

/// A response to be stored. Times are milliseconds of the monotonic clock.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// Status code.
    pub status: Status,
    /// The encoded HTTP/1 head block, as it will be sent.
    pub head: Box<[u8]>,
    /// Offset and length of the entity tag's value in `head`. A value longer than 64 KiB is not
    /// stored.
    pub etag: Option<(u32, u32)>,
    /// Last-Modified, in seconds since 1970. One after 2105 is not stored (RFC 9110 8.8.2.1: it
    /// would be wrong).
    pub last_modified: Option<u64>,
    /// Date, or the time of reception without one, in seconds since 1970.
    pub date: Option<u64>,
    /// The time at which the response's age was zero. It is negative for a response that was older
    /// than the clock.
    pub born_ms: i64,
    /// The time that the response is fresh, counted from `born_ms`.
    pub lifetime_ms: u64,
    /// The time after the lifetime in which the response may answer while a background fetch renews
    /// it.
    pub grace_ms: u64,
    /// The time after the lifetime in which the response may answer when the origin answers with an
    /// error.
    pub stale_if_error_ms: u64,
    /// The time after the lifetime in which the response may answer when the origin cannot be
    /// reached.
    pub stale_if_unreachable_ms: u64,
    /// The caller's flags.
    pub flags: Flags,
    /// Surrogate keys.
    pub tags: Tags,
    /// Opaque bytes of the caller; often empty.
    pub note: Box<[u8]>,
    /// The length of the body to be pushed, if known: zero for none. A body of any other length is
    /// aborted.
    pub length: Option<u64>,
}

/// Flags of the caller, kept with an object. The cache does not interpret them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The origin declared it public: it may answer requests with personal fields.
    pub shared: bool,
    /// It must not be used without revalidation (no-cache).
    pub must_validate: bool,
    /// It must never be served stale, even to a client that accepts it (must-revalidate).
    pub never_stale: bool,
    /// The origin spoke HTTP/1.0.
    pub http10: bool,
    /// A hit-for-miss mark instead of a response: requests fetch without waiting for each other.
    pub hit_for_miss: bool,
    /// A hit-for-pass mark instead of a response: requests bypass the store.
    pub hit_for_pass: bool,
    /// The coding of the stored body.
    pub coding: Coding,
    /// Each client gets the body in an accepted coding: decoded if necessary, or in a further form.
    pub negotiated: bool,
    /// The body was coded by this server, not by the origin.
    pub coded_here: bool,
    /// The body is an ESI page, to be assembled for each request.
    pub esi: bool,
    /// The body is a page with nginx's server-side includes.
    pub ssi: bool,
    /// The assembled page is sent in gzip to clients that accept it.
    pub gzip_page: bool,
    /// The content may serve as a dictionary for other responses (RFC 9842). It is not an assembled
    /// page.
    pub dictionary: bool,
}

impl Flags {
    /// Returns true if the object may have further forms of the body, or derived data.
    pub fn may_have_forms(self) -> bool {
        self.negotiated || self.esi || self.ssi || self.dictionary
    }

    /// Returns true if this is a mark instead of a response.
    pub fn is_mark(self) -> bool {
        self.hit_for_miss || self.hit_for_pass
    }

    /// One bit has two meanings, because no assembled page is a dictionary.
    fn bits(self) -> u16 {
        let is_page = self.esi || self.ssi;
        u16::from(self.shared)
            | u16::from(self.must_validate) << 1
            | u16::from(self.http10) << 2
            | u16::from(self.never_stale) << 3
            | u16::from(self.hit_for_miss) << 4
            | u16::from(self.hit_for_pass) << 5
            | (self.coding as u16) << 9
            | u16::from(self.negotiated) << 11
            | u16::from(self.coded_here) << 12
            | u16::from(self.esi) << 13
            | u16::from(self.ssi) << 14
            | u16::from(if is_page { self.gzip_page } else { self.dictionary }) << 15
    }

    fn from_bits(bits: u16) -> Self {
        let is_page = bits & (1 << 13 | 1 << 14) != 0;
        Self {
            shared: bits & 1 != 0,
            must_validate: bits & 2 != 0,
            http10: bits & 4 != 0,
            never_stale: bits & 8 != 0,
            hit_for_miss: bits & 16 != 0,
            hit_for_pass: bits & 32 != 0,
            coding: Coding::ALL[usize::from(bits >> 9 & 3)],
            negotiated: bits & 1 << 11 != 0,
            coded_here: bits & 1 << 12 != 0,
            esi: bits & 1 << 13 != 0,
            ssi: bits & 1 << 14 != 0,
            gzip_page: is_page && bits & 1 << 15 != 0,
            dictionary: !is_page && bits & 1 << 15 != 0,
        }
    }
}

/// `Record::flags`: the response has a Vary.
const VARIES: u16 = 1 << 7;
/// `Record::flags`: the response has tags.
const TAGGED: u16 = 1 << 6;
/// `Record::flags`: the response has a note.
const NOTED: u16 = 1 << 8;

/// Bytes of the Vary names' length, which follows the signature.
const SPEC_LEN_BYTES: usize = 4;

/// The value of an absent date. A date takes four bytes: seconds since 1970.
const NO_DATE: u32 = u32::MAX;

/// A stored response without its body. It is immutable except for the bans passed and the times,
/// which invalidations and programs change.
///
/// The order of the fields is chosen by hand: those that a hit reads come first.
#[derive(Debug)]
#[repr(C)]
pub struct Record {
    flags: u16,
    status: Status,
    /// The newest ban that the response has passed.
    passed: AtomicU32,
    fresh_until: AtomicI64,
    born: i64,
    /// One allocation: key; Vary names, Vary signature and the names' length, if it varies; tags
    /// and their number, if any; a note and its length, if any; head.
    block: Box<[u8]>,
    key_len: u32,
    head_at: u32,
    etag_at: u32,
    etag_len: u16,
    lifetime: CompactDuration,
    // A [`CompactDuration`], as the two below. A soft purge may change it.
    grace: AtomicU32,
    stale_if_error: AtomicU32,
    stale_if_unreachable: CompactDuration,
    last_modified: u32,
    date: u32,
}

/// New times of stored responses, in milliseconds. `None` leaves a time as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LifetimeUpdate {
    /// The end of freshness on the monotonic clock.
    pub fresh_until_ms: Option<i64>,
    /// The time after freshness in which the object may answer while a background fetch renews it.
    pub grace_ms: Option<u64>,
    /// The time after freshness in which the object may answer when the origin answers with an
    /// error.
    pub stale_if_error_ms: Option<u64>,
}

/// The fields of a record at one moment.
pub(crate) struct RecordFields {
    pub(crate) flags: u16,
    pub(crate) status: Status,
    pub(crate) passed: u32,
    pub(crate) fresh_until_ms: i64,
    pub(crate) born_ms: i64,
    pub(crate) key_len: u32,
    pub(crate) head_at: u32,
    pub(crate) etag_at: u32,
    pub(crate) etag_len: u16,
    pub(crate) lifetime: CompactDuration,
    pub(crate) grace: CompactDuration,
    pub(crate) stale_if_error: CompactDuration,
    pub(crate) stale_if_unreachable: CompactDuration,
    pub(crate) last_modified: u32,
    pub(crate) date: u32,
}

impl Record {
    /// Bytes of the record's block.
    pub(crate) fn block_len(new: &NewObject, key: &[u8], vary: Option<Variant<'_>>) -> usize {
        let varying =
            vary.map_or(0, |vary| vary.spec.len() + vary.signature.len() + SPEC_LEN_BYTES);
        key.len() + varying + tags_len(&new.tags) + note_len(&new.note) + new.head.len()
    }

    /// The record of `new`, whose fetch began when `passed` was the newest ban.
    pub(crate) fn new(new: &NewObject, key: &[u8], vary: Option<Variant<'_>>, passed: u32) -> Self {
        let (etag_at, etag_len) = match new.etag {
            Some((at, len)) if u64::from(at) + u64::from(len) <= new.head.len() as u64 => {
                (at, u16::try_from(len).unwrap_or(0))
            }
            _ => (0, 0),
        };
        let lifetime = i64::try_from(new.lifetime_ms).unwrap_or(i64::MAX);
        let flag = |is: bool, flag: u16| if is { flag } else { 0 };
        let block = block(new, key, vary);
        Self {
            flags: new.flags.bits()
                | flag(vary.is_some(), VARIES)
                | flag(!new.tags.is_empty(), TAGGED)
                | flag(!new.note.is_empty(), NOTED),
            status: new.status,
            passed: AtomicU32::new(passed),
            fresh_until: AtomicI64::new(new.born_ms.saturating_add(lifetime)),
            born: new.born_ms,
            key_len: key.len() as u32,
            head_at: (block.len() - new.head.len()) as u32,
            block,
            etag_at,
            etag_len,
            lifetime: CompactDuration::from_ms(new.lifetime_ms),
            grace: AtomicU32::new(CompactDuration::from_ms(new.grace_ms).bits()),
            stale_if_error: AtomicU32::new(CompactDuration::from_ms(new.stale_if_error_ms).bits()),
            stale_if_unreachable: CompactDuration::from_ms(new.stale_if_unreachable_ms),
            last_modified: pack_date(new.last_modified),
            date: pack_date(new.date),
        }
    }

    /// A copy of the response to be stored again, without its body.
    pub fn renewed(&self) -> NewObject {
        NewObject {
            status: self.status,
            head: self.head().into(),
            etag: (self.etag_len > 0).then_some((self.etag_at, u32::from(self.etag_len))),
            last_modified: self.last_modified(),
            date: self.date(),
            born_ms: self.born,
            // A soft purge may have ended it earlier.
            lifetime_ms: u64::try_from(self.fresh_until_ms().saturating_sub(self.born))
                .unwrap_or(0),
            grace_ms: self.grace_ms(),
            stale_if_error_ms: self.stale_if_error_ms(),
            stale_if_unreachable_ms: self.stale_if_unreachable_ms(),
            flags: self.flags(),
            tags: self.tags(),
            note: self.note().into(),
            length: None,
        }
    }

    /// Status code.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The encoded HTTP/1 head block.
    pub fn head(&self) -> &[u8] {
        &self.block[self.head_at as usize..]
    }

    /// The key's bytes.
    pub fn key(&self) -> &[u8] {
        &self.block[..self.key_len as usize]
    }

    /// The names that this response varies by, and the signature of the request it was fetched
    /// with; `None` without Vary.
    pub fn vary(&self) -> Option<Variant<'_>> {
        if self.flags & VARIES == 0 {
            return None;
        }
        let end = match self.flags & (TAGGED | NOTED) {
            0 => self.head_at as usize,
            _ => self.tags_end() - self.stored_tags().map_or(0, StoredTags::block_bytes),
        };
        let (varying, spec_len) =
            self.block[self.key_len as usize..end].split_last_chunk::<SPEC_LEN_BYTES>()?;
        let (spec, signature) = varying.split_at(u32::from_le_bytes(*spec_len) as usize);
        Some(Variant { spec, signature })
    }

    /// The stored form of the surrogate keys; `None` without any.
    pub(crate) fn stored_tags(&self) -> Option<StoredTags<'_>> {
        if self.flags & TAGGED == 0 {
            return None;
        }
        let (before, count) = self.block[..self.tags_end()].split_last_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (_, tags) = before.split_at(before.len() - count * size_of::<u64>());
        Some(StoredTags(tags.as_chunks().0))
    }

    /// The caller's opaque bytes; may be empty.
    pub fn note(&self) -> &[u8] {
        let end = self.tags_end();
        let behind = usize::from(self.flags & NOTED != 0) * COUNT_BYTES;
        &self.block[end..self.head_at as usize - behind]
    }

    /// The end of the part before the note.
    fn tags_end(&self) -> usize {
        let head_at = self.head_at as usize;
        if self.flags & NOTED == 0 {
            return head_at;
        }
        let len = self.block[..head_at].last_chunk::<COUNT_BYTES>();
        let len = len.map_or(0, |len| u32::from_le_bytes(*len) as usize);
        head_at - COUNT_BYTES - len
    }

    /// The surrogate keys.
    pub fn tags(&self) -> Tags {
        self.stored_tags().map_or_else(Tags::default, |tags| Tags::new(tags.iter().collect()))
    }

    /// Returns true if this variant may answer the request whose signatures `variant` computes (RFC
    /// 9111 4.1).
    pub fn matches(&self, variant: &mut SignatureFunction<'_>) -> bool {
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

    /// The time at which its age was zero, in milliseconds of the monotonic clock.
    pub fn born_ms(&self) -> i64 {
        self.born
    }

    /// Its age at `now_ms`.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        u64::try_from(i64::try_from(now_ms).unwrap_or(i64::MAX).saturating_sub(self.born))
            .unwrap_or(0)
    }

    /// The freshness lifetime with which the response was stored, in milliseconds.
    pub fn lifetime_ms(&self) -> u64 {
        self.lifetime.as_ms()
    }

    /// The end of freshness, in milliseconds of the monotonic clock: `born_ms` plus the lifetime,
    /// or the time of a soft purge.
    pub fn fresh_until_ms(&self) -> i64 {
        self.fresh_until.load(Ordering::Relaxed)
    }

    /// Returns true if the response is fresh at `now_ms`.
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        i64::try_from(now_ms).is_ok_and(|now| now < self.fresh_until_ms())
    }

    /// The time that the response has been stale at `now_ms`; zero while it is fresh.
    pub fn stale_ms(&self, now_ms: u64) -> u64 {
        let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
        u64::try_from(now.saturating_sub(self.fresh_until_ms())).unwrap_or(0)
    }

    /// The time after freshness in which the response may answer while a background fetch renews
    /// it.
    pub fn grace_ms(&self) -> u64 {
        CompactDuration::of_bits(self.grace.load(Ordering::Relaxed)).as_ms()
    }

    /// The time after freshness in which the response may answer when the origin answers with an
    /// error.
    pub fn stale_if_error_ms(&self) -> u64 {
        CompactDuration::of_bits(self.stale_if_error.load(Ordering::Relaxed)).as_ms()
    }

    /// The time after freshness in which the response may answer when the origin cannot be reached.
    pub fn stale_if_unreachable_ms(&self) -> u64 {
        self.stale_if_unreachable.as_ms()
    }

    /// The flags.
    pub fn flags(&self) -> Flags {
        Flags::from_bits(self.flags)
    }

    /// The record with the ban number `passed`, for a record from a store whose bans were numbered
    /// otherwise.
    #[must_use]
    pub fn having_passed(mut self, passed: u32) -> Self {
        self.passed = AtomicU32::new(passed);
        self
    }

    // For the cache.

    /// The fields at this moment.
    pub(crate) fn fields(&self) -> RecordFields {
        let span = |bits: &AtomicU32| CompactDuration::of_bits(bits.load(Ordering::Relaxed));
        RecordFields {
            flags: self.flags,
            status: self.status,
            passed: self.passed(),
            fresh_until_ms: self.fresh_until_ms(),
            born_ms: self.born,
            key_len: self.key_len,
            head_at: self.head_at,
            etag_at: self.etag_at,
            etag_len: self.etag_len,
            lifetime: self.lifetime,
            grace: span(&self.grace),
            stale_if_error: span(&self.stale_if_error),
            stale_if_unreachable: self.stale_if_unreachable,
            last_modified: self.last_modified,
            date: self.date,
        }
    }

    pub(crate) fn block(&self) -> &[u8] {
        &self.block
    }

    /// The record with these fields and this block; `None` if they do not fit each other.
    pub(crate) fn of_fields(fields: &RecordFields, block: Box<[u8]>) -> Option<Self> {
        let record = Self {
            flags: fields.flags,
            status: fields.status,
            passed: AtomicU32::new(fields.passed),
            fresh_until: AtomicI64::new(fields.fresh_until_ms),
            born: fields.born_ms,
            block,
            key_len: fields.key_len,
            head_at: fields.head_at,
            etag_at: fields.etag_at,
            etag_len: fields.etag_len,
            lifetime: fields.lifetime,
            grace: AtomicU32::new(fields.grace.bits()),
            stale_if_error: AtomicU32::new(fields.stale_if_error.bits()),
            stale_if_unreachable: fields.stale_if_unreachable,
            last_modified: fields.last_modified,
            date: fields.date,
        };
        record.is_sound().then_some(record)
    }

    /// Returns true if all parts of the block fit into it.
    fn is_sound(&self) -> bool {
        let marks = Flags::from_bits(self.flags).bits() | VARIES | TAGGED | NOTED;
        let etag_end = u64::from(self.etag_at) + u64::from(self.etag_len);
        let (key_end, head_at) = (self.key_len as usize, self.head_at as usize);
        if self.flags & !marks != 0
            || head_at > self.block.len()
            || etag_end > (self.block.len() - head_at) as u64
        {
            return false;
        }
        // From the head backwards, because each part ends with its length.
        let mut end = head_at;
        for (flag, unit) in [(NOTED, 1), (TAGGED, size_of::<u64>())] {
            if self.flags & flag == 0 {
                continue;
            }
            let Some((before, len)) = self.block[..end].split_last_chunk() else { return false };
            let bytes = (u32::from_le_bytes(*len) as usize).checked_mul(unit);
            let Some(rest) = bytes.and_then(|bytes| before.len().checked_sub(bytes)) else {
                return false;
            };
            end = rest;
        }
        let Some(varying) = end.checked_sub(key_end) else { return false };
        if self.flags & VARIES == 0 {
            return varying == 0;
        }
        self.block[key_end..end]
            .split_last_chunk()
            .is_some_and(|(before, len)| u32::from_le_bytes(*len) as usize <= before.len())
    }

    /// Bytes of the record's block.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block.len()
    }

    /// The number of the newest ban that the response has passed.
    pub fn passed(&self) -> u32 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Marks the bans up to `number` as passed, and returns the number before.
    pub(crate) fn pass(&self, number: u32) -> u32 {
        self.passed.fetch_max(number, Ordering::AcqRel)
    }

    /// Ends freshness at `now_ms` at the latest. Returns true if it would have ended later.
    pub(crate) fn expire(&self, now_ms: i64) -> bool {
        self.fresh_until.fetch_min(now_ms, Ordering::Relaxed) > now_ms
    }

    /// Sets the end of freshness and the periods after it. `None` leaves a time as it is.
    pub(crate) fn retime(&self, times: &LifetimeUpdate) {
        if let Some(until_ms) = times.fresh_until_ms {
            self.fresh_until.store(until_ms, Ordering::Relaxed);
        }
        for (span, ms) in
            [(&self.grace, times.grace_ms), (&self.stale_if_error, times.stale_if_error_ms)]
        {
            if let Some(ms) = ms {
                span.store(CompactDuration::from_ms(ms).bits(), Ordering::Relaxed);
            }
        }
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

fn block(new: &NewObject, key: &[u8], vary: Option<Variant<'_>>) -> Box<[u8]> {
    if vary.is_none() && new.tags.is_empty() && new.note.is_empty() {
        return [key, &new.head].concat().into_boxed_slice();
    }
    let mut block = Vec::with_capacity(Record::block_len(new, key, vary));
    block.extend_from_slice(key);
    let number = |len: usize| (len as u32).to_le_bytes();
    if let Some(vary) = vary {
        block.extend_from_slice(vary.spec);
        block.extend_from_slice(vary.signature);
        block.extend_from_slice(&number(vary.spec.len()));
    }
    if !new.tags.is_empty() {
        block.extend(new.tags.iter().flat_map(u64::to_le_bytes));
        block.extend_from_slice(&number(new.tags.len()));
    }
    if !new.note.is_empty() {
        block.extend_from_slice(&new.note);
        block.extend_from_slice(&number(new.note.len()));
    }
    block.extend_from_slice(&new.head);
    block.into_boxed_slice()
}

fn pack_date(secs: Option<u64>) -> u32 {
    secs.and_then(|secs| u32::try_from(secs).ok()).unwrap_or(NO_DATE)
}

fn unpack_date(secs: u32) -> Option<u64> {
    (secs != NO_DATE).then(|| u64::from(secs))
}
