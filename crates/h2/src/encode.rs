//! Encoder of field blocks (RFC 7541 6).
//!
//! A stored response's fields are encoded once, as literals, and kept as [`EncodedFields`]. Each
//! response then replaces those that are in the connection's table by an index. The encoder needs
//! only an entry's hash and size, so it must keep nothing else.

use std::collections::VecDeque;

use base::HashSeed;
use message::HeaderId;

use crate::huffman;
use crate::table::{OVERHEAD, STATIC};

/// Fields that are not added to the table, since their values do not recur.
const fn is_volatile(id: HeaderId) -> bool {
    matches!(
        id,
        HeaderId::Age
            | HeaderId::CacheStatus
            | HeaderId::ContentLength
            | HeaderId::ContentRange
            | HeaderId::Date
            | HeaderId::Etag
            | HeaderId::Expires
            | HeaderId::LastModified
            | HeaderId::Location
            | HeaderId::SetCookie
    )
}

/// Appends `number` with a prefix of `bits`; the bits before it are those of `first` (RFC 7541
/// 5.1).
pub(crate) fn integer(number: usize, bits: u32, first: u8, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if number < most {
        out.push(first | number as u8);
        return;
    }
    out.push(first | most as u8);
    let mut left = number - most;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// The longest string whose length takes one byte, coded or not.
const SHORT: usize = 126;

fn string(plain: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    if plain.len() <= SHORT {
        // Encoded without computing the length first; if the result is not shorter, it is replaced.
        out.push(0);
        huffman::encode(plain, out);
        let coded = out.len() - at - 1;
        if coded < plain.len() {
            out[at] = 0x80 | coded as u8;
            return;
        }
        out.truncate(at);
    } else {
        let coded = huffman::encoded_len(plain);
        if coded < plain.len() {
            integer(coded, 7, 0x80, out);
            return huffman::encode(plain, out);
        }
    }
    integer(plain.len(), 7, 0, out);
    out.extend_from_slice(plain);
}

/// Index of the first static entry with the name of an id, or 0.
static FIRST: [u8; HeaderId::Other as usize] = {
    let mut first = [0; HeaderId::Other as usize];
    let mut at = STATIC.len();
    while at > 0 {
        at -= 1;
        let id = STATIC[at].0 as usize;
        if id < first.len() {
            first[id] = at as u8 + 1;
        }
    }
    first
};

/// The static entry with this name, and true if it has this value, too. `name` is in lower case.
fn find_static(id: HeaderId, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
    let first = match FIRST.get(id as usize) {
        Some(first) => usize::from(*first).checked_sub(1)?,
        None => STATIC.iter().position(|entry| entry.1.as_bytes() == name)?,
    };
    // Entries of one name are adjacent.
    let mut same = STATIC[first..].iter().take_while(|entry| entry.1 == STATIC[first].1);
    let whole = same.position(|entry| entry.2.as_bytes() == value);
    Some((first + 1 + whole.unwrap_or(0), whole.is_some()))
}

/// The representation of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A literal that is added to the table.
    Indexed,
    /// A literal that is not added.
    Plain,
    /// A literal that no intermediary may add to a table (RFC 7541 7.1.3).
    Never,
}

/// A larger field would evict too many entries.
const LARGEST: usize = 1024;

fn form(id: HeaderId, name: &[u8], value: &[u8]) -> Form {
    match id {
        // Of one client, on a connection to an origin that many clients share.
        HeaderId::Authorization | HeaderId::Cookie | HeaderId::SetCookie => Form::Never,
        _ if is_volatile(id) || name.len() + value.len() + OVERHEAD > LARGEST => Form::Plain,
        _ => Form::Indexed,
    }
}

/// Appends a literal with the name of the static entry `name_at`, or else with `name` in lower
/// case.
fn literal(form: Form, name_at: Option<usize>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let (bits, first) = match form {
        Form::Indexed => (6, 0x40),
        Form::Plain => (4, 0),
        Form::Never => (4, 0x10),
    };
    match name_at {
        Some(index) => integer(index, bits, first, out),
        None => {
            out.push(first);
            string(name, out);
        }
    }
    string(value, out);
}

/// Returns the hash of an entry. `text` has the entry's name in lower case; the rest is appended to
/// it.
fn hash(seed: &HashSeed, text: &mut Vec<u8>, value: &[u8]) -> u64 {
    text.push(b':');
    text.extend_from_slice(value);
    seed.hash(text)
}

