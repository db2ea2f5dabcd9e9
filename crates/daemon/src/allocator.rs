//! The time that the allocator (jemalloc) keeps freed memory before the kernel gets it back.
//! Keeping saves the kernel's work where the same memory is soon allocated again. Kept memory
//! counts as the process's memory all the same.

// The demo build has the system's allocator, which keeps freed memory as it likes.
#[cfg_attr(larder_demo, path = "allocator/system.rs")]
mod jemalloc;

/// Its arenas: each core has one.
pub(crate) struct Arenas {
    keep: jemalloc::Keep,
    /// The time that was last set, in milliseconds.
    ms: isize,
}

impl Arenas {
    /// All of the process; `None` where the allocator is another.
    pub(crate) fn open() -> Option<Self> {
        Some(Self { keep: jemalloc::open()?, ms: -1 })
    }

    /// Has freed memory kept for `ms` milliseconds.
    pub(crate) fn keep_for(&mut self, ms: u64) {
        let ms = isize::try_from(ms).unwrap_or(isize::MAX);
        if ms != self.ms {
            jemalloc::say(&mut self.keep, ms);
            self.ms = ms;
        }
    }

    /// Has all that is kept given back now.
    pub(crate) fn give_back(&mut self) {
        jemalloc::say(&mut self.keep, 0);
        jemalloc::say(&mut self.keep, self.ms);
    }
}

#[cfg(test)]
mod tests {
    use tikv_jemalloc_ctl::{Access, AsName};

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
