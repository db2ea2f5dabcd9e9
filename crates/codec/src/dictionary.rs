//! Dictionaries for content codings (RFC 9842): which responses are some, for which requests, and
//! what a client says of the ones that it has.
//!
//! A field that is malformed, or that asks for what is not known here, is as good as absent: no
//! dictionary is used, and nobody gets less than without one.

mod pattern;

use message::HeaderId;
use message::list::members;
use message::sf::{BareItem, Member, Value, parse_dictionary};

pub use pattern::MatchPattern;

use crate::accept;

/// Bytes of the SHA-256 by which a dictionary is known.
pub const HASH_BYTES: usize = 32;

/// The SHA-256 of a dictionary: of its content without any coding.
pub type DictionaryHash = [u8; HASH_BYTES];

/// Most bytes of an `id` (RFC 9842 2.1.3).
const ID_BYTES: usize = 1024;

/// Most destinations, and bytes of the name of one: there are 26 in Fetch, of 14 bytes at most.
const DESTINATIONS: usize = 32;
const DESTINATION_BYTES: usize = 32;

/// A coding that needs a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaCoding {
    /// Zstandard with a dictionary (RFC 9842 5).
    Dcz,
    /// Brotli with a dictionary (RFC 9842 4).
    Dcb,
}

impl DeltaCoding {
    /// Both, the one that is sent first where a client takes both alike: it is decoded faster.
    pub const ALL: [Self; 2] = [Self::Dcz, Self::Dcb];

    /// Its name in Content-Encoding and Accept-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Dcz => "dcz",
            Self::Dcb => "dcb",
        }
    }
}

/// The order in Use-As-Dictionary (RFC 9842 2.1): the response may serve as a dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseAsDictionary {
    pattern: MatchPattern,
    /// Destinations of requests (`script`, `document`); empty for all.
    destinations: Box<[Box<[u8]>]>,
}

impl UseAsDictionary {
    /// Reads the values of a response's Use-As-Dictionary. The response is to a request for
    /// `target`, path and query, of `origin`, such as `https://example.com:8443`.
    ///
    /// `None` if they are malformed; if `match` is missing, not understood, or of another origin;
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

    /// Returns true if it may be used for a request for `target` whose Sec-Fetch-Dest is
    /// `destination`. Clients that do not say theirs get nothing that is for some only.
    pub fn is_for(&self, target: &[u8], destination: Option<&[u8]>) -> bool {
        let is_destined = self.destinations.is_empty()
            || destination.is_some_and(|said| self.destinations.iter().any(|one| **one == *said));
        is_destined && self.pattern.matches(target)
    }

    /// Bytes of memory that it takes beside itself.
    pub fn memory(&self) -> usize {
        let names = self.destinations.iter().map(|name| name.len() + size_of::<Box<[u8]>>());
        self.pattern.memory() + names.sum::<usize>()
    }
}

/// Members of the field as they are read.
#[derive(Default)]
struct DictionaryMembers<'a> {
    pattern: Option<&'a [u8]>,
    destinations: Vec<Box<[u8]>>,
    is_wrong: bool,
}

impl<'a> DictionaryMembers<'a> {
    /// Notes a member; those that are not known are passed over (RFC 9651 2.1). Of two with one key
    /// the last counts, so a wrong one is not made good.
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

/// The text of a string whose escapes are as they came (RFC 9651 3.3.3).
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        out.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    out
}

/// Reads the values of a request's Available-Dictionary (RFC 9842 2.2): one byte sequence of 32
/// bytes. `None` for anything else. Allocates nothing.
pub fn available<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<DictionaryHash> {
    let mut values = values.into_iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    // Parameters may follow, and nobody sends any.
    let text = message::list::trim(value).strip_prefix(b":")?.strip_suffix(b":")?;
    base64(text)
}

/// The coding with a dictionary that a client whose Accept-Encoding has these values takes at least
/// as gladly as any other. It must name it: `*` stands for no coding that needs a dictionary.
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

/// Adds Available-Dictionary to what a response varies by.
pub fn vary_by_dictionary(headers: &mut message::HeaderBlock) {
    let is_said = |name: &[u8]| HeaderId::of(name) == HeaderId::AvailableDictionary;
    if !members(headers.values(HeaderId::Vary)).into_iter().any(is_said) {
        headers.push(HeaderId::Vary, HeaderId::AvailableDictionary.name().as_bytes());
    }
}

/// Decodes the 44 digits of 32 bytes in base64; bits that pad must be 0.
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
