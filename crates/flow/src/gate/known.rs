//! A core's memory of who was let in.

use std::collections::HashMap;
use std::sync::Arc;

use policy::headers::FieldName;

use crate::trace::User;

/// Fields that a server which was asked has told.
pub(crate) type Told = Arc<[(FieldName, Box<[u8]>)]>;

/// One who has been let in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admitted {
    /// The user, by the name that the password was shown for.
    pub(crate) user: Option<Arc<User>>,
    /// Fields that the server which was asked has told.
    pub(crate) fields: Told,
}

/// An answer that one request has found out, for itself.
pub(crate) struct Proof {
    pub(crate) digest: [u8; 32],
    pub(crate) entered: Admitted,
}

/// A core's memory, by digests of what was shown.
#[derive(Debug, Default)]
pub(crate) struct Known(HashMap<[u8; 32], (u64, Admitted)>);

impl Known {
    /// Finds who has shown this, if it is remembered at `now_ms`.
    pub(crate) fn get(&self, digest: &[u8; 32], now_ms: u64) -> Option<&Admitted> {
        self.0.get(digest).filter(|(until_ms, _)| now_ms < *until_ms).map(|(_, entered)| entered)
    }

    /// Remembers it until `until_ms`, if fewer than `most` are remembered; false if not.
    pub(crate) fn put(
        &mut self,
        digest: [u8; 32],
        entered: Admitted,
        (now_ms, until_ms): (u64, u64),
        most: u64,
    ) -> bool {
        if until_ms <= now_ms {
            return true;
        }
        let has_room =
            |known: &Self| (known.0.len() as u64) < most || known.0.contains_key(&digest);
        if !has_room(self) {
            self.sweep(now_ms);
        }
        let may = has_room(self);
        if may {
            self.0.insert(digest, (until_ms, entered));
        }
        may
    }

    /// Forgets what is over.
    pub(crate) fn sweep(&mut self, now_ms: u64) {
        self.0.retain(|_, (until_ms, _)| now_ms < *until_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_ends_and_has_bounds() {
        let mut known = Known::default();
        let entered = |name: &str| Admitted {
            user: Some(Arc::new(User(name.into()))),
            ..Admitted::default()
        };
        assert!(known.put([1; 32], entered("a"), (0, 10), 2));
        assert!(known.put([2; 32], entered("b"), (0, 20), 2));
        assert!(!known.put([3; 32], entered("c"), (5, 30), 2), "there is no room");
        assert!(known.put([2; 32], entered("b"), (5, 25), 2), "it is there");
        let name = |known: &Known, at, now_ms| {
            known.get(&[at; 32], now_ms)?.user.as_ref().map(|user| user.0.to_string())
        };
        assert_eq!(name(&known, 1, 9).as_deref(), Some("a"));
        assert_eq!(name(&known, 1, 10), None, "it is over");
        assert!(known.put([3; 32], entered("c"), (10, 30), 2), "in its place");
        assert_eq!(name(&known, 3, 10).as_deref(), Some("c"));
        assert!(known.put([4; 32], entered("d"), (10, 10), 2), "for no time");
        assert_eq!(name(&known, 4, 10), None);
        known.sweep(25);
        assert_eq!(known.0.len(), 1);
    }
}
