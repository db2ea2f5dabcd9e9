//! The pages of a shard's cold entries: a few dozen entries each, by 32 bits of hash. Pages are
//! split one at a time as entries are added (linear hashing, Litwin 1980). So no second table is
//! ever needed, no removal leaves a gap, and the memory of the entries never exceeds its own limit.

use std::sync::Arc;

use base::Allowance;

use crate::size;
use crate::slot::ResponseFingerprint;

/// Average entries of a page at which another page is begun. A page is searched from its beginning,
/// and a split moves about half of one.
const FILL: usize = 24;
/// Pages that are allocated together.
const BLOCK: usize = 64;
/// Entries of a page's first allocation, and its least growth.
const ENTRIES_MIN: usize = 4;
/// A page grows by one part in this many of its entries.
const GROWTH_PARTS: usize = 4;

/// A response in the lower tier. Only the tier knows its key. A key may have an entry for each
/// variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColdEntry<P> {
    pub(super) likeness: ResponseFingerprint,
    pub(super) h32: u32,
    pub(super) place: P,
}

type ColdPage<P> = Vec<ColdEntry<P>>;

/// Cold entries by their 32 bits of hash.
#[derive(Debug)]
pub(crate) struct Pages<P> {
    blocks: Vec<Box<[ColdPage<P>]>>,
    /// Pages in use.
    pages: usize,
    len: usize,
    /// Bytes reserved in `room`.
    bytes: u64,
    room: Arc<Allowance>,
}

/// Bytes of a page with room for this many entries.
fn page_bytes<P>(entries: usize) -> u64 {
    if entries == 0 { 0 } else { size::class(entries * size_of::<ColdEntry<P>>()) }
}

/// Bytes of a block, including its entry in the list of blocks.
fn block_bytes<P>() -> u64 {
    size::class(BLOCK * size_of::<ColdPage<P>>()) + size_of::<Box<[ColdPage<P>]>>() as u64
}

