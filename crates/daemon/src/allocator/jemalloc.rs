//! jemalloc: reads and writes the settings of its arenas.

use tikv_jemalloc_ctl::{Access, AsName, Mib, arenas};

/// `arena.N.dirty_decay_ms`.
pub(super) type Keep = Mib<[usize; 3]>;

/// The setting; `None` with another allocator.
pub(super) fn open() -> Option<Keep> {
    b"arena.0.dirty_decay_ms\0"[..].name().mib().ok()
}

/// Sets the time for which all arenas keep freed memory to `ms` milliseconds.
pub(super) fn say(keep: &mut Keep, ms: isize) {
    // For arenas to come. A setting that cannot be written costs memory, nothing else.
    _ = b"arenas.dirty_decay_ms\0"[..].name().write(ms);
    let count = arenas::narenas::read().unwrap_or(0);
    for arena in 0..count as usize {
        keep[1] = arena;
        // Arenas that were not used yet refuse.
        _ = keep.write(ms);
    }
}
