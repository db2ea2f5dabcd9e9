//! The size of an allocation: the size classes of the binary's allocator (jemalloc), so that the
//! budget counts real memory.

const PAGE_BYTES: usize = 4096;
/// From this size on, blocks consist of pages. Only touched pages are resident, and a block begins
/// somewhere in the first page of one more.
const LARGE_BYTES: usize = 16 * 1024;
/// The strong and weak counts of an `Arc`.
pub(crate) const ARC_BYTES: usize = 16;

/// Bytes taken by an allocation of `bytes`: multiples of 16 up to 128, then four classes for each
/// doubling, then whole pages.
pub(crate) const fn class(bytes: usize) -> u64 {
    let rounded = if bytes <= 128 {
        bytes.next_multiple_of(16)
    } else if bytes < LARGE_BYTES {
        let top = usize::BITS - 1 - (bytes - 1).leading_zeros();
        bytes.next_multiple_of(1 << (top - 2))
    } else {
        bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES
    };
    rounded as u64
}

/// Bytes taken by an `Arc<T>`'s allocation.
pub(crate) const fn arc<T>() -> u64 {
    class(ARC_BYTES + size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_allocator() {
        for (bytes, taken) in [
            (0, 0),
            (1, 16),
            (64, 64),
            (65, 80),
            (113, 128),
            (128, 128),
            (129, 160),
            (160, 160),
            (205, 224),
            (1024, 1024),
            (1025, 1280),
            (14_336, 14_336),
            (14_337, 16_384),
            (16_384, 20_480),
            (65_536, 69_632),
            (65_537, 73_728),
        ] {
            assert_eq!(class(bytes), taken, "{bytes}");
        }
    }
}