/// The fields of a response, encoded once for all connections.
#[derive(Clone, Debug, Default)]
pub struct EncodedFields {
    bytes: Box<[u8]>,
    fields: Box<[EncodedField]>,
}

/// One encoded field.
#[derive(Clone, Copy, Debug)]
struct EncodedField {
    /// The end of its literal, which begins at the end of the one before.
    end: u32,
    /// The field's size in a table; 0 if it is not added to one.
    size: u32,
    hash: u64,
}

impl EncodedFields {
    /// Encodes `fields`, which must not include pseudo-fields. `seed` is that of every [`Encoder`]
    /// that uses the result.
    pub fn new<'a>(
        seed: &HashSeed,
        fields: impl Iterator<Item = (HeaderId, &'a [u8], &'a [u8])>,
    ) -> Self {
        let (mut bytes, mut coded, mut text) = (Vec::new(), Vec::new(), Vec::new());
        for (id, name, value) in fields {
            coded.push(code(seed, id, name, value, &mut text, &mut bytes));
        }
        Self { bytes: bytes.into(), fields: coded.into() }
    }

    /// Bytes of memory besides the value itself.
    pub fn weight(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.fields)
    }
}

/// Appends the field's literal to `out`. `text` is scratch memory.
fn code(
    seed: &HashSeed,
    id: HeaderId,
    name: &[u8],
    value: &[u8],
    text: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> EncodedField {
    text.clear();
    text.extend(name.iter().map(u8::to_ascii_lowercase));
    let form = form(id, name, value);
    let found = find_static(id, text, value);
    if let Some((index, true)) = found {
        // A field in the static table needs no entry in the dynamic one.
        integer(index, 7, 0x80, out);
        return EncodedField { end: out.len() as u32, size: 0, hash: 0 };
    }
    literal(form, found.map(|(index, _)| index), text, value, out);
    let (mut size, mut found_by) = (0, 0);
    if form == Form::Indexed {
        size = entry_size(name, value);
        found_by = hash(seed, text, value);
    }
    EncodedField { end: out.len() as u32, size, hash: found_by }
}

/// The size of a field in a table (RFC 7541 4.1); never more than [`LARGEST`].
fn entry_size(name: &[u8], value: &[u8]) -> u32 {
    (name.len() + value.len() + OVERHEAD) as u32
}

/// Slots for finding entries again; a newer entry may replace an older one's.
const WAYS: usize = 128;

/// The pseudo-fields of a request.
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a [u8],
    pub(crate) scheme: &'a [u8],
    pub(crate) authority: &'a [u8],
    pub(crate) path: &'a [u8],
}

/// Encodes the blocks of one connection, in their order.
#[derive(Debug)]
pub struct Encoder {
    seed: HashSeed,
    /// Hash and number of an entry; 0 if the slot is free.
    ways: Option<Box<[(u64, u64); WAYS]>>,
    /// Sizes of the entries, the oldest first.
    sizes: VecDeque<u32>,
    /// Entries added so far.
    added: u64,
    size: usize,
    max: usize,
    /// Sizes to announce at the start of the next block: the smallest since the last one, and the
    /// present one (RFC 7541 4.2).
    announce: Option<(usize, usize)>,
    text: Vec<u8>,
}

/// The default size of a table (RFC 9113 6.5.2), and the largest used here.
const DEFAULT_SIZE: usize = 4096;

impl Encoder {
    /// An encoder at the start of a connection.
    pub fn new(seed: HashSeed) -> Self {
        Self {
            seed,
            ways: None,
            sizes: VecDeque::new(),
            added: 0,
            size: 0,
            max: DEFAULT_SIZE,
            announce: None,
            text: Vec::new(),
        }
    }

    /// Applies the peer's SETTINGS_HEADER_TABLE_SIZE.
    pub fn allow(&mut self, size: u32) {
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(DEFAULT_SIZE);
        if size == self.max && self.announce.is_none() {
            return;
        }
        let least = self.announce.map_or(size, |(least, _)| least.min(size));
        self.max = size;
        self.evict(0);
        self.announce = Some((least, size));
    }

    /// Begins a block of trailers, which has no status.
    #[inline]
    pub fn begin_trailers(&mut self, out: &mut Vec<u8>) {
        if let Some((least, last)) = self.announce.take() {
            if least < last {
                integer(least, 5, 0x20, out);
            }
            integer(last, 5, 0x20, out);
        }
    }

