//! Keyed forms: forms of a stored body that need something else of the client, such as a
//! dictionary, and are known by its key.
//!
//! A body has few slots for them. A key that is out of use gives its slot away. As with
//! [`crate::forms`], the store never knows the meaning of a key.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;

use crate::charged_bytes::{CHUNK_OVERHEAD, ChargedBytes, ChunkReservation};
use crate::ledger::Charge;
use crate::size;
use crate::sync::{AtomicU64, Ordering};

/// The most keyed forms of a body.
pub const KEYED_FORMS: usize = 4;

/// The slots for keyed forms of one body.
#[derive(Debug)]
pub(crate) struct KeyedForms {
    places: [KeyedPlace; KEYED_FORMS],
    _charge: Charge,
}

#[derive(Debug, Default)]
struct KeyedPlace {
    /// The key of the form that was begun; 0 for none.
    begun: AtomicU64,
    form: ArcSwapOption<KeyedForm>,
}

#[derive(Debug)]
struct KeyedForm {
    key: u64,
    bytes: Bytes,
    /// Bytes that the form has reserved.
    cost: u64,
}

impl KeyedForms {
    /// Bytes to reserve for the slots.
    pub(crate) const BYTES: u64 = size::class(size_of::<Self>());

    /// Empty slots, for which [`KeyedForms::BYTES`] are reserved in `charge`.
    pub(crate) fn new(charge: Charge) -> Self {
        Self { places: Default::default(), _charge: charge }
    }

    /// Bytes to reserve for a form of `len` bytes.
    pub(crate) const fn cost(len: usize) -> u64 {
        size::class(len) + CHUNK_OVERHEAD + size::arc::<KeyedForm>()
    }

    /// The form for `key`.
    pub(crate) fn get(&self, key: u64) -> Option<Bytes> {
        self.places.iter().find_map(|place| {
            let form = place.form.load();
            form.as_ref().filter(|form| form.key == key).map(|form| form.bytes.clone())
        })
    }

    /// Returns true if there is any form.
    pub(crate) fn has_any(&self) -> bool {
        self.places.iter().any(|place| place.form.load().is_some())
    }

    /// Returns true if the form for `key` has not been begun.
    pub(crate) fn is_wanted(&self, key: u64) -> bool {
        self.places.iter().all(|place| place.begun.load(Ordering::Relaxed) != key)
    }

    /// Begins the form for `key`. Returns true for the first caller only, and false if every slot
    /// has a key in use. Key 0 has no form.
    pub(crate) fn begin(&self, key: u64, is_over: impl Fn(u64) -> bool) -> bool {
        if key == 0 || !self.is_wanted(key) {
            return false;
        }
        self.places.iter().any(|place| {
            let before = place.begun.load(Ordering::Relaxed);
            // Two concurrent callers may take two slots. The second form is made in vain, without
            // harm.
            (before == 0 || is_over(before))
                && place
                    .begun
                    .compare_exchange(before, key, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// Stores the form for `key`; [`KeyedForms::cost`] is reserved in `charge`. Returns false if
    /// the slot has been given to another key meanwhile.
    pub(crate) fn put(&self, key: u64, data: Vec<u8>, charge: Charge) -> bool {
        let mut places = self.places.iter();
        let Some(place) = places.find(|place| place.begun.load(Ordering::Relaxed) == key) else {
            return false;
        };
        let cost = charge.bytes();
        let bytes = ChargedBytes::into_bytes(data, ChunkReservation::Stored(charge));
        place.form.store(Some(Arc::new(KeyedForm { key, bytes, cost })));
        true
    }

    /// Bytes that the forms have reserved.
    pub(crate) fn memory(&self) -> u64 {
        let costs =
            self.places.iter().map(|place| place.form.load().as_ref().map_or(0, |f| f.cost));
        Self::BYTES + costs.sum::<u64>()
    }
}
