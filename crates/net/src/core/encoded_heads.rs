//! Heads of stored responses, coded for HTTP/2 once and used by every connection of a core.

use std::sync::{Arc, Weak};

use base::HashSeed;
use cache::Object;
use h2::EncodedFields;
use message::HeaderId;

/// Objects whose heads are kept; each has one place, and the newer takes it.
const PLACES: usize = 4096;

/// The heads of the objects asked for lately.
#[derive(Debug)]
pub(crate) struct EncodedHeads {
    seed: HashSeed,
    /// An object's address stays its own as long as anyone points there, if only weakly.
    places: Vec<Option<(Weak<Object>, EncodedFields)>>,
}

impl EncodedHeads {
    pub(crate) fn new(seed: HashSeed) -> Self {
        Self { seed, places: Vec::new() }
    }

    /// The head of `object`, status and framing apart.
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
        // It is there: it was, or was put there.
        &place.get_or_insert_with(|| (Weak::new(), EncodedFields::default())).1
    }

    /// Lets go of objects that are gone.
    pub(crate) fn sweep(&mut self) {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|(weak, _)| weak.strong_count() == 0) {
                *place = None;
            }
        }
    }
}

/// Spreads addresses, which have few bits of their own.
fn place_of(address: usize) -> usize {
    let mixed = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - PLACES.ilog2())) as usize
}

/// The fields of a head as it is stored, after its status line.
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
