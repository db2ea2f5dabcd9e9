//! Permits of fragments in progress: their number for a page, and the bytes reserved for bodies
//! whose turn has not come.
//!
//! Pieces are sent in order. Of the bytes that a client's connection may reserve, a quarter is for
//! the page's own window, a quarter for the window of the fragment whose turn it is, and a quarter
//! is shared by later fragments; a decoder gets the rest. So a later fragment can never block an
//! earlier one.

use std::cell::Cell;
use std::rc::Rc;

use base::{Account, Limits};
use tokio::sync::Notify;

/// The smallest share: that of the smallest window.
const LEAST_BYTES: u64 = 4096;
/// The fraction of an account's free bytes.
const PARTS: u64 = 4;

/// The most that one window of a page may take of the free bytes of `account`.
pub(crate) fn part_of(account: &Account) -> u64 {
    (account.left() / PARTS).max(LEAST_BYTES)
}

/// The permits of one page, nested fragments included.
#[derive(Debug)]
pub(crate) struct FragmentPermits {
    most: u64,
    window_bytes: u64,
    free: Cell<u64>,
    /// Free bytes for bodies whose turn has not come.
    room: Cell<u64>,
    /// The share of one such body; 0 before the first.
    share: Cell<u64>,
    /// Notified when a permit is free again.
    freed: Notify,
}

/// A permit, released on drop.
#[derive(Debug)]
pub(crate) struct FragmentPermit {
    /// `None`: the permit does not count.
    of: Option<Rc<FragmentPermits>>,
    is_counted: bool,
    bytes: u64,
}

impl FragmentPermits {
    /// As many permits as `limits` set or as are `wished`, at least one.
    pub(crate) fn new(limits: &Limits, wished: Option<u64>) -> Rc<Self> {
        let most = wished.unwrap_or(limits.esi_parallel).max(1);
        Rc::new(Self {
            most,
            window_bytes: limits.window_bytes,
            free: Cell::new(most),
            room: Cell::new(0),
            share: Cell::new(0),
            freed: Notify::new(),
        })
    }

    /// The share of each body whose turn has not come, of the free bytes of `account` when the
    /// first starts.
    fn share(&self, account: &Account) -> u64 {
        if self.share.get() == 0 {
            // At least one byte, which a stored body releases at once.
            let room = part_of(account);
            let share = (room / self.most).min(self.window_bytes).max(LEAST_BYTES);
            self.share.set(share);
            self.room.set(room);
        }
        self.share.get()
    }

    /// A permit for a body on `account`, if one is free.
    pub(crate) fn take(self: &Rc<Self>, account: &Account) -> Option<FragmentPermit> {
        let bytes = self.share(account);
        let (free, room) = (self.free.get().checked_sub(1)?, self.room.get().checked_sub(bytes)?);
        self.free.set(free);
        self.room.set(room);
        Some(FragmentPermit { of: Some(Rc::clone(self)), is_counted: true, bytes })
    }

    /// Completes once a permit is free.
    pub(crate) async fn wait_until_free(&self) {
        while self.is_full() {
            self.freed.notified().await;
        }
    }

    fn is_full(&self) -> bool {
        self.free.get() == 0 || self.room.get() < self.share.get()
    }

    fn give_back(&self, is_counted: bool, bytes: u64) {
        let was_full = self.is_full();
        self.free.set(self.free.get() + u64::from(is_counted));
        self.room.set(self.room.get() + bytes);
        if was_full {
            self.freed.notify_waiters();
        }
    }
}

impl FragmentPermit {
    /// A permit for the fragment whose turn it is. It does not count, so a page never waits for
    /// itself.
    pub(crate) fn of_turn() -> Self {
        Self { of: None, is_counted: false, bytes: 0 }
    }

    /// Bytes that a body may reserve before its turn; `None` when it is its turn.
    pub(crate) fn window(&self) -> Option<u64> {
        self.of.is_some().then_some(self.bytes)
    }

    /// Lets another fragment start after this reply. At most `length` bytes stay reserved until the
    /// body is sent. If fragments run one by one, the next one starts only then.
    pub(crate) fn answered(&mut self, length: u64) {
        if let Some(permits) = &self.of
            && (permits.most > 1 || length == 0)
        {
            let kept = self.bytes.min(length);
            permits.give_back(self.is_counted, self.bytes - kept);
            (self.is_counted, self.bytes) = (false, kept);
        }
    }
}

impl Drop for FragmentPermit {
    fn drop(&mut self) {
        if let Some(permits) = &self.of {
            permits.give_back(self.is_counted, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use base::MemoryBudget;

    use super::*;

    /// Permits, and an account with `left` free bytes.
    fn permits(most: u64, left: u64) -> (Rc<FragmentPermits>, Arc<Account>) {
        let memory = MemoryBudget::new(64 << 20, 64 << 20);
        let limits = Limits { esi_parallel: most, window_bytes: 10_000, ..Limits::default() };
        (FragmentPermits::new(&limits, None), Account::open(&memory, left))
    }

    #[test]
    fn a_place_is_taken_once_and_free_again_when_it_is_dropped() {
        let (permits, account) = permits(2, 1 << 20);
        let take = || permits.take(&account);
        let (first, second) = (take(), take());
        assert!(first.is_some() && second.is_some() && take().is_none());
        drop(first);
        assert!(take().is_some());
        let (none, account) = self::permits(0, 1 << 20);
        assert!(none.take(&account).is_some(), "a page has one at least");
    }

    #[test]
    fn all_waiters_are_woken_and_a_late_one_waits_on() {
        let (permits, account) = permits(1, 1 << 20);
        let mut cx = Context::from_waker(Waker::noop());
        let permit = permits.take(&account);
        let (mut first, mut second) =
            (pin!(permits.wait_until_free()), pin!(permits.wait_until_free()));
        assert_eq!(first.as_mut().poll(&mut cx), Poll::Pending);
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Pending);
        drop(permit);
        assert_eq!(first.as_mut().poll(&mut cx), Poll::Ready(()));
        let permit = permits.take(&account);
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Pending);
        drop(permit);
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Ready(()));
    }

    #[test]
    fn those_behind_share_a_part_of_what_the_account_has_left() {
        let (permits, account) = permits(4, 128 * 1024);
        let mut taken: Vec<_> = std::iter::from_fn(|| permits.take(&account)).collect();
        let windows: Vec<_> = taken.iter().map(FragmentPermit::window).collect();
        assert_eq!(windows, [Some(8192); 4]);
        assert_eq!(FragmentPermit::of_turn().window(), None);
        // After their replies they keep their bodies' lengths, and others start.
        taken.iter_mut().for_each(|permit| permit.answered(2048));
        let more: Vec<_> = std::iter::from_fn(|| permits.take(&account)).collect();
        assert_eq!(more.len(), 3, "8 KiB of 32 are kept");
        drop((taken, more));
        let again: Vec<_> = std::iter::from_fn(|| permits.take(&account)).collect();
        assert_eq!(again.len(), 4);
    }

    #[test]
    fn a_page_without_memory_has_one_place_and_a_large_account_gives_whole_windows() {
        let (tight, account) = permits(4, 0);
        let permit = tight.take(&account);
        assert_eq!(permit.as_ref().and_then(FragmentPermit::window), Some(LEAST_BYTES));
        assert!(tight.take(&account).is_none());
        let (wide, account) = permits(4, 1 << 20);
        assert_eq!(wide.take(&account).and_then(|permit| permit.window()), Some(10_000));
    }
}