    /// Begins a block with the status.
    pub fn begin(&mut self, status: u16, out: &mut Vec<u8>) {
        self.begin_trailers(out);
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                out.push(0x08);
                return string(itoa::Buffer::new().format(status).as_bytes(), out);
            }
        };
        out.push(0x80 | index);
    }

    /// Begins a request's block with its pseudo-fields (RFC 9113 8.3.1). Paths seldom recur, so
    /// they are not added to the table.
    pub(crate) fn begin_request(&mut self, head: &RequestLine<'_>, out: &mut Vec<u8>) {
        self.begin_trailers(out);
        for (name, value, form) in [
            (":method", head.method, Form::Indexed),
            (":scheme", head.scheme, Form::Indexed),
            (":authority", head.authority, Form::Indexed),
            (":path", head.path, Form::Plain),
        ] {
            // Only a request of HTTP/1.0 has no authority.
            if value.is_empty() {
                continue;
            }
            self.text.clear();
            self.text.extend_from_slice(name.as_bytes());
            self.add_field(HeaderId::Other, value, form, out);
        }
    }

    /// Appends all of an encoded block.
    pub fn block(&mut self, block: &EncodedFields, out: &mut Vec<u8>) {
        let mut start = 0;
        for field in &block.fields {
            let end = field.end as usize;
            self.put(field, &block.bytes[start..end], out);
            start = end;
        }
    }

    /// Appends one field of this message.
    pub fn field(&mut self, id: HeaderId, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.text.clear();
        self.text.extend(name.iter().map(u8::to_ascii_lowercase));
        self.add_field(id, value, form(id, name, value), out);
    }

    /// Appends a field whose name is in `text`.
    #[inline]
    fn add_field(&mut self, id: HeaderId, value: &[u8], form: Form, out: &mut Vec<u8>) {
        let name_len = self.text.len();
        let found = find_static(id, &self.text, value);
        if let Some((index, true)) = found {
            return integer(index, 7, 0x80, out);
        }
        let name_at = found.map(|(index, _)| index);
        if form == Form::Indexed {
            let hash = hash(&self.seed, &mut self.text, value);
            if let Some(index) = self.find(hash) {
                return integer(index, 7, 0x80, out);
            }
            self.add((name_len + value.len() + OVERHEAD) as u32, hash);
        }
        literal(form, name_at, &self.text[..name_len], value, out);
    }

    fn put(&mut self, field: &EncodedField, literal: &[u8], out: &mut Vec<u8>) {
        if field.size == 0 {
            out.extend_from_slice(literal);
            return;
        }
        if let Some(index) = self.find(field.hash) {
            return integer(index, 7, 0x80, out);
        }
        out.extend_from_slice(literal);
        self.add(field.size, field.hash);
    }

    /// Records that a literal of this size was added to the table.
    fn add(&mut self, size: u32, hash: u64) {
        let bytes = size as usize;
        self.evict(bytes);
        if bytes <= self.max {
            self.size += bytes;
            self.sizes.push_back(size);
            self.added += 1;
            let ways = self.ways.get_or_insert_with(|| Box::new([(0, 0); WAYS]));
            ways[hash as usize % WAYS] = (hash, self.added);
        }
    }

    /// The index of the entry with this hash.
    fn find(&self, hash: u64) -> Option<usize> {
        let (own, number) = self.ways.as_ref()?[hash as usize % WAYS];
        let age = self.added - number;
        (own == hash && number > 0 && age < self.sizes.len() as u64)
            .then(|| STATIC.len() + 1 + age as usize)
    }

    /// Evicts until `room` more bytes fit, or the table is empty, as the decoder does.
    fn evict(&mut self, room: usize) {
        while self.size + room > self.max {
            let Some(size) = self.sizes.pop_front() else { break };
            self.size -= size as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::Decoder;

    type Pair = (String, String);

    fn fields(pairs: &[Pair]) -> impl Iterator<Item = (HeaderId, &[u8], &[u8])> {
        pairs
            .iter()
            .map(|(name, value)| (HeaderId::of(name.as_bytes()), name.as_bytes(), value.as_bytes()))
    }

    fn read(decoder: &mut Decoder, block: &[u8]) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let read = decoder.block(block, |_, name, value| {
            pairs.push((text(name), text(value)));
            true
        });
        assert_eq!(read, Ok(()));
        pairs
    }

    fn pair(name: &str, value: &str) -> Pair {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_repeats_becomes_an_index() {
        let seed = HashSeed::from_u64(1);
        let page = [
            pair("Server", "larder"),
            pair("Content-Type", "text/html; charset=utf-8"),
            pair("Date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            pair("Accept-Encoding", "gzip, deflate"),
        ];
        let block = EncodedFields::new(&seed, fields(&page));
        let (mut encoder, mut decoder) = (Encoder::new(seed), Decoder::new(4096));
        let mut sizes = Vec::new();
        for _ in 0..3 {
            let mut out = Vec::new();
            encoder.begin(200, &mut out);
            encoder.block(&block, &mut out);
            encoder.field(HeaderId::Age, b"Age", b"7", &mut out);
            encoder.field(HeaderId::Via, b"via", b"1.1 larder", &mut out);
            let read = read(&mut decoder, &out);
            assert_eq!(read.len(), 7);
            assert_eq!((&*read[0].0, &*read[0].1), (":status", "200"));
            assert_eq!((&*read[2].0, &*read[2].1), ("content-type", "text/html; charset=utf-8"));
            sizes.push(out.len());
        }
        // Status, three indexes, the static one, the date and the age.
        assert!(sizes[1] < 40 && sizes[1] == sizes[2] && sizes[0] > sizes[1] + 20, "{sizes:?}");
    }

    #[test]
    fn cookies_are_never_indexed() {
        let mut encoder = Encoder::new(HashSeed::from_u64(1));
        let mut out = Vec::new();
        encoder.field(HeaderId::SetCookie, b"set-cookie", b"a=b", &mut out);
        assert_eq!(out[0] & 0xf0, 0x10);
    }

    #[test]
    fn a_smaller_table_is_announced() {
        let seed = HashSeed::from_u64(1);
        let (mut encoder, mut decoder) = (Encoder::new(seed), Decoder::new(4096));
        let mut next = |encoder: &mut Encoder| {
            let mut out = Vec::new();
            encoder.begin(404, &mut out);
            encoder.field(HeaderId::Server, b"server", b"larder", &mut out);
            assert_eq!(read(&mut decoder, &out)[1], pair("server", "larder"));
            out
        };
        next(&mut encoder);
        assert_eq!(next(&mut encoder), [0x8d, 0xbe]);
        encoder.allow(0);
        encoder.allow(100);
        assert_eq!(next(&mut encoder)[..3], [0x20, 0x3f, 0x45]);
        assert_eq!(next(&mut encoder), [0x8d, 0xbe]);
        encoder.allow(u32::MAX);
        assert_eq!(next(&mut encoder)[..4], [0x3f, 0xe1, 0x1f, 0x8d]);
        encoder.allow(0);
        assert_eq!(next(&mut encoder)[..2], [0x20, 0x8d]);
        assert!(next(&mut encoder).len() > 2);
    }

    proptest! {
        /// The decoder parses the encoder's output, over many blocks and changes of the table's
        /// size.
        #[test]
        fn blocks_come_back(
            blocks in proptest::collection::vec(
                (
                    proptest::collection::vec(
                        ("[a-z-]{1,12}|server|date|content-type|x", "[ -~]{0,20}|x{900,1200}"),
                        0..12,
                    ),
                    100..600_u16,
                    proptest::option::of(0..5000_u32),
                    any::<bool>(),
                ),
                1..30,
            )
        ) {
            let seed = HashSeed::from_u64(7);
            let (mut encoder, mut decoder) = (Encoder::new(seed), Decoder::new(4096));
            for (pairs, status, allow, prepared) in blocks {
                if let Some(size) = allow {
                    encoder.allow(size);
                }
                let mut out = Vec::new();
                encoder.begin(status, &mut out);
                if prepared {
                    encoder.block(&EncodedFields::new(&seed, fields(&pairs)), &mut out);
                } else {
                    for (id, name, value) in fields(&pairs) {
                        encoder.field(id, name, value, &mut out);
                    }
                }
                let read = read(&mut decoder, &out);
                prop_assert_eq!(&read[0].1, &status.to_string());
                prop_assert_eq!(&read[1..], &pairs[..]);
            }
        }
    }
}
