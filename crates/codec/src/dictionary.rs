//! Dictionaries for content codings (RFC 9842): the fields by which a response offers itself as
//! one, and by which a client announces the one it holds. A malformed or unknown field counts as
//! absent: it never costs a client the response.

mod pattern;

use message::HeaderId;
use message::list::members;
use message::sf::{BareItem, Member, Value, parse_dictionary};

pub use pattern::MatchPattern;

use crate::accept;

/// Bytes of the SHA-256 that identifies a dictionary.
pub const HASH_BYTES: usize = 32;

/// SHA-256 of a dictionary's content, without content coding.
pub type DictionaryHash = [u8; HASH_BYTES];

/// Most bytes of an `id` (RFC 9842 2.1.3).
const ID_BYTES: usize = 1024;

/// Most destinations, and most bytes of a destination's name. Fetch has 26, of 14 bytes at most.
const DESTINATIONS: usize = 32;
const DESTINATION_BYTES: usize = 32;

/// A content coding that needs a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaCoding {
    /// Zstandard with a dictionary (RFC 9842 5).
    Dcz,
    /// Brotli with a dictionary (RFC 9842 4).
    Dcb,
}

impl DeltaCoding {
    /// Both, first the preferred one between equal weights: it decodes faster.
    pub const ALL: [Self; 2] = [Self::Dcz, Self::Dcb];

    /// Name of the coding in Content-Encoding and Accept-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Dcz => "dcz",
            Self::Dcb => "dcb",
        }
    }
}

/// A parsed Use-As-Dictionary (RFC 9842 2.1): the response may serve as a dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseAsDictionary {
    pattern: MatchPattern,
    /// Destinations of requests (`script`, `document`); empty for all.
    destinations: Box<[Box<[u8]>]>,
}

impl UseAsDictionary {
    /// Parses the values of a response's Use-As-Dictionary. The response belongs to a request for
    /// `target` (path and query) of `origin`, such as `https://example.com:8443`.
    ///
    /// `None` if the values are malformed, if `match` is missing, unsupported or of another origin,
    /// or if the type is not `raw`.
    pub fn parse<'a>(
        values: impl IntoIterator<Item = &'a [u8]>,
        origin: &[u8],
        target: &[u8],
    ) -> Option<Self> {
        let mut said = DictionaryMembers::default();
        parse_dictionary(values, |member| said.note(&member)).ok()?;
        if said.is_wrong {
            return None;
        }
        let pattern = MatchPattern::parse(&unescaped(said.pattern?), origin, target)?;
        Some(Self { pattern, destinations: said.destinations.into() })
    }

    /// Returns true if the dictionary applies to a request for `target` with the Sec-Fetch-Dest
    /// `destination`. A request without that field only gets dictionaries for all destinations.
    pub fn is_for(&self, target: &[u8], destination: Option<&[u8]>) -> bool {
        let is_destined = self.destinations.is_empty()
            || destination.is_some_and(|said| self.destinations.iter().any(|one| **one == *said));
        is_destined && self.pattern.matches(target)
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let names = self.destinations.iter().map(|name| name.len() + size_of::<Box<[u8]>>());
        self.pattern.memory() + names.sum::<usize>()
    }
}

/// Members of the field while it is parsed.
#[derive(Default)]
struct DictionaryMembers<'a> {
    pattern: Option<&'a [u8]>,
    destinations: Vec<Box<[u8]>>,
    is_wrong: bool,
}

impl<'a> DictionaryMembers<'a> {
    /// Records a member; unknown ones are ignored (RFC 9651 2.1). Of two members with one key the
    /// last counts, even if it is malformed.
    fn note(&mut self, member: &Member<'a>) {
        match (member.key, member.value) {
            (b"match", Value::Item(BareItem::String(text))) => self.pattern = Some(text),
            (b"match-dest", Value::List(list)) => {
                self.destinations.clear();
                for item in list.items() {
                    let BareItem::String(text) = item else { return self.is_wrong = true };
                    let name = unescaped(text);
                    if self.destinations.len() == DESTINATIONS || name.len() > DESTINATION_BYTES {
                        return self.is_wrong = true;
                    }
                    self.destinations.push(name.into());
                }
            }
            (b"id", Value::Item(BareItem::String(id))) => {
                self.is_wrong |= unescaped(id).len() > ID_BYTES;
            }
            (b"type", Value::Item(BareItem::Token(b"raw"))) => {}
            (b"match" | b"match-dest" | b"id" | b"type", _) => self.is_wrong = true,
            _ => {}
        }
    }
}

/// The text of a string (RFC 9651 3.3.3) without its escapes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        out.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    out
}

/// Parses the values of a request's Available-Dictionary (RFC 9842 2.2): one byte sequence of 32
/// bytes. `None` for anything else. It allocates nothing.
pub fn available<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<DictionaryHash> {
    let mut values = values.into_iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    // Parameters are permitted, but no client is known to send any.
    let text = message::list::trim(value).strip_prefix(b":")?.strip_suffix(b":")?;
    base64(text)
}

/// The delta coding that a client with these values of Accept-Encoding weighs at least as high as
/// any other coding. The client has to name it: `*` includes no delta coding.
pub fn taken<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<DeltaCoding> {
    let (mut own, mut others) = ([0; DeltaCoding::ALL.len()], 0);
    for (token, weight) in
        values.into_iter().flat_map(|value| members([value])).filter_map(accept::parts)
    {
        let is_it = |coding: &DeltaCoding| token.eq_ignore_ascii_case(coding.token().as_bytes());
        match DeltaCoding::ALL.iter().position(is_it) {
            Some(at) => own[at] = weight,
            None => others = weight.max(others),
        }
    }
    let best = own[0].max(own[1]);
    let at = own.iter().position(|weight| *weight == best)?;
    (best > 0 && best >= others).then_some(DeltaCoding::ALL[at])
}

/// Adds Available-Dictionary to the response's Vary.
pub fn vary_by_dictionary(headers: &mut message::HeaderBlock) {
    let is_said = |name: &[u8]| HeaderId::of(name) == HeaderId::AvailableDictionary;
    if !members(headers.values(HeaderId::Vary)).into_iter().any(is_said) {
        headers.push(HeaderId::Vary, HeaderId::AvailableDictionary.name().as_bytes());
    }
}

/// Decodes the 44 base64 digits of 32 bytes; padding bits must be 0.
fn base64(text: &[u8]) -> Option<DictionaryHash> {
    let digits = text.strip_suffix(b"=")?;
    let mut hash = [0; HASH_BYTES];
    if digits.len() != (HASH_BYTES * 8).div_ceil(6) {
        return None;
    }
    let (mut bits, mut held, mut at) = (0_u32, 0, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            *hash.get_mut(at)? = (bits >> held) as u8;
            at += 1;
        }
    }
    (at == HASH_BYTES && bits & ((1 << held) - 1) == 0).then_some(hash)
}

#[cfg(test)]
mod tests;
