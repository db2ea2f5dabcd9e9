//! Authentication memory of a core: its cache of grants, and the passwords that other cores have
//! verified.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Account, Counters, Limit};

use super::gate_cache::{AuthCache, AuthGrant};
use super::verified_passwords::VerifiedPasswords;
use crate::state::term::Term;

/// A core's authentication memory.
pub(crate) struct AuthMemory {
    grants: RefCell<AuthCache>,
    pub(crate) verified_passwords: Arc<VerifiedPasswords>,
    pub(crate) counters: Arc<Counters>,
}

impl AuthMemory {
    /// An empty memory, reserved on `account`.
    pub(crate) fn new(
        account: Arc<Account>,
        verified_passwords: &Arc<VerifiedPasswords>,
        counters: &Arc<Counters>,
    ) -> Self {
        let grants = RefCell::new(AuthCache::new(account));
        Self {
            grants,
            verified_passwords: Arc::clone(verified_passwords),
            counters: Arc::clone(counters),
        }
    }

    /// Returns the grant for a digest, if it is cached at `now_ms`.
    pub(crate) fn get(&self, digest: &[u8; 32], now_ms: u64) -> Option<AuthGrant> {
        self.grants.borrow().get(digest, now_ms).cloned()
    }

    /// Caches the grant of a digest for `term`, with at most `most` entries.
    pub(crate) fn remember(&self, digest: [u8; 32], grant: &AuthGrant, term: Term, most: u64) {
        if !self.grants.borrow_mut().put(digest, grant.clone(), term, most) {
            self.counters.limit(Limit::GateMemory);
        }
    }

    /// The grant of a password that another core has verified; it is cached here too.
    pub(crate) fn learn(&self, digest: [u8; 32], now_ms: u64, most: u64) -> Option<AuthGrant> {
        let (user, until_ms) = self.verified_passwords.entered(&digest, now_ms)?;
        let grant = AuthGrant { user: Some(user), ..AuthGrant::default() };
        self.remember(digest, &grant, Term { from_ms: now_ms, until_ms }, most);
        Some(grant)
    }

    /// Removes expired entries.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.grants.borrow_mut().sweep(now_ms);
    }
}

#[cfg(test)]
mod tests {
    use base::MemoryBudget;

    use super::*;
    use crate::state::gate::User;

    #[test]
    fn a_password_that_one_core_has_checked_lets_in_on_another() {
        let (memory, verified_passwords) = (MemoryBudget::new(8 << 20, 4 << 20), Arc::default());
        let account = || Account::open(&memory, u64::MAX);
        let other = AuthMemory::new(account(), &verified_passwords, &Arc::default());
        assert!(other.learn([1; 32], 5, 4).is_none());
        let term = Term { from_ms: 0, until_ms: 10 };
        verified_passwords.note([1; 32], 7, &Arc::new(User("ann".into())), term);
        assert!(other.get(&[1; 32], 5).is_none() && other.learn([1; 32], 5, 4).is_some());
        let grants = other.get(&[1; 32], 9).and_then(|grants| grants.user);
        assert!(grants.is_some_and(|user| &*user.0 == "ann"));
        assert!(other.get(&[1; 32], 10).is_none(), "for as long as there");
    }
}
