//! Open file cache of one core: results of lookups, with their files open (nginx:
//! `open_file_cache`).

use std::sync::Arc;

use base::HashSeed;
use hashbrown::HashTable;

use crate::path_lookup::PathLookup;
use crate::root::Root;

/// Milliseconds that an unused entry keeps its file open (nginx: `inactive`, 60 s by default;
/// shorter here, since a deleted file occupies the disk while it is open).
const UNUSED_MS: u64 = 20_000;

/// Results by root and path. The table is limited: when it is full, an entry that was not used
/// since the last eviction round is evicted (second chance).
#[derive(Debug)]
pub struct OpenFileCache {
    seed: HashSeed,
    by_path: HashTable<u32>,
    entries: Vec<Entry>,
    hand: usize,
    evicted: u64,
}

#[derive(Debug)]
struct Entry {
    root: Arc<Root>,
    path: Box<[u8]>,
    hash: u64,
    look: PathLookup,
    checked_ms: u64,
    used_ms: u64,
    used: bool,
}

impl Entry {
    fn is(&self, root: &Arc<Root>, path: &[u8]) -> bool {
        Arc::ptr_eq(&self.root, root) && *self.path == *path
    }
}

impl Default for OpenFileCache {
    fn default() -> Self {
        Self::new(HashSeed::random())
    }
}

impl OpenFileCache {
    /// An empty table.
    pub fn new(seed: HashSeed) -> Self {
        Self { seed, by_path: HashTable::new(), entries: Vec::new(), hand: 0, evicted: 0 }
    }

    /// The number of evicted entries.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn place(&self, root: &Arc<Root>, path: &[u8], hash: u64) -> Option<usize> {
        let is = |at: &u32| self.entries[*at as usize].is(root, path);
        self.by_path.find(hash, is).map(|at| *at as usize)
    }

    /// The result for `path` below `root`, if it was looked up less than `recheck_ms` before
    /// `now_ms`.
    pub fn find(
        &mut self,
        root: &Arc<Root>,
        path: &[u8],
        now_ms: u64,
        recheck_ms: u64,
    ) -> Option<&PathLookup> {
        let at = self.place(root, path, self.seed.hash(path))?;
        let entry = &mut self.entries[at];
        if now_ms >= entry.checked_ms.saturating_add(recheck_ms) {
            return None;
        }
        (entry.used, entry.used_ms) = (true, now_ms);
        Some(&entry.look)
    }

    /// Adds the result for `path` at `now_ms`, and returns it, or the earlier one if nothing has
    /// changed. At most `most` paths are kept.
    pub fn put(
        &mut self,
        root: &Arc<Root>,
        path: &[u8],
        look: PathLookup,
        now_ms: u64,
        most: usize,
    ) -> PathLookup {
        let hash = self.seed.hash(path);
        if let Some(at) = self.place(root, path, hash) {
            let entry = &mut self.entries[at];
            entry.look = look.or_as(&entry.look);
            (entry.checked_ms, entry.used_ms, entry.used) = (now_ms, now_ms, true);
            return entry.look.clone();
        }
        // A failure for lack of descriptors is not cached.
        if most == 0 || matches!(look, PathLookup::Exhausted) {
            return look;
        }
        while self.entries.len() >= most {
            self.evict();
            self.evicted += 1;
        }
        let at = self.entries.len() as u32;
        self.entries.push(Entry {
            root: Arc::clone(root),
            path: path.into(),
            hash,
            look: look.clone(),
            checked_ms: now_ms,
            used_ms: now_ms,
            used: false,
        });
        let entries = &self.entries;
        self.by_path.insert_unique(hash, at, |at| entries[*at as usize].hash);
        look
    }

    /// Evicts one entry: the next that was not used since the hand last passed it.
    fn evict(&mut self) {
        loop {
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let entry = &mut self.entries[self.hand];
            if !std::mem::take(&mut entry.used) {
                return self.remove(self.hand);
            }
        }
    }

    fn remove(&mut self, at: usize) {
        let last = self.entries.len() - 1;
        let hash = self.entries[at].hash;
        if let Ok(found) = self.by_path.find_entry(hash, |other| *other as usize == at) {
            found.remove();
        }
        if at != last {
            let moved = self.entries[last].hash;
            if let Some(index) = self.by_path.find_mut(moved, |other| *other as usize == last) {
                *index = at as u32;
            }
        }
        self.entries.swap_remove(at);
    }

    /// Removes entries that were unused for a while, including those of former configurations.
    /// Called about once a second.
    pub fn sweep(&mut self, now_ms: u64) {
        for at in (0..self.entries.len()).rev() {
            if now_ms >= self.entries[at].used_ms.saturating_add(UNUSED_MS) {
                self.remove(at);
            }
        }
    }

    /// The number of cached paths.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no path is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::Config;

    fn root() -> Arc<Root> {
        Root::new(Config::new(PathBuf::from("/nowhere")))
    }

    fn table() -> OpenFileCache {
        OpenFileCache::new(HashSeed::from_u64(7))
    }

    #[test]
    fn what_was_seen_is_good_for_as_long_as_settings_say() {
        let (mut table, one, other) = (table(), root(), root());
        table.put(&one, b"/a", PathLookup::Slash, 1_000, 10);
        assert!(matches!(table.find(&one, b"/a", 1_999, 1_000), Some(PathLookup::Slash)));
        assert!(table.find(&one, b"/a", 2_000, 1_000).is_none());
        assert!(table.find(&one, b"/a", 1_000, 0).is_none(), "nothing is trusted");
        assert!(table.find(&one, b"/b", 1_000, 1_000).is_none());
        assert!(table.find(&other, b"/a", 1_000, 1_000).is_none(), "another root");
        table.put(&one, b"/a", PathLookup::Missing, 2_000, 10);
        assert!(matches!(table.find(&one, b"/a", 2_000, 1_000), Some(PathLookup::Missing)));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn it_stays_within_its_bound_and_keeps_what_is_asked_for() {
        let (mut table, root) = (table(), root());
        table.put(&root, b"/busy", PathLookup::Slash, 0, 8);
        for n in 0..1_000 {
            assert!(table.find(&root, b"/busy", 1, 10).is_some(), "before {n}");
            table.put(&root, format!("/{n}").as_bytes(), PathLookup::Missing, 1, 8);
            assert!(table.len() <= 8);
        }
        // Each remaining entry is still found by its path: moving entries loses none.
        let left =
            (0..1_000).filter(|n| table.find(&root, format!("/{n}").as_bytes(), 1, 10).is_some());
        assert_eq!(left.count(), 7);
    }

    #[test]
    fn a_table_without_room_remembers_nothing() {
        let (mut table, root) = (table(), root());
        assert!(matches!(table.put(&root, b"/a", PathLookup::Slash, 0, 0), PathLookup::Slash));
        table.put(&root, b"/b", PathLookup::Exhausted, 0, 8);
        assert!(table.is_empty());
    }

    #[test]
    fn what_nobody_asks_for_is_given_up() {
        let (mut table, root) = (table(), root());
        for n in 0..20_u64 {
            table.put(&root, format!("/{n}").as_bytes(), PathLookup::Missing, n * 1_000, 100);
        }
        table.sweep(UNUSED_MS + 9_000);
        assert_eq!(table.len(), 10);
        assert!(table.find(&root, b"/15", 15_000, 1_000).is_some());
        assert!(table.find(&root, b"/9", 9_000, 1_000).is_none());
    }
}
