//! The making of further forms of a stored body ([`crate::forms`]): the cache's part. It permits
//! one maker for each form, and stores the result.

use std::sync::Arc;

use crate::cache::Cache;
use crate::forms::EncodedForms;
use crate::keyed_forms::KeyedForms;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::{KeyLocation, Shard};

impl<L: Lower> Cache<L> {
    /// Permits the caller to make form `number` of `object`'s complete body with this effort (from
    /// 1 on). Returns false if the permission has been given before, or without memory.
    ///
    /// It is given once: a maker that fails leaves the object without the form.
    pub fn begin_form(&self, object: &Object, number: usize, effort: u8) -> bool {
        let Some(forms) = object.forms() else { return false };
        if !object.is_live() || !forms.is_wanted(number, effort) {
            return false;
        }
        let charge = self.reserve(EncodedForms::SLOTS_BYTES);
        charge.is_some_and(|charge| forms.begin(number, effort, charge))
    }

    /// Stores form `number`, made with this effort. `hash` is the hash of the object's key. Returns
    /// false if the body has left the index meanwhile, or without memory.
    pub fn put_form(
        &self,
        object: &Arc<Object>,
        hash: u64,
        number: usize,
        effort: u8,
        mut data: Vec<u8>,
    ) -> bool {
        let Some(forms) = object.forms() else { return false };
        data.shrink_to_fit();
        let Some(charge) = self.reserve(EncodedForms::cost(data.capacity())) else { return false };
        let place = self.place(hash);
        // Under the lock, so that eviction counts the new weight.
        let mut shard = self.shard(place.shard);
        let Some(owner_in_index) = owner_in_index(&shard, place, object) else { return false };
        forms.put(number, effort, data, charge);
        shard.reweigh(place.h32, &owner_in_index);
        true
    }

    /// Permits the caller to make the form of `object`'s complete body for `key`. Returns false if
    /// the permission has been given before, without memory, or if every slot has a key that is in
    /// use.
    pub fn begin_keyed_form(
        &self,
        object: &Object,
        key: u64,
        is_over: impl Fn(u64) -> bool,
    ) -> bool {
        let Some(forms) = object.forms() else { return false };
        if !object.is_live() {
            return false;
        }
        if let Some(keyed) = forms.keyed() {
            return keyed.begin(key, is_over);
        }
        let charge = self.reserve(KeyedForms::BYTES);
        charge.is_some_and(|charge| forms.begin_keyed(charge).begin(key, is_over))
    }

    /// Stores the form for `key`, as [`Cache::put_form`] does.
    pub fn put_keyed_form(
        &self,
        object: &Arc<Object>,
        hash: u64,
        key: u64,
        mut data: Vec<u8>,
    ) -> bool {
        let Some(keyed) = object.forms().and_then(EncodedForms::keyed) else { return false };
        data.shrink_to_fit();
        let cost = KeyedForms::cost(data.capacity());
        let Some(charge) = self.reserve(cost) else { return false };
        let place = self.place(hash);
        let mut shard = self.shard(place.shard);
        let Some(owner_in_index) = owner_in_index(&shard, place, object) else { return false };
        let is_put = keyed.put(key, data, charge);
        if is_put {
            shard.reweigh(place.h32, &owner_in_index);
        }
        is_put
    }
}

/// The object in the index with the body of `object`: itself, or one that got the body by a 304
/// since.
fn owner_in_index<L: Lower>(
    shard: &Shard<L>,
    place: KeyLocation,
    object: &Arc<Object>,
) -> Option<Arc<Object>> {
    if object.is_live() {
        return Some(Arc::clone(object));
    }
    let variants = shard.find(place.h32, object.key())?.variants();
    variants.iter().find(|other| other.shares_body(object)).map(Arc::clone)
}
