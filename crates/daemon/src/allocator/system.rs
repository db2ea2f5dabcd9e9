//! The system's allocator, in the demo build: it stands in for jemalloc's arenas, and has none.

pub(super) type Keep = std::convert::Infallible;

/// Always `None`: the allocator has no arenas.
pub(super) fn open() -> Option<Keep> {
    None
}

/// Never called, as [`open`] returns `None`.
pub(super) fn say(keep: &mut Keep, _ms: isize) {
    match *keep {}
}
