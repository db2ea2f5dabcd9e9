//! Body hasher: the fingerprint of one response, made while its body passes.

use base::HashSeed;

use crate::block_hash::BlockHash;
use crate::masker::Masker;

/// The fingerprint of a response's body and of the fields that belong to it. Only fingerprints of
/// one seed can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyFingerprint {
    /// The hash of every byte.
    pub exact: u64,
    /// The hash with numbers and tokens masked; equal to `exact` where a body is not masked.
    pub masked: u64,
}

/// A fingerprint in progress: [`push`](Self::push) for each piece of the body, then
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct BodyHasher {
    seed: HashSeed,
    exact: BlockHash,
    /// `None` for a body that is no plain text.
    masked: Option<(Masker, BlockHash)>,
}

impl BodyHasher {
    /// Begins a fingerprint by `parts` of the head that two equal responses have in common. Only
    /// text is masked: in other bodies, and in coded ones, numbers are no numbers.
    pub fn new(seed: HashSeed, parts: &[&[u8]], is_text: bool) -> Self {
        let mut exact = BlockHash::default();
        for part in parts {
            exact.push(&seed, &(part.len() as u64).to_le_bytes());
            exact.push(&seed, part);
        }
        let masked = is_text.then(|| (Masker::default(), exact.clone()));
        Self { seed, exact, masked }
    }

    /// Takes a piece of the body.
    pub fn push(&mut self, piece: &[u8]) {
        let Self { seed, exact, masked } = self;
        exact.push(seed, piece);
        if let Some((masker, hash)) = masked {
            masker.feed(piece, |text| hash.push(seed, text));
        }
    }

    /// The fingerprint of the body as it has come.
    pub fn finish(mut self) -> BodyFingerprint {
        let seed = &self.seed;
        let exact = self.exact.value(seed);
        let masked = self.masked.as_mut().map(|(masker, hash)| {
            masker.end(|text| hash.push(seed, text));
            hash.value(seed)
        });
        BodyFingerprint { exact, masked: masked.unwrap_or(exact) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of<'a>(
        parts: &[&[u8]],
        pieces: impl IntoIterator<Item = &'a [u8]>,
        is_text: bool,
    ) -> BodyFingerprint {
        let mut hasher = BodyHasher::new(HashSeed::from_u64(1), parts, is_text);
        pieces.into_iter().for_each(|piece| hasher.push(piece));
        hasher.finish()
    }

    fn page(text: &str) -> BodyFingerprint {
        of(&[b"200"], [text.as_bytes()], true)
    }

    #[test]
    fn a_number_changes_the_exact_hash_only() {
        let (one, two, other) = (page("item 1"), page("item 22"), page("items 1"));
        assert!(one.exact != two.exact && one.masked == two.masked);
        assert!(one.masked != other.masked);
        let coded = |text: &str| of(&[b"200"], [text.as_bytes()], false);
        assert!(coded("item 1").masked != coded("item 22").masked);
    }

    #[test]
    fn the_parts_of_the_head_count() {
        let parts: [&[&[u8]]; 4] = [&[b"200", b""], &[b"301", b""], &[b"301", b"/a"], &[b"301/a"]];
        let all = parts.map(|parts| of(parts, [&b"x"[..]], true));
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert!(one.exact != other.exact && one.masked != other.masked);
            }
        }
    }

    proptest! {
        #[test]
        fn no_cut_changes_a_fingerprint(
            body in prop::collection::vec(any::<u8>(), 0..2000),
            size in 1_usize..700,
            is_text: bool,
        ) {
            let whole = of(&[], [&body[..]], is_text);
            prop_assert_eq!(of(&[], body.chunks(size), is_text), whole);
        }

        #[test]
        fn bodies_that_differ_have_other_hashes(
            body in prop::collection::vec(any::<u8>(), 1..2000), at: prop::sample::Index,
        ) {
            let mut other = body.clone();
            other[at.index(body.len())] ^= 1;
            let exact = |one: &[u8]| of(&[], [one], false).exact;
            let differs = |one: &[u8]| exact(one) != exact(&body);
            prop_assert!(differs(&other) && differs(&body[1..]));
            prop_assert!(differs(&[&body[..], b"\0"].concat()));
        }
    }
}
