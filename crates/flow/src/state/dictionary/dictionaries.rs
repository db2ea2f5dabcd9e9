//! List of dictionaries by hash, for all cores.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use cache::Object;
use codec::dictionary::DictionaryHash;
use parking_lot::{Mutex, RwLock};

use super::entry::{Dictionary, DictionaryScope};
use super::named_dictionary::key;

/// Milliseconds for which a replaced dictionary is not listed again.
const FORGOTTEN_MS: u64 = 10_000;

/// The dictionaries of all cores.
#[derive(Default)]
pub(crate) struct Dictionaries {
    listed: RwLock<DictionaryIndex>,
    expected: Mutex<VecDeque<ExpectedDictionary>>,
}

#[derive(Default)]
struct DictionaryIndex {
    by_hash: HashMap<DictionaryHash, Arc<Dictionary>>,
    /// The listed hashes, the oldest first.
    order: VecDeque<DictionaryHash>,
}

/// A response that becomes a dictionary once its body is complete.
struct ExpectedDictionary {
    object: Weak<Object>,
    scope: DictionaryScope,
}

impl Dictionaries {
    /// The dictionary with this hash, if it is still stored.
    pub(crate) fn find(&self, hash: &DictionaryHash) -> Option<Arc<Dictionary>> {
        let listed = self.listed.read();
        listed.by_hash.get(hash).filter(|one| one.body.is_there()).map(Arc::clone)
    }

    /// Returns true if the dictionary of this key is gone, and so forms with it are useless.
    pub(crate) fn is_over(&self, of: u64) -> bool {
        let listed = self.listed.read();
        !listed.by_hash.iter().any(|(hash, one)| key(hash) == of & !1 && one.body.is_there())
    }

    /// Lists a dictionary with a known hash. Returns true if a stored one had to leave for it.
    pub(crate) fn list(&self, dictionary: &Arc<Dictionary>, most: u64, now_ms: u64) -> bool {
        let Some(hash) = dictionary.hash.get() else { return false };
        let most = most as usize;
        let mut listed = self.listed.write();
        let DictionaryIndex { by_hash, order } = &mut *listed;
        if by_hash.len() >= most {
            by_hash.retain(|_, one| one.body.is_there());
            order.retain(|hash| by_hash.contains_key(hash));
        }
        let mut is_over = false;
        while by_hash.len() >= most {
            let Some(oldest) = order.pop_front().and_then(|hash| by_hash.remove(&hash)) else {
                break;
            };
            // A later client gets it listed again: not at once, or more dictionaries than permitted
            // would have cores compete for the list.
            oldest.list_from_ms.store(now_ms + FORGOTTEN_MS, Ordering::Relaxed);
            is_over = true;
        }
        // Of equal bytes under two URLs the later one counts while it exists.
        if let Some(before) = by_hash.insert(*hash, Arc::clone(dictionary)) {
            before.list_from_ms.store(now_ms + FORGOTTEN_MS, Ordering::Relaxed);
        } else {
            order.push_back(*hash);
        }
        dictionary.list_from_ms.store(u64::MAX, Ordering::Relaxed);
        is_over
    }

    /// Remembers a response whose body still arrives, and that may not be requested again, unless
    /// the list is locked. Beyond `most`, the oldest are forgotten.
    pub(crate) fn expect(
        &self,
        object: &Arc<Object>,
        most: u64,
        scope: impl FnOnce() -> DictionaryScope,
    ) {
        let Some(mut expected) = self.expected.try_lock() else { return };
        let weak = Arc::downgrade(object);
        if expected.iter().any(|one| one.object.ptr_eq(&weak)) {
            return;
        }
        let over = (expected.len() + 1).saturating_sub(most as usize);
        expected.drain(..over);
        expected.push_back(ExpectedDictionary { object: weak, scope: scope() });
    }

    /// Takes the latest expected response that is complete.
    pub(crate) fn expected(&self) -> Option<(Arc<Object>, DictionaryScope)> {
        let mut expected = self.expected.try_lock()?;
        expected.retain(|one| one.object.strong_count() > 0);
        let has_come = |one: &ExpectedDictionary| Some(one.object.upgrade()?.whole().is_some());
        let at = expected.iter().rposition(|one| has_come(one) == Some(true))?;
        let ExpectedDictionary { object, scope } = expected.remove(at)?;
        Some((object.upgrade()?, scope))
    }
}
