//! Header blocks: fields with interned names in one flat buffer. A block must never change the
//! order or spelling of its fields by itself.

#[cfg(test)]
mod tests;

use std::mem;
use std::ops::Range;

use crate::class;
pub use crate::class::is_value;
pub use crate::token::{is_token, is_token_byte};

macro_rules! known {
    ($($variant:ident $name:literal;)*) => {
        /// A known field name; every other name is [`HeaderId::Other`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum HeaderId {
            $(#[doc = $name] $variant,)*
            /// A name that is not in the table.
            Other,
        }

        const NAMES: &[&str] = &[$($name,)*];
        const IDS: &[HeaderId] = &[$(HeaderId::$variant,)*];
    };
}

known! {
    Accept "Accept";
    AcceptEncoding "Accept-Encoding";
    AcceptLanguage "Accept-Language";
    AcceptRanges "Accept-Ranges";
    Age "Age";
    Allow "Allow";
    AltSvc "Alt-Svc";
    AvailableDictionary "Available-Dictionary";
    Authorization "Authorization";
    CacheControl "Cache-Control";
    CacheStatus "Cache-Status";
    CdnCacheControl "CDN-Cache-Control";
    CdnLoop "CDN-Loop";
    Connection "Connection";
    ContentDisposition "Content-Disposition";
    ContentEncoding "Content-Encoding";
    ContentLanguage "Content-Language";
    ContentLength "Content-Length";
    ContentLocation "Content-Location";
    ContentRange "Content-Range";
    ContentType "Content-Type";
    Cookie "Cookie";
    Date "Date";
    Etag "ETag";
    Expect "Expect";
    Expires "Expires";
    Forwarded "Forwarded";
    Host "Host";
    IfMatch "If-Match";
    IfModifiedSince "If-Modified-Since";
    IfNoneMatch "If-None-Match";
    IfRange "If-Range";
    IfUnmodifiedSince "If-Unmodified-Since";
    KeepAlive "Keep-Alive";
    LastModified "Last-Modified";
    Link "Link";
    Location "Location";
    MaxForwards "Max-Forwards";
    NoVarySearch "No-Vary-Search";
    Origin "Origin";
    Pragma "Pragma";
    Priority "Priority";
    ProxyAuthenticate "Proxy-Authenticate";
    ProxyAuthenticationInfo "Proxy-Authentication-Info";
    ProxyAuthorization "Proxy-Authorization";
    ProxyConnection "Proxy-Connection";
    Range "Range";
    Referer "Referer";
    RetryAfter "Retry-After";
    Server "Server";
    ServerTiming "Server-Timing";
    SetCookie "Set-Cookie";
    StrictTransportSecurity "Strict-Transport-Security";
    SurrogateCapability "Surrogate-Capability";
    SurrogateControl "Surrogate-Control";
    Te "TE";
    Trailer "Trailer";
    TransferEncoding "Transfer-Encoding";
    Upgrade "Upgrade";
    UseAsDictionary "Use-As-Dictionary";
    UserAgent "User-Agent";
    Vary "Vary";
    Via "Via";
    Warning "Warning";
    WwwAuthenticate "WWW-Authenticate";
    XCache "X-Cache";
    XForwardedFor "X-Forwarded-For";
    XForwardedHost "X-Forwarded-Host";
    XForwardedProto "X-Forwarded-Proto";
    XRequestedWith "X-Requested-With";
    XVarnish "X-Varnish";
}

const SLOTS: usize = 512;

/// Hash slot of a name of at least two bytes: its two ends, case folded, and its length. `salt` is
/// chosen so that known names do not collide.
const fn slot(first: [u8; 2], last: [u8; 2], len: usize, salt: u32) -> usize {
    let ends = u32::from_le_bytes([first[0], first[1], last[0], last[1]]) | 0x2020_2020;
    let mixed = ends.wrapping_add((len as u32) << 8).wrapping_mul(salt);
    (mixed >> (u32::BITS - SLOTS.ilog2())) as usize
}

/// Assigns a slot to every known name; `None` if two collide.
const fn place(salt: u32) -> Option<[HeaderId; SLOTS]> {
    let mut slots = [HeaderId::Other; SLOTS];
    let mut at = 0;
    while at < NAMES.len() {
        let name = NAMES[at].as_bytes();
        let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) else {
            panic!("a known name has two bytes or more");
        };
        let slot = slot(*first, *last, name.len(), salt);
        if slots[slot] as u8 != HeaderId::Other as u8 {
            return None;
        }
        slots[slot] = IDS[at];
        at += 1;
    }
    Some(slots)
}

