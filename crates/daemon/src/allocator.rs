//! The allocator (jemalloc): how long it keeps freed memory before it returns that to the kernel.
//! Keeping saves work where memory is soon allocated again, but counts as the process's memory.

// The demo build uses the system's allocator, which keeps freed memory by its own rules.
#[cfg_attr(larder_demo, path = "allocator/system.rs")]
mod jemalloc;

/// The arenas of the allocator; each core has one.
pub(crate) struct Arenas {
    keep: jemalloc::Keep,
    /// The time that was last set, in milliseconds.
    ms: isize,
}

impl Arenas {
    /// All arenas of the process; `None` with another allocator.
    pub(crate) fn open() -> Option<Self> {
        Some(Self { keep: jemalloc::open()?, ms: -1 })
    }

    /// Sets the time for which freed memory is kept, in milliseconds.
    pub(crate) fn keep_for(&mut self, ms: u64) {
        let ms = isize::try_from(ms).unwrap_or(isize::MAX);
        if ms != self.ms {
            jemalloc::say(&mut self.keep, ms);
            self.ms = ms;
        }
    }

    /// Returns all kept memory to the kernel now.
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
