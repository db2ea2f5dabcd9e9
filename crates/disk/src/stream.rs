//! A body that is put into the store while it comes: in parts, and then the record that lists them.
//! One that is dropped before its end leaves nothing that counts.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::body::Body;
use crate::disk::Entry;
use crate::place::Place;
use crate::volume::{New, Part, Volume};

/// The fate of bytes that were pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// They are taken.
    Taken,
    /// Too much waits to be written: nothing is taken, and it may be tried again later.
    Full,
    /// The store takes no more of this body.
    Refused,
}

/// A body on its way into the store.
pub struct Stream {
    volume: Arc<Volume>,
    hash: u64,
    parts: Vec<Part>,
    bytes: BytesMut,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(volume: Arc<Volume>, hash: u64) -> Self {
        Self { volume, hash, parts: Vec::new(), bytes: BytesMut::new() }
    }

    /// Adds the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) -> Pushed {
        let part_bytes = self.volume.part_bytes() as usize;
        while self.bytes.len() >= part_bytes {
            let part = self.bytes.split_to(part_bytes).freeze();
            match self.add(&part) {
                Pushed::Taken => {}
                not_taken => {
                    // It stays the beginning of what is left.
                    let rest = std::mem::take(&mut self.bytes);
                    self.bytes = BytesMut::from(&part[..]);
                    self.bytes.extend_from_slice(&rest);
                    return not_taken;
                }
            }
        }
        self.bytes.extend_from_slice(bytes);
        Pushed::Taken
    }

    fn add(&mut self, bytes: &Bytes) -> Pushed {
        if !self.volume.takes() {
            return Pushed::Refused;
        }
        let len = bytes.len() as u64;
        let part = self.volume.add_part(self.hash, Body::Bytes(bytes.clone()), 0..len);
        let Some(part) = part else {
            // Room comes back as the queue is written and segments are reclaimed.
            return Pushed::Full;
        };
        self.parts.push(part);
        Pushed::Taken
    }

    /// Bytes that were taken.
    pub fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.len).sum::<u64>() + self.bytes.len() as u64
    }

    /// Ends the body: `entry` says what it is the body of, and has none itself. `None` if the store
    /// does not keep it.
    pub fn finish(mut self, entry: Entry) -> Option<Place> {
        while self.bytes.len() > self.volume.part_bytes() as usize {
            if self.push(&[]) != Pushed::Taken {
                return None;
            }
        }
        let bytes = std::mem::take(&mut self.bytes).freeze();
        let len = bytes.len() as u64;
        let mut new = New {
            flags: 0,
            hash: self.hash,
            passed: entry.passed,
            expires_ms: entry.expires_ms,
            order: entry.order,
            head: entry.head,
            body: Body::Bytes(bytes),
            range: 0..len,
            total: len,
            moves: false,
        };
        if self.parts.is_empty() {
            return self.volume.put(new);
        }
        if len > 0 {
            let Body::Bytes(bytes) = &new.body else { return None };
            let last = bytes.clone();
            if self.add(&last) != Pushed::Taken {
                return None;
            }
        }
        new.range = 0..0;
        let parts = std::mem::take(&mut self.parts);
        self.volume.add_listed(new, parts)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.volume.bury_parts(&self.parts);
    }
}
