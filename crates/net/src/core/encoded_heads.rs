//! Encoded heads of stored responses: HTTP/2 form, made once and used by every connection of a
//! core. The cache must never keep an object alive.

use std::sync::{Arc, Weak};

use base::HashSeed;
use cache::Object;
use h2::EncodedFields;
use message::HeaderId;

/// The number of entries; each object has one slot, and a newer object replaces an older one.
const PLACES: usize = 4096;

/// The encoded heads of recently requested objects.
#[derive(Debug)]
pub(crate) struct EncodedHeads {
    seed: HashSeed,
    /// An object's address is not reused while a reference points to it, even a weak one.
    places: Vec<Option<(Weak<Object>, EncodedFields)>>,
}

impl EncodedHeads {
    pub(crate) fn new(seed: HashSeed) -> Self {
        Self { seed, places: Vec::new() }
    }

    /// The head of `object`, except status and framing.
    pub(crate) fn head(&mut self, object: &Arc<Object>) -> &EncodedFields {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        let address = Arc::as_ptr(object);
        let place = &mut self.places[place_of(address.addr())];
        if !matches!(place, Some((weak, _)) if weak.as_ptr() == address) {
            let block = EncodedFields::new(&self.seed, fields(object.head()));
            *place = Some((Arc::downgrade(object), block));
        }
        // The entry was valid or has just been replaced.
        &place.get_or_insert_with(|| (Weak::new(), EncodedFields::default())).1
    }

    /// Removes the entries of objects that were freed.
    pub(crate) fn sweep(&mut self) {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|(weak, _)| weak.strong_count() == 0) {
                *place = None;
            }
        }
    }
}

/// Hashes an address, whose own bits vary little.
fn place_of(address: usize) -> usize {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - PLACES.ilog2())) as usize
}

/// The fields of a stored head, after its status line.
pub(crate) fn fields(head: &[u8]) -> impl Iterator<Item = (HeaderId, &[u8], &[u8])> {
    let lines = memchr::memchr(b'\n', head).map_or(&[][..], |at| &head[at + 1..]);
    lines_of(lines)
}

/// The fields in lines that our own engine wrote.
pub(crate) fn lines_of(lines: &[u8]) -> impl Iterator<Item = (HeaderId, &[u8], &[u8])> {
    lines.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_suffix(b"\r")?;
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii_start());
        Some((HeaderId::of(name), name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_fields() {
        let head = b"HTTP/1.1 200 OK\r\nServer: a: b\r\nX-Empty: \r\n";
        let found: Vec<_> = fields(head).collect();
        assert_eq!(
            found,
            [
                (HeaderId::Server, &b"Server"[..], &b"a: b"[..]),
                (HeaderId::Other, &b"X-Empty"[..], &b""[..]),
            ]
        );
        assert_eq!(fields(b"HTTP/1.1 200 OK").count(), 0);
    }
}
