//! Workspace: the memory that a task's strings may take, as in Varnish. Strings that a program or
//! VMOD builds are charged before they are stored, until the task ends. Temporary data (an operand,
//! a part of the key or of a body) is never charged.

use std::cell::Cell;

use crate::failure::ProgramFailure;

/// A workspace: the number of bytes left.
#[derive(Debug)]
pub struct Workspace {
    left: Cell<u64>,
    /// Bytes that `vtc.workspace_alloc` has taken without use.
    taken: Cell<u64>,
    overflown: Cell<bool>,
}

impl Workspace {
    /// A workspace of `bytes`.
    pub fn of(bytes: u64) -> Self {
        Self { left: Cell::new(bytes), taken: Cell::new(0), overflown: Cell::new(false) }
    }

    /// A workspace without a limit, for work that no request causes.
    pub fn unbounded() -> Self {
        Self::of(u64::MAX)
    }

    /// Returns true if an allocation has failed.
    pub fn has_overflown(&self) -> bool {
        self.overflown.get()
    }

    /// Bytes left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes bytes without using them.
    ///
    /// # Errors
    /// If fewer are left.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), ProgramFailure> {
        self.charge(usize::try_from(bytes).map_err(|_| self.overflow())?)?;
        self.taken.set(self.taken.get() + bytes);
        Ok(())
    }

    /// Bytes that [`take`](Self::take) has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Returns bytes taken beyond `taken`.
    pub(crate) fn give_back_to(&self, taken: u64) {
        let back = self.taken.get().saturating_sub(taken);
        self.left.set(self.left.get() + back);
        self.taken.set(self.taken.get() - back);
    }

    /// Charges bytes.
    ///
    /// # Errors
    /// If fewer are left.
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

    /// Fails if `bytes`, already built and still growing, exceed what is left.
    #[inline]
    pub(crate) fn check(&self, bytes: usize) -> Result<(), ProgramFailure> {
        if bytes as u64 > self.left.get() { Err(self.overflow()) } else { Ok(()) }
    }

    /// Records an overflow, and returns the failure.
    #[cold]
    pub(crate) fn overflow(&self) -> ProgramFailure {
        self.overflown.set(true);
        ProgramFailure::new("Workspace overflow")
    }
}
