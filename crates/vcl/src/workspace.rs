//! The memory that a task's strings may take: what Varnish calls its workspace.
//!
//! Data that a program puts together or has a module make are charged before they are kept, and
//! stay charged until the task ends, as in Varnish. Data that only pass by (a side of a comparison,
//! a part of the key or of a body) are not charged.

use std::cell::Cell;

use crate::failure::ProgramFailure;

/// A workspace, as the bytes that are left of it.
#[derive(Debug)]
pub struct Workspace {
    left: Cell<u64>,
    /// Bytes that `vtc.workspace_alloc` has taken without making anything of them.
    taken: Cell<u64>,
    overflown: Cell<bool>,
}

impl Workspace {
    /// One of so many bytes.
    pub fn of(bytes: u64) -> Self {
        Self { left: Cell::new(bytes), taken: Cell::new(0), overflown: Cell::new(false) }
    }

    /// One without a bound: of what no request brings.
    pub fn unbounded() -> Self {
        Self::of(u64::MAX)
    }

    /// Returns true if something did not fit.
    pub fn has_overflown(&self) -> bool {
        self.overflown.get()
    }

    /// The number of bytes that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes so many bytes, and makes nothing of them.
    ///
    /// # Errors
    /// They are not left.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), ProgramFailure> {
        self.charge(usize::try_from(bytes).map_err(|_| self.overflow())?)?;
        self.taken.set(self.taken.get() + bytes);
        Ok(())
    }

    /// The number of bytes that [`take`](Self::take) has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Gives back what was taken when more than `taken` bytes are.
    pub(crate) fn give_back_to(&self, taken: u64) {
        let back = self.taken.get().saturating_sub(taken);
        self.left.set(self.left.get() + back);
        self.taken.set(self.taken.get() - back);
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    /// They are not left.
    #[inline]
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), ProgramFailure> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(self.overflow()),
        }
    }

    /// Fails what has made so many bytes and goes on, if they are not left.
    #[inline]
    pub(crate) fn check(&self, bytes: usize) -> Result<(), ProgramFailure> {
        if bytes as u64 > self.left.get() { Err(self.overflow()) } else { Ok(()) }
    }

    /// Notes that something does not fit, and fails.
    #[cold]
    pub(crate) fn overflow(&self) -> ProgramFailure {
        self.overflown.set(true);
        ProgramFailure::new("Workspace overflow")
    }
}
