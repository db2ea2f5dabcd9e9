//! Further forms of a stored body: the same content in other codings, made after the body was
//! stored.
//!
//! The store knows them by number and never by meaning. They are read without a lock, charged like
//! chunks of a body, and dropped with the owner of the body.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use bytes::Bytes;

use crate::charged_bytes::{CHUNK_OVERHEAD, ChargedBytes, ChunkReservation};
use crate::keyed_forms::KeyedForms;
use crate::ledger::{Charge, Ledger};
use crate::size;
use crate::sync::{AtomicU8, AtomicU64, Ordering};

/// The number of forms: a form's number is less than this.
pub const FORMS: usize = 4;

/// A bit of [`EncodedForms::plain`]: a client has asked for the content without a coding.
const PLAIN_ASKED: u64 = 1 << 63;

/// The forms of one body. They take no memory before the first.
#[derive(Debug, Default)]
pub(crate) struct EncodedForms {
    slots: OnceLock<Box<FormSlots>>,
    /// The length of the content without its coding, plus one; 0 if unknown. Includes
    /// [`PLAIN_ASKED`].
    plain: AtomicU64,
    attached: OnceLock<Box<Attachment>>,
    keyed: OnceLock<Box<KeyedForms>>,
}

/// Data derived from a stored body, kept beside it for later requests and dropped with it.
pub trait DerivedData: Any + fmt::Debug + Send + Sync {
    /// Bytes that the data takes.
    fn memory(&self) -> u64;
}

#[derive(Debug)]
struct Attachment {
    made: Arc<dyn DerivedData>,
    charge: Charge,
}

#[derive(Debug)]
struct FormSlots {
    slots: [FormSlot; FORMS],
    _charge: Charge,
}

#[derive(Debug, Default)]
struct FormSlot {
    form: ArcSwapOption<EncodedForm>,
    /// The greatest effort with which the form was begun; 0 for none.
    begun: AtomicU8,
}

#[derive(Debug)]
struct EncodedForm {
    bytes: Bytes,
    effort: u8,
    /// Bytes that the form has reserved.
    cost: u64,
}

impl EncodedForms {
    /// Bytes to reserve before the first form.
    pub(crate) const SLOTS_BYTES: u64 = size::class(size_of::<FormSlots>());

    /// Bytes to reserve for a form of `len` bytes.
    pub(crate) const fn cost(len: usize) -> u64 {
        size::class(len) + CHUNK_OVERHEAD + size::arc::<EncodedForm>()
    }

    /// The length of the content without its coding, if it is known.
    #[inline]
    pub(crate) fn plain_length(&self) -> Option<u64> {
        (self.plain.load(Ordering::Relaxed) & !PLAIN_ASKED).checked_sub(1)
    }

    /// Notes the length of the content without its coding.
    pub(crate) fn note_plain_length(&self, length: u64) {
        let length = length.saturating_add(1) & !PLAIN_ASKED;
        let note = |old: u64| Some(old & PLAIN_ASKED | length);
        // The update never fails.
        _ = self.plain.fetch_update(Ordering::Relaxed, Ordering::Relaxed, note);
    }

    /// Notes that a client has asked for the content without a coding.
    #[inline]
    pub(crate) fn note_plain_asked(&self) {
        if !self.is_plain_asked() {
            self.plain.fetch_or(PLAIN_ASKED, Ordering::Relaxed);
        }
    }

    /// Returns true if a client has asked for the content without a coding.
    #[inline]
    pub(crate) fn is_plain_asked(&self) -> bool {
        self.plain.load(Ordering::Relaxed) & PLAIN_ASKED != 0
    }

    /// The attached data.
    pub(crate) fn attached(&self) -> Option<Arc<dyn DerivedData>> {
        self.attached.get().map(|attachment| Arc::clone(&attachment.made))
    }

    /// Attaches `made`, unless data is attached already or memory is short.
    pub(crate) fn attach(&self, ledger: &Arc<Ledger>, made: Arc<dyn DerivedData>) {
        let bytes = size::class(size_of::<Attachment>()) + made.memory();
        if self.attached.get().is_none()
            && let Some(charge) = Charge::try_new(ledger, bytes)
        {
            // Of two concurrent calls, one has derived its data in vain.
            _ = self.attached.set(Box::new(Attachment { made, charge }));
        }
    }

