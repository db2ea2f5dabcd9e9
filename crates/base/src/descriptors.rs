//! File descriptors that are kept back for operators, however many clients there are.
//!
//! The kernel gives out the lowest number that is free. So whoever gets one of the highest knows
//! that nearly all are taken, and nothing has to be counted for it: what is not an operator's gives
//! such a one back at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The lowest number that is kept back.
static KEPT_FROM: AtomicI32 = AtomicI32::new(i32::MAX);

/// Keeps the last `reserve` of `all` descriptors back, but never more than a quarter. The result is
/// how many that leaves to clients, origins and files.
pub fn keep_back(all: u64, reserve: u64) -> u64 {
    let left = all - reserve.min(all / 4);
    KEPT_FROM.store(i32::try_from(left).unwrap_or(i32::MAX), Ordering::Relaxed);
    left
}

/// Returns true if a descriptor is one of those that are kept back.
pub fn is_kept(descriptor: &impl AsFd) -> bool {
    descriptor.as_fd().as_raw_fd() >= KEPT_FROM.load(Ordering::Relaxed)
}

/// Any other descriptor.
///
/// # Errors
/// As if there were no more (`EMFILE`).
pub fn unkept<T: AsFd>(descriptor: T) -> io::Result<T> {
    match is_kept(&descriptor) {
        true => Err(rustix::io::Errno::MFILE.into()),
        false => Ok(descriptor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_back_and_never_most_of_them() {
        assert_eq!(keep_back(1024, 64), 960);
        assert_eq!(keep_back(100, 64), 75);
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert!(unkept(&file).is_ok());
        assert_eq!(keep_back(0, 64), 0);
        assert_eq!(unkept(&file).map_err(|error| error.raw_os_error()).err(), Some(Some(24)));
        assert_eq!(keep_back(1 << 40, 0), 1 << 40);
        assert!(unkept(&file).is_ok());
    }
}
