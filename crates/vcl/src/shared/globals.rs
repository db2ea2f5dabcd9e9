//! The variables of `var.global_set`, which all programs and requests share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Limit;
use bytes::Bytes;
use parking_lot::Mutex;

/// The variables of `global_set`.
#[derive(Debug)]
pub(crate) struct Globals {
    vars: Mutex<Variables>,
    /// The most variables that there may be.
    most: AtomicU64,
    /// The most bytes that their names and values may have.
    most_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Variables {
    by_name: HashMap<Box<[u8]>, Bytes>,
    /// Bytes of names and values.
    bytes: u64,
}

impl Globals {
    /// At most `most` of them, with at most `most_bytes` in all.
    pub(crate) fn new(most: u64, most_bytes: u64) -> Self {
        let (most, most_bytes) = (AtomicU64::new(most), AtomicU64::new(most_bytes));
        Self { vars: Mutex::default(), most, most_bytes }
    }

    /// From now on at most so many.
    pub(crate) fn set_most(&self, most: u64, most_bytes: u64) {
        self.most.store(most, Ordering::Relaxed);
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
    }

    /// The value of one.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.vars.lock().by_name.get(key).cloned()
    }

    /// Sets or removes one, or says which limit has no room for it.
    pub(crate) fn set(&self, key: &Bytes, value: Option<&Bytes>) -> Result<(), Limit> {
        let mut vars = self.vars.lock();
        let Variables { by_name, bytes } = &mut *vars;
        let size = |value: &Bytes| (key.len() + value.len()) as u64;
        let old = by_name.get(&key[..]).map(size);
        let others = *bytes - old.unwrap_or(0);
        let Some(value) = value else {
            by_name.remove(&key[..]);
            *bytes = others;
            return Ok(());
        };
        if old.is_none() && by_name.len() as u64 >= self.most.load(Ordering::Relaxed) {
            return Err(Limit::VclGlobals);
        }
        if others + size(value) > self.most_bytes.load(Ordering::Relaxed) {
            return Err(Limit::VclGlobalBytes);
        }
        *bytes = others + size(value);
        // Copied: a piece of a request's head would hold the whole of it for as long.
        by_name.insert(key[..].into(), Bytes::copy_from_slice(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_most_so_many_globals() {
        let globals = Globals::new(2, 100);
        let (a, b, c) = (Bytes::from("a"), Bytes::from("b"), Bytes::from("c"));
        assert_eq!(globals.set(&a, Some(&b)), Ok(()));
        assert_eq!(globals.set(&b, Some(&b)), Ok(()));
        assert_eq!(globals.set(&c, Some(&b)), Err(Limit::VclGlobals));
        assert_eq!(globals.set(&a, Some(&c)), Ok(()), "one that is there can be changed");
        assert_eq!(globals.get(b"a"), Some(c.clone()));
        assert_eq!(globals.set(&a, None), Ok(()), "and removed");
        assert_eq!(globals.get(b"a"), None);
        assert_eq!(globals.set(&c, Some(&b)), Ok(()), "which makes room");
    }

    #[test]
    fn globals_have_at_most_so_many_bytes() {
        let globals = Globals::new(10, 10);
        let (a, b) = (Bytes::from("a"), Bytes::from("b"));
        let of = |len: usize| Bytes::from(vec![b'x'; len]);
        assert_eq!(globals.set(&a, Some(&of(9))), Ok(()));
        assert_eq!(globals.set(&b, Some(&of(0))), Err(Limit::VclGlobalBytes));
        assert_eq!(globals.set(&a, Some(&of(10))), Err(Limit::VclGlobalBytes));
        assert_eq!(globals.get(b"a"), Some(of(9)), "what was there stays");
        assert_eq!(globals.set(&a, Some(&of(4))), Ok(()));
        assert_eq!(globals.set(&b, Some(&of(4))), Ok(()));
        assert_eq!(globals.set(&a, None), Ok(()));
        assert_eq!(globals.set(&b, Some(&of(9))), Ok(()));
    }
}