/// The first salt without collisions, and its slots; computed at compile time.
const PLACED: (u32, [HeaderId; SLOTS]) = {
    let mut salt = 0x9e37_79b9_u32;
    loop {
        if let Some(slots) = place(salt) {
            break (salt, slots);
        }
        // The salt stays odd: a product with an even number loses bits.
        salt = salt.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35e);
    }
};
const SALT: u32 = PLACED.0;
static BY_SLOT: [HeaderId; SLOTS] = PLACED.1;

/// Returns true if `name` is `known`, without regard to case. Compares eight bytes at a time, since
/// every received field is tested and names are short.
fn is_spelling_of(known: &[u8], name: &[u8]) -> bool {
    if known.len() != name.len() {
        return false;
    }
    let (Some(last), Some(other)) = (known.last_chunk(), name.last_chunk()) else {
        return is_same_but_for_case(short_word(known), short_word(name));
    };
    // The last eight bytes overlap those before if eight does not divide the length.
    let same = |a: &[u8; 8], b: &[u8; 8]| {
        is_same_but_for_case(u64::from_le_bytes(*a), u64::from_le_bytes(*b))
    };
    let mut words = known.as_chunks().0.iter().zip(name.as_chunks().0);
    same(last, other) && words.all(|(a, b)| same(a, b))
}

/// All bytes of a name of two to seven in one integer, some of them twice.
fn short_word(name: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        u64::from(u16::from_le_bytes(*first)) << 16 | u64::from(u16::from_le_bytes(*last))
    } else {
        0
    }
}

/// Returns true if each byte of `name` is that of `known` or the same letter in the other case.
/// `known` has letters and hyphens only.
const fn is_same_but_for_case(known: u64, name: u64) -> bool {
    const CASE: u64 = 0x2020_2020_2020_2020;
    let differing = known ^ name;
    // In known names, letters have the bit above the case bit, and hyphens do not.
    differing & !CASE == 0 && (differing << 1) & !known == 0
}

// Checks the precondition of `is_same_but_for_case`.
const _: () = {
    let mut at = 0;
    while at < NAMES.len() {
        let mut name = NAMES[at].as_bytes();
        while let [byte, rest @ ..] = name {
            assert!(byte.is_ascii_alphabetic() || *byte == b'-');
            name = rest;
        }
        at += 1;
    }
};

/// Returns true if a name is in lower case, as in HTTP/2 (RFC 9113 8.2.1). `name` must be known: of
/// the letters and hyphens in known names, only capitals lack the case bit.
fn is_known_in_lower_case(name: &[u8]) -> bool {
    const CASE: u64 = 0x2020_2020_2020_2020;
    match name.last_chunk() {
        Some(last) => {
            let words = name.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            words.fold(u64::from_le_bytes(*last), |left, word| left & word) & CASE == CASE
        }
        None => name.iter().fold(CASE as u8, |left, b| left & b) != 0,
    }
}

impl HeaderId {
    /// The id of `name`, without regard to case; [`HeaderId::Other`] for unknown names.
    pub fn of(name: &[u8]) -> Self {
        let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) else {
            return Self::Other;
        };
        let id = BY_SLOT[slot(*first, *last, name.len(), SALT)];
        if is_spelling_of(id.name().as_bytes(), name) { id } else { Self::Other }
    }

    /// Returns true if `name` is a token in lower case (RFC 9113 8.2.1). `self` must be its id.
    #[inline]
    pub fn is_lower_case(self, name: &[u8]) -> bool {
        debug_assert_eq!(self, Self::of(name), "an id belongs to its name");
        match self {
            Self::Other => !name.is_empty() && class::all(name, class::LOWER),
            _ => is_known_in_lower_case(name),
        }
    }

    const fn bit(self) -> u128 {
        1 << self as u32
    }

    const fn bits(mut ids: &[Self]) -> u128 {
        let mut bits = 0;
        while let [id, rest @ ..] = ids {
            bits |= id.bit();
            ids = rest;
        }
        bits
    }

    /// The name in its usual spelling; empty for [`HeaderId::Other`].
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize).copied().unwrap_or("")
    }

    const HOP_BY_HOP: u128 = Self::bits(&[
        Self::Connection,
        Self::KeepAlive,
        Self::ProxyConnection,
        Self::Te,
        Self::Trailer,
        Self::TransferEncoding,
        Self::Upgrade,
    ]);

    /// Returns true if the field belongs to one connection, and is never stored or forwarded (RFC
    /// 9110 7.6.1).
    pub fn is_hop_by_hop(self) -> bool {
        Self::HOP_BY_HOP & self.bit() != 0
    }
}

