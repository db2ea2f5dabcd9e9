//! Memory of a stream: what a server is ahead of its reader is charged to the exchange's account.

use std::sync::Arc;

use base::{Account, HeldBytes};

/// Bytes of a body behind which it is not a small one.
const NOT_SMALL_BYTES: u64 = 32 << 10;

/// The memory of a body that has arrived and was not passed on.
#[derive(Debug, Default)]
pub(super) struct StreamMemory {
    account: Option<Arc<Account>>,
    held: Option<HeldBytes>,
    /// Bytes of the body.
    came: u64,
    /// The server may send as much as the settings permit.
    is_wide: bool,
}

impl StreamMemory {
    pub(super) fn new(account: Option<&Arc<Account>>) -> Self {
        Self { account: account.cloned(), ..Self::default() }
    }

    /// Counts bytes of the body. Returns true if the window should be widened to `wide` bytes: the
    /// body is not a small one, and the account has room for as much.
    pub(super) fn came(&mut self, bytes: u64, wide: u32) -> bool {
        self.came += bytes;
        if let Some(account) = &self.account {
            // Their window is open, so they are here in any case.
            self.held.get_or_insert_with(|| account.hold_anyway(0)).grow_anyway(bytes);
        }
        let widens = !self.is_wide
            && self.came >= NOT_SMALL_BYTES
            && self.account.as_ref().is_none_or(|account| account.left() >= u64::from(wide));
        self.is_wide |= widens;
        widens
    }

    /// Counts bytes as passed on.
    pub(super) fn passed(&mut self, bytes: u64) {
        if let Some(held) = &mut self.held {
            held.shrink_to(held.bytes().saturating_sub(bytes));
        }
    }
}
