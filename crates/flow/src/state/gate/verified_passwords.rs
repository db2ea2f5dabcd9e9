//! Verified passwords of all cores: a password that one core has verified admits its user on the
//! others, and gives its user and client precedence at the next check.
//!
//! No password can be found from them: the digests cover the file of users, whose hashes no
//! attacker has.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

use super::queue::Urgency;
use super::user::User;
use crate::state::term::Term;

/// Milliseconds for which a verified client keeps precedence.
const LATELY_MS: u64 = 24 * 3600 * 1000;
/// Passwords, and clients, that are remembered.
const MOST: usize = 4096;
/// Entries examined for the oldest, which makes room for another.
const LOOKED_AT: usize = 8;

/// The verified passwords of all cores.
#[derive(Debug, Default)]
pub(crate) struct VerifiedPasswords {
    /// By digests of credentials.
    shown: Mutex<HashMap<[u8; 32], VerifiedPassword>>,
    /// When clients were last verified, by their marks.
    clients: Mutex<HashMap<u64, u64>>,
}

#[derive(Debug)]
struct VerifiedPassword {
    user: Arc<User>,
    at_ms: u64,
    /// Milliseconds until which it need not be checked again.
    until_ms: u64,
}

impl VerifiedPasswords {
    /// Notes that the client of this `mark` sent the password of `user`. It need not be checked
    /// again during `term`.
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

    /// The user of verified credentials, and the time until which they need no check.
    pub(crate) fn entered(&self, digest: &[u8; 32], now_ms: u64) -> Option<(Arc<User>, u64)> {
        let all = self.shown.lock();
        let shown = all.get(digest).filter(|shown| now_ms < shown.until_ms)?;
        Some((Arc::clone(&shown.user), shown.until_ms))
    }

    /// The standing of the client of this `mark` with these credentials.
    pub(crate) fn standing(&self, digest: &[u8; 32], mark: u64, now_ms: u64) -> Urgency {
        let is_lately = |at_ms: u64| now_ms.saturating_sub(at_ms) < LATELY_MS;
        let is_known = self.shown.lock().get(digest).is_some_and(|shown| is_lately(shown.at_ms))
            || self.clients.lock().get(&mark).is_some_and(|at_ms| is_lately(*at_ms));
        if is_known { Urgency::Known } else { Urgency::Other }
    }
}

/// Inserts `value`, replacing an old one if there are too many.
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
        let verified_passwords = VerifiedPasswords::default();
        let user = Arc::new(User("ann".into()));
        verified_passwords.note([1; 32], 7, &user, Term { from_ms: 1000, until_ms: 2000 });
        assert!(
            verified_passwords
                .entered(&[1; 32], 1999)
                .is_some_and(|(own, until)| own.0 == user.0 && until == 2000)
        );
        assert!(
            verified_passwords.entered(&[1; 32], 2000).is_none()
                && verified_passwords.entered(&[2; 32], 1000).is_none()
        );
        for (digest, mark, at_ms, standing) in [
            (1, 8, 2000, Urgency::Known),
            (2, 7, 2000, Urgency::Known),
            (2, 8, 2000, Urgency::Other),
            (1, 7, 1000 + LATELY_MS, Urgency::Other),
        ] {
            assert_eq!(
                verified_passwords.standing(&[digest; 32], mark, at_ms),
                standing,
                "{digest} {mark}"
            );
        }
    }

    #[test]
    fn the_number_of_passwords_and_clients_is_bounded() {
        let verified_passwords = VerifiedPasswords::default();
        let user = Arc::new(User("ann".into()));
        for at in 0..2 * MOST as u64 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&at.to_le_bytes());
            verified_passwords.note(digest, at, &user, Term { from_ms: at, until_ms: at });
        }
        assert_eq!(
            (verified_passwords.shown.lock().len(), verified_passwords.clients.lock().len()),
            (MOST, MOST)
        );
    }
}