/// The position of one field in a block's bytes.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpan {
    /// Interned name.
    pub id: HeaderId,
    /// Offset of the name.
    pub name_at: u32,
    /// Length of the name.
    pub name_len: u16,
    /// Offset of the value, without surrounding white space.
    pub value_at: u32,
    /// Length of the value.
    pub value_len: u32,
}

/// One field, borrowed from its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Interned name.
    pub id: HeaderId,
    /// The name as received.
    pub name: &'a [u8],
    /// The value without surrounding white space.
    pub value: &'a [u8],
}

impl Field<'_> {
    fn is_called(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// An ordered list of header fields in one buffer. Names keep their spelling; lookups ignore case.
///
/// Two ways to fill it: [`HeaderBlock::push`] copies one field; a parser records [`FieldSpan`]s
/// with [`HeaderBlock::push_span`] and then passes the bytes that they point into to
/// [`HeaderBlock::adopt`].
#[derive(Debug, Default)]
pub struct HeaderBlock {
    bytes: Vec<u8>,
    spans: Vec<FieldSpan>,
    /// Bit `n` is set if a field with id number `n` is present.
    present: u128,
}

impl Clone for HeaderBlock {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), spans: self.spans.clone(), present: self.present }
    }

    /// Reuses the memory.
    fn clone_from(&mut self, other: &Self) {
        self.bytes.clone_from(&other.bytes);
        self.spans.clone_from(&other.spans);
        self.present = other.present;
    }
}

// There is a presence bit for every id.
const _: () = assert!((HeaderId::Other as u32) < u128::BITS);

