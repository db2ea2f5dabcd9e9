//! Tags: the surrogate keys of a response, hashed, and their stored form in a record.

/// Bytes of the number of tags, which follows them.
pub(crate) const COUNT_BYTES: usize = 4;

/// Surrogate keys, hashed and sorted. A key may occur several times: each time counts in
/// [`Ban::finds`](crate::Ban::finds).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Box<[u64]>);

impl Tags {
    /// Makes tags of these hashes, in any order.
    pub fn new(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        Self(hashes.into())
    }

    /// The number of tags.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no tags.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hashes.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied()
    }

    /// Returns true if one of the tags is also in `theirs`.
    pub(crate) fn meets(&self, theirs: StoredTags<'_>) -> bool {
        if self.len() <= theirs.len() {
            return self.iter().any(|tag| theirs.contains(tag));
        }
        theirs.iter().any(|tag| self.0.binary_search(&tag).is_ok())
    }

    /// The number of pairs of a tag and an equal tag in `theirs`.
    pub(crate) fn pairs_with(&self, theirs: StoredTags<'_>) -> u64 {
        self.iter().map(|tag| theirs.count(tag)).sum()
    }
}

/// The stored form of tags: eight bytes each, sorted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredTags<'a>(pub(crate) &'a [[u8; 8]]);

impl StoredTags<'_> {
    fn len(self) -> usize {
        self.0.len()
    }

    /// Bytes of the tags and their number.
    pub(crate) fn block_bytes(self) -> usize {
        size_of_val(self.0) + COUNT_BYTES
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn contains(self, tag: u64) -> bool {
        self.0.binary_search_by_key(&tag, |bytes| u64::from_le_bytes(*bytes)).is_ok()
    }

    fn count(self, tag: u64) -> u64 {
        let from = self.0.partition_point(|bytes| u64::from_le_bytes(*bytes) < tag);
        let equal = |bytes: &&[u8; 8]| u64::from_le_bytes(**bytes) == tag;
        self.0[from..].iter().take_while(equal).count() as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn tags_meet_whichever_list_is_longer() {
        let bytes = |tags: &[u64]| tags.iter().map(|tag| tag.to_le_bytes()).collect::<Vec<_>>();
        let many = bytes(&[1, 5, 9, u64::MAX]);
        for (tags, met) in
            [(vec![], false), (vec![5], true), (vec![4, 6], false), (vec![u64::MAX, 0], true)]
        {
            assert_eq!(Tags::new(tags.clone()).meets(StoredTags(&many)), met, "{tags:?}");
        }
        let long = Tags::new((10..100).chain([5, 5]).collect());
        assert_eq!(long.len(), 92);
        assert!(long.meets(StoredTags(&many)) && !long.meets(StoredTags(&bytes(&[1, 9]))));
    }

    #[test]
    fn repeated_tags_count_again() {
        let bytes = [3_u64, 5, 5, 5, 9].map(u64::to_le_bytes);
        for (tags, pairs) in [(vec![], 0), (vec![4], 0), (vec![5], 3), (vec![9, 5, 9, 5], 8)] {
            assert_eq!(Tags::new(tags.clone()).pairs_with(StoredTags(&bytes)), pairs, "{tags:?}");
        }
    }
}
