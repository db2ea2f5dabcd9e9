//! Open connections: the bytes that a connection takes merely by being open. Their limit is a part
//! of the clients' share, so that open connections find room for requests. Some memory is reserved
//! for new connections alone. Additional state of accepted ones (HTTP/2) may use only a part of it,
//! so that it never locks out new ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{MemoryBudget, PARTS};

/// The part of the reserve for new connections that accepted ones may use: one in this many. With
/// TLS they take as much again as they took to be accepted, so a third is left for others.
const AFTER_ACCEPT_PARTS: u64 = 3;

/// The bytes of one open connection, returned when dropped. They are counted exactly, because the
/// rounding of accounts would add half as much again to an idle connection.
#[derive(Debug)]
pub struct OpenConnectionBytes {
    memory: Arc<MemoryBudget>,
    bytes: u64,
    /// The part of them from the reserve for new connections.
    of_reserve: u64,
    /// The part of those that it took after it was accepted.
    after_accept: u64,
}

/// Takes `bytes` of the `most` that `from` counts, if that many are left.
fn take(from: &AtomicU64, bytes: u64, most: u64) -> bool {
    let more = |taken: u64| taken.checked_add(bytes).filter(|next| *next <= most);
    from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

impl MemoryBudget {
    /// The reserve for new connections: half the cushion.
    pub(super) fn reserve_max(&self) -> u64 {
        self.cushion_max() / 2
    }

    /// Takes `bytes` of the reserve for new connections, `after_accept` of them for accepted ones.
    fn take_reserve(&self, bytes: u64, after_accept: u64) -> bool {
        let most = self.reserve_max();
        if !take(&self.after_accept, after_accept, most / AFTER_ACCEPT_PARTS) {
            return false;
        }
        let is_there = take(&self.of_reserve, bytes, most);
        if !is_there {
            self.after_accept.fetch_sub(after_accept, Ordering::Relaxed);
        }
        is_there
    }

    /// The part of the held bytes that open connections take.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}

impl OpenConnectionBytes {
    /// A connection without reserved bytes.
    pub fn none(memory: &Arc<MemoryBudget>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0, of_reserve: 0, after_accept: 0 }
    }

    /// Returns true until bytes are reserved.
    pub fn is_none(&self) -> bool {
        self.bytes == 0
    }

    /// Reserves `bytes` more, of the `percent` of the clients' share that connections may take.
    /// Returns false if too few are left.
    pub fn grow(&mut self, bytes: u64, percent: u64) -> bool {
        let memory = &self.memory;
        let most = (u128::from(memory.held_max()) * u128::from(percent) / 100) as u64;
        if !take(&memory.opened, bytes, most) {
            return false;
        }
        if !memory.hold(0, bytes, PARTS) {
            let after_accept = if self.is_none() { 0 } else { bytes };
            if !memory.take_reserve(bytes, after_accept) {
                memory.opened.fetch_sub(bytes, Ordering::Relaxed);
                return false;
            }
            memory.hold_anyway(bytes);
            self.of_reserve += bytes;
            self.after_accept += after_accept;
        }
        self.bytes += bytes;
        true
    }

    /// Returns the bytes beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let more = self.bytes.saturating_sub(bytes);
        let (kept, after_accept) = (more.min(self.of_reserve), more.min(self.after_accept));
        self.bytes -= more;
        self.of_reserve -= kept;
        self.after_accept -= after_accept;
        self.memory.opened.fetch_sub(more, Ordering::Relaxed);
        self.memory.after_accept.fetch_sub(after_accept, Ordering::Relaxed);
        self.memory.of_reserve.fetch_sub(kept, Ordering::Relaxed);
        self.memory.let_go(more);
    }
}

impl Drop for OpenConnectionBytes {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Account, FLOOR};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn grown(memory: &Arc<MemoryBudget>, bytes: u64, percent: u64) -> Option<OpenConnectionBytes> {
        let mut opened = OpenConnectionBytes::none(memory);
        opened.grow(bytes, percent).then_some(opened)
    }

    fn all(memory: &Arc<MemoryBudget>, bytes: u64, percent: u64) -> Vec<OpenConnectionBytes> {
        std::iter::from_fn(|| grown(memory, bytes, percent)).collect()
    }

    #[test]
    fn connections_take_their_part_of_the_share_to_the_byte_and_give_it_back() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        let mut open = all(&memory, 5_000, 50);
        assert_eq!(open.len() as u64, 4 * MIB / 5_000);
        assert_eq!(memory.held(), 5_000 * open.len() as u64);
        assert_eq!((memory.opened(), memory.used()), (memory.held(), memory.held()));
        let mut first = open.swap_remove(0);
        assert!(!first.grow(5_000, 50));
        drop(open.pop());
        assert!(first.grow(5_000, 50), "one has left");
        assert!(grown(&memory, 5_000, 50).is_none());
        first.shrink_to(1_000);
        assert!(grown(&memory, 4_000, 50).is_some());
        drop((first, open));
        assert_eq!((memory.opened(), memory.held(), memory.used()), (0, 0, 0));
    }

    #[test]
    fn connections_leave_room_for_what_they_ask() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        let open = all(&memory, 5_000, 75);
        let account = Account::open(&memory, u64::MAX);
        assert!(account.hold_request(FLOOR).is_ok());
        assert!(grown(&memory, 5_000, 75).is_none());
        drop(open);
    }

    #[test]
    fn with_everything_in_use_new_connections_and_small_requests_have_reserves() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        let others = Account::open(&memory, u64::MAX);
        let held = others.hold_anyway(8 * MIB);
        let small = || Account::open(&memory, u64::MAX).hold_request(FLOOR).ok();
        let small: Vec<_> = std::iter::from_fn(small).collect();
        assert_eq!(small.len() as u64, MIB / 2 / FLOOR, "one client's half of an eighth");
        let open = all(&memory, 8_192, 75);
        assert_eq!(memory.opened(), MIB / 2, "half of an eighth");
        drop((open, small, held));
        assert!(grown(&memory, 8_192, 75).is_some());
        assert_eq!((memory.used(), memory.opened()), (0, 0));
        assert_eq!(memory.of_reserve.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_reserve_for_new_connections_is_not_taken_by_accepted_ones() {
        let memory = MemoryBudget::new(16 * MIB, 8 * MIB);
        let others = Account::open(&memory, u64::MAX);
        let held = others.hold_anyway(8 * MIB);
        // They are accepted with 4 KiB, and would take 12 KiB more.
        let after_accept = || {
            let mut opened = grown(&memory, 4_096, 75)?;
            opened.grow(12_288, 75).then_some(opened)
        };
        let mut in_already: Vec<_> = std::iter::from_fn(after_accept).collect();
        assert_eq!(in_already.len() as u64, MIB / 2 / 3 / 12_288, "a third of what is kept");
        let waiting = grown(&memory, 4_096, 75).expect("room for a newcomer");
        let newcomers = all(&memory, 4_096, 75);
        assert!(newcomers.len() > 64, "{} come in beside them", newcomers.len());
        drop(newcomers);
        in_already[0].shrink_to(4_096);
        assert!(after_accept().is_some(), "what one gives back is the next one's");
        drop((in_already, waiting, held));
        assert_eq!((memory.used(), memory.opened()), (0, 0));
        let kept = [&memory.of_reserve, &memory.after_accept].map(|of| of.load(Ordering::Relaxed));
        assert_eq!(kept, [0, 0]);
    }
}
