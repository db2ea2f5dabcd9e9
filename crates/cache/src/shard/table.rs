//! The table of a shard: its slots by hash. It grows in small steps: a larger table replaces it,
//! and each insertion moves a few entries. No call may move all entries at once.

use hashbrown::HashTable;
use hashbrown::hash_table::OccupiedEntry;

use crate::size;
use crate::slot::IndexSlot;

/// Places of the old table that one insertion empties. With sixteen the old table is empty long
/// before the new one is full, see [`ShardTable::next_buckets`].
const MOVED: usize = 16;

/// The table takes the bucket from the low bits, and a tag from the high ones.
fn spread(h32: u32) -> u64 {
    u64::from(h32) << 32 | u64::from(h32)
}

fn hash_of(slot: &IndexSlot) -> u64 {
    spread(slot.h32())
}

/// Entries for which this many buckets have room.
fn room_of(buckets: usize) -> usize {
    if buckets <= 8 { buckets - 1 } else { buckets / 8 * 7 }
}

/// The position of a walk over a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// The number of the layout whose table it is in.
    layout: u32,
    bucket: usize,
}

/// Slots by their 32 bits of hash.
#[derive(Debug)]
pub(crate) struct ShardTable {
    current: HashTable<IndexSlot>,
    /// The former table, until it is empty.
    old: HashTable<IndexSlot>,
    /// Buckets of `old` before this one are empty.
    moved: usize,
    /// Number of `current`; `old` had the one before.
    layout: u32,
}

impl ShardTable {
    /// An empty table with this number. A walk over another table starts again here.
    pub(super) fn new(layout: u32) -> Self {
        Self { current: HashTable::new(), old: HashTable::new(), moved: 0, layout }
    }

    /// A number for an empty table that replaces this one.
    pub(super) fn next_layout(&self) -> u32 {
        self.layout.wrapping_add(2)
    }

    pub(super) fn len(&self) -> usize {
        self.current.len() + self.old.len()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &IndexSlot> {
        self.current.iter().chain(&self.old)
    }

    #[inline]
    pub(super) fn find(&self, h32: u32, is_it: impl Fn(&IndexSlot) -> bool) -> Option<&IndexSlot> {
        match self.current.find(spread(h32), &is_it) {
            None if !self.old.is_empty() => self.old.find(spread(h32), is_it),
            found => found,
        }
    }

    pub(super) fn find_mut(
        &mut self,
        h32: u32,
        is_it: impl Fn(&IndexSlot) -> bool,
    ) -> Option<&mut IndexSlot> {
        match self.current.find_mut(spread(h32), &is_it) {
            None => self.old.find_mut(spread(h32), is_it),
            found => found,
        }
    }

    pub(super) fn find_entry(
        &mut self,
        h32: u32,
        is_it: impl Fn(&IndexSlot) -> bool,
    ) -> Option<OccupiedEntry<'_, IndexSlot>> {
        match self.current.find_entry(spread(h32), &is_it) {
            Ok(entry) => Some(entry),
            Err(_) => self.old.find_entry(spread(h32), is_it).ok(),
        }
    }

    /// Slots that may have this hash.
    pub(super) fn of_hash(&self, h32: u32) -> impl Iterator<Item = &IndexSlot> {
        self.current.iter_hash(spread(h32)).chain(self.old.iter_hash(spread(h32)))
    }

    /// Adds a slot whose key is absent. The table has room. Returns the number of other slots that
    /// were moved.
    pub(super) fn insert(&mut self, slot: IndexSlot) -> usize {
        debug_assert!(!self.is_full(), "nothing may move all at once");
        let moved = self.move_some();
        self.current.insert_unique(hash_of(&slot), slot, hash_of);
        moved
    }

    // Memory.

    /// Returns true if the table is full, counting the entries that are still in the old table.
    fn is_full(&self) -> bool {
        self.len() >= self.current.capacity()
    }

    /// Buckets of the table that replaces a full one: twice as many, or equally many if half of it
    /// is only room that removals have made unusable.
    ///
    /// So while entries are moved, the new table has room for at least a sixteenth of the old one's
    /// buckets beyond the old entries: enough for the insertions that empty the old one.
    fn next_buckets(&self) -> usize {
        let buckets = self.current.num_buckets();
        let is_sparse = self.len() <= room_of(buckets.max(4)) / 2;
        let next = if is_sparse { buckets } else { buckets * 2 };
        next.max(4)
    }

