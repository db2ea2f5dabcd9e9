//! The list of dictionaries, by their hashes.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use base::Limits;
use cache::Object;
use codec::dictionary::DictionaryHash;
use message::Request;
use parking_lot::{Mutex, RwLock};

use super::{Dictionary, key};

/// Responses whose body was still coming when a client got them, and that nobody has asked for
/// since: how many are remembered.
const EXPECTED: usize = 64;

/// Dictionaries of all cores.
#[derive(Default)]
pub(crate) struct Dictionaries {
    listed: RwLock<Listed>,
    expected: Mutex<VecDeque<Expected>>,
}

#[derive(Default)]
struct Listed {
    by_hash: HashMap<DictionaryHash, Arc<Dictionary>>,
    /// The same, the oldest first.
    order: VecDeque<DictionaryHash>,
}

/// A response that will be a dictionary, and what the client asked for that got it.
struct Expected {
    object: Weak<Object>,
    request: Request,
}

impl Dictionaries {
    /// The dictionary with this hash, if it is still stored.
    pub(crate) fn find(&self, hash: &DictionaryHash) -> Option<Arc<Dictionary>> {
        let listed = self.listed.read();
        listed.by_hash.get(hash).filter(|one| one.body.is_there()).map(Arc::clone)
    }

    /// Returns true if no form with the dictionary of this key is of use any more.
    pub(super) fn is_over(&self, of: u64) -> bool {
        let listed = self.listed.read();
        !listed.by_hash.iter().any(|(hash, one)| key(hash) == of && one.body.is_there())
    }

    /// Lists a dictionary whose hash is known. Returns true if another one, that is still stored,
    /// had to leave for it.
    pub(super) fn list(&self, dictionary: &Arc<Dictionary>, limits: &Limits) -> bool {
        let Some(hash) = dictionary.hash.get() else { return false };
        let most = limits.dictionaries as usize;
        let mut listed = self.listed.write();
        let Listed { by_hash, order } = &mut *listed;
        if by_hash.len() >= most {
            by_hash.retain(|_, one| one.body.is_there());
            order.retain(|hash| by_hash.contains_key(hash));
        }
        let mut is_over = false;
        while by_hash.len() >= most {
            let Some(oldest) = order.pop_front().and_then(|hash| by_hash.remove(&hash)) else {
                break;
            };
            // Whoever gets it next has it listed anew.
            oldest.is_listed.store(false, Ordering::Relaxed);
            is_over = true;
        }
        if most == 0 {
            return true;
        }
        if let Some(before) = by_hash.insert(*hash, Arc::clone(dictionary)) {
            // The same bytes under another URL: the latest counts.
            before.is_listed.store(Arc::ptr_eq(&before, dictionary), Ordering::Relaxed);
        } else {
            order.push_back(*hash);
        }
        dictionary.is_listed.store(true, Ordering::Relaxed);
        is_over
    }

    /// Remembers a response whose body is still coming.
    pub(super) fn expect(&self, object: &Arc<Object>, request: &Request, limits: &Limits) {
        if limits.dictionaries == 0 {
            return;
        }
        let mut expected = self.expected.lock();
        let weak = Arc::downgrade(object);
        if expected.iter().any(|one| one.object.ptr_eq(&weak)) {
            return;
        }
        if expected.len() == EXPECTED {
            expected.pop_front();
        }
        let mut request = Request { headers: Default::default(), ..request.clone() };
        request.headers.fit();
        expected.push_back(Expected { object: weak, request });
    }

    /// Takes out the latest response that was expected and has come.
    pub(super) fn expected(&self) -> Option<(Arc<Object>, Request)> {
        let mut expected = self.expected.lock();
        expected.retain(|one| one.object.strong_count() > 0);
        let has_come = |one: &Expected| Some(one.object.upgrade()?.whole().is_some());
        let at = expected.iter().rposition(|one| has_come(one) == Some(true))?;
        let Expected { object, request } = expected.remove(at)?;
        Some((object.upgrade()?, request))
    }
}
