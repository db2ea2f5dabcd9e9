//! Delta coding: hashes of dictionaries, and forms that are coded with them. Both are computed on
//! blocking threads, within the time share of all further forms.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Account, Counter, Limit, Limits};
use cache::{FORMS, Object};
use codec::delta;
use codec::dictionary::DictionaryHash;
use message::HeaderId;
use message::cache_control::CacheControl;
use sha2::{Digest, Sha256};

use crate::refinement::{Bounds, RefinementPermit, decode};
use crate::state::core::CoreState;
use crate::state::dictionary::{Dictionary, NamedDictionary};
use crate::state::live_configuration::LiveConfiguration;
use crate::stored_heads::stored_head;

/// A form is kept if its length is at most this percentage of the shortest other one: the saving
/// must pay for the memory, as few clients use it.
const CLEARLY_PERCENT: u64 = 80;

/// Computes the hash of `dictionary` and lists it.
pub(super) fn settle(core: &Rc<CoreState>, live: &LiveConfiguration, dictionary: Arc<Dictionary>) {
    if dictionary.use_as.is_none() {
        return;
    }
    if dictionary.hash.get().is_some() {
        return list(core, &dictionary, &live.limits);
    }
    if dictionary.is_begun.swap(true, Ordering::AcqRel) {
        return;
    }
    let Some(mut permit) = RefinementPermit::take(core, &live.limits, core.now().mono_ms) else {
        // The next client that gets the response causes another try.
        dictionary.is_begun.store(false, Ordering::Release);
        return;
    };
    let limits = live.limits.clone();
    let account = Account::open_large(core.shared.cache.memory());
    rt::spawn_local(async move {
        let (source, bounds) = (Arc::clone(&dictionary), Bounds::of(&limits));
        let hash = permit.work(move || hash_of(&source, bounds, &account)).await;
        match hash {
            Some(Ok(hash)) => {
                _ = dictionary.hash.set(hash);
                list(&permit.core, &dictionary, &limits);
            }
            Some(Err(Some(limit))) => permit.core.counters.limit(limit),
            _ => {}
        }
    });
}

fn list(core: &CoreState, dictionary: &Arc<Dictionary>, limits: &Limits) {
    let now_ms = core.now().mono_ms;
    if core.shared.dictionaries.list(dictionary, limits.dictionaries, now_ms) {
        core.counters.limit(Limit::Dictionaries);
    }
}

/// The content of a dictionary.
fn content(
    dictionary: &Dictionary,
    bounds: Bounds,
    account: &Arc<Account>,
) -> Result<(Vec<u8>, base::HeldBytes), Option<Limit>> {
    let mut held = account.hold(0).map_err(|_| Some(Limit::ClientMemory))?;
    let plain = dictionary.body.whole(|whole| decode(whole, dictionary.coding, bounds, &mut held));
    Ok((plain.ok_or(None)??, held))
}

fn hash_of(
    dictionary: &Dictionary,
    bounds: Bounds,
    account: &Arc<Account>,
) -> Result<DictionaryHash, Option<Limit>> {
    let (plain, _held) = content(dictionary, bounds, account)?;
    Ok(Sha256::digest(&plain).into())
}

/// Makes the form of `object` with `dictionary`, which a client has named.
pub(super) fn form(
    core: &Rc<CoreState>,
    live: &LiveConfiguration,
    object: &Arc<Object>,
    dictionary: Arc<Dictionary>,
    named: NamedDictionary,
) {
    let Some(mut permit) = RefinementPermit::take(core, &live.limits, core.now().mono_ms) else {
        return;
    };
    let is_over = |key| core.shared.dictionaries.is_over(key);
    if !core.shared.cache.begin_keyed_form(object, named.key(), is_over) {
        return;
    }
    let (object, bounds) = (Arc::clone(object), Bounds::of(&live.limits));
    let account = Account::open_large(core.shared.cache.memory());
    rt::spawn_local(async move {
        let source = Arc::clone(&object);
        let made = permit.work(move || make(&source, &dictionary, &named, bounds, &account));
        let Some(made) = made.await else { return };
        let core = &permit.core;
        match made {
            Ok(Some(data)) => {
                let hash = core.shared.seed.hash(object.key());
                if core.shared.cache.put_keyed_form(&object, hash, named.key(), data) {
                    core.counters.inc(Counter::DeltasMade);
                }
            }
            Ok(None) => {}
            Err(limit) => limit.into_iter().for_each(|limit| core.counters.limit(limit)),
        }
    });
}

/// Makes the form. `None` if that is not permitted, or if it is not clearly shorter than others.
fn make(
    object: &Object,
    dictionary: &Dictionary,
    NamedDictionary { hash, coding }: &NamedDictionary,
    bounds: Bounds,
    account: &Arc<Account>,
) -> Result<Option<Vec<u8>>, Option<Limit>> {
    let Some(head) = stored_head(object) else { return Ok(None) };
    if CacheControl::parse(head.headers.values(HeaderId::CacheControl)).no_transform {
        return Ok(None);
    }
    let (Some(whole), Some(stored)) = (object.whole(), object.length()) else { return Ok(None) };
    let others = (0..FORMS).filter_map(|number| object.form(number)).map(|form| form.len() as u64);
    let shortest = others.min().unwrap_or(stored).min(stored);
    let most = (shortest * CLEARLY_PERCENT / 100) as usize;
    let no_memory = |_| Some(Limit::ClientMemory);
    let (old, mut held) = content(dictionary, bounds, account)?;
    let plain = decode(whole, object.flags().coding, bounds, &mut held)?;
    // A growing buffer occupies up to three times its length for a moment.
    let memory = delta::most_memory(*coding, old.len(), plain.len()) + 3 * most;
    held.grow(memory as u64).map_err(no_memory)?;
    delta::encode(*coding, &plain, &old, hash, most).map_err(|_| None)
}