    /// Bytes to reserve for one more slot; zero if it fits now.
    pub(super) fn growth(&self) -> u64 {
        if !self.is_full() {
            return 0;
        }
        // A control byte for each bucket, and a group of them at the end.
        size::class(self.next_buckets() * (size_of::<IndexSlot>() + 1) + 64)
    }

    pub(super) fn memory(&self) -> u64 {
        size::class(self.current.allocation_size()) + size::class(self.old.allocation_size())
    }

    /// Returns true if the former table still takes memory.
    pub(super) fn is_moving(&self) -> bool {
        self.old.allocation_size() > 0
    }

    /// Begins a larger table. Returns the number of entries moved.
    pub(super) fn grow(&mut self) -> usize {
        debug_assert!(self.old.is_empty(), "the new table was full before the old one was empty");
        let next = HashTable::with_capacity(room_of(self.next_buckets()));
        self.old = std::mem::replace(&mut self.current, next);
        self.moved = 0;
        self.layout = self.layout.wrapping_add(1);
        self.move_some()
    }

    /// Moves the entries of the next few places of the old table.
    fn move_some(&mut self) -> usize {
        if !self.is_moving() {
            return 0;
        }
        let before = self.old.len();
        let end = self.old.num_buckets().min(self.moved + MOVED);
        for bucket in self.moved..end {
            if let Ok(entry) = self.old.get_bucket_entry(bucket) {
                let (slot, _) = entry.remove();
                self.current.insert_unique(hash_of(&slot), slot, hash_of);
            }
        }
        self.moved = end;
        let moved = before - self.old.len();
        if self.old.is_empty() {
            self.old = HashTable::new();
        }
        moved
    }

    // Walks. An entry that stays from beginning to end is seen: entries move only from a table to
    // the next one, and the old one is visited first.

    /// The next places of a walk, at most this many, and true if they are in the old table.
    fn next_places(&self, cursor: &mut Position, places: usize) -> (std::ops::Range<usize>, bool) {
        let older = self.layout.wrapping_sub(1);
        if cursor.layout != self.layout && cursor.layout != older {
            *cursor = Position { layout: older, bucket: 0 };
        }
        if cursor.layout == older && self.old.is_empty() {
            *cursor = Position { layout: self.layout, bucket: 0 };
        }
        let is_old = cursor.layout == older;
        let buckets = if is_old { self.old.num_buckets() } else { self.current.num_buckets() };
        (cursor.bucket..buckets.min(cursor.bucket + places), is_old)
    }

    /// Moves a walk behind these places. Returns true if there are more.
    fn pass(&self, cursor: &mut Position, end: usize, is_old: bool) -> bool {
        cursor.bucket = end;
        if !is_old {
            return end < self.current.num_buckets();
        }
        if end >= self.old.num_buckets() {
            *cursor = Position { layout: self.layout, bucket: 0 };
        }
        true
    }

    /// Passes the slots of the next `places` to `each`. Returns false at the end.
    pub(super) fn walk<'t>(
        &'t self,
        cursor: &mut Position,
        places: usize,
        each: impl FnMut(&'t IndexSlot),
    ) -> bool {
        let (places, is_old) = self.next_places(cursor, places);
        let end = places.end;
        let table = if is_old { &self.old } else { &self.current };
        places.filter_map(|bucket| table.get_bucket(bucket)).for_each(each);
        self.pass(cursor, end, is_old)
    }

    /// Removes the slots of the next `places`. Returns false at the end.
    pub(super) fn drain(
        &mut self,
        cursor: &mut Position,
        places: usize,
        mut each: impl FnMut(IndexSlot),
    ) -> bool {
        let (places, is_old) = self.next_places(cursor, places);
        let end = places.end;
        let table = if is_old { &mut self.old } else { &mut self.current };
        for bucket in places {
            if let Ok(entry) = table.get_bucket_entry(bucket) {
                each(entry.remove().0);
            }
        }
        self.pass(cursor, end, is_old)
    }
}
