//! Gathered body: a body that is buffered whole, its memory reserved on an account.

use std::sync::Arc;

use base::memory::HoldError;
use base::{Account, HeldBytes};
use bytes::Bytes;

/// Bytes reserved first for a body of unknown length.
const FIRST_BYTES: usize = 16 * 1024;

/// The part of a body that has arrived.
pub(crate) struct GatheredBody {
    data: Vec<u8>,
    held: HeldBytes,
}

impl AsRef<[u8]> for GatheredBody {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl GatheredBody {
    /// An empty buffer for a body of the declared `length`, reserved on `account`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(account: &Arc<Account>, length: Option<u64>) -> Result<Self, HoldError> {
        let room =
            length.map_or(FIRST_BYTES, |length| usize::try_from(length).unwrap_or(usize::MAX));
        let held = account.hold(room as u64)?;
        Ok(Self { data: Vec::with_capacity(room), held })
    }

    /// Bytes that have arrived.
    pub(crate) fn len(&self) -> u64 {
        self.data.len() as u64
    }

    /// Appends `data`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), HoldError> {
        let wanted = self.data.len() + data.len();
        if wanted > self.data.capacity() {
            let room = wanted.max(2 * self.data.capacity());
            // During the move both buffers exist.
            self.held.grow(room as u64)?;
            self.data.reserve_exact(room - self.data.len());
            self.held.shrink_to(room as u64);
        }
        self.data.extend_from_slice(data);
        Ok(())
    }

    /// The body; its memory stays reserved while a part of it is in use.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

#[cfg(test)]
mod tests {
    use base::MemoryBudget;

    use super::*;

    #[test]
    fn a_body_is_held_until_its_last_part_is_gone() {
        let memory = MemoryBudget::new(1 << 20, 1 << 19);
        let account = Account::open_large(&memory);
        let mut body = GatheredBody::new(&account, None).expect("there is room");
        for _ in 0..5 {
            body.push(&[7; 10_000]).expect("there is room");
        }
        assert_eq!(body.len(), 50_000);
        let bytes = body.into_bytes();
        let part = bytes.slice(40_000..);
        drop(bytes);
        assert_eq!((part.len(), memory.held() >= 50_000), (10_000, true));
        drop((part, account));
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_body_for_which_there_is_no_memory_is_refused() {
        let memory = MemoryBudget::new(1 << 20, 1 << 19);
        let account = Account::open_large(&memory);
        assert!(GatheredBody::new(&account, Some(u64::MAX)).is_err());
        assert!(GatheredBody::new(&account, Some(1 << 20)).is_err());
        let mut body = GatheredBody::new(&account, None).expect("there is room");
        let pushed = (0..100).take_while(|_| body.push(&[7; 10_000]).is_ok()).count();
        assert!((5..50).contains(&pushed), "{pushed}");
        drop((body, account));
        assert_eq!(memory.held(), 0);
    }
}
