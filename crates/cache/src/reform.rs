//! The making of further forms of a stored body ([`crate::forms`]), on the cache's side.

use std::sync::Arc;

use crate::cache::Cache;
use crate::forms::Forms;
use crate::lower::Lower;
use crate::object::Object;

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
        let charge = self.reserve(Forms::SLOTS_BYTES);
        charge.is_some_and(|charge| forms.begin(number, effort, charge))
    }

    /// Puts the form beside the others. `hash` is that of the object's key. False if the object has
    /// left the index meanwhile, or if there is no memory.
    pub fn put_form(
        &self,
        (object, hash): (&Arc<Object>, u64),
        (number, effort): (usize, u8),
        mut data: Vec<u8>,
    ) -> bool {
        let Some(forms) = object.forms() else { return false };
        data.shrink_to_fit();
        let Some(charge) = self.reserve(Forms::cost(data.capacity())) else { return false };
        let place = self.place(hash);
        // Under the lock, so that eviction counts with what it will get.
        let mut shard = self.shard(place.shard);
        let is_live = object.is_live();
        if is_live {
            forms.put(number, effort, data, charge);
            shard.reweigh(place.h32, object);
        }
        is_live
    }
}
