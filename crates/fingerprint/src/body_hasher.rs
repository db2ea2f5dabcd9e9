//! Body hasher: the fingerprint of one response, made while its body passes.

use base::HashSeed;

use crate::block_hash::BlockHash;

/// The fingerprint of a response: a hash of every byte of its body, and of the parts of its head
/// that belong to it. Only fingerprints of one seed can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyFingerprint(pub u64);

/// A fingerprint in progress: [`push`](Self::push) for each piece of the body, then
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct BodyHasher {
    seed: HashSeed,
    hash: BlockHash,
}

impl BodyHasher {
    /// Begins a fingerprint by `parts` of the head that two equal responses have in common.
    pub fn new(seed: HashSeed, parts: &[&[u8]]) -> Self {
        let mut hash = BlockHash::default();
        for part in parts {
            hash.push(&seed, &(part.len() as u64).to_le_bytes());
            hash.push(&seed, part);
        }
        Self { seed, hash }
    }

    /// Takes a piece of the body.
    pub fn push(&mut self, piece: &[u8]) {
        self.hash.push(&self.seed, piece);
    }

    /// The fingerprint of the body as it has come.
    pub fn finish(self) -> BodyFingerprint {
        BodyFingerprint(self.hash.value(&self.seed))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of<'a>(parts: &[&[u8]], pieces: impl IntoIterator<Item = &'a [u8]>) -> BodyFingerprint {
        let mut hasher = BodyHasher::new(HashSeed::from_u64(1), parts);
        pieces.into_iter().for_each(|piece| hasher.push(piece));
        hasher.finish()
    }

    #[test]
    fn the_parts_of_the_head_count() {
        let parts: [&[&[u8]]; 4] = [&[b"200", b""], &[b"301", b""], &[b"301", b"/a"], &[b"301/a"]];
        let all = parts.map(|parts| of(parts, [&b"x"[..]]));
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one));
        }
    }

    proptest! {
        #[test]
        fn no_cut_changes_a_fingerprint(
            body in prop::collection::vec(any::<u8>(), 0..2000), size in 1_usize..700,
        ) {
            prop_assert_eq!(of(&[], body.chunks(size)), of(&[], [&body[..]]));
        }

        #[test]
        fn bodies_that_differ_have_other_fingerprints(
            body in prop::collection::vec(any::<u8>(), 1..2000), at: prop::sample::Index,
        ) {
            let mut other = body.clone();
            other[at.index(body.len())] ^= 1;
            let differs = |one: &[u8]| of(&[], [one]) != of(&[], [&body[..]]);
            prop_assert!(differs(&other) && differs(&body[1..]));
            prop_assert!(differs(&[&body[..], b"\0"].concat()));
        }
    }
}
