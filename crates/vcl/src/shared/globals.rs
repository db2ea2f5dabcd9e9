//! Globals: the variables of `var.global_set`, shared by all programs and requests. Number and size
//! are always limited.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Limit;
use bytes::Bytes;
use parking_lot::Mutex;

/// The global variables.
#[derive(Debug)]
pub(crate) struct Globals {
    vars: Mutex<Variables>,
    /// Most variables.
    most: AtomicU64,
    /// Most bytes of names and values.
    most_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Variables {
    by_name: HashMap<Box<[u8]>, Bytes>,
    /// Bytes of names and values.
    bytes: u64,
}

impl Globals {
    /// Empty globals with these limits.
    pub(crate) fn new(most: u64, most_bytes: u64) -> Self {
        let (most, most_bytes) = (AtomicU64::new(most), AtomicU64::new(most_bytes));
        Self { vars: Mutex::default(), most, most_bytes }
    }

    /// Changes the limits.
    pub(crate) fn set_most(&self, most: u64, most_bytes: u64) {
        self.most.store(most, Ordering::Relaxed);
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
    }

    /// Value of a variable.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.vars.lock().by_name.get(key).cloned()
    }

    /// Sets or removes a variable. The error is the limit that would be exceeded.
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
        // A copy: a slice would keep the whole head of a request in memory.
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
