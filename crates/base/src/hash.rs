//! Keyed hashes, and the bytes of the cache key.

use std::hash::{BuildHasher, Hasher};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// The secret of this process's hash functions, without which collisions cannot be constructed.
#[derive(Clone, Copy)]
pub struct HashSeed(RapidSecrets);

impl HashSeed {
    /// A seed from the operating system's randomness.
    pub fn random() -> Self {
        Self::from_u64(Self::draw())
    }

    /// A number for [`HashSeed::from_u64`], from the operating system's randomness.
    #[expect(clippy::disallowed_types, reason = "the one place that draws randomness from it")]
    pub fn draw() -> u64 {
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    }

    /// A fixed seed, for reproducible tests and benches.
    pub fn from_u64(seed: u64) -> Self {
        Self(RapidSecrets::seed(seed))
    }

    /// Hashes `bytes`.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        rapidhash_v3_seeded(bytes, &self.0)
    }
}

impl std::fmt::Debug for HashSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashSeed(..)")
    }
}

/// A cache key under construction: fields with their lengths, so that different lists of fields
/// have different bytes.
///
/// It is reused from request to request. The index compares all `bytes` after a match of `hash`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBuf {
    bytes: Vec<u8>,
    hash: u64,
}

impl KeyBuf {
    /// An empty key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.hash = 0;
    }

    /// Appends one field: its length, then its bytes.
    pub fn field(&mut self, field: &[u8]) {
        // LEB128: one byte for every field below 128 bytes.
        let mut len = field.len();
        while len >= 0x80 {
            self.bytes.push((len & 0x7f) as u8 | 0x80);
            len >>= 7;
        }
        self.bytes.push(len as u8);
        self.bytes.extend_from_slice(field);
    }

    /// The key with these bytes, from another key's [`KeyBuf::bytes`].
    pub fn of_bytes(bytes: &[u8], seed: &HashSeed) -> Self {
        Self { bytes: bytes.to_vec(), hash: seed.hash(bytes) }
    }

    /// Computes the hash. To be called after the last field.
    pub fn finish(&mut self, seed: &HashSeed) {
        self.hash = seed.hash(&self.bytes);
    }

    /// The hash computed by [`KeyBuf::finish`].
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The encoded fields.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The fields of a key's bytes, in order. Bytes that [`KeyBuf`] has not made may end early.
pub fn key_fields(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (mut len, mut shift) = (0_usize, 0);
        loop {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            len |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
        let (field, rest) = bytes.split_at_checked(len)?;
        bytes = rest;
        Some(field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fields: &[&[u8]]) -> KeyBuf {
        let mut key = KeyBuf::new();
        for field in fields {
            key.field(field);
        }
        key.finish(&HashSeed::from_u64(1));
        key
    }

    #[test]
    fn moving_a_boundary_changes_the_key() {
        assert_ne!(key(&[b"ab", b"c"]).bytes(), key(&[b"a", b"bc"]).bytes());
        assert_ne!(key(&[b"ab", b""]).bytes(), key(&[b"ab"]).bytes());
        let long = [b'x'; 300];
        assert_ne!(key(&[&long[..128], &long[..2]]).bytes(), key(&[&long[..130]]).bytes());
        assert_eq!(key(&[b"a", b"b"]), key(&[b"a", b"b"]));
    }

    #[test]
    fn fields_are_read_back() {
        let long = [b'x'; 20_000];
        let fields: [&[u8]; 5] = [b"s", b"", &long, &long[..127], &long[..128]];
        assert_eq!(key_fields(key(&fields).bytes()).collect::<Vec<_>>(), fields);
        assert_eq!(key_fields(b"\x05ab").count(), 0);
        assert_eq!(key_fields(&[0xff; 30]).count(), 0);
    }

    #[test]
    fn the_seed_changes_the_hash() {
        let (a, b) = (HashSeed::from_u64(1), HashSeed::from_u64(2));
        assert_ne!(a.hash(b"/"), b.hash(b"/"));
    }
}
