//! The settings of jemalloc's arenas.

use tikv_jemalloc_ctl::{Access, AsName, Mib, arenas};

/// `arena.N.dirty_decay_ms`.
pub(super) type Keep = Mib<[usize; 3]>;

/// The setting; `None` if the allocator is another.
pub(super) fn open() -> Option<Keep> {
    b"arena.0.dirty_decay_ms\0"[..].name().mib().ok()
}

/// Has all arenas keep freed memory for `ms` milliseconds.
pub(super) fn say(keep: &mut Keep, ms: isize) {
    // For arenas to come. What cannot be said is left as it is: it costs memory, nothing else.
    _ = b"arenas.dirty_decay_ms\0"[..].name().write(ms);
    let count = arenas::narenas::read().unwrap_or(0);
    for arena in 0..count as usize {
        keep[1] = arena;
        // Those that nobody has used yet refuse.
        _ = keep.write(ms);
    }
}