impl HeaderBlock {
    /// Bytes of memory that its fields take.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<FieldSpan>()
    }

    /// Frees unused memory, if it is much.
    pub fn fit(&mut self) {
        if self.bytes.capacity() > 2 * self.bytes.len() {
            self.bytes.shrink_to_fit();
        }
        if self.spans.capacity() > 2 * self.spans.len() {
            self.spans.shrink_to_fit();
        }
    }

    /// An empty block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.present = 0;
    }

    /// Records a field whose bytes a later [`HeaderBlock::adopt`] supplies.
    pub fn push_span(&mut self, span: FieldSpan) {
        self.present |= span.id.bit();
        self.spans.push(span);
    }

    /// Copies the bytes that the spans recorded since [`HeaderBlock::clear`] point into.
    ///
    /// # Panics
    /// If a recorded span lies outside `bytes`.
    pub fn adopt(&mut self, bytes: &[u8]) {
        let end = self.spans.iter().map(|s| s.value_at + s.value_len).max().unwrap_or(0);
        assert!(end as usize <= bytes.len(), "a header span lies outside its bytes");
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    /// Reserves memory for further fields with `bytes` of names and values.
    pub fn reserve(&mut self, fields: usize, bytes: usize) {
        self.spans.reserve(fields);
        self.bytes.reserve(bytes);
    }

    /// Appends a field with an interned name.
    pub fn push(&mut self, id: HeaderId, value: &[u8]) {
        self.append(id, id.name().as_bytes(), value);
    }

    /// Appends a field with any name.
    pub fn push_named(&mut self, name: &[u8], value: &[u8]) {
        self.append(HeaderId::of(name), name, value);
    }

    /// Appends a field; `id` must be [`HeaderId::of`] of `name`.
    #[inline]
    pub fn push_as(&mut self, id: HeaderId, name: &[u8], value: &[u8]) {
        debug_assert_eq!(id, HeaderId::of(name), "an id belongs to its name");
        self.append(id, name, value);
    }

    /// Inserts a field with an interned name at index `at`, or at the end if there are fewer
    /// fields.
    pub fn insert(&mut self, at: usize, id: HeaderId, value: &[u8]) {
        self.push(id, value);
        if let Some(later) = self.spans.get_mut(at..) {
            later.rotate_right(1);
        }
    }

    /// Appends a field with an interned name. `write` appends the value, and must not remove bytes.
    pub fn push_with(&mut self, id: HeaderId, write: impl FnOnce(&mut Vec<u8>)) {
        self.append_with(id, id.name().as_bytes(), write);
    }

    fn append(&mut self, id: HeaderId, name: &[u8], value: &[u8]) {
        self.append_with(id, name, |out| out.extend_from_slice(value));
    }

    /// Appends a field as a complete line, which can be copied to a message later.
    fn append_with(&mut self, id: HeaderId, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let name_at = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        let value_at = self.bytes.len();
        write(&mut self.bytes);
        let value_len = self.bytes.len().checked_sub(value_at).expect("only appended to");
        self.bytes.extend_from_slice(b"\r\n");
        self.push_span(FieldSpan {
            id,
            name_at: name_at as u32,
            name_len: name.len() as u16,
            value_at: value_at as u32,
            value_len: value_len as u32,
        });
    }

    /// Replaces every field called `id` by one.
    pub fn set(&mut self, id: HeaderId, value: &[u8]) {
        self.remove(id);
        self.push(id, value);
    }

    /// Replaces every field called `name` by one.
    pub fn set_named(&mut self, name: &[u8], value: &[u8]) {
        self.remove_named(name);
        self.push_named(name, value);
    }

    /// Replaces every field called `name` by one; `id` must be [`HeaderId::of`] of `name`. A value
    /// that is not longer than the present one overwrites it, so that repeated setting costs no
    /// memory.
    pub fn set_as(&mut self, id: HeaderId, name: &[u8], value: &[u8]) {
        debug_assert_eq!(id, HeaderId::of(name), "an id belongs to its name");
        if !self.contains(id) {
            return self.append(id, name, value);
        }
        let bytes = &self.bytes;
        let mut same = self.spans.iter_mut().filter(|s| is_called(bytes, s, id, name));
        match (same.next(), same.next()) {
            (None, _) => self.append(id, name, value),
            (Some(span), None) if value.len() <= span.value_len as usize => {
                span.value_len = value.len() as u32;
                let (name_at, value_at) = (span.name_at as usize, span.value_at as usize);
                self.bytes[name_at..name_at + name.len()].copy_from_slice(name);
                self.bytes[value_at..value_at + value.len()].copy_from_slice(value);
            }
            _ => {
                self.remove_as(id, name);
                self.append(id, name, value);
            }
        }
    }

    /// Removes every field called `name`; `id` must be [`HeaderId::of`] of `name`.
    pub fn remove_as(&mut self, id: HeaderId, name: &[u8]) {
        if !self.contains(id) {
            return;
        }
        let Some(mut kept) = position(&self.bytes, &self.spans, id, name) else { return };
        for at in kept + 1..self.spans.len() {
            if !is_called(&self.bytes, &self.spans[at], id, name) {
                // In one copy: field by field takes four times as many instructions.
                self.spans.copy_within(at..=at, kept);
                kept += 1;
            }
        }
        self.spans.truncate(kept);
        if id != HeaderId::Other || self.spans.iter().all(|s| s.id != HeaderId::Other) {
            self.present &= !id.bit();
        }
    }

    /// Sets the spelling of the only field called `name`. Returns false, and changes nothing,
    /// unless there is exactly one. `id` must be [`HeaderId::of`] of `name`.
    pub fn respell(&mut self, id: HeaderId, name: &[u8]) -> bool {
        debug_assert_eq!(id, HeaderId::of(name), "an id belongs to its name");
        let mut only = None;
        for span in &self.spans {
            if is_called(&self.bytes, span, id, name) && only.replace(span.name_at).is_some() {
                return false;
            }
        }
        let Some(at) = only else { return false };
        let at = at as usize;
        self.bytes[at..at + name.len()].copy_from_slice(name);
        true
    }

    /// The first value of `name`; `id` must be [`HeaderId::of`] of `name`.
    pub fn value_as(&self, id: HeaderId, name: &[u8]) -> Option<&[u8]> {
        if !self.contains(id) {
            return None;
        }
        let at = position(&self.bytes, &self.spans, id, name)?;
        Some(value(&self.bytes, &self.spans[at]))
    }

    /// Removes every field called `id`.
    pub fn remove(&mut self, id: HeaderId) {
        if self.contains(id) {
            self.retain(|f| f.id != id);
        }
    }

    /// Removes every field called `name`, in any case.
    pub fn remove_named(&mut self, name: &[u8]) {
        self.retain(|f| !f.name.eq_ignore_ascii_case(name));
    }

    /// Keeps the fields for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(Field<'_>) -> bool) {
        let bytes = &self.bytes;
        let mut present = 0;
        self.spans.retain(|s| {
            let kept = keep(field(bytes, s));
            if kept {
                present |= s.id.bit();
            }
            kept
        });
        self.present = present;
    }

    /// The first value of `id`.
    pub fn value(&self, id: HeaderId) -> Option<&[u8]> {
        if !self.contains(id) {
            return None;
        }
        self.spans.iter().find(|s| s.id == id).map(|s| value(&self.bytes, s))
    }

    /// The first value of `name`, in any case.
    pub fn value_named(&self, name: &[u8]) -> Option<&[u8]> {
        let id = HeaderId::of(name);
        let mut fields = self.iter();
        fields.find(|f| f.id == id && f.name.eq_ignore_ascii_case(name)).map(|f| f.value)
    }

    /// All values of `id`, in order.
    pub fn values(&self, id: HeaderId) -> impl Iterator<Item = &[u8]> + Clone {
        self.spans.iter().filter(move |s| s.id == id).map(|s| value(&self.bytes, s))
    }

    /// All values of `name` (any case), in order.
    pub fn values_named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + Clone {
        let id = HeaderId::of(name);
        self.iter()
            .filter(move |f| {
                f.id == id && (id != HeaderId::Other || f.name.eq_ignore_ascii_case(name))
            })
            .map(|f| f.value)
    }

    /// Returns true if a field called `id` is present.
    pub fn contains(&self, id: HeaderId) -> bool {
        self.present & id.bit() != 0
    }

    /// Returns true if a field called by one of `ids` is present.
    pub fn contains_any(&self, ids: &[HeaderId]) -> bool {
        self.present & HeaderId::bits(ids) != 0
    }

    /// Appends the end-to-end fields (RFC 9110 7.6.1) to `out` as lines with CRLF, except those
    /// called by one of `without`. Adjacent complete lines are copied together.
    pub fn write_end_to_end(&self, out: &mut Vec<u8>, without: &[HeaderId]) {
        let bytes = &self.bytes[..];
        let without = HeaderId::bits(without) | HeaderId::HOP_BY_HOP;
        // The lines in `bytes`, without a gap, that are not copied yet.
        let mut run = 0..0;
        for span in &self.spans {
            if without & span.id.bit() != 0 {
                continue;
            }
            match line(bytes, span) {
                Some(line) if line.start == run.end => run.end = line.end,
                Some(line) => out.extend_from_slice(&bytes[mem::replace(&mut run, line)]),
                None => {
                    out.extend_from_slice(&bytes[mem::replace(&mut run, 0..0)]);
                    let field = field(bytes, span);
                    out.reserve(field.name.len() + field.value.len() + ": \r\n".len());
                    out.extend_from_slice(field.name);
                    out.extend_from_slice(b": ");
                    out.extend_from_slice(field.value);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
        out.extend_from_slice(&bytes[run]);
    }

    /// All fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> + Clone {
        self.spans.iter().map(|s| field(&self.bytes, s))
    }

    /// The names that are [`HeaderId::Other`], in order.
    pub fn other_names(&self) -> impl Iterator<Item = &[u8]> {
        let has_any = self.contains(HeaderId::Other);
        let spans = if has_any { &self.spans[..] } else { &[] };
        spans.iter().filter(|s| s.id == HeaderId::Other).map(|s| name(&self.bytes, s))
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if there is no field.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

fn value<'a>(bytes: &'a [u8], s: &FieldSpan) -> &'a [u8] {
    &bytes[s.value_at as usize..(s.value_at + s.value_len) as usize]
}

fn name<'a>(bytes: &'a [u8], s: &FieldSpan) -> &'a [u8] {
    let name_at = s.name_at as usize;
    &bytes[name_at..name_at + usize::from(s.name_len)]
}