impl<P: Copy> Pages<P> {
    pub(super) fn new(room: &Arc<Allowance>) -> Self {
        Self { blocks: Vec::new(), pages: 0, len: 0, bytes: 0, room: Arc::clone(room) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of the page for a hash. It always exists.
    fn page_of(&self, h32: u32) -> usize {
        let most = self.pages.next_power_of_two();
        let page = h32 as usize & (most - 1);
        if page < self.pages { page } else { page - most / 2 }
    }

    fn page(&self, number: usize) -> &ColdPage<P> {
        &self.blocks[number / BLOCK][number % BLOCK]
    }

    fn page_mut(&mut self, number: usize) -> &mut ColdPage<P> {
        &mut self.blocks[number / BLOCK][number % BLOCK]
    }

    /// Entries that have this hash.
    pub(super) fn of_hash(&self, h32: u32) -> impl Iterator<Item = &ColdEntry<P>> {
        let page = (self.pages > 0).then(|| self.page(self.page_of(h32)));
        page.into_iter().flatten().filter(move |cold| cold.h32 == h32)
    }

    pub(super) fn find_mut(
        &mut self,
        h32: u32,
        mut is_it: impl FnMut(&ColdEntry<P>) -> bool,
    ) -> Option<&mut ColdEntry<P>> {
        if self.pages == 0 {
            return None;
        }
        let page = self.page_of(h32);
        self.page_mut(page).iter_mut().find(|cold| cold.h32 == h32 && is_it(cold))
    }

    /// Removes an entry.
    pub(super) fn remove(
        &mut self,
        h32: u32,
        mut is_it: impl FnMut(&ColdEntry<P>) -> bool,
    ) -> Option<ColdEntry<P>> {
        if self.pages == 0 {
            return None;
        }
        let number = self.page_of(h32);
        let page = self.page_mut(number);
        let at = page.iter().position(|cold| cold.h32 == h32 && is_it(cold))?;
        let gone = page.swap_remove(at);
        self.len -= 1;
        self.tighten(number);
        Some(gone)
    }

    /// Makes room for one more entry of this hash. Returns false if the allowance has none.
    pub(super) fn make_room(&mut self, h32: u32) -> bool {
        if self.pages == 0 && !self.begin_page() {
            return false;
        }
        let number = self.page_of(h32);
        let page = self.page(number);
        if page.len() < page.capacity() {
            return true;
        }
        let more = (page.len() / GROWTH_PARTS).max(ENTRIES_MIN);
        self.resize(number, page.len() + more)
    }

    /// Adds an entry, which has room. Returns the number of other entries that were moved.
    pub(super) fn insert(&mut self, cold: ColdEntry<P>) -> usize {
        let number = self.page_of(cold.h32);
        let page = self.page_mut(number);
        debug_assert!(page.len() < page.capacity(), "nothing may move all at once");
        page.push(cold);
        self.len += 1;
        if self.len > self.pages * FILL { self.split() } else { 0 }
    }

    /// Gives a page an allocation for `entries`. Returns false if the allowance is too small.
    fn resize(&mut self, number: usize, entries: usize) -> bool {
        let before = page_bytes::<P>(self.page(number).capacity());
        let after = page_bytes::<P>(entries);
        if after > before && !self.room.try_take(after - before) {
            return false;
        }
        let page = self.page_mut(number);
        let mut resized = Vec::with_capacity(entries);
        resized.append(page);
        *page = resized;
        self.room.give(before.saturating_sub(after));
        self.bytes = self.bytes + after - before;
        true
    }

    /// Shrinks the allocation of a page that has become too large.
    fn tighten(&mut self, number: usize) {
        let page = self.page(number);
        let (len, spare) = (page.len(), page.capacity() - page.len());
        if spare > 2 * (len / GROWTH_PARTS).max(ENTRIES_MIN) {
            self.resize(number, len + if len > 0 { ENTRIES_MIN } else { 0 });
        }
    }

    /// Begins the next page, empty. Returns false if the allowance has no room for a block.
    fn begin_page(&mut self) -> bool {
        if self.pages.is_multiple_of(BLOCK) {
            let bytes = block_bytes::<P>();
            if !self.room.try_take(bytes) {
                return false;
            }
            self.bytes += bytes;
            self.blocks.push((0..BLOCK).map(|_| Vec::new()).collect());
        }
        self.pages += 1;
        true
    }

    /// Begins another page and moves its entries into it. Returns the number moved: zero if the
    /// allowance has no room, so that pages become longer.
    fn split(&mut self) -> usize {
        let new = self.pages;
        let mask = (new + 1).next_power_of_two() - 1;
        let from = new - mask.div_ceil(2);
        let moves = |cold: &ColdEntry<P>| cold.h32 as usize & mask == new;
        let count = self.page(from).iter().filter(|cold| moves(cold)).count();
        let places = count + if count > 0 { ENTRIES_MIN } else { 0 };
        let bytes = page_bytes::<P>(places);
        if !self.room.try_take(bytes) {
            return 0;
        }
        self.bytes += bytes;
        if !self.begin_page() {
            self.bytes -= bytes;
            self.room.give(bytes);
            return 0;
        }
        let mut moved = Vec::with_capacity(places);
        moved.extend(self.page_mut(from).extract_if(.., |cold| moves(cold)));
        *self.page_mut(new) = moved;
        self.tighten(from);
        count
    }

    // Walks. An entry that stays from beginning to end is seen: a split moves entries only to the
    // last page.

    /// Passes the pages behind `cursor`, about `entries` entries, to `each`. Returns false at the
    /// end.
    pub(super) fn walk(
        &self,
        cursor: &mut usize,
        entries: usize,
        mut each: impl FnMut(&ColdEntry<P>),
    ) -> bool {
        let mut seen = 0;
        while *cursor < self.pages && seen < entries {
            let page = self.page(*cursor);
            page.iter().for_each(&mut each);
            seen += page.len().max(1);
            *cursor += 1;
        }
        *cursor < self.pages
    }

    /// Removes the entries of the pages behind `cursor`, about `entries` of them. Returns false at
    /// the end.
    pub(super) fn drain(
        &mut self,
        cursor: &mut usize,
        entries: usize,
        gone: &mut Vec<ColdEntry<P>>,
    ) -> bool {
        let end = gone.len() + entries;
        while *cursor < self.pages && gone.len() < end {
            let page = std::mem::take(self.page_mut(*cursor));
            let bytes = page_bytes::<P>(page.capacity());
            self.room.give(bytes);
            self.bytes -= bytes;
            self.len -= page.len();
            gone.extend(page);
            *cursor += 1;
        }
        *cursor < self.pages
    }
}

impl<P> Drop for Pages<P> {
    fn drop(&mut self) {
        self.room.give(self.bytes);
    }
}

#[cfg(test)]
impl<P: Copy> Pages<P> {
    /// Asserts that the reserved bytes are those in use.
    pub(super) fn check(&self) {
        let pages = (0..self.pages).map(|number| self.page(number));
        let own: u64 = pages.clone().map(|page| page_bytes::<P>(page.capacity())).sum();
        assert_eq!(self.bytes, own + self.blocks.len() as u64 * block_bytes::<P>());
        assert_eq!(self.len, pages.map(Vec::len).sum::<usize>());
        let at_home =
            |number: usize| self.page(number).iter().all(|it| self.page_of(it.h32) == number);
        assert!((0..self.pages).all(at_home));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cold(n: u32) -> ColdEntry<u64> {
        // Some entries share a hash.
        let h32 = (n / 3).wrapping_mul(0x9e37_79b9);
        ColdEntry { likeness: ResponseFingerprint::NONE, h32, place: u64::from(n) }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert,
        Remove(usize),
        Move(usize),
        Walk,
        Drain,
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Compared with a plain list, within a limit that is reached now and then.
        #[test]
        fn entries_are_found_until_they_leave_and_the_bound_holds(
            most in 2_000_u64..40_000,
            ops in proptest::collection::vec(
                prop_oneof![
                    60 => Just(Op::Insert),
                    25 => any::<usize>().prop_map(Op::Remove),
                    10 => any::<usize>().prop_map(Op::Move),
                    2 => Just(Op::Walk),
                    1 => Just(Op::Drain),
                ],
                0..3000,
            ),
        ) {
            let room = Allowance::new(most);
            let mut pages = Pages::new(&room);
            let (mut plain, mut next) = (Vec::new(), 0_u32);
            for op in ops {
                match op {
                    Op::Insert => {
                        let new = cold(next);
                        next += 1;
                        if pages.make_room(new.h32) {
                            prop_assert!(pages.insert(new) <= 8 * FILL);
                            plain.push(new);
                        }
                    }
                    Op::Remove(at) if !plain.is_empty() => {
                        let gone = plain.swap_remove(at % plain.len());
                        let removed = pages.remove(gone.h32, |cold| cold.place == gone.place);
                        prop_assert_eq!(removed.map(|cold| cold.place), Some(gone.place));
                        prop_assert!(pages.remove(gone.h32, |it| it.place == gone.place).is_none());
                    }
                    Op::Move(at) if !plain.is_empty() => {
                        let at = at % plain.len();
                        let old = plain[at];
                        let found = pages.find_mut(old.h32, |cold| cold.place == old.place);
                        plain[at].place += 1 << 40;
                        found.expect("it is there").place = plain[at].place;
                    }
                    Op::Remove(_) | Op::Move(_) => {}
                    Op::Walk => {
                        let (mut cursor, mut seen) = (0, Vec::new());
                        while pages.walk(&mut cursor, 10, |cold| seen.push(cold.place)) {}
                        let mut all: Vec<u64> = plain.iter().map(|cold| cold.place).collect();
                        seen.sort_unstable();
                        all.sort_unstable();
                        prop_assert_eq!(seen, all);
                    }
                    Op::Drain => {
                        let (mut cursor, mut gone) = (0, Vec::new());
                        while pages.drain(&mut cursor, 10, &mut gone) {}
                        prop_assert_eq!(gone.len(), plain.len());
                        plain.clear();
                    }
                }
                pages.check();
                prop_assert_eq!(pages.len(), plain.len());
                prop_assert!(room.used() <= most && room.used() == pages.bytes);
            }
            for own in &plain {
                let alike = plain.iter().filter(|other| other.h32 == own.h32).count();
                prop_assert_eq!(pages.of_hash(own.h32).count(), alike);
            }
            drop(pages);
            prop_assert_eq!(room.used(), 0);
        }
    }

    #[test]
    fn an_entry_takes_less_than_twenty_one_bytes_however_many_there_are() {
        for many in [10_000_u32, 30_000, 100_000] {
            let room = Allowance::new(u64::MAX);
            let mut pages = Pages::new(&room);
            for n in 0..many {
                let new = cold(n.wrapping_mul(3));
                assert!(pages.make_room(new.h32));
                pages.insert(new);
            }
            let each = room.used() as f64 / f64::from(many);
            assert!(each < 21.0, "{each} bytes each of {many}");
        }
    }
}
