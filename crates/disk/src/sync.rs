//! Synchronisation: locks, atomics and threads of parking_lot and the standard library, or of
//! shuttle under `--cfg shuttle`. Code that waits or wakes must use only these, so that
//! `tests::schedules` can explore its interleavings. There, a wait of more than a millisecond never
//! times out, so that a lost wake-up is a deadlock.

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
#[cfg(not(shuttle))]
pub(crate) use std::thread::Builder;

#[cfg(shuttle)]
pub(crate) use modelled::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
#[cfg(shuttle)]
pub(crate) use shuttle::thread::Builder;

/// The locks of shuttle with the signatures of parking_lot's.
#[cfg(shuttle)]
mod modelled {
    use std::ops::{Deref, DerefMut};
    use std::time::Duration;

    use shuttle::sync::{self, RwLockReadGuard, RwLockWriteGuard};

    const PANICKED: &str = "a schedule that panics has failed already";

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    /// `None` while it waits, or is unlocked for a time.
    pub(crate) struct MutexGuard<'a, T>(&'a Mutex<T>, Option<sync::MutexGuard<'a, T>>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(self, Some(self.0.lock().expect(PANICKED)))
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(|guard| MutexGuard(self, Some(guard)))
        }

        pub(crate) fn try_lock_for(&self, _most: Duration) -> Option<MutexGuard<'_, T>> {
            Some(self.lock())
        }
    }

    impl<T> MutexGuard<'_, T> {
        pub(crate) fn unlocked<U>(guard: &mut Self, work: impl FnOnce() -> U) -> U {
            guard.1 = None;
            let result = work();
            guard.1 = Some(guard.0.0.lock().expect(PANICKED));
            result
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.1.as_ref().expect(PANICKED)
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.1.as_mut().expect(PANICKED)
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(sync::Condvar);

    /// The longest wait that times out.
    const SHORT: Duration = Duration::from_millis(1);

    /// The result of a wait; true after a timeout.
    pub(crate) struct Waited(bool);

    impl Waited {
        pub(crate) fn timed_out(&self) -> bool {
            self.0
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            guard.1 = guard.1.take().map(|locked| self.0.wait(locked).expect(PANICKED));
        }

        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, most: Duration) -> Waited {
            let short = most <= SHORT;
            if short {
                MutexGuard::unlocked(guard, shuttle::thread::yield_now);
            } else {
                self.wait(guard);
            }
            Waited(short)
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect(PANICKED)
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect(PANICKED)
        }
    }
}