fn field<'a>(bytes: &'a [u8], s: &FieldSpan) -> Field<'a> {
    Field { id: s.id, name: name(bytes, s), value: value(bytes, s) }
}

/// The position of a field as a complete line in `bytes`, if it is one.
fn line(bytes: &[u8], s: &FieldSpan) -> Option<Range<usize>> {
    let name_at = s.name_at as usize;
    let name_end = name_at + usize::from(s.name_len);
    let value_end = (s.value_at + s.value_len) as usize;
    let is_line = s.value_at as usize == name_end + ": ".len()
        && bytes[name_end..].starts_with(b": ")
        && bytes[value_end..].starts_with(b"\r\n");
    is_line.then(|| name_at..value_end + "\r\n".len())
}

/// Returns true if a field is called `name`, whose id is `id`.
#[inline]
fn is_called(bytes: &[u8], span: &FieldSpan, id: HeaderId, name: &[u8]) -> bool {
    span.id == id
        && (id != HeaderId::Other
            || usize::from(span.name_len) == name.len() && field(bytes, span).is_called(name))
}

/// The first field called `name`, whose id is `id`.
fn position(bytes: &[u8], spans: &[FieldSpan], id: HeaderId, name: &[u8]) -> Option<usize> {
    if id != HeaderId::Other {
        return spans.iter().position(|s| s.id == id);
    }
    spans.iter().position(|s| is_called(bytes, s, HeaderId::Other, name))
}
