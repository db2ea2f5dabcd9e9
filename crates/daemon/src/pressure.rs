//! Memory pressure: keeps the memory of the process below its ceiling.
//!
//! The memory account counts what is asked of the allocator. Fragmentation, and memory outside the
//! account (connections, tables, the program's own data), only shows in the memory that the kernel
//! has given. While that is too much, the budget shrinks; afterwards it grows back.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::allocator::Arenas;
use crate::state::{Daemon, MemorySizes};

/// The interval between two checks while most of the memory is free, and the shorter one otherwise:
/// a core can fill megabytes in between.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_CLOSELY: Duration = Duration::from_millis(20);
/// The divisor of the excess that the budget loses at each check: evicted memory goes back to the
/// kernel a moment later.
const SHRINKS_BY: u64 = 4;
/// The divisor of the ceiling that the budget regains at each check.
const GROWS_BY: u64 = 512;
/// The divisor of the ceiling that must be free for the budget to grow: less would make it swing.
const SLACK: u64 = 32;
/// The divisor of the ceiling below which the budget never shrinks.
const LEAST: u64 = 4;
/// The divisor of the ceiling below which free memory is scarce.
const SCARCE: u64 = 8;
/// Milliseconds that the allocator keeps freed memory while memory is not scarce. The allocator
/// notices the time only while it allocates. It is asked to return idle memory that exceeds the
/// ceiling divided by this.
const KEEP_MS: u64 = 1_000;
const LOST: u64 = 16;
/// The ceiling above which the memory that a core frees between two checks is negligible, and is
/// kept.
const MUCH: u64 = 1 << 30;

/// Bytes that the kernel has given this process alone. Files and shared memory do not count: the
/// kernel can take them back.
fn private_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    private_of(&statm, rustix::param::page_size() as u64)
}

fn private_of(statm: &str, page_bytes: u64) -> Option<u64> {
    let mut fields = statm.split_ascii_whitespace().skip(1).map(|n| n.parse::<u64>().ok());
    let (resident, shared) = (fields.next()??, fields.next()??);
    Some(resident.saturating_sub(shared) * page_bytes)
}

/// The budget that follows `budget` when the process takes `private` of `size` bytes; `most` is the
/// configured budget.
fn next_budget(budget: u64, private: u64, size: u64, most: u64) -> u64 {
    let least = (size / LEAST).min(most);
    if private > size {
        return budget.saturating_sub((private - size) / SHRINKS_BY).clamp(least, most);
    }
    if private < size - size / SLACK {
        return (budget + size / GROWS_BY).clamp(least, most);
    }
    budget.clamp(least, most)
}

/// Milliseconds for which the allocator is to keep freed memory.
fn keep_ms(private: u64, size: u64) -> u64 {
    let is_scarce = private > size - size / SCARCE;
    if is_scarce && size < MUCH { 0 } else { KEEP_MS }
}

/// Checks again and again.
pub(crate) async fn run(daemon: Arc<Daemon>) {
    let cache = &daemon.shared.cache;
    let mut arenas = Arenas::open();
    let (mut look, mut asked) = (LOOK, Instant::now());
    let mut base = u64::MAX;
    loop {
        rt::time::sleep(look).await;
        let Some(private) = private_bytes() else { return };
        // The index of the disk has an allowance of its own beside the budget.
        let private = private.saturating_sub(cache.index().used());
        let MemorySizes { size, budget: most, share } = daemon.memory();
        let budget = cache.memory().budget();
        let uncounted = private.saturating_sub(cache.memory().used());
        // Momentary fragmentation is not part of the base.
        base = base.saturating_add(size / GROWS_BY / 10).min(uncounted);
        let most = most.min(size.saturating_sub(base)).max(size / LEAST);
        let next = next_budget(budget, private, size, most);
        // If all remaining objects are being read, evicting more would only empty the store.
        let in_vain = next < budget && cache.memory().is_over();
        if next != budget && !in_vain {
            cache.resize(next, share);
        }
        look = if private > size / 2 { LOOK_CLOSELY } else { LOOK };
        if let Some(arenas) = &mut arenas {
            arenas.keep_for(keep_ms(private, size));
            let is_lost = uncounted.saturating_sub(base) > size / LOST;
            if private > size || is_lost && asked.elapsed() > Duration::from_millis(KEEP_MS) {
                arenas.give_back();
                asked = Instant::now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_shared_is_not_counted() {
        assert_eq!(private_of("90000 5000 2000 700 0 9000 0\n", 4096), Some(3000 * 4096));
        assert_eq!(private_of("90000 5000", 4096), None);
        assert_eq!(private_of("", 4096), None);
        assert!(private_bytes().is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn little_memory_that_is_scarce_is_given_back_at_once() {
        assert_eq!(keep_ms(50 * MIB, 64 * MIB), KEEP_MS);
        assert_eq!(keep_ms(57 * MIB, 64 * MIB), 0);
        assert_eq!(keep_ms(2048 * MIB, 2048 * MIB), KEEP_MS);
    }

    #[test]
    fn the_budget_shrinks_while_too_much_is_taken_and_comes_back() {
        let (size, most) = (64 * MIB, 58 * MIB);
        assert_eq!(next_budget(most, 72 * MIB, size, most), 56 * MIB);
        assert_eq!(next_budget(56 * MIB, 63 * MIB, size, most), 56 * MIB);
        assert_eq!(next_budget(56 * MIB, 50 * MIB, size, most), 56 * MIB + MIB / 8);
        assert_eq!(next_budget(most, 50 * MIB, size, most), most);
        assert_eq!(next_budget(17 * MIB, 500 * MIB, size, most), 16 * MIB);
    }
}
