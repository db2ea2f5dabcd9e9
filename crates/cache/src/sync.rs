//! Synchronisation: locks and atomics of parking_lot and the standard library, or of loom when a
//! model runs. Code that waits or wakes must use only these, so that tests/loom.rs can explore its
//! interleavings.

#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// The mutex of loom with the signature of parking_lot's.
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

#[cfg(loom)]
impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
