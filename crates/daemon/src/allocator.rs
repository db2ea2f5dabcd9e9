//! The time that the allocator (jemalloc) keeps freed memory before the kernel gets it back.
//! Keeping saves the kernel's work where the same memory is soon allocated again. Kept memory
//! counts as the process's memory all the same.

use tikv_jemalloc_ctl::{Access, AsName, Mib, arenas};

/// Its arenas: each core has one.
pub(crate) struct Arenas {
    /// `arena.N.dirty_decay_ms`.
    keep: Mib<[usize; 3]>,
    /// The time that was last set, in milliseconds.
    ms: isize,
}

impl Arenas {
    /// All of the process; `None` where the allocator is another.
    pub(crate) fn open() -> Option<Self> {
        let keep = b"arena.0.dirty_decay_ms\0"[..].name().mib().ok()?;
        Some(Self { keep, ms: -1 })
    }

    /// Has freed memory kept for `ms` milliseconds.
    pub(crate) fn keep_for(&mut self, ms: u64) {
        let ms = isize::try_from(ms).unwrap_or(isize::MAX);
        if ms != self.ms {
            self.say(ms);
            self.ms = ms;
        }
    }

    /// Has all that is kept given back now.
    pub(crate) fn give_back(&mut self) {
        self.say(0);
        self.say(self.ms);
    }

    fn say(&mut self, ms: isize) {
        // For arenas to come. What cannot be said is left as it is: it costs memory, nothing else.
        _ = b"arenas.dirty_decay_ms\0"[..].name().write(ms);
        let count = arenas::narenas::read().unwrap_or(0);
        for arena in 0..count as usize {
            self.keep[1] = arena;
            // Those that nobody has used yet refuse.
            _ = self.keep.write(ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_is_kept_as_long_as_is_said() {
        let mut arenas = Arenas::open().expect("jemalloc");
        for ms in [250, 0, 1_000] {
            arenas.keep_for(ms);
            arenas.give_back();
            let said: isize = b"arena.0.dirty_decay_ms\0"[..].name().read().expect("a number");
            assert_eq!(said as u64, ms);
        }
    }
}
