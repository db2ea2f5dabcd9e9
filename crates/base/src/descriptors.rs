//! File descriptors: some are reserved for operators, however many clients there are.
//!
//! The kernel returns the lowest free number, so one of the highest numbers shows that nearly all
//! are in use, without a count. A descriptor from the reserve that is not an operator's must be
//! closed at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The lowest reserved number.
static KEPT_FROM: AtomicI32 = AtomicI32::new(i32::MAX);

/// Reserves the last `reserve` of `all` descriptors, and at most a quarter. Returns the number left
/// for clients, origins and files.
pub fn keep_back(all: u64, reserve: u64) -> u64 {
    let left = all - reserve.min(all / 4);
    KEPT_FROM.store(i32::try_from(left).unwrap_or(i32::MAX), Ordering::Relaxed);
    left
}

/// Returns true if the descriptor is in the reserve.
pub fn is_kept(descriptor: &impl AsFd) -> bool {
    descriptor.as_fd().as_raw_fd() >= KEPT_FROM.load(Ordering::Relaxed)
}

/// Returns a descriptor that is not in the reserve.
///
/// # Errors
/// `EMFILE` for one in the reserve, which is closed.
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
