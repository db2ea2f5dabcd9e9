//! Gate cache: a core's cache of grants. When it is full, entries that were not used lately leave;
//! a flood of entries that are used once displaces no others. Each entry is reserved on an account.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use base::{Account, HeldBytes};
use policy::headers::FieldName;

use super::user::User;
use crate::state::term::Term;

/// Bytes of an entry beside its data: its slot in a half-full table, and the allocator's overhead.
const ENTRY_BYTES: usize = 2 * (32 + size_of::<CachedGrant>()) + 64;
/// Bytes of a field beside its data: its name and two allocations.
const FIELD_BYTES: usize = size_of::<(FieldName, Box<[u8]>)>() + 64;

/// Fields that an authentication server returned.
pub(crate) type ForwardAuthFields = Arc<[(FieldName, Box<[u8]>)]>;

/// The grant of a check.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthGrant {
    /// The user, by the name in the credentials.
    pub(crate) user: Option<Arc<User>>,
    /// Fields that the authentication server returned.
    pub(crate) fields: ForwardAuthFields,
}

impl AuthGrant {
    /// Bytes that it takes, about.
    fn memory(&self) -> usize {
        let user = self.user.as_ref().map_or(0, |user| user.0.len());
        let field = |(_, value): &(FieldName, Box<[u8]>)| FIELD_BYTES + value.len();
        user + self.fields.iter().map(field).sum::<usize>()
    }
}

/// The result of a check, for the request that waited for it.
pub(crate) struct AuthResult {
    pub(crate) digest: [u8; 32],
    pub(crate) grant: AuthGrant,
}

/// A core's cache of grants, by digests of credentials.
#[derive(Debug)]
pub(crate) struct AuthCache {
    all: HashMap<[u8; 32], CachedGrant>,
    account: Arc<Account>,
}

#[derive(Debug)]
struct CachedGrant {
    until_ms: u64,
    /// The entry was used since others last had to leave.
    is_used: Cell<bool>,
    grant: AuthGrant,
    _held: HeldBytes,
}

impl AuthCache {
    /// An empty cache, reserved on `account`.
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Self { all: HashMap::new(), account }
    }

    /// Returns the grant for a digest, if it is cached at `now_ms`.
    pub(crate) fn get(&self, digest: &[u8; 32], now_ms: u64) -> Option<&AuthGrant> {
        let own = self.all.get(digest).filter(|own| now_ms < own.until_ms)?;
        own.is_used.set(true);
        Some(&own.grant)
    }

    /// Caches a grant for `term`, with at most `most` entries; false if others had to leave, if all
    /// others are in use, or without memory.
    pub(crate) fn put(
        &mut self,
        digest: [u8; 32],
        grant: AuthGrant,
        term: Term,
        most: u64,
    ) -> bool {
        let Term { from_ms, until_ms } = term;
        if until_ms <= from_ms {
            return true;
        }
        let has_room =
            |known: &Self| (known.all.len() as u64) < most || known.all.contains_key(&digest);
        if !has_room(self) {
            self.sweep(from_ms);
        }
        let had_room = has_room(self);
        if !had_room {
            self.all.retain(|_, own| own.is_used.take());
        }
        if !has_room(self) {
            return false;
        }
        let Ok(held) = self.account.hold((ENTRY_BYTES + grant.memory()) as u64) else {
            return false;
        };
        let is_used = Cell::default();
        self.all.insert(digest, CachedGrant { until_ms, is_used, grant, _held: held });
        had_room
    }

    /// Removes expired entries.
    pub(crate) fn sweep(&mut self, now_ms: u64) {
        self.all.retain(|_, own| now_ms < own.until_ms);
    }
}

#[cfg(test)]
mod tests {
    use base::MemoryBudget;

    use super::*;

    const fn term(from_ms: u64, until_ms: u64) -> Term {
        Term { from_ms, until_ms }
    }

    fn known() -> AuthCache {
        AuthCache::new(Account::open(&MemoryBudget::new(8 << 20, 4 << 20), u64::MAX))
    }

    #[test]
    fn what_is_remembered_ends_and_has_bounds() {
        let mut known = known();
        let grant = |name: &str| AuthGrant {
            user: Some(Arc::new(User(name.into()))),
            ..AuthGrant::default()
        };
        assert!(known.put([1; 32], grant("a"), term(0, 10), 2));
        assert!(known.put([2; 32], grant("b"), term(0, 20), 2));
        assert!(known.put([2; 32], grant("b"), term(5, 25), 2), "it is there");
        let name = |known: &AuthCache, at, now_ms| {
            known.get(&[at; 32], now_ms)?.user.as_ref().map(|user| user.0.to_string())
        };
        assert!([1, 2].iter().all(|at| name(&known, *at, 5).is_some()));
        assert!(!known.put([3; 32], grant("c"), term(5, 30), 2), "both are in use");
        assert_eq!(name(&known, 3, 5), None);
        assert_eq!(name(&known, 1, 9).as_deref(), Some("a"));
        assert_eq!(name(&known, 1, 10), None, "it is over");
        assert!(known.put([3; 32], grant("c"), term(10, 30), 2), "in its place");
        assert_eq!(name(&known, 3, 10).as_deref(), Some("c"));
        assert!(known.put([4; 32], grant("d"), term(10, 10), 2), "for no time");
        assert_eq!(name(&known, 4, 10), None);
        known.sweep(25);
        assert_eq!(known.all.len(), 1);
    }

    #[test]
    fn what_is_used_stays_and_makes_no_room_for_what_comes_once() {
        let mut known = known();
        let grant = AuthGrant::default;
        assert!(known.put([0; 32], grant(), term(0, 100), 4));
        for other in 1..200 {
            assert!(known.get(&[0; 32], 1).is_some(), "it is used all the time");
            let had_room = known.put([other; 32], grant(), term(1, 100), 4);
            assert!(had_room || other > 3, "{other}: the first three find room");
            assert!(known.all.contains_key(&[other; 32]) && known.all.len() <= 4);
        }
    }

    #[test]
    fn what_is_remembered_is_held_and_given_back() {
        let memory = MemoryBudget::new(8 << 20, 4 << 20);
        let mut known = AuthCache::new(Account::open(&memory, u64::MAX));
        let name = FieldName::parse("X-Token").expect("a name");
        let grant = || {
            let value = vec![b'x'; 16_000].into_boxed_slice();
            AuthGrant { fields: [(name.clone(), value)].into(), ..AuthGrant::default() }
        };
        let put = |known: &mut AuthCache, n: u8| known.put([n; 32], grant(), term(0, 10), 4_096);
        let kept = (0..=255).take_while(|n| put(&mut known, *n)).count();
        assert!((4..100).contains(&kept), "{kept}: a part of what there is");
        assert!(memory.held() >= kept as u64 * 16_000);
        known.sweep(10);
        assert!(memory.held() == 0 && put(&mut known, 0));
    }
}
