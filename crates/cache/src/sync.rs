//! Locks and atomics: parking_lot's and the standard library's, or loom's when a model is run.
//!
//! What waits or wakes is built from these names only, so that tests/loom.rs can try its interleavings.

#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// loom's mutex with the signature of parking_lot's.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("a model that panics has failed already")
    }
}

/// Something one task at a time may do.
#[derive(Debug)]
pub(crate) struct Turn(AtomicBool);

impl Turn {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether the caller has the turn now; it gives it back with [`Turn::release`].
    pub(crate) fn take(&self) -> bool {
        // The load spares the line from being claimed by everyone who finds it taken.
        !self.0.load(Ordering::Relaxed)
            && self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn release(&self) {
        self.0.store(false, Ordering::Release);
    }
}
