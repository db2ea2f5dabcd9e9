//! The making of further forms of a stored body ([`crate::forms`]), on the cache's side.

use std::sync::Arc;

use crate::cache::Cache;
use crate::forms::EncodedForms;
use crate::keyed_forms::KeyedForms;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::{KeyLocation, Shard};

impl<L: Lower> Cache<L> {
    /// Takes the duty to make the form with this number of `object`'s complete body, with so much
    /// effort (from 1 on). False if somebody has it already, or had it, or if there is no memory.
    ///
    /// The duty is taken once: who comes to nothing leaves the object without the form.
    pub fn begin_form(&self, object: &Object, number: usize, effort: u8) -> bool {
        let Some(forms) = object.forms() else { return false };
        if !object.is_live() || !forms.is_wanted(number, effort) {
            return false;
        }
        let charge = self.reserve(EncodedForms::SLOTS_BYTES);
        charge.is_some_and(|charge| forms.begin(number, effort, charge))
    }

    /// Puts the form with this number, made with so much effort, beside the others. `hash` is that
    /// of the object's key. False if the body has left the index meanwhile, or if there is no
    /// memory.
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
        // Under the lock, so that eviction counts with what it will get.
        let mut shard = self.shard(place.shard);
        let Some(heir) = heir(&shard, place, object) else { return false };
        forms.put(number, effort, data, charge);
        shard.reweigh(place.h32, &heir);
        true
    }

    /// Takes the duty to make the form of `object`'s complete body for `key`. False if somebody has
    /// it already, or had it; if there is no memory; or if every place is taken for a key that is
    /// not over.
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

    /// Puts the form for `key` beside the body, as [`Cache::put_form`].
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
        let Some(heir) = heir(&shard, place, object) else { return false };
        let is_put = keyed.put(key, data, charge);
        if is_put {
            shard.reweigh(place.h32, &heir);
        }
        is_put
    }
}

/// The object in the index that delivers the body of `object`: itself, or one that has got the body
/// by a 304 since.
fn heir<L: Lower>(
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
