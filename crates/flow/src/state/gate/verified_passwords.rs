//! Passwords that were right, as all cores know them: one that a core has checked lets its user in
//! on the others, too, and its user and client come first when passwords are checked again.
//!
//! Nothing is here by which a password could be found: digests hold the file of users, whose hashes
//! no stranger has.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

use super::queue::Urgency;
use super::user::User;
use crate::state::term::Term;

/// Time for which one who was right comes first, in milliseconds.
const LATELY_MS: u64 = 24 * 3600 * 1000;
/// Passwords, and clients, that are remembered.
const MOST: usize = 4096;
/// Of so many the one that is the longest ago makes room for another.
const LOOKED_AT: usize = 8;

/// The memory of all cores.
#[derive(Debug, Default)]
pub(crate) struct VerifiedPasswords {
    /// By digests of what was shown.
    shown: Mutex<HashMap<[u8; 32], VerifiedPassword>>,
    /// When clients were right, by their marks.
    clients: Mutex<HashMap<u64, u64>>,
}

#[derive(Debug)]
struct VerifiedPassword {
    user: Arc<User>,
    at_ms: u64,
    /// It need not be checked until then.
    until_ms: u64,
}

impl VerifiedPasswords {
    /// Notes that a client of this `mark` has shown the right password of `user`, which need not be
    /// checked again for `term`, which begins now.
    pub(crate) fn note(
        &self,
        digest: [u8; 32],
        mark: u64,
        user: &Arc<User>,
        Term { from_ms: at_ms, until_ms }: Term,
    ) {
        let shown = VerifiedPassword { user: Arc::clone(user), at_ms, until_ms };
        put(&mut self.shown.lock(), digest, shown, |shown| shown.at_ms);
        put(&mut self.clients.lock(), mark, at_ms, |at_ms| *at_ms);
    }

    /// The user whose password was shown, and until when that need not be checked.
    pub(crate) fn entered(&self, digest: &[u8; 32], now_ms: u64) -> Option<(Arc<User>, u64)> {
        let all = self.shown.lock();
        let shown = all.get(digest).filter(|shown| now_ms < shown.until_ms)?;
        Some((Arc::clone(&shown.user), shown.until_ms))
    }

    /// The standing of a client of this `mark` that shows something with this digest.
    pub(crate) fn standing(&self, digest: &[u8; 32], mark: u64, now_ms: u64) -> Urgency {
        let is_lately = |at_ms: u64| now_ms.saturating_sub(at_ms) < LATELY_MS;
        let is_known = self.shown.lock().get(digest).is_some_and(|shown| is_lately(shown.at_ms))
            || self.clients.lock().get(&mark).is_some_and(|at_ms| is_lately(*at_ms));
        if is_known { Urgency::Known } else { Urgency::Other }
    }
}

/// Puts `value` in, in the place of an old one where there are too many.
fn put<K: Copy + Eq + Hash, V>(
    all: &mut HashMap<K, V>,
    key: K,
    value: V,
    at_ms: impl Fn(&V) -> u64,
) {
    if all.len() >= MOST && !all.contains_key(&key) {
        let some = all.iter().take(LOOKED_AT);
        if let Some(oldest) = some.min_by_key(|(_, value)| at_ms(value)).map(|(key, _)| *key) {
            all.remove(&oldest);
        }
    }
    all.insert(key, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_was_right_is_known_for_a_day_and_enters_as_long_as_is_said() {
        let right = VerifiedPasswords::default();
        let user = Arc::new(User("ann".into()));
        right.note([1; 32], 7, &user, Term { from_ms: 1000, until_ms: 2000 });
        assert!(
            right
                .entered(&[1; 32], 1999)
                .is_some_and(|(own, until)| own.0 == user.0 && until == 2000)
        );
        assert!(right.entered(&[1; 32], 2000).is_none() && right.entered(&[2; 32], 1000).is_none());
        for (digest, mark, at_ms, standing) in [
            (1, 8, 2000, Urgency::Known),
            (2, 7, 2000, Urgency::Known),
            (2, 8, 2000, Urgency::Other),
            (1, 7, 1000 + LATELY_MS, Urgency::Other),
        ] {
            assert_eq!(right.standing(&[digest; 32], mark, at_ms), standing, "{digest} {mark}");
        }
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let right = VerifiedPasswords::default();
        let user = Arc::new(User("ann".into()));
        for at in 0..2 * MOST as u64 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&at.to_le_bytes());
            right.note(digest, at, &user, Term { from_ms: at, until_ms: at });
        }
        assert_eq!((right.shown.lock().len(), right.clients.lock().len()), (MOST, MOST));
    }
}