    /// Returns true if there are slots for forms, or attached data.
    pub(crate) fn is_begun(&self) -> bool {
        self.slots.get().is_some() || self.keyed().is_some() || self.attached.get().is_some()
    }

    /// Makes slots for forms, with [`EncodedForms::SLOTS_BYTES`] reserved in `charge`.
    fn begin_slots(&self, charge: Charge) -> &FormSlots {
        self.slots
            .get_or_init(|| Box::new(FormSlots { slots: Default::default(), _charge: charge }))
    }

    /// The form with this number.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<Bytes> {
        let slots = self.slots.get()?;
        slots.slots.get(number)?.form.load().as_ref().map(|form| form.bytes.clone())
    }

    /// Returns true if there is a form with this number.
    #[inline]
    pub(crate) fn has(&self, number: usize) -> bool {
        let slot = self.slots.get().and_then(|slots| slots.slots.get(number));
        // Most have never been begun, which is cheaper to see.
        slot.is_some_and(|slot| {
            slot.begun.load(Ordering::Relaxed) > 0 && slot.form.load().is_some()
        })
    }

    /// The effort with which the form was made; 0 without one.
    pub(crate) fn effort(&self, number: usize) -> u8 {
        let slot = self.slots.get().and_then(|slots| slots.slots.get(number));
        slot.and_then(|slot| slot.form.load().as_ref().map(|form| form.effort)).unwrap_or(0)
    }

    /// Returns true if the form has not been begun with this effort.
    pub(crate) fn is_wanted(&self, number: usize, effort: u8) -> bool {
        match self.slots.get() {
            None => number < FORMS,
            Some(slots) => {
                let slot = slots.slots.get(number);
                slot.is_some_and(|slot| slot.begun.load(Ordering::Relaxed) < effort)
            }
        }
    }

    /// Begins the form with this effort. Returns true for the first caller only. `charge` is for
    /// the slots.
    pub(crate) fn begin(&self, number: usize, effort: u8, charge: Charge) -> bool {
        let slot = self.begin_slots(charge).slots.get(number);
        slot.is_some_and(|slot| slot.begun.fetch_max(effort, Ordering::AcqRel) < effort)
    }

    /// Stores a form, for which [`EncodedForms::cost`] is reserved in `charge`. It replaces a form
    /// of less effort.
    pub(crate) fn put(&self, number: usize, effort: u8, data: Vec<u8>, charge: Charge) {
        let Some(slot) = self.slots.get().and_then(|slots| slots.slots.get(number)) else { return };
        slot.begun.fetch_max(effort, Ordering::AcqRel);
        let cost = charge.bytes();
        let bytes = ChargedBytes::into_bytes(data, ChunkReservation::Stored(charge));
        let form = Arc::new(EncodedForm { bytes, effort, cost });
        slot.form.rcu(|old| match old {
            Some(old) if old.effort >= effort => Some(Arc::clone(old)),
            _ => Some(Arc::clone(&form)),
        });
    }

    /// The forms that are known by a key, if there are any.
    #[inline]
    pub(crate) fn keyed(&self) -> Option<&KeyedForms> {
        self.keyed.get().map(|keyed| &**keyed)
    }

    /// [`EncodedForms::keyed`], made with `charge` at the first call.
    pub(crate) fn begin_keyed(&self, charge: Charge) -> &KeyedForms {
        self.keyed.get_or_init(|| Box::new(KeyedForms::new(charge)))
    }

    /// Bytes that the forms have reserved.
    pub(crate) fn memory(&self) -> u64 {
        let attached = self.attached.get().map_or(0, |attachment| attachment.charge.bytes());
        let others = attached + self.keyed().map_or(0, KeyedForms::memory);
        let Some(slots) = self.slots.get() else { return others };
        let forms = slots.slots.iter().map(|slot| slot.form.load().as_ref().map_or(0, |f| f.cost));
        others + Self::SLOTS_BYTES + forms.sum::<u64>()
    }
}
